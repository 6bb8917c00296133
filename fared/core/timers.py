"""The timer queue of an engine: actions at absolute times, on a clock that its owner reads.

An engine arms actions and receives ``now`` from outside, so the same code runs on a wall clock and
on a virtual one. Equal deadlines fire in order of arming, so a run depends on its inputs only.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Generic, TypeVar

First = TypeVar("First")
Second = TypeVar("Second")
Action = Callable[[], None]

_COMPACT_AT = 64
_DEADLINE = attrgetter("deadline")


class Timer:
    """One armed action; ``active`` until it fires or is cancelled.

    From ``earliest`` on it may fire together with another timer that has an ``earliest``, which
    saves a wake-up at ``deadline``.
    """

    __slots__ = ("_action", "deadline", "earliest")

    def __init__(self, deadline: float, action: Action, earliest: float) -> None:
        self.deadline = deadline
        self.earliest = earliest
        self._action: Action | None = action

    @property
    def active(self) -> bool:
        """Whether the timer is still armed."""
        return self._action is not None

    def take(self) -> Action | None:
        """Return the action and make the timer inactive."""
        action, self._action = self._action, None
        return action


class BoundAction(Generic[First, Second]):
    """An action: a function of two arguments with these.

    A database has one for each entry, where ``functools.partial`` would take four times the memory.
    """

    __slots__ = ("_first", "_function", "_second")

    def __init__(
        self, function: Callable[[First, Second], object], first: First, second: Second
    ) -> None:
        self._function = function
        self._first = first
        self._second = second

    def __call__(self) -> None:
        """Call the function."""
        self._function(self._first, self._second)


class TimerQueue:
    """A heap of timers. Cancelled ones stay until they reach its top, or outnumber the others."""

    __slots__ = ("_cancelled", "_flexible", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._flexible: dict[Timer, None] = {}
        """The timers that may fire early, in order of arming."""
        self._order = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def arm(self, deadline: float, action: Action, earliest: float | None = None) -> Timer:
        """Run ``action`` at the first ``fire`` at or after ``deadline``.

        With ``earliest``: or at the first one from then on that fires another timer with an
        ``earliest``.
        """
        timer = Timer(deadline, action, deadline if earliest is None else earliest)
        self._order += 1
        heapq.heappush(self._heap, (deadline, self._order, timer))
        if earliest is not None:
            self._flexible[timer] = None
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a timer; None and a timer that has fired are ignored."""
        if timer is None or timer.take() is None:
            return
        self._flexible.pop(timer, None)
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
        self._flexible.clear()
        self._cancelled = 0

    def next_deadline(self) -> float | None:
        """Return when the next timer is due, or None."""
        while self._heap and not self._heap[0][2].active:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def fire(self, now: float) -> int:
        """Run the actions that are due, by deadline, then by order of arming; return how many ran.

        If one of them could have fired early, others that may fire early run after them.

        Timers armed meanwhile wait for the next call even if already due, so that an action that
        re-arms itself at ``now`` cannot block the caller forever.
        """
        limit, fired = self._order, 0
        flexible: tuple[Timer, ...] = ()
        later: list[tuple[float, int, Timer]] = []
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)
            if item[1] > limit:
                later.append(item)
                continue
            action = item[2].take()
            if action is None:
                self._cancelled -= 1
                continue
            if item[2] in self._flexible:
                flexible = flexible or tuple(self._flexible)
                del self._flexible[item[2]]
            fired += 1
            action()
        for item in later:
            heapq.heappush(self._heap, item)
        return fired + self._fire_early(flexible, now)

    def fire_early(self, now: float) -> int:
        """Run the actions that may fire early or are due, for a caller that is awake anyway."""
        return self._fire_early(tuple(self._flexible), now)

    def _fire_early(self, flexible: Iterable[Timer], now: float) -> int:
        ready, fired = [timer for timer in flexible if timer.earliest <= now], 0
        ready.sort(key=_DEADLINE)
        for timer in ready:
            action = timer.take()
            if action is not None:
                self._flexible.pop(timer, None)
                self._cancelled += 1  # its entry stays in the heap until it reaches the top
                fired += 1
                action()
        return fired
