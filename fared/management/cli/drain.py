"""``fared-cli drain`` and ``undrain``: the router or a link out of service, and back."""

from __future__ import annotations

import re

import click

from fared.management.cli.session import Json, Session, output_options
from fared.management.cli.words import Words

_PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)\s*%")


def _part(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Read a percentage. Raises click.BadParameter."""
    if value is None:
        return None
    found = _PERCENT.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is not 0% to 99%")
    return float(found[1]) / 100


def _not_kept(answer: Json) -> bool:
    """Whether a restart will undo what was asked for."""
    return answer["not_kept"] is not None


_REASON = click.option(
    "--reason", metavar="TEXT", default="", help="Why: shown by show status and show interfaces."
)


@click.group(cls=Words, invoke_without_command=True)
@_REASON
@output_options
@click.pass_obj
@click.pass_context
def drain(ctx: click.Context, session: Session, reason: str) -> None:
    """Drain this router: others avoid it, also after a restart, until undrain."""
    if ctx.invoked_subcommand is None:
        session.show_answer("drain", args={"reason": reason} if reason else {}, bad=_not_kept)


@drain.command("interface")
@click.argument("name")
@click.option(
    "--share",
    metavar="PERCENT",
    callback=_part,
    help="What is left of its capacity; 0%, the default: used if there is no other path.",
)
@_REASON
@output_options
@click.pass_obj
def drain_interface(session: Session, name: str, share: float | None, reason: str) -> None:
    """Lower the capacity that is advertised for a link; its metric and adjacency stay."""
    args: Json = {"interface": name}
    if share is not None:
        args["share"] = share
    if reason:
        args["reason"] = reason
    session.show_answer("drain", args=args, bad=_not_kept)


@click.group(cls=Words, invoke_without_command=True)
@output_options
@click.pass_obj
@click.pass_context
def undrain(ctx: click.Context, session: Session) -> None:
    """Put this router back into service."""
    if ctx.invoked_subcommand is None:
        session.show_answer("undrain", bad=_not_kept)


@undrain.command("interface")
@click.argument("name")
@output_options
@click.pass_obj
def undrain_interface(session: Session, name: str) -> None:
    """Advertise all of the capacity of a link again."""
    session.show_answer("undrain", args={"interface": name}, bad=_not_kept)
