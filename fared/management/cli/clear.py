"""``fared-cli clear`` and ``log``: adjacencies and counters begin anew, more or less is logged."""

from __future__ import annotations

import click

from fared.management.cli import values
from fared.management.cli.request import given_of
from fared.management.cli.session import Session, output_options
from fared.management.cli.words import Words, one_of
from fared.management.documents.declare import PROTOCOLS
from fared.management.documents.human import LOG_LEVELS


@click.group(cls=Words)
@output_options
def clear() -> None:
    """End an adjacency, which forms again, or begin counters anew."""


@clear.command("neighbor")
@click.argument("neighbor", metavar="NEIGHBOR", shell_complete=values.of("neighbor"))
@click.option(
    "--proto", type=click.Choice(PROTOCOLS), help="Of one protocol only: ospf, isis or bgp."
)
@click.option("--soft", is_flag=True, help="BGP: keep the session, tell all routes again.")
@output_options
@click.pass_obj
def clear_neighbor(session: Session, neighbor: str, proto: str | None, soft: bool) -> None:  # noqa: FBT001 - a flag
    """End the adjacencies with a neighbor (a router, an address or an interface).

    They form again. Meanwhile traffic takes other paths; what is on its way may be lost.
    """
    args = given_of({"neighbor": neighbor, "proto": proto, "soft": soft or None})
    session.show_answer("clear-neighbor", args=args)


@clear.command("counters")
@output_options
@click.pass_obj
def clear_counters(session: Session) -> None:
    """Begin the counters of show counters at 0; metrics go on."""
    session.show_answer("clear-counters")


@click.group(cls=Words)
@output_options
def log() -> None:
    """Change what is logged."""


@log.command("level")
@click.argument(
    "level",
    metavar=f"[{'|'.join(LOG_LEVELS)}]",
    callback=one_of(*LOG_LEVELS),
    shell_complete=values.of("level"),
)
@output_options
@click.pass_obj
def log_level(session: Session, level: str) -> None:
    """Log lines of at least this level, until the next reload or restart."""
    session.show_answer("log-level", args={"level": level})
