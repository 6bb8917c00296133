"""A tree that somebody gives instead of a planned one: which routers sum, the root last.

``s1,s7,s6`` is the VAT of draft-song-ina-00, Figure 1: the array of a worker is summed at the first
of these routers on its way to the root s6, and their sums at the root. Where a sum is to be summed
before the root, its router names the next one: ``s1:s5,s2:s5,s5:s6,s6``.
"""

from __future__ import annotations

from collections.abc import Callable

from fared.extensions.ina.fields import MOST_GIVEN
from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    GivenTree,
    SummingJob,
    Vertex,
)
from fared.extensions.ina.plan.trees import results_along, widest_paths

Name = Callable[[Vertex], str]


class TreeError(ValueError):
    """A tree that cannot be: the text tells why."""


def parse_tree(text: str, router: Callable[[str], Vertex]) -> GivenTree:
    """Read ``ROUTER[:NEXT],...,ROOT``; ``router`` returns the vertex of a name, or raises.

    Raises TreeError if that is no tree.
    """
    words = [word.strip().partition(":") for word in text.split(",")]
    names = [name for name, _, _ in words]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TreeError(f"{twice} is there twice: a router is one node of a tree")
    if len(names) > MOST_GIVEN:
        raise TreeError(f"{len(names)} routers: at most {MOST_GIVEN}")
    *others, (root, colon, _) = words
    if not root or colon:
        raise TreeError(f"{text!r} does not end with the root: ROUTER[:NEXT],...,ROOT")
    after = {name: following if sends else root for name, sends, following in others}
    for name, following in after.items():
        if following not in names:
            raise TreeError(f"{name} sends to {following}, which is none of {', '.join(names)}")
        way = [name]
        while way[-1] != root:
            way.append(after[way[-1]])
            if way[-1] in way[:-1]:
                raise TreeError(f"{name} does not reach the root: {' > '.join(way)}")
    vertices = {name: router(name) for name in names}
    if len({*vertices.values()}) < len(names):
        raise TreeError("two names of one router: a router is one node of a tree")
    parents = {vertices[name]: vertices[following] for name, following in after.items()}
    return GivenTree(vertices[root], parents)


def given_tree(
    network: Capacities, job: SummingJob, given: GivenTree, name: Name = str
) -> AggregationTree:
    """Return the tree of a job over given routers; those without a stream are left out.

    Packets take shortest paths, of several the widest. Raises TreeError if a router cannot sum, or
    somebody does not reach the root.
    """
    able = network.adders if job.adders is None else network.adders & job.adders
    unable = next((node for node in given.nodes if node not in able), None)
    if unable is not None:
        raise TreeError(f"{name(unable)} does not sum, or has no place for the job")
    ways = _ShortestWays(network)
    parents: dict[Vertex, Vertex] = {}
    for bfr_id, leaf in sorted(job.workers.items()):
        node = _first_on_the_way(ways, leaf, given)
        if node is None:
            raise TreeError(
                f"the worker of rank {bfr_id - 1} at {name(leaf)} does not reach the root "
                f"{name(given.root)}"
            )
        parents[-bfr_id] = node
    for node in [*parents.values()]:
        while node != given.root and node not in parents:
            parents[node] = given.parents[node]
            node = parents[node]  # noqa: PLW2901 - the way up
    routes = {}
    for child, parent in parents.items():
        near = job.workers[-child] if child < 0 else child
        route = ways.route(near, parent)
        if route is None:
            raise TreeError(f"{name(near)} does not reach {name(parent)}")
        routes[child] = (child, *route) if child < 0 else route
    back = ways.to(given.root)
    results = results_along(job, given.root, back)
    return AggregationTree(given.root, parents, routes, results)


def check_given(network: Capacities, job: SummingJob, given: GivenTree, name: Name = str) -> None:
    """Raise TreeError if a new job cannot have the tree, or a router of it would sum nothing."""
    nodes = given_tree(network, job, given, name).nodes
    for node in given.nodes:
        if node not in nodes:
            raise TreeError(
                f"{name(node)} would sum nothing: no worker's way to the root "
                f"{name(given.root)} leads there first"
            )


class _ShortestWays:
    """Shortest paths to some routers."""

    def __init__(self, network: Capacities) -> None:
        self._network, self._neighbors = network, network.neighbors()
        self._hops: dict[Vertex, dict[Vertex, Vertex]] = {}

    def to(self, target: Vertex) -> dict[Vertex, Vertex]:
        """Return the next hop toward a router, of all that reach it."""
        if target not in self._hops:
            far = len(self._neighbors)
            self._hops[target] = widest_paths(self._network, self._neighbors, target, far)
        return self._hops[target]

    def route(self, near: Vertex, target: Vertex) -> tuple[Vertex, ...] | None:
        """Return the path from one router to another, with both; None: there is none."""
        hops, route = self.to(target), [near]
        while route[-1] != target:
            if route[-1] not in hops:
                return None
            route.append(hops[route[-1]])
        return tuple(route)

    def distance(self, near: Vertex, target: Vertex) -> int | None:
        """Return the links between two routers."""
        route = self.route(near, target)
        return None if route is None else len(route) - 1


def _first_on_the_way(
    ways: _ShortestWays,
    leaf: Vertex,
    given: GivenTree,
) -> Vertex | None:
    """Return the nearest node that is on a shortest path to the root; None: there is no path."""
    whole = ways.distance(leaf, given.root)
    if whole is None:
        return None
    found: list[tuple[int, int, Vertex]] = []
    for at, node in enumerate(given.nodes):
        there, rest = ways.distance(leaf, node), ways.distance(node, given.root)
        if there is not None and rest is not None and there + rest == whole:
            found.append((there, at, node))
    return min(found)[-1]
