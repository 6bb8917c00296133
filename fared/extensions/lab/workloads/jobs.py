"""A job of a workload: what its hosts send each other, how often, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.ranks import Pair, check_ranks, crossing
from fared.extensions.lab.workloads.collectives import COLLECTIVES
from fared.extensions.lab.workloads.graph import GraphBuilder, TaskGraph
from fared.extensions.lab.workloads.sizes import equal

DEFAULT_TIMEOUT = 600.0
DEFAULT_INTERVAL = 0.5
INA, REDUCE_INA = "all-reduce-ina", "reduce-ina"
"""The collectives that routers sum: they have no schedule of sends (``ina_workload``)."""
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

    With ``tasks`` an iteration consists of these, and ``collective`` is only the name of the job.
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
    tasks: TaskGraph | None = None

    def check(self, plan: AddressPlan) -> None:
        """Raise LabError if the job cannot be run on that fabric."""
        if self.tasks is None and self.collective not in COLLECTIVES:
            raise LabError(f"no collective {self.collective!r}: {', '.join(COLLECTIVES)}")
        check_ranks(plan, self.hosts)
        if self.tasks is not None and self.tasks.ranks > len(self.hosts):
            ranks, hosts = self.tasks.ranks, len(self.hosts)
            raise LabError(
                f"{self.collective}: {ranks} ranks need as many hosts or GPUs, not {hosts}"
            )
        if self.size < 1 or self.elephants < 1:
            raise LabError("a message has at least one byte, and a pair at least one flow")
        if self.iterations is None and self.seconds is None:
            raise LabError("a job requires a number of iterations or of seconds")
        if (self.period is not None and self.period <= 0) or not 0 < self.duty <= 1:
            raise LabError("a period is longer than 0 s, with a duty above 0")
        if self.compute < 0 or self.shift < 0:
            raise LabError("times to compute and shifts are 0 s or longer")

    @cached_property
    def graph(self) -> TaskGraph:
        """The tasks of one iteration; of a collective, one for each step."""
        if self.tasks is not None:
            return self.tasks
        ranks, builder = len(self.hosts), GraphBuilder()
        schedule = COLLECTIVES[self.collective](ranks)
        sizes = equal(ranks, self.size)
        builder.collective(self.collective, "", range(ranks), schedule, sizes)
        return builder.graph()

    def crossing(self, plan: AddressPlan, sizes: Mapping[tuple[int, int], int]) -> dict[Pair, int]:
        """Return what crosses the fabric, by names, of bytes from rank to rank."""
        named = {(self.hosts[a], self.hosts[b]): size for (a, b), size in sizes.items()}
        return crossing(plan, named)

    def sends(self, plan: AddressPlan) -> tuple[dict[Pair, int], ...]:
        """Return what each task of an iteration sends over the fabric, by names."""
        return tuple(self.crossing(plan, task.transfers()) for task in self.graph.tasks)
