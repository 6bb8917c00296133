"""A random graph in which all nodes have as many links; a seed makes it the same again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import MOST_NODES, Option

_TRIES = 100


@dataclass(frozen=True)
class RandomRegular(GraphTopology):
    """A random graph: all nodes have as many links, drawn by a seed.

    From three links on, its diameter is nearly the least possible, as in peer-to-peer networks.
    """

    nodes: Annotated[int, Option(click.IntRange(3, MOST_NODES), "Number of nodes.")] = 16
    degree: Annotated[int, Option(click.IntRange(2, 16), "Links of each node.")] = 3
    seed: Annotated[int, Option(click.IntRange(0), "Equal seeds draw equal graphs.")] = 1

    def vertices(self) -> str:
        """Return the number of nodes, and the seed."""
        return f"{self.nodes} nodes, drawn with seed {self.seed}"

    def graph(self) -> nx.Graph[Any]:
        """Return the first connected graph that is drawn. Raises LabError."""
        if self.degree >= self.nodes or self.degree * self.nodes % 2:
            raise LabError(
                f"no graph has {self.nodes} nodes with {self.degree} links each: fewer links than "
                "nodes, and an even product"
            )
        rng = random.Random(self.seed)
        for _ in range(_TRIES):
            graph: nx.Graph[Any] = nx.random_regular_graph(self.degree, self.nodes, rng)
            if nx.is_connected(graph):
                return graph
        raise LabError(f"seed {self.seed} drew {_TRIES} graphs, none of which is connected")


GENERATOR = RandomRegular
