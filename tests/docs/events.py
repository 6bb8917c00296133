"""The events that fared logs, as its source names them: every call that writes a log line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_WRITERS = {
    "info",
    "warning",
    "error",
    "debug",
    "log",
    "_log",
    "RateLimitedLog",
    "LogRecord",
    "_ended",
}
_EVENT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LEVELS = {"debug", "info", "warning", "error"}


def events_of(directory: Path) -> dict[str, set[str]]:
    """The events of a source tree, with the names of their fields where the call names them.

    A variable that holds the name of an event is called ``event``.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(directory.rglob("*.py")):
        for event, fields in _events(ast.parse(path.read_text())):
            found.setdefault(event, set()).update(fields)
    return found


def _events(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Assign) and _name(call.targets[0]) == "event":
            yield from ((event, set()) for event in _texts(call.value) if _EVENT.fullmatch(event))
        if not isinstance(call, ast.Call) or _name(call.func) not in _WRITERS:
            continue
        if _name(call.func) in _LEVELS and "log" not in ast.unparse(call.func).lower():
            continue  # of another object than a logger
        for argument in call.args:
            for event in _texts(argument):
                if _EVENT.fullmatch(event) and event not in _LEVELS:
                    yield event, {word.arg for word in call.keywords if word.arg}


def _texts(argument: ast.expr) -> Iterator[str]:
    """The texts that an argument may be: one, or either of two."""
    if isinstance(argument, ast.IfExp):
        yield from _texts(argument.body)
        yield from _texts(argument.orelse)
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
