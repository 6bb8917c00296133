"""A hypercube: nodes are linked whose numbers differ in one bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import Option


@dataclass(frozen=True)
class Hypercube(GraphTopology):
    """A hypercube: nodes that forward for each other, linked where one bit of the name differs."""

    dimensions: Annotated[int, Option(click.IntRange(2, 9), "Bits of the names.")] = 3

    def vertices(self) -> str:
        """Return the number of corners."""
        return f"{2**self.dimensions} nodes"

    def graph(self) -> nx.Graph[Any]:
        """Return the cube, whose vertices are bits."""
        return nx.hypercube_graph(self.dimensions)

    def label(self, vertex: tuple[int, ...]) -> str:
        """Return the bits."""
        return "".join(map(str, vertex))


GENERATOR = Hypercube
