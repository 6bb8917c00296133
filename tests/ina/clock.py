"""A virtual clock: events in order of time, between the timers of machines."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping

from fared.extensions.ina.slots.worker import WorkerMachine


class VirtualClock:
    """``now`` and what is to come; a subclass names its ``machines``, whose timers it serves."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[], object]]] = []

    def machines(self) -> Mapping[int, WorkerMachine]:
        """The machines whose timers run, by BFR-id."""
        raise NotImplementedError

    def at(self, when: float, run: Callable[[], object]) -> None:
        """Run something at a time; what comes first of the same time was put first."""
        heapq.heappush(self._events, (when, next(self._numbers), run))

    def step(self, end: float) -> bool:
        """One event, or the earliest timer of a machine; False if none is before ``end``."""
        machines = self.machines()
        timer, bfr_id = _earliest(machines.items())
        event = self._events[0][0] if self._events else float("inf")
        if min(timer, event) > end:
            return False
        if event <= timer:
            self.now, _, run = heapq.heappop(self._events)
            run()
        else:
            self.now = max(self.now, timer)
            machines[bfr_id].tick(self.now)
        return True

    def run_for(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Run until a condition is met; False, and all of the time has passed, if it is not."""
        end = self.now + seconds
        while not until():
            if not self.step(end):
                self.now = end
                return False
        return True


def _earliest(machines: Iterable[tuple[int, WorkerMachine]]) -> tuple[float, int]:
    dues = [(machine.deadline(), bfr_id) for bfr_id, machine in machines]
    return min(
        ((due, bfr_id) for due, bfr_id in dues if due is not None), default=(float("inf"), 0)
    )
