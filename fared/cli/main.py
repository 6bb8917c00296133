"""``fared-cli``: the operator's tool.

Any unique beginning of a word will do (``fared-cli sh ro``). Data goes to stdout, everything else
to stderr. Only what a command needs is imported: tables when one is printed, the configuration
model for ``config check``, the routing code for the offline commands.
"""

from __future__ import annotations

import click

import fared
from fared.cli.session import Json, Session, output_options, socket_option
from fared.cli.show import family_option, proto_option, show
from fared.cli.words import Lazy, Words

_OFFLINE = ("decode", "spf", "lsdb")
_LAZY = {
    "config": Lazy("fared.cli.config:config", "Check a configuration file, compare it, reload."),
    "decode": Lazy("fared.cli.decode:decode", "What is in a packet, LSA or capture (offline)."),
    "spf": Lazy("fared.cli.offline:spf", "Routes of a saved database, and what if (offline)."),
    "lsdb": Lazy("fared.cli.offline:lsdb", "Make a database file from a capture (offline)."),
}


@click.group(
    name="fared-cli",
    cls=Words,
    lazy=_LAZY,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 negative result or malformed input, 2 usage, 3 daemon unreachable.",
)
@socket_option
@output_options
@click.version_option(fared.__version__, prog_name="fared-cli")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Ask and steer a fared daemon. Any unique beginning of a word is enough: sh ro."""
    session = ctx.ensure_object(Session)
    if session.as_json:
        ctx.default_map = {name: {"as_json": True} for name in _OFFLINE}


main.add_command(show)


@main.command()
@click.argument("prefix")
@proto_option
@output_options
@click.pass_obj
def explain(session: Session, prefix: str, proto: str | None) -> None:
    """Say why the route to PREFIX is as it is."""
    args = {"prefix": prefix, **({"proto": proto} if proto else {})}
    session.show(lambda: session.ask("explain", args=args))


@main.command()
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@family_option
@proto_option
@output_options
@click.pass_obj
def path(
    session: Session, source: str, destination: str, af: str | None, proto: str | None
) -> None:
    """Show all paths from SRC to DST. Each has its share of the traffic."""
    options = {"af": af, "proto": proto}
    args = {"source": source, "destination": destination}
    args |= {name: value for name, value in options.items() if value is not None}
    session.show(lambda: session.ask("path", args=args))


@main.command()
@output_options
@click.pass_obj
def validate(session: Session) -> None:
    """Check that database, graph, routes and kernel agree. If not, the exit code is 1."""
    session.show(lambda: session.ask("validate"), bad=lambda document: not document["ok"])


@main.command()
@output_options
@click.pass_obj
def drain(session: Session) -> None:
    """Take this router out of transit (others route around it)."""
    session.show(lambda: session.ask("drain"))


@main.command()
@output_options
@click.pass_obj
def undrain(session: Session) -> None:
    """Put this router back into transit."""
    session.show(lambda: session.ask("undrain"))


@main.command("tech-support")
@click.pass_obj
def tech_support(session: Session) -> None:
    """Print every document of the daemon as one JSON document."""
    from fared.cli.support import gather  # noqa: PLC0415 - rarely used

    document: Json = gather(session)
    session.as_json = True
    session.print(document)


if __name__ == "__main__":
    main()
