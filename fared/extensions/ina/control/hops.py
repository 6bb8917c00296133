"""The links that an epoch of a job needs, and whether other trees are the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fared.extensions.ina.plan.model import Direction, Vertex
from fared.extensions.ina.slots.setup import TreeSetup

Shape = tuple[Vertex, frozenset[Direction]]
"""Root, and all edges toward it."""


def shapes_of(trees: Iterable[TreeSetup]) -> dict[Shape, int]:
    """Return the weight of each tree by its shape."""
    return {
        (tree.root, frozenset({*tree.parents.items(), *tree.above.items()})): tree.weight
        for tree in trees
    }


def hops_of(
    trees: Iterable[TreeSetup], leaves: Mapping[int, Vertex], links: Mapping[Direction, float]
) -> frozenset[Direction]:
    """Return the links that packets of the trees take for certain, in the direction of each.

    ``leaves``: the routers of workers. Edges over several routers follow routes, and need no
    certain link.
    """
    found: set[Direction] = set()
    for tree in trees:
        straight = {child: tree.root for child in tree.parents if child < 0}
        for ways, upward in ((tree.parents, True), ({**straight, **tree.above}, False)):
            for child, parent in ways.items():
                near = leaves[-child] if child < 0 else child
                found.add((near, parent) if upward else (parent, near))
    return frozenset(found & links.keys())
