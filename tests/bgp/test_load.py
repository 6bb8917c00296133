"""Weights that follow load: each router knows that of its own links."""

from __future__ import annotations

from fared.extensions.sim.fabric import FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp.events import LoadsMeasured
from tests.bgp.fabrics import GBPS, NEIGHBOR, neighbor, ratio, shares, started

EVEN = ratio({"S1": 1, "S2": 1})


def test_a_loaded_uplink_gets_less_and_no_neighbor_is_told():
    solver = SolverSettings(mode=WeightMode.AVAILABLE)
    builder = FabricBuilder(Network(), protocols=[BgpBuilder(NEIGHBOR)], solver=solver)
    fabric = started(clos3(2, 2, builder=builder))
    assert shares(fabric, "L1", "L2") == EVEN
    ports = {name: fabric.network.find_port("L1", name).ifindex for name in ("S1", "S2")}
    received = neighbor(fabric, "S1", "L1").received
    for _ in range(120):
        loads = {ports["S1"]: 300 * GBPS, ports["S2"]: 0.0}
        fabric.network.input("L1", LoadsMeasured(loads))
        fabric.network.run_for(1.0)
    assert 0.15 < shares(fabric, "L1", "L2")["S1"] < 0.25
    assert neighbor(fabric, "S1", "L1").received == received
    for _ in range(120):
        fabric.network.input("L1", LoadsMeasured(dict.fromkeys(ports.values(), 0.0)))
        fabric.network.run_for(1.0)
    assert 0.45 < shares(fabric, "L1", "L2")["S1"] < 0.55
