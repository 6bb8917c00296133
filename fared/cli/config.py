"""``fared-cli config ...``: check, compare and reload a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import click
from msgspec.structs import asdict

from fared.cli.session import NEGATIVE, Failure, Json, Session, output_options
from fared.cli.words import Words
from fared.config import ConfigErrors, ConfigWarning, json_schema, load_runnable


@click.group(cls=Words)
@output_options
def config() -> None:
    """Check, compare or reload the configuration file."""


def _load(file: str) -> tuple[ConfigWarning, ...]:
    """Return the warnings about a file. Raises ConfigErrors."""
    return load_runnable(Path(file)).warnings


def _refuse(errors: ConfigErrors) -> Failure:
    return Failure(f"{errors.total:,} error{'s' if errors.total > 1 else ''}\n{errors}")


@config.command()
@click.argument("file")
@output_options
@click.pass_obj
def check(session: Session, file: str) -> None:
    """Check FILE without a daemon. Exit 1 with its errors if there are any."""
    try:
        warnings, errors = _load(file), None
    except ConfigErrors as refused:
        warnings, errors = (), refused
    if session.as_json:
        session.print(_check_document(warnings, errors))
        if errors:
            raise click.exceptions.Exit(NEGATIVE)
        return
    if errors:
        raise _refuse(errors)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"{file}: ok")


def _check_document(warnings: tuple[ConfigWarning, ...], errors: ConfigErrors | None) -> Json:
    """Return the JSON document; ``total`` includes the errors that are not shown."""
    return {
        "format": "fared-config-check/1",
        "ok": errors is None,
        "errors": [asdict(error) for error in errors.errors] if errors else [],
        "total": errors.total if errors else 0,
        "warnings": [asdict(warning) for warning in warnings],
    }


@config.command()
@click.argument("file")
@output_options
@click.pass_obj
def diff(session: Session, file: str) -> None:
    """Show the changes that a reload of FILE would make. Each has its effect on adjacencies."""
    try:
        _load(file)
    except ConfigErrors as errors:
        raise _refuse(errors) from None
    args: Json = {"text": Path(file).read_text(encoding="utf-8"), "file": file}
    session.show(lambda: session.ask("config-diff", args=args))


@config.command()
@output_options
@click.pass_obj
def reload(session: Session) -> None:
    """Reload the daemon's configuration file. Exit 1 if the daemon refuses it."""
    session.show(lambda: session.ask("reload"), bad=lambda document: not document["applied"])


@config.command()
def schema() -> None:
    """Print the JSON schema of the file, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))
