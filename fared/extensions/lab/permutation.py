"""Direct-connect topologies of regular permutations (TopoOpt, NSDI'23), as topology files.

The command is ``fared-lab generate permutation``. A step s joins node i with node i + s, modulo N.
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

import click

from fared.core.units import parse_bandwidth
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.generate import KINDS

_MOST_SETS = 4000
"""Sets of steps that are tried: all of them if these are no more."""
_HEAD = """\
# {nodes} nodes that forward for each other, in {degree} rings (permutations, TopoOpt). Node i is
# linked to the nodes i + {steps} modulo {nodes}: diameter {diameter}. Every link {rate}bit/s,
# one host a node.
#
#   fared-lab up {name}.clab.yml
#   fared-lab traffic all-reduce-ring --size 4M
#
# `fared-lab generate permutation` writes this file in other sizes.
"""
_GROUPS = """\
  groups:
    node: {{kind: linux, labels: {{fared-lab.kind: fared, fared-lab.rate: {rate}}}}}
    host: {{kind: linux}}

  nodes:
"""


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
class Permutation:
    """The size of a direct-connect topology."""

    nodes: int = 8
    degree: int = 2
    rate: str = "100M"
    name: str = "permutation"

    def text(self) -> str:
        """Return the topology file. Raises LabError."""
        steps = best_steps(self.nodes, self.degree)
        head = (_HEAD + KINDS + _GROUPS).format(
            **{**vars(self), "steps": ", ".join(map(str, steps))},
            diameter=diameter(self.nodes, steps),
        )
        return head + "".join(f"{line}\n" for line in self._lines(steps))

    def _lines(self, steps: Sequence[int]) -> Iterator[str]:
        yield from (f"    n{i}: {{group: node}}" for i in range(1, self.nodes + 1))
        yield from (f"    h{i}: {{group: host}}" for i in range(1, self.nodes + 1))
        yield ""
        yield "  links:"
        for step in steps:
            yield f"    # ring of step {step}"
            for i in range(self.nodes):
                yield _link(f"n{i + 1}", f"n{(i + step) % self.nodes + 1}")
        yield "    # hosts"
        yield from (_link(f"n{i}", f"h{i}") for i in range(1, self.nodes + 1))


def _link(one: str, other: str) -> str:
    return f'    - endpoints: ["{one}:{other}", "{other}:{one}"]'


@click.command()
@click.option("--nodes", type=click.IntRange(3, 1000), default=Permutation.nodes, show_default=True)
@click.option(
    "--degree",
    type=click.IntRange(1, 16),
    default=Permutation.degree,
    show_default=True,
    help="Number of rings; a node has two links in each.",
)
@click.option("--rate", default=Permutation.rate, show_default=True, help="Rate of every link.")
@click.option("--name", default=Permutation.name, show_default=True, help="Name of lab and file.")
def permutation(*, nodes: int, degree: int, rate: str, name: str) -> None:
    """Write a direct-connect topology: rings of coprime steps with the least diameter (TopoOpt)."""
    try:
        parse_bandwidth(rate)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from error
    click.echo(Permutation(nodes, degree, rate, name).text(), nl=False)
