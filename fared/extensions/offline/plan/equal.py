"""Classes of equal failures: what one of them does, all of them do.

Two routers are equal if exchanging them leaves the network as it is: the same neighbors over links
of the same metrics and capacities, and the same part in the plan. Every permutation of equal
routers, and of equal parallel links, is a symmetry of the network. So two pairs of links are in one
class if their routers are pairwise equal, and the pairs share routers in the same places: all
536,854,528 pairs of links of a Clos of 64 spines and 512 leaves are in three classes.

A fast path beside ``sets.double_links``: tests/plan/test_equal.py proves their plans equal; row
``plan: classes of equal pairs of links``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanError, PlanFabric
from fared.extensions.offline.plan.sets import DOUBLES, Failures, of_links
from fared.paths.weights.pairs import surroundings

_MOST_CLASSES = 1_000_000


def equal_routers(fabric: PlanFabric, apart: Iterable[int] = ()) -> NDArray[np.int64]:
    """Return the class of each node (N,): the least number of a node that is equal to it.

    Nodes ``apart`` are equal to no other one.
    """
    graph, parallel = fabric.graph, _parallel(fabric)
    is_end = np.zeros(len(fabric.names), bool)
    is_end[fabric.ends] = True
    alone = np.zeros(len(fabric.names), np.int64)
    some = sorted(set(apart))
    alone[some] = np.arange(1, len(some) + 1)
    own = np.column_stack((is_end, alone)).astype(np.int64)
    found = np.empty(len(fabric.names), np.int64)
    known: dict[bytes, int] = {}
    for node in range(len(found)):
        links = parallel[graph.indptr[node] : graph.indptr[node + 1]]
        around = surroundings(graph, fabric.capacity, node)
        found[node] = known.setdefault(own[node].tobytes() + links.tobytes() + around, node)
    return found


def classes_of_doubles(fabric: PlanFabric, routers: NDArray[np.int64]) -> Failures:
    """Return one pair of links of each class, with the size of the class.

    ``routers`` (N,) are classes of nodes. Raises PlanError if there are too many classes.
    """
    tail, head = _ends_of_links(fabric)
    kind = _link_classes(fabric, routers)
    kinds, firsts, sizes = np.unique(kind, return_index=True, return_counts=True)
    pairs: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.int64]] = []
    total = 0
    for of, first, size in zip(kinds.tolist(), firsts.tolist(), sizes.tolist(), strict=True):
        there = np.flatnonzero(kind >= of)
        there = there[there != first]
        near = (tail[there] == tail[first]) | (head[there] == tail[first])
        far = (tail[there] == head[first]) | (head[there] == head[first])
        keys = (kind[there] * 2 + near) * 2 + far
        key, at, count = np.unique(keys, return_index=True, return_counts=True)
        # a pair of links of one class is found from both of them
        number = np.where(key // 4 == of, size * count // 2, size * count)
        pairs.append(np.column_stack((np.full(len(at), first), there[at])))
        numbers.append(number)
        total += len(at)
        if total > _MOST_CLASSES:
            raise PlanError(
                f"more than {_MOST_CLASSES:,} classes of pairs of links: draw some (--doubles N)"
            )
    chosen = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)
    chosen.sort(axis=1)
    found = of_links(DOUBLES, np.arange(len(chosen) + 1) * 2, chosen.reshape(-1))
    return msgspec.structs.replace(
        found,
        population=math.comb(len(tail), 2),
        numbers=np.concatenate(numbers) if numbers else np.zeros(0, np.int64),
        routers=routers,
    )


def least_of_equal_pairs(
    least: NDArray[np.float64], ends: NDArray[np.int64], routers: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Give each pair of ends the least capacity of all pairs that are equal to it.

    ``least`` (P, P) are capacities of pairs. Returns them, and the pair that has it (P, P), as
    row * P + column: the failure that causes it there is equal to one that causes it here.
    """
    size = len(ends)
    kind = np.unique(routers[ends], return_inverse=True)[1]
    off = ~np.eye(size, dtype=bool)
    keys = np.where(off, kind[:, None] * size + kind[None, :], -1).ravel()
    order = np.lexsort((least.ravel(), keys))
    _, first, of = np.unique(keys[order], return_index=True, return_inverse=True)
    source = np.empty(size * size, np.int64)
    source[order] = order[first[of]]
    found = np.where(off.ravel(), least.ravel()[source], least.ravel())
    return found.reshape(size, size), source.reshape(size, size)


def moved_links(
    fabric: PlanFabric, links: Iterable[int], nodes: tuple[int, int], to: tuple[int, int]
) -> list[int]:
    """Return the links that take the place of ``links`` when equal nodes change places.

    The symmetry moves both ``nodes`` to the nodes ``to``.
    """
    place = {node: node for node in (*nodes, *to)}
    for wanted, target in zip(nodes, to, strict=True):
        now = place[wanted]
        place = {k: target if v == now else now if v == target else v for k, v in place.items()}
    tail, head = _ends_of_links(fabric)
    found = []
    for link in links:
        a, b = (int(node[link]) for node in (tail, head))
        before = np.flatnonzero((tail == a) & (head == b))
        x, y = sorted((place.get(a, a), place.get(b, b)))
        after = np.flatnonzero((tail == x) & (head == y))
        found.append(int(after[before.tolist().index(link)]))
    return found


def _ends_of_links(fabric: PlanFabric) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lower and the higher node of each link (L,)."""
    edge = fabric.link_edges[:, 0]
    return fabric.graph.src[edge], fabric.graph.dst[edge]


def _link_classes(fabric: PlanFabric, routers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class of each link (L,): equal ends, and the same capacities in the same direction.

    Equal nodes are never neighbors, so the classes of both ends differ.
    """
    tail, head = (routers[node] for node in _ends_of_links(fabric))
    turned = tail > head
    there = np.where(turned, fabric.link_parts[:, 1], fabric.link_parts[:, 0])
    back = np.where(turned, fabric.link_parts[:, 0], fabric.link_parts[:, 1])
    return _numbered(np.minimum(tail, head), np.maximum(tail, head), there, back)


def _parallel(fabric: PlanFabric) -> NDArray[np.int64]:
    """A number for each edge (E,), equal where the links of both edges have the same capacities."""
    found = np.zeros(len(fabric.capacity), np.int64)
    several = np.flatnonzero(fabric.members[fabric.link_edges[:, 0]] > 1)
    parts: dict[int, list[tuple[float, float]]] = {}
    for link in several.tolist():
        forward, back = fabric.link_edges[link].tolist()
        there, here = fabric.link_parts[link].tolist()
        parts.setdefault(forward, []).append((there, here))
        parts.setdefault(back, []).append((here, there))
    known: dict[tuple[tuple[float, float], ...], int] = {}
    for edge, listed in parts.items():
        found[edge] = known.setdefault(tuple(listed), len(known) + 1)
    return found


def _numbered(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """Number the distinct rows of some columns."""
    rows = np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns])
    numbers: NDArray[np.int64] = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers
