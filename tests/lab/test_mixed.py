"""Fabrics of several makes: our leaves under FRR and BIRD spines, our PoDs under FRR super-spines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.core.ids import BACKBONE, AreaId
from fared.lab import traffic
from fared.lab.addressing import NodePlan, Plan
from fared.lab.fabric import Fabric
from fared.lab.kernel_view import KernelView
from fared.lab.waiting import interfaces, wait_until
from tests.peers.peers import await_equal_databases, await_whole

DIRECTORY = Path(__file__).parents[2] / "containerlab"
FILE, FIVE_STAGES = DIRECTORY / "clos3-mixed.clab.yml", DIRECTORY / "clos5-mixed.clab.yml"
FAILURES = 20
PREFIX = "10.0.2.0/24"
SPINES = ("S1", "S2", "S3", "S4")

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    directory = tmp_path_factory.mktemp("mixed") / "state"
    with Fabric.from_file(FILE, directory=directory) as running:
        await_whole(running, 60.0)
        yield running


def test_the_spines_are_frr_and_bird_and_the_leaves_ours(fabric: Fabric):
    kinds = [plan.node.kind for plan in fabric.plan.routers]
    assert kinds == ["frr", "frr", "bird", "bird", *["fared"] * 8]


def test_a_leaf_weighs_its_own_slow_link_under_a_spine_of_any_make(fabric: Fabric):
    """The weights in the kernel are 1:4:4:4, and flows follow within 2 points."""
    for slow in ("S1", "S3"):
        fabric.shape("L1", slow, 25e6 / 8)
        await_weights(fabric, {spine: 1 if spine == slow else 4 for spine in SPINES})
        report = traffic.measure(fabric, "h1", "h2", flows=20_000)
        assert report.delivered == report.sent
        assert report.worst_error < 0.02
        fabric.shape("L1", slow, 100e6 / 8)
        await_weights(fabric, dict.fromkeys(SPINES, 1))


@pytest.mark.soak
def test_every_router_has_all_shortest_paths_through_twenty_failures(fabric: Fabric):
    """Links fail and heal at random; all kernels hold what is left, and databases end equal."""
    fail_and_heal_at_random(fabric)
    await_equal_databases(fabric)


@pytest.mark.soak
def test_all_shortest_paths_across_areas_through_twenty_failures(tmp_path: Path):
    """The same in five stages; what is shortest there follows the rules of areas."""
    with Fabric.from_file(FIVE_STAGES, directory=tmp_path / "state") as fabric:
        await_paths_of(fabric, fabric.plan, 60.0)
        fail_and_heal_at_random(fabric)


def fail_and_heal_at_random(fabric: Fabric) -> None:
    """Take the upper end of a link down, and up again, each time waiting for every kernel."""
    choose = random.Random(3)
    routers = {router.name for router in fabric.plan.routers}
    ends = [tuple(end.node for end in link.ends) for link in fabric.topology.links]
    for upper, lower in choose.choices([pair for pair in ends if routers >= set(pair)], k=FAILURES):
        fabric.fail(upper, lower)
        await_paths_of(fabric, without(fabric.plan, upper, lower))
        fabric.heal(upper, lower)
        await_paths_of(fabric, fabric.plan)


def without(plan: Plan, a: str, b: str) -> Plan:
    """The plan with no link between two routers."""

    def left(node: NodePlan) -> NodePlan:
        ports = tuple(port for port in node.ports if {port.node, port.peer} != {a, b})
        return NodePlan(node.node, node.number, node.loopback, ports)

    return Plan({name: left(node) for name, node in plan.nodes.items()})


def routes_by_areas(plan: Plan, target: NodePlan) -> dict[str, set[str]]:
    """Each router's next hops to a leaf's hosts: intra-area paths, else over border routers.

    Counted in hops, all costs being equal; border routers believe the backbone only (RFC 3509).
    """
    home = target.home_area
    direct = in_area(plan, home, {target.name: 0})
    found = {name: hops for name, (_, hops) in direct.items()}
    if home == BACKBONE:
        return found
    inside = {router.name for router in plan.routers if is_in(router, BACKBONE)}
    sources = {name: far for name, (far, _) in direct.items() if name in inside}
    backbone = in_area(plan, BACKBONE, sources)
    found = {name: hops for name, (_, hops) in backbone.items()} | found
    for area in {port.area for router in plan.routers for port in router.ports} - {home, BACKBONE}:
        borders = {
            name: far
            for name, (far, _) in backbone.items()
            if name in inside and is_in(plan.node(name), area)
        }
        behind = in_area(plan, area, borders)
        found |= {name: hops for name, (_, hops) in behind.items() if name not in inside}
    return found


def is_in(router: NodePlan, area: AreaId) -> bool:
    """Whether a router has links to others in the area."""
    return any(port.area == area for port in router.fabric_ports)


def in_area(plan: Plan, area: AreaId, sources: dict[str, int]) -> dict[str, tuple[int, set[str]]]:
    """Distance and next hops of every router in an area to the nearest by ``sources``."""
    far = dict(sources)
    changed = True
    while changed:
        changed = False
        for name in [router.name for router in plan.routers]:
            for port in plan.node(name).fabric_ports:
                onward = far.get(port.peer)
                if port.area == area and onward is not None and onward + 1 < far.get(name, 99):
                    far[name], changed = onward + 1, True
    return {
        name: (
            distance,
            {
                port.name
                for port in plan.node(name).fabric_ports
                if port.area == area and far.get(port.peer) == distance - 1
            },
        )
        for name, distance in far.items()
    }


def await_paths_of(fabric: Fabric, plan: Plan, seconds: float = 20.0) -> None:
    """Wait until every kernel reaches every leaf's hosts over all shortest paths of the plan."""
    wanted: dict[str, dict[str, set[str]]] = {router.name: {} for router in plan.routers}
    for leaf in plan.leaves:
        for name, hops in routes_by_areas(plan, leaf).items():
            if name != leaf.name:
                wanted[name] |= {str(prefix): hops for prefix in leaf.host_prefixes}
    assert all(len(held) >= len(plan.leaves) - 1 for held in wanted.values())

    def accepts(name: str, view: KernelView) -> bool:
        routes = view.routes()
        return all(interfaces(routes.get(p, ())) == hops for p, hops in wanted[name].items())

    views = fabric.views(plan.routers)
    done = wait_until(views, accepts, seconds)
    assert done is not None, {
        name: (wanted[name], view.routes())
        for name, view in views.items()
        if not accepts(name, view)
    }


def await_weights(fabric: Fabric, wanted: dict[str, int]) -> None:
    """Wait until L1's kernel weighs its uplinks toward L2 so."""
    view = fabric.view("L1")

    def accepts(_: str, view: KernelView) -> bool:
        return {hop.interface: hop.weight for hop in view.hops(PREFIX)} == wanted

    assert wait_until({"L1": view}, accepts, 20.0) is not None, view.hops(PREFIX)
