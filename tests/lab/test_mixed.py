"""Fabrics of several makes: our leaves under spines that run FRR and BIRD."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.lab import traffic
from fared.lab.addressing import NodePlan, Plan
from fared.lab.fabric import Fabric
from fared.lab.kernel_view import KernelView
from fared.lab.waiting import interfaces, wait_until
from tests.peers.peers import await_equal_databases, await_whole

FILE = Path(__file__).parents[2] / "containerlab" / "clos3-mixed.clab.yml"
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


def test_every_router_has_all_shortest_paths_through_twenty_failures(fabric: Fabric):
    """Links fail and heal at random; all kernels hold what is left, and databases end equal."""
    choose = random.Random(3)
    links = [port for plan in fabric.plan.leaves for port in plan.fabric_ports]
    for port in choose.choices(links, k=FAILURES):
        fabric.fail(port.peer, port.node)
        await_paths_of(fabric, without(fabric.plan, port.node, port.peer))
        fabric.heal(port.peer, port.node)
        await_paths_of(fabric, fabric.plan)
    await_equal_databases(fabric)


def without(plan: Plan, a: str, b: str) -> Plan:
    """The plan with no link between two routers."""

    def left(node: NodePlan) -> NodePlan:
        ports = tuple(port for port in node.ports if {port.node, port.peer} != {a, b})
        return NodePlan(node.node, node.number, node.loopback, ports)

    return Plan({name: left(node) for name, node in plan.nodes.items()})


def await_paths_of(fabric: Fabric, plan: Plan) -> None:
    """Wait until every kernel reaches every leaf's hosts over all shortest paths of the plan."""
    wanted = {
        router.name: {
            str(prefix): {port.name for port in plan.equal_cost_ports(router.name, leaf.name)}
            for leaf in plan.leaves
            if leaf.name != router.name
            for prefix in leaf.host_prefixes
        }
        for router in plan.routers
    }

    def accepts(name: str, view: KernelView) -> bool:
        routes = view.routes()
        return all(interfaces(routes.get(p, ())) == hops for p, hops in wanted[name].items())

    views = fabric.views(plan.routers)
    done = wait_until(views, accepts, 20.0)
    assert done is not None, [name for name, view in views.items() if not accepts(name, view)]


def await_weights(fabric: Fabric, wanted: dict[str, int]) -> None:
    """Wait until L1's kernel weighs its uplinks toward L2 so."""
    view = fabric.view("L1")

    def accepts(_: str, view: KernelView) -> bool:
        return {hop.interface: hop.weight for hop in view.hops(PREFIX)} == wanted

    assert wait_until({"L1": view}, accepts, 20.0) is not None, view.hops(PREFIX)
