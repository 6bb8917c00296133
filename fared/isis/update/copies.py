"""Copies of LSPs on point-to-point circuits, which nearly all LSPs of a dense fabric are.

A router with 64 neighbors receives an LSP 64 times. A byte-identical copy of what is stored is
acknowledged here without being decoded or verified again, in a loop with few calls: what it takes
for a copy decides how many changes a second a router can follow. Deferrals that copies end are
cleared for all circuits of an LSP together, before anything else looks at them. Everything else,
and what a LAN needs, is left to ``flooding``, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from fared.core.igp import PacketReceived
from fared.isis.ids import LspId
from fared.isis.instance import Instance
from fared.isis.lsdb import StoredLsp
from fared.isis.pdu.codec import is_copy
from fared.isis.pdu.header import LSP_ID, TYPE_AT, TYPE_BITS, TYPE_MASK, UP_TO_LSP_ID
from fared.isis.pdu.model import PduType
from fared.isis.update.circuit_tx import SrmSsnQueue
from fared.isis.update.lsp_transmitter import LspTransmitter

SYNC_SOON = 0.05
"""Seconds for which LSPs wait for the CSNPs of a neighbor that sends other PDUs already."""
_KINDS: Final = {int(kind): kind.label for kind in (PduType.L1_LSP, PduType.L2_LSP)}


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
        find, same, from_bytes = self._lsp_transmitter.arrivals.get, self._same, int.from_bytes
        known: dict[bytes, StoredLsp] = {}
        taken = dict.fromkeys(_KINDS, 0)
        try:
            for packet in packets:
                data, source, entry = packet.payload, packet.source, None
                kind = data[TYPE_AT] & TYPE_MASK if len(data) > TYPE_AT else 0
                queue = find(packet.ifindex << TYPE_BITS | kind)
                # on a LAN other rules apply; of our own multicast nothing is processed
                if queue is not None and not (
                    source and source == queue.circuit.link.hardware_address
                ):
                    place = data[UP_TO_LSP_ID]
                    entry = known.get(place)
                    if entry is None:
                        lsp_id = LspId(from_bytes(data[LSP_ID], "big"))
                        entry = queue.database.entries.get(lsp_id)
                if (
                    queue is None
                    or entry is None
                    or not (data == entry.raw or is_copy(data, entry.raw, purged=entry.purged))
                ):
                    self._settle()
                    known.clear()
                    others(packet)
                    continue
                known[place] = entry
                # the neighbor's CSNPs came before, were lost, or follow closely
                if queue.comparing:
                    queue.held_until = min(queue.held_until, soon)
                same(queue, entry, most)
                taken[kind] += 1
        finally:
            self._settle()
            self._count(taken)
        return sum(taken.values())

    def _settle(self) -> None:
        """Clear the deferrals of LSPs that copies have shown."""
        for shared in self._lsp_transmitter.shared.values():
            if shared.shown:
                shared.clear_shown(self._process.now)

    def _same(self, queue: SrmSsnQueue, entry: StoredLsp, most: float) -> None:
        """§7.3.15.1 e) 2), §7.3.16.4 b) 2) on a point-to-point circuit.

        ``most``: acknowledgments that do not wait.
        """
        lsp_id, shared, bit = entry.lsp_id, queue.shared, queue.bit
        # i: clear SRM
        if lsp_id in shared.deferred:
            shared.shown[lsp_id] = shared.shown.get(lsp_id, 0) | bit
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
            self._settle()
        else:
            queue.clear_srm(entry)
            queue.requests.pop(entry.lsp_id, None)

    def _count(self, taken: dict[int, int]) -> None:
        counters = self._process.counters
        for kind, number in taken.items():
            if number:
                counters.packets["received", _KINDS[kind]] += number
                counters.lsdb["received"] += number
                counters.lsdb["duplicates"] += number
