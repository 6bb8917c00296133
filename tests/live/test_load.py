"""Load from the counters to the weights in the kernel: measured, announced, followed, taken
back."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fared.extensions.lab.namespaces import Netns
from tests.live import daemons
from tests.live.daemons import RIGHT_STUB, Pair, running_pair
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.alone]

CAPACITY = 10e6 / 8
LOAD = 0.5
BUCKETS = 128
SOON = 20.0
_NOBODY = 0x88B5


def configure(identity: str, hostname: str) -> dict[str, Any]:
    """Ten measurements a second, weights that follow load at once, groups of 128 buckets.

    The end of a load may be told in two steps, if it falls into a window. What is too little to
    be announced (1 % of a link) is less than a bucket here, and no dead band keeps the last step.
    """
    config = daemons._config(identity, hostname)
    config["interfaces"] = {"u*": {"bandwidth": "10M"}}
    config["adaptive"] = {
        "metric": "available",
        "measure-period": "100ms",
        "time-constant": "0s",
        "announce-threshold": "1%",
        "dead-band": "0%",
    }
    config["fib"] = {"group-type": "resilient", "buckets": BUCKETS}
    return config


@pytest.fixture(scope="module")
def measuring_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair("l", tmp_path_factory.mktemp("load"), configure) as made:
        yield made


@pytest.fixture
def loaded_pair(measuring_pair: Pair) -> Pair:
    """The shared daemons, without load."""
    wait_for(lambda: weights(measuring_pair) == {"u0": 1, "u1": 1}, SOON, "equal weights")
    return measuring_pair


@contextlib.contextmanager
def traffic(netns: Netns, interface: str, rate: float) -> Iterator[None]:
    """Frames to nobody at about so many bytes/s, from a process of its own."""
    with netns.entered():
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    child = os.fork()
    if child == 0:
        begun, sent = time.monotonic(), 0
        while sent < 600 * rate:
            while sent < (time.monotonic() - begun) * rate:
                sender.sendto(bytes(1000), (interface, _NOBODY, 0, 0, b"\x02\0\0\0\0\x01"))
                sent += 1014
            time.sleep(0.002)
        os._exit(0)
    sender.close()
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def interface(pair: Pair, name: str) -> dict[str, Any]:
    rows = pair.left.show("interfaces")["interfaces"]
    return next(row for row in rows if row["interface"] == name)


def weights(pair: Pair) -> dict[str, int]:
    return {hop.interface: hop.weight for hop in pair.view.hops(RIGHT_STUB)}


def share(pair: Pair) -> float:
    """The part of u0 in the kernel's group."""
    found = weights(pair)
    return found.get("u0", 0) / max(1, sum(found.values()))


def half_loaded(pair: Pair) -> dict[str, Any] | None:
    """u0, when its measured and its announced load are about what is sent."""
    row = interface(pair, "u0")
    usual = row["utilized"] == pytest.approx(LOAD * CAPACITY, rel=0.5)
    announced = row["announced_available"] == pytest.approx((1 - LOAD) * CAPACITY, rel=0.5)
    return row if usual and announced else None


def half_in_metrics(pair: Pair) -> bool:
    metrics = pair.left.metrics()
    available = metrics['fared_link_available_bytes_per_second{interface="u0"}'] / CAPACITY
    used = metrics['fared_link_utilization_ratio{interface="u0"}']
    return 0.2 < used < 0.8 and 0.2 < available < 1


def samples(pair: Pair) -> float:
    """How many loads the left router has measured."""
    return pair.left.metrics()['fared_load_samples_total{result="ok"}']


def test_load_becomes_weights_in_whole_buckets(loaded_pair: Pair):
    """Half of one of two links is taken: a third of the flows uses it."""
    pair = loaded_pair
    assert "buckets 128 idle_timer 0 unbalanced_timer 0" in pair.left.netns.ip("nexthop")
    assert weights(pair) == {"u0": 1, "u1": 1}
    with traffic(pair.left.netns, "u0", LOAD * CAPACITY):
        wait_for(lambda: abs(share(pair) - 1 / 3) < 0.08, SOON, "half the weight for u0")
        # the sender may have had no CPU for a tenth of a second, and then sent twice as much
        row = wait_for(lambda: half_loaded(pair), SOON, "half the load, and half announced")
        assert row["available"] == pytest.approx(CAPACITY - row["utilized"])
        wait_for(lambda: half_in_metrics(pair), SOON, "half the load in the metrics")
        metrics = pair.left.metrics()
        wait_for(lambda: samples(pair) > 5, SOON, "loads are measured on and on")
        assert metrics['fared_load_samples_total{result="failed"}'] == 0
        assert metrics['fared_weight_changes_total{reason="group-rewrite"}'] >= 1
        assert "Free" in pair.left.cli("show", "interfaces").stdout
        assert BUCKETS % sum(weights(pair).values()) == 0, "weights are whole buckets"
    wait_for(lambda: weights(pair) == {"u0": 1, "u1": 1}, SOON, "equal weights again")
    assert pair.left.counters()["fib"]["group-rewrite"] >= 2
    assert pair.left.complaints() == []


def test_a_recreated_link_begins_without_load(loaded_pair: Pair):
    """The same name and index, counters at zero: neither an absurd load nor the old one."""
    pair = loaded_pair
    with traffic(pair.left.netns, "u0", LOAD * CAPACITY):
        wait_for(lambda: interface(pair, "u0")["utilized"] > 0.2 * CAPACITY, SOON, "load on u0")
    pair.left.netns.ip("link", "delete", "u0")
    wait_for(lambda: pair.used() == {"u1"}, SOON, "one link left")
    right = pair.right.netns.name
    pair.left.netns.batch(
        "ip",
        [
            f"link add name u0 index 10 type veth peer name u0 index 110 netns {right}",
            "addr add 10.129.0.0/31 dev u0",
            "link set u0 up",
        ],
    )
    pair.right.netns.batch("ip", ["addr add 10.129.0.1/31 dev u0", "link set u0 up"])
    pair.await_routes(SOON)
    wait_for(lambda: interface(pair, "u0")["utilized"] is not None, SOON, "measured again")
    row = interface(pair, "u0")
    assert row["utilized"] < 0.1 * CAPACITY
    assert row["announced_available"] > 0.9 * CAPACITY
    assert weights(pair) == {"u0": 1, "u1": 1}


def test_the_measuring_period_changes_with_a_reload(loaded_pair: Pair):
    """From ten times a second to once an hour: nothing is measured any more."""
    left = loaded_pair.left

    def samples() -> int:
        return left.counters()["load-samples"]["ok"]

    begun = samples()
    wait_for(lambda: samples() > begun + 3, SOON, "measurements")
    seldom = {**left.config, "adaptive": {**left.config["adaptive"], "measure-period": "1h"}}
    left.reload(seldom)
    counted, lag = samples(), left.counters()
    wait_for(lambda: left.show("status")["uptime"] and left.counters() != lag, SOON, "time passes")
    assert samples() == counted
    left.reload()
    wait_for(lambda: samples() > counted, SOON, "measurements again")
