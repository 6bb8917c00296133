"""Leaves of FRR, then of fared, between the same spines: the demonstration of clos3-frr-spines."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fared.extensions.lab import topology
from fared.extensions.lab.acts import leaves
from fared.extensions.lab.acts.stage import perform
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.shipped import files
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.waiting import await_paths, wait_until
from tests.lab import two_leaves


def shipped(name: str) -> LabTopology:
    return topology.load(files()[name])


def test_the_demonstration_is_for_leaves_of_fared_between_spines_of_others():
    """Over BGP: others pass on what leaves announce. Every other fabric has the usual one."""
    assert [name for name in files() if leaves.fits(shipped(name))] == ["clos3-frr-spines"]


def test_leaves_run_frr_at_first_in_the_same_places():
    def addresses(source: LabTopology) -> dict[tuple[str, str], str]:
        routers = Fabric.from_topology(source).plan.routers
        return {(port.node, port.name): str(port.address) for one in routers for port in one.ports}

    source = shipped("clos3-frr-spines")
    prepared = leaves.prepared(source)
    assert {node.kind for node in prepared.nodes.values() if node.is_router} == {"frr"}
    assert addresses(prepared) == addresses(source)


def test_the_cable_of_the_first_spine_to_the_far_leaf_slows_down():
    cast = leaves._cast(Fabric.from_topology(leaves.prepared(shipped("clos3-frr-spines"))))
    assert (cast.link, cast.source_host, cast.target_host) == ("S1 > L2", "h1", "h2")
    assert len(cast.watched) == 7


MIXED = two_leaves.topology("small", protocol="bgp", rate="100M", S1="frr", S2="bird")


@pytest.mark.netns
@pytest.mark.peers
@pytest.mark.rfc("RFC 10005 §2")
def test_what_a_leaf_announces_reaches_the_kernel_of_another_through_frr_and_bird(tmp_path: Path):
    """Neither measures its links: the leaf at the slow one does. The own link is known as well."""
    source = topology.from_document(yaml.safe_load(MIXED), Path("small.clab.yml"))
    with Fabric.from_topology(source, directory=tmp_path) as fabric:
        assert await_paths(fabric, 40.0) is not None

        def holds(*weights: int) -> float | None:
            def accepts(_: str, view: KernelView) -> bool:
                return tuple(hop.weight for hop in view.hops("10.0.2.0/24")) == weights

            return wait_until({"L1": fabric.view("L1")}, accepts, 20.0)

        fabric.shape("L2", "S1", 25e6 / 8)
        assert holds(1, 4) is not None
        fabric.shape("L1", "S2", 12.5e6 / 8)
        assert holds(2, 1) is not None
        fabric.shape("L2", "S1", 100e6 / 8)
        assert holds(8, 1) is not None
        fabric.fail("L2", "S2")
        assert holds(1) is not None


@pytest.mark.netns
@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", [0, 1])
def test_a_job_is_faster_with_leaves_of_fared_between_the_same_spines(
    seed: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Every claim of the demonstration, for another draw of ports each time."""
    monkeypatch.setenv("FARED_LAB_DIR", str(tmp_path / "labs"))
    prepared = leaves.prepared(shipped("clos3-frr-spines"))
    picture = tmp_path / "leaves.png"
    assert perform(prepared, lambda stage: leaves.play(stage, seed), picture=picture) == 0
    assert picture.stat().st_size > 10_000
    told = capsys.readouterr().out
    assert "7 leaves hold 1:5:5:5, by what L2 announces" in told
    assert max(map(len, told.splitlines())) <= 80
