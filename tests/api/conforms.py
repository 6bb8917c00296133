"""A comparison of documents with their schemas: all keys, no others, each of its type."""

import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fared.management.documents.facts import Facts
from fared.management.documents.rows import Rows


def faults(value: Any, hint: Any, where: str = "document") -> Iterator[str]:
    """Return the differences between a document and its schema."""
    if isinstance(hint, type) and issubclass(hint, Facts):
        yield from _of_row(value, hint, where)
        return
    if typing.is_typeddict(hint):
        yield from _of_keys(value, hint, where)
        return
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.NotRequired:
        yield from faults(value, arguments[0], where)
    elif origin in (typing.Union, types.UnionType):
        if all(list(faults(value, choice, where)) for choice in arguments):
            yield f"{where}: {value!r} is none of {hint}"
    elif origin in (list, Sequence, dict):
        yield from _of_entries(value, origin, arguments[-1], where)
    elif hint is not Any and type(value) not in _accepted(hint):
        yield f"{where}: {value!r} is no {hint}"


def _of_row(value: Any, row: type[Facts], where: str) -> Iterator[str]:
    try:
        kept = msgspec.to_builtins(row.read(value))
    except msgspec.ValidationError as error:
        yield f"{where}: {error}"
        return
    yield from (f"{where}: {key} is not in {row.__name__}" for key in value.keys() - kept.keys())


def _of_entries(value: Any, kind: Any, hint: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict if kind is dict else list | Rows):
        yield f"{where}: {value!r} is no {kind}"
        return
    for key, entry in value.items() if kind is dict else enumerate(value):
        yield from faults(entry, hint, f"{where}[{key!r}]")


def _of_keys(value: Any, hint: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: {value!r} is no {hint.__name__}"
        return
    hints = typing.get_type_hints(hint, include_extras=True)
    for key, type_ in hints.items():
        if key not in value and typing.get_origin(type_) is not typing.NotRequired:
            yield f"{where}: no {key}"
    for key in value.keys() - hints.keys():
        yield f"{where}: {key} is not in {hint.__name__}"
    for key in value.keys() & hints.keys():
        yield from faults(value[key], hints[key], f"{where}.{key}")


def _accepted(hint: Any) -> tuple[type, ...]:
    """The Python types that a value may have; JSON has one type for numbers."""
    return {float: (float, int), None: (type(None),)}.get(hint, (hint,))
