"""Path capacities of AS-external routes (RFC 7684 §2): what receivers make of them."""

from __future__ import annotations

import pytest

from fared.core.routes import LocalRoute
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import GIGABIT, Fabric, clos3
from fared.extensions.sim.network import Network
from fared.management.documents.views import explain, protocol
from fared.router.events import RouterSettingsApplied
from tests.api.seen import seen_from
from tests.offline.fabrics import answer, live_table, saved, table
from tests.sim.externals import OUTSIDE, announce, started


def behind(gigabits: float) -> LocalRoute:
    """A route over an interface that OSPF knows nothing of, with what its paths carry."""
    return LocalRoute(((99, 0),), capacity=gigabits * GIGABIT)


def weights(fabric: Fabric, name: str) -> dict[str, int]:
    node = fabric.network.nodes[name]
    route = node.running.table.routes[OUTSIDE]
    return {node.ports[hop.ifindex].peer.node: hop.weight for hop in route.nexthops.hops}


def set_capacity(fabric: Fabric, name: str, gigabits: float) -> None:
    fabric.network.set_local_route(name, OUTSIDE, behind(gigabits))
    fabric.network.run_until_quiet(60)


def set_scope(fabric: Fabric, name: str, scope: str) -> None:
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol("ospf", external_capacity_scope=scope)
    if node.router is not None:
        fabric.network.input(name, RouterSettingsApplied(node.settings))


@pytest.fixture(scope="module", params=["area", "as"])
def fabric(request: pytest.FixtureRequest) -> Fabric:
    """L1 and L2 redistribute the same prefix, with 25 and 100 Gbit/s; links have 400."""
    fabric = clos3(2, 4, network=Network(seed=5))
    for name, capacity in (("L1", 25), ("L2", 100)):
        announce(fabric, name)
        set_scope(fabric, name, request.param)
        fabric.network.set_local_route(name, OUTSIDE, behind(capacity))
    return started(fabric)


@pytest.mark.rfc("RFC 7684 §2")
def test_several_boundary_routers_share_by_their_capacities(fabric):
    assert weights(fabric, "S1") == {"L1": 1, "L2": 4}
    assert weights(fabric, "L3") == {"S1": 1, "S2": 1}
    set_capacity(fabric, "L1", 50)
    assert weights(fabric, "S1") == {"L1": 1, "L2": 2}
    set_capacity(fabric, "L1", 25)
    assert weights(fabric, "S1") == {"L1": 1, "L2": 4}


def test_the_weight_is_the_minimum_of_the_path_and_what_is_advertised(fabric):
    fabric.network.set_capacity("S1", "L2", 50 * GIGABIT)
    fabric.network.run_until_quiet(60)
    assert weights(fabric, "S1") == {"L1": 1, "L2": 2}
    assert weights(fabric, "S2") == {"L1": 1, "L2": 4}
    fabric.network.set_capacity("S1", "L2", 400 * GIGABIT)
    fabric.network.run_until_quiet(60)


def test_a_small_change_is_not_advertised_and_the_withdrawal_of_the_prefix_at_once(fabric):
    set_capacity(fabric, "L2", 98)
    assert weights(fabric, "S1") == {"L1": 1, "L2": 4}
    fabric.network.set_local_route("L2", OUTSIDE, None)
    fabric.network.run_for(0.3)
    assert weights(fabric, "S1") == {"L1": 1}
    set_capacity(fabric, "L2", 100)
    assert weights(fabric, "S1") == {"L1": 1, "L2": 4}


def test_without_a_capacity_only_the_path_to_the_boundary_router_counts(fabric):
    fabric.network.set_local_route("L1", OUTSIDE, LocalRoute(((99, 0),)))
    fabric.network.run_until_quiet(60)
    assert weights(fabric, "S1") == {"L1": 4, "L2": 1}
    summary = explain.explain(seen_from(fabric, "S1"), str(OUTSIDE)).summary
    assert "L1 advertises no path capacity for it" in summary
    set_capacity(fabric, "L1", 25)


def test_the_database_shows_the_capacity_beside_the_external(fabric):
    document = protocol.database(seen_from(fabric, "L3"), "extended-prefix", None)
    shown = [*document.as_scope, *(lsa for area in document.areas for lsa in area.lsas)]
    assert {lsa.hostname: lsa.about for lsa in shown} == {
        "L1": f"{OUTSIDE}, as-external, path capacity 25G",
        "L2": f"{OUTSIDE}, as-external, path capacity 100G",
    }


@pytest.mark.parametrize("root", ["S1", "L3"])
def test_a_saved_database_gives_the_same_routes(fabric, root):
    found, live = table(answer(saved(fabric, "L3"), "--root", root)), live_table(fabric, root)
    assert found[str(OUTSIDE)] == live[str(OUTSIDE)]


@pytest.mark.parametrize(("scope", "known"), [("as", 25), ("area", 400)])
def test_other_areas_have_the_capacity_with_as_scope_only(scope: str, known: int):
    """p2.L1 sees behind each spine what p1.L1 has, or that nothing is known of it."""
    fabric = clos5_areas(2, 2, 2, 2, network=Network(seed=4))
    announce(fabric, "p1.L1")
    set_scope(fabric, "p1.L1", scope)
    fabric.network.set_local_route("p1.L1", OUTSIDE, behind(25))
    started(fabric)
    assert weights(fabric, "p2.L1") == {"p2.S1": 1, "p2.S2": 1}
    (first, _) = explain.explain(seen_from(fabric, "p2.L1"), str(OUTSIDE)).nexthops
    assert first.capacity == pytest.approx(known * GIGABIT)
    near = explain.explain(seen_from(fabric, "p1.L2"), str(OUTSIDE)).nexthops
    assert sum(hop.capacity for hop in near) == pytest.approx(50 * GIGABIT)


def test_another_scope_after_a_reload_moves_the_lsas_and_no_weight(fabric):
    before = protocol.database(seen_from(fabric, "S1"), "extended-prefix", None)
    for scope in ("as", "area", "as" if before.as_scope else "area"):
        for name in ("L1", "L2"):
            set_scope(fabric, name, scope)
        fabric.network.run_until_quiet(60)
        document = protocol.database(seen_from(fabric, "S1"), "extended-prefix", None)
        found = [len(document.as_scope), sum(len(area.lsas) for area in document.areas)]
        assert found == ([2, 0] if scope == "as" else [0, 2])
        assert weights(fabric, "S1") == {"L1": 1, "L2": 4}
