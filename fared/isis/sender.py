"""Sends what the flags ask for: LSPs in paced bursts, repetitions, CSNPs, PSNPs in batches.

The first burst out of a circuit goes at once, the next ones ``flood_pacing`` later, so that what
arrives over many links within moments is sent once, and what the neighbor sends us meanwhile not
at all. Acknowledgments wait a moment for company, on all circuits for the same one; while many
LSPs lie unacknowledged the pace slows down to what a neighbor with a small receive buffer can
take.
"""

from __future__ import annotations

import math
from functools import partial

from fared.isis.circuit import Circuit
from fared.isis.ids import LAST_LSP, Level, LspId
from fared.isis.instance import Instance
from fared.isis.outlet import Outlet, OutletLevel
from fared.isis.pdu.model import Csnp, LspEntries, LspEntry, Psnp
from fared.isis.transmit import Transmitter, pdu_space

BURST = 20
"""Most PDUs of one burst: LSPs and CSNPs together."""
WINDOW = 200
"""So many LSPs unacknowledged, and the gap between bursts is ``SLOW_GAP``."""
SLOW_GAP = 0.05
HURRIED_CSNP = 1.2
"""Seconds between CSNPs while somebody is new on the LAN: his adjacency may not be up yet."""
MOST_ASKED = 3
_SLACK = 0.1
_CSNP_HEADER = 33
_PSNP_HEADER = 17
_ENTRY_SIZE = 16
_TLV_HEADER = 2
_ENTRIES_PER_TLV = 15


class Sender:
    """Keeps the outlets that have something to do, each with one timer for what comes later."""

    def __init__(self, instance: Instance, transmitter: Transmitter) -> None:
        self._instance = instance
        self._transmitter = transmitter
        self._dirty: dict[int, Outlet] = {}
        self._ack_round = -math.inf
        self.outlets: dict[int, Outlet] = {}
        """By ifindex."""

    def wake(self, outlet: Outlet) -> None:
        """Look at this outlet in the next flush."""
        self._dirty[outlet.circuit.ifindex] = outlet

    def active(self, level: Level) -> list[OutletLevel]:
        """The outlets of a level by ifindex."""
        outlets = self.outlets
        return [
            outlets[key].levels[level] for key in sorted(outlets) if level in outlets[key].levels
        ]

    def open(self, circuit: Circuit, level: Level) -> OutletLevel:
        """Make the outlet of a level, or find it."""
        outlet = self.outlets.get(circuit.ifindex)
        if outlet is None:
            outlet = self.outlets[circuit.ifindex] = Outlet(circuit)
        state = outlet.levels.get(level)
        if state is None:
            database = self._instance.databases[level]
            state = outlet.levels[level] = OutletLevel(circuit, level, database)
        self.wake(outlet)
        return state

    def find(self, circuit: Circuit, level: Level) -> OutletLevel | None:
        """The outlet of a level, None without an adjacency."""
        outlet = self.outlets.get(circuit.ifindex)
        return None if outlet is None else outlet.levels.get(level)

    def close(self, circuit: Circuit, level: Level) -> None:
        """Drop the outlet of a level and its flags."""
        outlet = self.outlets.get(circuit.ifindex)
        state = None if outlet is None else outlet.levels.pop(level, None)
        if outlet is None or state is None:
            return
        state.close()
        if not outlet.levels:
            self._instance.timers.cancel(outlet.timer)
            del self.outlets[circuit.ifindex]
            self._dirty.pop(circuit.ifindex, None)

    def touch(self, state: OutletLevel) -> None:
        """Something of this level was flagged."""
        now = self._instance.now
        if state.acks and state.acks_due == math.inf:
            if self._ack_round <= now:
                self._ack_round = now + self._instance.settings.ack_delay
            state.acks_due = min(self._ack_round, now + state.circuit.settings.psnp_interval)
        self.wake(self.outlets[state.circuit.ifindex])

    def flush(self, *, force: bool = False) -> None:
        """Send what is due, and arm timers for the rest; ``force``: leave no LSP waiting."""
        dirty, self._dirty = self._dirty, {}
        if force:
            dirty = self.outlets
        for _, outlet in sorted(dirty.items()):
            self._flush_outlet(outlet, force=force)

    def _flush_outlet(self, outlet: Outlet, *, force: bool) -> None:
        states = [outlet.levels[level] for level in sorted(outlet.levels)]
        for state in states:
            self._schedule(state)
        if force:
            for state in states:
                self._send_lsps(state, len(state.pending))
        elif self._instance.now >= outlet.paced_until:
            self._burst(outlet, states)
        for state in states:
            self._send_acks(state)
            self._send_requests(state)
        self._arm(outlet, states)

    def _schedule(self, state: OutletLevel) -> None:
        """What has become due: a set of CSNPs, repetitions."""
        now = self._instance.now
        if now >= state.csnp_due and state.csnp_next is None:
            state.begin_csnp()
            state.csnp_due = now + self._csnp_interval(state)
        if now >= state.deferred_due:
            self._instance.counters.lsps["deferred-sent"] += state.end_deferral(now)
        horizon = now + state.circuit.settings.lsp_retransmit_interval * _SLACK
        if next(iter(state.unacknowledged.values()), math.inf) > now:
            return
        # One interval for all, so the dict is in the order of due times.
        for lsp_id, due in list(state.unacknowledged.items()):
            if due > horizon:
                break
            del state.unacknowledged[lsp_id]
            state.pending[lsp_id] = None
            self._instance.counters.lsps["retransmitted"] += 1

    def _csnp_interval(self, state: OutletLevel) -> float:
        if state.csnp_hurry:
            state.csnp_hurry -= 1
            return min(HURRIED_CSNP, state.circuit.settings.csnp_interval)
        return self._instance.jitter(state.circuit.settings.csnp_interval)

    def _burst(self, outlet: Outlet, states: list[OutletLevel]) -> None:
        now = self._instance.now
        room = BURST
        # A neighbor's CSNPs make LSPs unnecessary; on a LAN LSPs make requests unnecessary.
        for state in states:
            if state.reliable:
                room = self._send_csnps(state, room)
        outlet.turn = not outlet.turn
        for state in reversed(states) if outlet.turn else states:
            if state.held_until <= now:
                room = self._send_lsps(state, room)
        for state in states:
            room = self._send_csnps(state, room)
        if room < BURST:
            crowded = any(_crowded(state) for state in states)
            pacing = self._instance.settings.flood_pacing
            outlet.paced_until = now + (max(pacing, SLOW_GAP) if crowded else pacing)

    def _send_csnps(self, state: OutletLevel, room: int) -> int:
        """Send the next PDUs of a set; returns the room left."""
        while state.csnp_next is not None and room > 0:
            self._send_csnp(state, state.csnp_next)
            room -= 1
        return room

    def _send_lsps(self, state: OutletLevel, room: int) -> int:
        """Send the first of the pending LSPs; returns the room left."""
        due = self._instance.now + state.circuit.settings.lsp_retransmit_interval
        while state.pending and room > 0:
            lsp_id = next(iter(state.pending))
            del state.pending[lsp_id]
            entry = state.database.get(lsp_id)
            if entry is None:
                continue
            if not self._transmitter.send_lsp(state.circuit, state.level, entry):
                entry.srm.discard(state.circuit.ifindex)
                continue
            room -= 1
            self._instance.counters.lsps["flooded"] += 1
            if state.reliable:
                state.unacknowledged[lsp_id] = due
            else:
                entry.srm.discard(state.circuit.ifindex)
        return room

    def _entries_per_pdu(self, state: OutletLevel, header: int) -> int:
        room = (
            pdu_space(state.circuit) - header - self._transmitter.authentication_size(state.level)
        )
        full, rest = divmod(room, _TLV_HEADER + _ENTRY_SIZE * _ENTRIES_PER_TLV)
        return max(1, full * _ENTRIES_PER_TLV + max(0, rest - _TLV_HEADER) // _ENTRY_SIZE)

    def _send_csnp(self, state: OutletLevel, start: LspId) -> None:
        """One PDU of a set: the ranges of all of them cover every LSP id (ISO 10589 §7.3.15.3)."""
        limit = self._entries_per_pdu(state, _CSNP_HEADER)
        listed = state.database.first(start, limit)
        last = len(listed) < limit or listed[-1].lsp_id == LAST_LSP
        end = LAST_LSP if last else listed[-1].lsp_id
        state.csnp_next = None if last else LspId(end + 1)
        now = self._instance.now
        entries = [
            LspEntry(e.lsp_id, e.sequence_number, e.remaining_lifetime(now), e.checksum)
            for e in listed
        ]
        pdu = Csnp(int(state.level), self._source_id, start, end, _tlvs(entries))
        self._transmitter.send(state.circuit, state.level, pdu)

    def _send_acks(self, state: OutletLevel) -> None:
        if not state.acks:
            state.acks_due = math.inf
            return
        limit = self._entries_per_pdu(state, _PSNP_HEADER)
        now = self._instance.now
        while state.acks and (now >= state.acks_due or len(state.acks) >= limit):
            entries: list[LspEntry] = []
            for lsp_id in list(state.acks)[:limit]:
                known = self._answer(state, lsp_id, state.acks.pop(lsp_id))
                if known is not None:
                    entries.append(known)
            self._instance.counters.lsps["acks-sent"] += len(entries)
            self._send_psnp(state, entries)
        if not state.acks:
            state.acks_due = math.inf

    def _answer(self, state: OutletLevel, lsp_id: LspId, heard: LspEntry | None) -> LspEntry | None:
        entry = state.database.get(lsp_id)
        if entry is None:
            return heard
        entry.ssn.discard(state.circuit.ifindex)
        lifetime = entry.remaining_lifetime(self._instance.now)
        return LspEntry(lsp_id, entry.sequence_number, lifetime, entry.checksum)

    def _send_requests(self, state: OutletLevel) -> None:
        """Ask for what was heard of in SNPs and has not come, a few times (ISO 10589 §7.3.17)."""
        now = self._instance.now
        if not state.requests:
            state.requests_due = math.inf
        if now < state.requests_due:
            return
        entries: list[LspEntry] = []
        for lsp_id, asked in list(state.requests.items()):
            if asked + 1 >= MOST_ASKED:
                del state.requests[lsp_id]
            else:
                state.requests[lsp_id] = asked + 1
            unknown = LspEntry(lsp_id, 0, 0, 0)
            entries.append(self._answer(state, lsp_id, unknown) or unknown)
        self._instance.counters.lsps["requested"] += len(entries)
        limit = self._entries_per_pdu(state, _PSNP_HEADER)
        for start in range(0, len(entries), limit):
            self._send_psnp(state, entries[start : start + limit])
        interval = state.circuit.settings.psnp_interval
        state.requests_due = now + interval if state.requests else math.inf

    def _send_psnp(self, state: OutletLevel, entries: list[LspEntry]) -> None:
        if entries:
            pdu = Psnp(int(state.level), self._source_id, _tlvs(entries))
            self._transmitter.send(state.circuit, state.level, pdu)

    @property
    def _source_id(self) -> int:
        return self._instance.system_id << 8

    def _arm(self, outlet: Outlet, states: list[OutletLevel]) -> None:
        """One timer for whatever is to be done next on this circuit."""
        wanted = min((self._next(outlet, state) for state in states), default=math.inf)
        timer = outlet.timer
        if timer is not None and timer.active:
            if timer.deadline == wanted:
                return
            self._instance.timers.cancel(timer)
        outlet.timer = None
        if wanted < math.inf:
            outlet.timer = self._instance.timers.arm(wanted, partial(self.wake, outlet))

    def _next(self, outlet: Outlet, state: OutletLevel) -> float:
        csnp = state.csnp_due if state.csnp_next is None else outlet.paced_until
        wanted = min(state.acks_due, state.requests_due, csnp)
        if state.pending:
            wanted = min(wanted, max(outlet.paced_until, state.held_until))
        if state.deferred:
            wanted = min(wanted, state.deferred_due)
        return min(wanted, next(iter(state.unacknowledged.values()), math.inf))


def _crowded(state: OutletLevel) -> bool:
    """Whether more was sent, or on a LAN is to be sent, than receive buffers may hold."""
    return len(state.unacknowledged if state.reliable else state.pending) >= WINDOW


def _tlvs(entries: list[LspEntry]) -> tuple[LspEntries, ...]:
    return tuple(
        LspEntries(tuple(entries[start : start + _ENTRIES_PER_TLV]))
        for start in range(0, len(entries), _ENTRIES_PER_TLV)
    )
