"""What the control socket and the HTTP server can ask: words to views and actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fared.api.control import CommandError, Json
from fared.api.views import graph, kernel, path, protocol, routes, system
from fared.api.views.context import ViewContext
from fared.api.views.lsdb import lsdb

View = Callable[[ViewContext, Json], Any]


def _text(args: Json, name: str, *, required: bool = False) -> str | None:
    value = args.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise CommandError("bad-argument", f"{name} must be text")
    return value


def _needed(args: Json, name: str) -> str:
    value = _text(args, name, required=True)
    assert value is not None, "a required argument was checked"
    return value


def _number(args: Json, name: str) -> int | None:
    value = args.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise CommandError("bad-argument", f"{name} must be a number") from None


def _flag(args: Json, name: str) -> bool:
    return args.get(name) in (True, "true", "1", 1)


def run_view(context: ViewContext, command: str, args: Json) -> Any:  # noqa: ANN401 - JSON
    """Answer a read-only command, narrowed to one protocol by the argument ``proto``.

    Raises CommandError.
    """
    return VIEWS[command](context.narrowed(_text(args, "proto")), args)


VIEWS: dict[str, View] = {
    "show status": lambda context, _: system.status(context),
    "show interfaces": lambda context, _: protocol.interfaces(context),
    "show neighbors": lambda context, _: protocol.neighbors(context),
    "show database": lambda context, args: protocol.database(
        context, _text(args, "type"), _text(args, "id")
    ),
    "show lsdb": lambda context, _: lsdb(context),
    "show topology": lambda context, _: graph.topology(context),
    "show spf": lambda context, args: graph.spf(context, log=_flag(args, "log")),
    "show routes": lambda context, args: routes.routes(
        context, _text(args, "prefix"), _text(args, "af")
    ),
    "show weights": lambda context, args: routes.weights(
        context, _text(args, "prefix"), _text(args, "af")
    ),
    "show fib": lambda context, args: kernel.fib(context, diff=_flag(args, "diff")),
    "show convergence": lambda context, _: system.convergence(context),
    "show timers": lambda context, _: protocol.timers(context),
    "show counters": lambda context, _: system.counters(context),
    "show log": lambda context, args: system.log(context, _number(args, "lines")),
    "show config": lambda context, _: system.config(context),
    "explain": lambda context, args: routes.explain(context, _needed(args, "prefix")),
    "path": lambda context, args: path.path(
        context, _needed(args, "source"), _needed(args, "destination"), _text(args, "af")
    ),
    "validate": lambda context, _: system.validate(context),
}
"""Read-only commands; those that change something are the daemon's own."""
