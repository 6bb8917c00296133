"""The best stars and relays of a Clos fabric: column generation with a closed form of the price.

A leaf goes to a root directly, or over another spine to another leaf of the job, whichever is
cheaper at the prices of the LP. So a round takes the time of a few matrices, at any size.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    SummingJob,
    TreePlan,
    Vertex,
    link_resource,
)
from fared.extensions.ina.plan.planner import kind_of, plan_job
from fared.extensions.ina.plan.stars import StarWidths, widths_of
from fared.extensions.ina.plan.trees import shortest_trees, tree_along
from fared.extensions.offline.ina.packing import Packing, pack, planned

_ROUNDS = 60
_EXACT = 1e-7


def best_stars_and_relays(network: Capacities, job: SummingJob) -> TreePlan:
    """Return the best plan of stars and relays; in other fabrics that of the shortest trees."""
    whole = job.attached(network)
    trees = [rated.tree for rated in plan_job(network, job).trees]
    trees += [tree for tree in shortest_trees(whole, job) if tree not in trees]
    if not trees:
        return TreePlan(job, ())
    stars = widths_of(whole, job)
    for _ in range(_ROUNDS):
        packing = pack(whole, [job], [trees])
        fresh = [tree for tree in _cheaper(whole, job, stars, packing) if tree not in trees]
        if not fresh:
            break
        trees += fresh
    plan = planned(job, trees, pack(whole, [job], [trees]).rates[0], "star")
    named = (msgspec.structs.replace(rated, kind=kind_of(job, rated.tree)) for rated in plan.trees)
    return TreePlan(job, tuple(named))


def best_of_several(network: Capacities, jobs: list[SummingJob]) -> list[TreePlan]:
    """Return max-min fair plans over the trees that each job would have alone."""
    whole = network
    for job in jobs:
        whole = job.attached(whole)
    trees = []
    for job in jobs:
        alone = [rated.tree for rated in best_stars_and_relays(network, job).trees]
        trees.append(alone + [t for t in shortest_trees(whole, job) if t not in alone])
    rates = pack(whole, jobs, trees).rates
    return [
        planned(job, of, rate, "star") for job, of, rate in zip(jobs, trees, rates, strict=True)
    ]


def _cheaper(
    network: Capacities, job: SummingJob, stars: StarWidths, packing: Packing
) -> list[AggregationTree]:
    """Return for each root the cheapest tree, if it costs less than the LP pays: one."""
    up, down = _prices(stars, packing)
    leaves, roots = stars.leaves.tolist(), stars.roots.tolist()
    able = np.isin(stars.leaves, list(network.adders))
    found = []
    for column, root in enumerate(roots):
        there = _cheapest_hops(up, column, able, leaves, roots)
        back = _cheapest_hops(down, column, able, leaves, roots)
        both = _cheapest_hops(up + down, column, able, leaves, roots)
        if there is not None and back is not None and there[0] + back[0] < 1 - _EXACT:
            found.append(tree_along(network, job, root, there[1], back[1]))
        if both is not None and both[0] < 1 - _EXACT:
            found.append(tree_along(network, job, root, both[1]))
    return found


def _prices(stars: StarWidths, packing: Packing) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the price of a stream from leaves to roots, and of a result to leaves (L, S)."""
    up, down = np.full((2, *stars.up.shape), np.inf)
    for row, leaf in enumerate(stars.leaves.tolist()):
        for column, root in enumerate(stars.roots.tolist()):
            if stars.up[row, column] > 0:
                up[row, column] = packing.price(link_resource(leaf, root))
            if stars.down[row, column] > 0:
                down[row, column] = packing.price(link_resource(root, leaf))
    return up, down


def _cheapest_hops(
    price: NDArray[np.float64],
    column: int,
    able: NDArray[np.bool_],
    leaves: list[Vertex],
    roots: list[Vertex],
) -> tuple[float, dict[Vertex, Vertex]] | None:
    """Return cost and next hops of the cheapest tree to one root; None: a leaf cannot reach it."""
    direct = price[:, column]
    helpers = np.where(able & np.isfinite(direct), 0.0, np.inf)
    over = price + helpers[:, None]
    over[:, column] = np.inf
    hops = dict.fromkeys(leaves, roots[column])
    relays: list[tuple[float, int]] = []
    cost = 0.0
    for row in range(len(leaves)):
        beyond = over.copy()
        beyond[row] = np.inf
        ways = price[row] + beyond.min(axis=0)
        if ways.min() < direct[row] - _EXACT:
            relays.append((float(ways.min() - direct[row]), row))
        else:
            cost += float(direct[row])
    relaying = {row for _, row in relays}
    taken: dict[int, int] = {}
    for _, row in sorted(relays):
        beyond = over.copy()
        beyond[sorted(relaying)] = np.inf  # who relays for others goes direct
        via = beyond.argmin(axis=0)
        for spine, leaf in taken.items():
            via[spine] = leaf
        ways = price[row] + np.where(
            np.isin(np.arange(len(roots)), list(taken)), 0.0, beyond[via, np.arange(len(roots))]
        )
        spine = int(ways.argmin())
        if direct[row] <= ways[spine]:
            cost += float(direct[row])
            continue
        cost += float(ways[spine])
        taken[spine] = int(via[spine])
        hops[leaves[row]] = roots[spine]
        hops[roots[spine]] = leaves[taken[spine]]
    return (cost, hops) if np.isfinite(cost) else None
