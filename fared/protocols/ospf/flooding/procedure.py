"""The flooding procedure (RFC 2328 §13): receiving updates and acks, flooding newer LSAs.

In a dense fabric most LSAs and acknowledgments received are of instances that the database has, or
waits for. These are recognized by the bytes of their headers; only new LSAs are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fared.core.ids import dotted
from fared.core.wire import DecodeError
from fared.protocols.ospf.flooding.acknowledge import acknowledge, acknowledge_directly
from fared.protocols.ospf.flooding.bandwidth import BandwidthChanges
from fared.protocols.ospf.flooding.comparison import Comparison
from fared.protocols.ospf.flooding.copies import find_copies
from fared.protocols.ospf.flooding.database import MIN_LS_ARRIVAL, Database
from fared.protocols.ospf.flooding.duplicates import Duplicates
from fared.protocols.ospf.flooding.dynamic import DynamicAreas
from fared.protocols.ospf.flooding.flood import Flooder
from fared.protocols.ospf.flooding.limits import DatabaseLimits
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.flooding.suppression import FloodSuppression
from fared.protocols.ospf.flooding.withdrawals import Withdrawals
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.lsdb import (
    MAX_AGE_BYTES,
    OPAQUE_TYPES,
    SCOPES,
    LsaEntry,
    Lsdb,
    Scope,
    compare,
)
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.body import LsaBody, decode_again, decode_body
from fared.protocols.ospf.packet.lsa import (
    LS_TYPE_OFFSET,
    LSA_HEADER_SIZE,
    MAX_AGE,
    MAX_AGE_DIFF,
    MAX_SEQUENCE_NUMBER,
    Lsa,
    LsaKey,
    LsType,
    decode_header,
    key_of,
    name_of,
    raw_checksum_ok,
    sequence_number_of,
    split_headers,
)
from fared.protocols.ospf.packet.packets import LsAck, LsUpdate, PacketType

_SENT_BACK_KEPT = 1024
_LATELY = 60
_YOUNG = (MAX_AGE_DIFF - _LATELY).to_bytes(2, "big")
"""An LSA that was no older at installation, ``_LATELY`` at most ago, is within MaxAgeDiff."""
_ADVERTISING_ROUTER = slice(6, 10)
"""Of an instance (``packet.lsa.instance_of``)."""


class Flooding:
    """Processes received LSAs and fills the queues of interfaces and neighbors.

    ``self_originated_received`` is called with self-originated LSAs newer than the database copy
    (§13.4), ``requests_served`` when a neighbor's link state request list may have shrunk;
    ``request`` requests LSAs of a full neighbor that were ignored (``limits``).
    """

    def __init__(
        self,
        instance: Instance,
        database: Database,
        retransmitter: Retransmitter,
        *,
        self_originated_received: Callable[[LsaEntry], None],
        requests_served: Callable[[Neighbor], None],
        request: Callable[[Neighbor, Sequence[LsaKey]], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._us = instance.router_id.to_bytes(4, "big")
        self._database = database
        self._retransmitter = retransmitter
        self._self_originated_received = self_originated_received
        self._requests_served = requests_served
        self._suppression = FloodSuppression()
        self._bandwidths = BandwidthChanges()
        self.duplicates = Duplicates(instance, retransmitter)
        self.dynamic = DynamicAreas(instance, retransmitter, database)
        self.limits = DatabaseLimits(instance, request)
        self._comparison = Comparison(instance, retransmitter, self.limits, request)
        self._flooder = Flooder(
            instance, retransmitter, self.dynamic, self._comparison, requests_served
        )
        self._withdrawals = Withdrawals(instance, database, self._flooder, self._covered)

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
        area = self._instance.areas[neighbor.interface.settings.area]
        if not self.duplicates.joins(neighbor, update, area.lsdb):
            self._process_update(neighbor, update, area)
        self._requests_served(neighbor)

    def _process_update(self, neighbor: Neighbor, update: LsUpdate, area: Area) -> None:
        """Process an update, its copies of what the database has as a whole."""
        rest: Sequence[bytes] = update.packed
        copies = None
        # An instance on the request list needs a closer look: §13 (6)
        if not neighbor.requests:
            beyond = None if area.settings.stub else self._instance.as_scope
            now = self._process.now
            copies, rest = find_copies(update.packed, area.lsdb, beyond, now)
            if copies and not rest and self.duplicates.gather(neighbor, update, copies):
                return
        self.duplicates.settle()
        rest = self._withdrawals.process(neighbor, rest)
        count, size = len(rest), sum(map(len, rest))
        databases = area.lsdb, self._instance.as_scope
        ample = all(self.limits.are_ample(lsdb, count, size) for lsdb in databases)
        for raw in rest:
            if not self._receive(neighbor, raw, ample=ample):
                break
        if copies is not None and neighbor.state >= NeighborState.EXCHANGE:
            self.duplicates.received(neighbor, copies.entries, copies.headers)

    def receive_ack(self, neighbor: Neighbor, ack: LsAck) -> None:
        """Take acknowledged instances off the retransmission list (§13.7)."""
        # RFC 2328 §13.7: discarded from a neighbor in a lesser state than Exchange
        if neighbor.state < NeighborState.EXCHANGE:
            return
        lately, bit = self._process.now - _LATELY, neighbor.bit
        area = self._instance.areas[neighbor.interface.settings.area].lsdb.listed
        beyond = self._instance.as_scope.listed
        link = neighbor.interface.lsdb.listed
        compared = self.dynamic.active and self.dynamic.spares(neighbor)
        told: list[bytes] = []
        for age, instance in split_headers(ack.packed):
            entry = area.get(instance) or beyond.get(instance) or link.get(instance)
            # §13.7: only of the listed instance; others are not logged, since they are frequent
            if entry is None or not entry.unacknowledged & bit:
                if instance[_ADVERTISING_ROUTER] == self._us:
                    self._own_acknowledged(neighbor, age.to_bytes(2, "big") + instance)
                elif compared and age < MAX_AGE:
                    told.append(age.to_bytes(2, "big") + instance)
                continue
            # §13.1: instances with equal fields are the same if neither is old, as nearly always,
            # or both are at MaxAge
            old = age > MAX_AGE_DIFF or entry.installed_at < lately or entry.raw > _YOUNG
            if old and not (age == MAX_AGE and entry.at_max_age):
                acknowledged = decode_header(age.to_bytes(2, "big") + instance)
                if compare(entry.header(self._process.now), acknowledged) != 0:
                    continue
            self._retransmitter.acknowledged(entry, bit)
        if told:
            self._compare_told(neighbor, told)

    def _compare_told(self, neighbor: Neighbor, told: list[bytes]) -> None:
        """Acknowledgments of a neighbor that is spared LSAs tell what it has (``comparison``)."""
        headers = map(decode_header, told)
        found = [(self.lsdb_for(each.ls_type, neighbor.interface), each) for each in headers]
        known = [(lsdb, each) for lsdb, each in found if lsdb is not None]
        self._comparison.request_unknown(neighbor, known)

    def _own_acknowledged(self, neighbor: Neighbor, header: bytes) -> None:
        """An acknowledgment of an own LSA that is not listed: list ours if it is of a newer one.

        So the neighbor has got one in our name from somebody else, whom it takes for us. RFC 2328
        ignores that (§13.7), and the forged instance stays until ours is refreshed. Ours,
        retransmitted, brings back the newer one (§13 (8)), which we supersede (§13.4); if the
        neighbor has flushed the LSA meanwhile, it has ours again.
        """
        acknowledged = decode_header(header)
        lsdb = self.lsdb_for(acknowledged.ls_type, neighbor.interface)
        entry = None if lsdb is None else lsdb.get(acknowledged.key)
        if entry is None or entry.unacknowledged & neighbor.bit:
            return
        if compare(acknowledged, entry.header(self._process.now)) > 0:
            self._retransmitter.enlist((entry,), neighbor.bit)

    def install_and_flood(
        self,
        lsdb: Lsdb,
        key: LsaKey,
        raw: bytes,
        *,
        sender: Neighbor | None = None,
        body: LsaBody | None = None,
    ) -> tuple[LsaEntry, bool]:
        """Install a new instance and flood it (§13 (5)(b) to (d)).

        Returns the entry, and whether it is flooded back out of the receiving interface.
        """
        old = lsdb.entries.get(key)
        # RFC 2328 §13 (5)(c): remove the replaced instance from all retransmission lists
        if old is not None:
            self._replaced(old)
        # §13 (5)(d) before (b): updates are encoded from the database
        entry = self._database.install(lsdb, key, raw, flooded_in=sender is not None, body=body)
        covered = 0 if sender is None else self._covered(sender, old, entry)
        bandwidth = old is not None and self._bandwidths.only(key, old.raw, raw)
        # §13 (5)(b)
        return entry, self._flooder.flood(entry, sender, covered, bandwidth=bandwidth)

    def flush(self, entry: LsaEntry) -> LsaEntry:
        """Premature aging (§14.1): flood the database copy at MaxAge."""
        self._replaced(entry)
        aged = self._database.age_out(entry)
        self.flood(aged)
        return aged

    def _replaced(self, old: LsaEntry) -> None:
        """Neither retransmit an instance any more (§13 (5)(c)) nor acknowledge it.

        Its neighbor gets the one that replaces it. If that is at MaxAge, it is soon removed, and
        the same instance may come again: a queued acknowledgment would be taken for that one's.
        """
        if old.unacknowledged:
            self._retransmitter.delist_everywhere(old)
        recent = self._process.now - old.installed_at <= self._instance.settings.ack_delay
        if recent and old.flooded_in:
            for interface in self._instance.interfaces.values():
                interface.tx.take_back_acks(old.instance)
                for neighbor in interface.neighbors.values():
                    neighbor.tx.take_back_acks(old.instance)

    def drop(self, entry: LsaEntry) -> None:
        """Remove an LSA, even if a neighbor has not acknowledged it."""
        self._retransmitter.delist_everywhere(entry)
        self._database.remove(entry)

    def flood(self, entry: LsaEntry) -> None:
        """Flood an LSA to all neighbors (§13.3)."""
        self._flooder.flood(entry, None)

    def send_direct(self, neighbor: Neighbor, entry: LsaEntry) -> None:
        """Queue an LSA for one neighbor, without adding it to the retransmission list."""
        self._instance.outbox.direct(entry, neighbor.bit)

    def _covered(self, sender: Neighbor, old: LsaEntry | None, entry: LsaEntry) -> int:
        """The neighbors that will probably receive an LSA from others.

        ``igp.reduction``, ``suppression``: Full and on point-to-point links, not on a LAN, where
        the DR floods (§13.3 (3), (4)).
        """
        group = self._flooder.group(entry.lsdb)
        if self._instance.settings.reduction.active:
            return group.full
        area = self._instance.areas[sender.interface.settings.area]
        queued = self._instance.outbox.floods
        return self._suppression.covered(area.lsdb, old, entry, group, queued)

    def _receive(self, neighbor: Neighbor, raw: bytes, *, ample: bool) -> bool:
        """Process one LSA; False stops the rest of the packet (§13 (6)).

        ``ample``: there is room for it, unless it is of one link.
        """
        key = key_of(raw)
        lsdb = self.lsdb_for(key.ls_type, neighbor.interface)
        entry = lsdb.entries.get(key) if lsdb is not None else None
        known = entry is not None and entry.raw[2:] == raw[2:]
        # RFC 2328 §13 (1): the LS checksum
        if not known and not raw_checksum_ok(raw):
            self._reject(neighbor, "lsa-checksum", key)
            return True
        # §13 (2), (3): an unknown LS type, or an AS-external LSA in a stub area
        if lsdb is None:
            self._reject(neighbor, "lsa-type", key)
            return True
        # §13 (4): MaxAge, no database copy, and no neighbor in Exchange or Loading
        if entry is None and raw >= MAX_AGE_BYTES and not self._instance.exchanging:
            acknowledge_directly(neighbor, raw[:LSA_HEADER_SIZE])
            return True
        # §13 (5): no database copy, or a less recent one (§13.1)
        order = 1 if entry is None else self._compare(raw, entry, known=known)
        if entry is not None and order <= 0:
            return self._decline(neighbor, entry, raw, order)
        roomy = ample and lsdb.scope is not Scope.LINK
        if roomy or self._has_room(neighbor, lsdb, key, raw, entry):
            self._accept(neighbor, lsdb, key, entry, raw)
        else:
            self._ignore(neighbor, lsdb, raw)
        return True

    def _compare(self, raw: bytes, entry: LsaEntry, *, known: bool) -> int:
        """Compare a received LSA with the database copy (§13.1).

        ``known``: they are equal but for the age.
        """
        if sequence_number_of(raw) > entry.sequence_number:
            return 1  # the first rule of ``compare``, which decides nearly always
        if known and raw[:2] == MAX_AGE_BYTES:
            # §13.1: of one instance, that at MaxAge is more recent (premature aging, §14.1)
            return 0 if entry.is_maxage(self._process.now) else 1
        return compare(decode_header(raw), entry.header(self._process.now))

    def _has_room(
        self, neighbor: Neighbor, lsdb: Lsdb, key: LsaKey, raw: bytes, entry: LsaEntry | None
    ) -> bool:
        """Whether the database has room for an LSA; ``entry`` is its former instance."""
        if entry is not None and len(raw) <= len(entry.raw):
            return True
        more = len(raw) - (0 if entry is None else len(entry.raw))
        admitted = entry is not None or self.limits.admits(lsdb, key, neighbor)
        fits = admitted and self.limits.fits(lsdb, key, neighbor, more)
        return fits or self._is_self_originated(key)

    def _ignore(self, neighbor: Neighbor, lsdb: Lsdb, raw: bytes) -> None:
        """Acknowledge an LSA for which there is no room, so that it is not retransmitted."""
        self.limits.ignore(lsdb, key_of(raw), neighbor)
        neighbor.requests.pop(name_of(raw), None)
        neighbor.outstanding.pop(name_of(raw), None)
        acknowledge(neighbor, raw[:LSA_HEADER_SIZE])

    def _accept(
        self, neighbor: Neighbor, lsdb: Lsdb, key: LsaKey, entry: LsaEntry | None, raw: bytes
    ) -> None:
        """RFC 2328 §13 (5): there is no database copy, or it is less recent."""
        # §13 (5)(a): MinLSArrival, for a database copy received by flooding
        if (
            entry is not None
            and entry.flooded_in
            and self._process.now - entry.installed_at < self._instance.settings.min_ls_arrival
        ):
            self._process.counters.lsdb["too-soon"] += 1
            return
        try:
            body = _routing_body(raw, entry)
        except DecodeError:
            self._reject(neighbor, "lsa-body", key)
            return
        # §13 (5)(b), (c), (d)
        installed, back = self.install_and_flood(lsdb, key, raw, sender=neighbor, body=body)
        # §13 (5)(e): no acknowledgment if it was flooded back out of this interface (table 19)
        if not back:
            acknowledge(neighbor, raw[:LSA_HEADER_SIZE])
        # §13 (5)(f)
        if self._is_self_originated(key):
            self._self_originated_received(installed)

    def _decline(self, neighbor: Neighbor, entry: LsaEntry, raw: bytes, order: int) -> bool:
        """RFC 2328 §13 (6) to (8): the received instance is not newer than the database copy."""
        # §13 (6): an instance is on the request list, so the neighbor described a newer one
        if neighbor.requests and name_of(raw) in neighbor.requests:
            neighbor.fire(NeighborEvent.BAD_LS_REQ)
            return False
        if order == 0:
            self.duplicates.received(neighbor, [entry], raw[:LSA_HEADER_SIZE])
            return True
        # §13 (8): send the database copy back, unless its sequence number is wrapping, at most once
        # in MinLSArrival. §13 counts every update with it; here only copies sent back to this
        # neighbor count, since others may not have reached it. A full table is cleared.
        now = self._process.now
        if entry.is_maxage(now) and entry.sequence_number == MAX_SEQUENCE_NUMBER:
            return True
        last = neighbor.sent_back.get(entry.key)
        if last is None or now - last >= MIN_LS_ARRIVAL:
            if len(neighbor.sent_back) >= _SENT_BACK_KEPT:
                neighbor.sent_back.clear()
            neighbor.sent_back[entry.key] = now
            self.send_direct(neighbor, entry)
        return True

    def _is_self_originated(self, key: LsaKey) -> bool:
        """RFC 2328 §13.4: from our router id, or a network LSA with one of our addresses as id."""
        if key.advertising_router == self._instance.router_id:
            return True
        return key.ls_type == LsType.NETWORK and any(
            address.address == key.link_state_id
            for interface in self._instance.interfaces.values()
            for address in interface.link.ipv4()
        )

    def _reject(self, neighbor: Neighbor, reason: str, key: LsaKey) -> None:
        self._process.reject(
            reason,
            neighbor.address,
            interface=neighbor.interface,
            kind=PacketType.LS_UPDATE.label,
            ls_type=key.ls_type,
            link_state_id=dotted(key.link_state_id),
            advertising_router=dotted(key.advertising_router),
        )


def _routing_body(raw: bytes, former: LsaEntry | None) -> LsaBody | None:
    """Decode the body of an LSA that routes depend on; an unreadable one is not flooded.

    The bodies of opaque LSAs do not matter for flooding (RFC 5250 §3.1). Raises DecodeError.
    """
    if raw[LS_TYPE_OFFSET] in OPAQUE_TYPES or raw >= MAX_AGE_BYTES:
        return None
    lsa = Lsa(decode_header(raw), raw)
    return decode_body(lsa) if former is None else decode_again(lsa, former.raw, former.body)
