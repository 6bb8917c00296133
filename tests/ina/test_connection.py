"""Connections that never block: lines and frames are whole, and a queue has a limit."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from fared.extensions.ina.connection import QueuedConnection
from fared.extensions.ina.frames import FrameConnection
from fared.extensions.ina.lines import LineConnection
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
        read = connection.lines if isinstance(connection, LineConnection) else connection.frames
        found.extend(map(bytes, read()))
        return len(found) >= count

    wait_for(come, 5, "messages")
    return found


def test_lines_and_frames_that_arrive_in_pieces_are_whole(pair: Pair):
    near, far = pair
    lines = LineConnection(near)
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
    read = connection.lines if isinstance(connection, LineConnection) else connection.frames
    wait_for(lambda: bool(read()) or connection.closed, 5, "it is closed")


@pytest.mark.parametrize("kind", [LineConnection, FrameConnection])
def test_the_end_of_a_peer_ends_the_connection(pair: Pair, kind):
    near, far = pair
    connection = kind(near)
    read = connection.lines if isinstance(connection, LineConnection) else connection.frames
    assert (read(), connection.closed) == ([], False)
    far.close()
    wait_for(lambda: bool(read()) or connection.closed, 5, "it is closed")


def test_what_a_peer_does_not_read_waits_up_to_a_limit(pair: Pair):
    near, far = pair
    connection = QueuedConnection(near, most_queued=1 << 20)
    part, sent = b"x" * (1 << 16), 0
    while not connection.closed:
        connection._queue(part)
        sent += len(part)
        assert sent < 1 << 26
    assert connection.blocked
    waiting = len(connection._unsent)
    assert waiting <= 1 << 20
    taken, wanted = 0, sent - len(part)
    while taken < wanted:
        taken += len(far.recv(1 << 20))
        connection.flush()
    assert (taken, connection.blocked) == (wanted, False)
