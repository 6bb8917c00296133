"""The best trees of any graph, for at most nine workers: column generation with exact pricing.

At the prices of the LP the cheapest tree is found as Dreyfus and Wagner find Steiner trees: the
cheapest way to have the sum of a set of workers at a vertex, from the ways of its subsets. Sums
are possible only at routers that can sum; copies of results at every router.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    Direction,
    SummingJob,
    TreePlan,
    Vertex,
    link_resource,
)
from fared.extensions.ina.plan.trees import shortest_trees
from fared.extensions.offline.ina.packing import Packing, pack, planned

MOST_WORKERS = 9
_ROUNDS = 200
_EXACT = 1e-7
_TIE = 1e-9
"""The price of a link by itself, so that no tree takes a detour that costs nothing."""


class SteinerCosts:
    """Cheapest ways between sets of workers and vertices, one direction (toward the vertex)."""

    def __init__(
        self,
        vertices: list[Vertex],
        workers: list[Vertex],
        price: NDArray[np.float64],
        joins: NDArray[np.bool_],
    ) -> None:
        self._vertices, self._price, self._joins = vertices, price, joins
        count = len(workers)
        self.cost = np.full((1 << count, len(vertices)), np.inf)
        self._split = np.zeros((1 << count, len(vertices)), np.int64)
        self._before = np.full((1 << count, len(vertices)), -1)
        for at, worker in enumerate(workers):
            self.cost[1 << at, vertices.index(worker)] = 0.0
            self._move(1 << at)
        for chosen in range(1, 1 << count):
            if chosen & (chosen - 1):
                self._join(chosen)
                self._move(chosen)

    def _join(self, chosen: int) -> None:
        part = (chosen - 1) & chosen
        while part > chosen ^ part:
            both = self.cost[part] + self.cost[chosen ^ part]
            better = self._joins & (both < self.cost[chosen])
            self.cost[chosen, better] = both[better]
            self._split[chosen, better] = part
            part = (part - 1) & chosen

    def _move(self, chosen: int) -> None:
        while True:
            ways = self.cost[chosen][:, None] + self._price
            best = ways.argmin(axis=0)
            cost = ways[best, np.arange(len(best))]
            better = cost < self.cost[chosen] - _TIE / 2
            if not better.any():
                return
            self.cost[chosen, better] = cost[better]
            self._before[chosen, better] = best[better]

    def walk(self, chosen: int, at: int, seen: Callable[[str, int, int], None]) -> None:
        """Call ``seen`` with ("link", from, to) and ("join", vertex, set) from the end on."""
        while self._before[chosen, at] >= 0:
            before = int(self._before[chosen, at])
            seen("link", before, at)
            at = before
        part = int(self._split[chosen, at])
        if part:
            seen("join", at, chosen)
            self.walk(part, at, seen)
            self.walk(chosen ^ part, at, seen)


def best_trees(network: Capacities, job: SummingJob) -> TreePlan:
    """Return the best trees of one job. Raises ValueError for more than nine workers."""
    if len(job.workers) > MOST_WORKERS:
        raise ValueError(f"exact planning takes at most {MOST_WORKERS} workers")
    whole = job.attached(network)
    trees = shortest_trees(whole, job)
    if not trees:
        return TreePlan(job, ())
    for _ in range(_ROUNDS):
        packing = pack(whole, [job], [trees])
        found = _cheapest(whole, job, packing)
        if found is None or found in trees:
            break
        trees.append(found)
    return planned(job, trees, packing.rates[0], "best")


def _cheapest(network: Capacities, job: SummingJob, packing: Packing) -> AggregationTree | None:
    """Return the cheapest tree, None if it costs no less than the LP already pays: one."""
    links = _prices(network, packing)
    vertices = sorted({end for link in links for end in link})
    workers = [-bfr_id for bfr_id in sorted(job.workers)]
    at = {vertex: index for index, vertex in enumerate(vertices)}
    price = np.full((len(vertices), len(vertices)), np.inf)
    for (tail, head), value in links.items():
        price[at[tail], at[head]] = value
    sums = np.array([vertex in network.adders for vertex in vertices])
    routers = np.array([vertex >= 0 for vertex in vertices])
    up = SteinerCosts(vertices, workers, price, sums)
    down = SteinerCosts(vertices, workers, price.T.copy(), routers)
    total = np.where(sums, up.cost[-1] + down.cost[-1], np.inf)
    root = int(total.argmin())
    if not total[root] < 1 - _EXACT:
        return None
    hops: dict[Vertex, Vertex] = {}
    results: list[Direction] = []
    joins: set[Vertex] = {vertices[root]}

    def upward(kind: str, first: int, second: int) -> None:
        if kind == "join":
            joins.add(vertices[first])
        else:
            hops[vertices[first]] = vertices[second]

    def downward(kind: str, first: int, second: int) -> None:
        if kind == "link":
            results.append((vertices[second], vertices[first]))

    everyone = (1 << len(workers)) - 1
    up.walk(everyone, root, upward)
    down.walk(everyone, root, downward)
    return _tree(vertices[root], hops, joins, results, workers)


def _prices(network: Capacities, packing: Packing) -> dict[Direction, float]:
    return {
        link: packing.price(link_resource(*link)) + _TIE
        for link, capacity in network.links.items()
        if capacity > 0
    }


def _tree(
    root: Vertex,
    hops: dict[Vertex, Vertex],
    joins: set[Vertex],
    results: list[Direction],
    workers: list[Vertex],
) -> AggregationTree:
    parents: dict[Vertex, Vertex] = {}
    routes: dict[Vertex, tuple[Vertex, ...]] = {}
    for child in (*workers, *sorted(joins - {root})):
        route = [child]
        while len(route) == 1 or route[-1] not in joins:
            route.append(hops[route[-1]])
        parents[child], routes[child] = route[-1], tuple(route)
    return AggregationTree(root, parents, routes, tuple(results))
