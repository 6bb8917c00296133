"""Descriptors run out: clients cannot take the router's, and an interface gets its socket later."""

from __future__ import annotations

import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

from tests.live.daemons import LINKS, Live, Pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns


@contextlib.contextmanager
def limited(daemon: Live, descriptors: int) -> Iterator[None]:
    """A running daemon that may open no descriptor of a higher number."""
    assert daemon.process is not None
    pid, kind = daemon.process.pid, resource.RLIMIT_NOFILE
    soft, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (descriptors, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, (soft, hard))


def events(daemon: Live, name: str) -> list[str]:
    """What the log says of interfaces in one kind of event."""
    return [str(r.get("interface")) for r in daemon.records() if r["event"] == name]


def test_a_new_interface_gets_its_neighbor_while_clients_hold_all_descriptors_allowed_to_them(
    pair: Pair,
):
    left = pair.left
    with limited(left, 256), contextlib.ExitStack() as held:
        left.netns.ip("link", "set", LINKS[1], "down")
        wait_for(lambda: left.full() == len(LINKS) - 1, 20, "one link less")
        for _ in range(300):
            client = held.enter_context(left.netns.socket(socket.AF_INET, socket.SOCK_STREAM))
            client.connect(("127.0.0.1", 9547))
        left.netns.ip("link", "set", LINKS[1], "up")
        wait_for(lambda: pair.right.full() == len(LINKS), 30, "the link's neighbor is Full")
    assert len(events(left, "client-turned-away")) == 1, "of many one line tells"
    pair.await_routes()
    assert left.complaints() == []


def test_a_socket_that_could_not_be_opened_is_opened_when_there_are_descriptors(pair: Pair):
    """Nobody touches the link for that; of the attempts one line tells."""
    left = pair.left
    left.netns.ip("link", "set", LINKS[1], "down")
    wait_for(lambda: left.full() == len(LINKS) - 1, 20, "one link less")
    with limited(left, 3):
        left.netns.ip("link", "set", LINKS[1], "up")
        wait_for(lambda: events(left, "interface-not-opened"), 20, "the attempt that failed")
    wait_for(lambda: events(left, "interface-opened"), 30, "a later attempt works")
    pair.await_routes()
    assert events(left, "interface-not-opened") == events(left, "interface-opened") == [LINKS[1]]
    assert left.complaints() == []
