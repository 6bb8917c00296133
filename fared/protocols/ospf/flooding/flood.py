"""Flooding a new instance (RFC 2328 §13.3): who receives it, at once or later, or not at all.

Most neighbors of a fabric's router are Full and on point-to-point links. They are handled as one
bitmap; of those in Exchange or Loading the request list is examined first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.core.ids import AreaId
from fared.protocols.ospf.flooding.comparison import Comparison
from fared.protocols.ospf.flooding.dynamic import DynamicAreas
from fared.protocols.ospf.flooding.group import FloodGroup
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceState, Neighbor
from fared.protocols.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb, Scope, compare, same_age
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, decode_header, name_of

_HOPS = 6
"""On the way to a neighbor in the flooding topology so many routers may pace an LSA."""


class Flooder:
    """Fills retransmission lists and send queues."""

    def __init__(
        self,
        instance: Instance,
        retransmitter: Retransmitter,
        dynamic: DynamicAreas,
        comparison: Comparison,
        requests_served: Callable[[Neighbor], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._retransmitter = retransmitter
        self._dynamic = dynamic
        self._comparison = comparison
        self._requests_served = requests_served
        self._groups: dict[Lsdb, FloodGroup] = {}

    def group(self, lsdb: Lsdb) -> FloodGroup:
        """The neighbors that LSAs of a database are flooded to."""
        version = self._instance.participants.version
        group = self._groups.get(lsdb)
        if group is None or group.version != version:
            group = FloodGroup(version)
            for interface in self._eligible(lsdb):
                group.add(interface)
            if lsdb.scope is Scope.LINK:
                return group
            self._groups[lsdb] = group
        return group

    def flood(
        self,
        entry: LsaEntry,
        sender: Neighbor | None,
        covered: int = 0,
        *,
        bandwidth: bool = False,
    ) -> bool:
        """Queue an LSA for each neighbor that needs it (§13.3).

        ``covered``: neighbors that receive it from its originator (``suppression``).
        ``bandwidth``: it differs from its predecessor in available bandwidth only. Returns whether
        it is flooded back out of the receiving interface.
        """
        if bandwidth:
            self._instance.bandwidth_rate.count(self._process.now)
        group = self.group(entry.lsdb)
        opaque = entry.key.ls_type in OPAQUE_TYPES
        # RFC 2328 §13.3 (1)(a), (d); RFC 5250 §3.1: opaque LSAs to opaque-capable neighbors only
        neighbors = group.opaque if opaque else group.full
        # §13.3 (1)(c)
        if sender is not None:
            neighbors &= ~sender.bit
        # RFC 9667: over the flooding topology, and to neighbors that take no part
        if self._dynamic.active:
            sorted_out = self._dynamic.sort(entry.lsdb, sender, self.group)
            told, telling = neighbors & sorted_out.told, neighbors & sorted_out.telling
            if told or telling:
                self._comparison.later(entry, told, telling, bandwidth=bandwidth)
            neighbors &= ~sorted_out.spared
            covered &= ~sorted_out.now & ~sorted_out.later
            later = neighbors & sorted_out.later
            self._flood_later((entry,), later, bandwidth=bandwidth, hops=_HOPS)
            neighbors &= ~sorted_out.later
        if neighbors:
            self._flood_to((entry,), neighbors, covered, sender, bandwidth=bandwidth)
        if group.exchanging:
            listed = self._unrequested(group.exchanging, entry, sender)
            listed &= group.exchanging_opaque if opaque else -1
            self._flood_now((entry,), listed, bandwidth=False)
        back = False
        for interface in group.lans:
            if self._flood_out_of(interface, entry, sender):
                back = back or (sender is not None and sender.interface is interface)
        return back

    def alike(self, lsdb: Lsdb) -> bool:
        """Whether an LSA that is not opaque goes to all neighbors in the same way.

        They are Full, on point-to-point links, and no flooding topology tells them apart.
        """
        group = self.group(lsdb)
        return not (group.exchanging or group.lans or self._dynamic.active)

    def flood_alike(self, entries: Sequence[LsaEntry], sender: Neighbor, covered: int) -> None:
        """Like ``flood`` for several LSAs of one originator, none opaque, if it is ``alike``."""
        neighbors = self.group(entries[0].lsdb).full & ~sender.bit
        self._flood_to(entries, neighbors, covered, sender, bandwidth=False)

    def _flood_to(
        self,
        entries: Sequence[LsaEntry],
        neighbors: int,
        covered: int,
        sender: Neighbor | None,
        *,
        bandwidth: bool,
    ) -> None:
        """Flood LSAs of one originator to Full neighbors, later to those that are covered."""
        later = neighbors & covered
        passed_on = sender is not None and sender.router_id != entries[0].key.advertising_router
        self._flood_later(entries, later, bandwidth=bandwidth, passed_on=passed_on)
        self._flood_now(entries, neighbors & ~covered, bandwidth=bandwidth)

    def _flood_now(self, entries: Sequence[LsaEntry], neighbors: int, *, bandwidth: bool) -> None:
        """§13.3 (1)(d) and (5)."""
        if neighbors:
            self._retransmitter.enlist(entries, neighbors)
            self._instance.outbox.flood(entries, neighbors, bandwidth=bandwidth)

    def _flood_later(
        self,
        entries: Sequence[LsaEntry],
        neighbors: int,
        *,
        bandwidth: bool,
        hops: int = 1,
        passed_on: bool = False,
    ) -> None:
        """§13.3 (1)(d) without (5): on the list, but sent later or not at all."""
        if neighbors:
            instance, paced = self._instance, 0.0
            if bandwidth:
                paced = hops * instance.bandwidth_rate.pacing(self._process.now, instance.settings)
            self._retransmitter.defer(entries, neighbors, paced=paced, passed_on=passed_on)

    def _flood_out_of(self, interface: Interface, entry: LsaEntry, sender: Neighbor | None) -> bool:
        """Flood out of an interface to a LAN."""
        # RFC 2328 §13.3 (1): examine each neighbor of this interface
        listed = 0
        for neighbor in list(interface.neighbors.values()):
            if self._needs(neighbor, entry, sender):
                # §13.3 (1)(d)
                self._retransmitter.enlist((entry,), neighbor.bit)
                listed |= neighbor.bit
        # §13.3 (2): added to no retransmission list; (3), (4)
        if not listed or (sender is not None and _designated_floods(interface, sender)):
            return False
        # §13.3 (5)
        interface.tx.update(entry)
        return True

    def _eligible(self, lsdb: Lsdb) -> list[Interface]:
        """The eligible interfaces of an LSA (RFC 2328 §13.3), by its scope (RFC 5250 §3.1)."""
        instance = self._instance
        if lsdb.scope is Scope.LINK:
            interface = instance.interfaces.get(lsdb.ifindex or 0)
            return [interface] if interface is not None else []
        if lsdb.scope is Scope.AREA:
            return instance.area_interfaces(lsdb.area or AreaId(0))
        return [
            interface
            for area in instance.areas.values()
            if not area.settings.stub
            for interface in instance.area_interfaces(area.area_id)
        ]

    def _needs(self, neighbor: Neighbor, entry: LsaEntry, sender: Neighbor | None) -> bool:
        """Whether a neighbor must receive this instance: RFC 2328 §13.3 (1)."""
        # §13.3 (1)(a): it does not participate in flooding
        if neighbor.state < NeighborState.EXCHANGE:
            return False
        # §13.3 (1)(b): an instance on the request list is one that the neighbor has
        if neighbor.exchanging:
            requested = neighbor.requests.get(name_of(entry.raw))
            if requested is not None and self._has(neighbor, entry, requested, sender):
                return False
        # §13.3 (1)(c)
        if neighbor is sender:
            return False
        # RFC 5250 §3.1: opaque LSAs are flooded to opaque-capable neighbors only
        return entry.key.ls_type not in OPAQUE_TYPES or neighbor.opaque_capable

    def _unrequested(
        self, exchanging: list[Neighbor], entry: LsaEntry, sender: Neighbor | None
    ) -> int:
        """Those in Exchange or Loading that need this instance, if it is not opaque."""
        name, found = name_of(entry.raw), 0
        for neighbor in exchanging:
            requested = neighbor.requests.get(name)
            if requested is not None and self._has(neighbor, entry, requested, sender):
                continue
            if neighbor is not sender:
                found |= neighbor.bit
        return found

    def _has(
        self, neighbor: Neighbor, entry: LsaEntry, requested: bytes, sender: Neighbor | None
    ) -> bool:
        """Whether a neighbor has described this instance, or a newer one: §13.3 (1)(b).

        ``requested`` is the header that it described. The request for this instance, or an older
        one, is served.
        """
        order = self._order(entry, requested)
        if order < 0:
            return True
        name = name_of(requested)
        del neighbor.requests[name]
        neighbor.outstanding.pop(name, None)
        if neighbor is not sender and not (neighbor.requests and neighbor.outstanding):
            self._requests_served(neighbor)
        return order == 0

    def _order(self, entry: LsaEntry, header: bytes) -> int:
        """Compare an LSA with a header received some time ago: §13.1."""
        now = self._process.now
        same = header[2:] == entry.raw[2:LSA_HEADER_SIZE]
        if same and same_age(entry.age(now), header[0] << 8 | header[1]):
            return 0
        return compare(entry.header(now), decode_header(header))


def _designated_floods(interface: Interface, sender: Neighbor) -> bool:
    """Whether the DR floods on the receiving network: RFC 2328 §13.3 (3) and (4)."""
    if sender.interface is not interface or not interface.broadcast:
        return False
    # §13.3 (4): this router is the BDR; (3): it was received from the DR or the BDR
    return interface.state is InterfaceState.BACKUP or sender.address in (
        interface.designated_router,
        interface.backup_designated_router,
    )
