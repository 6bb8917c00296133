"""Link state retransmission lists: LSAs flooded to neighbors and not acknowledged (§13.6).

The lists of all neighbors are one bitmap for each LSA. What is sent to many neighbors together is
due again together: it forms a wave, which is examined when it is due, so an acknowledgment only
clears a bit.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec

from fared.core.ids import dotted
from fared.core.timers import Timer
from fared.protocols.igp.reduction import FloodDelay, ReductionSettings
from fared.protocols.ospf.flooding.database import ARRIVAL_MARGIN, MIN_LS_ARRIVAL
from fared.protocols.ospf.flooding.suppression import SUPPRESSION
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import SMALL_PACKET, Neighbor
from fared.protocols.ospf.lsdb import DEFERRED_SHIFT, LsaEntry
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE

_INSTANCE = slice(2, LSA_HEADER_SIZE)
"""``packet.lsa.instance_of`` without a call."""
_BATCH = 512
_BATCH_GAP = 0.05
"""Seconds between batches."""
_PATIENT = 1
"""LSAs retransmitted so often without an acknowledgment are retransmitted in small packets."""
_SLACK = 0.1
"""Part of RxmtInterval by which a retransmission may be early, to share packets with others."""
_AFTER_MIN_LS_ARRIVAL = MIN_LS_ARRIVAL * 1.1
_DEFERRED = 0.0
"""In place of RxmtInterval: a wave of copies that have not been sent yet."""


_Key = tuple[float, float, int]


class Wave(msgspec.Struct, eq=False):
    """LSAs that are due at the same time, with the neighbors that they are due for.

    ``times``: how often they have been retransmitted.
    """

    due: float
    interval: float
    times: int
    entries: dict[LsaEntry, int] = msgspec.field(default_factory=dict)


class _Intervals(msgspec.Struct):
    """Participants by RxmtInterval, and those that may have received a predecessor just now."""

    version: int = -1
    by_interval: dict[float, int] = msgspec.field(default_factory=dict)
    at: float = -1.0
    new: int = 0


class Retransmitter:
    """Keeps the bitmaps and the waves, with one timer."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._flood_delay = FloodDelay()
        self._bulk_delay = FloodDelay()
        self._waves: dict[_Key, Wave] = {}
        self._last: dict[LsaEntry, Wave] = {}
        """The wave that a listed LSA was put into last."""
        self._order: list[_Key] = []
        self._timer: Timer | None = None
        self._intervals = _Intervals()

    def enlist(self, entries: Sequence[LsaEntry], neighbors: int) -> None:
        """Put LSAs on the retransmission lists of neighbors: §13.3 (1)(d).

        A neighbor with MinLSArrival (§13 (5)(a)) discards an instance that follows its predecessor
        within a second. Such an instance is first retransmitted shortly after that second, if
        RxmtInterval is longer.
        """
        self._list(entries, neighbors)
        sent = ~(neighbors << DEFERRED_SHIFT)
        for entry in entries:
            entry.marks &= sent
        self._schedule(entries, neighbors)

    def defer(
        self,
        entries: Sequence[LsaEntry],
        neighbors: int,
        *,
        paced: float = 0.0,
        passed_on: bool = False,
    ) -> None:
        """Put LSAs on the lists and send them after the flood delay, unless they are off by then.

        Flood suppression draws one delay for all neighbors, so that one wakeup serves them all;
        flooding reduction draws one for each. ``paced``: seconds for which others may hold it back.
        ``passed_on``: another router than their originator has sent them.
        """
        self._list(entries, neighbors)
        deferred = neighbors << DEFERRED_SHIFT
        for entry in entries:
            entry.marks |= deferred
        instance = self._instance
        now, rng, reduction = self._process.now, self._process.rng, instance.settings.reduction
        if reduction.active:
            for neighbor in instance.participants.of(neighbors):
                due = neighbor.flood_delay.due(reduction, now, rng) + paced
                self._add(entries, neighbor.bit, due, _DEFERRED)
        elif paced:
            # Copies of several turns share their packets, as the copies sent at once do.
            settings = ReductionSettings(delay=SUPPRESSION.delay + paced)
            due = self._bulk_delay.due(settings, now, rng) + paced
            self._add(entries, neighbors, due, _DEFERRED)
        else:
            soon = self._hasten(now) if passed_on else None
            due = self._flood_delay.due(SUPPRESSION, now, rng) if soon is None else soon
            self._add(entries, neighbors, due, _DEFERRED)
        self._process.counters.lsdb["deferred"] += neighbors.bit_count() * len(entries)

    def _hasten(self, now: float) -> float | None:
        """Bring deferred LSAs forward; return the new deadline, or None if none is worth it.

        The delays of other routers have begun to end. After a lost link, leaves have the LSA of a
        spine for other spines, and these have that of a leaf for them: each pair of neighbors needs
        one packet now, and two later.
        """
        delay = self._flood_delay
        before = delay.waiting(SUPPRESSION, now)
        wave = None if before is None else self._waves.get((before, _DEFERRED, 0))
        if wave is None:
            return None
        due = delay.hasten(SUPPRESSION, now)
        if due < wave.due:
            del self._waves[wave.due, _DEFERRED, 0]
            for entry, neighbors in wave.entries.items():
                self._add((entry,), neighbors, due, _DEFERRED)
        return due

    def defer_until(self, due: float, entry: LsaEntry, neighbors: int) -> None:
        """Put ``entry`` on more lists and send it at ``due``, unless it is off by then.

        One that is deferred already is sent at the earlier time.
        """
        neighbors &= ~entry.unacknowledged | entry.deferred
        if neighbors:
            self._list((entry,), neighbors)
            entry.marks |= neighbors << DEFERRED_SHIFT
            self._add((entry,), neighbors, due, _DEFERRED)

    def acknowledged(self, entry: LsaEntry, neighbors: int) -> None:
        """Take a listed LSA off the lists of neighbors (§13.7, §13 (7)(a))."""
        entry.unacknowledged &= ~neighbors
        if entry.marks >> DEFERRED_SHIFT:
            entry.marks &= ~(neighbors << DEFERRED_SHIFT)
        if not entry.unacknowledged:
            self._done(entry)

    def delist_everywhere(self, entry: LsaEntry) -> None:
        """Take a replaced instance off all lists: RFC 2328 §13 (5)(c)."""
        if entry.unacknowledged:
            entry.unacknowledged = 0
            entry.marks &= (1 << DEFERRED_SHIFT) - 1
            self._done(entry)

    def clear(self, neighbor: Neighbor) -> None:
        """Clear the list of a neighbor whose adjacency is destroyed (§10.3, §13.6)."""
        if not neighbor.bit:
            return
        for lsdb in self._instance.databases():
            for entry in list(lsdb.listed.values()) if lsdb.listed else ():
                if entry.unacknowledged & neighbor.bit:
                    self.acknowledged(entry, neighbor.bit)
        # Waves may keep the bit: it counts with that of the LSA only.
        self._instance.outbox.forget(neighbor.bit)
        self._instance.participants.dismiss(neighbor)

    def _list(self, entries: Sequence[LsaEntry], neighbors: int) -> None:
        for entry in entries:
            if not entry.unacknowledged:
                entry.lsdb.listed[entry.raw[_INSTANCE]] = entry
            entry.unacknowledged |= neighbors

    def _done(self, entry: LsaEntry) -> None:
        """All neighbors have acknowledged an LSA."""
        listed = entry.lsdb.listed
        listed.pop(entry.raw[_INSTANCE], None)
        if not listed:
            listed.clear()  # and its table, which may have had room for a hundred thousand
        if entry.at_max_age:
            self._instance.maxage_acknowledged.append(entry)
        wave = self._last.pop(entry, None)
        if not self._last:
            self._last.clear()
        if wave is not None:
            wave.entries.pop(entry, None)
            if not wave.entries:
                self._drop(wave)

    def _drop(self, wave: Wave) -> None:
        """Drop a wave without LSAs; without any wave there is nothing to wait for."""
        self._waves.pop((wave.due, wave.interval, wave.times), None)
        if not self._waves:
            self._order.clear()
            self._process.timers.cancel(self._timer)

    # When

    def _schedule(self, entries: Sequence[LsaEntry], neighbors: int) -> None:
        now, intervals = self._process.now, self._present_intervals()
        soon = any(entry.within_min_ls_arrival for entry in entries)
        new = -1 if soon else self._newly_full(intervals)
        for interval, some in intervals.by_interval.items():
            group = some & neighbors
            early = group & new
            if early:
                wait = min(interval, _AFTER_MIN_LS_ARRIVAL)
                self._add(entries, early, now + wait, interval)
            if group != early:
                self._add(entries, group & ~early, now + interval, interval)

    def _present_intervals(self) -> _Intervals:
        known, participants = self._intervals, self._instance.participants
        if known.version != participants.version:
            found: dict[float, int] = {}
            for neighbor in participants:
                interval = neighbor.interface.settings.rxmt_interval
                found[interval] = found.get(interval, 0) | neighbor.bit
            self._intervals = known = _Intervals(participants.version, found)
        return known

    def _newly_full(self, known: _Intervals) -> int:
        """Neighbors that may have received the predecessor just now, by requesting it."""
        now = self._process.now
        if known.at != now:
            known.at, known.new = now, 0
            for neighbor in self._instance.participants:
                full = neighbor.state is NeighborState.FULL
                if not full or now - neighbor.since < ARRIVAL_MARGIN:
                    known.new |= neighbor.bit
        return known.new

    def _add(
        self,
        entries: Sequence[LsaEntry],
        neighbors: int,
        due: float,
        interval: float,
        times: int = 0,
    ) -> None:
        wave = self._waves.get((due, interval, times))
        if wave is None:
            wave = self._waves[due, interval, times] = Wave(due, interval, times)
            heapq.heappush(self._order, (due, interval, times))
            self._arm()
        known, last = wave.entries, self._last
        for entry in entries:
            known[entry] = known.get(entry, 0) | neighbors
            if entry.unacknowledged:  # else it is off all lists since it was put into another wave
                last[entry] = wave

    def _arm(self) -> None:
        while self._order and self._order[0] not in self._waves:
            heapq.heappop(self._order)
        if not self._order:
            return
        due = self._order[0][0]
        timer = self._timer
        if timer is not None and timer.active:
            if timer.deadline <= due:
                return
            self._process.timers.cancel(timer)
        # Delayed acknowledgments and hellos may go with what is sent then.
        self._timer = self._process.timers.arm(due, self._fire, earliest=due)

    def _fire(self) -> None:
        """Send the LSAs that are due, directly to the neighbors (§13.6).

        §13.6 sends one packet of them for each acknowledgment or RxmtInterval. Here up to
        ``_BATCH`` LSAs are sent, and the next batch follows ``_BATCH_GAP`` later: with tens of
        thousands of LSAs on the list, one packet in five seconds would take hours.
        """
        now = self._process.now
        room = _BATCH
        for key in sorted(self._waves):
            wave = self._waves[key]
            if wave.due - wave.interval * _SLACK > now:
                continue
            del self._waves[key]
            left = list(wave.entries.items())
            if wave.times >= _PATIENT:
                self._confine(left[:room])
            for entry, neighbors in left[:room]:
                self._send(entry, neighbors, wave)
            for entry, neighbors in left[room:]:
                self._add((entry,), neighbors, now + _BATCH_GAP, wave.interval, wave.times)
            room = max(0, room - len(left))
        self._arm()

    def _confine(self, unacknowledged: Sequence[tuple[LsaEntry, int]]) -> None:
        """Send small packets to neighbors that do not acknowledge LSAs that fill larger ones.

        Not in RFC 2328, which knows the MTU of a neighbor from its descriptions. A neighbor whose
        MTU changes, or something between us that does not carry full packets, would silence
        flooding.
        """
        sizes: dict[Neighbor, int] = {}
        for entry, neighbors in unacknowledged:
            due = neighbors & entry.unacknowledged
            for neighbor in self._instance.participants.of(due):
                sizes[neighbor] = sizes.get(neighbor, 0) + len(entry.raw)
        for neighbor, size in sizes.items():
            interface = neighbor.interface
            if size > SMALL_PACKET < interface.largest_packet:
                neighbor.confined = True
                interface.review_largest_packet()
                self._process.log(
                    "warning",
                    "ospf-packets-made-small",
                    interface=interface.name,
                    neighbor=dotted(neighbor.router_id),
                    size=SMALL_PACKET,
                )

    def _send(self, entry: LsaEntry, neighbors: int, wave: Wave) -> None:
        counters, interval = self._process.counters.lsdb, wave.interval
        if interval == _DEFERRED:
            due = neighbors & entry.deferred
            if due:
                entry.marks &= ~(due << DEFERRED_SHIFT)
                self._schedule((entry,), due)
                counters["deferred-sent"] += due.bit_count()
        else:
            due = neighbors & entry.unacknowledged & ~entry.deferred
            if due:
                again = self._process.now + interval
                self._add((entry,), due, again, interval, wave.times + 1)
                counters["retransmitted"] += due.bit_count()
        if due:
            self._instance.outbox.direct(entry, due)
