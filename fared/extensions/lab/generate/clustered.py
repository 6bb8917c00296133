"""Clusters: full meshes, joined to a ring by one link between neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import Option


@dataclass(frozen=True)
class Clustered(GraphTopology):
    """A clustered topology: full meshes of nodes, joined to a ring by one link each."""

    clusters: Annotated[int, Option(click.IntRange(3, 100), "Number of clusters.")] = 4
    members: Annotated[int, Option(click.IntRange(2, 10), "Nodes of each cluster.")] = 4

    def vertices(self) -> str:
        """Return the numbers of clusters and their nodes."""
        return f"{self.clusters} clusters of {self.members} nodes"

    def graph(self) -> nx.Graph[Any]:
        """Return the ring of cliques; a vertex is a cluster and the number in it."""
        flat = nx.ring_of_cliques(self.clusters, self.members)
        return nx.relabel_nodes(flat, {n: divmod(n, self.members) for n in flat})


GENERATOR = Clustered
