"""The five-stage fabric over OSPF areas: our daemon in all 24 routers, or FRR and BIRD in the super-spines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.lab import topology, traffic
from fared.lab.addressing import Plan, make_plan
from fared.lab.expected import expected_shares, path_capacities
from fared.lab.fabric import Fabric
from fared.lab.kernel_view import KernelView, shares
from fared.lab.kinds.fared import configuration
from fared.lab.waiting import Accepts, await_paths, wait_until

DIRECTORY = Path(__file__).parents[2] / "containerlab"
FILE, MIXED = DIRECTORY / "clos5.clab.yml", DIRECTORY / "clos5-mixed.clab.yml"
PLANES = (1, 2, 3, 4)
UPLINKS = ["p1-S1", "p1-S2", "p1-S3", "p1-S4"]


@pytest.fixture
def plan() -> Plan:
    return make_plan(topology.load(FILE))


@pytest.fixture(
    params=[
        pytest.param(FILE, id="fared everywhere"),
        pytest.param(MIXED, id="super-spines of others", marks=pytest.mark.peers),
    ]
)
def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fabric]:
    with Fabric.from_file(request.param, directory=tmp_path / "state") as running:
        yield running


def test_the_file_is_two_pods_and_four_planes(plan: Plan):
    """24 routers and 8 hosts; a plane joins the spines of its number, and no others."""
    assert (len(plan.routers), len(plan.leaves), len(plan.hosts)) == (24, 8, 8)
    for plane in PLANES:
        for number in (1, 2):
            ports = plan.node(f"plane{plane}-SS{number}").ports
            assert {port.peer for port in ports} == {f"p1-S{plane}", f"p2-S{plane}"}
    assert len(plan.node("p1-S1").ports) == 6
    assert len(plan.node("p1-L1").ports) == 5


def test_pods_are_areas_and_spines_are_their_borders(plan: Plan, tmp_path: Path):
    """The generated configuration puts every interface and loopback into the area of the file."""

    def areas(name: str) -> dict[str, set[str]]:
        written = configuration(plan.node(name), tmp_path / "socket")["ospf"]["areas"]
        return {area: set(content["interfaces"]) for area, content in written.items()}

    assert areas("p2-L3") == {"0.0.0.2": {"lo", "p2-h3", "p2-S1", "p2-S2", "p2-S3", "p2-S4"}}
    assert areas("p1-S2") == {
        "0.0.0.0": {"lo", "plane2-SS1", "plane2-SS2"},
        "0.0.0.1": {"p1-L1", "p1-L2", "p1-L3", "p1-L4"},
    }
    assert areas("plane4-SS2") == {"0.0.0.0": {"lo", "p1-S4", "p2-S4"}}


def test_the_mixed_fabric_differs_in_its_super_spines_only(plan: Plan):
    """FRR and BIRD run in the planes; links, areas and addresses are the same."""
    mixed = make_plan(topology.load(MIXED))
    planes = {node.node.kind for node in mixed.routers if node.name.startswith("plane")}
    assert planes == {"frr", "bird"}
    assert {node.node.kind for node in mixed.routers if node.name.startswith("p1-")} == {"fared"}
    assert [node.ports for node in mixed.nodes.values()] == [
        node.ports for node in plan.nodes.values()
    ]


@pytest.mark.netns
@pytest.mark.slow
def test_a_slow_link_in_one_pod_is_weighed_and_avoided_in_another(fabric: Fabric):
    """p1-L1 knows no link of PoD 2, and yet its weights and flows are those of one flat area."""
    assert await_paths(fabric, 60.0) is not None
    prefix = str(fabric.plan.node("p2-L1").host_prefixes[0])
    for leaf in fabric.plan.leaves:
        routes = fabric.view(leaf.name).routes()
        others = [other for other in fabric.plan.leaves if other.name != leaf.name]
        assert {len(routes[str(p)]) for other in others for p in other.host_prefixes} == {4}

    fabric.shape("p2-S1", "p2-L1", 25e6 / 8)
    await_weights(fabric, prefix, [1, 4, 4, 4])
    assert_flows_follow(fabric)
    await_shares_of_one_area(fabric, prefix)

    fabric.fail("p2-S1", "p2-L1")
    await_hops(fabric, prefix, UPLINKS[1:])
    fabric.heal("p2-S1", "p2-L1")
    await_weights(fabric, prefix, [1, 4, 4, 4])

    fabric.shape("p2-S1", "p2-L1", 100e6 / 8)
    await_weights(fabric, prefix, [1, 1, 1, 1])


def await_weights(fabric: Fabric, prefix: str, wanted: list[int]) -> None:
    """Wait until p1-L1's kernel holds these weights, spine by spine."""

    def accepts(_: str, view: KernelView) -> bool:
        held = [(hop.interface, hop.weight) for hop in view.hops(prefix)]
        return held == list(zip(UPLINKS, wanted, strict=True))

    _await(fabric, accepts, prefix)


def await_hops(fabric: Fabric, prefix: str, wanted: list[str]) -> None:
    """Wait until p1-L1's kernel sends over these uplinks and no others."""

    def accepts(_: str, view: KernelView) -> bool:
        return [hop.interface for hop in view.hops(prefix)] == wanted

    _await(fabric, accepts, prefix)


def _await(fabric: Fabric, accepts: Accepts, prefix: str) -> None:
    view = fabric.view("p1-L1")
    done = wait_until({"p1-L1": view}, accepts, 20.0)
    assert done is not None, view.hops(prefix)


def assert_flows_follow(fabric: Fabric) -> None:
    """What the uplinks have counted is within 2 points of the weights."""
    report = traffic.measure(fabric, "p1-h1", "p2-h1", flows=20_000)
    assert [up.weight for up in report.uplinks] == [1, 4, 4, 4]
    assert report.delivered == report.sent
    assert report.worst_error < 0.02


def await_shares_of_one_area(fabric: Fabric, prefix: str) -> None:
    """Wait until every leaf's shares are those of a maximum flow over the whole fabric."""
    plan = fabric.plan

    def accepts(name: str, view: KernelView) -> bool:
        wanted = expected_shares(path_capacities(plan, fabric.rate, name, "p2-L1"))
        return shares(view.hops(prefix)) == pytest.approx(wanted, abs=0.01)

    leaves = [leaf for leaf in plan.leaves if leaf.name != "p2-L1"]
    assert wait_until(fabric.views(leaves), accepts, 20.0) is not None
