"""The trees of a job that is flooded: which routers are able, and what of a plan is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.ina.control.advert import JobAdvert, SumCapability
from fared.ina.plan.model import (
    AggregationTree,
    Capacities,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.ina.plan.planner import plan_job
from fared.ina.slots.setup import JobSetup, setup_of, slot_size

_BESIDE = 2
"""Vertices on the way of a worker to its own router."""
_MOST_STREAMS = 2


def summing_job(advert: JobAdvert) -> SummingJob:
    """Return the job as it is planned."""
    present = advert.job.setup.workers
    return SummingJob(advert.job.name, {bfr_id: advert.leaves[bfr_id] for bfr_id in present})


def able_routers(
    advert: JobAdvert,
    capabilities: Mapping[NodeId, SumCapability],
    others: Iterable[JobAdvert],
) -> frozenset[Vertex]:
    """Return the routers that sum, and have memory for one more tree beside ``others``."""
    used: Counter[Vertex] = Counter()
    for other in others:
        used.update(_memory(other.job.setup))
    needed = (2 * advert.window + 1) * slot_size(advert.job.setup.length, advert.payload)
    return frozenset(
        int(node) for node, found in capabilities.items() if found.memory - used[node] >= needed
    )


def _memory(setup: JobSetup) -> Counter[Vertex]:
    """Return the bytes of a job's slots in each router."""
    found: Counter[Vertex] = Counter()
    size = slot_size(setup.length, setup.payload)
    for tree in setup.trees:
        for node in tree.nodes:
            found[node] += (2 * tree.window + 1) * size
    return found


def plan_trees(network: Capacities, advert: JobAdvert) -> TreePlan:
    """Return the trees of a job; none where a ring of its workers is better."""
    found = plan_job(network, summing_job(advert))
    if all(_serves(rated.tree) for rated in found.trees):
        return TreePlan(found.job, ())
    return found


def _serves(tree: AggregationTree) -> bool:
    """Whether the root is a leaf with the streams of three others: a parameter server.

    Its links carry each of them, those of a ring 2(n-1)/n of the array.
    """
    children = [child for child, parent in tree.parents.items() if parent == tree.root]
    own = [child for child in children if child < 0 and len(tree.routes[child]) == _BESIDE]
    return bool(own) and len(children) - len(own) > _MOST_STREAMS


def setup_of_plan(advert: JobAdvert, plan: TreePlan, epoch: int) -> JobSetup:
    """Return the setup of a job in an epoch, a ring if nothing is planned. Raises SetupError."""
    setup = advert.job.setup
    if not plan.trees:
        return replace(setup, epoch=epoch, trees=())
    found = setup_of(
        plan,
        job_id=setup.job_id,
        epoch=epoch,
        length=setup.length,
        payload=advert.payload,
        window=advert.window,
    )
    return replace(found, elastic=setup.elastic, since=setup.since)
