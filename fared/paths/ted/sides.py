"""The two sides of a fabric, and routers with alike neighbors: what ``tiers`` recognizes it by.

A fabric is bipartite: its links lead from spines to leaves and super-spines, none from spine to
spine. Some that do (a pair of leaves, a router that is no part of the fabric) are left out, as
long as they are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from fared.core.ids import NodeId

Neighbors = Mapping[NodeId, frozenset[NodeId]]
"""The neighbors of each router; links are in both directions."""

ALIKE = 0.5
"""Routers of a group share this part of their neighbors (Jaccard index): one of two may be lost."""
_ODD = 0.25
"""Links inside a side, at most this part of all."""
_ODD_OF_ONE = 1 / 3
"""Links of a router inside its side, at most this part: otherwise it is on neither."""
_COMMON = 3
"""Neighbors of a group are those of one in so many of its members, at least."""


class AlikeGroup(NamedTuple):
    """Routers with alike neighbors, ascending; ``ends`` are those that many of them have."""

    members: list[NodeId]
    ends: frozenset[NodeId]


class Sides(NamedTuple):
    """Both sides, and the neighbors of each router on the other one."""

    first: list[NodeId]
    second: list[NodeId]
    across: Neighbors


def parts(neighbors: Neighbors) -> list[list[NodeId]]:
    """Return the connected parts of more than one router, the largest first."""
    found: list[list[NodeId]] = []
    seen: set[NodeId] = set()
    for start in sorted(neighbors):
        if start in seen or not neighbors[start]:
            continue
        seen.add(start)
        queue = [start]
        for node in queue:
            new = neighbors[node] - seen
            seen |= new
            queue += new
        found.append(sorted(queue))
    return sorted(found, key=len, reverse=True)


def two_sides(part: list[NodeId], neighbors: Neighbors) -> Sides | None:
    """Return the sides of a part; None: too many links are inside one."""
    order = sorted(part, key=lambda node: (-len(neighbors[node]), node))
    near, far = {order[0]}, set[NodeId]()
    queue = [order[0]]
    for node in queue:
        theirs = far if node in near else near
        new = sorted(neighbors[node] - near - far)
        theirs.update(new)
        queue += new
    across: Neighbors | None = neighbors
    if any(not neighbors[node].isdisjoint(mine) for mine in (near, far) for node in mine):
        across = _without_odd(order, neighbors, near, far)
    if across is None:
        return None
    first, second = ([n for n in part if n in mine and across.get(n)] for mine in (near, far))
    return Sides(first, second, across) if first and second else None


def _without_odd(
    order: list[NodeId], neighbors: Neighbors, near: set[NodeId], far: set[NodeId]
) -> Neighbors | None:
    """Return the neighbors of each router on the other side, after improving the sides.

    A router with most of its links inside its side changes it. Each change leaves fewer such links,
    so this ends.
    """
    moved = True
    while moved:
        moved = False
        for node in order:
            mine, theirs = (near, far) if node in near else (far, near)
            if 2 * len(neighbors[node] & mine) > len(neighbors[node]):
                mine.remove(node)
                theirs.add(node)
                moved = True
    odd = {node: len(neighbors[node] & mine) for mine in (near, far) for node in mine}
    links, inside = sum(len(neighbors[node]) for node in order), sum(odd.values())
    # a ring is no fabric: without its odd link it is a tree
    if inside > _ODD * links or links - inside < 2 * len(order):
        return None
    chosen = {node for node in order if odd[node] <= _ODD_OF_ONE * len(neighbors[node])}
    return {
        node: neighbors[node] & theirs & chosen
        for mine, theirs in ((near, far), (far, near))
        for node in mine & chosen
    }


def alike(nodes: list[NodeId], across: Neighbors, least: float = ALIKE) -> list[AlikeGroup]:
    """Group routers with alike neighbors, ascending; those with few of their group's are in none.

    Each joins the group that it is most alike: that with the most in common with what its members
    have together. ``least``: the Jaccard index from which on it does.
    """
    ends: list[set[NodeId]] = []
    members: list[list[NodeId]] = []
    known: dict[frozenset[NodeId], int] = {}
    alone = Counter(across[node] for node in nodes)
    for node in sorted(nodes, key=lambda n: (-len(across[n]), -alone[across[n]], n)):
        mine = across[node]
        number = known.get(mine)
        if number is None:
            number = max(range(len(ends)), key=lambda at: _jaccard(ends[at], mine), default=-1)
            if number < 0 or _jaccard(ends[number], mine) < least:
                number = len(ends)
                ends.append(set())
                members.append([])
            ends[number] |= mine
            known[mine] = number
        members[number].append(node)
    common = [_common(group, across) for group in members]
    groups = [
        AlikeGroup(sorted(node for node in group if _belongs(across[node], at, common)), common[at])
        for at, group in enumerate(members)
    ]
    return sorted(group for group in groups if group.members)


def _common(group: list[NodeId], across: Neighbors) -> frozenset[NodeId]:
    """Return the neighbors that many of a group have."""
    counts: Counter[NodeId] = Counter()
    for mine, times in Counter(across[node] for node in group).items():
        counts.update(dict.fromkeys(mine, times))
    return frozenset(end for end, times in counts.items() if _COMMON * times >= len(group))


def _belongs(mine: frozenset[NodeId], at: int, common: list[frozenset[NodeId]]) -> bool:
    """Whether a router has enough of its group's neighbors, and is not as much like another."""
    if mine == common[at]:
        return True
    if len(mine & common[at]) < ALIKE * len(common[at]):
        return False
    likeness = _jaccard(common[at], mine)
    return all(_jaccard(ends, mine) < likeness for n, ends in enumerate(common) if n != at)


def _jaccard(a: AbstractSet[NodeId], b: frozenset[NodeId]) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)
