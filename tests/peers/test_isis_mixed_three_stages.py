"""Our leaves under spines of both makes over IS-IS: both families, whatever link fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers.conftest import Peers, Running
from tests.peers.isis_mixed import (
    HELLOS,
    LEVEL_2,
    SOAKS,
    await_as_it_should_be,
    fail_and_heal,
    judge_every_link,
)
from tests.peers.isis_peers import await_equal_databases
from tests.peers.peers import await_all_paths, links_routed, reconfigured
from tests.peers.recordings import ISIS
from tests.waiting import wait_for

FILE = Path(__file__).parents[2] / "containerlab" / "clos3-isis-mixed.clab.yml"

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(FILE.read_text(), await_as_it_should_be, ISIS) as up:
        yield up


def test_the_fabric_has_two_spines_of_frr_and_ten_routers_of_fared(fabric: Fabric):
    kinds = [plan.node.kind for plan in fabric.plan.routers]
    assert kinds == ["frr", "frr", *["fared"] * 10]


@pytest.mark.parametrize(("seed", "failures"), [(1, 2), *SOAKS])
def test_all_routes_are_right_while_links_fail_and_heal(fabric: Fabric, seed: int, failures: int):
    """IPv4 and IPv6, in every kernel, at every step; in the end databases are equal."""
    fail_and_heal(fabric, seed, failures)
    await_as_it_should_be(fabric, 20.0)
    assert len(await_equal_databases(fabric)[2]) == len(fabric.plan.routers)


def test_prefix_suppression_is_switched_on_and_off_beside_frr(fabric: Fabric):
    """Leaves are reached as before; of links remain those that FRR's end advertises."""
    passive_only = {"fared": ("isis:\n", "  advertise-passive-only: true\n")}
    whole = {"S1": 24, "L1": 28}
    with reconfigured(fabric, passive_only):
        for name, count in {"S1": 8, "L1": 14}.items():
            wait_for(lambda n=name, c=count: links_routed(fabric, n) == c, 40.0, f"{name}: {count}")
        await_all_paths(fabric)
        await_equal_databases(fabric)
    for name, count in whole.items():
        wait_for(lambda n=name, c=count: links_routed(fabric, n) == c, 40.0, f"{name}: {count}")


def test_neither_frr_nor_wireshark_finds_a_flaw_in_any_packet(story: Peers):
    """Neither FRR nor Wireshark."""
    judge_every_link(story, HELLOS | LEVEL_2)
