"""Sends what the SRM and SSN flags of each circuit ask for (ISO 10589 §7.3.15.3 to §7.3.15.5).

LSPs leave in paced bursts: the first one on a circuit at once, the next ones ``flood_pacing``
later, so that LSPs arriving over many links within milliseconds are sent once, and those that the
neighbor sends meanwhile not at all. §7.3.15.5 has a minimum interval instead. Acknowledgments are
collected for ``ack_delay``, the same on all circuits (``acknowledgments``); ``requests`` and
``csnps`` send the other SNPs. ``pacing`` limits bursts, and LSPs that are unacknowledged.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import islice
from typing import Final

from fared.protocols.isis.circuit import Circuit
from fared.protocols.isis.ids import Level, LspId
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.pdu.header import TYPE_BITS
from fared.protocols.isis.pdu.model import PduType
from fared.protocols.isis.pdu.tlvs import LspEntry
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.acknowledgments import Acknowledgments
from fared.protocols.isis.update.circuit_tx import CircuitTx, SrmSsnQueue
from fared.protocols.isis.update.csnps import CsnpSender
from fared.protocols.isis.update.pacing import Pace
from fared.protocols.isis.update.requests import LspRequests
from fared.protocols.isis.update.shared_flags import SharedFlags

SYNC_HOLD = 0.25
"""Seconds for which LSPs wait for the next CSNP of the neighbor's set on a new adjacency: of each
of few."""
_SYNCED_AT_ONCE = 8
_OFFERED_AT_ONCE = 4
"""Neighbors that are sent at the same time all that their CSNPs have not listed."""
_OFFER_AGAIN = 0.25
"""Seconds between two looks whether others still are."""
_SLACK = 0.1
_LSP_TYPES: Final = {Level.ONE: int(PduType.L1_LSP), Level.TWO: int(PduType.L2_LSP)}


def _arrival(ifindex: int, kind: int) -> int:
    """The key of a queue: an interface, and the PDU type of the LSPs of its level."""
    return ifindex << TYPE_BITS | kind


class LspTransmitter:
    """The circuits with something to send, each with one timer for its next event."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter
        self._dirty: dict[int, CircuitTx] = {}
        self.shared = {level: SharedFlags() for level in instance.databases}
        """Flags that LSPs of a level have on many circuits."""
        self._acks = Acknowledgments(instance, transmitter)
        self._csnps = CsnpSender(instance, transmitter)
        self._requests = LspRequests(instance, transmitter)
        self._active: dict[Level, list[SrmSsnQueue]] = {}
        self.circuits: dict[int, CircuitTx] = {}
        """By ifindex."""
        self.arrivals: dict[int, SrmSsnQueue] = {}
        """The queues of point-to-point circuits: by interface and PDU type (``_arrival``)."""

    def wake(self, tx: CircuitTx) -> None:
        """Flush this circuit with the next flush."""
        self._dirty[tx.circuit.ifindex] = tx

    def active(self, level: Level) -> list[SrmSsnQueue]:
        """The queues of a level by ifindex. Not to be changed."""
        known = self._active.get(level)
        if known is None:
            ordered = [tx.levels for _, tx in sorted(self.circuits.items())]
            known = self._active[level] = [levels[level] for levels in ordered if level in levels]
        return known

    def sync_hold(self) -> float:
        """How long the LSPs of a new adjacency wait for the next CSNP of the neighbor, seconds.

        The CSNPs of many neighbors that come up together wait behind each other's packets. Sent
        without them, the whole database would go to each neighbor, and take the time in which the
        holding times of others expire.
        """
        now = self._process.now
        held = sum(
            queue.held_until > now for tx in self.circuits.values() for queue in tx.levels.values()
        )
        return SYNC_HOLD * max(1.0, held / _SYNCED_AT_ONCE)

    def open(self, circuit: Circuit, level: Level) -> SrmSsnQueue:
        """Create the queue of a level, or find it."""
        tx = self.circuits.get(circuit.ifindex)
        if tx is None:
            tx = self.circuits[circuit.ifindex] = CircuitTx(circuit)
        queue = tx.levels.get(level)
        if queue is None:
            database = self._instance.databases[level]
            shared = self.shared[level]
            reliable = not circuit.broadcast
            queue = SrmSsnQueue(circuit, level, database, shared, shared.join(), reliable)
            tx.levels[level] = queue
            self._active.clear()
            if reliable:
                self.arrivals[_arrival(circuit.ifindex, _LSP_TYPES[level])] = queue
        self.wake(tx)
        return queue

    def find(self, circuit: Circuit, level: Level) -> SrmSsnQueue | None:
        """The queue of a level, None without an adjacency."""
        tx = self.circuits.get(circuit.ifindex)
        return None if tx is None else tx.levels.get(level)

    def close(self, circuit: Circuit, level: Level) -> None:
        """Drop the queue of a level and its flags."""
        tx = self.circuits.get(circuit.ifindex)
        queue = None if tx is None else tx.levels.pop(level, None)
        if tx is None or queue is None:
            return
        queue.shared.leave(queue.bit)
        self._active.clear()
        self.arrivals.pop(_arrival(circuit.ifindex, _LSP_TYPES[level]), None)
        if not tx.levels:
            self._process.timers.cancel(tx.timer)
            del self.circuits[circuit.ifindex]
            self._dirty.pop(circuit.ifindex, None)

    def send_csnps(self, level: Level) -> None:
        """Send a complete set of CSNPs to each neighbor on a point-to-point circuit."""
        for queue in self.active(level):
            if queue.reliable:
                queue.begin_csnp()
                self.touch(queue)

    def touch(self, queue: SrmSsnQueue) -> None:
        """A flag of this level was set or cleared: consider its circuit at the next flush."""
        self.wake(self.circuits[queue.circuit.ifindex])

    def acknowledge(
        self, queue: SrmSsnQueue, lsp_id: LspId, received: LspEntry | None = None
    ) -> None:
        """Set SSN: acknowledge the stored LSP, or a received one that is not stored."""
        queue.set_ssn(lsp_id, received)
        shared = queue.shared
        if queue.ssn >= self._acks.at_once:
            shared.acks_full = True
        if shared.acks_due == math.inf:
            self.begin_round(queue)

    def begin_round(self, queue: SrmSsnQueue) -> None:
        """Send the acknowledgments of all circuits a moment later."""
        delay = self._instance.settings.ack_delay
        within = min(delay, queue.circuit.settings.psnp_interval)
        queue.shared.acks_due = self._process.now + within
        self.arm_shared(queue.level)

    @property
    def acks_at_once(self) -> float:
        """Acknowledgments of a circuit that do not wait."""
        return self._acks.at_once

    def arm_shared(self, level: Level) -> None:
        """Arm one timer for the acknowledgments and deferred LSPs of all circuits."""
        shared, timers = self.shared[level], self._process.timers
        wanted = min(shared.acks_due, shared.deferred_due)
        timer = shared.timer
        if timer is not None and timer.active:
            if timer.deadline == wanted:
                return
            timers.cancel(timer)
        shared.timer = timers.arm(wanted, _wake) if wanted < math.inf else None

    def flush(self, *, force: bool = False) -> None:
        """Send what is due, and arm timers for the rest; ``force``: leave no LSP waiting."""
        for level, shared in self.shared.items():
            if self._process.now >= shared.deferred_due:
                self._end_deferral(level, shared)
        if self._dirty or force:
            dirty, self._dirty = self.circuits if force else self._dirty, {}
            for _, tx in sorted(dirty.items()):
                self._flush_circuit(tx, force=force)
        for level, shared in self.shared.items():
            if shared.acks_full or self._process.now >= shared.acks_due:
                self._acks.send(shared, self.active(level))
                self.arm_shared(level)

    def _end_deferral(self, level: Level, shared: SharedFlags) -> None:
        """Send the LSPs that are due, and that the neighbors have not shown to have."""
        queues = self.active(level)
        for lsp_id, circuits in shared.end_deferral(self._process.now):
            for queue in queues:
                if queue.bit & circuits:
                    queue.pending[lsp_id] = None
                    shared.idle &= ~queue.bit
                    self.touch(queue)
                    self._process.counters.lsdb["deferred-sent"] += 1
        self.arm_shared(level)

    def _flush_circuit(self, tx: CircuitTx, *, force: bool) -> None:
        queues = [tx.levels[level] for level in sorted(tx.levels)]
        for queue in queues:
            self._schedule(queue)
        if force:
            for queue in queues:
                self._send_lsps(queue, len(queue.pending))
        elif self._process.now >= tx.paced_until:
            self._burst(tx, queues)
        for queue in queues:
            self._requests.send(queue)
        self._arm(tx, queues)

    def _schedule(self, queue: SrmSsnQueue) -> None:
        """Begin what is due: a set of CSNPs, retransmissions."""
        now = self._process.now
        # §7.3.15.3: the complete SNP interval has expired; only the DIS of a LAN has one
        if now >= queue.csnp_due and queue.csnp_next is None:
            queue.begin_csnp()
            queue.csnp_due = now + self._csnps.interval(queue)
        if queue.unlisted and now >= max(queue.held_until, queue.offer_at):
            self._offer(queue)
        # §7.3.15.5: SRM is still set after the retransmission interval
        horizon = now + queue.circuit.settings.lsp_retransmit_interval * _SLACK
        if next(iter(queue.unacknowledged.values()), math.inf) > now:
            return
        # All have the same interval, so the dict is in the order of due times.
        for lsp_id, due in list(queue.unacknowledged.items()):
            if due > horizon:
                break
            del queue.unacknowledged[lsp_id]
            queue.pending[lsp_id] = None
            self._process.counters.lsdb["retransmitted"] += 1

    def _offer(self, queue: SrmSsnQueue) -> None:
        """Send the neighbor all that its CSNPs did not list, unless too many are sent as much.

        A router that has no time to read the CSNPs of its neighbors would take still more to send
        its database to all of them, and lose the adjacencies meanwhile. What is new since then, and
        what CSNPs show to be missing, is sent at once.
        """
        offering = 0
        for tx in self.circuits.values():
            for other in tx.levels.values():
                other.offering = other.offering and bool(other.pending)
                offering += other.offering
        if offering < _OFFERED_AT_ONCE:
            queue.offer()
        else:
            queue.offer_at = self._process.now + _OFFER_AGAIN

    def _burst(self, tx: CircuitTx, queues: list[SrmSsnQueue]) -> None:
        """Send CSNPs and LSPs of a circuit, as many as its pace allows at once."""
        now, pace = self._process.now, Pace(self._instance, tx)
        most = room = pace.burst
        window = pace.window
        # On a point-to-point circuit CSNPs go first: they make LSPs of the neighbor unnecessary.
        for queue in queues:
            if queue.reliable:
                room = self._csnps.send(queue, room)
        tx.turn = not tx.turn
        for queue in reversed(queues) if tx.turn else queues:
            if queue.held_until <= now:
                allowed = room if window is None else min(room, window)
                sent = allowed - self._send_lsps(queue, allowed)
                room -= sent
                window = None if window is None else window - sent
        # On a LAN they go last: LSPs sent before need no request.
        for queue in queues:
            room = self._csnps.send(queue, room)
        if room < most:
            tx.paced_until = now + pace.gap(most - room)

    def _send_lsps(self, queue: SrmSsnQueue, room: int) -> int:
        """Send the first of the pending LSPs; returns the room left."""
        due = self._process.now + queue.circuit.settings.lsp_retransmit_interval
        while queue.pending and room > 0:
            # taken together: each look for the first one visits all that were taken before
            for lsp_id in list(islice(queue.pending, room)):
                del queue.pending[lsp_id]
                entry = queue.database.get(lsp_id)
                # too large for this circuit: SRM would stay set forever
                if entry is None or not self._transmitter.send_lsp(
                    queue.circuit, queue.level, entry
                ):
                    continue
                room -= 1
                self._process.counters.lsdb["flooded"] += 1
                # §7.3.15.5: on a point-to-point circuit SRM stays until acknowledged, on a LAN not
                if queue.reliable:
                    queue.unacknowledged[lsp_id] = due
        return room

    def _arm(self, tx: CircuitTx, queues: list[SrmSsnQueue]) -> None:
        """Arm one timer for the next event of this circuit."""
        wanted = min((self._next(tx, queue) for queue in queues), default=math.inf)
        timer = tx.timer
        if timer is not None and timer.active:
            if timer.deadline == wanted:
                return
            self._process.timers.cancel(timer)
        tx.timer = None
        if wanted < math.inf:
            tx.timer = self._process.timers.arm(wanted, partial(self.wake, tx))

    def _next(self, tx: CircuitTx, queue: SrmSsnQueue) -> float:
        csnp = queue.csnp_due if queue.csnp_next is None else tx.paced_until
        wanted = min(queue.requests_due, csnp)
        # While its window is full, the next acknowledgment or retransmission wakes the circuit.
        if queue.pending and Pace(self._instance, tx).window != 0:
            wanted = min(wanted, max(tx.paced_until, queue.held_until))
        if queue.unlisted:
            wanted = min(wanted, max(queue.held_until, queue.offer_at))
        return min(wanted, next(iter(queue.unacknowledged.values()), math.inf))


def _wake() -> None:
    """Do nothing but wake the engine, which flushes."""
