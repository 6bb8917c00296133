"""Processes sequence numbers PDUs: LSPs that the neighbor has or lacks (§7.3.15.2)."""

from __future__ import annotations

import math

from fared.protocols.isis.circuit import AdjacencyState, Circuit
from fared.protocols.isis.ids import FIRST_LSP, LAST_LSP, Level, LspId, system_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import Order, StoredLsp, compare
from fared.protocols.isis.pdu.lsp_entries import packed_of, unpack
from fared.protocols.isis.pdu.model import Csnp, Psnp
from fared.protocols.isis.pdu.tlvs import LspEntry
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.limits import DatabaseLimits
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter
from fared.protocols.isis.update.sequence import OwnSequences

LAN_JITTER = 0.02
"""Seconds over which the routers of a LAN spread their answers to a CSNP, since one is enough."""
_REQUEST_SOON = 0.005
_EARLY = 1.0
_MOST_EARLY = 256


class EarlyCsnps:
    """CSNPs of point-to-point neighbors whose adjacency is up on their side and not yet on ours.

    Deviation: ISO 10589 §7.3.15.2 a) discards SNPs without an adjacency that is up. FRR sends its
    set once, and the hello that brings our adjacency up 50 ms later. Without the set, the whole
    database would be sent to a neighbor that has it. The set stays valid: while it keeps the
    adjacency, a system never returns to an older LSP.
    """

    def __init__(self, instance: Instance) -> None:
        self._process = instance.process
        self._kept: dict[tuple[int, Level], list[tuple[float, Csnp]]] = {}

    def keep(self, circuit: Circuit, csnp: Csnp) -> bool:
        """Store a CSNP for a moment; False if the sender is no such neighbor."""
        adjacency = circuit.adjacency
        if (
            circuit.broadcast
            or adjacency is None
            or adjacency.state is not AdjacencyState.INITIALIZING
            or adjacency.system_id != csnp.source_id >> 8
        ):
            return False
        kept = self._kept.setdefault((circuit.ifindex, Level(csnp.level)), [])
        if csnp.start == FIRST_LSP or len(kept) >= _MOST_EARLY:
            kept.clear()
        kept.append((self._process.now, csnp))
        return True

    def take(self, circuit: Circuit, level: Level) -> list[Csnp]:
        """Remove the CSNPs kept; return those that are not too old."""
        kept = self._kept.pop((circuit.ifindex, level), [])
        oldest = self._process.now - _EARLY
        return [csnp for at, csnp in kept if at >= oldest]


class SnpReader:
    """Sets and clears flags according to received SNPs."""

    def __init__(
        self,
        instance: Instance,
        transmitter: LspTransmitter,
        sequences: OwnSequences,
        limits: DatabaseLimits,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._lsp_transmitter = transmitter
        self._sequences = sequences
        self._limits = limits

    def read(self, queue: SrmSsnQueue, snp: Csnp | Psnp) -> None:
        """Set and clear flags (ISO 10589 §7.3.15.2 b) and c))."""
        waiting = len(queue.pending)
        # b): each LSP listed
        packed = packed_of(snp.tlvs)
        self._listed(queue, packed)
        # c): each LSP in the range of a CSNP that it does not list
        if isinstance(snp, Csnp):
            self._unlisted(queue, snp, {identifier for _, identifier, _, _ in unpack(packed)})
            now = self._process.now
            # the neighbor's set is complete: its database is known, and LSPs need not wait for it
            if queue.reliable and snp.end == LAST_LSP:
                queue.held_until, queue.comparing = -math.inf, False
            # the rest of the set may wait behind the PDUs of many other neighbors
            elif queue.reliable and queue.held_until > now:
                queue.held_until = now + self._lsp_transmitter.sync_hold()
            # on a LAN every system answers the CSNP; the first copy clears SRM at the others
            elif not queue.reliable and queue.pending and not waiting:
                queue.held_until = self._process.now + LAN_JITTER * self._process.rng.random()
        self._lsp_transmitter.touch(queue)

    def _listed(self, queue: SrmSsnQueue, packed: bytes) -> None:
        """Compare each listed LSP with the database; nearly all are as there."""
        known = queue.database.entries
        shared = queue.shared.deferred
        flagged = (queue.pending, queue.unacknowledged, shared, queue.unlisted)
        acked = 0
        for lifetime, identifier, sequence, checksum in unpack(packed):
            entry = known.get(LspId(identifier))
            if (
                entry is not None
                and entry.sequence_number == sequence
                and entry.checksum == checksum
                and lifetime
                and not entry.purged
            ):
                # b) 2): on a point-to-point circuit clear SRM: the neighbor has the LSP
                if queue.reliable and any(flagged):
                    acked += queue.clear_srm(entry)
                continue
            item = LspEntry(LspId(identifier), sequence, lifetime, checksum)
            if entry is None:
                self._unknown(queue, item)
            else:
                self._compare(queue, entry, item)
        if acked:
            self._process.counters.lsdb["acked"] += acked

    def _unknown(self, queue: SrmSsnQueue, listed: LspEntry) -> None:
        """An LSP that is not in the database."""
        # b) 5): it is requested only if all three fields are non-zero
        if not (listed.sequence_number and listed.remaining_lifetime and listed.checksum):
            return
        # §7.3.16.1: one of ours is purged, or generated; RFC 8706 §3.4.1: not during a restart
        if self._instance.keeps_lsps and self._has_room(queue, listed):
            self._request(queue, listed)
        elif system_of(listed.lsp_id) == self._instance.system_id:
            self._sequences.received(queue.level, listed.lsp_id, listed.sequence_number)
        elif self._has_room(queue, listed):
            self._request(queue, listed)

    def _compare(self, queue: SrmSsnQueue, entry: StoredLsp, listed: LspEntry) -> None:
        """Compare an LSP of ours with what a CSNP or PSNP lists (ISO 10589 §7.3.15.2 b))."""
        order = compare(entry, listed)
        # b) 2): on a point-to-point circuit clear SRM: the neighbor has the LSP
        if order is Order.SAME:
            if queue.reliable and queue.clear_srm(entry):
                self._process.counters.lsdb["acked"] += 1
            return
        # §7.3.16.1: of our own LSPs a newer instance is generated; none is requested. A purge of
        # a purged LSP of ours needs none.
        own = system_of(listed.lsp_id) == self._instance.system_id
        own = own and not self._instance.keeps_lsps
        if own and order in (Order.NEWER, Order.CONFUSED):
            if listed.remaining_lifetime or not entry.purged:
                self._sequences.received(queue.level, listed.lsp_id, listed.sequence_number)
        # b) 4): request the newer instance. SRM is cleared on a LAN as well: a copy of our older
        # instance would serve no system there.
        elif order is Order.NEWER:
            queue.clear_srm(entry)
            self._request(queue, listed)
        # b) 3): set SRM. Also for a confused LSP: its receiver compares and purges (§7.3.16.2).
        else:
            queue.answer(entry, self._process.now)

    def _has_room(self, queue: SrmSsnQueue, listed: LspEntry) -> bool:
        """Whether the database has room for an unknown LSP; one that is ignored is not wanted."""
        more = len(queue.requests)
        if self._limits.admits(queue.circuit, queue.level, listed.lsp_id, more):
            return True
        self._limits.ignore(queue.circuit, queue.level, listed.lsp_id)
        return False

    def _request(self, queue: SrmSsnQueue, listed: LspEntry) -> None:
        # On a point-to-point circuit the neighbor has set SRM as well (§7.3.17 a)), and sends the
        # LSP without a request; on a LAN it is sent on request only.
        delay = queue.circuit.settings.psnp_interval if queue.reliable else _REQUEST_SOON
        queue.request(listed, self._process.now + delay)

    def _unlisted(self, queue: SrmSsnQueue, csnp: Csnp, listed: set[int]) -> None:
        # c): except those with zero remaining lifetime
        now = self._process.now
        for entry in queue.database.between(csnp.start, csnp.end):
            if not entry.purged and entry.lsp_id not in listed:
                queue.repeat(entry, now)
