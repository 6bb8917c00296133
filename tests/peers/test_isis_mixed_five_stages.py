"""Our spines between FRR's super-spines and an FRR leaf in each PoD: prefixes cross the levels.

FRR 8.4 does not carry level-1 prefixes into level 2, so ours are the routers of both levels; its
leaves get the prefixes of other PoDs from them, with the down bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.lab.five_stages import drain_spines
from tests.peers.conftest import Peers, Running
from tests.peers.isis_mixed import (
    HELLOS,
    LEVEL_1,
    LEVEL_2,
    SOAKS,
    await_as_it_should_be,
    fail_and_heal,
    judge_every_link,
)
from tests.peers.isis_peers import pieces
from tests.peers.recordings import ISIS
from tests.peers.routes import await_shares

FILE = Path(__file__).parents[2] / "containerlab" / "clos5-isis-mixed.clab.yml"
SPINES = ("p1-S1", "p1-S2", "p1-S3", "p1-S4")

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow, pytest.mark.soak]


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(FILE.read_text(), await_as_it_should_be, ISIS) as up:
        yield up


def test_the_fabric_has_super_spines_of_frr_and_a_leaf_of_frr_in_each_pod(fabric: Fabric):
    """Level 2 is in four pieces, one a plane; each PoD is a level-1 area of its own."""
    frr = {plan.name for plan in fabric.plan.routers if plan.node.kind == "frr"}
    assert frr == {"p1-L4", "p2-L4"} | {f"plane{n}-SS{m}" for n in range(1, 5) for m in (1, 2)}
    sizes = [(level, len(members)) for level, members in pieces(fabric.plan)]
    assert sorted(sizes) == [(1, 8), (1, 8), *[(2, 4)] * 4]


def test_a_slow_link_in_the_other_pod_is_weighed_across_levels(fabric: Fabric):
    """E5: from p2-S1 to p2-L1 a quarter; p1-L1 sends 100, 400, 400, 400 through its spines."""
    plan = fabric.plan.node("p2-L1")
    prefixes = [str(p) for p in (*plan.host_prefixes, *plan.host_prefixes6)]
    rate = 100e6 / 8
    for now, share in ((rate / 4, 1), (rate, 4)):
        fabric.shape("p2-S1", "p2-L1", now)
        wanted = {spine: share if spine == "p1-S1" else 4 for spine in SPINES}
        await_shares(fabric.view("p1-L1"), prefixes, wanted, 40.0)


def test_drained_spines_are_avoided_without_loss_and_are_the_last_resort(fabric: Fabric):
    """Overload bit, across levels: by leaves of fared, and by super-spines and leaves of FRR."""
    drain_spines(fabric)
    await_as_it_should_be(fabric, 20.0)


@pytest.mark.parametrize(("seed", "failures"), [(1, 1), *SOAKS])
def test_all_routes_are_right_while_links_fail_and_heal(fabric: Fabric, seed: int, failures: int):
    """IPv4 and IPv6, in every kernel, at every step; in the end databases are equal."""
    fail_and_heal(fabric, seed, failures)
    await_as_it_should_be(fabric, 20.0)


def test_neither_frr_nor_wireshark_finds_a_flaw_in_any_packet(story: Peers):
    """Neither FRR nor Wireshark."""
    judge_every_link(story, HELLOS | LEVEL_1 | LEVEL_2)
