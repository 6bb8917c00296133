"""``fared-cli config ...``: write, check, compare, apply and reload configurations; history."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import click
from msgspec.structs import asdict

from fared.config import ConfigErrors, ConfigWarning, json_schema, load_runnable
from fared.config.here import compared
from fared.config.template import Proto, Role, links_guessed, template
from fared.management.api.requests import ConfigApplyRequest
from fared.management.cli import values
from fared.management.cli.request import given_of, with_options
from fared.management.cli.session import (
    NEGATIVE,
    Failure,
    Json,
    Session,
    once_options,
    output_options,
    tell,
)
from fared.management.cli.words import Lazy, Words, imported, one_of
from fared.management.documents.declare import PROTOCOLS
from fared.runtime import extensions

_CORRECT = "config/fared.yaml, or 'man fared.yaml', has all settings with their values"
_REFUSED = (
    "nothing has changed; 'fared-cli config check FILE' checks a corrected file without a daemon"
)
_FILES = "'fared-cli config template leaf' writes one"
_ROLES = ("leaf", "spine", "superspine")


@click.group(cls=Words)
@output_options
def config() -> None:
    """Check, compare, apply or reload a configuration, or go back to a former one."""


def _load(file: str) -> tuple[ConfigWarning, ...]:
    """Return the warnings about a file. Raises ConfigErrors."""
    from fared.kernel.present import default_route_ports  # noqa: PLC0415 - netlink: 60 ms

    compare = compared(default_route_ports(), here=True)
    return load_runnable(Path(file), compare=compare).warnings


def _refuse(errors: ConfigErrors) -> Failure:
    text = f"{errors.total:,} error{'s' if errors.total > 1 else ''}\n{errors}"
    return Failure(text, _CORRECT)


@config.command()
@click.argument("file", shell_complete=values.files)
@once_options
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
@click.argument("file", shell_complete=values.files)
@once_options
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
@once_options
@click.pass_obj
def reload(session: Session) -> None:
    """Reload the daemon's configuration file. Exit 1 if the daemon refuses it."""
    session.show(lambda: session.ask("reload"), bad=_refused)


def _refused(document: Json) -> bool:
    """Whether the daemon has refused a configuration; then say what to do next."""
    if document["applied"]:
        return False
    tell(_REFUSED)
    return True


_confirm_option = with_options(ConfigApplyRequest, "confirm", "comment")


@config.command("apply")
@click.argument("file", shell_complete=values.files)
@_confirm_option
@once_options
@click.pass_obj
def apply_file(session: Session, file: str, confirm: float | None, comment: str | None) -> None:
    """Validate, save and apply FILE. Exit 1 if the daemon refuses it; then nothing has changed."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failure(f"{file}: {reason}", _FILES) from None
    args: Json = {"text": text, "file": file, "confirm": confirm, "comment": comment}
    _change(session, "config-apply", args)


@config.command("confirm")
@once_options
@click.pass_obj
def confirm_change(session: Session) -> None:
    """Keep the configuration that was applied with --confirm, and save it."""
    _change(session, "config-confirm", {})


@config.command()
@click.argument(
    "number",
    required=False,
    type=click.IntRange(min=0),
    metavar="[N]",
    shell_complete=values.of("back"),
)
@_confirm_option
@once_options
@click.pass_obj
def rollback(
    session: Session, number: int | None, confirm: float | None, comment: str | None
) -> None:
    """Apply the Nth former configuration of the history, by default the one before.

    While a change waits for its confirmation, undo that one.
    """
    args: Json = {"back": number, "confirm": confirm, "comment": comment}
    _change(session, "config-rollback", args)


def _change(session: Session, command: str, args: Json) -> None:
    answered = session.ask(command, args=given_of(args))
    session.print(answered)
    if _refused(answered):
        raise click.exceptions.Exit(NEGATIVE)


@config.command()
@output_options
@click.pass_obj
def history(session: Session) -> None:
    """List the last 50 configurations: since when, by whom, why."""
    session.show_answer("config-history")


@config.command()
def schema() -> None:
    """Print the JSON schema of the file, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))


@config.command("template")
@click.argument(
    "role",
    metavar="leaf|spine|superspine",
    callback=one_of(*_ROLES),
    shell_complete=lambda _ctx, _param, text: values.offered(((role, "") for role in _ROLES), text),
)
@click.option(
    "--proto", type=click.Choice(PROTOCOLS), default="ospf", help="ospf (default), isis or bgp."
)
def write_template(role: Role, proto: Proto) -> None:
    """Write a commented configuration for the interfaces of this machine, to stdout."""
    from fared.kernel.present import read_present  # noqa: PLC0415 - netlink: 60 ms

    try:
        present = read_present()
    except OSError as error:
        raise Failure(f"the kernel does not tell its interfaces: {error.strerror}") from None
    hostname = socket.gethostname().partition(".")[0]
    click.echo(template(role, proto, hostname, present), nl=False)
    if not links_guessed(role, proto, present):
        text = "no interface looks like a link to another router; see the comments in the file"
        click.echo(f"warning: {text}", err=True)


for _plugged in extensions.commands_of("config"):
    config.add_lazy(_plugged.name, Lazy(imported(_plugged.target), _plugged.help))
