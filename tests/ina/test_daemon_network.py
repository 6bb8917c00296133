"""What the daemon tells of hosts and networks, within an area or level and beyond."""

from __future__ import annotations

import pytest

from fared.core.ids import NodeId, dotted
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.network import job_network
from fared.extensions.ina.service.network import inside, is_behind, leaf_of, network_of
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.levels import clos5_levels
from fared.extensions.sim.network import Network
from fared.paths.rib.solver import RouteSolver

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[clos5_areas, clos5_levels], ids=["ospf", "isis"])
def fabric(request: pytest.FixtureRequest) -> Fabric:
    """Two PoDs, each an area or a level 1, of two leaves and two spines."""
    made: Fabric = request.param(2, 2, 2, 2, network=Network(seed=3))
    made.network.start_all()
    made.network.run_until_quiet(60)
    return made


def solvers(fabric: Fabric, name: str) -> list[RouteSolver]:
    router = fabric.network.nodes[name].running
    return [s for instance in router.instances.values() for s in instance.solvers.values()]


def name_of(fabric: Fabric, node: NodeId) -> str:
    """The name of a router by its id in the protocol that runs."""
    return next(name for name in fabric.router_ids if solvers(fabric, name)[0].root == node)


def host(fabric: Fabric, leaf: str) -> str:
    prefix = fabric.leaf_prefixes[leaf]
    network = prefix.network + 9
    return ".".join(str(network >> shift & 255) for shift in (24, 16, 8, 0))


def test_a_host_of_the_same_area_is_at_the_leaf_that_advertises_it(fabric: Fabric):
    seen = solvers(fabric, "p1.L1")
    for leaf in ("p1.L1", "p1.L2"):
        found = leaf_of(seen, host(fabric, leaf))
        assert name_of(fabric, found) == leaf
        hostname = network_of(seen).hostnames.get(found)
        assert hostname in (leaf, None)  # a simulated router may have none


def test_a_host_of_another_area_is_at_a_leaf_that_its_border_routers_know(fabric: Fabric):
    assert leaf_of(solvers(fabric, "p1.L1"), host(fabric, "p2.L1")) is None
    assert inside(solvers(fabric, "p1.S1"), host(fabric, "p2.L1")) is None
    found = inside(solvers(fabric, "p2.S1"), host(fabric, "p2.L1"))
    assert found is not None
    assert name_of(fabric, found) == "p2.L1"


def test_a_border_router_knows_the_leaf_itself(fabric: Fabric):
    found = leaf_of(solvers(fabric, "p1.S1"), host(fabric, "p1.L1"))
    assert name_of(fabric, found) == "p1.L1"


def test_hosts_of_nobody_and_words_are_refused(fabric: Fabric):
    seen = solvers(fabric, "p1.L1")
    with pytest.raises(ManagerError, match="no router of this area or level advertises a prefix"):
        leaf_of(seen, "203.0.113.7")
    with pytest.raises(ManagerError, match="is not an IPv4 address"):
        leaf_of(seen, "leaf2")


def test_an_address_is_behind_a_router_that_advertises_it_and_no_name_of_a_subnet(fabric: Fabric):
    """Only there do packets of a job go, whoever flooded it."""
    seen = solvers(fabric, "p1.L1")
    leaf = leaf_of(seen, host(fabric, "p1.L2"))
    subnet = fabric.leaf_prefixes["p1.L2"]
    last = subnet.network | (1 << 32 - subnet.length) - 1
    assert is_behind(seen, (host(fabric, "p1.L2"), leaf, False))
    border = solvers(fabric, "p1.S1")[0].root
    assert not is_behind(seen, (host(fabric, "p2.L1"), border, False))
    assert is_behind(seen, (host(fabric, "p2.L1"), border, True)), "that leads to it"
    for address, router in (
        (host(fabric, "p1.L1"), leaf),
        (host(fabric, "p2.L1"), leaf),
        (dotted(subnet.network), leaf),
        (dotted(last), leaf),
        ("203.0.113.7", leaf),
    ):
        assert not is_behind(seen, (address, router, False)), address


def test_the_network_of_a_leaf_ends_at_its_border_routers(fabric: Fabric):
    seen = solvers(fabric, "p1.L1")
    found = job_network(network_of(seen).graphs, seen[0].root)
    names = {name_of(fabric, node) for node in found.reachable}
    assert names == {"p1.L1", "p1.L2", "p1.S1", "p1.S2"}
