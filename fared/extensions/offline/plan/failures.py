"""A plan of failures from a database: what ``fared-cli plan failures`` computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from fared.extensions.offline.plan import sets
from fared.extensions.offline.plan.document import Planned
from fared.extensions.offline.plan.equal import classes_of_doubles, equal_routers
from fared.extensions.offline.plan.fabric import PlanError, PlanFabric, read_fabric
from fared.extensions.offline.plan.kept import Kept
from fared.extensions.offline.plan.routes import Demands
from fared.extensions.offline.plan.rows import merged
from fared.extensions.offline.plan.run import PlanTask, SetPart, compute_all, parts_of
from fared.extensions.offline.plan.sets import Failures
from fared.extensions.offline.plan.sweep import SetOutcome, capacities
from fared.extensions.offline.plan.traffic import carried
from fared.extensions.offline.world import World

PartsComputed = Iterator[tuple[SetPart, SetOutcome]]
Compute = Callable[[PlanTask, Sequence[SetPart]], PartsComputed]
"""Computes parts somewhere: ``here``, or on a cluster."""
Progress = Callable[[int, int], None]
"""Called with the failures computed so far, and all."""


class FailureSets(msgspec.Struct, frozen=True):
    """The sets to try.

    ``doubles``: at most so many pairs of links (0 none, None all), or with ``classes`` one of each
    class of equal pairs; ``degraded``: the part of its capacity that a link loses (0 none);
    ``groups``: patterns by name.
    """

    links: bool = True
    nodes: bool = True
    doubles: int | None = 0
    classes: bool = False
    degraded: float = 0.0
    groups: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    seed: int = 1

    def of(self, fabric: PlanFabric, apart: Iterable[int] = ()) -> tuple[Failures, ...]:
        """Return the sets. Raises PlanError for a group without members, and too many classes.

        Nodes ``apart`` are equal to no other one.
        """
        found = []
        if self.links:
            found.append(sets.single_links(fabric))
        if self.nodes:
            found.append(sets.single_nodes(fabric))
        if self.groups:
            found.append(sets.groups(fabric, self.groups))
        if self.classes:
            found.append(classes_of_doubles(fabric, equal_routers(fabric, apart)))
        elif self.doubles != 0:
            found.append(sets.double_links(fabric, self.doubles, self.seed))
        if self.degraded:
            found.append(sets.degraded_links(fabric, self.degraded))
        return tuple(found)


class PlanNetwork(msgspec.Struct, frozen=True, eq=False):
    """The network as it is, and with drained routers, if there are any."""

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


def planned_task(
    network: PlanNetwork, wanted: FailureSets, demands: Demands | None = None
) -> PlanTask:
    """Return what is to be computed. Raises PlanError."""
    fabric, healthy, graph = network.drained, network.healthy.graph, network.drained.graph
    # the overload bit changes a router, a stub router (RFC 6987) the metrics of its links
    overloaded = np.flatnonzero(healthy.transit != graph.transit)
    stub = graph.src[healthy.metric != graph.metric]
    apart = {*overloaded.tolist(), *stub.tolist(), *(n for pair in demands or () for n in pair)}
    return PlanTask(fabric, capacities(network.healthy), wanted.of(fabric, apart), demands)


def plan_failures(
    network: PlanNetwork, task: PlanTask, parts: PartsComputed, progress: Progress
) -> Planned:
    """Gather all parts of a plan, from whoever computes them."""
    outcomes: list[list[SetOutcome]] = [[] for _ in task.sets]
    done, total = 0, sum(map(len, task.sets))
    for part, outcome in parts:
        outcomes[part.of].append(outcome)
        done += part.last - part.first
        progress(done, total)
    results = tuple(
        merged(failures, found, task.fabric)
        for failures, found in zip(task.sets, outcomes, strict=True)
    )
    traffic = None if task.demands is None else carried(network.healthy, task.demands)
    return Planned(task.fabric, task.healthy, capacities(task.fabric), results, traffic)


def here(workers: int) -> Compute:
    """Compute with processes of this machine. Raises WorkersDiedError."""
    return lambda task, parts: compute_all(task, parts, workers)


def computed(task: PlanTask, compute: Compute, kept: Kept | None) -> PartsComputed:
    """Yield all parts: those in ``kept``, then the others, which are added to it.

    Raises what ``compute`` raises, and OSError.
    """
    parts = parts_of(task.sets, routed=bool(task.demands))
    if kept is None:
        yield from compute(task, parts)
        return
    yield from kept.found.items()
    for part, outcome in compute(task, [part for part in parts if part not in kept.found]):
        kept.add(part, outcome)
        yield part, outcome
