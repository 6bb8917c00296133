"""In a flood packets gather in their sockets; links, and packets without a flood, do not wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from fared.daemon.loop import gathering
from fared.daemon.loop.burst import Burst
from fared.daemon.loop.gathering import GATHERED, Gathering, Prompt
from fared.daemon.loop.portions import Portion
from fared.protocols.igp.events import PacketReceived
from tests.waiting import loop_until


def few() -> int:
    """How many sockets are readable once the first one is."""
    return 1


def flooded() -> Gathering:
    """After a second of 20,000 packets, none of which is left."""
    found = Gathering()
    assert found.wait(10.0, 0, 64, few) == 0.0
    assert found.wait(11.0, 20_000, 64, few) == GATHERED
    return found


def test_packets_wait_only_in_a_flood_that_lasts():
    found = Gathering()
    assert found.wait(10.0, 5000, 64, few) == 0.0
    assert found.wait(10.05, 10_000, 64, few) == 0.0
    assert found.wait(10.11, 10_900, 64, few) == GATHERED
    assert found.wait(10.2, 10_900, 64, few) == GATHERED
    assert found.wait(10.22, 10_900, 64, few) == 0.0


def test_packets_of_few_neighbors_do_not_wait():
    """One that sends whatever it can would fill memory for nothing."""
    found = Gathering()
    assert found.wait(10.0, 0, 8, few) == 0.0
    assert found.wait(11.0, 20_000, 8, few) == 0.0


def test_the_first_packet_after_hours_does_not_wait():
    assert flooded().wait(10_000.0, 20_001, 64, few) == 0.0


def test_what_came_while_packets_were_processed_has_gathered_already():
    found = flooded()
    found.began(11.0)
    found.ended(11.003)
    assert found.wait(11.003, 20_000, 64, few) == pytest.approx(0.002)
    found.began(11.01)
    found.ended(11.03)
    assert found.wait(11.03, 20_000, 64, few) == 0.0


def test_sockets_that_were_empty_gather_from_now_on():
    found = flooded()
    found.began(11.0)
    found.ended(11.003)
    assert found.wait(11.02, 20_000, 64, few) == GATHERED


def test_what_came_while_the_loop_did_something_else_has_gathered_already():
    """Timers that are due at the same time must not run before these packets."""
    found = flooded()
    found.began(11.0)
    found.ended(11.003)
    assert found.wait(11.09, 20_000, 64, lambda: 64) == 0.0


class Watched:
    """A burst over two sockets, a packet socket and the kernel's reports of links."""

    def __init__(self) -> None:
        self.handed: list[list[bytes]] = []
        self.reported: list[bytes] = []
        self.burst = Burst(self.hand_on)
        self.burst.io = {"isis": {1}}
        self.near, self.far = socket.socketpair(type=socket.SOCK_DGRAM)
        self.links, self.kernel = socket.socketpair(type=socket.SOCK_DGRAM)
        self.prompt = Prompt(self.burst, self.burst.hasten)
        self.prompt.add_reader(self.links, self.report)
        self.burst.add_reader(self.near, self.read)

    def hand_on(self, portions: list[Portion], _arrived: float) -> None:
        self.handed.append([one.payload for _, some in portions for one in some])

    def read(self) -> None:
        self.burst.take("isis", PacketReceived(1, 10, 20, self.near.recv(100)))

    def report(self) -> None:
        self.reported.append(self.links.recv(100))

    def close(self) -> None:
        self.prompt.remove_reader(self.links)
        if self.near.fileno() >= 0:
            self.burst.remove_reader(self.near)
        for sock in (self.near, self.far, self.links, self.kernel):
            sock.close()


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    """A flood that lasts: any packet is one of it."""
    monkeypatch.setattr(gathering, "_FLOOD", 0)
    monkeypatch.setattr(gathering, "_SOCKETS", 0)
    monkeypatch.setattr(gathering, "GATHERED", 0.05)
    with closing(Watched()) as made:
        yield made


async def test_packets_that_come_one_after_another_are_read_together(watched):
    began = asyncio.get_running_loop().time()
    for number in range(3):
        watched.far.send(b"%d" % number)
        await asyncio.sleep(0)
    await loop_until(lambda: len(watched.handed) == 3)
    assert asyncio.get_running_loop().time() >= began + 0.05


async def test_a_link_that_changed_does_not_wait_for_packets(watched, monkeypatch):
    monkeypatch.setattr(gathering, "GATHERED", 1000.0)
    watched.far.send(b"packet")
    await loop_until(lambda: watched.burst._gathered is not None)
    watched.kernel.send(b"down")
    await loop_until(lambda: watched.handed)
    assert watched.reported == [b"down"]
    assert watched.handed == [[b"packet"]]


async def test_nothing_gathers_in_sockets_that_were_closed(watched):
    watched.far.send(b"packet")
    await loop_until(lambda: watched.burst._gathered is not None)
    watched.prompt.remove_reader(watched.links)
    watched.burst.remove_reader(watched.near)
    assert watched.burst._gathered is None
    watched.burst.add_reader(watched.near, watched.read)
    watched.prompt.add_reader(watched.links, watched.report)
    await loop_until(lambda: watched.handed)
    assert watched.handed == [[b"packet"]]
