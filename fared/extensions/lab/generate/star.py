"""A star: one node in the middle, to which all others are linked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import MOST_NODES, Option


@dataclass(frozen=True)
class Star(GraphTopology):
    """A star: all other nodes are linked to n1, whose host is where a parameter server would be."""

    nodes: Annotated[
        int, Option(click.IntRange(3, MOST_NODES), "Number of nodes, with the one in the middle.")
    ] = 8

    def vertices(self) -> str:
        """Return the number of nodes."""
        return f"{self.nodes} nodes, n1 in the middle"

    def graph(self) -> nx.Graph[Any]:
        """Return the star, whose middle is vertex 0."""
        star: nx.Graph[Any] = nx.star_graph(self.nodes - 1)
        return star


GENERATOR = Star
