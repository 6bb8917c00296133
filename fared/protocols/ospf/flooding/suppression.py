"""Flood suppression: which neighbors get an LSA from its originator, so our copy can be deferred.

A router floods its own LSAs to all its neighbors, and both ends of a failed link flood the loss. A
neighbor of ours that is adjacent to the originator receives the LSA from there. Our copy stays on
its retransmission list during the flood delay, as in ``igp.reduction``. Most copies are never
sent, since the neighbor's own copy or its acknowledgment arrives first. An LSA that another router
has passed on ends the delay (``retransmit``). In a dense Clos nine of ten
copies are saved, while every router repairs its routes. An area border router ignores summaries
that others advertise into areas other than the backbone (RFC 2328 §16.2), so its copies are
deferred as well.

RFC 2328 §13.3 allows it: a router may decide not to flood out of an interface if the neighbors have
probably received the LSA, as long as it is on their retransmission lists. Where the originator
cannot flood, our copy is late by at most ``SUPPRESSION.delay``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from fared.core.ids import BACKBONE, AreaId
from fared.protocols.igp.reduction import ReductionSettings
from fared.protocols.ospf.common_ends import common_ends
from fared.protocols.ospf.flooding.group import FloodGroup
from fared.protocols.ospf.lsdb import Scope
from fared.protocols.ospf.packet.bodies import B_BIT, RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import is_te_lsa, opaque_type
from fared.protocols.ospf.packet.lsa import LsaKey, LsType, describes_router
from fared.protocols.ospf.packet.opaque import OpaqueType

if TYPE_CHECKING:
    from fared.protocols.ospf.lsdb import LsaEntry, Lsdb

SUPPRESSION: Final = ReductionSettings(delay=0.1)
"""The flood delay of a copy that the neighbor also receives from the originator, seconds."""

_KEPT: Final = 4096
_ENDS_KEPT: Final = 64
"""Routers whose far ends are kept: those that lose links, one after the other."""
_P2P: Final = int(RouterLinkType.POINT_TO_POINT)
_SUMMARIES: Final = (LsType.SUMMARY_NETWORK, LsType.SUMMARY_ASBR)


class _Adjacent(msgspec.Struct):
    """The neighbors of an originator among ours, and what they were derived from.

    ``routers`` is that of the database. ``summaries``: those that get its summaries without us.
    """

    routers: int
    group: FloodGroup
    neighbors: int
    summaries: int


class FloodSuppression:
    """Decides for which neighbors the copies of a new instance are deferred."""

    def __init__(self) -> None:
        self._adjacent: dict[tuple[AreaId | None, int], _Adjacent] = {}
        self._ends: dict[tuple[AreaId | None, int], tuple[RouterLsa, dict[int, int]]] = {}

    def covered(
        self,
        area: Lsdb,
        old: LsaEntry | None,
        new: LsaEntry,
        group: FloodGroup,
        queued: Mapping[LsaEntry, int],
    ) -> int:
        """The neighbors of ``group`` that normally receive ``new`` without our copy.

        ``area`` is the database of the area it came from, ``old`` the instance it replaces,
        ``queued`` what is to be flooded at once, with its neighbors.
        """
        key = new.key
        te = is_te_lsa(key)
        # RFC 5250 §3.1: a link-local LSA is flooded on its link only.
        if not te and new.lsdb.scope is Scope.LINK:
            return 0
        if describes_router(key):
            return self._covered_by_router_lsa(area, old, new, group)
        # A flushed TE LSA may be late everywhere: the router LSA has withdrawn its link. Where that
        # one goes now, it takes no packet of its own.
        if te and new.at_max_age:
            router_lsa = _router_lsa_entry(area, key.advertising_router)
            return group.full if router_lsa is None else group.full & ~queued.get(router_lsa, 0)
        # A router originates many LSAs.
        known = self._adjacent.get((area.area, key.advertising_router))
        if known is None or known.routers != area.routers or known.group is not group:
            known = self._adjacent_to(area, key.advertising_router, group)
        return known.summaries if not te and _is_summary(key) else known.neighbors

    def _adjacent_to(self, area: Lsdb, router_id: int, group: FloodGroup) -> _Adjacent:
        """The neighbors of an originator, for all of its LSAs; none if it has no router LSA."""
        originator = _router_lsa(area, router_id)
        if originator is None:
            return _Adjacent(area.routers, group, 0, 0)
        neighbors = summaries = group.among(self._ends_of(area, router_id, originator))
        # RFC 2328 §16.2: area border routers examine backbone summaries only.
        if originator.flags & B_BIT and area.area != BACKBONE:
            summaries |= _border_routers(area, group, group.full & ~neighbors)
        known = _Adjacent(area.routers, group, neighbors, summaries)
        self._adjacent[area.area, router_id] = known
        if len(self._adjacent) > _KEPT:
            del self._adjacent[next(iter(self._adjacent))]
        return known

    def _covered_by_router_lsa(
        self, area: Lsdb, old: LsaEntry | None, new: LsaEntry, group: FloodGroup
    ) -> int:
        """The originator's neighbors, and those of the far ends of links that it has lost.

        The far end of a lost link floods the loss to its own neighbors. Of several far ends only
        the neighbors that all of them share are covered.
        """
        before = None if old is None else old.body
        after = new.body
        if not isinstance(after, RouterLsa):
            return 0
        covered = group.among(self._ends_of(area, new.key.advertising_router, after))
        lost = _lost_neighbors(before, after) if isinstance(before, RouterLsa) else set()
        shared = group.full if lost else 0
        for router_id in lost:
            body = _router_lsa(area, router_id)
            shared &= 0 if body is None else group.among(self._ends_of(area, router_id, body))
        return covered | shared

    def _ends_of(self, area: Lsdb, router_id: int, body: RouterLsa) -> Mapping[int, int]:
        """The far ends of a router's point-to-point links, with the number of links to each.

        They are those of its former router LSA but for the links that differ, so this is valid
        until the next call.
        """
        key = area.area, router_id
        former, ends = self._ends.pop(key, (None, {}))
        if former is None:
            _count_ends(body.links, ends, 1)
        elif former is not body:
            begin, end = common_ends(former.links, body.links)
            _count_ends(former.links[begin : len(former.links) - end], ends, -1)
            _count_ends(body.links[begin : len(body.links) - end], ends, 1)
        self._ends[key] = body, ends  # the latest one is the last to go
        if len(self._ends) > _ENDS_KEPT:
            del self._ends[next(iter(self._ends))]
        return ends


def _is_summary(key: LsaKey) -> bool:
    """Whether an LSA advertises a prefix of another area, or what belongs to such a prefix."""
    if key.ls_type == LsType.OPAQUE_AREA:
        return opaque_type(key.link_state_id) == OpaqueType.EXTENDED_PREFIX
    return key.ls_type in _SUMMARIES


def _border_routers(area: Lsdb, group: FloodGroup, among: int) -> int:
    """Those of the neighbors ``among`` that are border routers of the area."""
    bits = 0
    for router_id, bit in group.routers.items():
        if bit & among:
            body = _router_lsa(area, router_id)
            if body is not None and body.flags & B_BIT:
                bits |= bit
    return bits


def _lost_neighbors(before: RouterLsa, after: RouterLsa) -> set[int]:
    """Neighbors to which a link was lost, if nothing else changed; empty otherwise."""
    if before.flags != after.flags or len(after.links) >= len(before.links):
        return set()
    alike = common_ends(before.links, after.links)
    kept = set(after.links[alike.begin : len(after.links) - alike.end])
    differ = before.links[alike.begin : len(before.links) - alike.end]
    gone = [link for link in differ if link not in kept]
    # More gone than the count fell by: links were added, or changed their metric.
    if len(gone) != len(before.links) - len(after.links):
        return set()
    links = [link for link in gone if link.link_type == _P2P]
    if not all(link in links or _subnet_of_one(link, links) for link in gone):
        return set()
    return {link.link_id for link in links}


def _subnet_of_one(stub: RouterLink, links: list[RouterLink]) -> bool:
    """Whether a lost stub is the network of a lost link (RFC 2328 §12.4.1.1, option 2)."""
    return stub.link_type == RouterLinkType.STUB and any(
        link.link_data & stub.link_data == stub.link_id for link in links
    )


def _count_ends(links: Iterable[RouterLink], counts: dict[int, int], step: int) -> None:
    """Count the point-to-point links of a router LSA by router id of the far end."""
    for link_type, link_id, _, _ in links:
        if link_type == _P2P:
            count = counts.get(link_id, 0) + step
            if count:
                counts[link_id] = count
            else:
                del counts[link_id]


def _router_lsa_entry(area: Lsdb, router_id: int) -> LsaEntry | None:
    return area.get(LsaKey(LsType.ROUTER, router_id, router_id))


def _router_lsa(area: Lsdb, router_id: int) -> RouterLsa | None:
    entry = _router_lsa_entry(area, router_id)
    body = None if entry is None or entry.at_max_age else entry.body
    return body if isinstance(body, RouterLsa) else None
