"""The text of a row's fields, as people read them: each by its type and unit.

A column or a fact is a field's name, a text with fields in braces (``{state} for {since}``), or a
function of the row. A unit is a function of the value (``facts.Seconds``).
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec import UNSET

from fared.management.documents import human
from fared.management.documents.facts import Facts


class Styled(NamedTuple):
    """Text in a colour, or dim."""

    text: str
    style: str


Cell = str | Styled | tuple[str | Styled, ...]
"""Text, or parts of it in colours of their own."""
Shown = str | Callable[[Any], Cell | None]
"""A field's name, a text with fields in braces, or a function of the row; None: nothing."""
Columns = Mapping[str, Shown]
"""What is shown under each heading; ``>`` before one aligns its column right, ``~`` wraps it."""


def delay_column(rows: Iterable[Any]) -> Columns:
    """Return the column of delays if any of the rows, links or next hops, has one."""
    if all(row.delay is UNSET for row in rows):
        return {}
    return {">Delay": lambda row: human.delay(row.delay)}


def without_repeated(columns: Columns, rows: Iterable[Any], name: str, first: str) -> Columns:
    """Return the columns without one that repeats another in all rows, as names of a lab do."""
    if all(cell(row, columns[name]) == cell(row, columns[first]) for row in rows):
        return {head: shown for head, shown in columns.items() if head != name}
    return columns


def judged(text: str, *, good: bool, bad: str = "red") -> Styled:
    """Colour a word by ``good``."""
    return Styled(text, "green" if good else bad)


def red(text: str) -> Styled:
    """Text of what is wrong."""
    return Styled(text, "red")


def yellow(text: str) -> Styled:
    """Text of what may be wrong, or ends by itself."""
    return Styled(text, "yellow")


def dim(text: str) -> Styled:
    """Text of no weight."""
    return Styled(text, "dim")


def count(number: int, noun: str) -> str:
    """Return ``1 route``, ``2 routes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plural_list(items: list[str], limit: int) -> str:
    """Join items up to ``limit``, and count the rest."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def plain(value: object) -> str:
    """Format a value of any type in one line."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


class Fields:
    """A row's fields and properties as text, by name."""

    def __init__(self, row: Facts) -> None:
        self._row, self._formats = row, formats(type(row))

    def __getitem__(self, name: str) -> str:
        value = getattr(self._row, name)
        return human.DASH if value is None else self._formats.get(name, str)(value)


def cell(row: Facts, shown: Shown) -> Cell | None:
    """Return what a column or a fact shows of a row."""
    if not isinstance(shown, str):
        return shown(row)
    return shown.format_map(Fields(row)) if "{" in shown else Fields(row)[shown]


def facts(row: Facts, shown: Columns) -> Iterator[tuple[str, Cell]]:
    """Yield names and values of a row; None leaves one out."""
    found = ((name, cell(row, each)) for name, each in shown.items())
    yield from ((name, value) for name, value in found if value is not None)


@cache
def formats(row: type[Facts]) -> Mapping[str, Callable[[Any], str]]:
    """Return how each field of a row is formatted."""
    hints = typing.get_type_hints(row, include_extras=True)
    return {name: _format_of(hint) for name, hint in hints.items()}


def _format_of(hint: Any) -> Callable[[Any], str]:  # noqa: ANN401 - any type
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _format_of(next(kind for kind in typing.get_args(hint) if kind is not type(None)))
    if unit := getattr(hint, "__metadata__", ()):
        format_unit: Callable[[Any], str] = unit[0]
        return format_unit
    if typing.get_origin(hint) is list:
        inner = _format_of(typing.get_args(hint)[0])
        return lambda values: ", ".join(map(inner, values))
    return _yes if hint is bool else str


def _yes(value: bool) -> str:  # noqa: FBT001 - a field's value
    return "yes" if value else "no"
