"""A router that can no longer measure a link withdraws the load that it advertised."""

import pytest

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from fared.extensions.sim.invariants import forwarding
from fared.extensions.sim.levels import clos3_isis
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp.events import LoadsMeasured

FABRICS = {"ospf": clos3, "isis": clos3_isis}


@pytest.mark.parametrize("protocol", FABRICS)
def test_weights_use_the_capacity_of_a_link_whose_load_is_no_longer_measured(protocol):
    """S1 tells a load toward L2, L1 sends less over S1; S1 loses sight of it, L1 sends evenly."""
    undamped = AdaptationSettings(time_constant=0.0)
    solver = SolverSettings(mode=WeightMode.AVAILABLE, adaptation=undamped)
    fabric = FABRICS[protocol](2, 2, solver=solver)
    network, prefix = fabric.network, fabric.leaf_prefixes["L2"]
    network.start_all()
    network.run_until_quiet(60)

    def measure(load: float | None) -> float:
        """Let S1 measure that toward L2 for a while; L1's share of S1 after that."""
        for _ in range(5):
            for name, node in network.nodes.items():
                for port in node.ports.values():
                    told = load if (name, port.name) == ("S1", busy.name) else 0.0
                    network.input(name, LoadsMeasured({port.ifindex: told}))
            network.run_for(1.0)
        return float(forwarding(fabric, prefix)["L1"]["S1"])

    busy = network.find_port("S1", "L2")
    assert measure(0.75 * DEFAULT_CAPACITY) == pytest.approx(0.2, abs=0.02)
    assert measure(None) == pytest.approx(0.5)
    assert measure(0.75 * DEFAULT_CAPACITY) == pytest.approx(0.2, abs=0.02)
