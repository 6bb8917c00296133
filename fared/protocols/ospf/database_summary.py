"""Database summary lists (RFC 2328 §10), shared by all neighbors in Exchange at the same time.

A router that starts in a fabric forms all its adjacencies at once, and describes the same tens of
thousands of LSAs to each neighbor. So neighbors share one list, and a page of headers is reused
until one of its LSAs is replaced; only the ages are written again.

A page with other ages is a fast path beside a new one: tests/ospf/test_header_page.py proves them
equal; row ``descriptions with other ages``.
"""

from __future__ import annotations

import math
import weakref
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from fared.protocols.ospf.header_page import HeaderPage, rows_of
from fared.protocols.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_REPLACED = 1024
"""With more replaced LSAs in it than this, and than present ones, a summary is made anew."""


class _Page(msgspec.Struct):
    """A page of headers, and the index of the next one."""

    page: HeaderPage
    rows: NDArray[Any]
    end: int

    def packed(self, now: float) -> bytes | None:
        """The headers with their present ages; None if an LSA was replaced or is at MaxAge."""
        if not self.page.current:
            return None
        ages = self.page.ages(now)
        if len(ages) and ages.max() >= MAX_AGE:
            return None
        self.rows[:, 0] = ages
        return self.rows.tobytes()


class DatabaseSummary(msgspec.Struct, weakref=True):
    """The LSAs of some databases, shared by neighbors; those installed later follow at the end.

    ``known``: the databases by instance (``Lsdb.instances``); ``at``: when it was last extended.
    """

    known: tuple[dict[bytes, LsaEntry], ...]
    opaque: bool
    at: float
    entries: list[LsaEntry]
    pages: dict[tuple[int, int], _Page] = msgspec.field(default_factory=dict)

    def describes(self, databases: tuple[Lsdb, ...]) -> bool:
        """Whether it can be extended to describe these databases now."""
        size = 0
        for lsdb, known in zip(databases, self.known, strict=True):
            if lsdb.described is not known:
                return False
            size += len(known)
        return len(self.entries) <= _MOST_REPLACED + 2 * size

    def extend(self, now: float) -> None:
        """Append the LSAs installed since the last time, which are the last of each database."""
        found: list[LsaEntry] = []
        for known in reversed(self.known):
            later = takewhile(self._is_later, reversed(known.values()))
            found += [each for each in later if self.opaque or _is_plain(each)]
        present = set(takewhile(self._is_later, reversed(self.entries)))
        self.entries += [entry for entry in reversed(found) if entry not in present]
        self.at = now

    def _is_later(self, entry: LsaEntry) -> bool:
        return entry.installed_at >= self.at

    def page(self, start: int, room: int, now: float) -> tuple[bytes, int]:
        """At most ``room`` headers, from index ``start`` on, and the index of the next page.

        An LSA replaced since then is left out: its new instance has been flooded (§13.3 (1)(d)).
        """
        page = self.pages.get((start, room))
        whole = page is not None and (len(page.rows) == room or page.end == len(self.entries))
        packed = page.packed(now) if page is not None and whole else None
        if page is None or packed is None:
            page = self.pages[start, room] = self._make(start, room, now)
            packed = page.packed(now) or b""
        return packed, page.end

    def _make(self, start: int, room: int, now: float) -> _Page:
        found: list[LsaEntry] = []
        at, entries = start, self.entries
        while at < len(entries) and len(found) < room:
            entry = entries[at]
            at += 1
            if entry.current and not entry.is_maxage(now):
                found.append(entry)
        headers = bytearray().join(entry.raw[:LSA_HEADER_SIZE] for entry in found)
        return _Page(HeaderPage.of(found), rows_of(headers), at)


class SummaryList(msgspec.Struct):
    """The database summary list of one neighbor (RFC 2328 §10): LSAs still to be described."""

    summary: DatabaseSummary | None = None
    at: int = 0
    end: int = 0

    def __len__(self) -> int:
        return max(0, self.end - self.at)

    def clear(self) -> None:
        """Empty the list."""
        self.summary, self.at, self.end = None, 0, 0

    def take(self, room: int, now: float) -> bytes:
        """The headers of the next description."""
        if self.summary is None:
            return b""
        packed, self.at = self.summary.page(self.at, room, now)
        return packed


class SummaryCache:
    """The summaries in use, by weak reference: without a neighbor a summary is freed."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[int, ...], DatabaseSummary]
        self._known = weakref.WeakValueDictionary()

    def of(self, databases: list[Lsdb], now: float, *, opaque: bool) -> SummaryList:
        """The summary list of these databases now, with or without opaque LSAs."""
        used = tuple([lsdb for lsdb in databases if lsdb.entries])
        key = (int(opaque), *map(id, used))
        found = self._known.get(key)
        if found is None or not found.describes(used):
            known = tuple([lsdb.instances() for lsdb in used])
            found = self._known[key] = DatabaseSummary(known, opaque, -math.inf, [])
        found.extend(now)
        return SummaryList(found, 0, len(found.entries))


def _is_plain(entry: LsaEntry) -> bool:
    return entry.key.ls_type not in OPAQUE_TYPES
