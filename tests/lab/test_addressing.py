"""The address plan: computed from the file alone, the same in every run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.shaping import shape_command


@pytest.fixture
def clos3(repository: Path) -> AddressPlan:
    return make_plan(topology.load(repository / "containerlab" / "clos3.clab.yml"))


def test_routers_are_numbered_in_the_order_of_the_file(clos3: AddressPlan):
    """The spines come first: S1 is 1, L1 is 5; hosts have no number."""
    assert str(clos3.node("S1").loopback) == "10.255.0.1"
    assert str(clos3.node("L1").router_id) == "10.255.0.5"
    with pytest.raises(LabError, match="h1 is a host"):
        _ = clos3.node("h1").router_id


def test_links_are_slash_31_with_the_even_address_at_the_first_end(clos3: AddressPlan):
    """So a leaf's next hop over S1 is 10.128.0.0, as in the documents."""
    port = clos3.node("L1").ports[0]
    assert (port.name, port.peer, str(port.address)) == ("S1", "S1", "10.128.0.1/31")
    assert str(port.peer_address) == "10.128.0.0"


def test_host_subnets_count_from_1(clos3: AddressPlan):
    """h2 behind L2 is 10.0.2.2, its gateway 10.0.2.1."""
    assert str(clos3.node("L2").host_prefixes[0]) == "10.0.2.0/24"
    rank = rank_of(clos3, "h2")
    assert (rank.leaf, str(rank.gateway), str(rank.address())) == ("L2", "10.0.2.1", "10.0.2.2")


def test_no_two_ports_share_an_index_or_an_address(clos3: AddressPlan):
    """Equal indexes on the two ends of a veth make the kernel report carrier loss late."""
    ports = [port for node in clos3.nodes.values() for port in node.ports]
    assert len({port.index for port in ports}) == len(ports) == 80
    assert len({port.address.ip for port in ports}) == len(ports)


def test_every_router_has_its_own_hash_seed(clos3: AddressPlan):
    """One seed for all would send a tier's flows over the same links again."""
    assert len({node.hash_seed for node in clos3.routers}) == 12


def test_rates_are_for_links_between_routers(clos3: AddressPlan):
    """A host must be able to fill all its leaf's uplinks."""
    leaf = clos3.node("L1")
    assert {port.rate for port in leaf.fabric_ports} == {100e6 / 8}
    assert leaf.ports[-1].rate is None


def test_errors_about_unknown_names_list_the_known_ones(clos3: AddressPlan):
    """A typing error on the command line gets an answer that helps."""
    with pytest.raises(LabError, match="no node 'L9'; there are S1, S2"):
        clos3.node("L9")
    with pytest.raises(LabError, match="no link between L1 and L2; L1 is linked to S1"):
        clos3.ports_between("L1", "L2")


def test_equal_cost_next_hops_of_a_leaf_are_all_spines(clos3: AddressPlan):
    """Breadth-first search: what a complete routing table must hold."""
    names = [port.name for port in clos3.equal_cost_ports("L1", "L2")]
    assert names == ["S1", "S2", "S3", "S4"]
    assert [port.name for port in clos3.equal_cost_ports("S1", "L2")] == ["L2"]


def test_a_slow_link_behind_a_spine_counts_for_the_path_over_it(clos3: AddressPlan):
    """min(up, down), by maximum flow: a quarter at S1-L2 makes 1:4:4:4 at every other leaf."""

    def rate(port):
        return 25e6 / 8 if (port.node, port.peer) == ("S1", "L2") else port.rate

    capacities = path_capacities(clos3, rate, "L1", "L2")
    assert [value * 8 / 1e6 for value in capacities.values()] == [25, 100, 100, 100]
    assert expected_shares(capacities)["S1"] == pytest.approx(1 / 13)


def test_areas_and_costs_come_from_link_variables():
    """A PoD is an area; a leaf's hosts and loopback are in the area of its uplinks."""
    plan = make_plan(
        topology.from_document(
            {
                "name": "pod",
                "topology": {
                    "nodes": {
                        "L": {"kind": "fared"},
                        "S": {"kind": "fared"},
                        "h": {},
                        "SS": {"kind": "frr"},
                    },
                    "links": [
                        {"endpoints": ["L:S", "S:L"], "vars": {"area": 1, "cost": 7, "rate": "1G"}},
                        {"endpoints": ["S:SS", "SS:S"], "vars": {"rate": "none"}},
                        {"endpoints": ["L:h", "h:L"]},
                    ],
                },
            },
            Path("pod.clab.yml"),
        )
    )
    leaf = plan.node("L")
    assert [(port.area, port.cost) for port in leaf.ports] == [(1, 7), (1, 10)]
    assert leaf.ports[0].rate == 1e9 / 8
    assert plan.node("S").home_area == 0


def test_shaping_is_a_token_bucket_at_the_root(clos3: AddressPlan):
    """5 ms of burst: enough to reach the rate, little enough to measure it."""
    port = clos3.node("S1").ports[1]
    assert shape_command(port, 100e6 / 8) == (
        "qdisc replace dev L2 root handle 1: tbf rate 100000000bit burst 62500 limit 687500"
    )
    assert shape_command(port, None) == "qdisc del dev L2 root"
    jumbo = replace(port, mtu=9000)
    assert shape_command(jumbo, 100e6 / 8).endswith("limit 3812500"), "as many frames"
    assert shape_command(jumbo, 100e6 / 8, 0.08).endswith("limit 1062500"), "80 ms"
