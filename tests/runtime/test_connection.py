"""Connections that never block: lines and frames are whole, and a queue has a limit."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from fared.runtime.connection import FrameConnection, LineConnection, PacketConnection
from tests.waiting import wait_for

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    with listener, near, far:
        yield near, far


def frame(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def received(connection: LineConnection | FrameConnection, count: int) -> list[bytes]:
    found: list[bytes] = []

    def come() -> bool:
        found.extend(map(bytes, connection.messages()))
        return len(found) >= count

    wait_for(come, 5, "messages")
    return found


def test_lines_and_frames_that_arrive_in_pieces_are_whole(pair: Pair):
    near, far = pair
    lines = LineConnection(near, 1 << 16)
    far.sendall(b"one\ntw")
    assert received(lines, 1) == [b"one"]
    far.sendall(b"o\n\nthree\n")
    assert received(lines, 2) == [b"two", b"three"]
    frames = FrameConnection(near)
    far.sendall(frame(b"one") + frame(b"two")[:5])
    assert received(frames, 1) == [b"one"]
    far.sendall(frame(b"two")[5:] + frame(b""))
    assert received(frames, 2) == [b"two", b""]


@pytest.mark.parametrize(
    ("kind", "data"),
    [(lambda sock: LineConnection(sock, 8), b"x" * 9), (FrameConnection, b"\xff" * 4)],
)
def test_a_message_that_is_too_long_ends_the_connection(pair: Pair, kind, data):
    near, far = pair
    connection = kind(near)
    far.sendall(data)
    wait_for(lambda: bool(connection.messages()) or connection.closed, 5, "it is closed")


@pytest.mark.parametrize("kind", [lambda sock: LineConnection(sock, 8), FrameConnection])
def test_the_end_of_a_peer_ends_the_connection(pair: Pair, kind):
    near, far = pair
    connection = kind(near)
    assert (connection.messages(), connection.closed) == ([], False)
    far.close()
    wait_for(lambda: bool(connection.messages()) or connection.closed, 5, "it is closed")


def test_what_a_peer_does_not_read_waits_up_to_a_limit(pair: Pair):
    near, far = pair
    connection = LineConnection(near, 8, most_queued=1 << 20)
    part, sent = b"x" * (1 << 16), 0
    while not connection.closed:
        connection.send(part)
        sent += len(part) + 1
        assert sent < 1 << 26
    assert connection.blocked
    waiting = len(connection._unsent)
    assert waiting <= 1 << 20
    taken, wanted = 0, sent - len(part) - 1
    while taken < wanted:
        taken += len(far.recv(1 << 20))
        connection.flush()
    assert (taken, connection.blocked) == (wanted, False)


def test_a_long_frame_is_whole_when_its_last_piece_has_come(pair: Pair):
    near, far = pair
    connection = FrameConnection(near, 1 << 22, 1 << 22)
    data = frame(b"x" * (1 << 21)) + frame(b"next")
    for at in range(0, len(data), 1 << 16):
        far.sendall(data[at : at + (1 << 16)])
        if at + (1 << 16) < len(data):
            assert connection.messages() == []
    assert [len(one) for one in received(connection, 2)] == [1 << 21, 4]


def test_a_packet_that_finds_no_room_is_not_taken_and_the_end_comes_after_the_others():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        near, far = PacketConnection(ours), PacketConnection(theirs)
        sent = 0
        while near.send(b"packet"):
            sent += 1
        near.close()
        found: list[bytes] = []
        while not far.closed:
            found += far.messages()
        assert found == [b"packet"] * sent
