"""What topologies share that are a graph of networkx, with a node of the lab at each vertex."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx

from fared.extensions.lab.generate.direct import Direct
from fared.extensions.lab.generate.model import LinkEntry


@dataclass(frozen=True)
class GraphTopology(Direct):
    """A connected graph; a vertex is a number from 0, or a tuple of such."""

    @abstractmethod
    def graph(self) -> nx.Graph[Any]:
        """Return the graph: equal parameters give an equal one. Raises LabError."""

    @abstractmethod
    def vertices(self) -> str:
        """Return how many nodes there are, in words."""

    def size(self) -> str:
        """Return the number of nodes, their links, and the diameter."""
        graph = self.graph()
        degrees = sorted({degree for _, degree in graph.degree})
        links = f"{degrees[0]} to {degrees[-1]}" if len(degrees) > 1 else str(degrees[0])
        return (
            f"{self.vertices()}, {links} links each, diameter {nx.diameter(graph)}, one host a node"
        )

    def label(self, vertex: tuple[int, ...]) -> str:
        """Return what follows the n in the name of a node."""
        return "-".join(str(place + 1) for place in vertex)

    def names(self) -> list[str]:
        """Return the nodes in the order of vertices."""
        return [self._name(vertex) for vertex in sorted(self.graph())]

    def between(self) -> Iterator[LinkEntry]:
        """Yield the links in the order of vertices."""
        for one, other in sorted(tuple(sorted(edge)) for edge in self.graph().edges):
            yield LinkEntry(self._name(one), self._name(other))

    def _name(self, vertex: Any) -> str:  # noqa: ANN401 - as networkx has them
        return f"n{self.label(vertex if isinstance(vertex, tuple) else (vertex,))}"
