"""A job of a workload: which collective between which hosts, how large, and when."""

from __future__ import annotations

from dataclasses import dataclass

from fared.lab.addressing import Plan
from fared.lab.collectives import COLLECTIVES, Schedule
from fared.lab.errors import LabError

DEFAULT_TIMEOUT = 600.0
DEFAULT_INTERVAL = 0.5

Pair = tuple[str, str]
"""A sending and a receiving host."""


@dataclass(frozen=True)
class Job:
    """What to run: a collective over hosts, rank by rank, so many times.

    ``size`` is the message, bytes (``collectives`` says of what); ``elephants`` are the TCP
    connections a pair of hosts shares it among. With a ``period``, seconds, iterations begin only
    in the first ``duty`` of each; ``seconds`` ends the job: no iteration begins after them.
    """

    collective: str
    hosts: tuple[str, ...]
    size: int
    elephants: int = 1
    iterations: int | None = 10
    seconds: float | None = None
    period: float | None = None
    duty: float = 0.5

    def check(self, plan: Plan) -> None:
        """Raise LabError if the job cannot be run on that fabric."""
        if self.collective not in COLLECTIVES:
            raise LabError(f"no collective {self.collective!r}: {', '.join(COLLECTIVES)}")
        for host in self.hosts:
            plan.leaf_of(host)
        if len(set(self.hosts)) < len(self.hosts) or len(self.hosts) < 2:
            raise LabError("a job needs two different hosts at least")
        if self.size < 1 or self.elephants < 1:
            raise LabError("a message of one byte and one flow a pair are the least")
        if self.iterations is None and self.seconds is None:
            raise LabError("a job ends after some iterations or some seconds")
        if (self.period is not None and self.period <= 0) or not 0 < self.duty <= 1:
            raise LabError("a period is longer than 0 s, and some of it is on")

    @property
    def schedule(self) -> Schedule:
        """The steps of one iteration."""
        return COLLECTIVES[self.collective](len(self.hosts))

    def transfers(self) -> list[dict[Pair, int]]:
        """Return, for each step, how many bytes go from host to host."""
        ranks = len(self.hosts)
        steps = []
        for step in self.schedule:
            sizes: dict[Pair, int] = {}
            for send in step:
                pair = self.hosts[send.source], self.hosts[send.target]
                sizes[pair] = sizes.get(pair, 0) + send.size(ranks, self.size)
            steps.append(sizes)
        return steps
