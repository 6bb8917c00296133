"""Engines joined by virtual links on a virtual clock: no sockets, no sleeps, no threads."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from fared.core.ids import AreaId, parse_dotted
from fared.core.links import InterfaceAddress, Link
from fared.ospf.engine import OspfEngine
from fared.ospf.events import (
    Input,
    LinkChanged,
    LocalLinksChanged,
    Output,
    PacketReceived,
    SendPacket,
    TedUpdated,
)
from fared.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings

BACKBONE = AreaId(0)
FAST = InterfaceSettings(area=BACKBONE, hello_interval=1, router_dead_interval=4, rxmt_interval=1.0)
LAN = replace(FAST, network_type=NetworkType.BROADCAST)
MULTICAST = 0xE
DEFAULTS = InterfaceSettings(area=BACKBONE)


def router_id(number: int) -> int:
    """10.255.0.N"""
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


@dataclass
class Node:
    """One engine and all it has said."""

    name: int
    engine: OspfEngine
    seed: int
    outputs: list[tuple[float, Output]] = field(default_factory=list)
    links: dict[int, tuple[Link, InterfaceSettings]] = field(default_factory=dict)
    stopped: bool = False

    def said(self, kind: type) -> list:
        """All outputs of one type."""
        return [output for _, output in self.outputs if isinstance(output, kind)]


@dataclass
class Cable:
    """A link between (node, ifindex) and (node, ifindex), or a segment of several of them."""

    ends: tuple[tuple[int, int], ...]
    delay: float = 0.0005
    loss: float = 0.0
    cut: bool = False


class Network:
    """Nodes and cables; ``run`` moves the clock."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.now = 0.0
        self.nodes: dict[int, Node] = {}
        self.cables: list[Cable] = []
        self.by_end: dict[tuple[int, int], Cable] = {}
        self.sent: Counter[int] = Counter()
        self.trace: list[tuple[float, int, SendPacket]] = []
        self._queue: list[tuple[float, int, int, Input]] = []
        self._order = 0
        self._subnets = 0
        self._lans = 0

    def add(self, number: int, **settings) -> Node:
        """A router 10.255.0.N with its loopback."""
        seed = self.rng.randrange(1 << 30)
        areas = settings.pop("areas", (AreaSettings(BACKBONE),))
        rid = settings.pop("router_id", router_id(number))
        engine = OspfEngine(
            OspfSettings(router_id=rid, hostname=f"r{number}", areas=areas, **settings),
            random.Random(seed),
        )
        node = self.nodes[number] = Node(number, engine, seed)
        lo = make_link(1, rid, length=32, name="lo", speed=None, loopback=True, mtu=65536)
        self.link(number, lo, InterfaceSettings(area=areas[0].area, passive=True))
        return node

    def link(self, number: int, link: Link, settings: InterfaceSettings | None) -> None:
        """Tell a node about a link."""
        node = self.nodes[number]
        if settings is not None:
            node.links[link.ifindex] = (link, settings)
        self.input(number, LinkChanged(link, settings))

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
        base = parse_dotted("10.128.0.0") + 2 * self._subnets
        self._subnets += 1
        ends = tuple((n, 2 + sum(1 for end in self.by_end if end[0] == n)) for n in (a, b))
        cable = Cable(ends, delay, loss)
        self.cables.append(cable)
        for end in ends:
            self.by_end[end] = cable
        self.link(a, make_link(ends[0][1], base, mtu=mtu, speed=speed), settings)
        self.link(
            b,
            make_link(ends[1][1], base + 1, mtu=b_mtu or mtu, speed=speed),
            b_settings or settings,
        )
        return cable

    def lan(
        self,
        *numbers: int,
        settings: InterfaceSettings = LAN,
        priorities=None,
        delay: float = 0.0005,
    ) -> Cable:
        """Connect nodes by one segment 10.192.K.0/24, on which node N has the address .N."""
        base = parse_dotted("10.192.0.0") + 256 * self._lans
        self._lans += 1
        cable = Cable((), delay)
        self.cables.append(cable)
        for number in numbers:
            self.plug(number, cable, base, settings, (priorities or {}).get(number, 1))
        return cable

    def plug(
        self, number: int, cable: Cable, base: int, settings: InterfaceSettings, priority: int = 1
    ) -> None:
        """Connect one more node to a segment."""
        end = (number, 2 + sum(1 for end in self.by_end if end[0] == number))
        cable.ends = (*cable.ends, end)
        self.by_end[end] = cable
        link = make_link(end[1], base + number, length=24)
        self.link(number, link, replace(settings, router_priority=priority))

    def stop(self, number: int) -> None:
        """Kill a node without a word."""
        self.nodes[number].stopped = True

    def interface(self, number: int, ifindex: int = 2):
        """What a node says of one of its interfaces."""
        views = self.nodes[number].engine.snapshot(self.now).interfaces
        return next(view for view in views if view.ifindex == ifindex)

    def set_up(self, cable: Cable, up: bool) -> None:
        """Carrier on or off at both ends."""
        cable.cut = not up
        for number, ifindex in cable.ends:
            link, settings = self.nodes[number].links[ifindex]
            if not self.nodes[number].stopped:
                self.link(number, replace(link, up=up), settings)

    def input(self, number: int, event: Input) -> None:
        """Give an input to a node now and carry what it says."""
        node = self.nodes[number]
        node.engine.handle(event, self.now)
        self._drain(node)

    def _drain(self, node: Node) -> None:
        for output in node.engine.drain():
            node.outputs.append((self.now, output))
            if isinstance(output, SendPacket):
                self._carry(node, output)

    def _carry(self, node: Node, packet: SendPacket) -> None:
        self.sent[packet.payload[1]] += 1
        self.trace.append((self.now, node.name, packet))
        cable = self.by_end.get((node.name, packet.ifindex))
        if cable is None or cable.cut or (cable.loss and self.rng.random() < cable.loss):
            return
        own = node.links[packet.ifindex][0].addresses
        source = packet.source or own[0].address
        for far in cable.ends:
            if far == (node.name, packet.ifindex) or not self._hears(far, packet.destination):
                continue
            self._order += 1
            event = PacketReceived(far[1], source, packet.destination, packet.payload)
            heapq.heappush(self._queue, (self.now + cable.delay, self._order, far[0], event))

    def _hears(self, end: tuple[int, int], destination: int) -> bool:
        """Whether a frame to this address reaches an end: multicast does, unicast only its own."""
        if destination >> 28 == MULTICAST:
            return True
        link, _ = self.nodes[end[0]].links[end[1]]
        return destination in {address.address for address in link.addresses}

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
        for node in self.nodes.values():
            due = node.engine.next_deadline()
            if due is not None and due <= self.now and not node.stopped:
                node.engine.tick(self.now)
                self._drain(node)
        return True

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        until = self.now + seconds
        while (at := self.next_time()) is not None and at <= until:
            self.step()
        self.now = until

    def until(self, condition, seconds: float = 60.0, *, every: float = 0.0) -> float:
        """Run until a condition holds, looked at after each step or ``every`` so many seconds."""
        deadline = self.now + seconds
        while not condition():
            at = self.next_time()
            assert at is not None, "nothing will ever happen again"
            assert at <= deadline, "the condition did not come true"
            if every:
                self.run(every)
            else:
                self.step()
        return self.now

    # What to look at

    def neighbors(self, number: int):
        """The neighbors a node sees."""
        return self.nodes[number].engine.snapshot(self.now).neighbors

    def states(self, number: int) -> list[str]:
        """Their states."""
        return [n.state for n in self.neighbors(number)]

    def all_full(self) -> bool:
        """Whether both ends of each uncut cable are Full."""
        expected: Counter[int] = Counter()
        for cable in self.cables:
            if not cable.cut and not any(self.nodes[n].stopped for n, _ in cable.ends):
                expected.update(n for n, _ in cable.ends)
        return all(
            self.states(n).count("Full") == expected[n]
            for n, node in self.nodes.items()
            if not node.stopped
        )

    def database(self, number: int, area: AreaId = BACKBONE) -> dict:
        """Key to (sequence number, checksum) of the live LSAs of an area."""
        view = self.nodes[number].engine.snapshot(self.now).area(area)
        return {
            v.lsa.header.key: (v.lsa.header.ls_sequence_number, v.lsa.header.ls_checksum)
            for v in view.lsas
            if v.age < 3600
        }

    def in_sync(self) -> bool:
        """Whether all running nodes hold the same LSAs and none is outstanding."""
        live = [n for n, node in self.nodes.items() if not node.stopped]
        first = self.database(live[0])
        return all(self.database(n) == first for n in live[1:])

    def blocks(self, number: int) -> dict:
        """The newest TED block of each node, as one node was told."""
        latest = {}
        for update in self.nodes[number].said(TedUpdated):
            latest[update.node] = update.block
        return latest

    def local_links(self, number: int):
        """The newest LocalLinksChanged."""
        said = self.nodes[number].said(LocalLinksChanged)
        return said[-1].links if said else ()


def pair(seed: int = 1, settings: InterfaceSettings = FAST, **kwargs) -> Network:
    """Two routers and one link."""
    net = Network(seed)
    net.add(1)
    net.add(2)
    net.join(1, 2, settings, **kwargs)
    return net
