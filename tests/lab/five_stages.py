"""Steps of five-stage fabrics of any routers: a slow link in another PoD, drained spines."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from fared.extensions.lab import traffic
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.waiting import Accepts, wait_until
from tests.lab.stream import Stream
from tests.waiting import await_rest, wait_for

UPLINKS = ["p1-S1", "p1-S2", "p1-S3", "p1-S4"]
WAYS = [("p1-h1", "p2-h1"), ("p2-h1", "p1-h1"), ("p1-h1", "p1-h2")]
FLOWS = 20_000
USED = 1000
"""Packets that p1-S1 forwards: half a second of the streams or more."""


def weigh_a_slow_link_of_another_pod(fabric: Fabric) -> None:
    """Slow down, fail and restore p2-S1 to p2-L1; check the weights in p1-L1's kernel."""
    prefix = str(fabric.plan.node("p2-L1").host_prefixes[0])
    fabric.shape("p2-S1", "p2-L1", 25e6 / 8)
    await_weights(fabric, prefix, [1, 4, 4, 4])
    assert_flows_follow(fabric)
    await_shares_of_one_area(fabric, prefix)

    fabric.fail("p2-S1", "p2-L1")
    await_hops(fabric, prefix, UPLINKS[1:])
    fabric.heal("p2-S1", "p2-L1")
    await_weights(fabric, prefix, [1, 4, 4, 4])

    fabric.shape("p2-S1", "p2-L1", 100e6 / 8)
    await_weights(fabric, prefix, [1, 1, 1, 1])


def await_weights(fabric: Fabric, prefix: str, wanted: list[int]) -> None:
    """Wait until p1-L1's kernel has these weights, by spine."""

    def accepts(_: str, view: KernelView) -> bool:
        held = [(hop.interface, hop.weight) for hop in view.hops(prefix)]
        return held == list(zip(UPLINKS, wanted, strict=True))

    _await(fabric, accepts, prefix)


def await_hops(fabric: Fabric, prefix: str, wanted: list[str]) -> None:
    """Wait until p1-L1's kernel uses exactly these uplinks."""

    def accepts(_: str, view: KernelView) -> bool:
        return [hop.interface for hop in view.hops(prefix)] == wanted

    _await(fabric, accepts, prefix)


def _await(fabric: Fabric, accepts: Accepts, prefix: str) -> None:
    view = fabric.view("p1-L1")
    done = wait_until({"p1-L1": view}, accepts, 20.0)
    assert done is not None, view.hops(prefix)


def assert_flows_follow(fabric: Fabric) -> None:
    """Assert that the byte counters of the uplinks agree with the weights within 2 points."""
    report = traffic.measure(fabric, "p1-h1", "p2-h1", flows=20_000)
    assert [up.weight for up in report.uplinks] == [1, 4, 4, 4]
    assert report.delivered == report.sent
    assert report.worst_error < 0.02


def await_shares_of_one_area(fabric: Fabric, prefix: str) -> None:
    """Wait until every leaf's shares are those of a maximum flow over the whole fabric."""
    plan = fabric.plan

    def accepts(name: str, view: KernelView) -> bool:
        wanted = expected_shares(path_capacities(plan, fabric.rate, name, "p2-L1"))
        return shares(view.hops(prefix)) == pytest.approx(wanted, abs=0.01)

    leaves = [leaf for leaf in plan.leaves if leaf.name != "p2-L1"]
    assert wait_until(fabric.views(leaves), accepts, 20.0) is not None


def drain_spines(fabric: Fabric) -> None:
    """Drain p1-S1, and then all spines of its PoD, under traffic: no packet is lost.

    Nothing crosses p1-S1 while there is another way, neither from its PoD nor from the other one.
    """
    with ExitStack() as stack:
        streams = [stack.enter_context(Stream.between(fabric, *way, flows=64)) for way in WAYS]
        wait_for(lambda: all(one.flowing() for one in streams), 10, "traffic")
        fabric.node("p1-S1").cli("drain")
        await_rest(lambda: forwarded(fabric, "p1-S1"), 0.5, 20.0, "nothing crosses p1-S1")
        before = forwarded(fabric, "p1-S1")
        for way in (("p1-h4", "p2-h4"), ("p2-h4", "p1-h4")):
            assert traffic.measure(fabric, *way, flows=FLOWS).delivered == FLOWS
        assert forwarded(fabric, "p1-S1") == before
        for spine in UPLINKS[1:]:
            fabric.node(spine).cli("drain")
        await_use(fabric, before, "all spines are drained")
        for spine in UPLINKS[1:]:
            fabric.node(spine).cli("undrain")
        await_rest(lambda: forwarded(fabric, "p1-S1"), 0.5, 20.0, "p1-S1 alone is drained")
        before = forwarded(fabric, "p1-S1")
        fabric.node("p1-S1").cli("undrain")
        await_use(fabric, before, "p1-S1 is back")
    assert [one.lost for one in streams] == [0, 0, 0]


def await_use(fabric: Fabric, before: int, what: str) -> None:
    wait_for(lambda: forwarded(fabric, "p1-S1") > before + USED, 20.0, what)


def forwarded(fabric: Fabric, name: str) -> int:
    """How many IPv4 packets a router has forwarded (RFC 4293: ipForwDatagrams)."""
    lines = fabric.node(name).netns.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    return int(dict(zip(names, values, strict=True))["ForwDatagrams"])
