"""The flooding topology of an area: a sparse graph that stays connected without any one router.

Dynamic flooding (RFC 9667) floods over some links only. In its distributed mode each router
computes them from its database, and all must find the same; this is fared's algorithm. The topology
grows from the lowest id. A router is added as soon as two of its neighbors are in, which become its
*parents*. Where no router has two, the shortest path between two routers that are in, over routers
that are not, is added (an ear); where there is none, a single link. So a router has at most two
parents, and the topology has no articulation point that the network does not have. In a Clos fabric
two spines are the parents of all leaves, and two leaves those of all spines.

The links to *primary* parents form a tree, over which LSAs travel upward as well. All other links
carry them from parent to child at once, and from child to parent only if the parent does not send
them in time. So a router receives an LSA once from each parent and once from below: at most three
times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TypeVar

import msgspec

_PARENTS = 2
Node = TypeVar("Node", bound=int)
Graph = Mapping[Node, Collection[Node]]


class TopologyPlace(msgspec.Struct):
    """A router in the flooding topology; the primary parent is the first. ``depth`` is in hops."""

    parents: list[int] = msgspec.field(default_factory=list)
    children: list[int] = msgspec.field(default_factory=list)
    depth: int = 0


class FloodingTopology(msgspec.Struct, frozen=True):
    """All routers with their parents and children. ``searched``: links that ears depend on.

    ``compared``: the far ends of links outside of it whose ends compare what they have. Together
    with these links it stays connected without any two routers, where the network does: in all
    fabrics, and in nearly all other graphs.
    """

    places: dict[int, TopologyPlace]
    searched: set[tuple[int, int]]
    compared: dict[int, set[int]]

    def has(self, a: int, b: int) -> bool:
        """Whether the link between two routers belongs to it."""
        place = self.places.get(a)
        return place is not None and (b in place.parents or b in place.children)

    def is_without(self, a: int, b: int) -> bool:
        """Whether it would be the same if the link between two routers were lost."""
        if self.has(a, b) or b in self.compared.get(a, ()):
            return False
        return (min(a, b), max(a, b)) not in self.searched

    def neighbors(self, node: int) -> set[int]:
        """The neighbors of a router in it."""
        place = self.places.get(node)
        return set() if place is None else {*place.parents, *place.children}

    def companions(self, node: int) -> set[int]:
        """The neighbors outside of it that a router compares with."""
        return self.compared.get(node, set())


def flooding_topology(graph: Graph[Node]) -> FloodingTopology:
    """Compute it for a graph, each of whose links is listed by both ends; for each component."""
    grower = _Grower({node: sorted(graph[node]) for node in sorted(graph)})
    for node in grower.graph:
        if node not in grower.places:
            grower.grow(node)
    places = grower.places
    return FloodingTopology(places, grower.searched, _forest(grower.graph, places))


def _forest(
    graph: Mapping[int, list[int]], places: Mapping[int, TopologyPlace]
) -> dict[int, set[int]]:
    """A spanning forest of the links that a topology leaves, breadth first from the highest id.

    The loss of any other link changes nothing of it.
    """
    reached: set[int] = set()
    found: dict[int, set[int]] = {}
    for root in sorted(graph, reverse=True):
        if root in reached:
            continue
        reached.add(root)
        order = [root]
        for node in order:
            place = places[node]
            for other in graph[node]:
                if other in reached or other in place.parents or node in places[other].parents:
                    continue
                reached.add(other)
                order.append(other)
                found.setdefault(node, set()).add(other)
                found.setdefault(other, set()).add(node)
    return found


class _Grower:
    """A topology that grows. ``waiting``: parents so far of routers that are not in it."""

    def __init__(self, graph: dict[Node, list[Node]]) -> None:
        self.graph: dict[int, list[int]] = graph  # type: ignore[assignment]
        self.places: dict[int, TopologyPlace] = {}
        self.searched: set[tuple[int, int]] = set()
        self._order: list[int] = []
        self._open = 0
        """Routers before this one in ``_order`` have no neighbors outside."""
        self._waiting: dict[int, list[int]] = {}
        self._ready: deque[int] = deque()

    def grow(self, root: int) -> None:
        """Add the component of ``root``."""
        self._open = len(self._order)
        self._waiting = {}
        self._add(root, [])
        while True:
            while self._ready:
                node = self._ready.popleft()
                if node not in self.places:
                    self._add(node, self._waiting[node])
            ear = self._ear()
            if ear is not None:
                self._add_ear(ear)
                continue
            single = self._single()
            if single is None:
                return
            self._add(single[1], [single[0]])

    def _add(self, node: int, parents: list[int]) -> None:
        places = self.places
        places[node] = TopologyPlace()
        for parent in parents:
            self._set_parent(node, parent)
        self._order.append(node)
        for neighbor in self.graph[node]:
            if neighbor in places:
                continue
            waiting = self._waiting.setdefault(neighbor, [])
            if len(waiting) < _PARENTS:
                waiting.append(node)
                if len(waiting) == _PARENTS:
                    self._ready.append(neighbor)

    def _set_parent(self, node: int, parent: int) -> None:
        """Add a parent; the one nearest to the root is primary, of equal ones the first."""
        places = self.places
        place = places[node]
        place.parents.append(parent)
        places[parent].children.append(node)
        if len(place.parents) == 1:
            place.depth = places[parent].depth + 1
        elif places[parent].depth + 1 < place.depth:
            place.depth = places[parent].depth + 1
            place.parents.reverse()

    def _add_ear(self, ear: list[int]) -> None:
        """Add a path; its ends are in. Each router on it has both its neighbors as parents."""
        inner = ear[1:-1]
        half = (len(inner) + 1) // 2
        for node, parent in zip(inner[:half], ear[:half], strict=True):
            self._add(node, [parent])
        for node, parent in zip(inner[: half - 1 : -1], ear[: half + 1 : -1], strict=True):
            self._add(node, [parent])
        for a, b in pairwise(ear):
            for node, parent in ((a, b), (b, a)):
                place = self.places[node]
                # an end with fewer than two parents gets one here: the root, or a single
                if len(place.parents) < _PARENTS and parent not in place.parents:
                    place.parents.append(parent)
                    self.places[parent].children.append(node)

    def _ear(self) -> list[int] | None:
        """The shortest path between two different routers that are in, over others."""
        places, graph = self.places, self.graph
        origin = self._outside()
        before = dict(origin)
        scanned = [(min(link), max(link)) for link in before.items()]
        queue = deque(origin)
        while queue:
            node = queue.popleft()
            for neighbor in graph[node]:
                if neighbor in places:
                    continue
                scanned.append((min(node, neighbor), max(node, neighbor)))
                if neighbor not in origin:
                    origin[neighbor], before[neighbor] = origin[node], node
                    queue.append(neighbor)
                elif origin[neighbor] != origin[node]:
                    self.searched.update(scanned)
                    return [*reversed(_path(node, before)), *_path(neighbor, before)]
        return None

    def _outside(self) -> dict[int, int]:
        """The routers outside with a neighbor in, and the first of their neighbors."""
        found: dict[int, int] = {}
        for place in range(self._open, len(self._order)):
            node = self._order[place]
            outside = [each for each in self.graph[node] if each not in self.places]
            for neighbor in outside:
                found.setdefault(neighbor, node)
            if not outside and place == self._open:
                self._open += 1
        return found

    def _single(self) -> tuple[int, int] | None:
        """A router outside with one neighbor in: that neighbor, and the router."""
        for node in self._order[self._open :]:
            for neighbor in self.graph[node]:
                if neighbor not in self.places:
                    return node, neighbor
        return None


def _path(node: int, before: dict[int, int]) -> list[int]:
    path = [node]
    while path[-1] in before:
        path.append(before[path[-1]])
    return path
