"""A torus of any number of dimensions: a grid whose rows are closed to rings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import click
import networkx as nx

from fared.extensions.lab.generate.graphs import GraphTopology
from fared.extensions.lab.generate.model import MOST_NODES, Option


def _dimensions(text: str) -> str:
    """Check a size such as 4x4x2. Raises BadParameter."""
    try:
        sizes = _sizes(text)
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 2 or not 3 <= math.prod(sizes) <= MOST_NODES:
        raise click.BadParameter(
            f"{text!r} is not a size such as 4x4 or 2x3x4, at least 2 in each dimension and 3 "
            f"to {MOST_NODES} nodes in all"
        )
    return text


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


@dataclass(frozen=True)
class Torus(GraphTopology):
    """A torus: a grid of nodes that forward for each other, each row closed to a ring.

    A dimension of two nodes has one link between them.
    """

    dimensions: Annotated[str, Option(_dimensions, "Nodes in each dimension, such as 2x3x4.")] = (
        "4x4"
    )

    def vertices(self) -> str:
        """Return the dimensions."""
        return f"{self.dimensions.replace('x', ' x ')} nodes"

    def graph(self) -> nx.Graph[Any]:
        """Return the grid; a place has the dimensions in their order."""
        return nx.grid_graph(_sizes(self.dimensions)[::-1], periodic=True)


GENERATOR = Torus
