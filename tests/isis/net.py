"""Whole IS-IS engines joined by virtual links on a virtual clock."""

from __future__ import annotations

import random
from typing import NamedTuple

from msgspec.structs import replace

from fared.core.ids import Prefix, SystemId, isis_node, parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress, Link
from fared.extensions.sim.wire import Cable, End
from fared.paths.ted.events import (
    AdvertisedRoute,
    LocalLinksChanged,
    PrefixesUpdated,
    RoutesComputed,
    TedUpdated,
)
from fared.protocols.igp.events import LinkChanged, PacketReceived, SendPacket
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.circuit import Adjacency
from fared.protocols.isis.engine import IsisEngine
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from tests.igp.engines import EngineNetwork, Node
from tests.ted.kinds import described

ONE, TWO, BOTH = LevelSet.ONE, LevelSet.TWO, LevelSet.BOTH
AREA = bytes.fromhex("490001")
FAST = CircuitSettings(hello_interval=1.0, hello_multiplier=3, lsp_retransmit_interval=1.0)
LAN = replace(FAST, kind=CircuitKind.BROADCAST)
LOOPBACK = replace(FAST, kind=CircuitKind.LOOPBACK, passive=True)
FE80 = 0xFE80 << 112
GROUP_BIT = 1 << 40


def system(number: int) -> SystemId:
    """0000.0000.00NN"""
    return SystemId(number)


def node(number: int, pseudonode: int = 0) -> int:
    """The TED vertex of a router."""
    return isis_node(number, pseudonode)


def loopback(number: int) -> Prefix:
    """The IPv4 loopback of a router."""
    return parse_prefix(f"10.255.0.{number}/32")


def loopback6(number: int) -> Prefix:
    """The IPv6 loopback of a router."""
    return parse_prefix(f"2001:db8::{number:x}/128")


def mac(number: int, ifindex: int) -> int:
    """The hardware address of an end."""
    return 0x02_00_00_00_00_00 | number << 16 | ifindex


class Frame(NamedTuple):
    """A frame on a link, with its MAC addresses."""

    source: int
    destination: int
    payload: bytes


class Network(EngineNetwork[Frame]):
    """IS-IS engines."""

    link_event = LinkChanged
    send_event = SendPacket
    kind_at, kind_mask = 4, 0x1F

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed, 1000.0)

    # Building

    def add(self, number: int, **changes) -> Node:
        """A router with the system id N and loopbacks 10.255.0.N and 2001:db8::N."""
        changes.setdefault("areas", (AREA,))
        changes.setdefault("hostname", f"r{number}")
        changes.setdefault("router_id", loopback(number).network)
        settings = IsisSettings(system_id=system(number), **changes)
        created = self.nodes[number] = self._create(number, settings)
        addresses = (
            InterfaceAddress(4, loopback(number).network, 32),
            InterfaceAddress(6, loopback6(number).network, 128),
        )
        lo = Link(1, "lo", up=True, mtu=65536, addresses=addresses, loopback=True)
        self.link(number, lo, LOOPBACK)
        return created

    def _create(self, number: int, settings: IsisSettings) -> Node:
        seed = self.rng.randrange(1 << 30)
        return Node(number, IsisEngine(settings, random.Random(seed)), seed, settings)

    def join(
        self,
        a: int,
        b: int,
        settings: CircuitSettings = FAST,
        *,
        delay: float = 0.0005,
        loss: float = 0.0,
        numbered: bool = True,
        speed: float | None = 12.5e6,
        **changes,
    ) -> Cable:
        """Connect two nodes, with a /31 if ``numbered``, and bring both ends up."""
        self.add_missing(a, b)
        base = parse_dotted("10.128.0.0") + 2 * self.subnets
        self.subnets += 1
        cable = self.lay(Cable(tuple((n, self.free_port(n, 2)) for n in (a, b)), delay, loss))
        for offset, (number, ifindex) in enumerate(cable.ends):
            ipv4 = (InterfaceAddress(4, base + offset, 31),) if numbered else ()
            link = self.port(number, ifindex, ipv4, speed=speed)
            self.link(number, link, replace(settings, **changes))
        return cable

    def lan(self, *numbers: int, settings: CircuitSettings = LAN, priorities=None) -> Cable:
        """Connect nodes by one segment 10.192.K.0/24, on which node N has the address .N."""
        self.add_missing(*numbers)
        base = parse_dotted("10.192.0.0") + 256 * self.subnets
        self.subnets += 1
        cable = self.lay(Cable())
        for number in numbers:
            ifindex = self.free_port(number, 2)
            self.plug(cable, (number, ifindex))
            link = self.port(number, ifindex, (InterfaceAddress(4, base + number, 24),))
            priority = (priorities or {}).get(number, 64)
            self.link(number, link, replace(settings, priority=priority))
        return cable

    def port(
        self, number: int, ifindex: int, addresses=(), *, speed: float | None = 12.5e6
    ) -> Link:
        """A kernel link with its link-local address."""
        hardware = mac(number, ifindex)
        link_local = InterfaceAddress(6, FE80 | hardware, 64)
        return Link(
            ifindex=ifindex,
            name=f"eth{ifindex}",
            up=True,
            mtu=1500,
            speed=speed,
            addresses=(*addresses, link_local),
            hardware_address=hardware,
        )

    # Events

    def restart(self, number: int, **changes) -> None:
        """Restart a node without state on the same links."""
        old = self.nodes[number]
        self.nodes[number] = self._create(number, replace(old.settings, **changes))
        for link, settings in old.links.values():
            self.link(number, link, settings)

    def routes(self, number: int, prefix: Prefix, facts: AdvertisedRoute | None) -> None:
        """Pass one route to an engine."""
        self.input(number, RoutesComputed({prefix: facts}, {}))

    def frame(self, node: Node, output: SendPacket) -> Frame:
        """A frame from the address of the interface."""
        return Frame(mac(node.name, output.ifindex), output.destination, output.payload)

    def received(self, end: End, frame: Frame) -> PacketReceived:
        """The input of a received frame."""
        return PacketReceived(end[1], *frame)

    def hears(self, end: End, frame: Frame) -> bool:
        """Whether an interface accepts a frame: multicast, or its own address."""
        return bool(frame.destination & GROUP_BIT) or frame.destination == mac(*end)

    # State

    def instance(self, number: int) -> Instance:
        """The live state of a node."""
        return self.nodes[number].engine.instance

    def adjacencies(self, number: int) -> list[Adjacency]:
        """The adjacencies of a node."""
        circuits = self.instance(number).ordered_circuits()
        return [adjacency for circuit in circuits for adjacency in all_adjacencies(circuit)]

    def all_up(self) -> bool:
        """Whether all adjacencies of intact point-to-point cables and of LANs are Up."""
        expected = self.ends_up()
        return all(self._circuits_up(number) == expected[number] for number in self.live())

    def _circuits_up(self, number: int) -> int:
        return len({a.circuit.ifindex for a in self.adjacencies(number) if a.up})

    def database(self, number: int, level: int = 2) -> dict:
        """LSP id to (sequence number, checksum) of the unexpired LSPs of a level."""
        stored = self.instance(number).databases[level].entries.values()
        return {e.lsp_id: (e.sequence_number, e.checksum) for e in stored if not e.purged}

    def in_sync(self, level: int = 2) -> bool:
        """Whether all running nodes of a level hold the same LSPs."""
        live = [n for n in self.live() if level in self.instance(n).databases]
        first = self.database(live[0], level)
        return all(self.database(n, level) == first for n in live[1:])

    def settle(self, *levels: int) -> None:
        """Run until adjacencies are up, databases are equal, and nothing changes for a while."""
        self.until(lambda: self.all_up() and all(self.in_sync(n) for n in levels or (2,)), 120.0)
        self.run(12.0)
        assert all(self.in_sync(n) for n in levels or (2,))

    def lsp(self, at: int, of: int, level: int = 2, pseudonode: int = 0, fragment: int = 0):
        """An LSP of one node in the database of another; None if it is missing or purged."""
        entry = self.instance(at).databases[level].get(lsp_id(of, pseudonode, fragment))
        return None if entry is None or entry.purged else entry.lsp

    def blocks(self, number: int, level: int = 2, family: int = 4) -> dict:
        """The newest TED block of each node in the output of one node."""
        latest = described(self.nodes[number].said(TedUpdated | PrefixesUpdated))
        return {
            at: block for (area, at, af), block in latest.items() if (area, af) == (level, family)
        }

    def local_links(self, number: int, level: int = 2, family: int = 4):
        """The newest LocalLinksChanged."""
        said = [
            change.links
            for change in self.nodes[number].said(LocalLinksChanged)
            if (change.area, change.family) == (level, family)
        ]
        return said[-1] if said else ()


def prefixes(block) -> dict:
    """Prefix to (metric, path type) of a block."""
    return {str(p.prefix): (p.metric, p.path_type.name) for p in block.prefixes}


def pair(
    seed: int = 1, settings: CircuitSettings = FAST, level: LevelSet = TWO, **kwargs
) -> Network:
    """Two routers and one link."""
    net = Network(seed)
    net.add(1, levels=level)
    net.add(2, levels=level)
    net.join(1, 2, settings, **kwargs)
    return net
