"""Reordering of numbered packets: the examples of RFC 4737 §7, and what a receiver holds."""

from __future__ import annotations

import random

import pytest

from fared.extensions.lab.packet_order import PacketOrder, packet_order, together


@pytest.mark.parametrize(
    ("arrivals", "extents", "n_reordered"),
    [
        ([1, 2, 3, 5, 6, 7, 8, 4, 9, 10], [4], 1),
        ([1, 2, 3, 4, 7, 5, 6, 8, 9, 10], [1, 2], 0),
        ([1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11], [4, 5, 6], 1),
    ],
    ids=["table 1", "table 2", "table 3"],
)
def test_extents_and_3_reordering_are_those_of_the_examples_of_rfc_4737(
    arrivals: list[int], extents: list[int], n_reordered: int
):
    """§7.1 to §7.3. Of table 3's three late packets, only the first is late by itself."""
    order = packet_order(arrivals)
    assert order.received == len(arrivals)
    assert order.reordered == len(extents)
    assert order.extent == max(extents)
    assert order.mean_extent == pytest.approx(sum(extents) / len(extents))
    assert order.n_reordered == n_reordered
    assert order.ratio == pytest.approx(len(extents) / len(arrivals))


def test_a_receiver_holds_what_arrived_before_the_late_packet():
    """RFC 5236 §4: 5 to 8 wait for 4; a lost packet is waited for by none."""
    assert packet_order([1, 2, 3, 5, 6, 7, 8, 4, 9, 10]).buffer == 4
    assert packet_order([1, 2, 3, 5, 6, 7, 8, 9, 10]) == PacketOrder(received=9)


def test_duplicates_are_counted_and_then_count_for_nothing():
    assert packet_order([0, 1, 1, 2, 0]) == PacketOrder(received=3, duplicates=2)


def test_flows_together_are_sums_and_the_largest_extent():
    late = packet_order([1, 2, 3, 0])
    swapped = packet_order([1, 0])
    assert together([late, swapped, packet_order([])]) == PacketOrder(
        received=6, reordered=2, n_reordered=1, mean_extent=2.0, extent=3, buffer=3
    )


def test_the_metrics_are_those_of_their_definitions():
    """Random orders, against the RFCs' definitions word by word."""
    draw = random.Random(4737)
    for _ in range(50):
        s = draw.sample(range(200), 60)
        late = [i for i in range(60) if any(s[j] > s[i] for j in range(i))]
        extents = [i - min(j for j in range(i) if s[j] > s[i]) for i in late]
        three = [i for i in late if i >= 3 and all(s[j] > s[i] for j in range(i - 3, i))]
        order = packet_order(s)
        assert (order.reordered, order.n_reordered) == (len(late), len(three))
        assert order.extent == max(extents)
        assert order.mean_extent == pytest.approx(sum(extents) / len(extents))
        held = [
            sum(any(later < early for later in s[i + 1 :]) for early in s[: i + 1])
            for i in range(60)
        ]
        assert order.buffer == max(held)
