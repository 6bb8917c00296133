"""Why the trees of a job are as they are: what limits each, and why other routers are no roots.

From the present capacities, as any router of the area knows them; nothing of it is flooded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from fared.extensions.ina.plan.model import (
    Capacities,
    Direction,
    RatedTree,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.slots.setup import parents_of

_NEAR = 0.99
"""Resources that allow hardly more than a tree's rate limit it, too."""


class TreeReason(msgspec.Struct, frozen=True):
    """A planned tree: ``rate`` (bytes/s), and what limits it.

    ``links`` are directions of links, ``routers`` those whose summing or memory is the limit. Both
    are empty where only what other trees leave limits it.
    """

    root: Vertex
    kind: str
    parents: dict[Vertex, Vertex]
    rate: float
    links: tuple[Direction, ...]
    routers: tuple[Vertex, ...]


class NoRoot(msgspec.Struct, frozen=True):
    """A router beside the job's leaves that is no VAT node.

    ``lacks`` is the leaf that it has no working link to; None: there is another ``reason``.
    """

    router: Vertex
    reason: str
    lacks: Vertex | None = None


class JobReasons(msgspec.Struct, frozen=True):
    """All of a job."""

    trees: tuple[TreeReason, ...] = ()
    others: tuple[NoRoot, ...] = ()

    def of(self, root: Vertex, parents: dict[Vertex, Vertex]) -> TreeReason | None:
        """Return the reason of a tree that is flooded; None: it is not planned any more."""
        found = (one for one in self.trees if one.root == root and one.parents == parents)
        return next(found, None)


def reasons_of(
    network: Capacities, job: SummingJob, plan: TreePlan, beside: Sequence[TreePlan] = ()
) -> JobReasons:
    """Explain a plan; ``beside`` are those of jobs that share links with this one."""
    whole = job.attached(network)
    used = {node for rated in plan.trees for node in rated.tree.nodes}
    users: dict[Vertex, list[str]] = {}
    for other in beside:
        for root in {rated.tree.root for rated in other.trees}:
            users.setdefault(root, []).append(other.job.name)
    return JobReasons(
        tuple(_tree(whole, rated) for rated in plan.trees),
        tuple(_others(network, job, used, users)),
    )


def _tree(network: Capacities, rated: RatedTree) -> TreeReason:
    usage = rated.tree.usage(network)
    tight = [
        resource
        for resource, part in usage.items()
        if network.limit(resource) / part * _NEAR <= rated.rate < math.inf
    ]
    return TreeReason(
        rated.tree.root,
        rated.kind,
        parents_of(rated),
        rated.rate,
        tuple(sorted((one.tail, one.head) for one in tight if one.kind == "link")),
        tuple(sorted({one.tail for one in tight if one.kind != "link"})),
    )


def _others(
    network: Capacities, job: SummingJob, used: set[Vertex], users: Mapping[Vertex, list[str]]
) -> list[NoRoot]:
    """Return routers with links to leaves of the job, and why they do not sum for it."""
    leaves = job.leaves
    beside = {
        head
        for tail, head in network.links
        if tail in leaves and head not in leaves and head >= 0 and head not in used
    }
    return [_no_root(network, leaves, router, users.get(router, ())) for router in sorted(beside)]


def _no_root(
    network: Capacities, leaves: list[Vertex], router: Vertex, users: Sequence[str]
) -> NoRoot:
    if router not in network.adders:
        return NoRoot(router, "does not sum")
    lacks = next((leaf for leaf in leaves if network.width(leaf, router) <= 0), None)
    if lacks is not None:
        return NoRoot(router, "has no link to", lacks)
    if users:
        return NoRoot(router, f"sums for {', '.join(users)}, with which this job shares links")
    return NoRoot(router, "other trees use up its links")
