"""The update process (ISO 10589 §7.3.15, §7.3.16): receives LSPs and SNPs, sets and clears flags.

Receiving only sets flags; ``flush`` sends. LSPs arrive at ``receive`` as bytes. Of the acceptance
tests (§7.3.15.1 a), §7.3.15.2 a)) those of the header are in ``pdu.header``, authentication in
``pdu.auth``; the adjacency is found here.
"""

from __future__ import annotations

import math

from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level, LspId, format_lsp_id, lsp_id, system_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import Order, StoredLsp, compare
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import (
    Former,
    RawPdu,
    decode_raw,
    is_copy,
    kind_of,
    peek_lsp_id,
    read_pdu,
)
from fared.protocols.isis.pdu.model import Csnp, Lsp, PduType, Psnp
from fared.protocols.isis.pdu.tlv_lists import malformed_types
from fared.protocols.isis.pdu.tlvs import LspEntry
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.copies import SYNC_SOON, Copies
from fared.protocols.isis.update.database import Database, DatabaseWatcher
from fared.protocols.isis.update.limits import DatabaseLimits
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter
from fared.protocols.isis.update.sequence import OwnSequences
from fared.protocols.isis.update.snp import EarlyCsnps, SnpReader

__all__ = ["DatabaseWatcher", "Flooding"]

_NEW_ON_LAN = 0.3
_QUICK_SETS = 2
_LEVELS = {PduType.L1_LSP: Level.ONE, PduType.L2_LSP: Level.TWO}


class Flooding:
    """Keeps the databases equal to those of the neighbors."""

    def __init__(
        self, instance: Instance, transmitter: Transmitter, watcher: DatabaseWatcher
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._lsp_transmitter = LspTransmitter(instance, transmitter)
        self._transmitter = transmitter
        self.copies = Copies(instance, self._lsp_transmitter)
        self._database = Database(instance, transmitter, self._lsp_transmitter, watcher)
        self.dynamic = self._database.dynamic
        self._sequences = OwnSequences(instance, self._database, watcher)
        self._early = EarlyCsnps(instance)
        self.limits = DatabaseLimits(instance, self._lsp_transmitter.send_csnps)
        self._snps = SnpReader(instance, self._lsp_transmitter, self._sequences, self.limits)
        self._read_alike = -math.inf
        """Engine time up to which LSPs were decoded under other settings."""

    # Received PDUs

    def receive(self, circuit: Circuit, source: int, kind: PduType, data: bytes) -> None:
        """Receive an LSP (§7.3.15.1); ``kind`` is the result of ``peek_type``.

        In a dense fabric most LSPs arrive many times. A byte-identical copy of a stored LSP is
        acknowledged without being decoded or verified again. All others are decoded and verified
        first. Raises DecodeError for a corrupted or unauthentic one, which changes nothing: it is
        discarded (§7.3.14.2 e)) and not purged (RFC 3719 §8).
        """
        level = _LEVELS[kind]
        database = self._instance.databases.get(level)
        entry = None if database is None else database.get(peek_lsp_id(data))
        # e) 2), §7.3.16.4 b) 2)
        if entry is not None and is_copy(data, entry.raw, purged=entry.purged):
            queue = self._queue_of_sender(circuit, level, source)
            if queue is not None:
                self._process.counters.lsdb["received"] += 1
                self.copies.duplicate(queue, entry)
            return
        # a): header, adjacency, authentication
        raw = read_pdu(data)
        queue = self._queue_of_sender(circuit, level, source)
        if queue is not None:
            self._receive_lsp(queue, source, self._decode(raw, level, entry), raw)

    def _decode(self, raw: RawPdu, level: Level, entry: StoredLsp | None) -> Lsp:
        """Decode and verify an LSP; ``entry`` is the stored one of its id. Raises DecodeError.

        Usually one TLV of a fragment changes at a time: TLVs equal to those of the stored LSP are
        reused, if it was decoded under the present settings.
        """
        settings = self._instance.settings
        former = None
        if entry is not None and not entry.own and not entry.purged:
            former = Former(entry.raw, entry.lsp.tlvs) if entry.since > self._read_alike else None
        lsp = decode_raw(raw, capacity_code=settings.path_capacity_code, former=former)
        assert isinstance(lsp, Lsp)
        verify(raw, lsp, settings.lsp_keys(level), self._process.wall)
        return lsp

    def _receive_lsp(self, queue: SrmSsnQueue, source: int, lsp: Lsp, raw: RawPdu) -> None:
        """Compare an LSP with the stored one (§7.3.15.1 e)), and act on the result."""
        process = self._process
        # no LSP has number 0: in SNPs it denotes an unknown LSP (§7.3.15.2 b) 5))
        if lsp.sequence_number == 0:
            shown = format_lsp_id(lsp.lsp_id)
            kind = kind_of(lsp).label
            process.reject("lsp-sequence", source, interface=queue.circuit, kind=kind, lsp=shown)
            return
        process.counters.lsdb["received"] += 1
        entry = queue.database.get(lsp.lsp_id)
        order = compare(entry, lsp)
        # b) to d), e) 1)
        if entry is None or order is Order.NEWER:
            self._report_malformed(queue, source, lsp)
            self._newer(queue, entry, lsp, raw.data)
        # e) 2), §7.3.16.4 b) 2)
        elif order is Order.SAME:
            self.copies.duplicate(queue, entry)
        # e) 3), §7.3.16.4 b) 3): set SRM, clear SSN; the sender gets our newer instance
        elif order is Order.OLDER:
            process.counters.lsdb["older"] += 1
            queue.answer(entry, process.now)
        # §7.3.16.2
        else:
            self._confused(queue, entry)
        self._lsp_transmitter.touch(queue)

    def _report_malformed(self, queue: SrmSsnQueue, source: int, lsp: Lsp) -> None:
        """Count and log the malformed TLVs of an LSP that is stored all the same (RFC 8918 §4)."""
        if types := malformed_types(lsp.tlvs):
            self._process.reject(
                "malformed-tlv",
                source,
                interface=queue.circuit,
                kind=kind_of(lsp).label,
                lsp=format_lsp_id(lsp.lsp_id),
                tlvs=types,
                effect="the LSP is stored without them",
            )

    def receive_csnp(self, circuit: Circuit, source: int, csnp: Csnp) -> None:
        """Process a CSNP (§7.3.15.2)."""
        level = Level(csnp.level)
        if self._lsp_transmitter.find(circuit, level) is None and self._early.keep(circuit, csnp):
            return
        queue = self._queue_of_sender(circuit, level, source)
        if queue is not None and self._is_neighbor(circuit, csnp):
            self._snps.read(queue, csnp)

    def receive_psnp(self, circuit: Circuit, source: int, psnp: Psnp) -> None:
        """Process a PSNP: acknowledgments and requests (§7.3.15.2)."""
        level = Level(psnp.level)
        queue = self._queue_of_sender(circuit, level, source)
        if queue is None or not self._is_neighbor(circuit, psnp):
            return
        # a) 4): on a broadcast circuit a system that is not the DIS discards PSNPs
        if queue.reliable or circuit.lan[level].is_dis:
            self._snps.read(queue, psnp)

    # Circuits

    def adjacency_up(self, circuit: Circuit, level: Level) -> None:
        """Begin to synchronize with a neighbor (ISO 10589 §7.3.17).

        On a point-to-point circuit the LSPs wait a moment for the CSNPs of the other side, which
        make most of them unnecessary. On a LAN, ISO 10589 relies on the next CSNPs of the DIS,
        perhaps ten seconds later. Here the DIS sends them soon, and the others send their own LSPs.
        """
        queue = self._lsp_transmitter.open(circuit, level)
        now = self._process.now
        # §7.3.17 a): set SRM on all LSPs; b): send a complete set of CSNPs
        if queue.reliable:
            queue.set_srm_all()
            queue.begin_csnp()
            queue.held_until = now + self._lsp_transmitter.sync_hold()
            for csnp in self._early.take(circuit, level):
                self._snps.read(queue, csnp)
        elif circuit.lan[level].is_dis:
            queue.quick_csnps = _QUICK_SETS
            queue.csnp_due = min(queue.csnp_due, now + _NEW_ON_LAN)
        else:
            mine = self._instance.system_id
            for entry in queue.database.between(lsp_id(mine), lsp_id(mine, 0xFF, 0xFF)):
                queue.set_srm(entry)
        self._lsp_transmitter.touch(queue)
        self.dynamic.adjacencies_changed(level)

    def neighbor_restarted(self, circuit: Circuit, level: Level) -> None:
        """RFC 8706 §3.2.1 c): a complete set of CSNPs, and SRM for all LSPs."""
        queue = self._lsp_transmitter.open(circuit, level)
        for entry in queue.database.ordered():
            queue.set_srm(entry)
        queue.begin_csnp()
        self._lsp_transmitter.touch(queue)

    def adjacency_down(self, circuit: Circuit, level: Level) -> None:
        """Clear the flags, unless another neighbor remains on the circuit."""
        self._early.take(circuit, level)
        if not circuit.broadcast or not circuit.adjacencies(level):
            self._lsp_transmitter.close(circuit, level)
        self.dynamic.adjacencies_changed(level)

    def dis_changed(self, circuit: Circuit, level: Level) -> None:
        """Start or stop sending CSNPs on a LAN (§7.3.15.3)."""
        queue = self._lsp_transmitter.find(circuit, level)
        if queue is None or queue.reliable:
            return
        if circuit.lan[level].is_dis:
            queue.csnp_due = self._process.now
            queue.quick_csnps = _QUICK_SETS
            self._lsp_transmitter.touch(queue)
        else:
            queue.end_csnp()

    def circuit_removed(self, circuit: Circuit) -> None:
        """The circuit was removed or is down."""
        for level in Level:
            self._early.take(circuit, level)
            self._lsp_transmitter.close(circuit, level)
            self.dynamic.adjacencies_changed(level)
        self._transmitter.forget(circuit)

    # Our own LSPs

    def next_sequence(self, level: Level, identifier: LspId) -> int | None:
        """The sequence number of the next instance of an LSP of ours.

        One more than the highest ever used or received (§7.3.16.1). None: the numbers are
        exhausted; the LSP has been purged, and ``own_refresh`` is called when it may exist again.
        """
        return self._sequences.next(level, identifier)

    def install_own(self, level: Level, lsp: Lsp) -> StoredLsp:
        """Encode, sign, store and flood an LSP of ours.

        Its sequence number is that of ``next_sequence``, its checksum is filled in. Raises
        ValueError if the number does not fit into 32 bits or the LSP cannot be encoded.
        """
        self._sequences.used(level, lsp.lsp_id, lsp.sequence_number)
        self._process.counters.lsdb["originated"] += 1
        return self._database.install_generated(level, lsp)

    def purge_own(self, level: Level, identifier: LspId) -> StoredLsp | None:
        """Purge an LSP of ours, or one that only others still have; None: there is none."""
        entry = self._instance.databases[level].get(identifier)
        highest = self._sequences.highest(level, identifier)
        done = entry is not None and entry.purged and entry.sequence_number >= highest
        if highest == 0 or done:
            return None
        return self._database.purge(level, identifier, highest)

    def settings_changed(self, before: IsisSettings) -> None:
        """New settings: other keys or lifetimes require our LSPs to be generated again."""
        after = self._instance.settings
        self.dynamic.settings_changed()
        if before.path_capacity_code != after.path_capacity_code:
            self._read_alike = self._process.now
        if (before.lsp_authentication, before.lsp_lifetime, before.lsp_refresh_interval) != (
            after.lsp_authentication,
            after.lsp_lifetime,
            after.lsp_refresh_interval,
        ):
            self._database.refresh_own()

    def awaited(self, level: Level | None = None) -> int:
        """LSPs requested from neighbors and not received, summed over circuits; start-up waits.

        None: in all levels.
        """
        queues = (q for o in self._lsp_transmitter.circuits.values() for q in o.levels.values())
        return sum(len(queue.requests) for queue in queues if level in (None, queue.level))

    def waiting(self) -> dict[int, int]:
        """LSPs that are still to be sent or acknowledged, by ifindex, in all levels."""
        circuits = self._lsp_transmitter.circuits
        return {
            ifindex: sum(queue.waiting for queue in tx.levels.values())
            for ifindex, tx in circuits.items()
        }

    def flush(self, *, force: bool = False) -> None:
        """Send what is due; ``force``: also all pending LSPs, on shutdown."""
        self._lsp_transmitter.flush(force=force)

    # Decisions

    def _queue_of_sender(self, circuit: Circuit, level: Level, source: int) -> SrmSsnQueue | None:
        """The queue toward the sender of a PDU; None, and counted, without an adjacency."""
        # §7.3.15.1 a) 6), §7.3.15.2 a): an adjacency in this level; on a LAN with this SNPA
        queue = self._lsp_transmitter.find(circuit, level)
        if queue is not None and circuit.broadcast:
            lan = circuit.lan.get(level)
            adjacency = None if lan is None else lan.adjacencies.get(source)
            if adjacency is None or not adjacency.up:
                queue = None
        if queue is None:
            self._process.counters.errors["no-adjacency"] += 1
        elif queue.reliable:
            # The neighbor sends LSPs or SNPs: its CSNPs came before, were lost, or follow closely.
            queue.held_until = min(queue.held_until, self._process.now + SYNC_SOON)
        return queue

    def _is_neighbor(self, circuit: Circuit, snp: Csnp | Psnp) -> bool:
        """Whether an SNP is from the neighbor of a point-to-point circuit (§7.3.15.2 a))."""
        adjacency = circuit.adjacency
        if circuit.broadcast or (
            adjacency is not None and adjacency.system_id == snp.source_id >> 8
        ):
            return True
        self._process.counters.errors["no-adjacency"] += 1
        return False

    def _newer(self, queue: SrmSsnQueue, entry: StoredLsp | None, lsp: Lsp, raw: bytes) -> None:
        """An LSP that is unknown, or newer than the stored one (§7.3.15.1 b) to e) 1))."""
        purge = lsp.remaining_lifetime == 0
        counters = self._process.counters.lsdb
        if system_of(lsp.lsp_id) == self._instance.system_id:
            if self._instance.keeps_lsps and not purge:
                # RFC 8706 §3.4.1: an LSP of ours from before the restart is stored as any other
                self._sequences.record(queue.level, lsp.lsp_id, lsp.sequence_number)
                self._database.install_received(queue, lsp, raw)
                return
            # c): an LSP of ours that we do not have is purged; d), §7.3.16.4 c): of one that we
            # have, or of its purge, a newer instance is generated
            if not purge or (entry is not None and not entry.purged):
                number = lsp.sequence_number
                self._sequences.received(queue.level, lsp.lsp_id, number, purge=purge)
                return
            # its purge, where we have none or only a purge: as for LSPs of other systems
            self._sequences.record(queue.level, lsp.lsp_id, lsp.sequence_number)
        # b), §7.3.16.4 a): the purge of an unknown LSP is acknowledged, neither stored nor flooded
        if entry is None and purge:
            counters["purges-of-unknown"] += 1
            self._acknowledge_unknown(queue, lsp)
            return
        if entry is None and not self.limits.admits(queue.circuit, queue.level, lsp.lsp_id):
            self.limits.ignore(queue.circuit, queue.level, lsp.lsp_id)
            self._acknowledge_unknown(queue, lsp)
            return
        # e) 1), §7.3.16.4 b) 1)
        counters["purged" if purge else "installed"] += 1
        self._database.install_received(queue, lsp, raw)

    def _confused(self, queue: SrmSsnQueue, entry: StoredLsp) -> None:
        """§7.3.16.2: equal sequence numbers, different contents (RFC 3719 §10).

        Of an LSP of ours a newer instance is generated, one of another system is purged.
        """
        self._process.counters.lsdb["confused"] += 1
        if entry.own:
            self._sequences.received(queue.level, entry.lsp_id, entry.sequence_number)
        else:
            self._database.purge(queue.level, entry.lsp_id, entry.sequence_number)

    def _acknowledge_unknown(self, queue: SrmSsnQueue, lsp: Lsp) -> None:
        """Acknowledge an LSP that is not stored."""
        if queue.reliable:
            header = LspEntry(lsp.lsp_id, lsp.sequence_number, lsp.remaining_lifetime, lsp.checksum)
            self._lsp_transmitter.acknowledge(queue, lsp.lsp_id, header)
        else:
            queue.received(lsp.lsp_id)
