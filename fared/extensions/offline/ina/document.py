"""The document ``fared-ina-plan/1``: trees, rates, bounds and the load of links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.plan.bounds import least_cut, ring_rate
from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    Direction,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.plan.stripes import one_round, stripe_weights

Json = dict[str, Any]
_FULL = 0.999
"""The part of its capacity from which a link limits the trees on it."""


def plan_document(
    network: Capacities, plan: TreePlan, hostnames: Mapping[NodeId, str], changes: Iterable[str]
) -> Json:
    """Return the document of one job. Rates are bytes/s; ``null`` is unlimited."""
    weights = stripe_weights([rated.rate for rated in plan.trees])
    loads = plan.loads()
    trees = [
        {
            "root": _router(rated.tree.root, hostnames),
            "kind": rated.kind,
            "rate": rated.rate,
            "share": rated.rate / plan.rate,
            "weight": weight,
            "limits": [
                _link(link, hostnames)
                for link in sorted(
                    rated.tree.loads(), key=lambda link: (network.links.get(link, 0.0), link)
                )
                if min(link) >= 0 and _full(network, loads, link)
            ],
            "relays": _relays(plan.job, rated.tree, hostnames),
            "nodes": _nodes(rated.tree, hostnames),
        }
        for rated, weight in zip(plan.trees, weights, strict=True)
    ]
    return {
        "format": "fared-ina-plan/1",
        "changes": list(changes),
        "workers": [
            {"bfr_id": bfr_id, **_router(leaf, hostnames)}
            for bfr_id, leaf in sorted(plan.job.workers.items())
        ],
        "rate": plan.rate,
        "bound": _finite(least_cut(network, plan.job)),
        "ring_rate": _finite(ring_rate(network, plan.job)),
        "trees": trees,
        "round": one_round(weights),
        "links": [
            {
                **_link(link, hostnames),
                "capacity": _finite(network.links[link]),
                "load": load,
            }
            for link, load in sorted(loads.items())
            if min(link) >= 0
        ],
    }


def _full(network: Capacities, loads: Mapping[Direction, float], link: Direction) -> bool:
    return loads[link] >= network.links[link] * _FULL


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _router(node: Vertex, hostnames: Mapping[NodeId, str]) -> Json:
    return {"router": format_node(node), "hostname": hostnames.get(NodeId(node))}


def _link(link: Direction, hostnames: Mapping[NodeId, str]) -> Json:
    return {"from": _router(link[0], hostnames), "to": _router(link[1], hostnames)}


def _nodes(tree: AggregationTree, hostnames: Mapping[NodeId, str]) -> list[Json]:
    """The A-BM of each VAT node (draft-song-ina-00 §2.1), bit 0 is BFR-id 1."""
    return [
        {
            **_router(node, hostnames),
            "parent": None if node == tree.root else format_node(tree.parents[node]),
            "bits": f"{bits:#x}",
            "streams": sum(parent == node for parent in tree.parents.values()),
        }
        for node, bits in sorted(tree.bit_strings().items())
    ]


def _relays(
    job: SummingJob, tree: AggregationTree, hostnames: Mapping[NodeId, str]
) -> list[list[Json]]:
    """The ways, router by router up to the root, that cross another leaf of the job."""
    leaves = set(job.leaves) - {tree.root}
    found: list[list[Json]] = []
    for leaf in job.leaves:
        worker = next(-bfr_id for bfr_id, at in sorted(job.workers.items()) if at == leaf)
        way = list(tree.routes[worker][1:])
        while way[-1] != tree.root:
            way += tree.routes[way[-1]][1:]
        if leaves.intersection(way[1:]):
            found.append([_router(node, hostnames) for node in way])
    return found
