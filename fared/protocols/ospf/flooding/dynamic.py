"""Dynamic flooding (RFC 9667) in OSPF areas: from LSAs to ``igp.dynamic_flooding``, and back.

Router LSAs give the links, router information LSAs who takes part. Over a link that has come into
the topology, both ends acknowledge the LSAs that they have received lately, and put them on the
other's retransmission list, deferred: what only one of them has is sent. The database cannot be
described again, as IS-IS does with CSNPs, without a new adjacency (§10.8). So an LSA that was
flushed lately is kept for this purpose. Some of the neighbors that are spared an LSA compare it too
(``comparison``).
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import AreaId
from fared.protocols.igp.dynamic_flooding import (
    AddedLink,
    Capability,
    DynamicFlooding,
    FloodPlan,
    TopologyView,
)
from fared.protocols.igp.flooding_scopes import FloodingScopes
from fared.protocols.ospf.lsdb import LsaEntry, Lsdb, Scope
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.bodies import TO_ROUTERS, RouterLsa
from fared.protocols.ospf.packet.lsa import (
    LSA_HEADER_SIZE,
    MAX_AGE,
    LsaKey,
    LsType,
    describes_router,
)
from fared.protocols.ospf.packet.router_info import RouterInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from fared.protocols.ospf.flooding.database import Database
    from fared.protocols.ospf.flooding.group import FloodGroup
    from fared.protocols.ospf.flooding.retransmit import Retransmitter
    from fared.protocols.ospf.instance import Instance
    from fared.protocols.ospf.interface import Neighbor

_MARGIN = 1.0
_PARENT_SENDS, _CHILD_SENDS = 0.25, 0.4
_PARENT_SENDS_SOON, _CHILD_SENDS_SOON = 0.15, 0.2
"""Seconds after which a copy is sent over a new link that was not acknowledged; acknowledgments may
take ``ack_delay``, and the other end a moment more to learn of the change. Soon: it joins parts."""
_FLUSHED_KEPT = 4096


class Sorted(msgspec.Struct, frozen=True):
    """A ``FloodPlan`` as bitmaps of full neighbors."""

    now: int = 0
    later: int = 0
    spared: int = 0
    told: int = 0
    telling: int = 0

    def __or__(self, other: Sorted) -> Sorted:
        return Sorted(
            self.now | other.now,
            self.later | other.later,
            self.spared | other.spared,
            self.told | other.told,
            self.telling | other.telling,
        )


_NOBODY = Sorted()


class DynamicAreas:
    """Dynamic flooding of all areas; does nothing unless ``reduction`` is dynamic."""

    def __init__(
        self, instance: Instance, retransmitter: Retransmitter, database: Database
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._retransmitter = retransmitter
        self._database = database
        self._scopes: FloodingScopes[AreaId] = FloodingScopes(
            instance.process, instance.router_id, self._links_added
        )
        self._sorted: dict[tuple[AreaId, int | None], tuple[FloodPlan, FloodGroup, Sorted]] = {}
        self._flushed: dict[tuple[AreaId | None, LsaKey], tuple[float, LsaEntry]] = {}

    @property
    def active(self) -> bool:
        """Whether any area may have a flooding topology."""
        return bool(self._scopes.states)

    def sort(
        self, lsdb: Lsdb, sender: Neighbor | None, group: Callable[[Lsdb], FloodGroup]
    ) -> Sorted:
        """Sort the neighbors that an LSA of a database may be flooded to, by the plans of areas."""
        if lsdb.scope is Scope.LINK:
            return _NOBODY
        if lsdb.scope is Scope.AREA:
            return self._sort(lsdb.area or AreaId(0), sender, group)
        areas = self._instance.areas
        found = [
            self._sort(area, sender, group)
            for area in self._scopes.states
            if not areas[area].settings.stub
        ]
        return reduce(or_, found, _NOBODY)

    def _sort(
        self, area: AreaId, sender: Neighbor | None, group: Callable[[Lsdb], FloodGroup]
    ) -> Sorted:
        known = sender is not None and sender.interface.settings.area == area
        router = sender.router_id if sender is not None and known else None
        state = self._scopes.states.get(area)
        # over a detour: to all, since its way over the topology ends somewhere
        if state is None or (router is not None and state.is_detour(router, self._process.now)):
            return _NOBODY
        plan = state.plan(router)
        if plan is None:
            return _NOBODY
        of = group(self._instance.areas[area].lsdb)
        former = self._sorted.get((area, router))
        if former is None or former[0] is not plan or former[1] is not of:
            kinds = plan.now, plan.later, plan.spared, plan.told, plan.telling
            found = Sorted(*map(of.among, kinds))
            former = self._sorted[area, router] = plan, of, found
        return former[2]

    def spares(self, neighbor: Neighbor) -> bool:
        """Whether a neighbor takes part, over a link outside of the topology."""
        state = self._scopes.states.get(neighbor.interface.settings.area)
        return state is not None and state.spares(neighbor.router_id)

    def area(self, area: AreaId) -> DynamicFlooding | None:
        """The state of an area; None: no dynamic flooding."""
        return self._scopes.states.get(area)

    def views(self) -> tuple[TopologyView, ...]:
        """The topologies, by area."""
        return self._scopes.views()

    # Events

    def lsa_changed(self, entry: LsaEntry) -> None:
        """Process an LSA that is new, changed or at MaxAge; its body is decoded."""
        if self._instance.settings.reduction.dynamic and entry.lsdb.area is not None:
            self._read(entry.lsdb.area, entry)
            self._scopes.arm(entry.lsdb.area)

    def adjacencies_changed(self, area: AreaId) -> None:
        """A neighbor has entered or left Full."""
        if self._instance.settings.reduction.dynamic:
            self._scopes.state(area).adjacent(n.router_id for n in self._full(area))

    def removed(self, entry: LsaEntry) -> None:
        """A flushed LSA has left the database."""
        if self._scopes.states:
            if len(self._flushed) >= _FLUSHED_KEPT:
                del self._flushed[next(iter(self._flushed))]
            self._flushed[entry.lsdb.area, entry.key] = (self._process.now, entry)

    def settings_changed(self) -> None:
        """Begin or end dynamic flooding."""
        if not self._instance.settings.reduction.dynamic:
            self._scopes.clear()
            self._sorted.clear()
            self._flushed.clear()
            return
        for area in self._instance.areas.values():
            if area.area_id not in self._scopes.states:
                for entry in area.lsdb:
                    self._read(area.area_id, entry)
                self.adjacencies_changed(area.area_id)
                self._scopes.arm(area.area_id)

    def _read(self, area: AreaId, entry: LsaEntry) -> None:
        key, now = entry.key, self._process.now
        body = None if entry.is_maxage(now) else entry.body
        if describes_router(key):
            links = body.links if isinstance(body, RouterLsa) else ()
            far = (link.link_id for link in links if link.link_type in TO_ROUTERS)
            self._scopes.state(area).links(key.advertising_router, far, now)
        elif key.ls_type == LsType.OPAQUE_AREA and key.link_state_id == _INFORMATION:
            found = _capability(body) if isinstance(body, RouterInformation) else None
            self._scopes.state(area).capability(key.advertising_router, found, now)

    # The topology

    def _links_added(self, area: AreaId, added: Mapping[int, AddedLink]) -> None:
        for neighbor in self._full(area):
            if neighbor.router_id in added:
                self._compare(area, neighbor, added[neighbor.router_id])

    def _full(self, area: AreaId) -> list[Neighbor]:
        """The full neighbors on point-to-point links of an area."""
        return [
            neighbor
            for interface in self._instance.area_interfaces(area)
            if not interface.broadcast
            for neighbor in interface.neighbors.values()
            if neighbor.state is NeighborState.FULL
        ]

    def _compare(self, area: AreaId, neighbor: Neighbor, link: AddedLink) -> None:
        """Acknowledge what was received lately; send later what the neighbor does not acknowledge.

        After losses that parted the topology: all since a dead neighbor may have gone unnoticed.
        """
        settings = neighbor.interface.settings
        window = settings.rxmt_interval + _MARGIN
        if link.joins:
            window += max(n.interface.settings.router_dead_interval for n in self._full(area))
        now = self._process.now
        parent, child = _PARENT_SENDS, _CHILD_SENDS
        if link.joins:
            parent, child = _PARENT_SENDS_SOON, _CHILD_SENDS_SOON
        due = now + (parent if link.parent else child)
        for entry in self._recent(area, now - window):
            neighbor.interface.tx.ack(entry.aged(entry.age(now))[:LSA_HEADER_SIZE])
            self._retransmitter.defer_until(due, entry, neighbor.bit)

    def _recent(self, area: AreaId, since: float) -> Iterator[LsaEntry]:
        """The LSAs of an area, and of the AS, received or flushed since a time."""
        own = self._instance.areas[area]
        databases: list[Lsdb] = [own.lsdb]
        if not own.settings.stub:
            databases.append(self._instance.as_scope)
        for lsdb in databases:
            for (of, key), (at, flushed) in list(self._flushed.items()):
                if of == lsdb.area and at >= since and lsdb.get(key) is None:
                    # back into the database, which sends it and removes it when acknowledged
                    self._database.install(lsdb, key, flushed.aged(MAX_AGE), flooded_in=True)
            yield from [entry for entry in lsdb if entry.installed_at >= since]


_INFORMATION = 4 << 24
"""Link state id of the first router information LSA (RFC 7770 §2.1)."""


def _capability(body: RouterInformation) -> Capability | None:
    leader, algorithms = body.area_leader, body.dynamic_flooding
    if leader is None and algorithms is None:
        return None
    if leader is None:
        return Capability(algorithms or ())
    return Capability(algorithms or (), leader.priority, leader.algorithm)
