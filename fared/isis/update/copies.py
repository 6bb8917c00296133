"""Copies of LSPs on point-to-point circuits, which nearly all LSPs of a dense fabric are.

A router with 64 neighbors receives an LSP 64 times. A byte-identical copy of what is stored is
acknowledged here without being decoded or verified again, in a loop with few calls: what it takes
for a copy decides how many changes a second a router can follow. Everything else, and what a LAN
needs, is left to ``flooding``, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from fared.core.igp import PacketReceived
from fared.isis.circuit import Circuit
from fared.isis.ids import Level, LspId
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.codec import is_copy
from fared.isis.pdu.header import LSP_ID, TYPE_AT, TYPE_MASK
from fared.isis.pdu.model import PduType
from fared.isis.update.circuit_tx import SrmSsnQueue
from fared.isis.update.lsp_transmitter import LspTransmitter

SYNC_SOON = 0.05
"""Seconds for which LSPs wait for the CSNPs of a neighbor that sends other PDUs already."""
_LEVELS = {int(PduType.L1_LSP): Level.ONE, int(PduType.L2_LSP): Level.TWO}


class Copies:
    """Recognizes copies of stored LSPs, and acknowledges them."""

    def __init__(self, instance: Instance, lsp_transmitter: LspTransmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._lsp_transmitter = lsp_transmitter

    def take(
        self, packets: Iterable[PacketReceived], others: Callable[[PacketReceived], None]
    ) -> int:
        """Process copies, and pass on all other packets in their order; return how many copies."""
        soon, most = self._process.now + SYNC_SOON, self._lsp_transmitter.acks_at_once
        circuits, same, from_bytes = self._lsp_transmitter.circuits, self._same, int.from_bytes
        taken = dict.fromkeys(Level, 0)
        try:
            for packet in packets:
                data, tx = packet.payload, circuits.get(packet.ifindex)
                level = _LEVELS.get(data[TYPE_AT] & TYPE_MASK) if len(data) > TYPE_AT else None
                queue = tx.levels.get(level) if tx is not None and level is not None else None
                # on a LAN other rules apply; of our own multicast nothing is processed
                if queue is None or not queue.reliable or _is_own(packet, queue.circuit):
                    others(packet)
                    continue
                entry = queue.database.entries.get(LspId(from_bytes(data[LSP_ID], "big")))
                if entry is None or not is_copy(data, entry.raw, purged=entry.purged):
                    others(packet)
                    continue
                # the neighbor's CSNPs came before, were lost, or follow closely
                if queue.comparing:
                    queue.held_until = min(queue.held_until, soon)
                same(queue, entry, most)
                taken[queue.level] += 1
        finally:
            self._count(taken)
        return sum(taken.values())

    def _same(self, queue: SrmSsnQueue, entry: StoredLsp, most: float) -> None:
        """§7.3.15.1 e) 2), §7.3.16.4 b) 2) on a point-to-point circuit.

        ``most``: acknowledgments that do not wait.
        """
        lsp_id, shared, bit = entry.lsp_id, queue.shared, queue.bit
        # i: clear SRM
        if lsp_id in shared.deferred:
            shared.clear_deferral(lsp_id, bit, self._process.now)
        if queue.pending or queue.unacknowledged or queue.requests or queue.unlisted:
            queue.requests.pop(lsp_id, None)
            # ii: set SSN. Deviation: not if our copy has been sent, since it acknowledges the
            # neighbor's. If it was lost, the neighbor sends its copy again.
            if queue.clear_srm(entry):
                return
        known = shared.acks.get(lsp_id, 0)
        if known & bit:
            return
        shared.acks[lsp_id] = known | bit
        queue.ssn += 1
        if queue.ssn >= most:
            shared.acks_full = True
        if shared.acks_due == math.inf:
            self._lsp_transmitter.begin_round(queue)

    def duplicate(self, queue: SrmSsnQueue, entry: StoredLsp) -> None:
        """Process an LSP that equals the stored one, though perhaps not in all its bytes."""
        self._process.counters.lsdb["duplicates"] += 1
        if queue.reliable:
            self._same(queue, entry, self._lsp_transmitter.acks_at_once)
        else:
            queue.clear_srm(entry)
            queue.requests.pop(entry.lsp_id, None)

    def _count(self, taken: dict[Level, int]) -> None:
        counters = self._process.counters
        for level, number in taken.items():
            if not number:
                continue
            kind = PduType.L1_LSP if level is Level.ONE else PduType.L2_LSP
            counters.packets["received", kind.label] += number
            counters.lsdb["received"] += number
            counters.lsdb["duplicates"] += number


def _is_own(packet: PacketReceived, circuit: Circuit) -> bool:
    """Whether a packet is our own multicast."""
    return bool(packet.source) and packet.source == circuit.link.hardware_address
