"""Packets in trains: what goes together, what arrives, and kernels or routes without them."""

from __future__ import annotations

import errno
import socket
from collections import Counter
from collections.abc import Iterator

import pytest

from fared.extensions.ina.trains import TrainSocket, trains_of


def sizes(*given: int) -> list[list[int]]:
    return [[size for size, _ in train] for train in trains_of([(size, ()) for size in given])]


def test_packets_of_one_size_form_trains_and_a_shorter_one_ends_a_train():
    assert sizes() == []
    assert sizes(100) == [[100]]
    assert sizes(100, 100, 60, 100) == [[100, 100, 60], [100]]
    assert sizes(60, 100, 100) == [[60], [100, 100]]
    assert sizes(100, 60, 60) == [[100, 60], [60]]


def test_a_train_is_three_jumbo_frames_at_most():
    assert sizes(*[8936] * 7) == [[8936] * 3, [8936] * 3, [8936]]
    assert [len(train) for train in sizes(*[1448] * 40)] == [19, 19, 2]


def udp() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    return sock


class Refusing:
    """A socket that takes single packets only, or nothing."""

    def __init__(self, sock: socket.socket, error: int, *, single: bool) -> None:
        self._sock, self._error, self._single, self.trains = sock, error, single, 0

    def setsockopt(self, *_: object) -> None:
        raise OSError(errno.ENOPROTOOPT, "no such option")

    def sendmsg(self, buffers, told, flags, address) -> int:
        self.trains += bool(told)
        if told or not self._single:
            raise OSError(self._error, "refused")
        return self._sock.sendmsg(buffers, told, flags, address)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with udp() as first, udp() as second:
        yield first, second


def arrived(sock: socket.socket) -> list[tuple[tuple[str, int], bytes]]:
    found: list[tuple[tuple[str, int], bytes]] = []

    def take(source: tuple[str, int], train: memoryview, step: int) -> None:
        found.extend((source, bytes(train[at : at + step])) for at in range(0, len(train), step))

    TrainSocket(sock, Counter()).receive(take, most=99)
    return found


PACKETS = [bytes([number]) * size for number, size in enumerate((900, 900, 900, 40, 900, 7))]


def test_packets_arrive_whole_and_in_order_from_buffers_in_parts(pair):
    first, second = pair
    counters: Counter[str] = Counter()
    sender = TrainSocket(first, counters)
    for packet in PACKETS:
        sender.put((second.getsockname(),), len(packet), packet[:5], memoryview(packet)[5:])
    TrainSocket(second, Counter())  # takes trains whole from now on
    sender.flush()
    assert arrived(second) == [(first.getsockname(), packet) for packet in PACKETS]
    sender.flush()
    assert arrived(second) == []
    assert not counters


def test_a_socket_that_takes_no_trains_gets_their_packets(pair):
    first, second = pair
    sender = TrainSocket(first, Counter())
    for packet in PACKETS:
        sender.put((second.getsockname(),), len(packet), packet)
    sender.flush()
    second.setblocking(False)
    assert [second.recv(2000) for _ in PACKETS] == PACKETS


def test_where_trains_are_refused_packets_go_one_by_one_from_then_on(pair):
    first, second = pair
    counters: Counter[str] = Counter()
    refusing = Refusing(first, errno.EINVAL, single=True)
    sender = TrainSocket(refusing, counters)
    for _ in range(2):
        for packet in PACKETS:
            sender.put((second.getsockname(),), len(packet), packet)
        sender.flush()
    assert [data for _, data in arrived(second)] == PACKETS * 2
    assert refusing.trains == 1
    assert not counters


def test_an_empty_packet_is_counted(pair):
    first, second = pair
    counters: Counter[str] = Counter()
    first.sendto(b"", second.getsockname())
    first.sendto(b"some", second.getsockname())
    found: list[bytes] = []
    TrainSocket(second, counters).receive(lambda _, train, step: found.append(bytes(train)), 9)
    assert (found, counters) == ([b"some"], {"empty": 1})


def test_a_packet_for_several_addresses_goes_to_each(pair):
    first, second = pair
    with udp() as third:
        sender = TrainSocket(third, Counter())
        for packet in PACKETS:
            sender.put((first.getsockname(), second.getsockname()), len(packet), packet)
        sender.flush()
        for sock in pair:
            assert [data for _, data in arrived(sock)] == PACKETS


@pytest.mark.parametrize(
    ("error", "counted"), [(errno.EAGAIN, "queue-full"), (errno.ENETUNREACH, "not-sent")]
)
def test_what_cannot_be_sent_is_counted(pair, error, counted):
    counters: Counter[str] = Counter()
    sender = TrainSocket(Refusing(pair[0], error, single=False), counters)
    for packet in PACKETS:
        sender.put((("127.0.0.1", 9),), len(packet), packet)
    sender.flush()
    assert counters == {counted: len(PACKETS)}
