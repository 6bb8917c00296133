"""A workload as a graph of tasks: what ranks send each other, and what must have arrived before.

A collective is a chain of tasks, one for each step; a training step has many chains, which meet
where a rank needs what another one sends. This module is pure: ranks and blocks are numbers, and a
test executes a graph in any order that it permits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fared.extensions.lab.workloads.collectives import Schedule, Send, Step
from fared.extensions.lab.workloads.sizes import Sizes, whole

COMPUTE = "compute"
"""The phase of tasks that send nothing."""


@dataclass(frozen=True)
class GraphTask:
    """Sends that begin together, ``compute`` seconds after all of ``after`` have ended.

    ``after`` are indices of earlier tasks. The sends are between places in ``members``, which are
    ranks; ``sizes`` are the bytes of each. Their blocks are those of ``buffer``, by name.
    """

    phase: str
    members: tuple[int, ...] = ()
    step: Step = ()
    sizes: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    compute: float = 0.0
    buffer: str = ""

    @property
    def moved(self) -> int:
        """The bytes of all its sends."""
        return sum(self.sizes)

    def transfers(self) -> dict[tuple[int, int], int]:
        """Return the bytes from rank to rank."""
        found: dict[tuple[int, int], int] = {}
        for send, size in zip(self.step, self.sizes, strict=True):
            pair = self.members[send.source], self.members[send.target]
            found[pair] = found.get(pair, 0) + size
        return {pair: size for pair, size in found.items() if size}


@dataclass(frozen=True)
class TaskGraph:
    """All tasks of an iteration, each behind those that it waits for.

    ``requests`` are pairs of tasks, the first and the last of a request: a latency is reported for
    each.
    """

    tasks: tuple[GraphTask, ...]
    requests: tuple[tuple[int, int], ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        """The names of the phases that send, in the order of their first tasks."""
        return tuple(dict.fromkeys(task.phase for task in self.tasks if task.moved))

    @property
    def ranks(self) -> int:
        """The number of ranks: one more than the highest."""
        return 1 + max((rank for task in self.tasks for rank in task.members), default=-1)

    def transfers(self, phase: str | None = None) -> dict[tuple[int, int], int]:
        """Return the bytes from rank to rank, of all tasks or of one phase."""
        found: dict[tuple[int, int], int] = {}
        for task in self.tasks:
            if phase in (None, task.phase):
                for pair, size in task.transfers().items():
                    found[pair] = found.get(pair, 0) + size
        return found

    def longest(self, own: Sequence[float], phase: str | None = None) -> float:
        """Return the length of the longest path, by the seconds of each task.

        Of a ``phase`` only its own tasks count, and not the time to compute.
        """
        ends: list[float] = []
        for task, seconds in zip(self.tasks, own, strict=True):
            counted = task.compute + seconds if phase is None else seconds * (task.phase == phase)
            ends.append(max((ends[before] for before in task.after), default=0.0) + counted)
        return max(ends, default=0.0)


@dataclass
class GraphBuilder:
    """Adds tasks in an order in which they may run; a rank does one thing after another."""

    tasks: list[GraphTask] = field(default_factory=list)
    _tails: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By rank: what it has to wait for before it does something else."""

    def collective(
        self, phase: str, buffer: str, members: Sequence[int], schedule: Schedule, sizes: Sizes
    ) -> None:
        """All members go through the steps of a schedule, as soon as all of them can."""
        for step in schedule:
            self._hold(members, self._add((phase, buffer), members, step, sizes, self._of(members)))

    def send(self, phase: str, buffer: str, source: int, target: int, size: int) -> int:
        """A rank sends to another, and goes on meanwhile; return the task, for ``await_task``."""
        step = (Send(0, 1, (0,)),)
        after = self._of((source,))
        return self._add((phase, buffer), (source, target), step, whole(size), after)

    def await_task(self, rank: int, task: int) -> None:
        """A rank does nothing else until a task has ended."""
        self._tails[rank] = (*self._tails.get(rank, ()), task)

    def compute(self, members: Sequence[int], seconds: float) -> None:
        """Each member computes, and sends nothing."""
        for rank in members if seconds else ():
            self.tasks.append(GraphTask(COMPUTE, (rank,), after=self._of((rank,)), compute=seconds))
            self._hold((rank,), len(self.tasks) - 1)

    def add(self, task: GraphTask) -> int:
        """Add any task; return its index."""
        self.tasks.append(task)
        return len(self.tasks) - 1

    def graph(self, requests: Iterable[tuple[int, int]] = ()) -> TaskGraph:
        """Return what was added."""
        return TaskGraph(tuple(self.tasks), tuple(requests))

    def _add(
        self,
        named: tuple[str, str],
        members: Sequence[int],
        step: Step,
        sizes: Sizes,
        after: tuple[int, ...],
    ) -> int:
        phase, buffer = named
        each = tuple(sizes(send) for send in step)
        return self.add(GraphTask(phase, tuple(members), step, each, after, 0.0, buffer))

    def _of(self, members: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({task for rank in members for task in self._tails.get(rank, ())}))

    def _hold(self, members: Sequence[int], task: int) -> None:
        self._tails.update(dict.fromkeys(members, (task,)))
