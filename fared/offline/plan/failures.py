"""A plan of failures from a database: what ``fared-cli plan failures`` computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from fared.offline.plan import sets
from fared.offline.plan.document import Planned
from fared.offline.plan.fabric import PlanError, PlanFabric, read_fabric
from fared.offline.plan.rows import merged
from fared.offline.plan.run import Task, compute_all, parts_of
from fared.offline.plan.sets import Failures
from fared.offline.plan.sweep import Outcome, capacities
from fared.offline.world import World

Progress = Callable[[int, int], None]
"""Called with the failures computed so far, and all."""


class FailureSets(msgspec.Struct, frozen=True):
    """The sets to try.

    ``doubles``: at most so many pairs of links (0 none, None all); ``degraded``: the part of its
    capacity that a link loses (0 none); ``groups``: patterns by name.
    """

    links: bool = True
    nodes: bool = True
    doubles: int | None = 0
    degraded: float = 0.0
    groups: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    seed: int = 1

    def of(self, fabric: PlanFabric) -> tuple[Failures, ...]:
        """Return the sets. Raises PlanError for a group without members."""
        found = []
        if self.links:
            found.append(sets.single_links(fabric))
        if self.nodes:
            found.append(sets.single_nodes(fabric))
        if self.groups:
            found.append(sets.groups(fabric, self.groups))
        if self.doubles != 0:
            found.append(sets.double_links(fabric, self.doubles, self.seed))
        if self.degraded:
            found.append(sets.degraded_links(fabric, self.degraded))
        return tuple(found)


class PlanNetwork(msgspec.Struct, frozen=True, eq=False):
    """The network as it is, and with drained routers out of transit, if there are any."""

    healthy: PlanFabric
    drained: PlanFabric


def read_network(
    healthy: World, drained: World | None, *, bandwidth: float | None, ends: Sequence[str]
) -> PlanNetwork:
    """Read both. Raises PlanError."""
    whole = read_fabric(healthy, bandwidth=bandwidth, ends=ends)
    if drained is None:
        return PlanNetwork(whole, whole)
    names = [whole.names[node] for node in whole.ends.tolist()]
    rest = read_fabric(drained, bandwidth=bandwidth, ends=ends)
    if names != [rest.names[node] for node in rest.ends.tolist()]:
        raise PlanError("the drained network has other ends")
    return PlanNetwork(whole, rest)


def plan_failures(
    network: PlanNetwork, wanted: FailureSets, workers: int, progress: Progress
) -> Planned:
    """Compute all sets. Raises PlanError, WorkersDiedError."""
    fabric = network.drained
    chosen = wanted.of(fabric)
    healthy = capacities(network.healthy)
    now = healthy if network.drained is network.healthy else capacities(fabric)
    parts = parts_of(chosen)
    total = sum(map(len, chosen))
    outcomes: list[list[Outcome]] = [[] for _ in chosen]
    done = 0
    for part, outcome in compute_all(Task(fabric, healthy, chosen), parts, workers):
        outcomes[part.of].append(outcome)
        done += part.last - part.first
        progress(done, total)
    results = tuple(
        merged(failures, found, len(fabric.ends))
        for failures, found in zip(chosen, outcomes, strict=True)
    )
    return Planned(fabric, healthy, np.asarray(now), results)
