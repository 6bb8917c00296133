"""Routes of both families in the right router's kernel, as the left one learns them over IS-IS."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.live.daemons import LINKS, Live, Pair
from tests.live.isis_daemons import IsisPair, running_isis_pair
from tests.peers.peers import tell
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

OUTSIDE, OUTSIDE6 = "203.0.113.0/24", "2001:db8:cafe::/48"
NETWORK, NETWORK6 = "198.51.100.0/24", "2001:db8:51::/64"
SOON = 15


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsisPair]:
    with running_isis_pair("r", tmp_path_factory.mktemp("isis")) as running:
        yield running


@pytest.fixture
def edge(pair: IsisPair) -> Iterator[IsisPair]:
    """The right one has a network of each family on x0, of which IS-IS knows nothing."""
    lines = ["link add x0 type veth peer name x1", "addr add 198.51.100.1/24 dev x0"]
    lines += ["addr add 2001:db8:51::1/64 dev x0 nodad", "link set x0 up", "link set x1 up"]
    pair.right.netns.batch("ip", lines)
    try:
        yield pair
    finally:
        pair.right.redistribute("isis")
        pair.right.netns.batch("ip", ["link del x0"])
        for prefix in (OUTSIDE, OUTSIDE6, NETWORK, NETWORK6):
            wait_for(lambda p=prefix: not pair.used(p), SOON, "all is as it was")


def redistributed(daemon: Live) -> int:
    return int(daemon.show("status")["routes"]["redistributed"])


def test_static_routes_of_both_families_become_routes_in_the_other_kernel(edge: Pair):
    """From the command to the far kernel; the router itself says what it does, and keeps its
    own."""
    edge.right.redistribute("isis", static={"metric": 5})
    commands = (f"add {OUTSIDE} via 198.51.100.2", f"add {OUTSIDE6} via 2001:db8:51::2")
    begun = time.monotonic()
    for command in commands:
        edge.right.netns.ip("route", *command.split())
    for prefix in (OUTSIDE, OUTSIDE6):
        wait_for(lambda p=prefix: edge.used(p) == set(LINKS), SOON, f"{prefix} arrives")
    tell(f"seconds from kernel to kernel: {time.monotonic() - begun:.3f}")
    wait_for(lambda: redistributed(edge.right) == 2, SOON, "it says so")
    for prefix in (OUTSIDE, OUTSIDE6):
        (route,) = edge.left.show("routes", prefix=prefix)["routes"]
        assert (route["type"], route["metric"]) == ("level-2", 15)
        (own,) = edge.right.show("routes", prefix=prefix)["routes"]
        assert (own["type"], own["nexthops"]) == ("level-2", [])
        assert own["redistributed"]
        assert "redistributed" in edge.right.cli("show", "routes", prefix).stdout
        assert "redistributed here" in edge.right.cli("explain", prefix).stdout
    assert redistributed(edge.left) == 0
    for prefix in (OUTSIDE, OUTSIDE6):
        edge.right.netns.ip("route", "del", prefix)
        wait_for(lambda p=prefix: not edge.used(p), SOON, "it goes")


def test_connected_networks_of_both_families_follow_their_interface(edge: Pair):
    edge.right.redistribute("isis", connected={"metric": 7})
    for prefix in (NETWORK, NETWORK6):
        wait_for(lambda p=prefix: edge.used(p) == set(LINKS), SOON, f"{prefix} arrives")
    edge.right.netns.ip("link", "set", "x1", "down")
    for prefix in (NETWORK, NETWORK6):
        wait_for(lambda p=prefix: not edge.used(p), SOON, "no carrier, no route")
    edge.right.netns.ip("link", "set", "x1", "up")
    for prefix in (NETWORK, NETWORK6):
        wait_for(lambda p=prefix: edge.used(p) == set(LINKS), SOON, "it is back")
