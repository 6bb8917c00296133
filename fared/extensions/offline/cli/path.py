"""``fared-cli path --lsdb FILE``: the command of the daemon, computed from a saved database.

``with_file`` gives that command the options. What computes is imported where a file is named: the
client asks a daemon without NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click
from click.core import ParameterSource

from fared.extensions.offline.cli.options import LSDB, change_options, solver_options
from fared.management.cli.session import Mistake, Session

_EPILOG: Final = """
With --lsdb FILE no daemon is asked: the paths are those that the router of the file would show; if
it has failed, or is not in the file, the source. Changes of links and routers, and the settings of
weights and next hops, are for a file: 'fared-cli spf --help' says how links are named.

\b
The paths that are left when spine1 fails:
  fared-cli path leaf1 leaf2 --lsdb db.json --fail-node spine1
"""
_NO_FILE: Final = (
    "'fared-cli show lsdb --json > FILE' on a router writes a database: add --lsdb FILE to assume"
    " something of it"
)
_NO_DAEMON: Final = "without --lsdb the daemon is asked"


def with_file(command: click.Command) -> click.Command:
    """Give ``path`` the options of a saved database."""
    ask = command.callback
    assert ask is not None, "the command does something"
    known = {param.name for param in command.params}
    add = click.option("--lsdb", "lsdb", metavar="FILE|-", help=f"Ask this, no daemon. {LSDB}")
    solver_options(change_options(add(command)))
    ours = [param for param in command.params if param.name not in known]
    command.callback = _callback(ask, ours)
    command.epilog = _EPILOG
    return command


def _callback(ask: Callable[..., Any], ours: list[click.Parameter]) -> Callable[..., None]:
    @click.pass_context
    def path(ctx: click.Context, /, **found: Any) -> None:  # noqa: ANN401 - values of any option
        given = {param.name or "": found.pop(param.name or "") for param in ours}
        if given["lsdb"] is None:
            for param in ours:
                if _typed(ctx, param.name):
                    raise Mistake(f"{param.opts[0]} requires --lsdb", _NO_FILE)
            ask(**found)
            return
        session = ctx.ensure_object(Session)
        if session.watch is not None:
            raise Mistake("--lsdb takes no --watch: a file does not change", _NO_DAEMON)
        if _typed(ctx.find_root(), "socket"):
            raise Mistake("--lsdb takes no --socket: no daemon is asked", _NO_DAEMON)
        # imported here: what computes takes half a second to load
        from fared.extensions.offline.cli import path_of_file  # noqa: PLC0415

        path_of_file.show(given, found, as_json=session.as_json)

    return path


def _typed(ctx: click.Context, name: str | None) -> bool:
    return ctx.get_parameter_source(name or "") is ParameterSource.COMMANDLINE
