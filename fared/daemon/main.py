"""The ``fared`` command: check the configuration, or run the daemon until a signal stops it.

Exit codes: 0 clean exit, 1 could not run (the message says why), 2 bad usage or configuration.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import click

from fared import __version__
from fared.config import ConfigErrors, json_schema, load_runnable
from fared.startup import collector_paused, without

EXIT_FAILED = 1
EXIT_USAGE = 2
DEFAULT_CONFIG = "/etc/fared/fared.yaml"

# A router's arrays are small: more threads would only cost memory and wake-ups.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-c", "--config", "path", default=DEFAULT_CONFIG, show_default=True, metavar="FILE")
@click.option("--check", is_flag=True, help="Validate the configuration and exit.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of the configuration file.")
@click.version_option(__version__, prog_name="fared")
def main(path: str, *, check: bool, schema: bool) -> None:
    """Link-state routing daemon that weights equal-cost paths by their capacity."""
    if schema:
        _print_schema()
    try:
        loaded = load_runnable(Path(path))
    except ConfigErrors as errors:
        click.echo(str(errors), err=True)
        sys.exit(EXIT_USAGE)
    except OSError as error:
        _fail(f"{path}: {error.strerror}", EXIT_USAGE)
    if check:
        for warning in loaded.warnings:
            click.echo(f"warning: {warning}", err=True)
        click.echo(f"{path}: ok")
        return
    daemon = load_daemon()
    try:
        daemon.run(path, loaded)
    except daemon.DaemonError as error:
        _fail(str(error), EXIT_FAILED)


def load_daemon() -> ModuleType:
    """Import the daemon, which ``--check`` does not need, and asyncio with it, without TLS."""
    with without("ssl"), collector_paused():
        from fared.daemon import daemon  # noqa: PLC0415 - more than half of the start-up

    return daemon


def _print_schema() -> NoReturn:

    click.echo(json.dumps(json_schema(), indent=2))
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"fared: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
