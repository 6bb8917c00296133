"""What database descriptions list, made once for all neighbors that ask at about the same time.

A router that starts in a fabric brings up all its adjacencies at once, and describes the same
tens of thousands of LSAs to every spine. So the list is shared, and each page of headers is kept
for a moment, as long as nothing in the databases changes.
"""

from __future__ import annotations

import struct
import weakref
from dataclasses import dataclass, field

from fared.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb
from fared.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE

FRESH = 1.0
"""Seconds for which a page may be sent as it is: ages count in seconds."""
_AGE = struct.Struct(">H")
_Versions = tuple[int, ...]


@dataclass(slots=True)
class _Page:
    """Headers ready to be sent, where the next page begins, and what they were made of."""

    packed: bytes
    end: int
    made_at: float
    versions: _Versions


@dataclass(slots=True, weakref_slot=True)
class Catalogue:
    """All LSAs that the databases held when it was made."""

    databases: tuple[Lsdb, ...]
    versions: _Versions
    entries: list[LsaEntry]
    pages: dict[tuple[int, int], _Page] = field(default_factory=dict)

    def page(self, start: int, room: int, now: float) -> tuple[bytes, int]:
        """At most ``room`` headers from a place in the list on; and where the next begin.

        What was replaced since the list was made is left out: it has been flooded to the
        neighbors in its new form.
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
                headers.append(_AGE.pack(age) + entry.lsa.raw[2:LSA_HEADER_SIZE])
        page = self.pages[start, room] = _Page(b"".join(headers), at, now, versions)
        return page.packed, page.end


@dataclass(slots=True)
class Summaries:
    """The database summary list of a neighbor (RFC 2328 §10): what is left of a catalogue."""

    catalogue: Catalogue | None = None
    at: int = 0

    def __len__(self) -> int:
        return 0 if self.catalogue is None else len(self.catalogue.entries) - self.at

    def clear(self) -> None:
        """Nothing is left to describe."""
        self.catalogue, self.at = None, 0

    def take(self, room: int, now: float) -> bytes:
        """The headers of the next description."""
        if self.catalogue is None:
            return b""
        packed, self.at = self.catalogue.page(self.at, room, now)
        return packed


class Catalogues:
    """The catalogues in use; one that no neighbor needs any more is gone."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[int, ...], Catalogue]
        self._known = weakref.WeakValueDictionary()

    def of(self, databases: list[Lsdb], *, opaque: bool) -> Catalogue:
        """The list of what these databases hold now, with or without opaque LSAs."""
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
        made = self._known[key] = Catalogue(used, versions, entries)
        return made


def _versions(databases: tuple[Lsdb, ...]) -> _Versions:
    return tuple(lsdb.version for lsdb in databases)
