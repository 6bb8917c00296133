"""Fabrics for plans: uplinks of capacity 1, leaves 101.., spines 1.., one worker a leaf."""

from __future__ import annotations

import random
from collections.abc import Mapping

from fared.extensions.ina.plan.model import Capacities, Direction, SummingJob

UPLINK = 1.0


def leaf(number: int) -> int:
    return 100 + number


def clos(
    spines: int = 4, leaves: int = 8, changes: Mapping[Direction, float] | None = None
) -> Capacities:
    links: dict[Direction, float] = {}
    for spine in range(1, spines + 1):
        for number in range(1, leaves + 1):
            links[leaf(number), spine] = links[spine, leaf(number)] = UPLINK
    adders = {*range(1, spines + 1), *map(leaf, range(1, leaves + 1))}
    return Capacities(links | dict(changes or {}), frozenset(adders))


def both(spine: int, number: int, capacity: float) -> dict[Direction, float]:
    """A link that is damaged in both directions."""
    return {(spine, leaf(number)): capacity, (leaf(number), spine): capacity}


def workers(leaves: int = 8, each: int = 1) -> SummingJob:
    return SummingJob("job", {i + 1: leaf(i // each + 1) for i in range(leaves * each)})


def damaged(rng: random.Random, mean: float) -> Capacities:
    """4 x 8 with that many damaged links on average, half of them in one direction only."""
    changes: dict[Direction, float] = {}
    for spine in range(1, 5):
        for number in range(1, 9):
            if rng.random() >= mean / 32:
                continue
            change = both(spine, number, rng.choice((0.0, 0.1, 0.25, 0.5)))
            if rng.random() < 0.5:
                change.pop(rng.choice(sorted(change)))
            changes |= change
    return clos(changes=changes)


FIGURE_1 = {"s1": 1, "s2": 2, "s3": 3, "s4": 4, "s5": 5, "s6": 6, "s7": 7}


def figure_1(adders: str) -> tuple[Capacities, SummingJob]:
    """draft-song-ina-00, Figure 1, with summing at some switches; w1..w4 are the job."""
    links: dict[Direction, float] = {}
    for pair in ("s1 s5", "s2 s5", "s3 s6", "s4 s6", "s5 s7", "s7 s6"):
        a, b = (FIGURE_1[name] for name in pair.split())
        links[a, b] = links[b, a] = 1.0
    chosen = frozenset(FIGURE_1[name] for name in adders.split())
    return Capacities(links, chosen), SummingJob("draft", {1: 1, 2: 1, 3: 2, 4: 2})
