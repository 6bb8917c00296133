"""Packets that one wake-up of the loop finds in the sockets, handed on together.

A burst is flooded in full packets and computed in one run; so nothing is handed on before all
sockets that are readable have been read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

from fared.isis import events as isis
from fared.ospf import events as ospf

Packet = ospf.PacketReceived | isis.PduReceived
HandOn = Callable[[list[Packet], float], None]


class Burst:
    """Collects what comes in until the loop's next round.

    ``hand_on`` gets the packets in their order, and the loop's time of the first. What came over
    a socket that was closed meanwhile is not among them: its interface is down, and nobody's
    fault. ``sockets`` and ``frames`` hold the interfaces of which sockets are open.
    """

    def __init__(self, hand_on: HandOn) -> None:
        self.sockets: Container[int] = ()
        self.frames: Container[int] = ()
        self._hand_on = hand_on
        self._packets: list[Packet] = []
        self._arrived = 0.0

    def packet(self, ifindex: int, source: int, destination: int, payload: bytes) -> None:
        """Take an OSPF packet."""
        self._take(ospf.PacketReceived(ifindex, source, destination, payload))

    def frame(self, ifindex: int, source: int, destination: int, payload: bytes) -> None:
        """Take a PDU of IS-IS."""
        self._take(isis.PduReceived(ifindex, source, destination, payload))

    def _take(self, packet: Packet) -> None:
        if not self._packets:
            loop = asyncio.get_running_loop()
            self._arrived = loop.time()
            loop.call_soon(self._end)
        self._packets.append(packet)

    def _end(self) -> None:
        packets, self._packets = self._packets, []
        self._hand_on([packet for packet in packets if self._open(packet)], self._arrived)

    def _open(self, packet: Packet) -> bool:
        at = self.sockets if isinstance(packet, ospf.PacketReceived) else self.frames
        return packet.ifindex in at
