"""The autonomous systems of a fabric that runs BGP, as RFC 7938 §5.2.1 divides it.

A router with hosts is an AS of its own. Of the others, those above one router are one AS: all
spines of a three-stage fabric, the spines of a PoD, the super-spines of a plane. A path down to a
leaf and up again would pass that AS twice, and is refused there (RFC 4271 §9.1.2).

The AS has the number of the first of its routers, in the order of the file: 65000 + N, from 535 on
4200000000 + N, both for private use (RFC 6996).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import permutations

from fared.extensions.lab.labels import BGP
from fared.extensions.lab.model import LabTopology

_SHORT, _LONG, _LAST_SHORT = 65000, 4_200_000_000, 534
AsNumber = int
_Neighbors = Mapping[str, set[str]]


def autonomous_systems(topology: LabTopology) -> dict[str, AsNumber]:
    """Return the AS of each router that runs BGP, by name."""
    routers = [name for name, node in topology.nodes.items() if node.is_router]
    numbers = {name: number for number, name in enumerate(routers, 1)}
    neighbors: dict[str, set[str]] = {
        name: set() for name in routers if topology.nodes[name].protocol == BGP
    }
    leaves = set()
    for here, far in _adjacent(topology):
        if here in neighbors and far in neighbors:
            neighbors[here].add(far)
        elif here in neighbors and topology.nodes[far].is_host:
            leaves.add(here)
    found: dict[str, AsNumber] = {}
    for group in _groups(neighbors, leaves):
        first = min(numbers[name] for name in group)
        number = first + (_SHORT if first <= _LAST_SHORT else _LONG)
        found |= dict.fromkeys(group, number)
    return found


def _adjacent(topology: LabTopology) -> Iterator[tuple[str, str]]:
    """Yield the pairs of nodes that a link joins, or a LAN, in both orders."""
    at_lans: dict[str, list[str]] = {}
    for link in topology.links:
        one, other = (end.node for end in link.ends)
        lan = next((name for name in (one, other) if topology.nodes[name].is_segment), None)
        if lan is None:
            yield from ((one, other), (other, one))
        else:
            at_lans.setdefault(lan, []).append(other if lan == one else one)
    for members in at_lans.values():
        yield from permutations(members, 2)


def _groups(neighbors: _Neighbors, leaves: set[str]) -> list[set[str]]:
    """Return the routers of each AS: those above one router, unless two of them are linked."""
    tiers = _tiers(neighbors, leaves)
    group = {name: {name} for name in neighbors}
    for name, tier in tiers.items():
        above = [far for far in neighbors[name] if tiers[far] == tier + 1]
        joined = set[str]().union(*(group[far] for far in above))
        group |= dict.fromkeys(joined, joined)
    for name, members in list(group.items()):
        if any(neighbors[member] & members for member in members):
            group[name] = {name}
    return [members for name, members in group.items() if name == min(members)]


def _tiers(neighbors: _Neighbors, leaves: set[str]) -> dict[str, int]:
    """Return the hops of each router to the nearest leaf."""
    found = dict.fromkeys((name for name in neighbors if name in leaves), 0)
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for far in neighbors[name]:
            if far not in found:
                found[far] = found[name] + 1
                queue.append(far)
    return found
