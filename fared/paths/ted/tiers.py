"""Recognizes leaves, spines and super-spines, pods and planes of a Clos fabric by its links.

A fabric has two sides without links inside (``sides``): spines on one, leaves and super-spines on
the other. Leaves of a pod have the same spines, super-spines of a plane have the same spines, and a
leaf shares at most one spine with a super-spine of each plane. So routers of the outer side with
alike neighbors are a group, and groups that share neighbors are of different kinds (``stages``).
Failed links leave neighbors alike, as long as most of them are left.

Which kind is above follows from areas or levels, where there are any: a border router is below
those of the backbone and above those of its other areas. Else leaves are the kind with more
prefixes of their own, then the more numerous one, then that with fewer links.

Routers that are like no others (a leaf with one link left, a host router behind a leaf) are placed
by their neighbors, or not at all. Graphs that are no Clos of three or five stages get no places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from fared.core.ids import NodeId
from fared.paths.ted.sides import AlikeGroup, Neighbors, parts, two_sides
from fared.paths.ted.stages import LEAF, SPINE, SUPER, Evidence, Stages, stages

ROLES = ("leaf", "spine", "super-spine")
"""Names of tiers: the distance from the leaves."""
_NO_HEIGHTS: Mapping[NodeId, int] = MappingProxyType({})


class TierPlace(NamedTuple):
    """The place of a router: its tier, and the number of its pod and plane, from 1.

    None: it has none, as a spine of three stages, or a leaf, which is in every plane. Where all
    spines are in one plane it has no number. Of another pod, or plane, whose links are in no area
    of the viewer, spines have none.
    """

    tier: int
    pod: int | None = None
    plane: int | None = None


def places(
    neighbors: Neighbors,
    hosts: Mapping[NodeId, int],
    heights: Mapping[NodeId, int] = _NO_HEIGHTS,
) -> dict[NodeId, TierPlace]:
    """Return the place of each router; empty if the graph is no Clos.

    ``hosts`` is the number of prefixes that a router has besides those of its links, without those
    that it passes on from other areas or protocols. ``heights`` are INNER, BORDER or CORE, where
    there are areas. Of what failures have cut off from the most routers, only those parts have
    places in which it is certain which side is above.
    """
    evidence = Evidence(hosts, heights)
    tiers: dict[NodeId, int] = {}
    pods, planes = list[list[NodeId]](), list[list[NodeId]]()
    for number, nodes in enumerate(parts(neighbors)):
        sides = two_sides(nodes, neighbors)
        found = None if sides is None else stages(sides, evidence)
        if found is None and not number:
            return {}
        if found is None or (number and not found.certain):
            continue
        tiers.update(found.tiers)
        tiers.update(_left_out(nodes, neighbors, found, evidence))
        if found.leaves and found.supers:
            pods += [group.members for group in found.leaves]
            planes += [group.members for group in found.supers]
    pod_of = _numbered(tiers, LEAF, pods, neighbors)
    plane_of = _numbered(tiers, SUPER, planes, neighbors)
    beyond = any(tier == SPINE and node not in plane_of for node, tier in tiers.items())
    if len(planes) == 1 and not (heights and beyond):
        plane_of = {}
    return {node: TierPlace(t, pod_of.get(node), plane_of.get(node)) for node, t in tiers.items()}


def _left_out(
    nodes: list[NodeId], neighbors: Neighbors, found: Stages, evidence: Evidence
) -> Iterator[tuple[NodeId, int]]:
    """Yield the tiers of routers in no group: those beside the only one that they have links to."""
    tiers = found.tiers
    for node in nodes:
        if node in tiers:
            continue
        beside = {tiers[far] for far in neighbors[node] if far in tiers}
        if beside == {SPINE}:
            yield node, _beside_spines(node, neighbors, found, evidence)
        elif (
            beside == {LEAF, SUPER}
            or (beside == {LEAF} and _above_leaves(node, neighbors, found, evidence))
            or (beside == {SUPER} and _below_one_plane(node, neighbors, found))
        ):
            yield node, SPINE


def _beside_spines(node: NodeId, neighbors: Neighbors, found: Stages, evidence: Evidence) -> int:
    """Return whether a router with few links, all to spines, is a leaf or a super-spine."""
    lean = evidence.lean([node], neighbors)
    if lean is not None or not (found.leaves and found.supers):
        return lean if lean is not None else LEAF if found.leaves else SUPER
    few, many = (_host_prefixes(kind, evidence) for kind in (found.supers, found.leaves))
    return LEAF if few >= many or 2 * evidence.hosts.get(node, 0) > few + many else SUPER


def _above_leaves(node: NodeId, neighbors: Neighbors, found: Stages, evidence: Evidence) -> bool:
    """Whether a router with links to some leaves only is a spine, not a host behind them."""
    lean = evidence.lean([node], neighbors)
    if lean is not None:
        return lean == SUPER
    few, many = (_host_prefixes(kind, evidence) for kind in (found.spines, found.leaves))
    return len(neighbors[node]) > 1 and 2 * evidence.hosts.get(node, 0) < few + many and few < many


def _below_one_plane(node: NodeId, neighbors: Neighbors, found: Stages) -> bool:
    """Whether a router has links to super-spines of one of several planes only."""
    planes = sum(not neighbors[node].isdisjoint(group.members) for group in found.supers)
    return planes == 1 < len(found.supers)


def _host_prefixes(groups: list[AlikeGroup], evidence: Evidence) -> float:
    return evidence.host_prefixes(node for group in groups for node in group.members)


def _numbered(
    tiers: Mapping[NodeId, int], tier: int, groups: list[list[NodeId]], neighbors: Neighbors
) -> dict[NodeId, int]:
    """Number pods, or planes; their spines and routers beside their groups are in them, too."""
    found = {node: number for number, group in enumerate(sorted(groups), 1) for node in group}
    for wanted in (SPINE, tier) if found else ():
        beside = {
            node: Counter(found[far] for far in neighbors[node] if far in found)
            for node, mine in tiers.items()
            if mine == wanted and node not in found
        }
        for node, counts in beside.items():
            if counts:
                found[node] = min(counts, key=lambda number: (-counts[number], number))
    return found
