"""Links that a regular fabric would have: those of most siblings of a router, which it lacks.

Siblings are routers of one tier that have the same neighbors on one side while nothing is missing:
leaves of a pod, spines of a pod toward its leaves and of a plane toward its super-spines,
super-spines of a plane. So a missing link is found without any memory, after a restart of all
routers, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from fared.core.ids import NodeId
from fared.paths.ted.sides import Neighbors
from fared.paths.ted.tiers import ROLES, TierPlace

_LEAF, _SPINE, _SUPER = range(len(ROLES))
_Group = tuple[int, int, int | None]
"""Siblings: their tier, that of the neighbors that they share, their pod or plane."""


class Lacking(msgspec.Struct, frozen=True):
    """A router without a link to ``end``, which ``have`` of its ``siblings`` have."""

    node: NodeId
    end: NodeId
    have: int
    siblings: int


def lacking(neighbors: Neighbors, places: Mapping[NodeId, TierPlace]) -> list[Lacking]:
    """Return the links that most siblings have, by pair; seen from the end with more of them."""
    found: dict[tuple[NodeId, NodeId], Lacking] = {}
    for each in _all(neighbors, places):
        pair = min(each.node, each.end), max(each.node, each.end)
        known = found.get(pair)
        if known is None or known.siblings < each.siblings:
            found[pair] = each
    return [found[pair] for pair in sorted(found)]


def _all(neighbors: Neighbors, places: Mapping[NodeId, TierPlace]) -> Iterator[Lacking]:
    groups: defaultdict[_Group, list[NodeId]] = defaultdict(list)
    for node, place in places.items():
        for group in _groups(place):
            groups[group].append(node)
    for (_, toward, _), members in groups.items():
        ends = {
            node: frozenset(
                [end for end in neighbors[node] if end in places and places[end].tier == toward]
            )
            for node in members
        }
        siblings = len(members) - 1
        counts = Counter(end for mine in ends.values() for end in mine)
        usual = {end for end, have in counts.items() if 2 * have > siblings}
        for node, mine in ends.items():
            for end in usual - mine:
                yield Lacking(node, end, counts[end], siblings)


def _groups(place: TierPlace) -> Iterator[_Group]:
    if place.tier == _SPINE:
        yield _SPINE, _LEAF, place.pod
        yield _SPINE, _SUPER, place.plane
    else:
        yield place.tier, _SPINE, place.pod if place.tier == _LEAF else place.plane
