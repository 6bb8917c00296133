"""The rows of advertisements, by the node that advertises them and by source.

While a database is loaded most nodes advertise all they have at once, and hardly any changes it
soon: the first advertisements of a node are kept as two lists, which take a fifth of the time and
of the memory of a dictionary. That is made with the node's first change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator


class RowsBySource:
    """Rows of ``PrefixTable`` by source (LSA, TLV or prefix), for each advertiser by number."""

    __slots__ = ("_changed", "_first")

    def __init__(self) -> None:
        self._first: dict[int, tuple[list[Hashable], list[int]]] = {}
        self._changed: dict[int, dict[Hashable, int]] = {}

    def __len__(self) -> int:
        """The number of advertisers."""
        return len(self._first) + len(self._changed)

    def __iter__(self) -> Iterator[int]:
        yield from self._first
        yield from self._changed

    def begin(self, advertiser: int, sources: Iterable[Hashable], rows: list[int]) -> None:
        """Set the rows of an advertiser that has none."""
        self._first[advertiser] = list(sources), rows

    def of(self, advertiser: int) -> dict[Hashable, int]:
        """Return the rows of an advertiser to change; ``forget`` it if none are left."""
        first = self._first.pop(advertiser, None)
        if first is not None:
            found = self._changed[advertiser] = dict(zip(*first, strict=True))
            return found
        return self._changed.get(advertiser) or {}

    def forget(self, advertiser: int) -> None:
        """Remove an advertiser whose rows ``of`` has returned."""
        del self._changed[advertiser]

    def items(self, advertiser: int) -> Iterable[tuple[Hashable, int]]:
        """The sources and rows of an advertiser."""
        first = self._first.get(advertiser)
        return (
            self._changed.get(advertiser, {}).items() if first is None else zip(*first, strict=True)
        )

    def sources(self, advertiser: int) -> Collection[Hashable]:
        """The sources of an advertiser."""
        first = self._first.get(advertiser)
        return self._changed.get(advertiser, {}).keys() if first is None else first[0]
