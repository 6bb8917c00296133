"""Limits that several neighbors share: of the routers that all paths of each pass through.

A neighbor names such routers beside its bandwidth, itself first, and what each of them carries. Two
neighbors that name the same router carry no more than it together: where spines of two planes meet
again, one slow link counts once. What all neighbors in use name is named to others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from fared.protocols.bgp.packet.communities import SharedLimit

Sessions = tuple[int, ...]
"""The numbers of sessions with one router, ascending."""
Chain = tuple[SharedLimit, ...]
"""Routers that all paths of one pass through."""
_MOST: Final = 7
"""Routers that are named beside the sender; a fabric of five stages has one or two."""
_LESS: Final = 1 - 1e-6
"""Part of a sum that counts as all of it: a value on the wire has single precision."""


class SharedPart(NamedTuple):
    """Neighbors that together carry less than their sum, bytes/s, because of one router.

    ``reaches``: what each of them carries to that router.
    """

    members: tuple[Sessions, ...]
    total: float
    identifier: int = 0
    reaches: tuple[float, ...] = ()


class _Named(NamedTuple):
    """A router by those that name it; ``far``: its place among what the first of them names."""

    far: int
    most: list[float]
    reach: dict[Sessions, float]


def shared_parts(
    parts: Mapping[Sessions, float], chains: Mapping[Sessions, Chain]
) -> tuple[SharedPart, ...]:
    """Return which neighbors share a limit that matters, each in one part at most.

    Limits inside each other all count; of two that overlap otherwise, only the one of fewer
    neighbors.
    """
    found: dict[tuple[int, int], _Named] = {}
    for sessions in parts:
        for far, limit in enumerate(chains.get(sessions, ())):
            one = found.setdefault(limit.speaker, _Named(far, [], {}))
            one.most.append(limit.bandwidth)
            one.reach[sessions] = limit.reach
    shared = [(speaker, one) for speaker, one in found.items() if len(one.reach) > 1]
    shared.sort(key=lambda item: (len(item[1].reach), item[1].far, item[0]))
    blocks = [SharedPart((sessions,), carried) for sessions, carried in parts.items()]
    for (_, identifier), one in shared:
        met = [block for block in blocks if not one.reach.keys().isdisjoint(block.members)]
        inside, most = sum([block.total for block in met]), min(one.most)
        if most >= inside * _LESS or any(not one.reach.keys() >= {*each.members} for each in met):
            continue
        joined = tuple(sorted([sessions for block in met for sessions in block.members]))
        reaches = tuple([one.reach[sessions] for sessions in joined])
        blocks = [block for block in blocks if block not in met]
        blocks.append(SharedPart(joined, most, identifier, reaches))
    return tuple(sorted([block for block in blocks if len(block.members) > 1]))


def told(chains: Collection[Chain]) -> Chain:
    """Return what all sessions with one router name."""
    return _common(chains, min)


def reached(chain: Chain, link: float) -> Chain:
    """Return the same as seen from the near end of links that carry so much."""
    return tuple([replace(one, reach=min(one.reach, link)) for one in chain])


def common(chains: Collection[Chain]) -> Chain:
    """Return what all neighbors name, the nearest first; they carry there what they do together."""
    return _common(chains, sum)[:_MOST]


def _common(chains: Collection[Chain], reach: Callable[[list[float]], float]) -> Chain:
    if len(chains) < 2:
        return next(iter(chains), ())
    maps = [{one.speaker: one for one in chain} for chain in chains]
    found = []
    for speaker, first in maps[0].items():
        known = [one[speaker] for one in maps if speaker in one]
        if len(known) == len(maps):
            least = min([one.bandwidth for one in known])
            found.append(replace(first, bandwidth=least, reach=reach([one.reach for one in known])))
    return tuple(found)
