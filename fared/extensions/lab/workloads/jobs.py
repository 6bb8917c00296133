"""A job of a workload: the collective, its ranks, message size and duration."""

from __future__ import annotations

from dataclasses import dataclass

from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.ranks import Pair, check_ranks
from fared.extensions.lab.workloads.collectives import COLLECTIVES, Schedule

DEFAULT_TIMEOUT = 600.0
DEFAULT_INTERVAL = 0.5
INA = "all-reduce-ina"
"""The collective that routers sum: it has no schedule of sends (``ina_workload``)."""
BROADCAST_BIER, ALL_GATHER_BIER = "broadcast-bier", "all-gather-bier"
"""Collectives whose packets routers copy (``multicast``)."""


@dataclass(frozen=True)
class Job:
    """A collective over hosts or GPUs, in order of rank, and the number of its iterations.

    ``size`` is the size of the message in bytes, as defined in ``collectives``; ``elephants`` is
    the number of TCP connections of a pair of hosts. With a ``period``, seconds, iterations begin
    only in the first ``duty`` of each period; no iteration begins after ``seconds``. The first one
    begins after ``shift`` seconds, and each next one ``compute`` seconds after the end of the one
    before: the time in which a training job computes and sends nothing.
    """

    collective: str
    hosts: tuple[str, ...]
    size: int
    elephants: int = 1
    iterations: int | None = 10
    seconds: float | None = None
    period: float | None = None
    duty: float = 0.5
    compute: float = 0.0
    shift: float = 0.0

    def check(self, plan: AddressPlan) -> None:
        """Raise LabError if the job cannot be run on that fabric."""
        if self.collective not in COLLECTIVES:
            raise LabError(f"no collective {self.collective!r}: {', '.join(COLLECTIVES)}")
        check_ranks(plan, self.hosts)
        if self.size < 1 or self.elephants < 1:
            raise LabError("a message has at least one byte, and a pair at least one flow")
        if self.iterations is None and self.seconds is None:
            raise LabError("a job requires a number of iterations or of seconds")
        if (self.period is not None and self.period <= 0) or not 0 < self.duty <= 1:
            raise LabError("a period is longer than 0 s, with a duty above 0")
        if self.compute < 0 or self.shift < 0:
            raise LabError("times to compute and shifts are 0 s or longer")

    @property
    def schedule(self) -> Schedule:
        """The steps of one iteration."""
        return COLLECTIVES[self.collective](len(self.hosts))

    def transfers(self) -> list[dict[Pair, int]]:
        """Return, for each step, the bytes from host to host."""
        ranks = len(self.hosts)
        steps = []
        for step in self.schedule:
            sizes: dict[Pair, int] = {}
            for send in step:
                pair = self.hosts[send.source], self.hosts[send.target]
                sizes[pair] = sizes.get(pair, 0) + send.size(ranks, self.size)
            steps.append(sizes)
        return steps
