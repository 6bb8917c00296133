"""The events that fared logs, as its source names them: every call that writes a log line."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from fared.management.documents.declare import PROTOCOLS
from fared.router.protocols import ISIS, OSPF

_WRITERS = {
    "info",
    "warning",
    "error",
    "debug",
    "log",
    "_log",
    "_log_once",
    "RateLimitedLog",
    "LogRecord",
    "_ended",
    "ServerEvents",
    "TableEvents",
}
_EVENT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LOGS = re.compile(r"(?i)log|\b_ended\b|\breject\b|\bevent = ")
"""What a file that logs has in it."""
_LEVELS = {"debug", "info", "warning", "error"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def events_of(directory: Path) -> dict[str, set[str]]:
    """The events of a source tree, with the names of their fields where the source has them.

    A variable that holds the name of an event is called ``event``.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(directory.rglob("*.py")):
        text = path.read_text()
        if _LOGS.search(text) is None:
            continue
        tree = ast.parse(text)
        for event, fields in [*_events(tree), *_limited(tree), *_rejected(tree)]:
            found.setdefault(event, set()).update(fields)
    return found


def _events(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    inside: dict[int, dict[str, set[str]]] = {}
    for function in _functions(tree):
        inside |= dict.fromkeys(map(id, ast.walk(function)), _dicts(function))
    for call in ast.walk(tree):
        if isinstance(call, ast.Assign) and _name(call.targets[0]) == "event":
            for event in filter(_EVENT.fullmatch, _texts(call.value)):
                yield from ((name, set()) for name in _composed(event))
        if not isinstance(call, ast.Call) or _name(call.func) not in _WRITERS:
            continue
        if _name(call.func) in _LEVELS and "log" not in ast.unparse(call.func).lower():
            continue  # of another object than a logger
        for argument in call.args:
            for event in _texts(argument):
                if _EVENT.fullmatch(event) and event not in _LEVELS:
                    fields = _fields(call, inside.get(id(call), {}))
                    yield from ((name, fields) for name in _composed(event))


def _fields(call: ast.Call, dicts: Mapping[str, set[str]]) -> set[str]:
    """The fields of a call: its keywords, and the keys of dictionaries that are passed."""
    found: set[str] = set()
    passed = [word.value for word in call.keywords if word.arg is None]
    for value in [*passed, *call.args]:
        found |= _keys(value) | dicts.get(_name(value), set())
    found |= {word.arg for word in call.keywords if word.arg}
    # structlog renders an exception as the field ``exception``
    return {"exception" if name == "exc_info" else name for name in found}


def _limited(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """The fields with which the ``RateLimitedLog`` objects of a module are called."""
    made: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if _name(node.value.func) == "RateLimitedLog":
            event = next(text for a in node.value.args for text in _texts(a))
            made |= {_name(target): event for target in node.targets}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) in made:
            yield made[_name(call.func)], _fields(call, {}) | {"suppressed"}


def _rejected(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """What ``Process.reject`` logs, which composes the names of its events; it counts ``kind``."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) == "reject":
            for protocol in PROTOCOLS:
                yield f"{protocol}-rejected", (_fields(call, {}) | {"reason", "source"}) - {"kind"}
                yield f"{protocol}-rejected-many", {"effect"}


def _functions(tree: ast.AST) -> Iterator[_Function]:
    """All functions, the outer ones first."""
    yield from (node for node in ast.walk(tree) if isinstance(node, _Function))


def _dicts(function: _Function) -> dict[str, set[str]]:
    """The keys of the variables of a function that are given dictionaries."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            key = None
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                key, target = str(target.slice.value), target.value
            keys = _keys(node.value) if key is None else {key}
            if keys:
                found.setdefault(_name(target), set()).update(keys)
    return found


def _keys(value: ast.expr) -> set[str]:
    if not isinstance(value, ast.Dict):
        return set()
    return {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}


def _composed(event: str) -> Iterator[str]:
    """The names of an event to which an IGP adds its own name (``DatabaseLimit``)."""
    if event.startswith(("database-", "prefixes-")):
        yield from (f"{protocol}-{event}" for protocol in (OSPF, ISIS))
    else:
        yield event


def _texts(argument: ast.expr) -> Iterator[str]:
    """The texts that an argument may be: one, or either of two."""
    if isinstance(argument, ast.IfExp):
        yield from _texts(argument.body)
        yield from _texts(argument.orelse)
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value


def _name(function: ast.AST) -> str:
    """The last part of a name, also of one in a table of such objects."""
    if isinstance(function, ast.Subscript):
        return _name(function.value)
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
