"""Building a tree from next hops toward its root, and choosing the roots.

The router that has two streams or more and can sum is a VAT node; others forward each stream. So
the same next hops give another tree where routers without INA are on the way.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    Direction,
    SummingJob,
    Vertex,
)

_HARDLY = 0.01
"""The part of the highest rate of a link that is not worth a tree."""
_MOST_ROOTS = 64


def tree_along(
    network: Capacities,
    job: SummingJob,
    root: Vertex,
    next_hops: Mapping[Vertex, Vertex],
    result_hops: Mapping[Vertex, Vertex] | None = None,
) -> AggregationTree:
    """Return the tree of ``job`` in which every router forwards to its next hop.

    ``next_hops`` has all routers on the way of a worker, without loops, up to ``root``. Results
    go the way back of ``result_hops``, or of ``next_hops``.
    """
    streams: dict[Vertex, list[Vertex]] = {}
    leaves = set(job.leaves)
    for bfr_id, leaf in sorted(job.workers.items()):
        streams.setdefault(leaf, []).append(-bfr_id)
    parents: dict[Vertex, Vertex] = {}
    for router in _farthest_first(job, root, next_hops):
        arriving = streams.pop(router)
        several = len(arriving) > 1 or (job.replicates and router not in leaves)
        sums = router == root or (router in network.adders and several)
        if sums:
            parents.update(dict.fromkeys(arriving, router))
        if router == root:
            break
        streams.setdefault(next_hops[router], []).extend([router] if sums else arriving)
    hops = dict(next_hops) | {-bfr_id: leaf for bfr_id, leaf in job.workers.items()}
    routes = {child: _route(child, parent, hops) for child, parent in parents.items()}
    back = next_hops if result_hops is None else result_hops
    relays, copies = set[Vertex](), bool(job.unicast)
    if is_relayed(job, root, routes):
        on_the_way = _farthest_first(job, root, back)[:-1]
        relays = {back[router] for router in on_the_way}
        # Nobody gets a result straight from the root of a tree whose leaves are not next to it.
        copies = copies or all(back[leaf] != root for leaf in leaves)
    elif job.replicates:
        relays = {*parents.values()} - leaves
    results = results_along(job, root, back, relays, copies=copies)
    return AggregationTree(root, parents, routes, results)


def is_relayed(job: SummingJob, root: Vertex, routes: Mapping[Vertex, tuple[Vertex, ...]]) -> bool:
    """Whether a leaf of the job sums for another router."""
    through = {
        router
        for child, route in routes.items()
        for router in route[2 if child < 0 else 1 :]
        if router != root
    }
    return bool(through & set(job.leaves))


def results_along(
    job: SummingJob,
    root: Vertex,
    back: Mapping[Vertex, Vertex],
    relays: AbstractSet[Vertex] = frozenset(),
    *,
    copies: bool | None = None,
) -> tuple[Direction, ...]:
    """Return the links that carry a result from ``root``, as often as they carry it.

    ``back`` has the router before each one on the way. By BIER a link carries it once, by unicast
    once for each worker behind it, and once to one of ``relays``, which passes it on. ``copies``:
    as by unicast; None: as the job's results go.
    """
    found: list[Direction] = [(leaf, -bfr_id) for bfr_id, leaf in job.workers.items()]
    routers = _farthest_first(job, root, back)[:-1]
    if not (bool(job.unicast) if copies is None else copies):
        return (*found, *((back[router], router) for router in routers))
    behind = Counter(job.workers.values())
    for router in routers:
        times = 1 if router in relays else behind[router]
        behind[back[router]] += times
        found += [(back[router], router)] * times
    return tuple(found)


def _farthest_first(
    job: SummingJob, root: Vertex, next_hops: Mapping[Vertex, Vertex]
) -> list[Vertex]:
    """Return the routers of the tree, each before its next hop."""
    distance = {root: 0}
    for leaf in job.leaves:
        path = [leaf]
        while path[-1] not in distance:
            path.append(next_hops[path[-1]])
        known = distance[path.pop()]
        for further, router in enumerate(reversed(path), 1):
            distance[router] = known + further
    return sorted(distance, key=lambda router: (-distance[router], router))


def _route(child: Vertex, parent: Vertex, hops: Mapping[Vertex, Vertex]) -> tuple[Vertex, ...]:
    route = [child]
    while route[-1] != parent:
        route.append(hops[route[-1]])
    return tuple(route)


def shortest_trees(network: Capacities, job: SummingJob) -> list[AggregationTree]:
    """Return a tree for each router that sums and is nearest to the farthest leaf, by links.

    These are the stars: in three stages at the spines, in five at the super-spines, or at the
    spines of a PoD that has the whole job. Of several shortest paths a tree takes the widest.
    """
    neighbors = network.neighbors()
    roots, far = _nearest_roots(network, job, neighbors)
    return [
        tree_along(network, job, root, widest_paths(network, neighbors, root, far))
        for root in roots
    ]


def relay_trees(network: Capacities, job: SummingJob) -> list[AggregationTree]:
    """Return a tree for each root over which a leaf of the job relays for another, if one has to.

    ``network`` has what is left of links between routers that may relay. Roots are those that are
    not next to a leaf; links with hardly anything left are not worth a tree.
    """
    leaves, rates = set(job.leaves), network.links.values()
    least = _HARDLY * max((rate for rate in rates if math.isfinite(rate)), default=0.0)
    links = {link: rate for link, rate in network.links.items() if rate > least}
    left = Capacities(links, network.adders)
    neighbors = left.neighbors()
    beside = {near for leaf in leaves for near in neighbors.get(leaf, ())}
    found = []
    for root in sorted(network.adders - leaves - beside)[:_MOST_ROOTS]:
        hops = widest_paths(left, neighbors, root, len(neighbors))
        if leaves <= hops.keys():
            tree = tree_along(left, job, root, hops)
            if is_relayed(job, root, tree.routes) and _all_sum(left, tree):
                found.append(tree)
    return found


def _all_sum(network: Capacities, tree: AggregationTree) -> bool:
    """Whether all routers on the ways of a tree, but those of a worker alone, can sum."""
    routes = ((route[2:] if child < 0 else route) for child, route in tree.routes.items())
    return all(router in network.adders for route in routes for router in route)


def routers_below(network: Capacities, job: SummingJob) -> frozenset[Vertex]:
    """Return the routers that are nearer to a leaf of the job than the roots of its stars.

    All links of its stars are between one of them and another router: jobs without a common one
    share no link.
    """
    neighbors = network.neighbors()
    _, far = _nearest_roots(network, job, neighbors)
    found = fresh = set(job.leaves)
    for _ in range(far - 1):
        fresh = {other for near in fresh for other in neighbors.get(near, ()) if other >= 0} - found
        found = found | fresh
    return frozenset(found)


def _nearest_roots(
    network: Capacities, job: SummingJob, neighbors: Mapping[Vertex, list[Vertex]]
) -> tuple[list[Vertex], int]:
    """Return the routers that sum and reach all leaves in the fewest links, and how many these are.

    Each round gives every router the leaves that its neighbors reach, as bits.
    """
    reached = {leaf: 1 << at for at, leaf in enumerate(job.leaves)}
    wanted = (1 << len(reached)) - 1
    for far in range(len(neighbors) + 1):
        roots = [root for root in sorted(network.adders) if reached.get(root) == wanted]
        if roots:
            return roots, far
        before, reached = reached, dict(reached)
        for near, bits in before.items():
            for other in neighbors.get(near, ()):
                if other >= 0:
                    reached[other] = reached.get(other, 0) | bits
        if reached == before:
            break
    return [], 0


def widest_paths(
    network: Capacities, neighbors: Mapping[Vertex, list[Vertex]], root: Vertex, far: int
) -> dict[Vertex, Vertex]:
    """Return the next hop of all routers within ``far`` links: breadth first, the widest path."""
    distance = {root: 0}
    width = {root: float("inf")}
    hops: dict[Vertex, Vertex] = {}
    queue = deque([root])
    while queue:
        near = queue.popleft()
        if distance[near] == far:
            break
        for beyond in neighbors.get(near, ()):
            if beyond < 0:
                continue
            if beyond not in distance:
                distance[beyond] = distance[near] + 1
                width[beyond] = 0.0
                queue.append(beyond)
            through = min(width[near], network.width(beyond, near))
            if distance[beyond] == distance[near] + 1 and through > width[beyond]:
                width[beyond], hops[beyond] = through, near
    return hops
