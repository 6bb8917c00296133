"""Which jobs have a place in a router: each head has its share of jobs and memory.

Anybody in the area can flood jobs without number. All routers divide the places of a router alike,
from what is flooded, so a head knows where a job of its own has one, and the jobs of one head never
take those of others. What some heads leave, others may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fared.core.ids import NodeId


class Demand(NamedTuple):
    """What a job takes of a router, in bytes."""

    head: NodeId
    job_id: int
    memory: int


class RouterPlaces(NamedTuple):
    """What a router has: jobs, and bytes."""

    jobs: int
    memory: int

    def hold(self, demands: list[Demand]) -> bool:
        """Whether there is room for all."""
        return len(demands) <= self.jobs and sum(one.memory for one in demands) <= self.memory

    def less(self, memory: int) -> RouterPlaces:
        """Return what a job leaves."""
        return RouterPlaces(self.jobs - 1, self.memory - memory)


def admitted(demands: Iterable[Demand], places: RouterPlaces) -> frozenset[int]:
    """Return the ids of the jobs that have a place: max-min fair between heads.

    The heads that ask for least choose first, and none takes more than an equal part of what is
    left; then the others go on in turns. Of one head lower ids come first.
    """
    all_ = sorted(demands)
    if places.hold(all_):
        return frozenset(one.job_id for one in all_)
    queues: dict[NodeId, list[Demand]] = {}
    for one in all_:
        queues.setdefault(one.head, []).append(one)
    order = sorted(queues.values(), key=lambda own: (len(own), sum(one.memory for one in own)))
    found: set[int] = set()
    for at, own in enumerate(order):
        heads = len(order) - at
        part = RouterPlaces(max(1, places.jobs // heads), places.memory // heads)
        for one in own:
            if part.hold([one]) and places.hold([one]):
                found.add(one.job_id)
                part, places = part.less(one.memory), places.less(one.memory)
    for one in _in_turns(order):
        if not places.jobs:
            break
        if one.job_id not in found and places.hold([one]):
            found.add(one.job_id)
            places = places.less(one.memory)
    return frozenset(found)


def _in_turns(queues: list[list[Demand]]) -> Iterator[Demand]:
    for turn in range(max(map(len, queues), default=0)):
        yield from (own[turn] for own in queues if turn < len(own))
