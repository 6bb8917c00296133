"""What a computation was about, in words: ``S1 > L2: 100M to 25M``, ``S3-L5 gone``, ``L4 back``.

A direction of a link is ``S1 > L2``, the link as a whole ``S1-L2``, the lower id first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from fared.core.ids import is_group
from fared.core.link_text import direction, link
from fared.core.units import format_bandwidth
from fared.management.documents import human
from fared.management.documents.facts import Causes, Facts, UnixTime
from fared.management.documents.sliced import Work

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.router.compared import DatabaseChange, Happened

_NAMES_SHOWN: Final = 4
_ORDER: Final = ("left", "returned", "joined", "drained", "undrained", "lost", "back", "new")
"""What people want to know first; the rest follows."""
_ROUTERS: Final = {
    "left": "gone",
    "returned": "back",
    "joined": "new",
    "drained": "drained",
    "undrained": "in service again",
}
_LINKS: Final = {"lost": "gone", "back": "back", "new": "new"}


class WhatChanged(Facts):
    """A change at a time. ``causes``: LSAs, LSPs and events, as an engine names them.

    ``changes``: what they changed, in words; empty where that was nothing but routes.
    """

    at: UnixTime
    causes: Causes
    changes: list[str]

    @property
    def why(self) -> str:
        """The first change, or cause, and the number of others."""
        return human.because(self.changes or self.causes)


def told(context: ViewContext) -> Work[Callable[[float], list[str]]]:
    """Return what tells the changes of the computation at a time of the router's clock."""
    router = context.router
    yield from router.changes.settled()
    found = {each.at: each for each in router.changes.happened}
    return lambda at: list(_texts(context, found[at])) if at in found else []


def _texts(context: ViewContext, happened: Happened) -> Iterator[str]:
    """Yield what changed; that of several links of a router to the same values is one text."""
    together: dict[tuple[object, ...], list[DatabaseChange]] = {}
    for change in sorted(happened.changes, key=_order):
        together.setdefault(_alike(change), []).append(change)
    for changes in together.values():
        yield _text(context, changes)
    if happened.more:
        yield f"{happened.more} more"


def _order(change: DatabaseChange) -> int:
    return _ORDER.index(change.what) if change.what in _ORDER else len(_ORDER)


def _alike(change: DatabaseChange) -> tuple[object, ...]:
    if change.what in _ROUTERS:
        return (change.what, change.family)
    return (change.what, change.node, change.before, change.after, change.family)


def _text(context: ViewContext, changes: list[DatabaseChange]) -> str:
    first = changes[0]

    def name(node: int) -> str:
        return context.name(node, first.family)

    what, tail = first.what, name(first.node)
    if what in _ROUTERS:
        return f"{_names(name(change.node) for change in changes)} {_ROUTERS[what]}"
    if what in _LINKS:
        join = direction if _of_group(first) else link
        links = _names(join(tail, name(change.end)) for change in changes)
        partly = first.before and first.after
        numbers = f": {first.before:.0f} links to {first.after:.0f}"
        alone = f" in IPv{first.family}" if first.family and not _of_group(first) else ""
        return links + alone + numbers if partly else f"{links} {_LINKS[what]}{alone}"
    if what == "prefixes":
        was = f"{first.before:.0f} prefixes to " if first.before else ""
        nouns = "prefix" if first.after == 1 else "prefixes"
        return f"{tail}: {was}{first.after:.0f}{'' if was else f' {nouns} changed'}"
    ends = direction(tail, _names(name(change.end) for change in changes))
    if what == "metric":
        return f"{ends}: metric {first.before:.0f} to {first.after:.0f}"
    if what == "delay":
        return f"{ends}: delay {_delay(first.before)} to {_delay(first.after)}"
    free = " free" if what == "available" else ""
    return f"{ends}: {_rate(first.before)} to {_rate(first.after)}{free}"


def _of_group(change: DatabaseChange) -> bool:
    """Whether it is about a group of prefixes of BGP, to which links have one direction."""
    return is_group(change.node) or is_group(change.end)


def _names(names: Iterable[str]) -> str:
    found = sorted(names, key=human.ordering)
    more = len(found) - _NAMES_SHOWN
    shown = ", ".join(found[:_NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _delay(microseconds: float) -> str:
    return "unknown" if microseconds < 0 else human.duration(microseconds / 1e6)


def _rate(value: float) -> str:
    return "unknown" if value < 0 else format_bandwidth(value)
