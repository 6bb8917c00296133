"""TCP connections of neighbors: who is accepted, what passes, and how connections end.

Two edges in network namespaces; what engines ask for is written by the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys
import termios
from types import SimpleNamespace

import pytest

from fared.core.streams import (
    CloseStream,
    Listen,
    Listener,
    ReadStream,
    SendStream,
    StreamId,
    StreamKey,
    StreamOpened,
    Transport,
)
from fared.daemon.loop.streams import edge, leaving, listening, stream
from fared.kernel.errors import PrivilegeError
from tests.daemon.stream_ends import PORT, End
from tests.waiting import loop_until

pytestmark = pytest.mark.netns

FAMILIES = [
    pytest.param(("10.0.0.1", "10.0.0.2"), None, id="IPv4"),
    pytest.param(("fd00::1", "fd00::2"), None, id="IPv6"),
    pytest.param(("fe80::1", "fe80::2"), "e0", id="link-local"),
]
KEY, OTHER = StreamKey(b"secret"), StreamKey(b"another")
MEGABYTE = bytes(range(256)) * 4096


def stranger(end: End, remote: str = "10.0.0.2") -> socket.socket:
    """A connection of no engine, which the kernel of the far end has taken."""
    made = end.netns.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(10.0)
    made.connect((remote, PORT))
    return made


def end_of(sock: socket.socket) -> str:
    """How a connection ended for a stranger."""
    try:
        return "bytes" if sock.recv(1) else "closed"
    except ConnectionResetError:
        return "reset"
    finally:
        sock.close()


@pytest.mark.parametrize(("remote", "link"), FAMILIES)
async def test_bytes_pass_both_ways_and_an_end_closes_when_all_are_read(ends, remote, link):
    left, right = ends.left, ends.right
    active, passive = await ends.join(remote=remote, link=link)
    assert right.told(StreamOpened) == [StreamOpened(passive, remote[1], remote[0])]
    assert left.told(StreamOpened) == [StreamOpened(active, *remote)]
    left.do(SendStream(active, b"open"), SendStream(active, b"more"))
    right.do(SendStream(passive, MEGABYTE))
    await loop_until(lambda: left.received(active) == MEGABYTE)
    await loop_until(lambda: right.received(passive) == b"openmore")
    assert (left.sent(active), right.sent(passive)) == (8, len(MEGABYTE))
    left.do(SendStream(active, b"farewell"), CloseStream(active))
    assert await right.closed(passive) == "it closed the connection"
    assert right.received(passive) == b"openmorefarewell"
    assert left.reason(active) is None


@pytest.mark.parametrize(("remote", "link"), FAMILIES)
@pytest.mark.rfc("RFC 2385 §2.0")
async def test_with_a_key_the_kernel_verifies_every_segment(ends, remote, link):
    left, right = ends.left, ends.right
    active, passive = await ends.join(remote=remote, link=link, key=KEY)
    left.do(SendStream(active, MEGABYTE))
    await loop_until(lambda: right.received(passive) == MEGABYTE)
    for wrong, counter in ((OTHER, "TCPMD5Failure"), (None, "TCPMD5NotFound")):
        before = right.snmp(counter)
        number = left.connect(Transport(remote[1], link=link, key=wrong))
        await loop_until(lambda c=counter, b=before: right.snmp(c) > b)
        left.do(CloseStream(number))
    assert len(right.told(StreamOpened)) == 1


async def test_a_key_is_changed_at_both_ends_of_a_connection_that_stays(ends):
    left, right = ends.left, ends.right
    active, passive = await ends.join(key=KEY)
    right.listen(Transport("10.0.0.1", key=OTHER))
    left.do(SendStream(active, b"with the old key"))
    await loop_until(lambda: right.snmp("TCPMD5Failure"))
    assert right.received(passive) == b""
    left.listen(Transport("10.0.0.2", key=OTHER))
    await loop_until(lambda: right.received(passive) == b"with the old key")
    left.connect(Transport("10.0.0.2", key=OTHER))
    await loop_until(lambda: len(right.told(StreamOpened)) == 2)
    for end, remote in ((left, "10.0.0.2"), (right, "10.0.0.1")):
        end.listen(Transport(remote))
    left.do(SendStream(active, b", without"))
    await loop_until(lambda: right.received(passive) == b"with the old key, without")


@pytest.mark.parametrize(("remote", "link"), FAMILIES)
@pytest.mark.rfc("RFC 5082 §3")
async def test_with_ttl_security_only_the_link_is_heard(ends, remote, link):
    left, right = ends.left, ends.right
    active, passive = await ends.join(remote=remote, link=link, ttl=255)
    left.do(SendStream(active, b"from the link"))
    await loop_until(lambda: right.received(passive))
    number = left.connect(Transport(remote[1], link=link, ttl=64))
    assert await left.closed(number) == "connection reset by peer"
    assert right.edge.counters["refused-ttl"] == 1
    assert ("connection-refused", {"address": remote[0], "reason": "ttl"}) in right.lines
    assert len(right.told(StreamOpened)) == 1


@pytest.mark.rfc("RFC 5082 §3")
async def test_on_an_open_connection_other_ttls_are_dropped(ends):
    left, right = ends.left, ends.right
    active, passive = await ends.join(ttl=255)
    left.edge._streams[active].sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 254)
    before = right.snmp("TCPMinTTLDrop")
    left.do(SendStream(active, b"from beyond"))
    await loop_until(lambda: right.snmp("TCPMinTTLDrop") > before)
    assert right.received(passive) == b""


async def test_strangers_are_reset_counted_and_logged_once(ends):
    left, right = ends.left, ends.right
    right.listen(
        Transport("10.0.0.9"), Transport("fd00::1"), Transport("10.0.0.1", local="10.0.0.7")
    )
    several = [stranger(left) for _ in range(3)]
    await right.counted("refused-other-address")
    right.listen(Transport("10.0.0.9"))
    several.append(stranger(left))
    await right.counted("refused-no-neighbor")
    assert [end_of(one) for one in several] == ["reset"] * 4
    assert right.edge.counters["refused-other-address"] == 3
    assert right.heard == []
    assert [line for line, _ in right.lines] == ["connection-refused"]
    # the kernel keeps nothing of them, either
    assert (
        right.netns.run(["ss", "-Htan", "state", "all", "sport", "=", f":{PORT}"]).stdout.count(
            "\n"
        )
        == 1
    )


async def test_no_neighbor_has_more_connections_than_a_few(ends):
    left, right = ends.left, ends.right
    right.listen(Transport("10.0.0.1"))
    several = [stranger(left) for _ in range(edge._MOST_OF_NEIGHBOR + 2)]
    await loop_until(lambda: right.edge.counters["refused-too-many"] == 2)
    assert len(right.told(StreamOpened)) == edge._MOST_OF_NEIGHBOR
    for sock in several:
        sock.close()


async def test_many_connections_at_once_are_accepted_in_portions(ends, monkeypatch):
    """The port rests between them, so that the rest of the router goes on."""
    monkeypatch.setattr(listening, "_AT_ONCE", 2)
    left, right = ends.left, ends.right
    right.listen(Transport("10.0.0.9"))
    several = [stranger(left) for _ in range(7)]
    right.edge._pump.turn()
    assert right.edge.counters["refused-no-neighbor"] == 2
    await loop_until(lambda: right.edge.counters["refused-no-neighbor"] == 7)
    for sock in several:
        sock.close()


async def test_a_connection_has_the_precedence_of_control_and_no_delay(ends):
    active, passive = await ends.join()
    for end, number in ((ends.left, active), (ends.right, passive)):
        sock = end.edge._streams[number].sock
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0xC0
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 7
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 64
        assert not sock.getblocking()


async def test_a_neighbor_that_never_reads_holds_a_bounded_number_of_bytes(ends):
    """The engine is told what has gone, and sends no more than it may; the rest waits nowhere."""
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    right.do(ReadStream(passive, wanted=False))
    sent = 0
    window = 1 << 18

    def send_more() -> bool:
        nonlocal sent
        before = sent
        while sent - left.sent(active) < window:
            left.do(SendStream(active, bytes(4096)))
            sent += 4096
        return sent == before

    await loop_until(send_more)
    for _ in range(100):  # turns in which nothing goes any more
        await loop_until(lambda: True)
    stuck = left.sent(active)
    waiting = sum(len(one) for one in left.edge._streams[active]._queue)
    assert waiting == sent - stuck <= window + 4096
    assert right.received(passive) == b""
    right.do(ReadStream(passive, wanted=True))
    await loop_until(lambda: len(right.received(passive)) == sent)
    assert left.sent(active) == sent


async def test_one_turn_reads_each_connection_once(ends):
    """A neighbor with much to tell delays others by one read of a bounded size."""
    left, right = ends.left, ends.right
    numbers = []
    right.listen(Transport("10.0.0.1"))
    for _ in range(3):
        active = left.connect(Transport("10.0.0.2"))
        await loop_until(lambda a=active: a in left._opened(False))
        numbers.append(active)
    passive = right._opened(True)
    for number in passive:
        right.do(ReadStream(number, wanted=False))
    for number in numbers:
        left.do(SendStream(number, MEGABYTE))
    await loop_until(lambda: all(left.sent(number) > 1 << 17 for number in numbers))
    right.heard.clear()
    for number in passive:
        right.do(ReadStream(number, wanted=True))
    right.edge._pump.turn(100.0)
    assert sorted(one.stream for one in right.heard) == sorted(passive)
    assert all(len(one.data) <= 65536 for one in right.heard)
    right.heard.clear()
    right.edge._pump.turn(0.0)
    right.edge._pump.turn(0.0)
    assert len({one.stream for one in right.heard}) == 2, "the next turn goes on with another"


async def test_a_turn_lasts_as_long_as_what_follows_from_it_within_bounds(ends):
    """Of many neighbors none waits for as many computations as there are neighbors."""
    pump, now = ends.left.edge._pump, [0.0]
    pump._loop = SimpleNamespace(time=lambda: now[0])
    for took, lasts in ((0.001, 0.02), (0.05, 0.05), (3.0, 0.1), (0.0, 0.02)):
        pump._flush = lambda took=took: now.__setitem__(0, now[0] + took)
        pump.turn()
        assert pump._slice == pytest.approx(lasts)
    pump._loop = asyncio.get_running_loop()


async def test_a_neighbor_that_only_shows_that_it_lives_wakes_nobody(ends, monkeypatch):
    """Its bytes, equal ones again and again, are read with those of others; more wakes at once."""
    monkeypatch.setattr(stream, "_SLOW", 0.0)
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    sock = right.edge._streams[passive].sock

    async def send(data: bytes) -> None:
        known = left.sent(active)
        left.do(SendStream(active, data))
        await loop_until(lambda: left.sent(active) == known + len(data))

    for number in range(1, 5):
        await send(b"alive")
        await loop_until(lambda n=number: right.received(passive) == b"alive" * n)
    await send(b"alive")
    await loop_until(lambda: waits(sock))
    right.edge._pump.turn()
    assert right.received(passive) == b"alive" * 4
    right.edge.read_quiet()
    assert right.received(passive) == b"alive" * 5
    await send(b"alive news")
    await loop_until(lambda: right.received(passive) == b"alive" * 5 + b"alive news")
    await send(b"!")
    await loop_until(lambda: right.received(passive).endswith(b"!"))


def waits(sock: socket.socket) -> bool:
    """Whether bytes have arrived, though nobody was woken."""
    count = fcntl.ioctl(sock, termios.FIONREAD, bytes(4))
    return bool(int.from_bytes(count, sys.byteorder))


async def test_what_quiet_neighbors_sent_is_read_after_a_delay(ends, monkeypatch):
    monkeypatch.setattr(stream, "_SLOW", 0.0)
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    for number in range(1, 5):
        left.do(SendStream(active, b"alive"))
        await loop_until(lambda n=number: right.received(passive) == b"alive" * n)
    left.do(SendStream(active, b"alive"))
    await loop_until(lambda: waits(right.edge._streams[passive].sock))
    right.edge.read_all()
    assert right.received(passive) == b"alive" * 5


async def test_what_has_come_is_read_when_an_engine_asks_again(ends):
    """The pump is busy with others."""
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    right.edge._pump._loop.remove_reader(right.edge._pump._epoll.fileno())
    left.do(SendStream(active, b"alive"))
    await loop_until(lambda: waits(right.edge._streams[passive].sock))
    assert right.received(passive) == b""
    right.do(ReadStream(passive, wanted=True))
    await loop_until(lambda: right.received(passive) == b"alive")


async def test_a_connection_that_is_not_read_may_break(ends):
    """It is noticed at once, and wakes nobody again and again."""
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    right.do(ReadStream(passive, wanted=False))
    sock = left.edge._streams[active].sock
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
    left.edge._streams[active].close()
    assert await right.closed(passive) == "connection reset by peer"
    assert not right.edge._streams


async def test_what_a_neighbor_said_last_is_heard_though_writing_failed(ends):
    """It closes with a NOTIFICATION while this router sends: the kernel reports a reset first."""
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    right.do(SendStream(passive, b"unread"))
    sock = left.edge._streams[active].sock
    await loop_until(lambda: right.sent(passive))
    left.edge._pump.forget(sock)
    sock.send(b"the reason")
    sock.close()  # with unread bytes: the kernel resets
    right.do(SendStream(passive, MEGABYTE))
    await right.closed(passive)
    assert right.received(passive) == b"the reason"


async def test_a_farewell_is_read_by_a_neighbor_that_was_still_sending(ends):
    """A socket that is closed with bytes unread would reset the connection."""
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    left.do(ReadStream(active, wanted=False))
    right.do(SendStream(passive, bytes(100_000)))
    await loop_until(lambda: right.sent(passive))
    left.do(SendStream(active, b"farewell"), CloseStream(active))
    assert await right.closed(passive) == "it closed the connection"
    assert right.received(passive) == b"farewell"


async def test_connections_that_end_are_limited_in_number_and_time(ends, monkeypatch):
    monkeypatch.setattr(leaving, "_MOST", 1)
    monkeypatch.setattr(leaving, "_WITHIN", 0.05)
    left, right = ends.left, ends.right
    right.listen(Transport("10.0.0.1"))
    several = [stranger(left) for _ in range(2)]
    await loop_until(lambda: len(right._opened(True)) == 2)
    for number in right._opened(True):
        right.do(CloseStream(number))
    assert len(right.edge._leaving._streams) == 1
    await loop_until(lambda: not right.edge._leaving._streams)
    for sock in several:  # they never close
        sock.close()


@pytest.mark.parametrize(
    ("transport", "reason"),
    [
        (Transport("10.0.0.2"), "connection refused"),
        (Transport("10.9.9.9"), "network is unreachable"),
        (Transport("10.0.0.2", local="10.0.0.77"), "cannot assign requested address"),
        (Transport("fe80::2", link="gone"), "there is no interface gone"),
        (Transport("10.0.0.2", key=StreamKey(bytes(81))), "a key has 80 bytes at most"),
    ],
)
async def test_why_a_connection_cannot_be_opened_is_told(ends, transport, reason):
    left = ends.left
    number = left.connect(transport)
    assert left.heard == [], "not before the engine has returned"
    assert await left.closed(number) == reason


async def test_a_neighbor_that_does_not_answer_is_given_up(ends, monkeypatch):
    monkeypatch.setattr(edge, "_CONNECT_WITHIN", 0.05)
    left = ends.left
    number = left.connect(Transport("10.0.0.99", key=KEY))
    assert await left.closed(number) == "no answer; a wrong key gets none"


async def test_an_attempt_that_is_closed_tells_nothing_more(ends):
    left = ends.left
    for transport in (Transport("10.9.9.9"), Transport("10.0.0.99")):
        left.do(CloseStream(left.connect(transport)))
    ends.right.listen(Transport("10.0.0.1"))
    await loop_until(lambda: ends.left.connect(Transport("10.0.0.2")) and left._opened(False))
    assert {type(one) for one in left.heard} == {StreamOpened}


async def test_a_port_that_is_taken_is_listened_on_later(ends):
    left, right = ends.left, ends.right
    with right.netns.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("", PORT))
        taken.listen()
        right.listen(Transport("10.0.0.1"), Transport("fd00::1"))
        ((line, fields),) = right.lines
        assert (line, fields["family"], fields["port"]) == ("port-not-opened", "IPv4", PORT)
        left.connect(Transport("fd00::2"))
        assert (await right.opened()).peer == 2
    await loop_until(lambda: right.lines[-1][0] == "port-opened")
    left.connect(Transport("10.0.0.2"))
    await loop_until(lambda: {one.peer for one in right._opened(True)} == {1, 2})


async def test_who_may_connect_changes_while_connections_stay(ends):
    left, right = ends.left, ends.right
    active, passive = await ends.join()
    right.do(Listen((), PORT))
    number = left.connect(Transport("10.0.0.2"))
    assert await left.closed(number) == "connection refused"
    right.do(Listen((Listener(5, Transport("10.0.0.1")),), PORT + 1000))
    left.connect(Transport("10.0.0.2", port=PORT + 1000))
    other = StreamId(5, passive=True, number=2)
    await loop_until(lambda: right._opened(True) == [passive, other])
    left.do(SendStream(active, b"as before"))
    await loop_until(lambda: right.received(passive) == b"as before")


async def test_the_missing_capability_is_named(ends, monkeypatch):
    def denied(*_: object) -> socket.socket:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(listening.tcp, "listening", denied)
    with pytest.raises(PrivilegeError, match="listen on port 179: CAP_NET_BIND_SERVICE"):
        ends.right.listen(Transport("10.0.0.1"))


async def test_without_descriptors_neighbors_wait_until_there_are_some(ends, monkeypatch):
    monkeypatch.setattr(listening, "_SHORT_REST", 0.05)
    right = ends.right
    right.listen(Transport("10.0.0.1"))
    (sock,) = right.edge._listening._sockets.values()

    class Short:
        left = 2

        def __getattr__(self, name: str) -> object:
            return getattr(sock, name)

        def accept(self) -> object:
            if self.left:
                self.left -= 1
                raise OSError(24, "Too many open files")
            return sock.accept()

    short = Short()
    right.edge._pump.forget(sock)
    right.edge._listening._sockets[socket.AF_INET] = short  # type: ignore[assignment]
    right.edge._listening._watch(socket.AF_INET)
    with contextlib.closing(stranger(ends.left)):
        await right.opened()
    assert right.edge.counters["accept-error-EMFILE"] == 2
    assert [line for line, _ in right.lines] == ["connections-not-accepted"]
