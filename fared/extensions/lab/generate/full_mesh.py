"""A full mesh: every node is linked to every other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import Option


@dataclass(frozen=True)
class FullMesh(GraphTopology):
    """A full mesh: every node is linked to every other."""

    nodes: Annotated[int, Option(click.IntRange(2, 100), "Number of nodes.")] = 8

    def vertices(self) -> str:
        """Return the number of nodes."""
        return f"{self.nodes} nodes"

    def graph(self) -> nx.Graph[Any]:
        """Return the complete graph."""
        mesh: nx.Graph[Any] = nx.complete_graph(self.nodes)
        return mesh


GENERATOR = FullMesh
