"""Traffic at a constant rate, and recordings of a fabric under it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest

from bench.load.recorder import Moment, Recorder, behaviour
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.steady import OVERHEAD, SteadyStream, between_hosts, steady, through
from fared.extensions.lab.waiting import await_paths
from tests.lab.test_workload import MBIT, three_leaves
from tests.waiting import wait_for

NOWHERE = IPv4Address("192.0.2.1")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    with Fabric.from_topology(three_leaves(), directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        yield running


def sent(fabric: Fabric, node: str, port: str, seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return fabric.view(node).counters()[port].sent_bytes


def rate(fabric: Fabric, node: str, port: str) -> float:
    """Bytes/s over half a second of traffic."""
    begun, before = time.monotonic(), sent(fabric, node, port)
    after = sent(fabric, node, port, 0.5)
    return (after - before) / (time.monotonic() - begun)


def await_rate(fabric: Fabric, node: str, port: str, wanted: float) -> None:
    """Wait until so much is sent; a sender that waited for a processor sends more, then less."""
    wait_for(
        lambda: rate(fabric, node, port) == pytest.approx(wanted, rel=0.3),
        20.0,
        f"{wanted} bytes/s leave {node}",
    )


def await_quiet(fabric: Fabric, node: str, port: str) -> None:
    """Wait until queues that an earlier test filled have drained."""
    wait_for(lambda: rate(fabric, node, port) < 0.1e6, 20.0, f"nothing leaves {node}")


def test_packets_are_due_evenly_and_only_in_the_first_half_of_a_period():
    """1000 bytes on the wire at 1000 bytes/s: one packet a second."""
    even = SteadyStream("h1", "h2", NOWHERE, 1000.0, payload=1000 - OVERHEAD)
    assert [even.due(at) for at in (0.0, 0.5, 7.25)] == [0.0, 0.5, 7.25]
    pulsed = SteadyStream("h1", "h2", NOWHERE, 1000.0, payload=1000 - OVERHEAD, period=4.0)
    assert [pulsed.due(at) for at in (1.0, 2.0, 3.9, 5.0)] == [1.0, 2.0, 2.0, 3.0]
    bundled = SteadyStream("h1", "h2", NOWHERE, 1000.0, payload=1000 - OVERHEAD, segments=4)
    assert bundled.due(8.0) == 2.0


@pytest.mark.netns
@pytest.mark.alone
@pytest.mark.parametrize("segments", [1, 4])
def test_generated_load_through_a_spine_uses_no_other_spine(fabric: Fabric, segments: int):
    """Whatever the weights: the one shortest path to that address leads through it."""
    plain = through(fabric, "h1", "S2", "L2", 2e6)
    stream = SteadyStream("h1", "L2", plain.address, plain.rate, segments=segments)
    await_quiet(fabric, "L1", "S2")
    with steady(fabric, [stream]):
        await_rate(fabric, "L1", "S2", 2e6)
        await_rate(fabric, "S2", "L2", 2e6)
        assert rate(fabric, "L1", "S1") < 0.1e6
    await_quiet(fabric, "L1", "S2")  # it ends with the context


@pytest.fixture
def slow(fabric: Fabric) -> Iterator[Fabric]:
    """Uplinks of L1 that any machine fills, at 10 Mbit/s each."""
    for spine in ("S1", "S2"):
        fabric.shape("L1", spine, 10 * MBIT)
    yield fabric
    for spine in ("S1", "S2"):
        fabric.shape("L1", spine, 100 * MBIT)


@pytest.mark.netns
@pytest.mark.alone
def test_traffic_that_a_full_link_drops_counts_as_offered_load(slow: Fabric):
    """Twice the rate of both uplinks: both are offered more than they can carry."""
    fabric = slow
    half = "L1", str(fabric.plan.node("L2").host_prefixes[0]), "S1"
    stream = between_hosts(fabric, "h1", "h2", 4 * 10 * MBIT, 64)
    with (
        steady(fabric, [stream]),
        Recorder(fabric, 0.25, packet=stream.payload + OVERHEAD) as recorder,
    ):
        wait_for(
            lambda: (
                len(recorder.moments) >= 4
                and recorder.moments[-1].shares[half] == pytest.approx(0.5)  # of the rates just set
                and recorder.moments[-1].offered["L1", "S1"] > 1.2
            ),
            30.0,
            "equal shares, and more than the link carries",
        )
        last = recorder.moments[-1]
    assert last.offered["S2", "L3"] < 0.1
    assert last.shares[half] == pytest.approx(0.5)
    assert len(last.sequences) == 12, "a TE LSA for each link and direction"


def moment(at: float, share: float, offered: float, rewrites: int, sequence: int) -> Moment:
    """A leaf with two uplinks, one of them loaded."""
    return Moment(
        at,
        {("L1", "far", "S1"): share, ("L1", "far", "S2"): 1 - share},
        {("L1", "S1"): offered, ("L1", "S2"): 0.5},
        {"L1": rewrites, "S1": 7},
        {("10.255.0.1", "1.0.0.1"): sequence},
    )


def test_a_recording_is_summarized_in_a_few_figures():
    """Shares swing between 20 and 40 points, one reading in two is above the link's rate."""
    found = behaviour(
        [moment(0, 0.4, 9.9, 9, 5), moment(1, 0.2, 1.5, 1, 8), moment(3, 0.4, 0.5, 0, 9)]
    )
    assert found.seconds == 3
    assert found.worst_offered == pytest.approx(1.0)
    assert found.overflow == pytest.approx(0.5 / 3.0)
    assert found.swing == pytest.approx(20.0)
    assert found.deviation == pytest.approx(9.43, abs=0.01)
    assert found.rewrites == pytest.approx(1 / 3)
    assert (found.originations, found.burst) == (pytest.approx(4 / 3), 3.0)
