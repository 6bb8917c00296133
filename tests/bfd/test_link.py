"""The socket to a daemon that does not read: the last change of each session waits, no more."""

import socket

import msgspec
import pytest

from fared.kernel.bfdd.link import DaemonLink
from fared.protocols.bfd.messages import Answer, Ask, SessionKey, StateChange, Trouble
from fared.protocols.bfd.packet import State

SESSIONS = 5


def change(number: int, state: State, diagnostic: int) -> StateChange:
    key = SessionKey(number, bytes(4))
    return StateChange(key, state, State.DOWN, diagnostic, 0, 1, 2)


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    with ours, theirs:
        yield DaemonLink(ours), theirs


def read(sock: socket.socket) -> list[Answer]:
    found = []
    while True:
        try:
            found.append(msgspec.msgpack.decode(sock.recv(1 << 16), type=Answer))
        except BlockingIOError:
            return found


def test_changes_are_merged_and_other_messages_dropped(ends):
    link, daemon = ends
    sent = 0
    while not link.blocked:
        link.send(change(sent % SESSIONS, State.UP, 0))
        sent += 1
    for turn in range(100):
        for number in range(SESSIONS):
            link.send(change(number, State.DOWN, turn % 32))
    link.send(Trouble("warning", "x", {}))
    assert link.dropped == 1
    before = read(daemon)
    assert len(before) == sent - 1
    link.flush()
    assert not link.blocked
    assert read(daemon) == [change(number, State.DOWN, 99 % 32) for number in range(SESSIONS)]


def test_the_order_of_messages_is_kept(ends):
    link, daemon = ends
    for turn in range(10):
        link.send(change(0, State.UP, turn))
    assert [answer.diagnostic for answer in read(daemon)] == list(range(10))


def test_requests_are_read_and_the_end_is_seen(ends):
    link, daemon = ends
    daemon.send(msgspec.msgpack.encode(Ask()))
    assert [*link.requests()] == [Ask()]
    daemon.send(b"another version")
    assert ([*link.requests()], link.closed) == ([None], False)
    daemon.close()
    assert ([*link.requests()], link.closed) == ([], True)
    link.send(Trouble("warning", "nobody reads it", {}))
