"""The stages of a fabric: which groups of alike routers are leaves, spines and super-spines.

The two sides of a graph (``sides``) are spines and all others. In three stages each side is one
group. In five, leaves of a pod and super-spines of a plane are groups of the other side, and groups
that share spines are of different kinds: two colors. Which kind is above follows from heights, if
most links of a group have different ones at both ends, else from what hangs on its routers.

Routers that are like no others make groups of their own and spoil the colors: what has no solution
with all groups is tried without those inside others, then without those of one router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from statistics import median
from typing import NamedTuple

from fared.core.ids import NodeId
from fared.paths.ted.sides import ALIKE, AlikeGroup, Neighbors, Sides, alike

LEAF, SPINE, SUPER = range(3)
INNER, BORDER, CORE = range(3)
"""Heights: a router of areas or levels below the backbone, of these and the backbone, of that."""
_BOTH = 0.8
"""Spines of five stages that have a link to leaves and one to super-spines, at least this part."""
_GROUPED = 0.75
"""Routers with several links that are in a group, at least this part."""
_STRICTLY = ALIKE + 1e-6
_KINDS = 2
"""Groups of one spine: its leaves and its super-spines."""
_Drop = Callable[[AlikeGroup, list[AlikeGroup]], bool]


class Stages(NamedTuple):
    """The groups of each tier, and whether it is certain which side is above."""

    leaves: list[AlikeGroup]
    spines: list[AlikeGroup]
    supers: list[AlikeGroup]
    certain: bool

    @property
    def tiers(self) -> dict[NodeId, int]:
        """The tier of each router."""
        return {
            node: tier
            for tier, groups in enumerate((self.leaves, self.spines, self.supers))
            for group in groups
            for node in group.members
        }


class Evidence:
    """What is known of routers besides their links; ``hosts`` and ``heights`` as in ``places``."""

    def __init__(self, hosts: Mapping[NodeId, int], heights: Mapping[NodeId, int]) -> None:
        self.hosts = hosts
        self.heights = heights
        self._of = [
            frozenset(node for node, height in heights.items() if height == wanted)
            for wanted in (INNER, BORDER, CORE)
        ]

    def host_prefixes(self, nodes: Iterable[NodeId]) -> float:
        """Return how many prefixes these routers have, usually."""
        return median(self.hosts.get(node, 0) for node in nodes)

    def lean(self, nodes: list[NodeId], ends: Neighbors) -> int | None:
        """Return whether routers are below or above most of their neighbors; None: neither."""
        balance = self.balance(nodes, ends)
        if 2 * abs(balance) <= sum(len(ends[node]) for node in nodes):
            return None
        return LEAF if balance > 0 else SUPER

    def balance(self, nodes: Iterable[NodeId], ends: Neighbors) -> int:
        """Return how many more links lead up from routers than down."""
        if not self.heights:
            return 0
        return sum(self.higher(node, ends) - self.lower(node, ends) for node in nodes)

    def higher(self, node: NodeId, ends: Neighbors) -> int:
        """Return how many neighbors of a router are above it."""
        above = self._of[self.heights.get(node, CORE) + 1 :]
        return sum(len(ends[node] & nodes) for nodes in above)

    def lower(self, node: NodeId, ends: Neighbors) -> int:
        """Return how many neighbors of a router are below it."""
        below = self._of[: self.heights.get(node, INNER)]
        return sum(len(ends[node] & nodes) for nodes in below)


def stages(sides: Sides, evidence: Evidence) -> Stages | None:
    """Return the stages of a connected graph; None: it is no Clos."""
    return _StageSearch(sides, evidence).found()


class _StageSearch:
    def __init__(self, sides: Sides, evidence: Evidence) -> None:
        self._across = sides.across
        self._evidence = evidence
        first, second = sides.first, sides.second
        self._several = sum(len(sides.across[node]) > 1 for node in (*first, *second))
        self._sides = ((first, second), (second, first))

    def found(self) -> Stages | None:
        """Return the best of the first attempts that give any without links against heights."""
        best: Stages | None = None
        groups = [(middle, self._alike(outer)) for outer, middle in self._sides]
        for crowded, drop in product((False, True), (_none, _inside_another, _single)):
            kept = [
                (middle, [group for group in all_ if not drop(group, all_)])
                for middle, all_ in groups
            ]
            five = [self._five(middle, some, crowded=crowded) for middle, some in kept]
            if drop is _none and not crowded:
                five += map(self._finer, self._sides)
            known = [one for one in five if one is not None]
            if not known:
                three = self._three(kept[0][1], kept[1][1])
                if three is not None:
                    return three
            # The spines are the side with the most links for each router.
            known.sort(key=lambda one: (self._against(one), len(one.spines[0].members)))
            for found in known[:1]:
                best = best or found
                if not self._against(found):
                    return found
        return best

    def _alike(self, nodes: list[NodeId]) -> list[AlikeGroup]:
        """Return groups of alike routers; those above and those below a spine are not alike."""
        groups: list[AlikeGroup] = []
        for group in alike(nodes, self._across):
            leans = {node: self._evidence.lean([node], self._across) for node in group.members}
            if {LEAF, SUPER} <= set(leans.values()):
                for lean in (LEAF, SUPER, None):
                    groups += alike([n for n in group.members if leans[n] == lean], self._across)
            else:
                groups.append(group)
        return sorted(groups)

    def _finer(self, sides: tuple[list[NodeId], list[NodeId]]) -> Stages | None:
        """Find five stages of two pods with one spine each: super-spines have both, leaves one."""
        outer, middle = sides
        found = self._five(middle, alike(outer, self._across, _STRICTLY), crowded=False)
        return found if found is not None and found.certain else None

    def _three(self, one: list[AlikeGroup], other: list[AlikeGroup]) -> Stages | None:
        """Return three stages: each side is one group."""
        if len(one) != 1 or len(other) != 1 or not self._enough([*one, *other]):
            return None
        evidence = self._evidence
        lean = evidence.lean(one[0].members, self._across)
        if lean is None:
            upper, lower = sorted((one, other), key=lambda side: self._rank(side[0].members))
        else:
            lower, upper = (one, other) if lean == LEAF else (other, one)
        few, many = (evidence.host_prefixes(side[0].members) for side in (upper, lower))
        certain = lean is not None or few < many
        if (lean is not None or few == many) and self._mostly(lower, BORDER):
            return Stages([], lower, upper, certain)
        return Stages(lower, upper, [], certain)

    def _five(
        self, middle: list[NodeId], groups: list[AlikeGroup], *, crowded: bool
    ) -> Stages | None:
        """Return five stages, if these groups are leaves and super-spines.

        ``crowded``: a few of ``middle`` may be in more than two groups; they are no spines then.
        """
        evidence = self._evidence
        leans = [evidence.lean(group.members, self._across) for group in groups]
        of: dict[NodeId, list[int]] = {}
        for number, group in enumerate(groups):
            for end in group.ends:
                of.setdefault(end, []).append(number)
        full = [end for end, mine in of.items() if len(mine) > _KINDS and _unknown(mine, leans)]
        if full and not (crowded and len(full) <= (1 - _GROUPED) * len(of)):
            return None
        for end in full:
            del of[end]
        kinds = self._two_kinds(groups, leans, [tuple(mine) for mine in of.values()])
        if kinds is None:
            return None
        leaves, supers = (
            [group for group, kind in zip(groups, kinds, strict=True) if kind == wanted]
            for wanted in (LEAF, SUPER)
        )
        both = sum(len({kinds[number] for number in mine}) == _KINDS for mine in of.values())
        certain = any(lean is not None for lean in leans)
        if not leaves or not supers:
            return None
        if not certain and (both < _BOTH * len(of) or max(len(leaves), len(supers)) < _KINDS):
            return None
        spines = [AlikeGroup([node for node in middle if node in of], frozenset())]
        few, many = (
            evidence.host_prefixes(node for group in kind for node in group.members)
            for kind in (supers, leaves)
        )
        if few < many:
            leaves, supers = self._like(leaves, many, few), self._like(supers, few, many)
        found = Stages(leaves, spines, supers, certain or few < many)
        return found if self._enough([*leaves, *spines, *supers]) else None

    def _like(self, groups: list[AlikeGroup], usual: float, other: float) -> list[AlikeGroup]:
        """Leave out routers with few of their group's links and the other kind's prefixes."""
        evidence, across, found = self._evidence, self._across, []
        for group in groups:
            few = [n for n in group.members if 2 * len(across[n] & group.ends) <= len(group.ends)]
            odd = {
                n
                for n in few
                if abs(evidence.hosts.get(n, 0) - other) < abs(evidence.hosts.get(n, 0) - usual)
            }
            if rest := [n for n in group.members if n not in odd]:
                found.append(AlikeGroup(rest, group.ends))
        return found

    def _two_kinds(
        self, groups: list[AlikeGroup], leans: list[int | None], beside: Iterable[tuple[int, ...]]
    ) -> list[int] | None:
        """Return LEAF or SUPER for each group; None: two colors do not suffice.

        Groups ``beside`` each other have a spine in common, so they differ.
        """
        others: dict[int, set[int]] = {}
        for mine in beside:
            if len(mine) == _KINDS and _unknown(mine, leans):
                for one, other in (mine, mine[::-1]):
                    others.setdefault(one, set()).add(other)
        kind = {number: lean for number, lean in enumerate(leans) if lean is not None}
        if not _spread(kind, others):
            return None
        for number in range(len(groups)):
            if number in kind:
                continue
            found = {number: LEAF}
            if not _spread(found, others):
                return None
            members = [
                [node for at, k in found.items() if k == wanted for node in groups[at].members]
                for wanted in (LEAF, SUPER)
            ]
            turned = bool(members[1]) and self._rank(members[0]) < self._rank(members[1])
            kind.update({at: SUPER - k if turned else k for at, k in found.items()})
        return [kind[number] for number in range(len(groups))]

    def _rank(self, nodes: list[NodeId]) -> tuple[float, int, int, float, list[NodeId]]:
        """Return the key of a set of routers: the greatest is that of leaves."""
        evidence, degree = self._evidence, median(len(self._across[node]) for node in nodes)
        balance = evidence.balance(nodes, self._across)
        return evidence.host_prefixes(nodes), balance, len(nodes), -degree, sorted(nodes)

    def _against(self, found: Stages) -> int:
        """Return the number of links that lead up here, and down by heights, or reversely."""
        evidence, across = self._evidence, self._across
        below = sum(
            evidence.lower(node, across) for group in found.leaves for node in group.members
        )
        above = sum(
            evidence.higher(node, across) for group in found.supers for node in group.members
        )
        return below + above

    def _mostly(self, groups: list[AlikeGroup], height: int) -> bool:
        """Whether half of the routers have this height, or more."""
        nodes = [node for group in groups for node in group.members]
        return 2 * sum(self._evidence.heights.get(node) == height for node in nodes) >= len(nodes)

    def _enough(self, groups: list[AlikeGroup]) -> bool:
        """Whether few routers with several links are left out."""
        return sum(len(group.members) for group in groups) >= _GROUPED * self._several


def _spread(kind: dict[int, int], others: Mapping[int, set[int]]) -> bool:
    """Give groups the other kind than those beside them; return whether that can be."""
    queue = list(kind)
    for number in queue:
        for other in sorted(others.get(number, ())):
            if other not in kind:
                kind[other] = SUPER - kind[number]
                queue.append(other)
            elif kind[other] == kind[number]:
                return False
    return True


def _unknown(numbers: Iterable[int], leans: list[int | None]) -> bool:
    return any(leans[number] is None for number in numbers)


def _none(_group: AlikeGroup, _all: list[AlikeGroup]) -> bool:
    return False


def _inside_another(group: AlikeGroup, all_: list[AlikeGroup]) -> bool:
    """Whether its neighbors are some of those of another group."""
    return any(group.ends < other.ends for other in all_)


def _single(group: AlikeGroup, all_: list[AlikeGroup]) -> bool:
    return len(group.members) == 1 or _inside_another(group, all_)
