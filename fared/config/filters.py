"""Filters by name, and their places: a list of items, of which the first that matches decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from fared.config import values
from fared.config.section import Section
from fared.config.shapes import Note, Scalar
from fared.core.filters import FilterItem, parse_item

_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
_WHAT_ITEM = "an item such as permit 10.0.0.0/8 ge 24, deny 10.9.0.0/16 le 32, or permit any tag 77"
FILTER, FILTERS = "filter", "filters"
"""The key of a place, whose value names a filter or several, and that of all filters."""


def _parse_name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError
    return value


def _parse_item(value: object) -> FilterItem:
    try:
        return parse_item(value if isinstance(value, str) else "")
    except ValueError as error:
        raise values.expected(_WHAT_ITEM, hint=str(error)) from None


def _check_items(items: tuple[FilterItem, ...]) -> None:
    if not items:
        raise values.expected("at least one item", hint="'deny any' denies everything")


FilterName = Annotated[
    str,
    Scalar(
        "a name of a letter and up to 63 letters, digits, -, _ and .",
        _parse_name,
        {"type": "string", "pattern": f"^{_NAME.pattern}$"},
    ),
]
FilterItemText = Annotated[
    FilterItem,
    Scalar(
        _WHAT_ITEM,
        _parse_item,
        {"type": "string", "examples": ["permit 10.0.0.0/8 ge 24", "permit any tag 77"]},
        str,
    ),
]
FilterItems = Annotated[tuple[FilterItemText, ...], Note(after=_check_items)]


class AreaFilter(Section, frozen=True):
    """The filters of an area at its border routers, by name.

    ``in``: summaries originated into the area; ``out``: summaries of its routes in other areas.
    """

    in_: FilterName | None = None
    out: FilterName | None = None


class PropagationFilter(Section, frozen=True):
    """The filters of leaking, by name: of the prefixes that go up, and that go down."""

    level1_to_level2: FilterName | None = None
    level2_to_level1: FilterName | None = None


def names_in(given: Any) -> Iterator[tuple[tuple[str, ...], str]]:  # noqa: ANN401 - what YAML holds
    """Yield the names in the value of a ``filter`` key, each with the path below it."""
    if isinstance(given, str):
        yield (), given
    elif isinstance(given, dict):
        yield from (((key,), name) for key, name in given.items() if isinstance(name, str))
