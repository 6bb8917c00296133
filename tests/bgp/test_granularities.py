"""What follows the weights asks for no protocol: few flows, flowlets, packets, resilient groups.

The same fabric runs OSPF, and then BGP; kernels and rounds of packets are equal.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder, OspfBuilder, ProtocolBuilder
from fared.paths.fib.settings import FibSettings, Granularity, SpraySettings
from fared.paths.rib.settings import SolverSettings
from fared.router.settings import RouterSettings
from tests.bgp.fabrics import NEIGHBOR

FEW = {"solver": SolverSettings(flows=64)}
RESILIENT = {"fib": FibSettings(resilient=True)}
BY_PACKET = {"spray": SpraySettings(Granularity.PACKET)}
BY_FLOWLET = {"spray": SpraySettings(Granularity.FLOWLET, gap=0.05)}
CASES = {
    "few flows": FEW,
    "resilient groups": RESILIENT,
    "packets": BY_PACKET,
    "flowlets": BY_FLOWLET,
    "flowlets of few flows in resilient groups": {**FEW, **RESILIENT, **BY_FLOWLET},
}
Shares = dict[str, int]


def built(protocol: ProtocolBuilder, settings: dict[str, Any]) -> Fabric:
    """A fabric with the link from S1 to L2 at a fifth, in both directions."""
    fabric = clos3(4, 2, builder=FabricBuilder(Network(), protocols=[protocol]))
    for node in fabric.network.nodes.values():
        node.settings = replace(node.settings, **settings)
        assert isinstance(node.settings, RouterSettings)
    fabric.network.start_all()
    fabric.network.run_until_quiet(120)
    for ends in (("S1", "L2"), ("L2", "S1")):
        fabric.network.set_capacity(*ends, DEFAULT_CAPACITY / 5)
    fabric.network.run_until_quiet(60)
    return fabric


def toward(fabric: Fabric, name: str, leaf: str) -> tuple[Shares, bool, list[str], int]:
    """Weights by interface, whether resilient, and next hops of a round in turn, with its gap."""
    node = fabric.network.nodes[name]
    state = node.kernel.state
    group_id = state.routes[fabric.leaf_prefixes[leaf]]
    links = {index: port.name for index, port in node.ports.items()}

    def interface(nexthop_id: int) -> str:
        return links[state.nexthops[nexthop_id][0]]

    weights = {interface(one.nexthop_id): one.weight for one in state.groups[group_id]}
    made = node.running.spraying.programming
    order: list[str] = []
    gap = -1
    if made is not None:
        taken = made.planner.installed.rounds[group_id]
        order, gap = sorted(map(interface, taken.order)), taken.gap
    return weights, group_id in state.resilient, order, gap


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_kernels_are_the_same_over_bgp_as_over_ospf(settings: dict[str, Any]):
    ospf, bgp = (built(one, settings) for one in (OspfBuilder(), BgpBuilder(NEIGHBOR)))
    found = toward(bgp, "L1", "L2")
    assert found == toward(ospf, "L1", "L2")
    weights, resilient, order, gap = found
    part = min(weights.values()) / sum(weights.values())
    assert (part < 1 / 17) if "solver" in settings else (part == 1 / 16)
    assert resilient is ("fib" in settings)
    spray = settings.get("spray")
    assert len(order) == (sum(weights.values()) if spray else 0)
    assert gap == {None: -1, BY_PACKET["spray"]: 0, BY_FLOWLET["spray"]: 50}[spray]
