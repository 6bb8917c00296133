"""Flood suppression: which neighbors receive an LSP from its originator; our copy is deferred.

As in ``ospf.flooding.suppression``: a router floods its own LSPs to all its neighbors, and both
ends of a lost link flood the loss. A neighbor of ours that is adjacent to the originator receives
the LSP from there. SRM stays set for our copy, which is deferred as in ``igp.reduction``; mostly
the neighbor's own copy or acknowledgment arrives first and clears it (ISO 10589 §7.3.15.1 e) 2)).
If the originator cannot flood, our copy is late by ``SUPPRESSION.delay`` at most.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import Final

from fared.core.ids import FAMILY_IPV4, Prefix, SystemId
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.isis.ids import lsp_id, system_of
from fared.protocols.isis.lsdb import Lsdb, StoredLsp
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability, IsNeighbor, IsReachability, Tlv

SUPPRESSION: Final = ReductionSettings(delay=0.1)
"""How long a copy is deferred for a neighbor that receives it from the originator, seconds."""

_NONE: Final[frozenset[SystemId]] = frozenset()


def covered(database: Lsdb, old: StoredLsp | None, new: StoredLsp) -> frozenset[SystemId]:
    """Systems that normally receive ``new``, an LSP of another router, without our copy.

    ``database`` holds ``new`` already, in the place of ``old``. A neighbor that the originator
    did not list before is not covered: the two are still comparing their databases.
    """
    # an LSP that appears, and any purge, is flooded at once
    if old is None or old.purged or new.purged:
        return _NONE
    originator = system_of(new.lsp_id)
    fresh = adjacent(new) - adjacent(old)
    found = neighbors(database, originator) - fresh
    lost = _lost_neighbors(old.lsp, new.lsp)
    # the far end floods the loss too; of several far ends the neighbors that all of them have
    if lost:
        found |= frozenset.intersection(*[neighbors(database, system) for system in lost])
    return found


def neighbors(database: Lsdb, system: SystemId) -> frozenset[SystemId]:
    """The systems that a router lists as neighbors on point-to-point links, in all its LSPs."""
    mine = database.between(lsp_id(system), lsp_id(system, 0, 0xFF))
    return _NONE.union(*[adjacent(entry) for entry in mine])


def adjacent(entry: StoredLsp) -> frozenset[SystemId]:
    """The systems that one LSP lists as neighbors; computed once and kept there."""
    if entry.adjacent is None:
        entry.adjacent = _shared(
            frozenset(
                SystemId(neighbor.neighbor >> 8)
                for tlv in entry.lsp.tlvs
                if isinstance(tlv, IsReachability)
                for neighbor in tlv.neighbors
                if not neighbor.neighbor & 0xFF
            )
        )
    return entry.adjacent


@functools.lru_cache(maxsize=64)
def _shared(systems: frozenset[SystemId]) -> frozenset[SystemId]:
    """One set, 216 bytes or more, for LSPs that list the same neighbors: leaves of one pod do."""
    return systems


def _lost_neighbors(before: Lsp, after: Lsp) -> set[SystemId]:
    """Neighbors to which a link was lost, if nothing else changed; empty otherwise."""
    bits = (before.is_type, before.overload, before.attached)
    if bits != (after.is_type, after.overload, after.attached):
        return set()
    # TLVs that did not change are the same objects (``codec.Former``).
    old, new = set(map(id, before.tlvs)), set(map(id, after.tlvs))
    had = _entries(tlv for tlv in before.tlvs if id(tlv) not in new)
    has = _entries(tlv for tlv in after.tlvs if id(tlv) not in old)
    if had is None or has is None or not has <= had:
        return set()
    gone = {entry for _, entry in had - has}
    links = [entry for entry in gone if isinstance(entry, IsNeighbor)]
    prefixes = [entry.prefix for entry in gone if isinstance(entry, IpReach)]
    if any(link.neighbor & 0xFF for link in links):
        return set()
    if not all(any(_is_of_link(prefix, link) for link in links) for prefix in prefixes):
        return set()
    return {SystemId(link.neighbor >> 8) for link in links}


def _entries(tlvs: Iterable[Tlv]) -> set[tuple[Hashable, IsNeighbor | IpReach]] | None:
    """All entries of these TLVs, with its topology; None if one has neither links nor prefixes."""
    found: set[tuple[Hashable, IsNeighbor | IpReach]] = set()
    for tlv in tlvs:
        if isinstance(tlv, IsReachability):
            found.update((tlv.topology, neighbor) for neighbor in tlv.neighbors)
        elif isinstance(tlv, IpReachability):
            found.update((tlv.topology, reach) for reach in tlv.prefixes)
        else:
            return None
    return found


def _is_of_link(prefix: Prefix, link: IsNeighbor) -> bool:
    """Whether a prefix is the network of a numbered link."""
    return prefix.family == FAMILY_IPV4 and any(map(prefix.contains, link.local_addresses))
