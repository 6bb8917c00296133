"""The window of a worker in each tree, and when a packet without a result is repeated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from fared.extensions.ina.slots.setup import TreeSetup

LEAST_TIMEOUT = 0.05
"""On machines of few cores the scheduling of processes takes milliseconds."""
MOST_TIMEOUT = 1.0
FIRST_TIMEOUT = 0.05
LEAST_BURST = 4
"""Packets of a tree that are repeated when the timer expires, and twice as many each further time,
as in slow start (RFC 5681): on an overloaded machine everything is late, and little is lost."""
_PARTS, _MOST_PATIENCE = 4, 0.006
"""While links are busy, a round trip is the time in which they carry a window."""
_LATER_RESULTS = 3
"""A chunk is repeated at once when as many later ones of its tree have a result."""
_MOST_DOUBLINGS = 8
_MOST_KEPT = 2
"""Doublings that later packets keep."""


class Outstanding(msgspec.Struct, gc=False):
    """A packet that waits for its result."""

    chunk: int
    sent_at: float
    due: float
    repeats: int = 0
    later: int = 0


class TreeProgress:
    """The window of one tree; ``places`` are those of its chunks in a round."""

    def __init__(self, tree: TreeSetup, at: int, order: tuple[int, ...]) -> None:
        self.tree_id, self.window, self.parents = tree.tree_id, tree.window, tree.parents
        self.places = [place for place, chosen in enumerate(order) if chosen == at]
        self._round = len(order)
        self.next_sequence = 0
        self.next_offset = self.places[0]
        """Which chunk of the epoch the next sequence is."""
        self.sent: dict[int, Outstanding] = {}
        """Sequences before the next one that have no result."""
        self.size = 0
        """Bytes of results."""
        self.burst = LEAST_BURST
        """How many packets are repeated when the timer expires."""
        self.heard_at = -math.inf
        """When the last result came."""
        self.measured_at = -math.inf

    def advance(self) -> None:
        """Go on to the next sequence."""
        self.next_sequence += 1
        turns, place = divmod(self.next_sequence, len(self.places))
        self.next_offset = turns * self._round + self.places[place]

    def puts_off(self, entry: Outstanding, now: float) -> bool:
        """Whether results still come, and so the packet of this entry may be in a queue.

        The first window of a call waits behind itself at a slow link, longer than any packet
        before: as in RFC 6298 §5.3, results of others put the timer off, though by the least
        timeout only. What was lost meanwhile is found by later results.
        """
        if self.heard_at + LEAST_TIMEOUT <= now:
            return False
        entry.due = self.heard_at + LEAST_TIMEOUT
        return True


class RoundTrip:
    """The retransmission timeout (RFC 6298, with smaller limits).

    It doubles with each timeout until a packet that was sent once has its result (§5.5, §5.7): on
    an overloaded machine all results are late, and repeated packets, whose results tell no round
    trip (Karn's algorithm), would be even more load. But only twice: with many losses hardly any
    packet is sent once.
    """

    def __init__(self) -> None:
        self._smoothed: float | None = None
        self._variation = 0.0
        self._first = FIRST_TIMEOUT
        self._backoff = 0
        self._doubled_until = float("-inf")

    def measured(self, seconds: float) -> None:
        """Add a sample of a packet that was sent once."""
        self._backoff = 0
        if self._smoothed is None:
            self._smoothed, self._variation = seconds, seconds / 2
        else:
            self._variation += (abs(self._smoothed - seconds) - self._variation) / 4
            self._smoothed += (seconds - self._smoothed) / 8
        self._first = max(LEAST_TIMEOUT, self._smoothed + 4 * self._variation)

    def expired(self, now: float) -> None:
        """Double the timeout, once for all packets of a window that expire together."""
        if now >= self._doubled_until:
            self._backoff = min(_MOST_KEPT, self._backoff + 1)
            self._doubled_until = now + self.timeout(0)

    def patience(self) -> float:
        """Return how long results may wait for others, so that windows still are never empty."""
        return 0.0 if self._smoothed is None else min(_MOST_PATIENCE, self._smoothed / _PARTS)

    def timeout(self, repeats: int) -> float:
        """Return the time until a packet that was repeated so often is repeated again."""
        doublings = min(_MOST_DOUBLINGS, max(repeats, self._backoff))
        return min(MOST_TIMEOUT, self._first * (1 << doublings))


class Repeats:
    """When packets of all trees of one epoch are repeated."""

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._round_trip = RoundTrip()
        self.due = math.inf
        """No packet is to be repeated before."""

    def first_due(self, now: float) -> float:
        """Return when a packet that is sent now for the first time is to be repeated."""
        return now + self._round_trip.timeout(0)

    def again(self, entry: Outstanding, now: float) -> None:
        """Note a packet that is repeated."""
        self._counters["repeated"] += 1
        entry.repeats += 1
        entry.later = 0
        entry.due = now + self._round_trip.timeout(entry.repeats)
        self.due = min(self.due, entry.due)

    def patience(self) -> float:
        """Return how long results may wait for others."""
        return self._round_trip.patience()

    def expired(self, tree: TreeProgress, now: float) -> list[tuple[int, Outstanding]]:
        """Return the packets of a tree, with their sequences, that are to be repeated now.

        Others that have waited as long are put off.
        """
        late = [
            (sequence, entry)
            for sequence, entry in tree.sent.items()
            if now >= entry.due and not tree.puts_off(entry, now)
        ]
        for at, (_, entry) in enumerate(late):
            self._round_trip.expired(now)
            if at >= tree.burst:
                entry.due = now + self._round_trip.timeout(0)
        repeated = late[: tree.burst]
        if late:
            tree.burst *= 2
        return repeated

    def find_earliest(self, trees: Iterable[TreeProgress]) -> None:
        """Find when the first packet is to be repeated."""
        dues = (entry.due for tree in trees for entry in tree.sent.values())
        self.due = min(dues, default=math.inf)

    def heard(
        self, tree: TreeProgress, sequence: int, entry: Outstanding, now: float
    ) -> list[tuple[int, Outstanding]]:
        """Note a result; return packets that were sent before it and are to be repeated now."""
        tree.heard_at = now
        if not entry.repeats and now > tree.measured_at:
            # Results that came together tell the round trip once.
            tree.measured_at = now
            self._round_trip.measured(now - entry.sent_at)
            tree.burst = LEAST_BURST
        if next(iter(tree.sent), sequence) >= sequence:
            return []  # nothing that was sent before waits
        lost: list[tuple[int, Outstanding]] = []
        for other, waiting in tree.sent.items():
            if other < sequence:
                waiting.later += 1
                if waiting.later == _LATER_RESULTS:
                    lost.append((other, waiting))
        return lost
