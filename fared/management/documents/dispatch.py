"""Answers read-only commands from the registry: checks arguments, loads the view and calls it.

Imported at the first request, or long after start-up, since routing does not need views.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fared.core.units import parse_duration
from fared.management.documents.context import ViewContext
from fared.management.documents.declare import Argument, Document
from fared.management.documents.each import load_views
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Built
from fared.management.documents.registry import all_documents
from fared.management.documents.sliced import Sliced, Work
from fared.runtime.extensions import part

Json = dict[str, Any]
Answer = Built | Awaitable[Built]
"""A document, or what waits for it: another process makes it."""


def load(protocols: Iterable[str]) -> None:
    """Import all views but rare ones and those of other packages; a protocol's if it runs."""
    for document in all_documents(plugged_in=False):
        if not document.rare:
            view_of(document)
    load_views(protocols)


def view_of(document: Document) -> Callable[..., Answer]:
    """Return the function that makes a document."""
    if not isinstance(document.view, str):
        return document.view
    view: Callable[..., Answer] = part(f"fared.management.documents.views.{document.view}")
    return view


def begin_view(context: ViewContext, document: Document, args: Json) -> Answer | Work[Any]:
    """Make a document, or return the work if it is made in slices.

    Raises CommandError, and so does the work.
    """
    given = {argument.target: _read(argument, args) for argument in document.args}
    view = view_of(document)
    made: Answer | Work[Any] = (view.work if isinstance(view, Sliced) else view)(
        context.narrowed(_text(args, "proto")), **given
    )
    return made


def _read(argument: Argument, args: Json) -> str | float | bool | None:
    if argument.kind in ("flag", "switch"):
        return args.get(argument.name) in (True, "true", "1", 1)
    if argument.kind == "number":
        return _number(args, argument.name)
    if argument.kind == "duration":
        return _duration(args, argument.name)
    found = _text(args, argument.name)
    if found is None and argument.required:
        raise CommandError("bad-argument", f"{argument.name} must be text")
    return found


def _text(args: Json, name: str) -> str | None:
    value = args.get(name)
    if value is not None and not isinstance(value, str):
        raise CommandError("bad-argument", f"{name} must be text")
    return value


def _number(args: Json, name: str) -> int | None:
    value = args.get(name)
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        raise CommandError("bad-argument", f"{name} must be a number") from None


def _duration(args: Json, name: str) -> float | None:
    value = args.get(name)
    try:
        return None if value is None else parse_duration(value)
    except (TypeError, ValueError):
        raise CommandError("bad-argument", f"{name} must be a duration such as 90s or 5m") from None
