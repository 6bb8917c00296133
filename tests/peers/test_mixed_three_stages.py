"""Our leaves under FRR and BIRD spines: the right routes everywhere, whatever link fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab import traffic
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.waiting import wait_until
from tests.peers.conftest import Peers, Running
from tests.peers.mixed import FAILURES, await_as_it_should_be, fail_and_heal, judge_every_link
from tests.peers.recordings import FRR_BEGAN_ANEW, LINKS_FLAPPED, WIRESHARK, complaints, rejected

FILE = Path(__file__).parents[2] / "containerlab" / "clos3-mixed.clab.yml"
PREFIX = "10.0.2.0/24"
SPINES = ("S1", "S2", "S3", "S4")

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(FILE.read_text(), await_as_it_should_be) as up:
        yield up


def test_the_fabric_has_spines_of_frr_and_bird_and_leaves_of_fared(fabric: Fabric):
    kinds = [plan.node.kind for plan in fabric.plan.routers]
    assert kinds == ["frr", "frr", "bird", "bird", *["fared"] * 8]


def test_a_leaf_weighs_its_slow_link_to_a_spine_of_any_implementation(fabric: Fabric):
    """The weights in the kernel are 1:4:4:4, and flows follow within 2 points."""
    for slow in ("S1", "S3"):
        fabric.shape("L1", slow, 25e6 / 8)
        await_weights(fabric, {spine: 1 if spine == slow else 4 for spine in SPINES})
        report = traffic.measure(fabric, "h1", "h2", flows=20_000)
        assert report.delivered == report.sent
        assert report.worst_error < 0.02
        fabric.shape("L1", slow, 100e6 / 8)
        await_weights(fabric, dict.fromkeys(SPINES, 1))


@pytest.mark.parametrize(("seed", "failures"), FAILURES)
def test_all_routes_are_right_while_links_fail_and_heal(fabric: Fabric, seed: int, failures: int):
    """Kernels and daemons of all makes, at every step; in the end databases are equal."""
    fail_and_heal(fabric, seed, failures)
    await_as_it_should_be(fabric, 20.0)


def test_no_implementation_logs_a_complaint(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    assert complaints(story.fabric, FRR_BEGAN_ANEW) == {}
    assert rejected(story.fabric, LINKS_FLAPPED) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_sent_on_any_link(story: Peers):
    judge_every_link(story)


def await_weights(fabric: Fabric, wanted: dict[str, int]) -> None:
    """Wait until L1's kernel weighs its uplinks toward L2 so."""
    view = fabric.view("L1")

    def accepts(_: str, view: KernelView) -> bool:
        return {hop.interface: hop.weight for hop in view.hops(PREFIX)} == wanted

    assert wait_until({"L1": view}, accepts, 20.0) is not None, view.hops(PREFIX)
