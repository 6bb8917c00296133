"""``fared-cli drain`` and ``undrain``: the router or a link out of service, and back."""

from __future__ import annotations

import click

from fared.management.api.requests import DrainRequest, UndrainRequest
from fared.management.cli.request import given_of, request_command, with_options
from fared.management.cli.session import Json, Session, once_options
from fared.management.cli.words import Words


def _not_kept(answer: Json) -> bool:
    """Whether a restart will undo what was asked for."""
    return answer["not_kept"] is not None


@click.group(cls=Words, invoke_without_command=True)
@with_options(DrainRequest, "reason")
@once_options
@click.pass_obj
@click.pass_context
def drain(ctx: click.Context, session: Session, reason: str | None) -> None:
    """Drain this router: others avoid it, also after a restart, until undrain."""
    if ctx.invoked_subcommand is None:
        session.show_answer("drain", args=given_of({"reason": reason}), bad=_not_kept)


drain.add_command(
    request_command(
        DrainRequest,
        "Lower the capacity that is advertised for a link; its metric and adjacency stay.",
        "interface",
        bad=_not_kept,
    ),
    "interface",
)


@click.group(cls=Words, invoke_without_command=True)
@once_options
@click.pass_obj
@click.pass_context
def undrain(ctx: click.Context, session: Session) -> None:
    """Put this router back into service."""
    if ctx.invoked_subcommand is None:
        session.show_answer("undrain", bad=_not_kept)


undrain.add_command(
    request_command(
        UndrainRequest, "Advertise all of the capacity of a link again.", "interface", bad=_not_kept
    ),
    "interface",
)
