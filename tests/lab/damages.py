"""Many damages at once in a five-stage fabric, and the weights that arithmetic has for them.

The arithmetic is that of the draft: what a spine carries from one leaf to another is the least of
the links up and down, and between PoDs also of the sum over the super-spines of its plane, of which
each carries min(in, out).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.waiting import wait_until

Damages = Mapping[tuple[str, str], int]
"""Percent of its rate by the ends of a link, in the direction of traffic; 0: the link fails."""
WHOLE = 100


FIGURE_2: Damages = {
    ("p1-S3", "p1-L2"): 80,
    ("p1-L3", "p1-S1"): 90,
    ("p8-S1", "p8-L4"): 25,
    ("p8-S2", "p8-L1"): 95,
    ("p8-L3", "p8-S4"): 60,
    ("plane4-SS1", "p8-S4"): 0,
    ("plane4-SS2", "p8-S4"): 0,
    ("plane4-SS3", "p8-S4"): 0,
    ("plane4-SS4", "p8-S4"): 85,
}
"""Nine in the fabric of eight PoDs and four super-spines a plane."""
SLOW_LINKS: Damages = {
    ("p1-S1", "p1-L2"): 25,
    ("p1-S3", "p1-L1"): 50,
    ("p5-S3", "p5-L2"): 80,
    ("p8-L3", "p8-S2"): 40,
    ("plane2-SS1", "p8-S2"): 10,
    ("plane2-SS2", "p8-S2"): 10,
    ("plane2-SS3", "p8-S2"): 5,
    ("plane2-SS4", "p8-S2"): 5,
    ("p3-L4", "p3-S4"): 20,
}
"""Nine in the same fabric, none of which fails: a plane is left with 30 % of a link."""
TWO_PODS: Damages = {
    ("p1-S3", "p1-L2"): 80,
    ("p1-L3", "p1-S1"): 90,
    ("p2-S1", "p2-L4"): 25,
    ("p2-S2", "p2-L1"): 95,
    ("p2-L3", "p2-S4"): 60,
    ("plane3-SS1", "p1-S3"): 30,
    ("plane3-SS2", "p1-S3"): 40,
    ("plane4-SS1", "p2-S4"): 0,
    ("plane4-SS2", "p2-S4"): 85,
}
"""Nine in the fabric of two PoDs and two super-spines a plane."""


def weigh_damages(fabric: Fabric, damaged: Damages, timeout: float = 30.0) -> int:
    """Damage a fabric and repair it; assert that each time all weights are those of arithmetic.

    Return the number of vectors: of every leaf's kernel toward each prefix of every other.
    """
    _set(fabric, damaged)
    vectors, wrong = _await_vectors(fabric, damaged, timeout)
    assert not wrong, f"{len(wrong)} of {vectors} vectors: {wrong[:5]}"
    _set(fabric, dict.fromkeys(damaged, WHOLE))
    _, wrong = _await_vectors(fabric, {}, timeout)
    assert not wrong, f"repaired, {len(wrong)} of {vectors} vectors: {wrong[:5]}"
    return vectors


def _set(fabric: Fabric, percents: Damages) -> None:
    for (tail, head), percent in percents.items():
        (port,) = fabric.plan.ports_between(tail, head)
        if percent == 0:
            fabric.fail(tail, head)
            continue
        if percent == WHOLE:
            fabric.heal(tail, head)
        fabric.shape(tail, head, (port.rate or 0.0) * percent / WHOLE)


class Arithmetic:
    """What each spine carries between two leaves, in percent of a whole link."""

    def __init__(self, plan: AddressPlan, damaged: Damages) -> None:
        self._neighbors = {
            router.name: [port.peer for port in router.fabric_ports] for router in plan.routers
        }
        self._damaged = damaged

    def vector(self, source: str, target: str) -> dict[str, int]:
        """Return the capacity through each of the source's spines that carries anything."""
        found = {spine: self._through(source, spine, target) for spine in self._neighbors[source]}
        return {spine: carried for spine, carried in found.items() if carried}

    def _through(self, source: str, spine: str, target: str) -> int:
        up = self._percent(source, spine)
        if target in self._neighbors[spine]:
            return min(up, self._percent(spine, target))
        far = next(n for n in self._neighbors[target] if n[-2:] == spine[-2:])
        plane = sum(
            min(self._percent(spine, above), self._percent(above, far))
            for above in self._neighbors[spine]
            if far in self._neighbors[above]
        )
        return min(up, plane, self._percent(far, target))

    def _percent(self, tail: str, head: str) -> int:
        failed = self._damaged.get((head, tail)) == 0
        return 0 if failed else self._damaged.get((tail, head), WHOLE)


def proportional(weights: Mapping[str, Fraction | int], wanted: Mapping[str, int]) -> bool:
    """Whether weights, by interface, have the ratios of these numbers exactly."""
    total, whole = sum(weights.values()), sum(wanted.values())
    return weights.keys() == wanted.keys() and all(
        weights[spine] * whole == wanted[spine] * total for spine in wanted
    )


def _prefixes(leaf: NodePlan) -> list[str]:
    return [str(prefix) for prefix in (*leaf.host_prefixes, *leaf.host_prefixes6)]


def _await_vectors(fabric: Fabric, damaged: Damages, timeout: float) -> tuple[int, list[str]]:
    """Return how many vectors there are, and the ones still wrong after ``timeout`` seconds."""
    right, leaves = Arithmetic(fabric.plan, damaged), fabric.plan.leaves
    wanted = {
        leaf.name: {
            prefix: right.vector(leaf.name, other.name)
            for other in leaves
            if other is not leaf
            for prefix in _prefixes(other)
        }
        for leaf in leaves
    }

    def wrong(name: str, view: KernelView) -> Iterator[str]:
        routes = view.routes() | view.routes6()
        for prefix, vector in wanted[name].items():
            hops = list(routes.get(prefix, ()))
            if not proportional({hop.interface: hop.weight for hop in hops}, vector):
                yield f"{name} to {prefix}: {[(h.interface, h.weight) for h in hops]}, not {vector}"

    views = fabric.views(leaves)
    wait_until(views, lambda name, view: not any(wrong(name, view)), timeout)
    left = [text for name, view in views.items() for text in wrong(name, view)]
    return sum(map(len, wanted.values())), left
