"""Updates in which every LSA is a copy of one in the database: RFC 2328 §13 (7) for all at once.

A router with many neighbors receives most LSAs from each of them, and often in the same packets.
So LSAs are compared with recent ones byte by byte, and the result is kept for a while: for the same
LSAs from the next neighbor there is nothing left to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec

from fared.protocols.ospf.lsdb import CURRENT, LsaEntry, Lsdb
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE_DIFF

_KEPT = 64
"""Updates whose LSAs are remembered: those of the last milliseconds."""
_OLD = MAX_AGE_DIFF.to_bytes(2, "big")
_current = attrgetter("current")


class Copies(msgspec.Struct, eq=False):
    """LSAs that were received again.

    ``headers``: as received, to acknowledge them. ``until``: the time up to which none of them is
    so old that its age could tell it from another instance (§13.1).
    """

    entries: Sequence[LsaEntry]
    headers: bytes
    until: float
    area: Lsdb

    def hold(self, area: Lsdb, now: float) -> bool:
        """Whether they still are what an area's database has."""
        return now <= self.until and self.area is area and False not in map(_current, self.entries)


class KnownUpdates:
    """Recognizes updates of copies only."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], Copies] = {}

    def find(
        self, lsas: tuple[bytes, ...], area: Lsdb, beyond: Lsdb | None, now: float
    ) -> tuple[Copies | None, list[bytes]]:
        """Return the copies among some LSAs, and the rest, in order.

        ``area``: the database of the area that they came from; ``beyond``: of LSAs with AS scope,
        unless the area is a stub.
        """
        known = self._known.get(lsas)
        if known is not None and known.hold(area, now):
            return known, []
        # Old copies need a closer look: an update of LSAs at MaxAge has no others.
        if min(lsas, default=_OLD)[:2] > _OLD:
            return None, list(lsas)
        found = area.recent.copied(lsas)
        if None in found and beyond is not None:
            others = beyond.recent.copied(lsas)
            found = [a or b for a, b in zip(found, others, strict=True)]
        entries, headers, rest = [], [], []
        least, oldest = now - MAX_AGE_DIFF, now
        for raw, entry in zip(lsas, found, strict=True):
            # §13.1: equal but for the age, they are the same instance if neither is old
            if (
                entry is not None
                and entry.marks & CURRENT
                and (born := entry.installed_at - entry.base_age) >= least
                and raw[:2] <= _OLD
            ):
                oldest = min(oldest, born)
                entries.append(entry)
                headers.append(raw[:LSA_HEADER_SIZE])
            else:
                rest.append(raw)
        if not entries:
            return None, rest
        copies = Copies(entries, b"".join(headers), oldest + MAX_AGE_DIFF, area)
        if not rest:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            self._known[lsas] = copies
        return copies, rest
