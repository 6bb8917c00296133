"""A fluid model of hop-by-hop forwarding: every node splits traffic by its own weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from fared.core.ids import Prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
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
    return common_rate(fabric, [(source, prefix)], settings)


def common_rate(
    fabric: Fabric, flows: Iterable[tuple[str, Prefix]], settings: SolverSettings | None = None
) -> float:
    """The rate per flow, in Gb/s, at which the first link fills when all flows run at once."""
    solvers: dict[str, RouteSolver] = {}
    for name in fabric.names:
        solvers[name] = fabric.solver(name, settings)
        solvers[name].solve()
    link_of = {link.local_id: link for link in fabric.links}
    arriving: dict[tuple[str, Prefix], float] = defaultdict(float)
    for flow in flows:
        arriving[flow] += 1.0
    load: dict[int, float] = defaultdict(float)
    for _ in range(10):
        following: dict[tuple[str, Prefix], float] = defaultdict(float)
        for (name, prefix), amount in arriving.items():
            route = solvers[name].routes[prefix]
            if route.nexthops is None:
                continue
            for hop in route.nexthops.hops:
                part = amount * hop.weight / route.nexthops.total_weight
                load[hop.ifindex] += part
                following[link_of[hop.ifindex].head, prefix] += part
        arriving = following
        if not arriving:
            return min(link_of[number].capacity / amount for number, amount in load.items())
    raise AssertionError("traffic runs in circles")
