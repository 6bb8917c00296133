"""``fared-cli``: the operator's tool.

Any unique prefix of a word is accepted (``fared-cli sh ro``). Data goes to stdout, everything else
to stderr. A command imports only what it needs: a table's module when it is printed, the
configuration model for ``config check``, the routing code for the offline commands.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

import fared
from fared.management.cli.completion import completion_of
from fared.management.cli.session import (
    NEGATIVE,
    USAGE,
    Failure,
    Mistake,
    Session,
    once_options,
    output_options,
    socket_option,
    tell,
)
from fared.management.cli.show import lazy_command, show
from fared.management.cli.words import Lazy, Words, imported, widened
from fared.management.documents.declare import COMMANDS
from fared.runtime import extensions

_HERE = "fared.management.cli"
_LAZY = {
    "top": Lazy(
        imported(f"{_HERE}.top:top"),
        "Watch neighbors, links, weights and events on one page.",
    ),
    "monitor": Lazy(
        imported(f"{_HERE}.monitor:monitor"),
        "Print events as they occur.",
    ),
    "tech-support": Lazy(
        imported(f"{_HERE}.support:tech_support"),
        "Write all that a bug report needs into one tar: documents, log, kernel, versions.",
    ),
    "clear": Lazy(
        imported(f"{_HERE}.clear:clear"),
        "End an adjacency, which forms again, or begin counters anew.",
    ),
    "log": Lazy(imported(f"{_HERE}.clear:log"), "Change what is logged."),
    "drain": Lazy(
        imported(f"{_HERE}.drain:drain"),
        "Take this router, or a link, out of service.",
    ),
    "undrain": Lazy(
        imported(f"{_HERE}.drain:undrain"),
        "Put this router, or a link, back into service.",
    ),
    "config": Lazy(
        imported(f"{_HERE}.config:config"),
        "Check, compare, apply or reload a configuration, or go back to a former one.",
    ),
    "record": Lazy(
        imported(f"{_HERE}.record:record"), "Record all inputs of the router, in files."
    ),
    "replay": Lazy(
        imported(f"{_HERE}.record:replay"),
        "Run a router on a recording, and compare (offline).",
    ),
}


class _AllCommands(Words):
    """All commands, and those of other routers."""

    def meant(
        self, args: list[str], error: click.ClickException
    ) -> list[str] | click.ClickException:
        """See ``Program``."""
        from fared.management.cli import habits  # noqa: PLC0415 - only after an error

        first = self._first_word(args)
        words = args[first:]
        usage = isinstance(error, click.UsageError)
        if not words or not (usage or (isinstance(error, Failure) and error.refused)):
            return error
        habit = habits.of(words, whole=not usage)
        if habit is None or (words[0] in self.names and not habit.known.startswith(f"{words[0]} ")):
            return error
        if not habit.ours:
            return Mistake(f"no command '{habit.known}'", habit.text)
        tell(habit.text)
        return [*args[:first], *habit.ours]

    def _first_word(self, args: list[str]) -> int:
        """Return the place of the first word after the options and their values."""
        valued = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        place = 0
        while place < len(args) and args[place].startswith("-"):
            place += 2 if args[place] in valued else 1
        return place


@click.group(
    name="fared-cli",
    cls=_AllCommands,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 negative result or malformed input, 2 usage, 3 daemon unreachable.",
)
@socket_option
@output_options
@click.version_option(fared.__version__, prog_name="fared-cli")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Query and control a fared daemon. Any unique prefix of a word is accepted: sh ro.

    Without a command, on a terminal: a prompt, with ? and TAB.
    """
    session = ctx.ensure_object(Session)
    if session.as_json:
        ctx.default_map = {
            each.name: _with_json(each.as_json) for each in extensions.commands_of("")
        }

    if ctx.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(ctx.get_help(), err=True)
            ctx.exit(USAGE)
        from fared.management.cli import prompt  # noqa: PLC0415 - readline, only here

        prompt.run(main, session, fared.__version__)


def _with_json(commands: tuple[str, ...]) -> dict[str, Any]:
    flag: dict[str, Any] = {"as_json": True}
    return dict.fromkeys(commands, flag) or flag


main.add_command(show)
_OPTIONS = {each.command: each for each in extensions.OPTIONS}
for _name in COMMANDS:
    _found = lazy_command(_name)
    main.add_lazy(_name, widened(_found, _OPTIONS[_name]) if _name in _OPTIONS else _found)


@main.command()
@click.option(
    "--graceful",
    is_flag=True,
    help="Neighbors forward through this router meanwhile; else they route around it.",
)
@once_options
@click.pass_obj
def restart(session: Session, *, graceful: bool) -> None:
    """Restart the daemon; its routes stay in the kernel. After an upgrade: the new version."""
    session.show_answer("restart", args={"graceful": graceful})


@main.command()
@once_options
@click.pass_obj
def health(session: Session) -> None:
    """Tell whether start-up is over and the kernel has the routes, for supervisors of containers.

    The exit code is 1 if not, 3 if no daemon answers. Neighbors that are missing do not count:
    see show validate.
    """
    status = session.ask("show status")
    if session.as_json:
        click.echo(json.dumps({"ready": status["ready"], "stage": status["stage"]}))
    else:
        click.echo("ready" if status["ready"] else f"starting: {status['stage']}")
    if not status["ready"]:
        raise click.exceptions.Exit(NEGATIVE)


@main.command("clear-limits")
@once_options
@click.pass_obj
def clear_limits(session: Session) -> None:
    """Count full databases anew, and ask neighbors again for what was ignored (show memory)."""
    session.show_answer("clear-limits")


for _name, _lazy in _LAZY.items():
    main.add_lazy(_name, _lazy)
for _plugged in extensions.commands_of(""):
    main.add_lazy(_plugged.name, Lazy(imported(_plugged.target), _plugged.help))


main.add_command(completion_of(main, "fared-cli"))


if __name__ == "__main__":
    main()
