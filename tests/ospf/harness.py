"""OSPF engines with virtual links and a virtual clock."""

from __future__ import annotations

import random
from typing import NamedTuple

from msgspec.structs import replace

from fared.core.ids import AreaId, parse_dotted
from fared.core.links import InterfaceAddress, Link
from fared.extensions.sim.wire import Cable, End
from fared.paths.ted.events import LocalLinksChanged, TedUpdated
from fared.protocols.igp.events import LinkChanged, PacketReceived, SendPacket
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.lsdb import Lsdb
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from tests.igp.engines import EngineNetwork, Node

BACKBONE = AreaId(0)
FAST = InterfaceSettings(area=BACKBONE, hello_interval=1, router_dead_interval=4, rxmt_interval=1.0)
LAN = replace(FAST, network_type=NetworkType.BROADCAST)
MULTICAST = 0xE
IP_HEADER = 20
DEFAULTS = InterfaceSettings(area=BACKBONE)


def router_id(number: int) -> int:
    """Return 10.255.0.N."""
    return parse_dotted("10.255.0.0") + number


def make_link(
    ifindex: int,
    address: int,
    *,
    length: int = 31,
    mtu: int = 1500,
    up: bool = True,
    speed: float | None = 12.5e6,
    name: str | None = None,
    loopback: bool = False,
) -> Link:
    """A kernel link with one IPv4 address."""
    return Link(
        ifindex=ifindex,
        name=name or f"eth{ifindex}",
        up=up,
        mtu=mtu,
        speed=speed,
        loopback=loopback,
        addresses=(InterfaceAddress(4, address, length),),
    )


class Packet(NamedTuple):
    """A packet: the fields of its IPv4 header that OSPF uses, the payload, the largest fragment."""

    source: int
    destination: int
    payload: bytes
    ttl: int
    size: int = 0


class Network(EngineNetwork[Packet]):
    """OSPF engines."""

    link_event = LinkChanged
    send_event = SendPacket
    kind_at = 1

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self._lans = 0

    def add(self, number: int, **settings) -> Node:
        """A router 10.255.0.N with its loopback."""
        seed = self.rng.randrange(1 << 30)
        areas = settings.pop("areas", (AreaSettings(BACKBONE),))
        rid = settings.pop("router_id", router_id(number))
        settings = OspfSettings(router_id=rid, hostname=f"r{number}", areas=areas, **settings)
        engine = OspfEngine(settings, random.Random(seed))
        node = self.nodes[number] = Node(number, engine, seed, settings)
        lo = make_link(1, rid, length=32, name="lo", speed=None, loopback=True, mtu=65536)
        self.link(number, lo, InterfaceSettings(area=areas[0].area, passive=True))
        return node

    def join(
        self,
        a: int,
        b: int,
        settings: InterfaceSettings = FAST,
        *,
        b_settings=None,
        delay: float = 0.0005,
        loss: float = 0.0,
        mtu: int = 1500,
        b_mtu: int | None = None,
        speed: float | None = 12.5e6,
    ) -> Cable:
        """Connect two nodes with a /31 and bring both ends up."""
        self.add_missing(a, b)
        base = parse_dotted("10.128.0.0") + 2 * self.subnets
        self.subnets += 1
        ends = tuple((n, self.free_port(n, 2)) for n in (a, b))
        cable = self.lay(Cable(ends, delay, loss))
        self.link(a, make_link(ends[0][1], base, mtu=mtu, speed=speed), settings)
        self.link(
            b,
            make_link(ends[1][1], base + 1, mtu=b_mtu or mtu, speed=speed),
            b_settings or settings,
        )
        return cable

    def restart(self, number: int, pause: float = 0.5) -> None:
        """Kill a node, and start it with its links and default settings after a while."""
        links = self.nodes[number].links
        self.stop(number)
        self.run(pause)
        self.add(number)
        for link, settings in links.values():
            self.link(number, link, settings)

    def lan(
        self,
        *numbers: int,
        settings: InterfaceSettings = LAN,
        priorities=None,
        delay: float = 0.0005,
    ) -> Cable:
        """Connect nodes to one LAN, 10.192.K.0/24, on which node N has the address .N."""
        self.add_missing(*numbers)
        base = parse_dotted("10.192.0.0") + 256 * self._lans
        self._lans += 1
        cable = self.lay(Cable((), delay))
        for number in numbers:
            self.attach(number, cable, base, settings, (priorities or {}).get(number, 1))
        return cable

    def attach(
        self, number: int, cable: Cable, base: int, settings: InterfaceSettings, priority: int = 1
    ) -> None:
        """Connect one more node to a LAN."""
        end = (number, self.free_port(number, 2))
        self.plug(cable, end)
        link = make_link(end[1], base + number, length=24)
        self.link(number, link, replace(settings, router_priority=priority))

    def interface(self, number: int, ifindex: int = 2):
        """One interface of a node."""
        return self.nodes[number].engine.instance.interfaces[ifindex]

    def frame(self, node: Node, output: SendPacket) -> Packet:
        """A frame with the source of the output, or else the first address of the link."""
        link, _ = node.links[output.ifindex]
        source = output.source or link.addresses[0].address
        size = min(IP_HEADER + len(output.payload), output.mtu or link.mtu)
        return Packet(source, output.destination, output.payload, output.ttl, size)

    def received(self, end: End, frame: Packet) -> PacketReceived:
        """The event that the socket passes to the engine."""
        return PacketReceived(end[1], *frame[:-1])

    def hears(self, end: End, frame: Packet) -> bool:
        """Whether an end receives a frame: multicast, or unicast to an address of its own.

        A device discards what is larger than its MTU.
        """
        if end[1] not in self.nodes[end[0]].links:
            return False
        link, _ = self.nodes[end[0]].links[end[1]]
        if frame.size > link.mtu:
            return False
        own = {address.address for address in link.addresses}
        return frame.destination >> 28 == MULTICAST or frame.destination in own

    # Queries

    def neighbors(self, number: int):
        """The neighbors of a node."""
        return self.nodes[number].engine.instance.neighbors()

    def states(self, number: int) -> list[str]:
        """The states of a node's neighbors."""
        return [n.state.label for n in self.neighbors(number)]

    def all_full(self) -> bool:
        """Whether both ends of each link with carrier are Full."""
        expected = self.ends_up()
        return all(self.states(n).count("Full") == expected[n] for n in self.live())

    def database(self, number: int, area: AreaId = BACKBONE) -> dict:
        """(Sequence number, checksum) by key, of the LSAs of an area that are not at MaxAge."""
        return {
            entry.key: (entry.sequence_number, entry.lsa.header.ls_checksum)
            for entry in self.lsdb(number, area)
            if entry.age(self.now) < 3600
        }

    def lsdb(self, number: int, area: AreaId = BACKBONE) -> Lsdb:
        """The database of an area."""
        return self.nodes[number].engine.instance.areas[area].lsdb

    def retransmissions(self, number: int) -> list[int]:
        """The lengths of a node's link state retransmission lists."""
        return list(self.nodes[number].engine.instance.retransmissions().values())

    def in_sync(self) -> bool:
        """Whether all running nodes have the same LSAs in area 0."""
        live = self.live()
        first = self.database(live[0])
        return all(self.database(n) == first for n in live[1:])

    def blocks(self, number: int) -> dict:
        """The last TED block of each node that one engine emitted."""
        latest = {}
        for update in self.nodes[number].said(TedUpdated):
            latest[update.node] = update.block
        return latest

    def local_links(self, number: int):
        """The last LocalLinksChanged of a node."""
        said = self.nodes[number].said(LocalLinksChanged)
        return said[-1].links if said else ()


def pair(seed: int = 1, settings: InterfaceSettings = FAST, **kwargs) -> Network:
    """Two routers and one link."""
    net = Network(seed)
    net.join(1, 2, settings, **kwargs)
    return net
