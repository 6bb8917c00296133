"""The flooding procedure (RFC 2328 §13): receiving updates and acks, flooding newer LSAs."""

from __future__ import annotations

from collections.abc import Callable, Container

from fared.core.ids import AreaId, dotted
from fared.core.wire import DecodeError
from fared.ospf.flooding.acknowledge import (
    acknowledge,
    acknowledge_directly,
    acknowledge_duplicate,
)
from fared.ospf.flooding.database import MIN_LS_ARRIVAL, Database
from fared.ospf.flooding.retransmit import Retransmitter
from fared.ospf.flooding.suppression import FloodSuppression
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState, Neighbor
from fared.ospf.lsdb import OPAQUE_TYPES, SCOPES, LsaEntry, Lsdb, Scope, compare, same_age
from fared.ospf.neighbor import NeighborEvent, NeighborState
from fared.ospf.packet.body import LsaBody, decode_body
from fared.ospf.packet.lsa import (
    MAX_AGE,
    MAX_SEQUENCE_NUMBER,
    Lsa,
    LsaHeader,
    LsType,
    lsa_checksum_ok,
)
from fared.ospf.packet.packets import LsAck, LsUpdate

_SENT_BACK_KEPT = 1024


class Flooding:
    """Processes received LSAs and fills the queues of interfaces and neighbors.

    ``self_originated_received`` is called with self-originated LSAs newer than the database copy
    (§13.4), ``requests_served`` when a neighbor's link state request list may have shrunk.
    """

    def __init__(
        self,
        instance: Instance,
        database: Database,
        retransmitter: Retransmitter,
        self_originated_received: Callable[[LsaEntry], None],
        requests_served: Callable[[Neighbor], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._database = database
        self._retransmitter = retransmitter
        self._self_originated_received = self_originated_received
        self._requests_served = requests_served
        self._suppression = FloodSuppression()

    def lsdb_for(self, ls_type: int, interface: Interface) -> Lsdb | None:
        """The database of an LS type; None: unknown, or flooded in the AS, to a stub area."""
        area = self._instance.areas[interface.settings.area]
        scope = SCOPES.get(ls_type)
        if scope is Scope.AREA:
            return area.lsdb
        if scope is Scope.LINK:
            return interface.lsdb
        if scope is Scope.AS and not area.settings.stub:
            return self._instance.as_scope
        return None

    def receive_update(self, neighbor: Neighbor, update: LsUpdate) -> None:
        """Process the LSAs of an update one by one (§13)."""
        # RFC 2328 §13: dropped from a neighbor in a lesser state than Exchange
        if neighbor.state < NeighborState.EXCHANGE:
            self._process.counters.errors["update-before-exchange"] += 1
            return
        for lsa in update.lsas:
            if not self._receive(neighbor, lsa):
                break
        self._requests_served(neighbor)

    def receive_ack(self, neighbor: Neighbor, ack: LsAck) -> None:
        """Take acknowledged instances off the retransmission list (§13.7)."""
        # RFC 2328 §13.7: discarded from a neighbor in a lesser state than Exchange
        if neighbor.state < NeighborState.EXCHANGE:
            return
        now = self._process.now
        for header in ack.lsa_headers:
            listed = neighbor.retransmissions.get(header.key)
            if listed is None:
                continue
            # §13.7: only of the listed instance; others are not logged, since they are frequent
            if compare(listed.entry.header(now), header) == 0:
                self._retransmitter.delist(neighbor, header.key)

    def install_and_flood(
        self,
        lsdb: Lsdb,
        lsa: Lsa,
        *,
        sender: Neighbor | None = None,
        body: LsaBody | None = None,
    ) -> tuple[LsaEntry, bool]:
        """Install a new instance and flood it (§13 (5)(b) to (d)).

        Returns the entry, and whether it is flooded back out of the receiving interface.
        """
        old = lsdb.get(lsa.header.key)
        # RFC 2328 §13 (5)(c): remove the replaced instance from all retransmission lists
        if old is not None:
            self._retransmitter.delist_everywhere(old)
        # §13 (5)(d) before (b): updates are encoded from the database
        entry = self._database.install(lsdb, lsa, flooded_in=sender is not None, body=body)
        covered: Container[int] = ()
        if sender is not None:
            area = self._instance.areas[sender.interface.settings.area]
            covered = self._suppression.covered(area.lsdb, old, entry)
        # §13 (5)(b)
        return entry, self.flood(entry, sender, covered)

    def flush(self, entry: LsaEntry) -> LsaEntry:
        """Premature aging (§14.1): flood the database copy at MaxAge."""
        self._retransmitter.delist_everywhere(entry)
        aged = self._database.age_out(entry)
        self.flood(aged, None)
        return aged

    def drop(self, entry: LsaEntry) -> None:
        """Remove an LSA, even if a neighbor has not acknowledged it."""
        self._retransmitter.delist_everywhere(entry)
        self._database.remove(entry)

    def flood(self, entry: LsaEntry, sender: Neighbor | None, covered: Container[int] = ()) -> bool:
        """Queue an LSA on each eligible interface where a neighbor needs it (§13.3).

        ``covered``: routers that receive it from its originator (``suppression``). Returns
        whether it is flooded back out of the receiving interface.
        """
        back = False
        for interface in self._eligible(entry):
            if not interface.neighbors:
                continue
            # RFC 2328 §13.3 (1): examine each neighbor of this interface
            listed = False
            for neighbor in list(interface.neighbors.values()):
                if not self._needs(neighbor, entry, sender):
                    continue
                if sender is not None and self._is_deferrable(neighbor, covered):
                    # §13.3 (1)(d) without (5): on the list, but sent later or not at all
                    self._retransmitter.defer(neighbor, entry)
                    continue
                # §13.3 (1)(d)
                self._retransmitter.enlist(neighbor, entry)
                listed = True
            # §13.3 (2): added to no retransmission list; (3), (4)
            if not listed or (sender is not None and _designated_floods(interface, sender)):
                continue
            # §13.3 (5)
            back = back or (sender is not None and sender.interface is interface)
            interface.tx.update(entry)
        return back

    def send_direct(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Queue an LSA for one neighbor, without adding it to the retransmission list."""
        neighbor.tx.update(entry)

    def _eligible(self, entry: LsaEntry) -> list[Interface]:
        """The eligible interfaces of an LSA (RFC 2328 §13.3), by its scope (RFC 5250 §3.1)."""
        instance = self._instance
        lsdb = entry.lsdb
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
            requested = neighbor.requests.get(entry.key)
            if requested is not None:
                order = compare(entry.header(self._process.now), requested)
                if order < 0:
                    return False
                del neighbor.requests[entry.key]
                neighbor.outstanding.pop(entry.key, None)
                if neighbor is not sender:
                    self._requests_served(neighbor)
                if order == 0:
                    return False
        # §13.3 (1)(c)
        if neighbor is sender:
            return False
        # RFC 5250 §3.1: opaque LSAs are flooded to opaque-capable neighbors only
        return entry.key.ls_type not in OPAQUE_TYPES or neighbor.opaque_capable

    def _is_deferrable(self, neighbor: Neighbor, covered: Container[int]) -> bool:
        """Whether others will probably flood to a neighbor (``core.reduction``, ``suppression``).

        Not to one in Exchange or Loading, nor on a LAN, where the DR floods (§13.3 (3), (4)).
        """
        return (
            (neighbor.router_id in covered or self._instance.settings.reduction.active)
            and neighbor.state is NeighborState.FULL
            and not neighbor.interface.broadcast
        )

    def _receive(self, neighbor: Neighbor, lsa: Lsa) -> bool:
        """Process one LSA; False stops the rest of the packet (§13 (6))."""
        lsdb = self.lsdb_for(lsa.header.ls_type, neighbor.interface)
        entry = lsdb.get(lsa.header.key) if lsdb is not None else None
        # A copy equal to the database copy byte for byte has a checksum that was verified.
        known = entry is not None and entry.lsa.raw[2:] == lsa.raw[2:]
        # RFC 2328 §13 (1): the LS checksum
        if not known and not lsa_checksum_ok(lsa):
            self._reject(neighbor, "lsa-checksum", lsa)
            return True
        # §13 (2), (3): an unknown LS type, or an AS-external LSA in a stub area
        if lsdb is None:
            self._reject(neighbor, "lsa-type", lsa)
            return True
        header = lsa.header
        # §13 (4): MaxAge, no database copy, and no neighbor in Exchange or Loading
        if header.ls_age >= MAX_AGE and entry is None and not self._instance.exchanging:
            acknowledge_directly(neighbor, header)
            return True
        # The same bytes and age are the same instance (§13.1): (6) and (7)
        if known and entry is not None and same_age(header.ls_age, entry.age(self._process.now)):
            return self._decline(neighbor, entry, lsa, 0)
        # §13 (5): no database copy, or a less recent one (§13.1)
        order = 1 if entry is None else compare(header, entry.header(self._process.now))
        if order > 0:
            self._accept(neighbor, lsdb, entry, lsa)
            return True
        assert entry is not None
        return self._decline(neighbor, entry, lsa, order)

    def _accept(self, neighbor: Neighbor, lsdb: Lsdb, entry: LsaEntry | None, lsa: Lsa) -> None:
        """RFC 2328 §13 (5): there is no database copy, or it is less recent."""
        # §13 (5)(a): MinLSArrival, for a database copy received by flooding
        arrival = self._instance.settings.min_ls_arrival
        if (
            entry is not None
            and entry.flooded_in
            and self._process.now - entry.installed_at < arrival
        ):
            self._process.counters.lsdb["too-soon"] += 1
            return
        try:
            body = _routing_body(lsa)
        except DecodeError:
            self._reject(neighbor, "lsa-body", lsa)
            return
        # §13 (5)(b), (c), (d)
        installed, back = self.install_and_flood(lsdb, lsa, sender=neighbor, body=body)
        # §13 (5)(e): no acknowledgment if it was flooded back out of this interface (table 19)
        if not back:
            acknowledge(neighbor, lsa.header)
        # §13 (5)(f)
        if self._is_self_originated(lsa.header):
            self._self_originated_received(installed)

    def _decline(self, neighbor: Neighbor, entry: LsaEntry, lsa: Lsa, order: int) -> bool:
        """RFC 2328 §13 (6) to (8): the received instance is not newer than the database copy."""
        # §13 (6): an instance is on the request list, so the neighbor described a newer one
        if lsa.header.key in neighbor.requests:
            neighbor.fire(NeighborEvent.BAD_LS_REQ)
            return False
        # §13 (7): the same instance. (a): an implied acknowledgment if it is listed
        if order == 0:
            self._process.counters.lsdb["duplicate"] += 1
            listed = self._retransmitter.delist(neighbor, entry.key)
            acknowledge_duplicate(neighbor, entry, lsa.header, listed)
            return True
        # §13 (8): send the database copy back, unless its sequence number is wrapping, at most once
        # in MinLSArrival. §13 counts every update with it; here only copies sent back to this
        # neighbor count, since others may not have reached it. A full table is cleared.
        now = self._process.now
        if entry.is_maxage(now) and entry.lsa.header.ls_sequence_number == MAX_SEQUENCE_NUMBER:
            return True
        last = neighbor.sent_back.get(entry.key)
        if last is None or now - last >= MIN_LS_ARRIVAL:
            if len(neighbor.sent_back) >= _SENT_BACK_KEPT:
                neighbor.sent_back.clear()
            neighbor.sent_back[entry.key] = now
            self.send_direct(neighbor, entry)
        return True

    def _is_self_originated(self, header: LsaHeader) -> bool:
        """RFC 2328 §13.4: from our router id, or a network LSA with one of our addresses as id."""
        if header.advertising_router == self._instance.router_id:
            return True
        return header.ls_type == LsType.NETWORK and any(
            address.address == header.link_state_id
            for interface in self._instance.interfaces.values()
            for address in interface.link.ipv4()
        )

    def _reject(self, neighbor: Neighbor, reason: str, lsa: Lsa) -> None:
        self._process.reject(
            reason,
            neighbor.address,
            interface=neighbor.interface.name,
            ls_type=lsa.header.ls_type,
            link_state_id=dotted(lsa.header.link_state_id),
            advertising_router=dotted(lsa.header.advertising_router),
        )


def _designated_floods(interface: Interface, sender: Neighbor) -> bool:
    """Whether the DR floods on the receiving network: RFC 2328 §13.3 (3) and (4)."""
    if sender.interface is not interface or not interface.broadcast:
        return False
    # §13.3 (4): this router is the BDR; (3): it was received from the DR or the BDR
    return interface.state is InterfaceState.BACKUP or sender.address in (
        interface.designated_router,
        interface.backup_designated_router,
    )


def _routing_body(lsa: Lsa) -> LsaBody | None:
    """Decode the body of an LSA that routes depend on; an unreadable one is not flooded.

    The bodies of opaque LSAs do not matter for flooding (RFC 5250 §3.1). Raises DecodeError.
    """
    if lsa.header.ls_type in OPAQUE_TYPES or lsa.header.ls_age >= MAX_AGE:
        return None
    return decode_body(lsa)
