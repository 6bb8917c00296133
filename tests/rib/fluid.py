"""A fluid model of hop-by-hop forwarding: every node splits by its own weights."""

from __future__ import annotations

from collections import defaultdict

from fared.core.ids import Prefix
from fared.rib.settings import SolverSettings
from tests.ted.fabrics import Fabric


def weights(fabric: Fabric, root: str, prefix: Prefix, settings=None) -> dict[str, int]:
    """Weight per neighbor, summed over parallel links, by neighbor name."""
    solver = fabric.solver(root, settings)
    solver.solve()
    found: dict[str, int] = defaultdict(int)
    for hop in solver.routes[prefix].nexthops.hops:
        found[fabric.name(hop.neighbor)] += hop.weight
    return dict(found)


def capacities(fabric: Fabric, root: str, prefix: Prefix) -> dict[str, float]:
    """Path capacity per neighbor in Gb/s, summed over parallel links."""
    solver = fabric.solver(root)
    solver.solve()
    found: dict[str, float] = defaultdict(float)
    for hop in solver.routes[prefix].nexthops.hops:
        found[fabric.name(hop.neighbor)] += hop.capacity * 8e-9
    return {name: round(value, 6) for name, value in found.items()}


def achieved(
    fabric: Fabric, source: str, prefix: Prefix, settings: SolverSettings | None = None
) -> float:
    """The rate in Gb/s at which the first link fills when source sends to prefix."""
    arriving = {source: 1.0}
    worst = 0.0
    link_of = {link.local_id: link for link in fabric.links}
    for _ in range(10):
        following: dict[str, float] = defaultdict(float)
        for name, amount in arriving.items():
            solver = fabric.solver(name, settings)
            solver.solve()
            route = solver.routes[prefix]
            if route.nexthops is None:
                continue
            for hop in route.nexthops.hops:
                part = amount * hop.weight / route.nexthops.total_weight
                link = link_of[hop.ifindex]
                following[link.head] += part
                worst = max(worst, part / link.capacity)
        arriving = following
        if not arriving:
            return 1.0 / worst
    raise AssertionError("traffic runs in circles")
