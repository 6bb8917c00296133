"""Packets of one wake-up: together, in order, and none of an interface that went down meanwhile."""

from __future__ import annotations

import asyncio

from fared.daemon.burst import Burst
from fared.isis.events import PduReceived
from fared.ospf.events import PacketReceived


async def test_what_one_wake_up_finds_is_handed_on_together():
    handed = []
    burst = Burst(lambda packets, arrived: handed.append((packets, arrived)))
    burst.sockets, burst.frames = {1, 2}, {1}
    began = asyncio.get_running_loop().time()
    burst.packet(1, 10, 20, b"a")
    burst.frame(1, 30, 40, b"b")
    burst.packet(2, 10, 20, b"c")
    assert handed == []
    await asyncio.sleep(0)
    ((packets, arrived),) = handed
    assert packets == [
        PacketReceived(1, 10, 20, b"a"),
        PduReceived(1, 30, 40, b"b"),
        PacketReceived(2, 10, 20, b"c"),
    ]
    assert arrived >= began
    burst.packet(1, 10, 20, b"d")
    await asyncio.sleep(0)
    assert [packet.payload for packet in handed[1][0]] == [b"d"]


async def test_packets_of_an_interface_that_went_down_before_they_are_looked_at_are_left_out():
    """Its socket was closed in the same round of the loop: they are not to be counted as refused."""
    handed = []
    burst = Burst(lambda packets, _: handed.append(packets))
    burst.sockets = {1, 2}
    burst.packet(1, 10, 20, b"gone")
    burst.packet(2, 10, 20, b"there")
    burst.sockets.discard(1)
    await asyncio.sleep(0)
    assert [packet.payload for packet in handed[0]] == [b"there"]
