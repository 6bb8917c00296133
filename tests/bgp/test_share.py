"""Hosts with a port in each of four planes are told their share of what their leaf has left.

A plane has two leaves and four spines. Four hosts are on the first leaf, one on the other.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import Fabric
from fared.protocols.bgp.settings import PathBandwidthSettings
from tests.bgp.fabrics import (
    GBPS,
    apply,
    apply_neighbor,
    engine,
    neighbor,
    ratio,
    shares,
    slow,
    speakers,
    started,
    weights,
)
from tests.sim.shared import mend

PLANES = ("p1", "p2", "p3", "p4")
SENDERS = ("h1", "h2", "h3", "h4")
SPINES = ("S1", "S2", "S3", "S4")
SHARE = PathBandwidthSettings(value="share")


def planes() -> Fabric:
    builder = speakers()
    for plane in PLANES:
        builder.routers([f"{plane}.{one}" for one in ("L1", "L2", *SPINES)])
        for leaf in ("L1", "L2"):
            for spine in SPINES:
                builder.link(f"{plane}.{leaf}", f"{plane}.{spine}")
    builder.routers([*SENDERS, "d"])
    for host in ("h1", "d"):
        builder.hosts(host)
    network = builder.fabric.network
    for host in (*SENDERS, "d"):
        for plane in PLANES:
            leaf = f"{plane}.{'L2' if host == 'd' else 'L1'}"
            builder.link(host, leaf)
            for ends, changes in (
                ((host, leaf), {"exports": ("own",)}),
                ((leaf, host), {"path_bandwidth": SHARE}),
            ):
                port = network.find_port(*ends)
                link = port.settings["bgp"]
                port.settings["bgp"] = replace(link, neighbor=replace(link.neighbor, **changes))
    return started(builder.fabric)


@pytest.fixture(scope="module")
def built() -> Fabric:
    return planes()


@pytest.fixture
def fabric(built):
    """A test's damage is mended."""
    yield built
    mend(built)


def toward_d(fabric: Fabric, host: str = "h1") -> list[int]:
    """The weights of the planes."""
    found = weights(fabric, host, "bgp", fabric.leaf_prefixes["d"])
    return [found.get(f"{plane}.L1", 0) for plane in PLANES]


def told(fabric: Fabric, plane: str, host: str = "h1") -> float | None:
    """What a leaf tells a host about d, Gbit/s."""
    prefix = fabric.leaf_prefixes["d"]
    (one,) = [
        each
        for each in engine(fabric, host).instance.ribs[4].paths(prefix)
        if each.peer.number == neighbor(fabric, host, f"{plane}.L1").number
    ]
    return None if one.path.bandwidth is None else round(one.path.bandwidth / GBPS, 3)


def test_the_uplinks_that_a_leaf_lost_count_for_each_host(fabric):
    """As 8 of 32: a host's port is still less than what is left, but all hosts share it."""
    assert toward_d(fabric) == [1, 1, 1, 1]
    fabric.network.set_link("p3.L1", "p3.S1", up=False)
    fabric.network.run_until_quiet(30)
    assert [toward_d(fabric, host) for host in SENDERS] == [[4, 4, 3, 4]] * 4
    assert told(fabric, "p3") == 300
    fabric.network.set_link("p3.L1", "p3.S2", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [2, 2, 1, 2]


def test_downlinks_of_the_far_leaf_count_as_uplinks_do(fabric):
    fabric.network.set_link("p3.L2", "p3.S1", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [4, 4, 3, 4]


def test_with_value_path_a_host_cannot_see_it(fabric):
    apply_neighbor(fabric, "p3.L1", ["h1"], path_bandwidth=PathBandwidthSettings())
    fabric.network.set_link("p3.L1", "p3.S1", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [1, 1, 1, 1]
    # three ports of hosts with a share are as much as three uplinks
    assert toward_d(fabric, "h2") == [1, 1, 1, 1]
    apply_neighbor(fabric, "p3.L1", ["h1"], path_bandwidth=SHARE)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == toward_d(fabric, "h2") == [4, 4, 3, 4]


def test_the_port_of_the_destination_limits_by_itself(fabric):
    """It is the lesser of both, and not their product."""
    slow(fabric, "p3.L2", "d", 100)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [4, 4, 1, 4]
    fabric.network.set_link("p3.L1", "p3.S1", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [4, 4, 1, 4]


def test_own_ports_of_a_host_count_for_it_alone(fabric):
    slow(fabric, "h1", "p2.L1", 200)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [2, 1, 2, 2]
    assert toward_d(fabric, "h2") == [1, 1, 1, 1]
    slow(fabric, "p3.L2", "d", 100)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [4, 2, 1, 4]


def test_a_port_that_is_down_sends_nothing_and_is_no_demand(fabric):
    fabric.network.set_link("p3.L1", "p3.S1", up=False)
    fabric.network.set_link("h4", "p3.L1", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [1, 1, 1, 1]
    assert engine(fabric, "p3.L1").instance.ribs[4].demand == pytest.approx(1200 * GBPS)


def test_a_port_that_is_derated_is_as_much_demand_as_is_left_of_it(fabric):
    fabric.network.set_link("p3.L1", "p3.S1", up=False)
    fabric.network.set_share("p3.L1", "h4", 0.5)
    fabric.network.run_until_quiet(30)
    assert told(fabric, "p3") == pytest.approx(400 * 1200 / 1400, rel=0.001)
    fabric.network.set_share("p3.L1", "h4", 1.0)


def test_where_ports_have_more_than_uplinks_the_demand_is_configured(fabric):
    """Half of the uplinks are the undamaged fabric: what then is lost of them counts."""
    for plane in PLANES:
        apply(fabric, f"{plane}.L1", demand=800 * GBPS)
        for spine in ("S3", "S4"):
            fabric.network.set_link(f"{plane}.L1", f"{plane}.{spine}", up=False)
    slow(fabric, "h1", "p2.L1", 200)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [2, 1, 2, 2]
    fabric.network.set_link("p3.L1", "p3.S2", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [2, 1, 1, 2]
    for plane in PLANES:
        apply(fabric, f"{plane}.L1", demand=None)


def test_hosts_of_one_leaf_reach_each_other_whatever_uplinks_it_has(fabric):
    for spine in SPINES[:3]:
        fabric.network.set_link("p3.L1", f"p3.{spine}", up=False)
    fabric.network.run_until_quiet(30)
    even = ratio({f"{plane}.L1": 1 for plane in PLANES})
    assert shares(fabric, "h2", "h1") == even


def test_a_host_that_gets_less_than_its_least_is_not_told(fabric):
    apply_neighbor(fabric, "p3.L1", ["h1"], min_path_bandwidth=250 * GBPS)
    for spine in SPINES[:2]:
        fabric.network.set_link("p3.L1", f"p3.{spine}", up=False)
    fabric.network.run_until_quiet(30)
    assert toward_d(fabric) == [1, 1, 0, 1]
    apply_neighbor(fabric, "p3.L1", ["h1"], min_path_bandwidth=None)
