"""The ``fared`` command: check the configuration, or run the daemon until a signal stops it.

Exit codes: 0 clean exit, 1 could not run (the message says why), 2 bad usage or configuration.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from fared import __version__
from fared.config import ConfigErrors, json_schema, load_runnable
from fared.config.here import compared
from fared.config.load import Loaded
from fared.runtime import journal
from fared.runtime.signals import hold, release
from fared.runtime.startup import collector_paused, undescribed, without

EXIT_FAILED = 1
EXIT_USAGE = 2
DEFAULT_CONFIG = "/etc/fared/fared.yaml"

# A router's arrays are small: more threads would only cost memory and wake-ups.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")


def main() -> None:
    """Link-state routing daemon that weights equal-cost paths by their capacity."""
    hold()
    options = parser().parse_args()
    path: str = options.path
    if options.schema or options.check:
        release()
    if options.schema:
        _print_schema()
    loaded = _load(path, fallback=options.fallback and not options.check, here=options.check)
    if options.check:
        for warning in loaded.warnings:
            journal.tell(f"warning: {warning}", "warning")
        sys.stdout.write(f"{path}: ok\n")
        return
    process = load_daemon()
    try:
        process.run(path, loaded, options.record)
    except process.DaemonError as error:
        _fail(str(error), EXIT_FAILED)


def _load(path: str, *, fallback: bool, here: bool = False) -> Loaded:
    """Load the file, or what ran last if it is refused; without either, end with the errors.

    ``here``: compare it with this machine.
    """
    try:
        return load_runnable(Path(path), compare=compared(_default_route_ports(), here=here))
    except ConfigErrors as errors:
        journal.tell(str(errors), "error")
        if fallback:
            from fared.daemon.change.last_configuration import last_configuration  # noqa: PLC0415 - rare

            found = last_configuration(path, errors)
            if found is not None:
                return found
        sys.exit(EXIT_USAGE)
    except OSError as error:
        _fail(f"{path}: {error.strerror}", EXIT_USAGE)


def _default_route_ports() -> frozenset[str]:
    """Import what asks the kernel, as the daemon does."""
    with without("ssl"), undescribed(), collector_paused():
        from fared.kernel.present import default_route_ports  # noqa: PLC0415 - as in load_daemon

    return default_route_ports()


def parser() -> argparse.ArgumentParser:
    """The options; click, which ``fared-cli`` uses, takes 1 MB."""
    made = argparse.ArgumentParser(
        prog="fared", description=main.__doc__, allow_abbrev=False, formatter_class=_unread
    )
    made.add_argument(
        "-c",
        "--config",
        dest="path",
        default=DEFAULT_CONFIG,
        metavar="FILE",
        help="configuration file (default: %(default)s)",
    )
    made.add_argument(
        "--record",
        metavar="DIR",
        help="record all inputs of the router in DIR, for fared-cli replay; it holds secrets",
    )
    made.add_argument(
        "--fallback",
        action="store_true",
        help="if the file is refused, run the configuration that ran last",
    )
    made.add_argument("--check", action="store_true", help="validate the configuration and exit")
    made.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON schema of the configuration file",
    )
    made.add_argument("--version", action="version", version=f"fared, version {__version__}")
    made.formatter_class = argparse.HelpFormatter
    return made


def _unread(prog: str) -> argparse.HelpFormatter:
    """Format help of any width: argparse checks each option so, and imports shutil for a width.

    Gain: 0.3 MB.
    """
    return argparse.HelpFormatter(prog, width=80)


def load_daemon() -> ModuleType:
    """Import the daemon, which ``--check`` does not need, and asyncio with it, without TLS."""
    with without("ssl"), undescribed(), collector_paused():
        from fared.daemon import process  # noqa: PLC0415 - more than half of the start-up

    return process


def _print_schema() -> NoReturn:
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    journal.tell(f"fared: {message}", "error")
    sys.exit(code)


if __name__ == "__main__":
    main()
