"""``fared-cli show ...``: one command a document of the daemon.

``show isis ...`` and ``show ospf ...`` are the same commands narrowed to one protocol.
"""

from __future__ import annotations

from collections.abc import Callable

import click

from fared.cli.session import F, Json, Session, output_options
from fared.cli.words import Words, one_of

_PROTOCOLS = ("ospf", "isis")


@click.group(cls=Words)
@output_options
def show() -> None:
    """Show the state of the daemon."""


@click.group(name="isis", cls=Words, help="The same of IS-IS only.")
@output_options
def isis() -> None:
    """Show what concerns IS-IS."""


@click.group(name="ospf", cls=Words, help="The same of OSPF only.")
@output_options
def ospf() -> None:
    """Show what concerns OSPF."""


def _show(
    session: Session, what: str, args: Json, bad: Callable[[Json], bool] | None = None
) -> None:
    given = {key: value for key, value in args.items() if value is not None}
    session.show(lambda: session.ask("show", what, given), bad)


def proto_option(function: F) -> F:
    """Add ``--proto``."""
    text = "Of one protocol only: ospf or isis."
    return click.option("--proto", type=click.Choice(_PROTOCOLS), help=text)(function)


def family_option(function: F) -> F:
    """Add ``--af``."""
    text = "Of one address family only: ipv4 or ipv6."
    return click.option("--af", type=click.Choice(["ipv4", "ipv6"]), help=text)(function)


def _plain(name: str, help_text: str, *, narrowed: bool = False) -> None:
    """Add a command that takes no arguments; ``narrowed``: also of one protocol."""
    for group in (show, ospf, isis) if narrowed else (show,):
        _command(group, name, help_text)


def _command(group: click.Group, name: str, help_text: str) -> None:
    @output_options
    @click.pass_obj
    def command(session: Session) -> None:
        _show(session, name, {"proto": proto})

    proto = _proto_of(group)
    group.add_command(click.command(name, help=help_text)(command))


def _proto_of(group: click.Group) -> str | None:
    return group.name if group.name in _PROTOCOLS else None


def _narrowed(*commands: click.Command) -> None:
    """Put commands that have ``--proto`` under each protocol too, where it is decided."""
    for group in (ospf, isis):
        for command in commands:
            group.add_command(_of_protocol(command, group))


def _of_protocol(command: click.Command, group: click.Group) -> click.Command:
    callback = command.callback
    assert callback is not None, "a command does something"
    proto = _proto_of(group)

    def narrowed(**values: object) -> None:
        callback(**values, proto=proto)

    return click.Command(
        command.name,
        callback=narrowed,
        params=[param for param in command.params if param.name != "proto"],
        help=command.help,
    )


_plain("status", "The daemon in short: identity, start-up, neighbors, routes.")
_plain("interfaces", "Interfaces, their capacity and load.", narrowed=True)
_plain("neighbors", "Neighbors of OSPF, adjacencies of IS-IS.", narrowed=True)


@show.command()
@click.argument("kind", metavar="[TYPE]", required=False)
@click.argument("entry_id", metavar="[ID]", required=False)
@proto_option
@output_options
@click.pass_obj
def database(session: Session, kind: str | None, entry_id: str | None, proto: str | None) -> None:
    """Show the link-state database. With ID also what the LSAs or LSPs say.

    IS-IS: TYPE is lsp, pseudonode, level-1 or level-2 and may be left out; ID is that of an LSP,
    or a system id or hostname.
    """
    _show(session, "database", {"type": kind, "id": entry_id, "proto": proto})


@show.command()
@proto_option
@output_options
@click.pass_obj
def lsdb(session: Session, proto: str | None) -> None:
    """Show the raw database. With --json it is the file that 'spf --lsdb' reads.

    Where both protocols run, a file holds that of OSPF unless --proto says otherwise.
    """
    _show(session, "lsdb", {"proto": proto})


_plain("topology", "The graph: nodes, links, metrics, capacities.", narrowed=True)


@show.command()
@click.argument("log", metavar="[log]", required=False, callback=one_of("log"))
@proto_option
@output_options
@click.pass_obj
def spf(session: Session, log: str | None, proto: str | None) -> None:
    """Show the shortest-path tree, or the log of computations."""
    _show(session, "spf", {"log": True if log else None, "proto": proto})


@show.command()
@click.argument("prefix", required=False)
@family_option
@proto_option
@output_options
@click.pass_obj
def routes(session: Session, prefix: str | None, af: str | None, proto: str | None) -> None:
    """Show routes with their weighted next hops."""
    _show(session, "routes", {"prefix": prefix, "af": af, "proto": proto})


@show.command()
@click.argument("prefix", required=False)
@family_option
@proto_option
@output_options
@click.pass_obj
def weights(session: Session, prefix: str | None, af: str | None, proto: str | None) -> None:
    """Show path capacities and the weights made of them."""
    _show(session, "weights", {"prefix": prefix, "af": af, "proto": proto})


@show.command()
@click.argument("diff", metavar="[diff]", required=False, callback=one_of("diff"))
@output_options
@click.pass_obj
def fib(session: Session, diff: str | None) -> None:
    """Show what was programmed. With `diff` what the kernel has otherwise: exit 1 if anything."""
    _show(session, "fib", {"diff": True if diff else None}, lambda found: bool(found.get("diff")))


_plain("convergence", "How long the last changes took. Stage by stage, and why they happened.")
_plain("timers", "Pending timers.", narrowed=True)
_plain("counters", "Counters since start.", narrowed=True)
_plain("log", "The last log lines.")
_plain("config", "The running configuration with all defaults.")
_narrowed(database, lsdb, spf, routes, weights)
show.add_command(ospf)
show.add_command(isis)
