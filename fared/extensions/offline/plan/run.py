"""Sweeping sets of failures with several processes, part by part.

A part is a range of failures of one set. The parent hands parts to workers over pipes; when a
worker dies, another one gets its part. Results do not depend on who computed what. Workers are
forks of the standard library, not of ``runtime.children``: they share the fabric's memory, and what
they exchange is arrays.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.routes import Demands
from fared.extensions.offline.plan.sets import Failures
from fared.extensions.offline.plan.sweep import SetOutcome, sweep
from fared.runtime.child import end_with_parent

_LEAST, _LEAST_ROUTED, _MOST, _PARTS = 64, 4, 4096, 16
"""Failures of a part; routing traffic anew takes so long that few of them are enough."""
_ATTEMPTS = 3
_GOODBYE = 5.0


class WorkersDiedError(RuntimeError):
    """A part killed every worker that tried it."""


class SetPart(NamedTuple):
    """Failures ``first`` to ``last - 1`` of set number ``of``."""

    of: int
    first: int
    last: int


class PlanTask(NamedTuple):
    """What a worker needs to compute any part."""

    fabric: PlanFabric
    healthy: NDArray[np.float64]
    sets: tuple[Failures, ...]
    demands: Demands | None = None
    """Traffic, bytes/s from node to node."""

    def compute(self, part: SetPart) -> SetOutcome:
        """Compute one part."""
        failures = self.sets[part.of]
        return sweep(
            self.fabric, failures, part.first, part.last, self.healthy, demands=self.demands
        )


def parts_of(sets: Sequence[Failures], *, routed: bool = False) -> list[SetPart]:
    """Divide sets into parts, large enough that the shortest paths of all roots cost little.

    ``routed``: traffic is routed anew for each failure, which costs far more than these.
    """
    least = _LEAST_ROUTED if routed else _LEAST
    found = []
    for number, failures in enumerate(sets):
        size = min(max(-(-len(failures) // _PARTS), least), _MOST)
        found += [
            SetPart(number, first, min(first + size, len(failures)))
            for first in range(0, len(failures), size)
        ]
    return found


def compute_all(
    task: PlanTask, parts: Iterable[SetPart], workers: int
) -> Iterator[tuple[SetPart, SetOutcome]]:
    """Yield the outcome of each part as it is finished. Raises WorkersDiedError."""
    waiting = deque(parts)
    if workers < 2 or len(waiting) < 2:
        for part in waiting:
            yield part, task.compute(part)
        return
    team = _SweepTeam(task, min(workers, len(waiting)))
    try:
        yield from team.run(waiting)
    finally:
        team.close()


class _SweepTeam:
    """Worker processes, and the part that each of them computes."""

    def __init__(self, task: PlanTask, size: int) -> None:
        self._task = task
        self._context = multiprocessing.get_context("fork")
        self._processes: dict[Connection, Callable[[float], None]] = {}
        self._busy: dict[Connection, SetPart] = {}
        self._tries: dict[SetPart, int] = {}
        for _ in range(size):
            self._hire()

    def run(self, waiting: deque[SetPart]) -> Iterator[tuple[SetPart, SetOutcome]]:
        """Hand out all parts."""
        while waiting or self._busy:
            for worker in self._processes:
                if waiting and worker not in self._busy:
                    self._busy[worker] = waiting.popleft()
                    worker.send(self._busy[worker])
            for ready in wait(list(self._busy)):
                worker = next(one for one in self._busy if one is ready)
                part = self._busy.pop(worker)
                try:
                    outcome = worker.recv()
                except (EOFError, ConnectionResetError):
                    self._replace(worker, part)
                    waiting.appendleft(part)
                    continue
                yield part, outcome

    def close(self) -> None:
        """End all workers."""
        for worker in self._processes:
            worker.close()  # a worker ends when its pipe does
        for join in self._processes.values():
            join(_GOODBYE)

    def _hire(self) -> None:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_work, args=(theirs, [*self._processes, mine], self._task), daemon=True
        )
        process.start()
        theirs.close()
        self._processes[mine] = process.join

    def _replace(self, worker: Connection, part: SetPart) -> None:
        self._tries[part] = self._tries.get(part, 0) + 1
        if self._tries[part] >= _ATTEMPTS:
            raise WorkersDiedError(f"{_ATTEMPTS} workers died at the same failures")
        worker.close()
        self._processes.pop(worker)(_GOODBYE)
        self._hire()


def _work(pipe: Connection, others: list[Connection], task: PlanTask) -> None:
    """Compute parts until the parent closes the pipe."""
    end_with_parent()
    for other in others:
        other.close()  # the parent's ends: else no worker would see them closed
    try:
        while True:
            pipe.send(task.compute(pipe.recv()))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return
