"""Direct-connect topologies of regular permutations (TopoOpt, NSDI'23).

A step s joins node i with node i + s, modulo N.
If s is coprime to N, these links are one ring over all nodes, on which an all-reduce can run; D
steps are D rings. Of all sets of D steps the one of least diameter is chosen, so that other
traffic, which nodes forward for each other, has few hops.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import click

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate.direct import Direct
from fared.extensions.lab.generate.model import MOST_NODES, LinkEntry, Option, count

_MOST_SETS = 4000
"""Sets of steps that are tried: all of them if these are no more."""


def candidates(nodes: int) -> list[int]:
    """Return the steps of different rings: coprime to the number of nodes, at most half of it."""
    return [step for step in range(1, nodes // 2 + 1) if math.gcd(step, nodes) == 1]


def diameter(nodes: int, steps: Iterable[int]) -> int:
    """Return the most links between two nodes; all nodes see the same distances."""
    moves = [move for step in steps for move in (step, nodes - step)]
    seen, frontier, far = {0}, {0}, 0
    while True:
        frontier = {(at + move) % nodes for at in frontier for move in moves} - seen
        if not frontier:
            return far
        seen |= frontier
        far += 1


def best_steps(nodes: int, degree: int) -> tuple[int, ...]:
    """Return ``degree`` steps of least diameter, the first of equal ones. Raises LabError.

    One of them is 1: numbering nodes along a ring makes its step 1. If there are more than a few
    thousand sets, those tried are drawn, always the same, besides one of growing powers.
    """
    known = candidates(nodes)
    if not 1 <= degree <= len(known):
        raise LabError(
            f"{nodes} nodes have {len(known)} different rings (steps coprime to {nodes}), "
            f"not {degree}"
        )
    found = min(
        _sets(nodes, known[1:], degree - 1), key=lambda rest: (diameter(nodes, (1, *rest)), rest)
    )
    return (1, *found)


def _sets(nodes: int, known: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    if math.comb(len(known), count) <= _MOST_SETS:
        yield from itertools.combinations(known, count)
        return
    growth = nodes ** (1 / (count + 1))
    powers = {_nearest(known, growth**k) for k in range(1, count + 1)}
    if len(powers) == count:
        yield tuple(sorted(powers))
    rng = random.Random(nodes)
    for _ in range(_MOST_SETS):
        yield tuple(sorted(rng.sample(known, count)))


def _nearest(known: Sequence[int], value: float) -> int:
    return min(known, key=lambda step: abs(step - value))


def ring_all_reduce_seconds(nodes: int, degree: int, size: float, rate: float) -> float:
    """Return the least time of an all-reduce of ``size`` bytes, divided equally over all rings.

    Each of the ``degree`` rings runs in both directions, at ``rate`` bytes/s.
    """
    return 2 * (nodes - 1) / nodes * size / (2 * degree * rate)


@dataclass(frozen=True)
class Permutation(Direct):
    """Rings of direct links: nodes that forward for each other, in regular permutations (TopoOpt).

    The rings have coprime steps, with the least diameter.
    """

    nodes: Annotated[int, Option(click.IntRange(3, MOST_NODES), "Number of nodes.")] = 8
    degree: Annotated[
        int, Option(click.IntRange(1, 16), "Number of rings; a node has two links in each.")
    ] = 2

    def size(self) -> str:
        """Return the numbers of nodes and rings, the steps and their diameter."""
        steps = self.steps
        to = ", ".join(map(str, steps))
        return (
            f"{self.nodes} nodes in {self.degree} rings, node i linked to i + {to} modulo "
            f"{self.nodes}, diameter {diameter(self.nodes, steps)}, one host a node"
        )

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the rings. Raises LabError."""
        return best_steps(self.nodes, self.degree)

    def names(self) -> list[str]:
        """Return n1 to nN."""
        return [f"n{i}" for i in count(self.nodes)]

    def between(self) -> Iterator[LinkEntry]:
        """Yield ring by ring."""
        for step in self.steps:
            for i in range(self.nodes):
                ends = f"n{i + 1}", f"n{(i + step) % self.nodes + 1}"
                yield LinkEntry(*ends, f"ring of step {step}")


GENERATOR = Permutation
