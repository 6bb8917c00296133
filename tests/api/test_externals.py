"""Views of external routes, in the router that redistributes them and in others."""

import json

import pytest

from fared.core.filters import Filter, parse_item
from fared.core.ids import parse_prefix
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.network import Network
from fared.management.api.encode import encode
from fared.management.cli.tables import write
from fared.management.documents.errors import CommandError
from fared.management.documents.paper import console
from fared.management.documents.views import explain, path, protocol, routes
from fared.management.documents.views.validate import validate
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.sim.externals import OUTSIDE, SOMEWHERE, announce, started

PREFIX = str(OUTSIDE)
DENIED = parse_prefix("198.51.100.0/24")
TAG = 4711


def render(document) -> str:
    out = console(100)
    with out.capture() as captured:
        write(json.loads(encode(document)), out, 0.0)
    return captured.get()


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """p1.L1 announces a static route, type 2, metric 7; a filter denies another one."""
    built = clos5_areas(2, 2, 4, 2, network=Network(seed=4))
    permitted = Filter("one", (parse_item(f"permit {OUTSIDE}"),))
    announce(built, "p1.L1", metric=7, tag=TAG, filters=(permitted,))
    built.network.set_local_route("p1.L1", DENIED, SOMEWHERE)
    return started(built)


def test_routes_have_their_type_and_metric(fabric):
    (route,) = routes.routes(seen_from(fabric, "p2.L1"), PREFIX).routes
    assert (route.type, route.metric, route.connected) == ("external-2", 7, False)
    assert len(route.nexthops) == 4


@pytest.mark.parametrize("name", ["p1.L2", "p2.L1", "p1.S1", "p1.L1"])
def test_routes_have_the_tag_of_their_external_in_every_area(fabric, name):
    (route,) = routes.routes(seen_from(fabric, name), PREFIX).routes
    assert route.tag == TAG
    internal = routes.routes(seen_from(fabric, name)).routes
    assert {r.tag for r in internal if r.prefix != PREFIX} == {None}


def test_explain_says_which_filter_keeps_a_static_route_out(fabric):
    with pytest.raises(CommandError) as refused:
        explain.explain(seen_from(fabric, "p1.L1"), str(DENIED))
    where = "kept out of redistribution of static routes"
    assert str(refused.value) == f"no route to {DENIED}: {where}: filter one: no item matches"
    assert explain.explain(seen_from(fabric, "p1.L1"), PREFIX).withheld == []


def test_the_status_of_a_router_shows_that_it_redistributes(fabric):
    context = seen_from(fabric, "p1.L1")
    document = routes.routes(context, PREFIX)
    (route,) = document.routes
    assert (route.type, route.connected, route.nexthops) == ("external-2", True, [])
    assert "redistributed" in render(document)
    assert "redistributed here" in explain.explain(context, PREFIX).summary
    status = run_view(context, "show status", {})
    assert status["routes"]["redistributed"] == 1
    assert ", 1 redistributed, " in render(status)
    assert validate(context).ok


def test_the_database_has_the_lsa_with_its_fields(fabric):
    (lsa,) = protocol.database(seen_from(fabric, "p2.L1"), "as-external", "192.0.2.0").as_scope
    assert (lsa.body["metric_type"], lsa.body["metric"]) == (2, 7)
    assert lsa.body["forwarding_address"] == "0.0.0.0"
    assert not lsa.self_originated
    (own,) = protocol.database(seen_from(fabric, "p1.L1"), "as-external").as_scope
    assert own.self_originated


def test_a_path_ends_at_the_boundary_router(fabric):
    """All metrics of the path are those of links, though type 2 does not include them."""
    found = path.path(seen_from(fabric, "p1.L2"), "p1.L2", PREFIX)
    assert found.metric == 7
    assert found.destination_hostname == "p1.L1"
    edges = {(e.from_hostname, e.to_hostname): e for e in found.edges}
    assert len(edges) == 8
    assert {edge.share for edge in edges.values()} == {0.25}
    assert {edge.metric for edge in edges.values()} == {10}


def test_in_another_area_a_path_ends_at_the_border_router(fabric):
    """This router does not know the topology beyond it."""
    found = path.path(seen_from(fabric, "p2.L1"), "p2.L1", PREFIX)
    assert {edge.to_hostname for edge in found.edges} == {f"p2.S{k}" for k in range(1, 5)}


def test_a_path_to_the_boundary_router_itself_is_not_a_path_to_its_prefixes(fabric):
    found = path.path(seen_from(fabric, "p1.L2"), "p1.L2", "p1.L1")
    assert found.metric == 20


def test_a_prefix_that_no_router_advertises_is_not_found(fabric):
    with pytest.raises(CommandError):
        routes.routes(seen_from(fabric, "p2.L1"), "198.51.100.0/24")
