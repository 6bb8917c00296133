"""Byte counters, and the loads computed from them."""

import errno
import json
import random
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.kernel import counters as module
from fared.kernel.counters import (
    MAX_LOAD,
    CounterSample,
    LinkCounters,
    LoadMeter,
    LoadSource,
    Sent,
    load_between,
)
from fared.kernel.errors import InterruptedDumpError, NetlinkError
from tests.kernel.netns import inside, run

GBIT = 1e9 / 8


def sample(at: float, octets: int, packets: int = 0, ifindex: int = 3) -> CounterSample:
    return CounterSample(at, {ifindex: Sent(packets, octets)})


def test_a_load_is_the_difference_over_the_time():
    assert load_between(sample(1.0, 100), sample(3.0, 300)) == {3: 100.0}


def test_a_late_timer_changes_nothing_because_the_true_time_counts():
    assert load_between(sample(1.0, 0), sample(1.1, 1000))[3] == pytest.approx(10_000)
    assert load_between(sample(1.0, 0), sample(4.0, 30_000))[3] == pytest.approx(10_000)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_wrapped_counter_goes_on(bits):
    before, after = sample(0.0, (1 << bits) - 1000, 7), sample(1.0, 500, 9)
    assert load_between(before, after) == {3: 1500.0}


@pytest.mark.parametrize("octets", [1000, 2_000_000_000, (1 << 32) - 1000, 1 << 40, (1 << 64) - 9])
def test_a_reset_counter_gives_no_load_for_that_interval(octets):
    """Also if a wrap would explain it: a reset clears the packet counter too."""
    assert load_between(sample(0.0, octets, 10**6), sample(1.0, 500, 5)) == {3: None}


def test_a_recreated_device_that_has_sent_more_than_the_old_one_gives_no_load_either():
    assert load_between(sample(0.0, 90_000, 900), sample(1.0, 100_000, 80)) == {3: None}


def test_a_counter_that_went_backwards_from_the_middle_gives_no_load():
    assert load_between(sample(0.0, 2_000_000_000, 3), sample(1.0, 500, 3)) == {3: None}


def test_more_than_any_link_can_carry_is_no_load():
    assert load_between(sample(0.0, 0), sample(1.0, 1 << 50)) == {3: None}


def test_a_burst_above_the_speed_of_the_link_is_load():
    """Shapers let bursts through, and virtual links exceed their nominal speed."""
    assert load_between(sample(0.0, 0), sample(0.1, int(2 * GBIT))) == {3: 20 * GBIT}


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=20))
def test_no_counter_values_give_an_absurd_or_negative_load(readings):
    meter = LoadMeter()
    for second, (packets, octets) in enumerate(readings):
        for load in meter.update(sample(second, octets, packets)).values():
            assert 0 <= load <= MAX_LOAD


def test_a_steady_sender_is_measured_right_through_wraps_of_32_bits():
    dice, meter, now, octets = random.Random(5), LoadMeter(), 0.0, 0
    meter.update(sample(now, octets))
    for packets in range(1, 100):
        seconds = dice.uniform(0.09, 0.3)
        now, octets = now + seconds, octets + round(seconds * GBIT)
        loads = meter.update(sample(now, octets % (1 << 32), packets))
        assert loads == {3: pytest.approx(GBIT, rel=1e-6)}


def test_the_first_loads_come_with_the_second_sample_for_interfaces_in_both():
    meter = LoadMeter()
    assert meter.update(sample(0.0, 0)) == {}
    assert meter.update(CounterSample(1.0, {3: Sent(1, 50), 4: Sent(1, 1)})) == {3: 50.0}
    assert meter.update(sample(1.0, 60)) == {}


def test_an_interface_that_returns_needs_two_samples_again():
    meter = LoadMeter()
    meter.update(sample(0.0, 10**9, 10**6))
    meter.update(CounterSample(1.0, {}))
    assert meter.update(sample(2.0, 400, 4)) == {}
    assert meter.update(sample(3.0, 900, 9)) == {3: 500.0}


def test_a_load_that_stays_unknown_expires_once_and_is_known_again_later():
    """With implausible counters, the last measured load is dropped after some time."""
    meter = LoadMeter()
    meter.update(sample(0.0, 1 << 60, 10))
    meter.update(sample(1.0, 1 << 60, 11))
    expired = []
    for second in range(2, 20):
        meter.update(sample(second, (20 - second) << 50, 11))
        expired += [(second, i) for i in meter.expired(second, 10.0)]
    assert expired == [(12, 3)]
    assert meter.update(sample(20.0, 3 << 50 | 5, 12)) == {}
    assert meter.update(sample(21.0, 3 << 50 | 15, 12)) == {3: 10.0}
    assert meter.expired(21.0, 10.0) == []


def test_without_samples_all_loads_expire_once():
    meter = LoadMeter()
    for second in range(2):
        meter.update(CounterSample(second, {3: Sent(0, 0), 4: Sent(0, 0)}))
    assert [meter.expired(now, 10.0) for now in (5.0, 11.0, 11.5, 12.0)] == [[], [], [3, 4], []]


def test_one_that_vanished_does_not_expire():
    meter = LoadMeter()
    for second in range(2):
        meter.update(sample(second, 0))
    meter.update(CounterSample(2.0, {}))
    assert meter.expired(50.0, 10.0) == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOBUFS, "No buffer space available"),
        NetlinkError(errno.EBUSY, "Device or resource busy"),
        InterruptedDumpError(errno.EAGAIN, "the table changes faster than it can be read"),
    ],
)
def test_after_a_failed_dump_the_next_one_gives_the_average_since_the_last(monkeypatch, error):
    opened: list[LinkCounters] = []
    answers: list[CounterSample | OSError] = [sample(0.0, 0), error, error, sample(3.0, 300)]

    class Scripted:
        def __init__(self) -> None:
            opened.append(self)

        def close(self) -> None:
            pass

        def sample(self, now: float) -> CounterSample:
            answer = answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer

    monkeypatch.setattr(module, "LinkCounters", Scripted)
    source = LoadSource()
    assert source.measure(0.0) == {}
    for second in (1.0, 2.0):
        with pytest.raises(OSError, match=error.strerror):
            source.measure(second)
    assert source.measure(3.0) == {3: 100.0}
    assert len(opened) == 3  # each failure costs a socket
    source.close()


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
    before, after = first.counters[ifindex], second.counters[ifindex]
    assert after.octets - before.octets >= 3 * 1042
    assert after.packets - before.packets >= 3
    assert load_between(first, second)[ifindex] > 0
    sender.close()
    counters.close()


@pytest.mark.netns
def test_all_interfaces_are_read_in_one_dump_and_agree_with_the_kernel(namespaces):
    box, other = namespaces.add(), namespaces.add()
    for number in range(4):
        namespaces.pair(box, other, f"e{number}", number)
    with inside(box):
        counters = LinkCounters()
        asked: list[int] = []
        dump = counters._netlink.dump
        counters._netlink.dump = lambda kind, body: asked.append(kind) or dump(kind, body)
        found = counters.sample(0.0).counters
    assert len(asked) == 1
    links = json.loads(run("ip -json -statistics link", box))
    assert {link["ifindex"] for link in links} == set(found)
    for link in links:
        assert found[link["ifindex"]].octets <= link["stats64"]["tx"]["bytes"]
    counters.close()


@pytest.mark.netns
def test_a_recreated_device_with_the_same_index_gives_no_absurd_load(namespaces):
    box = namespaces.add()
    with inside(box):
        source = LoadSource()
    for round_number in range(3):
        run(f"ip link add re index 77 type veth peer name far{round_number}", box)
        run(f"ip link set far{round_number} up", box)
        run("ip link set re up", box)
        run("ip address add 10.9.0.1/24 broadcast + dev re", box)
        with inside(box), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            for _ in range(30 // (round_number + 1)):
                sender.sendto(bytes(1000), ("10.9.0.255", 9))
        loads = source.measure(float(round_number))
        assert 0 <= loads.get(77, 0.0) <= 40_000
        run("ip link delete re", box)
    assert 77 not in source.measure(9.0)
    source.close()
