"""Database summary lists (RFC 2328 §10), shared by all neighbors in Exchange at the same time.

A router that starts in a fabric forms all its adjacencies at once, and describes the same tens of
thousands of LSAs to each neighbor. So neighbors share one list, and a page of headers is reused for
up to a second while the databases do not change.
"""

from __future__ import annotations

import struct
import weakref

import msgspec

from fared.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb
from fared.ospf.packet.lsa import MAX_AGE

FRESH = 1.0
"""Seconds for which a page may be reused: LS ages count in seconds."""
_AGE = struct.Struct(">H")
_Versions = tuple[int, ...]


class _Page(msgspec.Struct):
    """Packed headers, the index of the next page, and the database versions they were made of."""

    packed: bytes
    end: int
    made_at: float
    versions: _Versions


class DatabaseSummary(msgspec.Struct, weakref=True):
    """The LSAs of some databases at one moment, shared by neighbors."""

    databases: tuple[Lsdb, ...]
    versions: _Versions
    entries: list[LsaEntry]
    pages: dict[tuple[int, int], _Page] = msgspec.field(default_factory=dict)

    def page(self, start: int, room: int, now: float) -> tuple[bytes, int]:
        """At most ``room`` headers, from index ``start`` on, and the index of the next page.

        An LSA replaced since then is left out: its new instance has been flooded (§13.3 (1)(d)).
        """
        versions = _versions(self.databases)
        known = self.pages.get((start, room))
        if known is not None and known.versions == versions and now - known.made_at < FRESH:
            return known.packed, known.end
        headers: list[bytes] = []
        at, entries = start, self.entries
        while at < len(entries) and len(headers) < room:
            entry = entries[at]
            at += 1
            age = entry.base_age + int(now - entry.installed_at)
            if age < MAX_AGE and entry.lsdb.entries.get(entry.key) is entry:
                headers.append(_AGE.pack(age) + entry.instance)
        page = self.pages[start, room] = _Page(b"".join(headers), at, now, versions)
        return page.packed, page.end


class SummaryList(msgspec.Struct):
    """The database summary list of one neighbor (RFC 2328 §10): LSAs still to be described."""

    summary: DatabaseSummary | None = None
    at: int = 0

    def __len__(self) -> int:
        return 0 if self.summary is None else len(self.summary.entries) - self.at

    def clear(self) -> None:
        """Empty the list."""
        self.summary, self.at = None, 0

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

    def of(self, databases: list[Lsdb], *, opaque: bool) -> DatabaseSummary:
        """The summary of these databases now, with or without opaque LSAs."""
        used = tuple(lsdb for lsdb in databases if lsdb.entries)
        key = (int(opaque), *map(id, used))
        versions = _versions(used)
        known = self._known.get(key)
        if known is not None and known.versions == versions:
            return known
        entries = [
            entry
            for lsdb in used
            for entry in lsdb
            if opaque or entry.key.ls_type not in OPAQUE_TYPES
        ]
        made = self._known[key] = DatabaseSummary(used, versions, entries)
        return made


def _versions(databases: tuple[Lsdb, ...]) -> _Versions:
    return tuple(lsdb.version for lsdb in databases)
