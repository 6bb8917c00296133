"""Whole IS-IS engines joined by virtual links on a virtual clock: no sockets, no sleeps."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from fared.core.ids import Prefix, SystemId, isis_node, parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress, Link
from fared.isis.engine import IsisEngine
from fared.isis.events import (
    CircuitChanged,
    Input,
    LocalLinksChanged,
    Output,
    PduReceived,
    SendPdu,
    TedUpdated,
)
from fared.isis.ids import LevelSet, lsp_id
from fared.isis.settings import CircuitKind, CircuitSettings, IsisSettings
from fared.ted.events import RouteFacts, RoutesComputed

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


@dataclass
class Node:
    """One engine and all it has said."""

    name: int
    engine: IsisEngine
    seed: int
    settings: IsisSettings
    outputs: list[tuple[float, Output]] = field(default_factory=list)
    links: dict[int, tuple[Link, CircuitSettings]] = field(default_factory=dict)
    stopped: bool = False

    def said(self, kind: type) -> list:
        """All outputs of one type."""
        return [output for _, output in self.outputs if isinstance(output, kind)]


@dataclass
class Cable:
    """A link between two ends (node, ifindex), or a segment of several of them."""

    ends: tuple[tuple[int, int], ...]
    delay: float = 0.0005
    loss: float = 0.0
    cut: bool = False


class Network:
    """Nodes and cables; ``run`` moves the clock."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.now = 1000.0
        self.nodes: dict[int, Node] = {}
        self.cables: list[Cable] = []
        self.by_end: dict[tuple[int, int], Cable] = {}
        self.sent: Counter[int] = Counter()
        self.trace: list[tuple[float, int, SendPdu]] = []
        self._queue: list[tuple[float, int, int, Input]] = []
        self._order = 0
        self._subnets = 0

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

    def link(self, number: int, link: Link, settings: CircuitSettings | None) -> None:
        """Tell a node about a link."""
        if settings is not None:
            self.nodes[number].links[link.ifindex] = (link, settings)
        self.input(number, CircuitChanged(link, settings))

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
        base = parse_dotted("10.128.0.0") + 2 * self._subnets
        self._subnets += 1
        cable = Cable(tuple((n, self._free_port(n)) for n in (a, b)), delay, loss)
        self.cables.append(cable)
        for offset, (number, ifindex) in enumerate(cable.ends):
            self.by_end[number, ifindex] = cable
            ipv4 = (InterfaceAddress(4, base + offset, 31),) if numbered else ()
            link = self.port(number, ifindex, ipv4, speed=speed)
            self.link(number, link, replace(settings, **changes))
        return cable

    def lan(self, *numbers: int, settings: CircuitSettings = LAN, priorities=None) -> Cable:
        """Connect nodes by one segment 10.192.K.0/24, on which node N has the address .N."""
        base = parse_dotted("10.192.0.0") + 256 * self._subnets
        self._subnets += 1
        cable = Cable(())
        self.cables.append(cable)
        for number in numbers:
            ifindex = self._free_port(number)
            cable.ends = (*cable.ends, (number, ifindex))
            self.by_end[number, ifindex] = cable
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

    def _free_port(self, number: int) -> int:
        return 2 + sum(1 for end in self.by_end if end[0] == number)

    # Events

    def stop(self, number: int) -> None:
        """Kill a node without a word."""
        self.nodes[number].stopped = True

    def restart(self, number: int, **changes) -> None:
        """Start a node anew, with no memory and the same links."""
        old = self.nodes[number]
        self.nodes[number] = self._create(number, replace(old.settings, **changes))
        for link, settings in old.links.values():
            self.link(number, link, settings)

    def set_up(self, cable: Cable, up: bool) -> None:
        """Carrier on or off at both ends."""
        cable.cut = not up
        for number, ifindex in cable.ends:
            link, settings = self.nodes[number].links[ifindex]
            if not self.nodes[number].stopped:
                self.link(number, replace(link, up=up), settings)

    def change(self, number: int, ifindex: int, **changes) -> None:
        """Other settings for a circuit."""
        link, settings = self.nodes[number].links[ifindex]
        self.link(number, link, replace(settings, **changes))

    def routes(self, number: int, prefix: Prefix, facts: RouteFacts | None) -> None:
        """Tell an engine of one route."""
        self.input(number, RoutesComputed({prefix: facts}, {}))

    def input(self, number: int, event: Input) -> None:
        """Give an input to a node now and carry what it says."""
        self.nodes[number].engine.handle(event, self.now)
        self._drain(self.nodes[number])

    def _drain(self, source: Node) -> None:
        for output in source.engine.drain():
            source.outputs.append((self.now, output))
            if isinstance(output, SendPdu):
                self._carry(source, output)

    def _carry(self, source: Node, pdu: SendPdu) -> None:
        self.sent[pdu.payload[4] & 0x1F] += 1
        self.trace.append((self.now, source.name, pdu))
        cable = self.by_end.get((source.name, pdu.ifindex))
        if cable is None or cable.cut or (cable.loss and self.rng.random() < cable.loss):
            return
        hardware = mac(source.name, pdu.ifindex)
        for far in cable.ends:
            to_all = pdu.destination & GROUP_BIT
            if far == (source.name, pdu.ifindex) or not (to_all or pdu.destination == mac(*far)):
                continue
            self._order += 1
            event = PduReceived(far[1], hardware, pdu.destination, pdu.payload)
            heapq.heappush(self._queue, (self.now + cable.delay, self._order, far[0], event))

    # Time

    def next_time(self) -> float | None:
        """When something happens next."""
        times = [
            t
            for n in self.nodes.values()
            if not n.stopped and (t := n.engine.next_deadline()) is not None
        ]
        if self._queue:
            times.append(self._queue[0][0])
        return min(times) if times else None

    def step(self) -> bool:
        """Let the next thing happen; False if nothing ever will."""
        at = self.next_time()
        if at is None:
            return False
        self.now = max(self.now, at)
        while self._queue and self._queue[0][0] <= self.now:
            _, _, number, event = heapq.heappop(self._queue)
            if not self.nodes[number].stopped:
                self.input(number, event)
        for running in self.nodes.values():
            due = running.engine.next_deadline()
            if due is not None and due <= self.now and not running.stopped:
                running.engine.tick(self.now)
                self._drain(running)
        return True

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        until = self.now + seconds
        while (at := self.next_time()) is not None and at <= until:
            self.step()
        self.now = until

    def until(self, condition, seconds: float = 60.0) -> float:
        """Run until a condition holds, looked at after each step; return the time it took."""
        began = self.now
        while not condition():
            at = self.next_time()
            assert at is not None, "nothing will ever happen again"
            assert at <= began + seconds, "the condition did not come true"
            self.step()
        return self.now - began

    # What to look at

    def snapshot(self, number: int):
        """What a node says of itself."""
        return self.nodes[number].engine.snapshot(self.now)

    def live(self) -> list[int]:
        """The nodes that run."""
        return [number for number, n in self.nodes.items() if not n.stopped]

    def all_up(self) -> bool:
        """Whether both ends of each uncut point-to-point cable are Up, and all ends of a LAN."""
        expected: Counter[int] = Counter()
        for cable in self.cables:
            ends = [end for end in cable.ends if not self.nodes[end[0]].stopped]
            if not cable.cut and len(ends) > 1:
                expected.update(end[0] for end in ends)
        return all(self._circuits_up(number) == expected[number] for number in self.live())

    def _circuits_up(self, number: int) -> int:
        circuits = self.snapshot(number).circuits
        return sum(any(a.state == "Up" for a in c.adjacencies) for c in circuits)

    def database(self, number: int, level: int = 2) -> dict:
        """LSP id to (sequence number, checksum) of the live LSPs of a level."""
        view = self.snapshot(number).level(level)
        return {
            v.lsp.lsp_id: (v.lsp.sequence_number, v.lsp.checksum) for v in view.lsps if not v.purged
        }

    def in_sync(self, level: int = 2) -> bool:
        """Whether all running nodes of a level hold the same LSPs."""
        live = [n for n in self.live() if self.snapshot(n).level(level) is not None]
        first = self.database(live[0], level)
        return all(self.database(n, level) == first for n in live[1:])

    def settle(self, *levels: int) -> None:
        """Run until adjacencies are up, databases are equal, and nothing changes for a while."""
        self.until(lambda: self.all_up() and all(self.in_sync(n) for n in levels or (2,)), 120.0)
        self.run(12.0)
        assert all(self.in_sync(n) for n in levels or (2,))

    def lsp(self, at: int, of: int, level: int = 2, pseudonode: int = 0, fragment: int = 0):
        """An LSP of one node as another holds it; None if it is not there, or purged."""
        view = self.snapshot(at).level(level).lsp(lsp_id(of, pseudonode, fragment))
        return None if view is None or view.purged else view.lsp

    def blocks(self, number: int, level: int = 2, family: int = 4) -> dict:
        """The newest TED block of each node, as one node was told."""
        latest = {}
        for update in self.nodes[number].said(TedUpdated):
            if (update.area, update.family) == (level, family):
                latest[update.node] = update.block
        return {key: block for key, block in latest.items() if block is not None}

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
