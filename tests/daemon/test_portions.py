"""Portions of packets that wait: nothing is lost, doubled or miscounted where one is divided."""

from hypothesis import given
from hypothesis import strategies as st

from fared.daemon.loop.portions import Waiting, size_of
from fared.protocols.igp.events import PacketReceived, PacketsReceived, Received, number_of

PACKETS = st.lists(st.integers(0, 9), max_size=30)
"""For each the copies that came together; 0: a packet by itself."""


def packets(copies: list[int]) -> list[Received]:
    return [
        PacketsReceived(1, 10, 20, (b"x" * 30,) * some)
        if some
        else PacketReceived(1, 10, 20, bytes([number]))
        for number, some in enumerate(copies)
    ]


@given(PACKETS, st.integers(0, 2000), st.integers(0, 20), st.integers(1, 20))
def test_a_portion_is_divided_in_order(copies, size, least, most):
    every = packets(copies)
    rest = Waiting.of("isis", list(every))
    first = rest.take_first(size, least, most)
    assert first.packets + rest.packets == every
    for part in (first, rest):
        assert part == Waiting.of("isis", part.packets)
        assert part.number == number_of(part.packets)
    without_last = Waiting.of("isis", first.packets[:-1])
    if first.packets:
        assert without_last.counted < most
        assert without_last.size < size or without_last.counted < least
    if rest.packets:
        assert first.counted >= most or (first.size >= size and first.counted >= least)


@given(PACKETS, PACKETS)
def test_portions_of_a_protocol_add_up(one, other):
    whole = Waiting.of("ospf", packets(one))
    whole.append(Waiting.of("ospf", packets(other)))
    assert whole == Waiting.of("ospf", packets(one) + packets(other))
    assert size_of([("ospf", packets(one)), ("ospf", packets(other))]) == whole.size
