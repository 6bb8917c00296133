"""Byte counters and the rates made of them."""

import socket
import time

import pytest

from fared.kernel.counters import Bytes, LinkCounters, Load, LoadMeter, Sample, load_between
from tests.kernel.netns import inside, run


def sample(at: float, received: int, sent: int = 0) -> Sample:
    return Sample(at, {3: Bytes(received, sent)})


def test_a_rate_is_the_difference_over_the_time():
    assert load_between(sample(1.0, 100, 7), sample(3.0, 300, 7)) == {3: Load(100.0, 0.0)}


@pytest.mark.parametrize("bits", [32, 64])
def test_a_wrapped_counter_goes_on(bits):
    before, after = sample(0.0, (1 << bits) - 1000), sample(1.0, 500)
    assert load_between(before, after)[3].received == 1500.0


def test_a_reset_counter_gives_no_rate_for_that_interval():
    assert load_between(sample(0.0, 2_000_000_000), sample(1.0, 500))[3].received is None
    assert load_between(sample(0.0, 1 << 40), sample(1.0, 500))[3].received is None


def test_more_than_the_link_can_carry_is_no_load():
    limits = {3: 1e6}
    assert load_between(sample(0.0, 0), sample(1.0, 10**9), limits)[3].received is None
    assert load_between(sample(0.0, 0), sample(1.0, 10**6), limits)[3].received == 1e6


def test_the_meter_starts_with_its_second_sample_and_knows_only_common_interfaces():
    meter = LoadMeter()
    assert meter.update(sample(0.0, 0)) == {}
    assert meter.update(Sample(1.0, {3: Bytes(50, 0), 4: Bytes(1, 1)})) == {3: Load(50.0, 0.0)}
    assert meter.update(sample(1.0, 60)) == {}


@pytest.mark.netns
def test_traffic_is_counted_where_it_flows(namespaces):
    left, right = namespaces.add(), namespaces.add()
    ifindex, _ = namespaces.pair(left, right, "e0", 0)
    with inside(left):
        counters = LinkCounters()
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far = run("cat /sys/class/net/e0/address", right).strip()
    run(f"ip neighbor replace 10.0.0.2 lladdr {far} dev e0", left)
    first = counters.sample(time.monotonic())
    for _ in range(3):
        sender.sendto(bytes(1000), ("10.0.0.2", 9))
    second = counters.sample(time.monotonic())
    assert second.counters[ifindex].sent - first.counters[ifindex].sent >= 3 * 1042
    assert load_between(first, second)[ifindex].sent > 0
    sender.close()
    counters.close()
