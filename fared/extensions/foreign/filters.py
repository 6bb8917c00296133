"""Lists of prefixes of FRR and BIRD, put together as one filter that means the same.

Two items of prefix lists have nothing in common, or what they have is one such item: any chain of
lists is a list again (``in_turn``), and so is what all of several lists permit (``all_of``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from fared.core.filters import Filter, FilterItem
from fared.core.ids import ADDRESS_BITS, Prefix
from fared.extensions.foreign.draft import Draft, SourceLine

Items = Sequence[FilterItem]
EVERYTHING: Final = {
    family: FilterItem(True, Prefix(family, 0, 0), 0, bits) for family, bits in ADDRESS_BITS.items()
}
_MOST: Final = 1000
"""Items of a filter: chains with many exceptions can grow with each list."""


class ChainEntry(NamedTuple):
    """An entry of a chain: what its list permits is permitted or denied, the rest goes on."""

    permit: bool
    items: Items


def in_turn(entries: Sequence[ChainEntry]) -> list[FilterItem]:
    """Return the list of a chain, at whose end all is denied. Raises ValueError."""
    behind: list[FilterItem] = []
    for entry in reversed(entries):
        first: list[FilterItem] = []
        for item in entry.items:
            if item.permit:
                first.append(replace(item, permit=entry.permit))
            else:
                first += (*_inside(item, behind), item)
        behind = first + behind
        if len(behind) > _MOST:
            raise ValueError(f"as one filter it has more than {_MOST} items")
    unreachable = {at for at, _ in Filter("", tuple(behind)).unreachable()}
    found = [item for at, item in enumerate(behind) if at not in unreachable]
    while found and not found[-1].permit:
        found.pop()  # denied anyhow
    return found


def all_of(lists: Sequence[Items]) -> list[FilterItem]:
    """Return the list of what each of several lists permits. Raises ValueError."""
    found = list(lists[0])
    for other in lists[1:]:
        denials = [replace(item, permit=not item.permit) for item in found]
        # what the first denies is denied; all else is as the other one says
        rest = [ChainEntry(False, [*denials, EVERYTHING[_family(other)]]), ChainEntry(True, other)]
        found = in_turn(rest)
    return found


def _family(items: Items) -> int:
    return next(item.prefix.family for item in items if item.prefix is not None)


def _inside(item: FilterItem, items: Items) -> Iterator[FilterItem]:
    """Yield what an item has in common with each of a list, permitted or denied as there."""
    for other in items:
        assert item.prefix is not None
        assert other.prefix is not None
        least, most = max(item.least, other.least), min(item.most, other.most)
        first, second = sorted((item.prefix, other.prefix), key=lambda prefix: prefix.length)
        if first.covers(second) and least <= most:
            yield FilterItem(other.permit, second, max(least, second.length), most)


def put_filter(draft: Draft, name: str, items: Items, source: SourceLine) -> str:
    """Put a filter into the draft, under a name that it returns: one like it is used again."""
    texts = [str(item) for item in items]
    stem = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)[:60]
    stem = stem if stem[:1].isalpha() else f"list-{stem}"[:60]
    taken, number = stem, 1
    while (there := draft.get(("filters", taken))) is not None and there != texts:
        number += 1
        taken = f"{stem}-{number}"
    draft.put(("filters", taken), texts, source)
    return taken
