"""Views of a router in a simulated fabric, compared with its state."""

import pytest
from msgspec.structs import replace

from fared.core.ids import AreaId, ipv4_prefix
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError
from fared.management.documents.fib import FibRoute
from fared.management.documents.views import explain, graph, kernel, path, protocol, routes
from fared.management.documents.views.status import status
from fared.management.documents.views.validate import validate
from fared.paths.rib.settings import SolverSettings
from fared.protocols.ospf.settings import AreaSettings, RangeSettings
from fared.router.events import RouterSettingsApplied
from tests.api.seen import seen_from

POD = ipv4_prefix(0x0A000000, 16)


@pytest.fixture(scope="module")
def fabric():
    """Figure 1 with S1 -> L2 at a quarter."""
    fabric = clos3(4, 8, network=Network(seed=1))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60)
    return fabric


@pytest.fixture
def context(fabric) -> ViewContext:
    """L1 of the fabric as its views see it."""
    return seen_from(fabric, "L1")


@pytest.mark.parametrize("make", [clos3, clos3_isis], ids=["ospf", "isis"])
def test_status_counts_interfaces_that_accept_neighbors_without_a_key(make):
    """Not passive ones: those of the leaf's host, and the loopback."""
    fabric = make(4, 2, network=Network(seed=1))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    found = status(seen_from(fabric, "L1"))
    assert [part.unauthenticated for part in (found.ospf, found.isis) if part] == [4]


@pytest.mark.parametrize("cut", [("S3", "L2"), ("L1", "S3")])
def test_explain_names_the_next_hop_that_a_lost_link_costs(cut):
    """One beyond the next hop, or its own; a link of no path to the prefix is not missed."""
    made = clos3(4, 4, network=Network(seed=1))
    network = made.network
    network.start_all()
    network.run_until_quiet(60)
    network.set_link("S2", "L3", up=False)
    network.set_link(*cut, up=False)
    network.run_for(30.0)
    document = explain.explain(seen_from(made, "L1"), str(made.leaf_prefixes["L2"]))
    (missing,) = document.missing
    assert (missing.hostname, {*missing.link.split("-")}) == ("S3", {*cut})
    assert len(document.nexthops) == 3
    network.set_link(*cut, up=True)
    network.run_for(30.0)
    document = explain.explain(seen_from(made, "L1"), str(made.leaf_prefixes["L2"]))
    assert document.missing == []


@pytest.mark.parametrize("build", [clos3, clos3_isis], ids=["ospf", "isis"])
def test_explain_names_the_next_hop_that_a_detour_replaces(build):
    """A spine without its link to a leaf goes back through all other leaves."""
    made = build(3, 4, network=Network(seed=1))
    made.network.start_all()
    made.network.run_until_quiet(60)
    made.network.set_link("S3", "L2", up=False)
    made.network.run_for(30.0)
    document = explain.explain(seen_from(made, "S3"), str(made.leaf_prefixes["L2"]))
    assert len(document.nexthops) == 3
    (missing,) = document.missing
    assert (missing.hostname, {*missing.link.split("-")}) == ("L2", {"S3", "L2"})


def test_explain_names_the_link_that_limits_each_path(context, fabric):
    document = explain.explain(context, str(fabric.leaf_prefixes["L2"]))
    first, *others = document.nexthops
    assert (first.interface, first.weight, first.share) == ("S1", 1, 0.0769)
    limit = first.limiting_link
    assert (limit.from_hostname, limit.to_hostname) == ("S1", "L2")
    assert limit.capacity == pytest.approx(DEFAULT_CAPACITY / 4)
    assert [hop.weight for hop in others] == [4, 4, 4]
    assert "plain ECMP could use only" in document.summary
    assert "te-link-lsa" in document.last_change.causes[0]
    assert document.last_change.changes == ["S1 > L2: 400G to 100G"]


def test_paths_and_reasons_end_at_border_routers_for_a_leaf_of_another_area(context):
    """Beyond them, this router knows only what they advertise."""
    areas = clos5_areas(2, 2, 2, 2, network=Network(seed=1))
    areas.network.start_all()
    areas.network.run_until_quiet(60)
    areas.network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY / 4)
    areas.network.run_until_quiet(60)
    view = replace(context, router=areas.network.nodes["p1.L1"].running)
    prefix = str(areas.leaf_prefixes["p2.L1"])
    document = explain.explain(view, prefix)
    assert document.type == "inter-area"
    first, second = document.nexthops
    assert "the path capacity that p1.S1 advertises (100G)" in first.reason
    assert "its own link" in second.reason
    edges = path.path(view, "p1.L1", prefix).edges
    assert [(e.from_hostname, e.to_hostname, e.share) for e in edges] == [
        ("p1.L1", "p1.S1", 0.2),
        ("p1.L1", "p1.S2", 0.8),
    ]
    assert {e.metric for e in edges} == {10}


def test_explain_says_which_border_router_announces_no_path_capacity(context):
    areas = clos5_areas(2, 2, 2, 2, network=Network(seed=1))
    node = areas.network.nodes["p1.S1"]
    node.settings = node.settings.with_protocol("ospf", path_capacity_code=None)
    areas.network.start_all()
    areas.network.run_until_quiet(60)
    view = replace(context, router=areas.network.nodes["p1.L1"].running)
    document = explain.explain(view, str(areas.leaf_prefixes["p2.L1"]))
    assert document.summary.endswith(
        "p1.S1 advertises no path capacity for it:"
        " the capacity beyond is unknown and limits nothing."
    )


def test_explain_and_routes_say_that_an_active_range_discards(context):
    areas = clos5_areas(
        2,
        2,
        2,
        2,
        network=Network(seed=1),
        pod_area=AreaSettings(AreaId(0), ranges=(RangeSettings(POD),)),
    )
    areas.network.start_all()
    areas.network.run_until_quiet(60)
    spine = areas.network.nodes["p1.S1"]
    view = replace(context, router=spine.running, dump=spine.kernel.dump)
    (route,) = routes.routes(view, str(POD)).routes
    assert (route.type, route.discard, route.nexthops) == ("inter-area", True, [])
    document = explain.explain(view, "10.0.77.1")
    assert (document.prefix, document.nexthops) == (str(POD), [])
    assert "packets without a more specific route are discarded" in document.summary
    assert all(m.interface for v in routes.weights(view).vectors for m in v.members)
    held = kernel.fib(view)
    (nowhere,) = [hop.id for hop in held.nexthops if hop.discard]
    assert FibRoute(prefix=str(POD), nexthop_id=nowhere) in held.routes
    assert validate(view).ok


def test_explain_takes_an_address_and_finds_the_longest_match(context, fabric):
    prefix = fabric.leaf_prefixes["L2"]
    address = str(prefix).replace("0/24", "77")
    assert explain.explain(context, address).prefix == str(prefix)
    with pytest.raises(CommandError, match="no route"):
        explain.explain(context, "192.0.2.1")
    with pytest.raises(CommandError, match="not a prefix"):
        explain.explain(context, "L2")


def test_each_distinct_weight_vector_is_shown_once(context):
    vectors = [v for v in routes.weights(context).vectors if len(v.members) == 4]
    assert sorted([m.weight for m in v.members] for v in vectors) == [
        [1, 1, 1, 1],
        [1, 4, 4, 4],
    ]
    assert sum(v.prefixes for v in vectors) == 14  # a loopback and a /24 of seven leaves
    assert all(v.quantization_error == 0 for v in vectors)


def test_weights_for_few_flows_are_marked_and_not_counted_as_loss():
    """The slow path gets less than in proportion by design: its weight is not an error."""
    fabric = clos3(4, 2, network=Network(seed=1), solver=SolverSettings(flows=128))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 5)
    fabric.network.run_until_quiet(60)
    view = seen_from(fabric, "L1")
    document = routes.weights(view, str(fabric.leaf_prefixes["L2"]))
    assert document.flows == 128
    (vector,) = document.vectors
    assert [member.weight for member in vector.members] == [1, 7, 7, 7]
    assert vector.members[0].wanted_share == pytest.approx(0.0457, abs=1e-4)
    assert vector.quantization_error < 0.005
    summary = explain.explain(view, str(fabric.leaf_prefixes["L2"])).summary
    assert "For 128 flows the smaller ones get less than their proportion." in summary


@pytest.mark.parametrize(("entries", "weights", "lost"), [(13, [1, 4, 4, 4], 0), (12, [1] * 3, 1)])
def test_what_a_next_hop_without_traffic_could_carry_is_lost(entries, weights, lost):
    """1:4:4:4 takes 13 entries of a chip; with 12 the small path carries nothing."""
    bounded = SolverSettings(max_group_size=entries)
    fabric = clos3(4, 2, network=Network(seed=1), solver=bounded)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60)
    document = routes.weights(seen_from(fabric, "L1"), str(fabric.leaf_prefixes["L2"]))
    (vector,) = document.vectors
    assert [member.weight for member in vector.members] == weights
    assert vector.quantization_error == pytest.approx(lost / 13, abs=1e-6)
    (check,) = [c for c in validate(seen_from(fabric, "L1")).checks if "bounded" in c.name]
    assert check.ok is not bool(lost)
    assert ("loses 7.7%" in check.detail) is bool(lost), check.detail


@pytest.mark.parametrize(("make", "most"), [(clos3, 2), (clos3_isis, 4)], ids=["ospf", "isis"])
def test_a_reload_lets_routes_share_few_groups_and_shows_what_is_lost(make, most):
    """IS-IS routes two families, which have no next hop in common."""
    fabric = make(4, 5, network=Network(seed=1))
    network = fabric.network
    network.start_all()
    network.run_until_quiet(60)
    for number, part in ((2, 0.9), (3, 0.8), (4, 0.25)):
        network.set_capacity("S1", f"L{number}", DEFAULT_CAPACITY * part)
    network.run_until_quiet(60)
    node = network.nodes["L1"]
    settings = node.running.settings

    def seen():
        made = seen_from(fabric, "L1")
        vectors = [routes.weights(made, str(fabric.leaf_prefixes[f"L{at}"])) for at in (2, 3, 4, 5)]
        weights = [[m.weight for m in found.vectors[0].members] for found in vectors]
        state = node.kernel.state
        paths = {
            tuple(sorted(m.weight for m in state.groups[at]))
            for at in state.routes.values()
            if at in state.groups
        }
        assert paths >= {tuple(sorted(found)) for found in weights}
        errors = [found.vectors[0].quantization_error for found in vectors]
        (check,) = [c for c in validate(made).checks if "bounded" in c.name] or [None]
        return weights, len(paths), errors, check

    before = seen()
    assert before[1] == 4
    assert max(before[2]) < 0.005
    assert before[3] is None
    bounded = replace(settings, fib=replace(settings.fib, max_groups=most))
    network.input("L1", RouterSettingsApplied(bounded))
    network.run_for(1)
    weights, groups, errors, check = seen()
    assert groups == 2
    assert weights[0] == weights[1] == weights[3], "the three that are most alike"
    assert weights[2] == before[0][2]
    # 4 equal paths get what they have in common with 4 of which one has 0.8.
    assert weights[0] == [215, 256, 256, 256]
    assert max(errors) == pytest.approx(1 - 983 / 256 / 4, abs=1e-4)
    assert check is not None
    assert check.ok is (max(errors) <= 0.05)
    network.input("L1", RouterSettingsApplied(settings))
    network.run_for(1)
    assert seen() == before


def test_path_follows_every_split_to_the_destination(context):
    document = path.path(context, "L1", "L2")
    shares = {(e.from_hostname, e.to_hostname): e.share for e in document.edges}
    assert shares["L1", "S1"] == pytest.approx(1 / 13, abs=1e-5)
    assert shares["S1", "L2"] == pytest.approx(1 / 13, abs=1e-5)
    assert sum(share for (_, head), share in shares.items() if head == "L2") == pytest.approx(
        1, abs=1e-5
    )
    assert document.capacity == pytest.approx(13 / 4 * DEFAULT_CAPACITY, rel=1e-4)
    assert document.metric == 20


def test_path_from_another_router_uses_that_routers_own_weights(context):
    document = path.path(context, "S1", "10.0.2.0/24")
    assert [(e.from_hostname, e.to_hostname) for e in document.edges] == [("S1", "L2")]
    assert document.capacity == pytest.approx(DEFAULT_CAPACITY / 4)
    with pytest.raises(CommandError, match="no router"):
        path.path(context, "L99", "L2")


def test_fib_shows_groups_and_their_users_and_no_difference(context):
    document = kernel.fib(context)
    assert sum(group.routes for group in document.groups) == 14
    assert kernel.fib(context, diff=True).diff == []


def test_database_filters_by_type_and_shows_bodies_on_demand(context):
    everything = protocol.database(context).areas[0].lsas
    words = {lsa.type for lsa in everything}
    assert words == {"router", "te-link", "te-router-address", "router-information"}
    routers = protocol.database(context, "router").areas[0].lsas
    assert len(routers) == 12
    one = protocol.database(context, "router", "10.255.0.1").areas[0].lsas
    assert len(one) == 1
    assert one[0].body["links"]
    with pytest.raises(CommandError, match="no LSA matches"):
        protocol.database(context, "summary")


def test_status_topology_spf_and_validate_agree(context):
    found = status(context)
    assert found.ready
    assert found.ospf.areas[0].full == 4
    assert len(graph.topology(context).areas[0].links) == 64
    assert all(link.two_way for link in graph.topology(context).areas[0].links)
    assert len(graph.spf(context).nodes) == 12
    assert graph.spf(context, log=True).log[-1].spf_ran is False
    assert validate(context).ok
