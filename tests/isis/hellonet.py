"""Routers that only send hellos, joined by virtual cables on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.core.links import InterfaceAddress, Link
from fared.core.wire import DecodeError
from fared.extensions.sim.wire import Cable, End, VirtualWire
from fared.protocols.igp.events import AdjacencyChanged, PacketReceived, SendPacket
from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.events import Output
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.links import CircuitManager
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import decode_pdu, decode_raw, encode_pdu, read_pdu
from fared.protocols.isis.pdu.model import LanHello, P2pHello
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.protocols.isis.transmit import LLC_SIZE, Transmitter

AREA = bytes.fromhex("490001")
OTHER_AREA = bytes.fromhex("490002")
P2P = CircuitSettings(hello_interval=1.0, hello_multiplier=4)
LAN = replace(P2P, kind=CircuitKind.BROADCAST)
LOOPBACK = replace(P2P, kind=CircuitKind.LOOPBACK)
LINK_LOCAL = 0xFE80 << 112


def system_id(number: int) -> SystemId:
    """0000.0000.000N"""
    return SystemId(number)


def mac(number: int, ifindex: int) -> int:
    """The MAC address of a router's interface: higher for a higher number."""
    return 0x0200_0000_0000 | number << 16 | ifindex


def make_link(number: int, ifindex: int, **values) -> Link:
    """A kernel link of a router, with one address of each family."""
    fields = {
        "ifindex": ifindex,
        "name": f"eth{ifindex}",
        "up": True,
        "mtu": 1500,
        "hardware_address": mac(number, ifindex),
        "addresses": (
            InterfaceAddress(4, 0x0A00_0000 | ifindex << 8 | number, 24),
            InterfaceAddress(6, LINK_LOCAL | ifindex << 16 | number, 64),
        ),
    }
    return Link(**{**fields, **values})


class Watcher:
    """Records the reports it receives."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def adjacency_changed(
        self, circuit: Circuit, adjacency: Adjacency, level: Level, reason: str
    ) -> None:
        up = adjacency.up and bool(adjacency.levels & level)
        self.calls.append(("adjacency", circuit.name, adjacency.system_id, int(level), up))

    def dis_changed(self, circuit: Circuit, level: Level, previous_lan_id: int) -> None:
        self.calls.append(
            ("dis", circuit.name, int(level), previous_lan_id, circuit.lan[level].dis)
        )

    def neighbor_restarted(self, circuit: Circuit, level: Level) -> None:
        self.calls.append(("restarted", circuit.name, int(level)))

    def circuit_changed(self, circuit: Circuit) -> None:
        self.calls.append(("circuit", circuit.name))

    def take(self) -> list[tuple]:
        """The reports since the last call."""
        taken, self.calls = self.calls, []
        return taken


class Router:
    """A router with circuits and the hello protocol only."""

    def __init__(self, number: int, seed: int, **settings) -> None:
        fields = {"system_id": system_id(number), "areas": (AREA,), "levels": LevelSet.BOTH}
        self.number = number
        self.instance = Instance(IsisSettings(**{**fields, **settings}), random.Random(seed))
        self.watcher = Watcher()
        self.hello = HelloProtocol(self.instance, Transmitter(self.instance), self.watcher)
        self.manager = CircuitManager(self.instance, self.hello, self.watcher)
        self.said: list[tuple[float, Output]] = []
        self.macs: dict[int, int] = {}
        self.stopped = False

    def circuit(self, ifindex: int = 1) -> Circuit:
        return self.instance.circuits[ifindex]

    def adjacency(self, ifindex: int = 1) -> Adjacency | None:
        return self.circuit(ifindex).adjacency

    def up(self, ifindex: int = 1) -> LevelSet:
        """Levels in which the neighbor of a point-to-point circuit is up."""
        adjacency = self.adjacency(ifindex)
        return adjacency.levels if adjacency is not None and adjacency.up else LevelSet.NONE

    def heard(self, level: Level = Level.TWO, ifindex: int = 1) -> set[int]:
        """System ids of the neighbors that are up on a LAN."""
        return {a.system_id for a in self.circuit(ifindex).adjacencies(level)}

    def dis(self, level: Level = Level.TWO, ifindex: int = 1) -> int:
        """System id of the designated IS, 0 for none."""
        return self.circuit(ifindex).lan[level].dis >> 8

    def errors(self) -> dict[str, int]:
        return dict(self.instance.process.counters.errors)

    def hellos(self, since: float = 0.0) -> list[tuple[float, LanHello | P2pHello, int]]:
        """The hellos that it sent: time, PDU, size."""
        return [
            (at, decode_pdu(output.payload), len(output.payload))
            for at, output in self.said
            if isinstance(output, SendPacket) and at >= since
        ]

    def changes(self) -> list[tuple[int, str, str]]:
        """Transitions of adjacencies: level, from, to."""
        return [
            (output.level, output.previous, output.state)
            for _, output in self.said
            if isinstance(output, AdjacencyChanged)
        ]


class Net(VirtualWire[tuple[int, bytes]]):
    """Routers and cables; a frame consists of its source and its payload."""

    max_steps = 1_000_000

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.routers: dict[int, Router] = {}

    def add(self, number: int, **settings) -> Router:
        router = Router(number, self.rng.randrange(1 << 30), **settings)
        router.instance.process.now = self.now
        self.routers[number] = router
        return router

    def cable(self, *ends: tuple[int, int], loss: float = 0.0) -> Cable:
        """Connect interfaces, without bringing them up."""
        return self.lay(Cable(ends, delay=0.001, loss=loss))

    def link(
        self, number: int, settings: CircuitSettings | None = P2P, ifindex: int = 1, **values
    ) -> None:
        """Give a router the state of its link."""
        router = self.routers[number]
        link = make_link(number, ifindex, **values)
        router.macs[ifindex] = link.hardware_address
        router.manager.changed(link, settings)
        self.take_outputs(router)

    def pair(
        self,
        a: dict | None = None,
        b: dict | None = None,
        circuit_a: CircuitSettings = P2P,
        circuit_b: CircuitSettings = P2P,
    ) -> tuple[Router, Router]:
        """Two routers on a cable, with these settings."""
        routers = self.add(1, **(a or {})), self.add(2, **(b or {}))
        self.cable((1, 1), (2, 1))
        self.link(1, circuit_a)
        self.link(2, circuit_b)
        return routers

    def lan(self, *numbers: int, priorities: dict[int, int] | None = None) -> Cable:
        """Routers on one segment."""
        cable = self.cable(*((number, 1) for number in numbers))
        for number in numbers:
            if number not in self.routers:
                self.add(number)
            self.link(number, replace(LAN, priority=(priorities or {}).get(number, 64)))
        return cable

    def take_outputs(self, router: Router) -> None:
        """Transmit the output of a router."""
        for output in router.instance.process.take_outputs():
            router.said.append((self.now, output))
            if isinstance(output, SendPacket) and not router.stopped:
                source = router.macs[output.ifindex]
                self.carry((router.number, output.ifindex), (source, output.payload))

    def deliver(self, end: End, frame: tuple[int, bytes]) -> None:
        """Deliver a frame, unless the interface is down or the frame exceeds its MTU."""
        (number, ifindex), (source, payload) = end, frame
        router = self.routers.get(number)
        circuit = None if router is None else router.instance.circuits.get(ifindex)
        if router is None or circuit is None or router.stopped or not circuit.link.up:
            return
        if len(payload) + LLC_SIZE <= circuit.link.mtu:
            self.receive(router, circuit, source, payload)

    def receive(self, router: Router, circuit: Circuit, source: int, payload: bytes) -> None:
        """Process a frame as the engine does."""
        raw = read_pdu(payload)
        pdu = decode_raw(raw)
        try:
            verify(raw, pdu, circuit.settings.authentication, router.instance.process.wall)
        except DecodeError as error:
            router.instance.process.reject(error.code, source)
            return
        router.instance.process.now = self.now
        received = PacketReceived(circuit.ifindex, source, 0, payload)
        if isinstance(pdu, P2pHello):
            router.hello.receive_p2p(circuit, received, pdu)
        elif isinstance(pdu, LanHello):
            router.hello.receive_lan(circuit, received, pdu)
        self.take_outputs(router)

    def say(self, number: int, pdu: LanHello | P2pHello, source: int = 0x0200_0009_0001) -> None:
        """Deliver a PDU of an unknown sender to a router."""
        router = self.routers[number]
        self.receive(router, router.circuit(), source, encode_pdu(pdu))

    def apply(self, number: int, **settings) -> None:
        """Apply settings to a router."""
        router = self.routers[number]
        router.instance.settings = replace(router.instance.settings, **settings)
        router.hello.settings_changed()
        self.take_outputs(router)

    def deadlines(self) -> Iterator[float]:
        """The deadlines of the routers."""
        for router in self.routers.values():
            if (
                not router.stopped
                and (at := router.instance.process.timers.next_deadline()) is not None
            ):
                yield at

    def fire(self) -> None:
        """Wake all routers."""
        for router in list(self.routers.values()):
            if not router.stopped:
                router.instance.process.now = self.now
                router.instance.process.timers.fire(self.now)
                self.take_outputs(router)

    def run(self, seconds: float) -> None:
        """Advance the clock."""
        super().run(seconds)
        for router in self.routers.values():
            router.instance.process.now = self.now
