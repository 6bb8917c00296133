"""``fared-cli config ...``: look at a file before it is used, and use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fared.cli.session import NEGATIVE, Failure, Json, Session, output_options
from fared.cli.words import Words

if TYPE_CHECKING:
    from fared.config import ConfigErrors


@click.group(cls=Words)
@output_options
def config() -> None:
    """Check a configuration file, compare it, reload."""


def _errors_of(file: str) -> ConfigErrors | None:
    from fared.config import (  # noqa: PLC0415 - pydantic only when needed
        ConfigErrors,
        load_runnable,
    )

    try:
        load_runnable(Path(file))
    except ConfigErrors as errors:
        return errors
    return None


def _refuse(errors: ConfigErrors) -> Failure:
    count = len(errors.errors)
    return Failure(f"{count} error{'s' if count > 1 else ''}\n{errors}")


@config.command()
@click.argument("file")
@output_options
@click.pass_obj
def check(session: Session, file: str) -> None:
    """Check FILE without a daemon; exit 1 with every error in it."""
    errors = _errors_of(file)
    if session.as_json:
        from dataclasses import asdict  # noqa: PLC0415

        found = [asdict(error) for error in errors.errors] if errors else []
        session.print({"format": "fared-config-check/1", "ok": not found, "errors": found})
        if found:
            raise click.exceptions.Exit(NEGATIVE)
        return
    if errors:
        raise _refuse(errors)
    click.echo(f"{file}: ok")


@config.command()
@click.argument("file")
@output_options
@click.pass_obj
def diff(session: Session, file: str) -> None:
    """Show what a reload of FILE would change. And how much that would disturb."""
    errors = _errors_of(file)
    if errors:
        raise _refuse(errors)
    args: Json = {"text": Path(file).read_text(encoding="utf-8"), "file": file}
    session.show(lambda: session.ask("config-diff", args=args))


@config.command()
@output_options
@click.pass_obj
def reload(session: Session) -> None:
    """Let the daemon read its file again; exit 1 if it refuses."""
    session.show(lambda: session.ask("reload"), bad=lambda document: not document["applied"])


@config.command()
def schema() -> None:
    """Print the JSON schema of the file, for editors."""
    from fared.config import json_schema  # noqa: PLC0415

    click.echo(json.dumps(json_schema(), indent=2))
