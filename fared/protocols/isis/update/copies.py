"""Copies of LSPs on point-to-point circuits, which nearly all LSPs of a dense fabric are.

A router with 64 neighbors receives an LSP 64 times. A byte-identical copy of what is stored is
acknowledged here without being decoded or verified again, in a loop with few calls: what it takes
for a copy decides how many changes a second a router can follow. Deferrals that copies end are
cleared for all circuits of an LSP together, before anything else looks at them. Everything else,
and what a LAN needs, is left to ``flooding``, step by step.

A fast path beside ``Flooding.receive``: tests/isis/test_copies.py proves them equal; row ``IS-IS:
copies of LSPs``, and ``_run`` beside ``_take_one``, row ``IS-IS: copies that came together``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final

from fared.protocols.igp.events import PacketReceived, PacketsReceived, Received, each
from fared.protocols.isis.ids import Level, LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.codec import is_copy, peek_lsp_id
from fared.protocols.isis.pdu.header import TYPE_AT, TYPE_BITS, TYPE_MASK
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.update.circuit_tx import SrmSsnQueue
from fared.protocols.isis.update.lsp_transmitter import LspTransmitter

SYNC_SOON = 0.05
"""Seconds for which LSPs wait for the CSNPs of a neighbor that sends other PDUs already."""
_KINDS: Final = {int(kind): kind.label for kind in (PduType.L1_LSP, PduType.L2_LSP)}
_Payloads = tuple[bytes, ...]
_LEVELS: Final = {int(PduType.L1_LSP): Level.ONE, int(PduType.L2_LSP): Level.TWO}


class Copies:
    """Recognizes copies of stored LSPs, and acknowledges them."""

    def __init__(self, instance: Instance, lsp_transmitter: LspTransmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._lsp_transmitter = lsp_transmitter
        self._known: dict[bytes, tuple[int, StoredLsp]] = {}
        """What payloads are copies of, with their PDU type, until another packet is passed on."""
        self._came: dict[int, dict[bytes, int]] = {}
        """Payloads, by PDU type, that have no flags of a circuit on which they came: its bit.

        What follows from that is done for all circuits together, in ``_settle``.
        """
        self._came_together: dict[int, dict[_Payloads, int]] = {}
        """The same of payloads that came together."""
        self._runs: dict[_Payloads, tuple[int, frozenset[LspId]]] = {}
        """Payloads that came together: their PDU type if all are copies, else 0; their LSPs."""
        self._left: Iterator[PacketReceived] = iter(())
        """Packets that an exception has left of those that came together."""

    def take(self, packets: Iterable[Received], others: Callable[[PacketReceived], None]) -> int:
        """Process copies, and pass on all other packets in their order; return how many copies.

        Copies that one neighbor sent one after another come together; neighbors that sent the same
        are one entry of ``_runs``.
        """
        taken, counts = 0, self._process.counters.lsdb
        try:
            for one in chain(self._left, packets):
                if isinstance(one, PacketReceived):
                    taken += self._take_one(one, others)
                elif number := self._run(one):
                    taken += number
                else:
                    self._left = each((one,))
                    for packet in self._left:
                        taken += self._take_one(packet, others)
        finally:
            self._forget()
            if taken:
                counts["received"] += taken
                counts["duplicates"] += taken
        return taken

    def _run(self, packets: PacketsReceived) -> int:
        """Process copies of one neighbor if they have no flags of its own; return how many.

        Zero: they are to be processed one by one.
        """
        payloads = packets.payloads
        known = self._runs.get(payloads)
        if known is None:
            known = self._runs[payloads] = self._recognized(payloads)
        kind, lsps = known
        queue = self._queue(packets, kind) if kind else None
        if queue is None or not (_is_plain(queue) or _are_plain(queue, lsps)):
            return 0
        came = self._came_together.setdefault(kind, {})
        came[payloads] = came.get(payloads, 0) | queue.bit
        if queue.shared.acks_due == math.inf:  # this is the first one
            self._lsp_transmitter.begin_round(queue)
        number = len(payloads)
        queue.circuit.counters.received[_KINDS[kind]] += number
        return number

    def _recognized(self, payloads: _Payloads) -> tuple[int, frozenset[LspId]]:
        """The PDU type of payloads if all are copies, else 0; the LSPs that they are copies of."""
        known = self._known
        found = [known.get(data) or self._find(data) for data in payloads]
        kinds = {0 if one is None else one[0] for one in found}
        lsps = frozenset([one[1].lsp_id for one in found if one is not None])
        return kinds.pop() if len(kinds) == 1 else 0, lsps

    def _take_one(self, packet: PacketReceived, others: Callable[[PacketReceived], None]) -> int:
        """Process a copy, or pass another packet on; return how many copies."""
        data = packet.payload
        found = self._find(data)
        queue = None if found is None else self._queue(packet, found[0])
        if found is None or queue is None:
            self._forget()
            others(packet)
            return 0
        kind = found[0]
        queue.circuit.counters.received[_KINDS[kind]] += 1
        if not (_is_plain(queue) or _are_plain(queue, {found[1].lsp_id})):
            self._settle()
            self._same(queue, found[1])
            return 1
        came = self._came.setdefault(kind, {})
        came[data] = came.get(data, 0) | queue.bit
        if queue.shared.acks_due == math.inf:
            self._lsp_transmitter.begin_round(queue)
        return 1

    def _forget(self) -> None:
        """Finish pending copies before the LSPs they refer to can change."""
        if self._known or self._runs:
            self._settle()
            self._known.clear()
            self._runs.clear()

    def _find(self, data: bytes) -> tuple[int, StoredLsp] | None:
        """The LSP of which received bytes are a copy, with its PDU type; None: of none."""
        found = self._known.get(data)
        if found is not None:
            return found
        kind = data[TYPE_AT] & TYPE_MASK if len(data) > TYPE_AT else 0
        level = _LEVELS.get(kind)
        database = None if level is None else self._instance.databases.get(level)
        if database is None:
            return None
        entry = database.get(peek_lsp_id(data))
        if entry is None or not (
            data == entry.raw or is_copy(data, entry.raw, purged=entry.purged)
        ):
            return None
        found = self._known[data] = kind, entry
        return found

    def _queue(self, packet: Received, kind: int) -> SrmSsnQueue | None:
        """The queue toward the sender of copies; None: they are processed step by step."""
        queue = self._lsp_transmitter.arrivals.get(packet.ifindex << TYPE_BITS | kind)
        # on a LAN other rules apply; of our own multicast nothing is processed
        if queue is None or (
            packet.source and packet.source == queue.circuit.link.hardware_address
        ):
            return None
        # the neighbor's CSNPs came before, were lost, or follow closely
        if queue.comparing:
            queue.held_until = min(queue.held_until, self._process.now + SYNC_SOON)
        return queue

    def _same(self, queue: SrmSsnQueue, entry: StoredLsp) -> None:
        """§7.3.15.1 e) 2), §7.3.16.4 b) 2) on a point-to-point circuit."""
        lsp_id, shared, bit = entry.lsp_id, queue.shared, queue.bit
        # i: clear SRM
        shared.clear_deferral(lsp_id, bit, self._process.now)
        queue.requests.pop(lsp_id, None)
        # ii: set SSN. Deviation: not if our copy has been sent, since it acknowledges the
        # neighbor's. If it was lost, the neighbor sends its copy again.
        if queue.clear_srm(entry) or shared.acks.get(lsp_id, 0) & bit:
            return
        self._lsp_transmitter.acknowledge(queue, lsp_id)

    def _settle(self) -> None:
        """The same for all circuits without flags of their own on which copies came.

        Clear the deferrals; set SSN, and count how many LSPs have it on each circuit.
        """
        for kind, together in self._came_together.items():
            came = self._came.setdefault(kind, {})
            for payloads, bits in together.items():
                for data in payloads:
                    came[data] = came.get(data, 0) | bits
        self._came_together.clear()
        for kind, came in self._came.items():
            self._settle_level(_LEVELS[kind], came)
        self._came.clear()

    def _settle_level(self, level: Level, came: dict[bytes, int]) -> None:
        now, fresh = self._process.now, dict[int, int]()
        shared = self._lsp_transmitter.shared[level]
        for data, circuits in came.items():
            lsp_id = self._known[data][1].lsp_id
            if lsp_id in shared.deferred:
                shared.clear_deferral(lsp_id, circuits, now)
            before = shared.acks.get(lsp_id, 0)
            shared.acks[lsp_id] = before | circuits
            if new := circuits & ~before:
                fresh[new] = fresh.get(new, 0) + 1
        most = self._lsp_transmitter.acks_at_once
        for new, number in fresh.items():  # mostly one: neighbors send the same
            left = new
            for queue in self._lsp_transmitter.active(level):
                if queue.bit & left:
                    queue.ssn += number
                    if queue.ssn >= most:
                        shared.acks_full = True
                    left ^= queue.bit
                    if not left:
                        break

    def duplicate(self, queue: SrmSsnQueue, entry: StoredLsp) -> None:
        """Process an LSP that equals the stored one, though perhaps not in all its bytes."""
        self._process.counters.lsdb["duplicates"] += 1
        if queue.reliable:
            self._same(queue, entry)
        else:
            queue.clear_srm(entry)
            queue.requests.pop(entry.lsp_id, None)


def _is_plain(queue: SrmSsnQueue) -> bool:
    """Whether a circuit has no flags of its own: all are in ``shared_flags``."""
    return not (queue.pending or queue.unacknowledged or queue.requests or queue.unlisted)


def _are_plain(queue: SrmSsnQueue, lsps: AbstractSet[LspId]) -> bool:
    """Whether a circuit has flags of its own for none of these LSPs.

    A router that is late sends some LSPs to all its neighbors, and others come meanwhile. Each LSP
    is looked up: to iterate over flags also visits all that were cleared (their places in a dict).
    """
    own: tuple[dict[LspId, Any], ...]
    own = queue.pending, queue.unacknowledged, queue.requests, queue.unlisted
    return not any(flags and any(map(flags.__contains__, lsps)) for flags in own)
