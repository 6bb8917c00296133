"""The shortest paths to one node, and the last nodes on them: ``show spf NODE``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.management.documents.context import ViewContext, family_name
from fared.management.documents.facts import NamedNode
from fared.management.documents.spf import SpfPaths
from fared.paths.ted.model import MAX_LINK_METRIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.paths.ted.graph import Graph
    from fared.router.instance import ProtocolInstance

_MOST = 16
"""Paths that are listed; in a fabric of several stages there may be thousands."""


def paths_to(
    context: ViewContext, instance: ProtocolInstance, area: int, node: NodeId
) -> list[SpfPaths]:
    """Return the paths from this router to a node of an area; families with the same once."""
    found: list[SpfPaths] = []
    for family, solver in instance.solvers.items():
        seen = solver.spf_view(area)
        if node not in seen:
            continue
        distances = {each: vertex.metric for each, vertex in seen.items()}
        dag = _Dag(solver.ted(area).graph(), distances, instance.root)
        entry = SpfPaths(
            proto=instance.name,
            area=context.area_name(instance.name, area),
            families=[],
            metric=distances[node],
            first_hops=[_named(context, hop) for hop in seen[node].first_hops],
            parents=[_named(context, parent) for parent in dag.parents(node)],
            paths=[[_named(context, each) for each in path] for path in dag.paths(node)],
            number=dag.number(node),
        )
        same = next((each for each in found if replace(each, families=[]) == entry), entry)
        if same is entry:
            found.append(entry)
        same.families.append(family_name(family))
    return found


def _named(context: ViewContext, node: int) -> NamedNode:
    return NamedNode(id=context.node(node), hostname=context.hostnames.get(node))


class _Dag:
    """The shortest paths as parents of each node, looked up where needed."""

    def __init__(self, graph: Graph, distances: Mapping[NodeId, int], root: int) -> None:
        self._graph, self._distances, self._root = graph, distances, root
        self._parents: dict[int, list[int]] = {}
        self._numbers: dict[int, int] = {root: 1}

    def parents(self, node: int) -> list[int]:
        """Return the nodes before this one, each once."""
        if node not in self._parents:
            self._parents[node] = sorted(set(self._before(node)))
        return self._parents[node]

    def _before(self, node: int) -> Iterator[int]:
        graph, here = self._graph, self._graph.index(node)
        if here is None or node == self._root:
            return
        for edge in range(int(graph.indptr[here]), int(graph.indptr[here + 1])):
            there = int(graph.dst[edge])
            tail, back = NodeId(int(graph.nodes[there])), int(graph.reverse[edge])
            metric, before = int(graph.metric[back]), self._distances.get(tail)
            crossed = tail == self._root or bool(graph.transit[there])
            if before is None or not crossed or metric >= MAX_LINK_METRIC:
                continue
            if before + metric == self._distances[NodeId(node)]:
                yield tail

    def number(self, node: int) -> int:
        """Return how many paths there are, as sequences of nodes."""
        waiting = [node]
        while waiting:
            last = waiting[-1]
            unknown = [each for each in self.parents(last) if each not in self._numbers]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            before = (self._numbers[each] for each in self.parents(last))
            self._numbers.setdefault(last, sum(before))
        return self._numbers[node]

    def paths(self, node: int) -> Iterator[list[int]]:
        """Yield the first paths, each from this router to the node."""
        waiting, found = [[node]], 0
        while waiting and found < _MOST:
            path = waiting.pop()
            if path[0] == self._root:
                found += 1
                yield path
            else:
                parents = reversed(self.parents(path[0]))
                waiting += [[each, *path] for each in parents if each not in path]
