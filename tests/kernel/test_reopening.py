"""Sockets that could not be opened when their interface came are opened when they can be."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from fared.kernel.isis_socket import ALL_ISS, IsisSockets, frame
from fared.kernel.ospf_socket import OspfSockets
from fared.kernel.reopening import FIRST_DELAY, LONGEST_DELAY, Reopening

FULL = OSError(errno.EMFILE, "Too many open files")


class Clock:
    """A loop of which only timers exist; they run in order when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, asyncio.TimerHandle]] = []

    def call_later(self, delay, callback, *arguments) -> asyncio.TimerHandle:
        loop = asyncio.new_event_loop()
        handle = asyncio.TimerHandle(delay, callback, arguments, loop)
        loop.close()
        self.waiting.append((delay, handle))
        return handle

    def next(self) -> float | None:
        """Run the next timer; return how long it waited. None: there is none."""
        while self.waiting:
            delay, handle = self.waiting.pop(0)
            if not handle.cancelled():
                handle._run()
                return delay
        return None


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_attempts_follow_at_growing_distances_and_are_reported_once(clock):
    reports = []
    again = Reopening(
        clock, lambda ifindex: again.failed(ifindex, FULL), lambda *r: reports.append(r)
    )
    again.failed(7, FULL)
    delays = [clock.next() for _ in range(9)]
    assert delays[:3] == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]
    assert delays[-1] == LONGEST_DELAY == max(delays)
    assert reports == [(7, FULL)]
    again.opened(7)
    assert reports == [(7, FULL), (7, None)]
    assert clock.next() is None
    again.failed(7, FULL)
    assert clock.next() == FIRST_DELAY, "the next trouble begins from the start"


def test_an_interface_that_is_let_go_is_not_tried_again(clock):
    tried = []
    again = Reopening(clock, tried.append, lambda *_: None)
    for ifindex in (1, 2, 3):
        again.failed(ifindex, FULL)
    again.forget(2)
    again.forget(9)
    clock.next()
    again.forget_all()
    assert clock.next() is None
    assert tried == [1]


def test_what_cannot_be_opened_at_all_is_reported_and_left_alone(clock):
    reports = []
    again = Reopening(clock, lambda _: None, lambda *report: reports.append(report))
    error = OSError(errno.EPROTONOSUPPORT, "not an Ethernet interface")
    again.failed(1, error)
    assert reports == [(1, error)]
    assert clock.next() is None


@pytest.mark.parametrize("make", [OspfSockets, IsisSockets])
async def test_a_socket_refused_for_want_of_descriptors_receives_later(monkeypatch, make):
    """Without the interface going down and up: the engine asked once."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    idle, _unused = socket.socketpair()
    ours.setblocking(False)
    answers = [FULL, FULL, (ours, idle)]

    def opened(_self, _ifindex):
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(make, "_open", opened)
    reports, got = [], asyncio.Event()
    sockets = make(lambda *_: got.set(), report=lambda *report: reports.append(report))
    sockets.open(5)
    assert 5 not in sockets
    sockets.open(5)
    header = bytes.fromhex("4500001600000000 0159 0000 0a000001 e0000005".replace(" ", ""))
    theirs.send(header + b"ab" if make is OspfSockets else frame(bytes(6), ALL_ISS, b"pdu"))
    async with asyncio.timeout(30):
        await got.wait()
    assert reports == [(5, FULL), (5, None)]
    assert sockets.counters == {"open-error-EMFILE": 2, "received": 1}
    sockets.close_all()
    for sock in (theirs, idle, _unused):
        sock.close()
