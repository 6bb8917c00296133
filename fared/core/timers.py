"""The timer queue of an engine: deadlines on a clock that somebody else reads.

An engine arms actions at absolute times and is told ``now`` from outside, so the same code
runs on a wall clock and on a virtual one. Equal deadlines fire in order of arming, which
makes a run a function of its inputs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]

_COMPACT_AT = 64


class Timer:
    """One armed action; ``active`` until it fires or is cancelled."""

    __slots__ = ("_action", "deadline")

    def __init__(self, deadline: float, action: Action) -> None:
        self.deadline = deadline
        self._action: Action | None = action

    @property
    def active(self) -> bool:
        """Whether it is still going to fire."""
        return self._action is not None

    def take(self) -> Action | None:
        """Hand out the action and make the timer inactive."""
        action, self._action = self._action, None
        return action


class TimerQueue:
    """A heap of timers. Cancelled ones stay until they surface or outnumber the live ones."""

    __slots__ = ("_cancelled", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def arm(self, deadline: float, action: Action) -> Timer:
        """Run ``action`` at the first ``fire`` whose ``now`` is at or past ``deadline``."""
        timer = Timer(deadline, action)
        self._order += 1
        heapq.heappush(self._heap, (deadline, self._order, timer))
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Forget a timer; None and timers that have fired are fine."""
        if timer is None or timer.take() is None:
            return
        self._cancelled += 1
        if self._cancelled > _COMPACT_AT and self._cancelled * 2 > len(self._heap):
            self._heap = [item for item in self._heap if item[2].active]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def clear(self) -> None:
        """Cancel everything."""
        for _, _, timer in self._heap:
            timer.take()
        self._heap.clear()
        self._cancelled = 0

    def next_deadline(self) -> float | None:
        """When the next timer is due, or None."""
        while self._heap and not self._heap[0][2].active:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def fire(self, now: float) -> int:
        """Run what is due, in order of deadline, then of arming; return how many ran.

        Timers armed meanwhile wait for the next call even if already due, so that an action
        that re-arms itself at ``now`` cannot hold the caller for ever.
        """
        limit = self._order
        later: list[tuple[float, int, Timer]] = []
        fired = 0
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)
            if item[1] > limit:
                later.append(item)
                continue
            action = item[2].take()
            if action is None:
                self._cancelled -= 1
                continue
            fired += 1
            action()
        for item in later:
            heapq.heappush(self._heap, item)
        return fired
