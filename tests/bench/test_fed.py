"""A router that benchmarks feed with LSAs: it routes, and lets time pass."""

from __future__ import annotations

from bench.neighbors.fabric import Fabric
from bench.router.fed import Fed


def test_a_router_without_neighbors_learns_a_fabric_and_goes_on():
    fabric = Fabric(2, 3, te=True)
    fabric.originate()
    fed = Fed(fabric)
    fed.receive(fabric.lsas.values())
    fed.wait(10.0)
    known = fed.operations
    assert known > 0
    fed.wait(10.0)
    assert fed.operations == known, "nothing changes by itself"
