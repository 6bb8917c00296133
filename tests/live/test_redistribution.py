"""Static and connected routes of the right router's kernel, as the left one's comes to know
them."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.daemons import LINKS, Live, Pair
from tests.peers.peers import tell
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]

OUTSIDE = "203.0.113.0/24"
GATEWAY, NETWORK = "198.51.100.2", "198.51.100.0/24"
LEFT_GATEWAY = "192.0.2.2"
SOON = 30


@pytest.fixture
def edge(pair: Pair) -> Iterator[Pair]:
    """The shared pair; both have a network on x0 of which OSPF knows nothing."""
    for daemon, address in ((pair.left, "192.0.2.1/24"), (pair.right, "198.51.100.1/24")):
        lines = ["link add x0 type veth peer name x1", f"addr add {address} dev x0"]
        daemon.netns.batch("ip", [*lines, "link set x0 up", "link set x1 up"])
    pair.right.redistribute("ospf", static={})
    try:
        yield pair
    finally:
        for daemon in (pair.left, pair.right):
            daemon.redistribute("ospf")
            daemon.netns.batch("ip", ["route flush proto boot", "link del x0"])
        wait_for(lambda: not pair.used(OUTSIDE), SOON, "all is as it was")


def ours(daemon: Live) -> str:
    """What the daemon itself has in the kernel for the prefix."""
    return daemon.netns.ip("route", "show", OUTSIDE, "proto", "201")


def redistributed(daemon: Live) -> int:
    return int(daemon.show("status")["routes"]["redistributed"])


def routes_of(daemon: Live) -> list[str]:
    return [line.strip() for line in daemon.netns.ip("route", "show", OUTSIDE).splitlines()]


def test_a_route_in_one_kernel_becomes_a_route_in_the_other(edge: Pair):
    """From the command to the far kernel: netlink, one LSA, one computation."""
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
    begun = time.monotonic()
    wait_for(lambda: edge.used(OUTSIDE) == set(LINKS), SOON, "it arrives")
    tell(f"seconds from kernel to kernel: {time.monotonic() - begun:.3f}")
    (route,) = edge.left.show("routes", prefix=OUTSIDE)["routes"]
    assert (route["type"], route["metric"]) == ("external-2", 20)
    wait_for(lambda: redistributed(edge.right) == 1, SOON, "it says so")
    edge.right.netns.ip("route", "del", OUTSIDE)
    wait_for(lambda: not edge.used(OUTSIDE), SOON, "it goes")


def test_connected_networks_follow_their_interface(edge: Pair):
    """Only those on which OSPF does not run; another type after a reload, in place."""
    assert not edge.used(NETWORK)
    edge.right.redistribute("ospf", connected={"metric-type": 1, "metric": 5})
    wait_for(lambda: edge.used(NETWORK) == set(LINKS), SOON, "it arrives")
    (route,) = edge.left.show("routes", prefix=NETWORK)["routes"]
    assert (route["type"], route["metric"]) == ("external-1", 15)
    assert alive(edge.left) == ["198.51.100.0"]
    edge.right.netns.ip("link", "set", "x1", "down")
    wait_for(lambda: not edge.used(NETWORK), SOON, "no carrier, no route")
    edge.right.netns.ip("link", "set", "x1", "up")
    wait_for(lambda: edge.used(NETWORK) == set(LINKS), SOON, "it is back")
    edge.right.redistribute("ospf")
    wait_for(lambda: not edge.used(NETWORK), SOON, "nothing is redistributed any more")


def test_two_routers_that_redistribute_a_prefix_keep_their_own_routes(edge: Pair):
    """Though the metric in the kernel is worse than that of our routes."""
    edge.left.redistribute("ospf", static={})
    edge.left.netns.ip("route", "add", OUTSIDE, "via", LEFT_GATEWAY, "metric", "200")
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY, "metric", "200")
    own = f"{OUTSIDE} via {LEFT_GATEWAY} dev x0 metric 200"
    for daemon, route in ((edge.left, own), (edge.right, own.replace(LEFT_GATEWAY, GATEWAY))):
        wait_for(lambda d=daemon: redistributed(d) == 1, SOON, "known")
        wait_for(lambda d=daemon, r=route: routes_of(d) == [r], SOON, "its own and no other")
        assert daemon.settled()
    edge.left.netns.ip("route", "del", OUTSIDE, "metric", "200")
    wait_for(lambda: ours(edge.left) != "", SOON, "over the other one")
    edge.left.netns.ip("route", "add", OUTSIDE, "via", LEFT_GATEWAY, "metric", "200")
    wait_for(lambda: routes_of(edge.left) == [own], SOON, "its own again")


def test_a_static_route_that_is_not_redistributed_competes_by_metric(edge: Pair):
    """Metric 0, the default of ip route, wins; a floating one of 200 stands by."""
    for metric, wins in (("0", True), ("200", False)):
        edge.left.netns.ip("route", "add", OUTSIDE, "via", LEFT_GATEWAY, "metric", metric)
        edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
        wait_for(lambda: ours(edge.left) != "", SOON, "both are there")
        got = edge.left.netns.ip("route", "get", "203.0.113.1")
        assert ("dev x0" in got) is wins
        for daemon in (edge.left, edge.right):
            daemon.netns.ip("route", "flush", "proto", "boot")
        wait_for(lambda: not edge.used(OUTSIDE), SOON, "both are gone")


def test_a_static_route_with_the_metric_of_fared_is_not_replaced(edge: Pair):
    """The kernel would let us replace it; ours waits until it has gone."""
    edge.left.netns.ip("route", "add", OUTSIDE, "via", LEFT_GATEWAY, "metric", "20")
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
    refused = "fib-operation-refused"
    wait_for(lambda: any(r["event"] == refused for r in edge.left.records()), SOON, "refused")
    assert routes_of(edge.left) == [f"{OUTSIDE} via {LEFT_GATEWAY} dev x0 metric 20"]
    edge.left.netns.ip("route", "del", OUTSIDE, "metric", "20")
    wait_for(lambda: ours(edge.left) != "", 30, "there is room now")


def test_a_thousand_redistributed_routes_reach_the_other_kernel(edge: Pair, tmp_path: Path):
    prefixes = [f"203.0.{n >> 8}.{n & 255}/32" for n in range(1000)]
    batch = tmp_path / "batch"
    for verb, wanted in (("add", 1000), ("del", 0)):
        batch.write_text("".join(f"route {verb} {p} via {GATEWAY}\n" for p in prefixes))
        edge.right.netns.ip("-batch", str(batch))
        begun = time.monotonic()
        wait_for(lambda n=wanted: installed(edge.left) == n, 30, f"{wanted} routes")
        tell(f"{verb} 1000 routes: {time.monotonic() - begun:.2f} s after the command")


def installed(daemon: Live) -> int:
    """How many of them the daemon has in the kernel."""
    return daemon.netns.ip("route", "show", "root", "203.0.0.0/16", "proto", "201").count("203.0.")


def test_a_crash_of_the_router_that_redistributes_leaves_its_lsas_where_they_are(edge: Pair):
    """Killed and started again within the dead interval, it goes on with what others hold."""
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
    wait_for(lambda: edge.used(OUTSIDE) == set(LINKS), SOON, "it arrives")
    plain = edge.right.config
    config = copy.deepcopy(plain)
    config["ospf"]["redistribute"] = {"static": {}}
    try:
        edge.right.config = config
        edge.right.kill()
        edge.right.start()
        deadline = time.monotonic() + SOON
        while not (edge.right.full() == len(LINKS) and edge.right.settled()):
            assert alive(edge.left) == ["203.0.113.0"]
            assert time.monotonic() < deadline
        wait_for(lambda: redistributed(edge.right) == 1, SOON, "it says so")
    finally:
        edge.right.config = plain
    wait_for(lambda: edge.used(OUTSIDE) == set(LINKS), SOON, "over both links")


def alive(daemon: Live) -> list[str]:
    """The link state ids of the externals a router holds."""
    return [lsa["id"] for lsa in daemon.show("database")["as_scope"] if lsa["age"] < 3600]


def test_a_clean_stop_withdraws_all_redistributed_routes(edge: Pair):
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
    wait_for(lambda: edge.used(OUTSIDE) == set(LINKS), SOON, "it arrives")
    try:
        edge.right.terminate()
        wait_for(lambda: not edge.used(OUTSIDE), 2, "gone before the dead interval")
        assert alive(edge.left) == []
    finally:
        edge.right.start()
        edge.await_routes()


def test_an_invalid_redistribution_section_is_refused_with_its_place(edge: Pair):
    """As every other mistake in the file; what is announced stays announced."""
    edge.right.netns.ip("route", "add", OUTSIDE, "via", GATEWAY)
    wait_for(lambda: edge.used(OUTSIDE) == set(LINKS), SOON, "it arrives")
    edge.right.file.write_text("ospf:\n  redistribute:\n    static: {metric-type: E1}\n")
    done = edge.right.cli("config", "reload")
    assert done.returncode == 1
    assert "fared.yaml:3:27: ospf.redistribute.static.metric-type" in done.stdout + done.stderr
    assert edge.used(OUTSIDE) == set(LINKS)
