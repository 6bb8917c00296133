"""Updates in which every LSA is a copy of one in the database: RFC 2328 §13 (7) for all at once.

A router with many neighbors receives most LSAs from each of them, and often in the same packets.
So LSAs are compared with recent ones byte by byte. ``duplicates`` keeps the outcome for the same
packet from the next neighbor.

A fast path beside ``procedure.Flooding._receive`` for each LSA:
tests/ospf/test_duplicates_together.py proves them equal; row ``copies compared as bytes``.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fared.protocols.ospf.lsdb import CURRENT, LsaEntry, Lsdb
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE_DIFF

_OLD = MAX_AGE_DIFF.to_bytes(2, "big")


class Copies(msgspec.Struct, frozen=True, eq=False):
    """LSAs of an area's neighbors that were received again; ``headers``: as received."""

    entries: Sequence[LsaEntry]
    headers: bytes
    area: Lsdb


def find_copies(
    lsas: Sequence[bytes], area: Lsdb, beyond: Lsdb | None, now: float
) -> tuple[Copies | None, list[bytes]]:
    """Return the copies among some LSAs, and the rest, in order.

    ``area``: the database of the area that they came from; ``beyond``: of LSAs with AS scope,
    unless the area is a stub.
    """
    # Old copies need a closer look: an update of LSAs at MaxAge has no others.
    if min(lsas, default=_OLD)[:2] > _OLD:
        return None, list(lsas)
    found = area.recent.copied(lsas)
    if None in found and beyond is not None:
        others = beyond.recent.copied(lsas)
        found = [a or b for a, b in zip(found, others, strict=True)]
    entries, headers, rest = [], [], []
    least = now - MAX_AGE_DIFF
    for raw, entry in zip(lsas, found, strict=True):
        # §13.1: equal but for the age, they are the same instance if neither is old
        if (
            entry is not None
            and entry.marks & CURRENT
            and entry.installed_at - entry.base_age >= least
            and raw[:2] <= _OLD
        ):
            entries.append(entry)
            headers.append(raw[:LSA_HEADER_SIZE])
        else:
            rest.append(raw)
    return Copies(entries, b"".join(headers), area) if entries else None, rest
