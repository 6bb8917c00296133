"""The flooding procedure (RFC 2328 §13): receiving updates and acks, and passing LSAs on."""

from __future__ import annotations

from collections.abc import Callable, Container

from fared.core.ids import AreaId
from fared.core.wire import DecodeError
from fared.ospf.database import MIN_LS_ARRIVAL, Database
from fared.ospf.firsthand import FirstHand
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState
from fared.ospf.lsdb import OPAQUE_TYPES, SCOPES, LsaEntry, Lsdb, Scope, compare
from fared.ospf.neighbor import Neighbor, NeighborEvent, NeighborState
from fared.ospf.packet.body import LsaBody, decode_body
from fared.ospf.packet.lsa import (
    MAX_AGE,
    MAX_AGE_DIFF,
    MAX_SEQUENCE_NUMBER,
    Lsa,
    LsaHeader,
    LsType,
    lsa_checksum_ok,
)
from fared.ospf.packet.packets import LsAck, LsUpdate
from fared.ospf.retransmit import Retransmitter

_ANSWERED_KEPT = 1024


class Flooding:
    """Decides about each received LSA and fills the queues of interfaces and neighbors.

    ``own_received`` is told of LSAs that claim to be ours and are newer than our own (§13.4).
    ``requests_served`` is told when a neighbor's request list has shrunk.
    """

    def __init__(
        self,
        instance: Instance,
        database: Database,
        retransmitter: Retransmitter,
        own_received: Callable[[LsaEntry], None],
        requests_served: Callable[[Neighbor], None],
    ) -> None:
        self._instance = instance
        self._database = database
        self._retransmitter = retransmitter
        self._own_received = own_received
        self._requests_served = requests_served
        self._first_hand = FirstHand()

    def lsdb_for(self, ls_type: int, interface: Interface) -> Lsdb | None:
        """The database an LSA belongs to; None if it may not be here (§13 (2), (3))."""
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
        if neighbor.state < NeighborState.EXCHANGE:
            self._instance.counters.errors["update-before-exchange"] += 1
            return
        for lsa in update.lsas:
            if not self._receive(neighbor, lsa):
                break
        self._requests_served(neighbor)

    def receive_ack(self, neighbor: Neighbor, ack: LsAck) -> None:
        """Take acknowledged instances off the retransmission list (§13.7)."""
        if neighbor.state < NeighborState.EXCHANGE:
            return
        now = self._instance.now
        for header in ack.lsa_headers:
            listed = neighbor.retransmissions.get(header.key)
            if listed is None:
                continue
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
        """Install a new instance and send it on (§13 (5)(b) to (d)).

        Returns the entry, and whether it goes back out of the interface it came from.
        """
        old = lsdb.get(lsa.header.key)
        if old is not None:
            self._retransmitter.delist_everywhere(old)
        entry = self._database.install(lsdb, lsa, flooded_in=sender is not None, body=body)
        told: Container[int] = ()
        if sender is not None:
            area = self._instance.areas[sender.interface.settings.area]
            told = self._first_hand.told(area.lsdb, old, entry)
        return entry, self.flood(entry, sender, told)

    def flush(self, entry: LsaEntry) -> LsaEntry:
        """Premature ageing (§14.1): flood the instance we have at MaxAge."""
        self._retransmitter.delist_everywhere(entry)
        aged = self._database.age_out(entry)
        self.flood(aged, None)
        return aged

    def flood(self, entry: LsaEntry, sender: Neighbor | None, told: Container[int] = ()) -> bool:
        """Queue an LSA on every interface of its scope whose neighbors want it (§13.3).

        ``told``: routers whose copy may wait (``firsthand``). Returns whether it
        goes out of the interface of the sender, too.
        """
        back = False
        for interface in self._eligible(entry):
            if not interface.neighbors:
                continue
            wanted = False
            for neighbor in list(interface.neighbors.values()):
                if not self._wants(neighbor, entry, sender):
                    continue
                if sender is not None and self._may_wait(neighbor, told):
                    self._retransmitter.defer(neighbor, entry)
                    continue
                self._retransmitter.enlist(neighbor, entry)
                wanted = True
            if not wanted or (sender is not None and _left_to_others(interface, sender)):
                continue
            back = back or (sender is not None and sender.interface is interface)
            interface.updates[entry.key] = entry
            self._instance.unsent[interface.ifindex] = interface
        return back

    def send_direct(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Queue an LSA for one neighbor, without retransmission."""
        neighbor.direct[entry.key] = entry
        self._instance.unsent[neighbor.interface.ifindex] = neighbor.interface

    def _eligible(self, entry: LsaEntry) -> list[Interface]:
        """RFC 2328 §13.3 (the scopes before (1)), RFC 5250 §3.1."""
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

    def _wants(self, neighbor: Neighbor, entry: LsaEntry, sender: Neighbor | None) -> bool:
        # RFC 2328 §13.3 (1)(a)
        if neighbor.state < NeighborState.EXCHANGE:
            return False
        # (b)
        if neighbor.exchanging:
            requested = neighbor.requests.get(entry.key)
            if requested is not None:
                order = compare(entry.header(self._instance.now), requested)
                if order < 0:
                    return False
                del neighbor.requests[entry.key]
                neighbor.outstanding.pop(entry.key, None)
                if neighbor is not sender:
                    self._requests_served(neighbor)
                if order == 0:
                    return False
        # (c)
        if neighbor is sender:
            return False
        # RFC 5250 §3.1: opaque LSAs only to those who understand them
        return entry.key.ls_type not in OPAQUE_TYPES or neighbor.opaque_capable

    def _may_wait(self, neighbor: Neighbor, told: Container[int]) -> bool:
        """Whether a neighbor is likely to get a flood from others (core.reduction, firsthand).

        Not one that is still learning the database, nor a LAN, which has its own order.
        """
        return (
            (neighbor.router_id in told or self._instance.settings.reduction.active)
            and neighbor.state is NeighborState.FULL
            and not neighbor.interface.broadcast
        )

    def _receive(self, neighbor: Neighbor, lsa: Lsa) -> bool:
        """Process one LSA; False stops the rest of the packet (§13 (6))."""
        lsdb = self.lsdb_for(lsa.header.ls_type, neighbor.interface)
        entry = lsdb.get(lsa.header.key) if lsdb is not None else None
        # A copy equal to ours byte for byte needs no second look at its checksum.
        known = entry is not None and entry.lsa.raw[2:] == lsa.raw[2:]
        # RFC 2328 §13 (1)
        if not known and not lsa_checksum_ok(lsa):
            self._reject(neighbor, "lsa-checksum", lsa)
            return True
        # (2), (3)
        if lsdb is None:
            self._reject(neighbor, "lsa-type", lsa)
            return True
        header = lsa.header
        # (4)
        if header.ls_age >= MAX_AGE and entry is None and not self._instance.exchanging:
            self._ack_directly(neighbor, header)
            return True
        if known and entry is not None and _same_age(header.ls_age, entry.age(self._instance.now)):
            return self._decline(neighbor, entry, lsa, 0)
        order = 1 if entry is None else compare(header, entry.header(self._instance.now))
        if order > 0:
            self._accept(neighbor, lsdb, entry, lsa)
            return True
        assert entry is not None
        return self._decline(neighbor, entry, lsa, order)

    def _accept(self, neighbor: Neighbor, lsdb: Lsdb, entry: LsaEntry | None, lsa: Lsa) -> None:
        """RFC 2328 §13 (5): the received instance is newer than ours, or we have none."""
        # (a)
        arrival = self._instance.settings.min_ls_arrival
        if (
            entry is not None
            and entry.flooded_in
            and self._instance.now - entry.installed_at < arrival
        ):
            self._instance.counters.lsas["too-soon"] += 1
            return
        try:
            body = _routing_body(lsa)
        except DecodeError:
            self._reject(neighbor, "lsa-body", lsa)
            return
        # (b), (c), (d)
        fresh, back = self.install_and_flood(lsdb, lsa, sender=neighbor, body=body)
        # (e)
        if not back:
            self._ack(neighbor, lsa.header)
        # (f)
        if self._claims_to_be_ours(lsa.header):
            self._own_received(fresh)

    def _decline(self, neighbor: Neighbor, entry: LsaEntry, lsa: Lsa, order: int) -> bool:
        """RFC 2328 §13 (6) to (8): the received instance is not newer than ours."""
        # (6)
        if lsa.header.key in neighbor.requests:
            neighbor.fire(NeighborEvent.BAD_LS_REQ)
            return False
        # (7)
        if order == 0:
            self._instance.counters.lsas["duplicate"] += 1
            listed = self._retransmitter.delist(neighbor, entry.key)
            if listed is None or listed.deferred:
                self._ack_directly(neighbor, lsa.header)
            elif neighbor.interface.broadcast:
                if neighbor.interface.state is InterfaceState.BACKUP:
                    self._ack(neighbor, lsa.header)
            elif neighbor.interface.updates.get(entry.key) is entry:
                # Queued for this very neighbor, the only one here: it has just shown us that
                # it needs no copy, and our silence costs it one: so acknowledge instead.
                del neighbor.interface.updates[entry.key]
                self._ack(neighbor, lsa.header)
            return True
        # (8)
        now = self._instance.now
        if entry.maxed(now) and entry.lsa.header.ls_sequence_number == MAX_SEQUENCE_NUMBER:
            return True
        last = neighbor.answered.get(entry.key)
        if last is None or now - last >= MIN_LS_ARRIVAL:
            if len(neighbor.answered) >= _ANSWERED_KEPT:
                neighbor.answered.clear()
            neighbor.answered[entry.key] = now
            self.send_direct(neighbor, entry)
        return True

    def _ack(self, neighbor: Neighbor, header: LsaHeader) -> None:
        """Acknowledge to all who listen (§13.5): with the next drain, on every kind of link."""
        interface = neighbor.interface
        # Table 19: the backup leaves it to the designated router to answer others.
        backup = interface.state is InterfaceState.BACKUP
        if backup and neighbor.address != interface.designated_router:
            return
        interface.acks[header.key] = header
        self._instance.unsent[interface.ifindex] = interface

    def _ack_directly(self, neighbor: Neighbor, header: LsaHeader) -> None:
        """Acknowledge to the sender alone (§13.5)."""
        if not neighbor.interface.broadcast:
            self._ack(neighbor, header)
            return
        neighbor.acks[header.key] = header
        self._instance.unsent[neighbor.interface.ifindex] = neighbor.interface

    def _claims_to_be_ours(self, header: LsaHeader) -> bool:
        """RFC 2328 §13.4: by router id, or a network LSA of one of our addresses."""
        if header.advertising_router == self._instance.router_id:
            return True
        return header.ls_type == LsType.NETWORK and any(
            address.address == header.link_state_id
            for interface in self._instance.interfaces.values()
            for address in interface.link.ipv4()
        )

    def _reject(self, neighbor: Neighbor, reason: str, lsa: Lsa) -> None:
        self._instance.reject(
            reason,
            neighbor.address,
            interface=neighbor.interface.name,
            ls_type=lsa.header.ls_type,
            link_state_id=lsa.header.link_state_id,
            advertising_router=lsa.header.advertising_router,
        )


def _same_age(a: int, b: int) -> bool:
    """Whether two copies with the same contents are the same instance (RFC 2328 §13.1)."""
    return a < MAX_AGE and b < MAX_AGE and abs(a - b) <= MAX_AGE_DIFF


def _left_to_others(interface: Interface, sender: Neighbor) -> bool:
    """Whether others flood it on the network it came from: RFC 2328 §13.3 (2) and (3)."""
    if sender.interface is not interface or not interface.broadcast:
        return False
    return interface.state is InterfaceState.BACKUP or sender.address in (
        interface.designated_router,
        interface.backup_designated_router,
    )


def _routing_body(lsa: Lsa) -> LsaBody | None:
    """Decode the body of an LSA that routes depend on; one that cannot be read goes no further.

    Opaque LSAs are flooded whatever they hold (RFC 5250 §3.1). Raises DecodeError.
    """
    if lsa.header.ls_type in OPAQUE_TYPES or lsa.header.ls_age >= MAX_AGE:
        return None
    return decode_body(lsa)
