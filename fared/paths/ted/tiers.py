"""Recognizes leaves, spines and super-spines, pods and planes of a Clos fabric by its links alone.

A fabric has two sides without links inside (it is bipartite): spines on one, leaves and
super-spines on the other. Leaves of a pod have the same spines, super-spines of a plane have the
same spines, and a leaf shares at most one spine with a super-spine of each plane. So routers of
the outer side with alike neighbors are a group, and groups that share neighbors are of different
kinds: two colors. Failed links leave neighbors alike, as long as most of them are left. Which
kind is the leaves follows from what hangs on them: prefixes beyond those of links, then their
number, then fewer links. Graphs that are no Clos of three or five stages get no places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from fared.core.ids import NodeId

Neighbors = Mapping[NodeId, frozenset[NodeId]]
"""The neighbors of each router; links are in both directions."""

ROLES = ("leaf", "spine", "super-spine")
"""Names of tiers: the distance from the leaves."""
_ALIKE = 0.5
"""Routers of a group share this part of their neighbors (Jaccard index): one of two may be lost."""
_BOTH = 0.8
"""Spines of five stages that have a link to leaves and one to super-spines, at least this part."""


class TierPlace(NamedTuple):
    """The place of a router: its tier, and the number of its pod and plane, from 1.

    None: it has none, as a spine of three stages, or a leaf, which is in every plane.
    """

    tier: int
    pod: int | None = None
    plane: int | None = None


def places(neighbors: Neighbors, hosts: Mapping[NodeId, int]) -> dict[NodeId, TierPlace]:
    """Return the place of each router; empty if the graph is no Clos.

    ``hosts`` is the number of prefixes of a router beyond those of its links. Routers that cannot
    be reached from the most others have no place.
    """
    sides = _sides(neighbors)
    if sides is None:
        return {}
    rank = _rank(neighbors, hosts)
    five = [
        found
        for middle, outer in (sides, sides[::-1])
        if (found := _five_stages(middle, outer, neighbors)) is not None
    ]
    if five:
        # The spines are the side with the most links for each router.
        spines, *kinds = min(five, key=lambda found: len(found[0]))
        leaves, tops = sorted(kinds, key=lambda kind: rank([n for g in kind for n in g]))[::-1]
        return _placed(spines, leaves, tops, neighbors)
    if all(len(_alike(side, neighbors)) == 1 for side in sides):
        spines, edge = sorted(sides, key=rank)
        return {**{node: TierPlace(0) for node in edge}, **{node: TierPlace(1) for node in spines}}
    return {}


_Groups = list[list[NodeId]]


def _rank(
    neighbors: Neighbors, hosts: Mapping[NodeId, int]
) -> Callable[[Sequence[NodeId]], tuple[float, int, float, list[NodeId]]]:
    """Return the key of a set of routers: the greatest is that of leaves."""

    def key(nodes: Sequence[NodeId]) -> tuple[float, int, float, list[NodeId]]:
        beyond = median(hosts.get(node, 0) for node in nodes)
        degree = median(len(neighbors[node]) for node in nodes)
        return beyond, len(nodes), -degree, sorted(nodes)

    return key


def _sides(neighbors: Neighbors) -> tuple[list[NodeId], list[NodeId]] | None:
    """Return both sides of the largest connected part; None: it is not bipartite, or a node."""
    best: dict[NodeId, int] = {}
    seen: set[NodeId] = set()
    for start in sorted(neighbors):
        if start in seen:
            continue
        side = {start: 0}
        queue = [start]
        for node in queue:
            for far in neighbors[node] - side.keys():
                side[far] = 1 - side[node]
                queue.append(far)
        seen |= side.keys()
        if len(side) > len(best):
            best = side
    if any(best[far] == best[node] for node in best for far in neighbors[node]):
        return None
    sides = ([n for n in best if best[n] == 0], [n for n in best if best[n] == 1])
    return None if not all(sides) else (sorted(sides[0]), sorted(sides[1]))


def _alike(nodes: Iterable[NodeId], neighbors: Neighbors) -> _Groups:
    """Group routers whose neighbors are alike, each with the group whose first is most alike."""
    groups: dict[frozenset[NodeId], list[NodeId]] = {}
    known: dict[frozenset[NodeId], list[NodeId]] = {}
    for node in sorted(nodes, key=lambda node: (-len(neighbors[node]), node)):
        mine = neighbors[node]
        group = known.get(mine)
        if group is None:
            first = max(groups, key=lambda first: _jaccard(first, mine), default=mine)
            if first not in groups or _jaccard(first, mine) < _ALIKE:
                groups[mine] = []
                first = mine
            group = known[mine] = groups[first]
        group.append(node)
    return sorted(sorted(group) for group in groups.values())


def _jaccard(a: frozenset[NodeId], b: frozenset[NodeId]) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def _five_stages(
    middle: list[NodeId], outer: list[NodeId], neighbors: Neighbors
) -> tuple[list[NodeId], _Groups, _Groups] | None:
    """Return the spines and both kinds of groups, if the outer side has leaves and super-spines."""
    groups = _alike(outer, neighbors)
    ends = [frozenset[NodeId]().union(*(neighbors[node] for node in group)) for group in groups]
    kind = _two_colors(ends)
    if kind is None or len(set(kind)) < len(ROLES) - 1:
        return None
    kinds = tuple(
        [[g for g, color in zip(groups, kind, strict=True) if color == c] for c in (0, 1)]
    )
    reach = [frozenset(node for group in of for node in group) for of in kinds]
    both = sum(all(neighbors[node] & side for side in reach) for node in middle)
    if both < _BOTH * len(middle) or max(map(len, kinds)) < len(ROLES) - 1:
        return None
    return middle, kinds[0], kinds[1]


def _two_colors(ends: list[frozenset[NodeId]]) -> list[int] | None:
    """Color groups so that those with a common neighbor differ; None: two colors do not suffice."""
    color: dict[int, int] = {}
    for start in range(len(ends)):
        if start in color:
            continue
        color[start] = 0
        queue = [start]
        for group in queue:
            for other, there in enumerate(ends):
                if other == group or ends[group].isdisjoint(there):
                    continue
                if other not in color:
                    color[other] = 1 - color[group]
                    queue.append(other)
                elif color[other] == color[group]:
                    return None
    return [color[group] for group in range(len(ends))]


def _placed(
    spines: list[NodeId], leaves: _Groups, tops: _Groups, neighbors: Neighbors
) -> dict[NodeId, TierPlace]:
    """Number pods and planes; a single plane is none."""
    found: dict[NodeId, TierPlace] = {}
    planes = len(tops) > 1
    for pod, group in enumerate(leaves, 1):
        found.update({node: TierPlace(0, pod=pod) for node in group})
    for plane, group in enumerate(tops, 1):
        found.update({node: TierPlace(2, plane=plane if planes else None) for node in group})
    for spine in spines:
        ends = [found[node] for node in sorted(neighbors[spine])]
        pods = [end.pod for end in ends if end.tier == 0]
        numbers = [end.plane for end in ends if end.tier == ROLES.index("super-spine")]
        found[spine] = TierPlace(
            1, max(pods, default=None, key=pods.count), next(iter(numbers), None)
        )
    return found
