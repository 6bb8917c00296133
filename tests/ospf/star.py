"""One engine with several point-to-point links, and a scripted neighbor on each."""

from __future__ import annotations

import random

from fared.protocols.igp.events import LinkChanged, PacketReceived, SendPacket
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.packets import DdFlags, Hello, LsUpdate
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, OspfSettings
from tests.igp.engines import Clocked
from tests.ospf.harness import BACKBONE, FAST, make_link, router_id
from tests.ospf.scripted import ALL_SPF, OURS, E, dd


class Star(Clocked):
    """Engine 10.255.0.5; its neighbors, from 0 on, are 10.255.0.100 and the next ones."""

    def __init__(
        self,
        neighbors: int,
        settings: InterfaceSettings = FAST,
        *,
        full: bool = True,
        **engine_settings,
    ) -> None:
        self.now = 0.0
        self.me = router_id(5)
        self.settings = settings
        areas = (AreaSettings(BACKBONE),)
        self.engine = OspfEngine(
            OspfSettings(router_id=self.me, areas=areas, **engine_settings), random.Random(7)
        )
        self.sent: list[tuple[float, int, SendPacket]] = []
        """Time, neighbor and packet."""
        for number in range(neighbors):
            self.engine.handle(LinkChanged(make_link(number + 2, OURS + 2 * number), settings), 0.0)
        self.take_outputs()
        for number in range(neighbors if full else 0):
            self.to_full(number)

    def take_outputs(self) -> None:
        for output in self.engine.take_outputs():
            if isinstance(output, SendPacket):
                self.sent.append((self.now, output.ifindex - 2, output))

    def send(self, number: int, *bodies) -> None:
        """Packets of a neighbor, which arrive together."""
        for body in bodies:
            payload = encode_packet(router_id(100 + number), 0, body)
            source = OURS + 2 * number + 1
            packet = PacketReceived(number + 2, source, ALL_SPF, payload, 1)
            self.engine.handle(packet, self.now)
        self.take_outputs()

    def greet(self, number: int, *heard: int) -> None:
        interval, dead = self.settings.hello_interval, self.settings.router_dead_interval
        self.send(number, Hello(0xFFFFFFFE, interval, E, 1, dead, 0, 0, heard))

    def to_full(self, number: int) -> None:
        """Complete the exchange as master, with an empty database."""
        self.greet(number, self.me)
        self.send(number, dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000))
        sequence = 1000
        while self.states()[number] != "Full":
            sequence += 1
            self.send(number, dd(DdFlags.MS, sequence))

    def view(self, number: int):
        """A neighbor in the engine."""
        (neighbor,) = self.engine.instance.interfaces[number + 2].neighbors.values()
        return neighbor

    def retransmissions(self, number: int) -> int:
        """The length of its link state retransmission list."""
        return self.engine.instance.retransmissions()[self.view(number)]

    def states(self) -> list[str]:
        """The states of all neighbors."""
        return [n.state.label for n in self.engine.instance.neighbors()]

    def got(self, number: int, kind: type) -> list:
        """The packets of one type sent to a neighbor since the last call; others are dropped."""
        mine = [packet for _, to, packet in self.sent if to == number]
        self.sent = [each for each in self.sent if each[1] != number]
        bodies = (decode_packet(packet.payload).body for packet in mine)
        return [body for body in bodies if isinstance(body, kind)]

    def updates(self) -> list[tuple[int, LsUpdate]]:
        """The updates sent since the last call, with their neighbors."""
        taken, self.sent = self.sent, []
        bodies = ((number, decode_packet(packet.payload).body) for _, number, packet in taken)
        return [(number, body) for number, body in bodies if isinstance(body, LsUpdate)]

    def received(self) -> dict[int, list]:
        """The LSAs that each neighbor was sent since the last call."""
        found: dict[int, list] = {}
        for number, body in self.updates():
            found.setdefault(number, []).extend(body.lsas)
        return found
