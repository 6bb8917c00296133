"""Packets are read from sockets without memory beyond their own."""

import socket
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import pytest

from fared.kernel.arrived import arrived, receive_buffer


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    with near, far:
        yield near, far


def test_packets_are_read_one_after_the_other_until_none_waits(ends):
    near, far = ends
    for data in (b"first", b"2nd", b"third"):
        far.send(data)
    counters: Counter[str] = Counter()
    assert arrived(near, receive_buffer(), counters, 2) == [b"first", b"2nd"]
    assert arrived(near, receive_buffer(), counters, 9) == [b"third"]
    assert not counters


def test_a_short_packet_takes_no_memory_of_the_longest(ends):
    """With it, what the database keeps of a flood is scattered, and the heap grows."""
    near, far = ends
    buffer, counters = receive_buffer(), Counter[str]()
    far.send(b"short")
    tracemalloc.start()
    try:
        assert arrived(near, buffer, counters, 9) == [b"short"]
        assert tracemalloc.get_traced_memory()[1] < 8192
    finally:
        tracemalloc.stop()
