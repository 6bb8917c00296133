"""The tool computes from a saved database the routes of the routers."""

from __future__ import annotations

from fared.core.ids import dotted
from fared.extensions.sim.fabric import GIGABIT, Fabric, FabricBuilder
from fared.extensions.sim.network import Network
from tests.offline.fabrics import (
    all_tables,
    answer,
    clos,
    live_table,
    live_tables,
    run_spf,
    saved,
    started,
    table,
    weights,
)

LEAF_2 = "10.0.2.0/24"


def _with_parallel_links() -> Fabric:
    """L1 has two links to S1, of 400G and 100G; S1 and S2 are connected to L2."""
    builder = FabricBuilder(Network(seed=1))
    for name in ("S1", "S2", "L1", "L2"):
        builder.router(name)
    for leaf in ("L1", "L2"):
        builder.hosts(leaf)
    builder.link("L1", "S1", 400 * GIGABIT)
    builder.link("L1", "S1", 100 * GIGABIT)
    builder.link("L1", "S2", 400 * GIGABIT)
    builder.link("L2", "S1", 800 * GIGABIT)
    builder.link("L2", "S2", 400 * GIGABIT)
    return started(builder.fabric)


def test_every_router_as_root_gets_its_own_routes(figure_one, document):
    assert all_tables(document) == live_tables(figure_one)


def test_the_routers_own_interfaces_name_the_next_hops(document):
    routes = {route["prefix"]: route for route in answer(document)["routes"]}
    assert [hop["interface"] for hop in routes[LEAF_2]["nexthops"]] == ["S1", "S2", "S3", "S4"]
    assert routes[LEAF_2]["nexthops"][0]["bandwidth"] == 400 * GIGABIT
    assert routes["10.0.1.0/24"]["connected"]


def test_without_interfaces_next_hops_are_named_by_neighbor(figure_one, document):
    del document["interfaces"]
    found = answer(document)
    assert {hop["interface"] for route in found["routes"] for hop in route["nexthops"]} == {None}
    assert table(found) == live_table(figure_one, "L1")


def test_spf_result_and_first_hops_come_along(document):
    nodes = {node["hostname"]: node for node in answer(document, "--root", "L1")["nodes"]}
    assert (nodes["L1"]["metric"], nodes["S1"]["metric"], nodes["L2"]["metric"]) == (0, 10, 20)
    assert nodes["L2"]["first_hops"] == ["10.255.0.1", "10.255.0.2", "10.255.0.3", "10.255.0.4"]


def test_a_quarter_of_one_downlink_gives_one_to_four(figure_one, document):
    """S1 -> L2 has a quarter of the bandwidth: L1 sends 1 of 13 through S1."""
    changed = answer(document, "--set-bandwidth", "S1,L2=100G")
    assert weights(changed, LEAF_2) == [1, 4, 4, 4]
    assert weights(changed, "10.0.3.0/24") == [1, 1, 1, 1]
    route = next(route for route in changed["routes"] if route["prefix"] == LEAF_2)
    assert route["nexthops"][0]["capacity"] == 100 * GIGABIT


def test_a_quarter_of_ones_own_uplink(document):
    changed = answer(document, "--set-bandwidth", "L1,S1=100G")
    assert weights(changed, LEAF_2) == [1, 4, 4, 4]
    hop = next(r for r in changed["routes"] if r["prefix"] == LEAF_2)["nexthops"][0]
    assert hop["bandwidth"] == hop["capacity"] == 100 * GIGABIT


def test_a_bandwidth_nobody_flooded_can_be_assumed():
    """S1 -> L2 has no TE LSA: setting a bandwidth adds one."""
    fabric = clos(2, 2)
    for port in fabric.network.nodes["S1"].ports.values():
        if port.peer is not None:
            fabric.network.set_capacity("S1", port.peer.node, None)
    fabric.network.run_until_quiet(60)
    found = answer(saved(fabric), "--set-bandwidth", "S1,L2=100G")
    assert weights(found, LEAF_2) == [1, 4]


def test_set_bandwidth_equals_a_link_that_was_slowed_down(document):
    fabric = clos()
    fabric.network.set_capacity("S1", "L2", 100 * GIGABIT)
    fabric.network.run_until_quiet(60)
    assert all_tables(document, "--set-bandwidth", "S1,L2=100G") == live_tables(fabric)


def test_fail_link_equals_a_link_that_died(document):
    fabric = clos()
    fabric.network.set_link("L1", "S1", up=False)
    fabric.network.run_until_quiet(60)
    for ends in ("L1,S1", "10.255.0.1,L1"):
        assert all_tables(document, "--fail-link", ends) == live_tables(fabric)


def test_fail_node_takes_its_links_and_prefixes_along(document):
    found = answer(document, "--fail-node", "S1")
    assert weights(found, LEAF_2) == [1, 1, 1]
    prefixes = {route["prefix"] for route in found["routes"]}
    assert not prefixes & {"10.255.0.1/32", "10.128.0.0/31", "10.128.0.8/31"}
    assert found["ignored"] == []


def test_overload_keeps_traffic_from_passing_but_not_from_arriving(document):
    found = answer(document, "--overload", "S1")
    hops = {r["prefix"]: {hop["neighbor"] for hop in r["nexthops"]} for r in found["routes"]}
    assert "10.255.0.1" not in hops[LEAF_2]
    assert hops["10.255.0.1/32"] == {"10.255.0.1"}
    assert found["ignored"] == []


def test_a_stub_router_is_the_last_resort(document):
    alone = [arg for n in (2, 3, 4) for arg in ("--fail-node", f"S{n}")]
    found = answer(document, "--overload", "S1", *alone)
    (route,) = [route for route in found["routes"] if route["prefix"] == LEAF_2]
    assert [hop["neighbor"] for hop in route["nexthops"]] == ["10.255.0.1"]
    assert route["metric"] == 10 + 0xFFFF + 10


def test_set_cost_moves_traffic_in_one_direction(document):
    for ends in ("L1,S1=11", "S1,L2=11"):
        found = answer(document, "--set-cost", ends)
        hops = {r["prefix"]: {hop["neighbor"] for hop in r["nexthops"]} for r in found["routes"]}
        assert hops[LEAF_2] == {"10.255.0.2", "10.255.0.3", "10.255.0.4"}
    back = answer(document, "--set-cost", "S1,L1=11")
    assert weights(back, LEAF_2) == [1, 1, 1, 1]


def test_plain_ecmp_and_limited_paths(document):
    args = ("--set-bandwidth", "S1,L2=100G")
    assert weights(answer(document, "--weights", "none", *args), LEAF_2) == [1, 1, 1, 1]
    assert len(weights(answer(document, "--max-paths", "2", *args), LEAF_2)) == 2
    assert weights(answer(document, "--flows", "128", *args), LEAF_2) == [2, 11, 11, 11]
    shared = answer(document, "--max-groups", "1", *args)
    assert weights(shared, LEAF_2) == weights(shared, "10.0.3.0/24") == [1, 1, 1, 1]
    assert weights(answer(document, "--max-groups", "2", *args), LEAF_2) == [1, 4, 4, 4]


def test_weights_by_available_bandwidth_are_those_for_the_load_in_the_database(document):
    """A daemon follows load in steps; here all routes have the weights that it approaches."""
    args = ("--weights", "available", "--set-bandwidth", "S1,L2=100G")
    assert table(answer(document, *args)) == table(answer(document, *args[2:]))
    explained = run_spf(document, *args, "--explain", LEAF_2)
    assert explained.exit_code == 0, explained.output


def test_parallel_links_share_by_what_each_carries():
    fabric = _with_parallel_links()
    assert all_tables(saved(fabric)) == live_tables(fabric)
    found = answer(saved(fabric), "--set-bandwidth", "L1,S1=200G")
    assert weights(found, LEAF_2) == [1, 1, 2]
    assert len(weights(answer(saved(fabric), "--fail-link", "L1,S1"), LEAF_2)) == 1


def test_addresses_of_parallel_links_are_found_without_traffic_engineering():
    """BIRD floods no TE LSAs: the far address comes from the far end's own link data."""
    fabric = _with_parallel_links()
    document = saved(fabric, "L2")
    for area in document["areas"]:
        area["lsas"] = [lsa for lsa in area["lsas"] if lsa["hex"][6:8] != "0a"]
    found = table(answer(document, "--root", dotted(fabric.router_ids["L1"])))
    hops = [(neighbor, address) for neighbor, address, _ in found[LEAF_2][2]]
    assert hops == [hop[:2] for hop in live_table(fabric, "L1")[LEAF_2][2]]


def test_one_area_only(document):
    assert answer(document, "--area", "0") == answer(document, "--area", "0.0.0.0")
    result = run_spf(document, "--area", "1")
    assert result.exit_code == 2
    assert "no area 1 in the database; known: 0.0.0.0" in result.stderr
