"""The route solver: routes, changes, and explanations."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from fared.core.ids import NodeId, ipv4_prefix
from fared.paths.rib.few import FEW
from fared.paths.rib.rows import AdvertisementRows
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver, WeightMode
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.model import PathType, PrefixReachability
from tests.rib.fluid import capacities, weights
from tests.ted.fabrics import AREA, GBPS, Fabric, five_stage, three_stage
from tests.work import counting_calls

NET = ipv4_prefix(0xC0000200, 24)


def solved(fabric: Fabric, root: str, settings: SolverSettings | None = None) -> RouteSolver:
    solver = fabric.solver(root, settings)
    solver.solve()
    return solver


def refresh(solver: RouteSolver, fabric: Fabric, *names: str) -> None:
    for name in names:
        solver.put_block(AREA, fabric.id(name), fabric.block(name))


def hops_of(fabric: Fabric, solver: RouteSolver, prefix) -> list[tuple[str, int]]:
    return [(fabric.name(h.neighbor), h.weight) for h in solver.routes[prefix].nexthops.hops]


def test_the_first_run_finds_everything_and_the_second_nothing():
    fabric = three_stage()
    solver = fabric.solver("L1")
    update = solver.solve()
    assert update.spf_ran
    assert (update.nodes, update.edges, len(solver.spf_view(0)) - 1) == (12, 64, 11)
    assert set(update.changed) == set(solver.routes)
    again = solver.solve()
    assert (again.spf_ran, again.changed, again.areas) == (False, {}, ())


def test_a_degraded_link_reweighs_without_spf():
    """Only routes through it change; the plan stays the very same object."""
    fabric = three_stage()
    solver = solved(fabric, "L1")
    plan = solver._areas[AREA].solution.plan
    fabric.limit("S1", "L2", 100)
    refresh(solver, fabric, "S1")
    update = solver.solve()
    assert update.spf_ran is False
    assert solver._areas[AREA].solution.plan is plan
    assert set(update.changed) == {fabric.prefix("L2")}
    assert [w for _, w in hops_of(fabric, solver, fabric.prefix("L2"))] == [1, 4, 4, 4]


def test_a_capacity_change_off_all_paths_changes_nothing():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    fabric.limit("L2", "S1", 100)
    refresh(solver, fabric, "L2")
    assert solver.solve().changed == {}


def test_many_weight_changes_equal_a_fresh_start():
    fabric = five_stage(3, 3, 3, 3)
    solver = solved(fabric, "p1.L1")
    for at, link in enumerate(fabric.links):
        if at % 7 == 0:
            link.capacity = [50.0, 100.0, 150.0][at % 3]
            refresh(solver, fabric, link.tail)
            solver.set_local_links(AREA, fabric.local_links("p1.L1"))
            solver.solve()
    assert dict(solver.routes) == dict(solved(fabric, "p1.L1").routes)


def test_sets_of_former_capacities_are_forgotten():
    """Where the capacities of others change all the time, no memory is used for what was."""
    fabric = three_stage()
    solver = solved(fabric, "L1")
    nodes = len(solver.spf_view(0))
    for at in range(500):
        fabric.limit("S1", "L2", 10 + at % 250 * 0.1)
        refresh(solver, fabric, "S1")
        solver.solve()
        assert len(solver._areas[AREA].solution.builder) <= 4 * (nodes + 1)
    assert dict(solver.routes) == dict(solved(fabric, "L1").routes)


def test_a_lost_link_runs_spf_and_changes_only_the_routes_behind_it():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    fabric.cut("S1", "L2")
    refresh(solver, fabric, "S1", "L2")
    update = solver.solve()
    assert update.spf_ran
    assert set(update.changed) == {fabric.prefix("L2")}
    assert [name for name, _ in hops_of(fabric, solver, fabric.prefix("L2"))] == ["S2", "S3", "S4"]


@pytest.mark.parametrize("root", ["L1", "S1"])
def test_an_own_link_that_goes_or_comes_changes_only_the_routes_over_it(root):
    """The others stay the same objects: nothing that depends on them looks at them."""
    fabric, whole = three_stage(), three_stage()
    fabric.cut("S1", "L1")
    solver = solved(whole, root)
    for now in (fabric, whole):
        before, routes = dict(solver.routes), solved(now, root).routes
        refresh(solver, now, "S1", "L1")
        solver.set_local_links(AREA, now.local_links(root))
        changed = solver.solve().changed
        assert dict(solver.routes) == dict(routes)
        assert changed.keys() == {prefix for prefix in routes if before[prefix] != routes[prefix]}
        assert 0 < len(changed) < len(routes) - 1


def test_routes_to_make_again_read_only_the_advertisers_and_keys_of_advertisements(monkeypatch):
    fabric = three_stage(4, 12)
    solver = solved(fabric, "L1")
    read: list[int] = []
    monkeypatch.setattr(AdvertisementRows, "read", lambda _, rows: read.append(len(rows)))
    fabric.limit("L1", "S1", 100)
    refresh(solver, fabric, "L1")
    assert len(solver.solve().changed) > FEW
    assert not read


def test_links_may_be_described_before_they_can_be_used():
    """Then there are first hops without a link, of which nothing stays."""
    fabric, alone = three_stage(), three_stage()
    for spine in ("S1", "S2", "S3", "S4"):
        alone.cut("L1", spine)
    solver = solved(alone, "L1")
    for links in ((), fabric.local_links("L1")):
        refresh(solver, fabric, *fabric.names)
        solver.set_local_links(AREA, links)
        solver.solve()
    assert dict(solver.routes) == dict(solved(fabric, "L1").routes)


def test_the_second_end_to_lose_a_link_has_nothing_computed():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    fabric.cut("S1", "L2")
    refresh(solver, fabric, "S1")
    assert solver.solve().areas == (AREA,)
    refresh(solver, fabric, "L2")
    assert solver.solve().areas == ()


@pytest.mark.parametrize("what", ["capacities", "local_ids"])
def test_parallel_links_of_this_router_may_change_places(what):
    """In the graph they are one edge, which stays as it is; the kernel has a next hop for each."""
    fabric = three_stage(parallel=2)
    fabric.limit("L1", "S1", 100, 0)
    solver = solved(fabric, "L1")
    to = fabric.prefix("L2")
    before = {hop.interface: hop.weight for hop in solver.routes[to].nexthops.hops}
    block = fabric.block("L1")
    first, second = (block.neighbors == fabric.id("S1")).nonzero()[0]
    values = getattr(block, what).copy()
    values[[first, second]] = values[[second, first]]
    solver.put_block(AREA, block.node, replace(block, **{what: values}))
    solver.solve()
    after = {hop.interface: hop.weight for hop in solver.routes[to].nexthops.hops}
    mine = [
        link.interface
        for link in fabric.local_links("L1")
        if link.neighbor == block.neighbors[first]
    ]
    assert before[mine[0]] != before[mine[1]]
    assert after == before | {mine[0]: before[mine[1]], mine[1]: before[mine[0]]}


def test_routes_of_a_removed_router_are_withdrawn():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    solver.put_block(AREA, fabric.id("L2"), None)
    assert solver.solve().changed == {fabric.prefix("L2"): None}
    assert fabric.prefix("L2") not in solver.routes


def test_equal_next_hops_are_one_object():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    sets = {id(solver.routes[fabric.prefix(f"L{n}")].nexthops) for n in range(2, 9)}
    assert len(sets) == 1


def test_no_adjacency_no_next_hop():
    fabric = three_stage()
    solver = solved(fabric, "L1")
    links = fabric.local_links("L1")
    solver.set_local_links(AREA, links[1:])
    update = solver.solve()
    assert not update.spf_ran
    assert [name for name, _ in hops_of(fabric, solver, fabric.prefix("L2"))] == ["S2", "S3", "S4"]
    solver.set_local_links(AREA, ())
    assert all(route is None for route in solver.solve().changed.values())
    assert set(solver.routes) == {fabric.prefix("L1")}


def test_own_prefixes_are_connected():
    """Also those that a neighbor announces more cheaply: the link between us, for one."""
    fabric = three_stage()
    fabric.anycast(NET, "L1", metric=100)
    fabric.anycast(NET, "S1", metric=1)
    solver = solved(fabric, "L1")
    assert solver.routes[fabric.prefix("L1")].nexthops is None
    assert solver.routes[NET].nexthops is None
    assert solver.routes[NET].metric == 100
    assert solved(fabric, "L2").routes[NET].metric == 11


def test_a_transit_network_we_are_on_is_connected():
    fabric = Fabric(lans={"lan"})
    for name in ("A", "B", "C"):
        fabric.connect(name, "lan")
    fabric.anycast(NET, "lan")
    solver = fabric.solver("A")
    solver.set_local_links(
        AREA,
        tuple(
            replace(link, neighbor=fabric.id(name), gateway=at + 1)
            for at, name in enumerate(("B", "C"))
            for link in fabric_lan_links(fabric)
        ),
    )
    solver.solve()
    assert solver.routes[NET].nexthops is None
    (hop,) = solver.routes[fabric.prefix("B")].nexthops.hops
    assert (hop.gateway, hop.capacity) == (1, 400 * GBPS)


def fabric_lan_links(fabric: Fabric):
    lans, fabric.lans = fabric.lans, set()
    links = fabric.local_links("A")
    fabric.lans = lans
    return links


@pytest.mark.rfc("RFC 2328 §11")
@pytest.mark.parametrize(
    ("near", "far", "winner"),
    [
        ((PathType.INTER_AREA, 1), (PathType.INTRA_AREA, 50), "L3"),
        ((PathType.EXTERNAL_1, 1), (PathType.INTER_AREA, 50), "L3"),
        ((PathType.EXTERNAL_2, 1), (PathType.EXTERNAL_1, 500), "L3"),
        ((PathType.EXTERNAL_2, 20), (PathType.EXTERNAL_2, 10), "L3"),
        ((PathType.EXTERNAL_1, 20), (PathType.EXTERNAL_1, 30), "S1"),
        ((PathType.LEVEL_2, 1), (PathType.LEVEL_1, 50), "L3"),
    ],
)
def test_the_kind_of_path_comes_before_its_cost(near, far, winner):
    """RFC 2328 §11: intra-area, inter-area, external 1, external 2; S1 is nearer than L3."""
    fabric = three_stage()
    fabric.prefixes["S1"].append(PrefixReachability(NET, near[1], near[0]))
    fabric.prefixes["L3"].append(PrefixReachability(NET, far[1], far[0]))
    route = solved(fabric, "L1").routes[NET]
    assert route.destinations == (fabric.id(winner),)
    if route.path_type is PathType.EXTERNAL_2:
        assert route.metric == 10, "the external metric alone"


@pytest.mark.rfc("RFC 2328 §16.4")
def test_equal_external_2_metrics_are_decided_by_distance():
    fabric = three_stage()
    for name in ("L3", "S1"):
        fabric.prefixes[name].append(PrefixReachability(NET, 20, PathType.EXTERNAL_2))
    assert solved(fabric, "L1").routes[NET].destinations == (fabric.id("S1"),)


def test_what_border_routers_announce_tells_their_paths_apart():
    """Four border routers reach the same remote prefix, one of them through a narrow plane."""
    fabric = three_stage()
    for spine, gbps in (("S1", 100), ("S2", 400), ("S3", 400), ("S4", 1600)):
        fabric.prefixes[spine].append(PrefixReachability(NET, 20, PathType.INTER_AREA, gbps * GBPS))
    assert weights(fabric, "L1", NET) == {"S1": 1, "S2": 4, "S3": 4, "S4": 4}
    assert capacities(fabric, "L1", NET)["S1"] == 100


def border_router() -> tuple[RouteSolver, Fabric, int, NodeId]:
    """The solver of R, its backbone with X, the other area, and Y there."""
    backbone, inner, other = Fabric(), Fabric(), 1
    backbone.connect("R", "X")
    inner.connect("R", "Y")
    solver = backbone.solver("R")
    for name in ("R", "Y"):
        solver.put_block(other, inner.id(name), inner.block(name))
    solver.set_local_links(other, inner.local_links("R"))
    return solver, backbone, other, inner.id("Y")


@pytest.mark.rfc("RFC 2328 §16.2")
def test_a_border_router_examines_summaries_outside_the_backbone_once_it_has_lost_that():
    """RFC 2328 §16.2: until then no change of them is a reason to compute."""
    solver, backbone, other, summary = border_router()
    item = PrefixReachability(NET, 20, PathType.INTER_AREA, GBPS)
    assert solver.put_prefixes(other, summary, {"a": item}) is ChangeKind.PREFIX
    solver.solve()
    assert NET not in solver.routes
    for changed in (replace(item, metric=30), None, item, replace(item, metric=40)):
        assert solver.put_prefixes(other, summary, {"a": changed}) is ChangeKind.NONE
    inside = replace(item, path_type=PathType.INTRA_AREA)
    assert solver.put_prefixes(other, summary, {"b": inside}) is ChangeKind.PREFIX
    assert solver.put_prefixes(other, summary, {"b": None}) is ChangeKind.LOSS
    solver.set_local_links(AREA, ())
    backbone.cut("R", "X")
    refresh(solver, backbone, "R")
    solver.solve()
    assert solver.routes[NET].metric == 50
    assert solver.put_prefixes(other, summary, {"a": None}) is ChangeKind.LOSS


def test_summaries_that_a_border_router_does_not_examine_are_no_work_later():
    """Those of other border routers of its area arrive after each lost link."""
    solver, backbone, other, summary = border_router()
    prefixes = [ipv4_prefix(0xC0010000 + (number << 8), 24) for number in range(20)]
    item = PrefixReachability(NET, 20, PathType.INTER_AREA, GBPS)
    solver.put_prefixes(AREA, backbone.id("X"), {"x": item})
    solver.put_prefixes(other, summary, {at: replace(item, prefix=at) for at in prefixes})
    solver.solve()

    def calls(metric: int) -> int:
        """The calls of a run for a changed summary of the backbone."""
        solver.put_prefixes(AREA, backbone.id("X"), {"x": replace(item, metric=metric)})
        with counting_calls() as counted:
            assert set(solver.solve().changed) == {NET}
        return counted.count

    alone = calls(21)
    changed = {at: replace(item, prefix=at, metric=30) for at in prefixes}
    assert solver.put_prefixes(other, summary, changed) is ChangeKind.NONE
    assert calls(22) == alone


def test_one_border_router_limits_all_paths_alike():
    fabric = three_stage()
    fabric.limit("L1", "S2", 200)
    fabric.prefixes["L3"].append(PrefixReachability(NET, 20, PathType.INTER_AREA, 100 * GBPS))
    assert weights(fabric, "L1", NET) == {"S1": 2, "S2": 1, "S3": 2, "S4": 2}
    assert set(capacities(fabric, "L1", NET).values()) == {100}


def test_a_change_of_what_is_announced_reweighs():
    fabric = three_stage()
    for spine in ("S1", "S2"):
        fabric.prefixes[spine].append(PrefixReachability(NET, 5, PathType.INTER_AREA, 400 * GBPS))
    solver = solved(fabric, "L1")
    fabric.prefixes["S1"][-1] = PrefixReachability(NET, 5, PathType.INTER_AREA, 100 * GBPS)
    refresh(solver, fabric, "S1")
    update = solver.solve()
    assert not update.spf_ran
    assert set(update.changed) == {NET}
    assert hops_of(fabric, solver, NET) == [("S1", 1), ("S2", 4)]


def test_equal_routes_of_two_areas_are_one_route():
    fabric, other = three_stage(2, 3), three_stage(2, 3)
    fabric.anycast(NET, "L2")
    other.anycast(NET, "L2")
    other.limit("S1", "L2", 100)
    solver = solved(fabric, "L1")
    for name in other.names:
        solver.put_block(7, other.id(name), other.block(name))
    links = other.local_links("L1")
    solver.set_local_links(7, tuple(replace(link, ifindex=link.ifindex + 100) for link in links))
    solver.solve()
    route = solver.routes[NET]
    assert route.area is None
    assert [hop.weight for hop in route.nexthops.hops] == [4, 4, 1, 4]


def test_at_most_max_paths_members_always_the_same_ones():
    fabric = three_stage()
    settings = SolverSettings(max_paths=2)
    to = fabric.prefix("L2")
    assert set(weights(fabric, "L1", to, settings)) == {"S1", "S2"}
    fabric.limit("S1", "L2", 100)
    assert weights(fabric, "L1", to, settings) == {"S1": 1, "S2": 4}


def test_a_group_takes_no_more_entries_than_the_chip_has():
    """1:4:4:4 takes 13; with 12 the small path is left out, and with 2 there are two next hops."""
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    to = fabric.prefix("L2")
    assert weights(fabric, "L1", to, SolverSettings(max_group_size=13))["S1"] == 1
    assert set(weights(fabric, "L1", to, SolverSettings(max_group_size=12)).values()) == {1}
    assert len(weights(fabric, "L1", to, SolverSettings(max_group_size=12))) == 3
    assert len(weights(fabric, "L1", fabric.prefix("L3"), SolverSettings(max_group_size=2))) == 2
    assert max(weights(fabric, "L1", to, SolverSettings(max_weight=3)).values()) <= 3


def test_settings_apply_at_the_next_run():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    solver = solved(fabric, "L1")
    solver.apply_settings(SolverSettings(mode=WeightMode.NONE))
    update = solver.solve()
    assert set(update.changed) == {fabric.prefix("L2")}, "the others were equal anyway"
    assert {w for _, w in hops_of(fabric, solver, fabric.prefix("L2"))} == {1}


def test_with_few_flows_a_small_path_gets_a_smaller_weight():
    """Only the weight of that path changes; its capacity does not."""
    fabric = three_stage()
    fabric.limit("S1", "L2", 80)
    solver = solved(fabric, "L1")
    before = solver.routes[fabric.prefix("L2")].nexthops.hops
    solver.apply_settings(SolverSettings(flows=128))
    update = solver.solve()
    assert set(update.changed) == {fabric.prefix("L2")}, "equal paths stay equal"
    assert [w for _, w in hops_of(fabric, solver, fabric.prefix("L2"))] == [1, 7, 7, 7]
    after = solver.routes[fabric.prefix("L2")].nexthops.hops
    assert [hop.capacity for hop in after] == [hop.capacity for hop in before]
    solver.apply_settings(SolverSettings())
    solver.solve()
    assert [w for _, w in hops_of(fabric, solver, fabric.prefix("L2"))] == [1, 5, 5, 5]


def test_available_mode_follows_load_and_keeps_a_floor():
    fabric = three_stage()
    for link in fabric.links:
        if (link.tail, link.head) == ("S1", "L2"):
            link.available = 0.0
        if (link.tail, link.head) == ("S2", "L2"):
            link.available = 100.0
    settings = SolverSettings(mode=WeightMode.AVAILABLE)
    found = weights(fabric, "L1", fabric.prefix("L2"), settings)
    assert found["S2"] / found["S3"] == pytest.approx(0.25, abs=0.01)
    assert found["S1"] / found["S3"] == pytest.approx(0.02, abs=0.005)


def test_where_weights_follow_capacity_load_costs_nothing():
    """Advertised loads cause no computation."""
    fabric = three_stage()
    solver = solved(fabric, "L1")
    for link in fabric.links:
        if (link.tail, link.head) == ("S1", "L2"):
            link.available = 100.0
    refresh(solver, fabric, "S1")
    assert solver.solve().areas == ()
    fabric.limit("S1", "L2", 100)
    refresh(solver, fabric, "S1")
    assert solver.solve().areas == (AREA,)


def test_an_unknown_link_is_no_zero_and_is_shown_as_unknown():
    fabric = three_stage()
    fabric.limit("S1", "L2", None)
    fabric.limit("L2", "S1", None)
    fabric.limit("S2", "L2", 100)
    solver = solved(fabric, "L1")
    hops = solver.routes[fabric.prefix("L2")].nexthops.hops
    assert [(hop.capacity, hop.weight) for hop in hops] == [
        (None, 4),
        (100 * GBPS, 1),
        (400 * GBPS, 4),
        (400 * GBPS, 4),
    ]


def test_a_fabric_without_any_te_is_plain_ecmp():
    fabric = three_stage()
    for link in fabric.links:
        link.capacity = None
    solver = solved(fabric, "L1")
    hops = solver.routes[fabric.prefix("L2")].nexthops.hops
    assert [(hop.capacity, hop.weight) for hop in hops] == [(None, 1)] * 4


def test_capacities_of_own_links_are_known_even_if_not_flooded():
    fabric = three_stage()
    for link in fabric.links:
        if {link.tail, link.head} & {"L1"}:
            link.capacity = None
    solver = fabric.solver("L1")
    links = fabric.local_links("L1")
    solver.set_local_links(
        AREA,
        tuple(replace(link, bandwidth=(100 if at else 50) * GBPS) for at, link in enumerate(links)),
    )
    solver.solve()
    assert [w for _, w in hops_of(fabric, solver, fabric.prefix("L2"))] == [1, 2, 2, 2]


def test_explain_names_the_links_that_limit():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    fabric.limit("L1", "S2", 200)
    explanation = solved(fabric, "L1").explain(fabric.prefix("L2"))
    one, two, three, _ = explanation.hops
    (limit,) = one.limits
    assert (fabric.name(limit.tail), fabric.name(limit.head)) == ("S1", "L2")
    assert limit.capacity == one.path_capacity == 100 * GBPS
    assert one.local_capacity == 400 * GBPS
    (limit,) = two.limits
    assert (fabric.name(limit.tail), fabric.name(limit.head)) == ("L1", "S2")
    assert one.ecmp_share == 0.25
    assert one.share == pytest.approx(1 / 11)
    assert sum(hop.share for hop in explanation.hops) == pytest.approx(1)
    assert three.path_capacity == 400 * GBPS
    assert explanation.shared_node is None


def test_explain_at_a_spine_names_the_node_all_paths_share():
    fabric = five_stage()
    fabric.limit("SS1.1", "p2.S1", 50)
    explanation = solved(fabric, "p1.S1").explain(fabric.prefix("p2.L1"))
    assert fabric.name(explanation.shared_node) == "p2.S1"


def test_explain_lists_all_links_of_a_bottleneck():
    fabric = five_stage()
    fabric.limit("SS1.3", "p2.S1", 50)
    fabric.cut("p1.S1", "SS1.1")
    fabric.cut("p1.S1", "SS1.2")
    fabric.limit("SS1.4", "p2.S1", 100)
    explanation = solved(fabric, "p1.L1").explain(fabric.prefix("p2.L1"))
    found = {(fabric.name(k.tail), fabric.name(k.head)) for k in explanation.hops[0].limits}
    assert found == {("SS1.3", "p2.S1"), ("SS1.4", "p2.S1")}


def test_explain_without_a_route():
    assert solved(three_stage(), "L1").explain(NET) is None


def test_what_a_border_router_would_announce():
    fabric = five_stage()
    fabric.limit("SS1.1", "p2.S1", 50)
    fabric.limit("p2.S1", "p2.L1", 100)
    assert solved(fabric, "p1.S1").path_capacity(fabric.prefix("p2.L1")) == 100 * GBPS
    assert solved(fabric, "p1.S1").path_capacity(fabric.prefix("p1.S1")) is None


def test_the_spf_view_has_distances_and_first_hops():
    fabric = three_stage(2, 2)
    view = solved(fabric, "L1").spf_view(AREA)
    assert view[fabric.id("L2")].metric == 20
    assert view[fabric.id("L2")].first_hops == (fabric.id("S1"), fabric.id("S2"))
    assert solved(fabric, "L1").spf_view(99) == {}


def test_a_router_alone_has_its_own_prefixes():
    fabric = Fabric()
    fabric.node("A")
    solver = solved(fabric, "A")
    assert set(solver.routes) == {fabric.prefix("A")}


def test_before_its_own_block_arrives_there_are_no_routes():
    fabric = three_stage()
    solver = RouteSolver(fabric.id("L1"), SolverSettings())
    assert solver.solve().changed == {}
    refresh(solver, fabric, *(name for name in fabric.names if name != "L1"))
    assert solver.solve().changed == {}
    refresh(solver, fabric, "L1")
    solver.set_local_links(AREA, fabric.local_links("L1"))
    assert len(solver.solve().changed) == 12
    solver.put_block(AREA, fabric.id("L1"), None)
    assert set(solver.solve().changed.values()) == {None}
    assert dict(solver.routes) == {}


def test_random_changes_in_any_order_equal_a_fresh_start():
    """Capacities, links, prefixes, routers and adjacencies come and go between runs."""
    random = np.random.default_rng(5)
    fabric = three_stage(3, 5, parallel=2)
    whole = list(fabric.links)
    solver = solved(fabric, "L1")
    for _ in range(40):
        draw = random.random()
        if draw < 0.4:
            whole[int(random.integers(len(whole)))].capacity = float(random.choice([100, 200, 400]))
        elif draw < 0.6:
            dead = whole[int(random.integers(len(whole)))]
            pair = {dead.local_id, dead.remote_id}
            fabric.links = [link for link in whole if link.local_id not in pair]
        elif draw < 0.8:
            fabric.links = list(whole)
        else:
            fabric.anycast(NET, f"L{random.integers(2, 6)}", metric=int(random.integers(3)))
        refresh(solver, fabric, *fabric.names)
        solver.set_local_links(AREA, fabric.local_links("L1"))
        before = dict(solver.routes)
        update = solver.solve()
        for prefix, route in update.changed.items():
            before.pop(prefix, None)
            if route is not None:
                before[prefix] = route
        assert before == dict(solver.routes), "the update tells all that changed"
        assert dict(solver.routes) == dict(solved(fabric, "L1").routes)


@pytest.mark.parametrize("count", [3, 2 * FEW])
def test_prefixes_of_one_node_at_one_metric_share_a_route_whatever_lies_between(count):
    """A router may redistribute a hundred thousand prefixes; their metrics may alternate."""
    fabric = three_stage()
    solver = solved(fabric, "L1")
    prefixes = [ipv4_prefix((20 << 24) + (n << 8), 24) for n in range(3 * count)]
    items = [PrefixReachability(at, 5 * (n % 3)) for n, at in enumerate(prefixes)]
    solver.put_prefixes(AREA, fabric.id("L2"), {item.prefix: item for item in items})
    solver.solve()
    routes = [solver.routes[prefix] for prefix in prefixes]
    for metric in (0, 5, 10):
        alike = [route for route, item in zip(routes, items, strict=True) if item.metric == metric]
        assert len(alike) == count
        assert len(set(map(id, alike))) == 1
        assert alike[0].metric == metric + 20
    assert len(set(map(id, routes))) == 3
