"""The links that jobs share by fared's own weights, and what a better placement would score."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from fared.extensions.offline.plan.fabric import PlanError, PlanFabric
from fared.extensions.offline.plan.jobs.circle import JobPattern, LinkShare
from fared.extensions.offline.plan.jobs.file import PlannedJob
from fared.extensions.offline.plan.jobs.shifts import ShiftSchedule, schedule
from fared.extensions.offline.plan.routes import WeightedRoutes

_LEAST = 1e-6
"""The part of its capacity below which a job's load of a link does not count."""
_MOST_SWAPS = 200


class BetterPlacement(msgspec.Struct, frozen=True):
    """Two jobs that exchange a host, and the score of the worst link then."""

    jobs: tuple[str, str]
    hosts: tuple[str, str]
    score: float


class Placement:
    """Where the hosts of jobs are, and the load of links that follows from it."""

    def __init__(self, fabric: PlanFabric) -> None:
        self._fabric = fabric
        self._routes = WeightedRoutes(fabric)
        self._index = {name: node for node, name in enumerate(fabric.names)}

    def links(self, jobs: Sequence[PlannedJob]) -> list[LinkShare]:
        """Return the loaded directions of links. Raises PlanError for an unknown host."""
        loads = {job.name: self._routes.loads(self._demands(job)) for job in jobs}
        graph, names = self._fabric.graph, self._fabric.names
        found = []
        for edge, capacity in enumerate(self._fabric.capacity.tolist()):
            rates = {
                name: float(load[edge])
                for name, load in loads.items()
                if load[edge] > capacity * _LEAST
            }
            if rates:
                name = f"{names[int(graph.src[edge])]} > {names[int(graph.dst[edge])]}"
                found.append(LinkShare(name, capacity, rates))
        return found

    def _demands(self, job: PlannedJob) -> Mapping[tuple[int, int], float]:
        nodes = []
        for host in job.hosts:
            if host not in self._index:
                raise PlanError(f"job {job.name}: no router {host!r} in the database")
            nodes.append(self._index[host])
        found: dict[tuple[int, int], float] = {}
        for pair in zip(nodes, nodes[1:] + nodes[:1], strict=True):
            found[pair] = found.get(pair, 0.0) + job.bandwidth
        return found

    def better(
        self, jobs: Sequence[PlannedJob], patterns: Sequence[JobPattern], now: ShiftSchedule
    ) -> BetterPlacement | None:
        """Return the exchange of two hosts that gains most, None if none gains."""
        best: BetterPlacement | None = None
        tried = 0
        for a, b in itertools.combinations(range(len(jobs)), 2):
            for x, y in itertools.product(range(len(jobs[a].hosts)), range(len(jobs[b].hosts))):
                exchanged = _exchanged(jobs, (a, x), (b, y))
                if exchanged is None or tried >= _MOST_SWAPS:
                    continue
                tried += 1
                value = schedule(self.links(exchanged), patterns).score
                if value > (now.score if best is None else best.score) + 1e-9:
                    hosts = (jobs[a].hosts[x], jobs[b].hosts[y])
                    best = BetterPlacement((jobs[a].name, jobs[b].name), hosts, value)
        return best


def _exchanged(
    jobs: Sequence[PlannedJob], one: tuple[int, int], other: tuple[int, int]
) -> list[PlannedJob] | None:
    (a, x), (b, y) = one, other
    mine, theirs = list(jobs[a].hosts), list(jobs[b].hosts)
    if not mine or not theirs or mine[x] in theirs or theirs[y] in mine:
        return None
    mine[x], theirs[y] = theirs[y], mine[x]
    found = list(jobs)
    found[a] = jobs[a].model_copy(update={"hosts": mine})
    found[b] = jobs[b].model_copy(update={"hosts": theirs})
    return found
