"""``fared-cli show ...``: one command a document of the daemon."""

from __future__ import annotations

from collections.abc import Callable

import click

from fared.cli.session import Json, Session, output_options
from fared.cli.words import Words, one_of


@click.group(cls=Words)
@output_options
def show() -> None:
    """Show the state of the daemon."""


def _show(
    session: Session, what: str, args: Json, bad: Callable[[Json], bool] | None = None
) -> None:
    given = {key: value for key, value in args.items() if value is not None}
    session.show(lambda: session.ask("show", what, given), bad)


def _plain(name: str, help_text: str) -> None:
    """Add a command that takes no arguments."""

    @output_options
    @click.pass_obj
    def command(session: Session) -> None:
        _show(session, name, {})

    show.add_command(click.command(name, help=help_text)(command))


_plain("status", "The daemon in short: identity, start-up, neighbors, routes.")
_plain("interfaces", "Interfaces, their capacity and load.")
_plain("neighbors", "OSPF neighbors.")


@show.command()
@click.argument("kind", metavar="[TYPE]", required=False)
@click.argument("link_state_id", metavar="[ID]", required=False)
@output_options
@click.pass_obj
def database(session: Session, kind: str | None, link_state_id: str | None) -> None:
    """Show the link-state database; with ID also what the LSAs say."""
    _show(session, "database", {"type": kind, "id": link_state_id})


_plain("lsdb", "The raw database; with --json the file that 'spf --lsdb' reads.")
_plain("topology", "The graph: nodes, links, metrics, capacities.")


@show.command()
@click.argument("log", metavar="[log]", required=False, callback=one_of("log"))
@output_options
@click.pass_obj
def spf(session: Session, log: str | None) -> None:
    """Show the shortest-path tree, or the log of computations."""
    _show(session, "spf", {"log": True if log else None})


@show.command()
@click.argument("prefix", required=False)
@output_options
@click.pass_obj
def routes(session: Session, prefix: str | None) -> None:
    """Show routes with their weighted next hops."""
    _show(session, "routes", {"prefix": prefix})


@show.command()
@click.argument("prefix", required=False)
@output_options
@click.pass_obj
def weights(session: Session, prefix: str | None) -> None:
    """Show path capacities and the weights made of them."""
    _show(session, "weights", {"prefix": prefix})


@show.command()
@click.argument("diff", metavar="[diff]", required=False, callback=one_of("diff"))
@output_options
@click.pass_obj
def fib(session: Session, diff: str | None) -> None:
    """Show what was programmed; diff: compare with the kernel, exit 1 if different."""
    _show(session, "fib", {"diff": True if diff else None}, lambda found: bool(found.get("diff")))


_plain("convergence", "How long the last changes took, stage by stage, and why they happened.")
_plain("timers", "Pending timers.")
_plain("counters", "Counters since start.")
_plain("log", "The last log lines.")
_plain("config", "The running configuration with all defaults.")
