"""Our PoDs under FRR super-spines and one BIRD: the right routes across areas, whatever link
fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.core.ids import BACKBONE
from fared.extensions.lab.fabric import Fabric
from tests.lab.five_stages import drain_spines, weigh_a_slow_link_of_another_pod
from tests.peers import oracle
from tests.peers.agreement import await_agreement
from tests.peers.conftest import Peers, Running
from tests.peers.mixed import FAILURES, await_as_it_should_be, fail_and_heal, judge_every_link
from tests.peers.oracle import Route
from tests.peers.peers import AS_SCOPE, vtysh
from tests.peers.recordings import FRR_BEGAN_ANEW, LINKS_FLAPPED, WIRESHARK, complaints, rejected
from tests.peers.routes import await_computed, await_kernels

FILE = Path(__file__).parents[2] / "containerlab" / "clos5-mixed.clab.yml"
BORDER_OF_AS, OUTSIDE = "plane1-SS1", "192.0.2.0/24"
AS_EXTERNAL, METRIC = 5, 20

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(FILE.read_text(), await_as_it_should_be) as up:
        yield up


def test_the_fabric_has_planes_of_frr_and_bird_and_four_separate_parts_of_area_0(fabric: Fabric):
    kinds = {plan.name: plan.node.kind for plan in fabric.plan.routers}
    planes = [kind for name, kind in kinds.items() if name.startswith("plane")]
    assert planes == ["frr"] * 7 + ["bird"]
    assert {kind for name, kind in kinds.items() if name.startswith("p1-")} == {"fared"}
    sizes = [(area, len(members)) for area, members in oracle.pieces(fabric.plan)]
    assert sizes == [*[(BACKBONE, 4)] * 4, (1, 8), (2, 8)]


def test_a_slow_link_in_one_pod_is_weighed_and_avoided_in_another(fabric: Fabric):
    """FRR and BIRD flood what border routers say of path capacities without knowing it."""
    weigh_a_slow_link_of_another_pod(fabric)


def test_drained_spines_are_avoided_without_loss_and_are_the_last_resort(fabric: Fabric):
    """RFC 6987, across areas: by leaves of fared, and by planes of FRR and BIRD."""
    drain_spines(fabric)
    await_as_it_should_be(fabric, 20.0)


@pytest.mark.parametrize(("seed", "failures"), FAILURES)
def test_all_routes_are_right_while_links_fail_and_heal(fabric: Fabric, seed: int, failures: int):
    """Kernels and daemons of all makes, at every step; in the end databases are equal."""
    fail_and_heal(fabric, seed, failures)
    await_as_it_should_be(fabric, 20.0)


def test_an_external_route_of_frr_is_known_to_all_routers_that_reach_frr(fabric: Fabric):
    """One AS-external LSA in every database; the way to it is the way to the router it names.

    Spines of other planes have none: they believe summaries of their own piece of area 0 only.
    """
    node = fabric.node(BORDER_OF_AS)
    node.netns.ip("route", "add", "blackhole", OUTSIDE)
    try:
        vtysh(node, "configure terminal", "router ospf", "redistribute kernel")
        wanted = oracle.routes(fabric.plan)
        loopback = f"{fabric.plan.node(BORDER_OF_AS).router_id}/32"
        for name, table in wanted.items():
            if loopback in table and name != BORDER_OF_AS:
                table[OUTSIDE] = Route("external-2", METRIC, table[loopback].gateways)
        assert OUTSIDE in wanted["p1-L1"]
        assert OUTSIDE not in wanted["p1-S2"]
        await_kernels(fabric, {n: t for n, t in wanted.items() if n != BORDER_OF_AS}, 20.0)
        (lsa,) = await_agreement(fabric)[AS_SCOPE]
        assert (lsa.ls_type, lsa.link_state_id) == (AS_EXTERNAL, "192.0.2.0")
        del wanted[BORDER_OF_AS]  # FRR does not list what it announces itself
        await_computed(fabric, wanted)
    finally:
        vtysh(node, "configure terminal", "router ospf", "no redistribute kernel")
        node.netns.ip("route", "del", "blackhole", OUTSIDE)
    await_as_it_should_be(fabric, 20.0)


def test_no_implementation_logs_a_complaint(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    assert complaints(story.fabric, FRR_BEGAN_ANEW) == {}
    assert rejected(story.fabric, LINKS_FLAPPED) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_sent_on_any_link(story: Peers):
    judge_every_link(story)
