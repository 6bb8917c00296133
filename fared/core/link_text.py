"""How people write a link: ``A-B``, ``A > B`` a direction of it; ``A,B`` is read as well."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple


class LinkText(NamedTuple):
    """The names of the ends; ``both``: the link was named, not a direction of it."""

    tail: str
    head: str
    both: bool


def link(a: str, b: str) -> str:
    """Return the spelling of a link, both directions."""
    return f"{a}-{b}"


def direction(tail: str, head: str) -> str:
    """Return the spelling of one direction of a link."""
    return f"{tail} > {head}"


def read(text: str, known: Container[str]) -> LinkText:
    """Return the ends of a link. ``A,B`` is a direction where that makes a difference.

    Names may contain hyphens: of several ways to split ``A-B`` only one has two ``known`` names, or
    ValueError is raised, as for a text that is no link.
    """
    for mark in (">", ","):
        tail, found, head = (part.strip() for part in text.partition(mark))
        if found and tail and head and mark not in head:
            return LinkText(tail, head, both=False)
    words = text.strip().split("-")
    ways = [("-".join(words[:at]), "-".join(words[at:])) for at in range(1, len(words))]
    ways = [(tail.strip(), head.strip()) for tail, head in ways]
    good = [way for way in ways if way[0] in known and way[1] in known]
    if len(good) > 1:
        either = " or ".join(f"'{direction(*way)}'" for way in good)
        raise ValueError(f"{text!r} may be {either}")
    # names that are not known are told as such, if they are certain
    certain = good or [way for way in ways if len(ways) == 1 and all(way)]
    if not certain:
        raise ValueError(f"{text!r} is not A-B or 'A > B': two routers")
    return LinkText(*certain[0], both=True)
