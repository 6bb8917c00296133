"""The five-stage fabric over OSPF areas, with our daemon in all 24 routers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds.fared import configuration
from fared.extensions.lab.waiting import await_paths
from tests.lab.damages import TWO_PODS, weigh_damages
from tests.lab.five_stages import weigh_a_slow_link_of_another_pod

DIRECTORY = Path(__file__).parents[2] / "containerlab"
FILE, MIXED = DIRECTORY / "clos5.clab.yml", DIRECTORY / "clos5-mixed.clab.yml"
PLANES = (1, 2, 3, 4)


@pytest.fixture
def plan() -> AddressPlan:
    return make_plan(topology.load(FILE))


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric.from_file(FILE, directory=tmp_path / "state") as running:
        yield running


def test_the_clos5_file_has_two_pods_and_four_planes(plan: AddressPlan):
    """24 routers and 8 hosts; a plane joins the spines of its number, and no others."""
    assert (len(plan.routers), len(plan.leaves), len(plan.hosts)) == (24, 8, 8)
    for plane in PLANES:
        for number in (1, 2):
            ports = plan.node(f"plane{plane}-SS{number}").ports
            assert {port.peer for port in ports} == {f"p1-S{plane}", f"p2-S{plane}"}
    assert len(plan.node("p1-S1").ports) == 6
    assert len(plan.node("p1-L1").ports) == 5


def test_pods_are_areas_and_spines_are_their_borders(plan: AddressPlan, tmp_path: Path):
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


def test_the_mixed_fabric_differs_in_its_super_spines_only(plan: AddressPlan):
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
    """p1-L1 knows no link of PoD 2, and yet its weights and flows are those of one flat area.

    So are they with nine damages at once.
    """
    assert await_paths(fabric, 60.0) is not None
    for leaf in fabric.plan.leaves:
        routes = fabric.view(leaf.name).routes()
        others = [other for other in fabric.plan.leaves if other.name != leaf.name]
        assert {len(routes[str(p)]) for other in others for p in other.host_prefixes} == {4}
    weigh_a_slow_link_of_another_pod(fabric)
    assert weigh_damages(fabric, TWO_PODS) == 8 * 7
