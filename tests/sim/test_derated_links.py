"""Derated links: less is advertised for both directions, and no path is lost.

A router derates its end of a link (an operator drains it, or it is sick); the far end follows.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from fared.extensions.sim import invariants, level_invariants
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network

EQUAL = dict.fromkeys(("S1", "S2", "S3", "S4"), Fraction(1, 4))
QUARTER = {"S1": Fraction(1, 13)} | dict.fromkeys(("S2", "S3", "S4"), Fraction(4, 13))
WITHOUT = dict.fromkeys(("S2", "S3", "S4"), Fraction(1, 3))
SOON = 0.5
"""Seconds to flood, compute and follow."""


@pytest.fixture(params=[clos3, clos3_isis], ids=["ospf", "isis"])
def fabric(request: pytest.FixtureRequest) -> Fabric:
    build: Callable[..., Fabric] = request.param
    built = build(4, 3, network=Network(seed=2))
    built.network.start_all()
    built.network.run_until_quiet(60)
    return built


def shares(fabric: Fabric, at: str, toward: str) -> dict[str, Fraction]:
    return invariants.forwarding(fabric, fabric.leaf_prefixes[toward])[at]


def violations(fabric: Fabric) -> list[str]:
    if "ospf" in fabric.network.nodes["L1"].settings.protocols:
        return invariants.same_databases(fabric)
    return level_invariants.violations(fabric)


@pytest.mark.parametrize("end", [("L1", "S1"), ("S1", "L1")])
def test_a_quarter_is_left_in_both_directions_whichever_end_is_derated(fabric, end):
    fabric.network.set_share(*end, 0.25)
    fabric.network.run_for(SOON)
    assert shares(fabric, "L1", "L2") == QUARTER
    assert shares(fabric, "L2", "L1") == QUARTER
    assert shares(fabric, "L2", "L3") == EQUAL
    fabric.network.set_share(*end, 1.0)
    fabric.network.run_for(SOON)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == EQUAL
    assert violations(fabric) == []


def test_nothing_is_left_but_as_the_last_resort(fabric):
    """No metric changes: the link is still on a shortest path, and used if it is the only one."""
    network = fabric.network
    network.set_share("S1", "L1", 0.0)
    network.run_for(SOON)
    assert shares(fabric, "L1", "L2") == WITHOUT
    assert shares(fabric, "L2", "L1") == WITHOUT
    for spine in ("S2", "S3", "S4"):
        network.set_link(spine, "L1", up=False)
    network.run_for(SOON)
    assert shares(fabric, "L1", "L2") == {"S1": 1}
    assert shares(fabric, "L2", "L1") == {"S1": 1}
    network.run_until_quiet(60)
    assert violations(fabric) == []


def test_with_both_ends_derated_each_advertises_its_own_share(fabric):
    network = fabric.network
    network.set_share("L1", "S1", 0.25)
    network.set_share("S1", "L1", 0.5)
    network.run_for(SOON)
    assert shares(fabric, "L1", "L2")["S1"] == Fraction(1, 13)
    assert shares(fabric, "L2", "L1")["S1"] == Fraction(1, 7)
    network.set_share("L1", "S1", 1.0)
    network.run_for(SOON)
    assert shares(fabric, "L1", "L2")["S1"] == shares(fabric, "L2", "L1")["S1"] == Fraction(1, 7)
    network.set_share("S1", "L1", 1.0)
    network.run_for(SOON)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == EQUAL


def test_a_link_derated_before_the_adjacency_is_derated_after_it(fabric):
    """The LSAs of the neighbor are known from others when the adjacency forms again."""
    network = fabric.network
    network.set_share("S1", "L1", 0.25)
    network.run_for(SOON)
    network.set_link("S1", "L1", up=False)
    network.run_until_quiet(60)
    network.set_link("S1", "L1", up=True)
    network.run_until_quiet(60)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == QUARTER


def test_a_router_that_starts_anew_finds_the_far_end_derated(fabric):
    network = fabric.network
    network.set_share("S1", "L1", 0.25)
    network.run_for(SOON)
    network.kill("L1")
    network.run_for(10)
    network.start("L1")
    network.run_until_quiet(60)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == QUARTER
