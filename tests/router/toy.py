"""A minimal third protocol: an engine, its settings, and its advertisements.

Every router floods one advertisement: its neighbors and one prefix. A packet is the id of its
sender, followed by an advertisement, and is also a hello. No module of ``fared`` refers to this
protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from fared.core.ids import AreaId, NodeId, Prefix, dotted, ipv4_prefix
from fared.core.links import Link
from fared.core.rng import Rng
from fared.core.routes import RouteSource
from fared.core.timers import Timer
from fared.paths.te.budget import AnnounceBudget
from fared.paths.ted.events import LocalLinksChanged, RoutesComputed, TedUpdated
from fared.paths.ted.model import LocalLink, NodeBlock, PrefixReachability
from fared.protocols.igp import events as igp
from fared.protocols.igp.counters import PacketCounters
from fared.protocols.igp.database_limit import Fullness, LimitView
from fared.protocols.igp.engine import ProcessEngine
from fared.protocols.igp.process import Process
from fared.router.engine import EngineOutput
from fared.router.protocols import RoutingProtocol, Started

ALL_ROUTERS = 0xE000_0063
HELLO, DEAD = 1.0, 3.5
_HEADER = struct.Struct("!IIIII")
"""Sender, advertising router, sequence number, prefix, number of neighbors."""


@dataclass(frozen=True)
class ToySettings:
    """The settings that ``RouterSettings`` requires, and the /24 of the router."""

    router_id: int
    prefix: int
    hostname: str | None = None
    epoch: float = 0.0
    drained: bool = False

    @property
    def redistributed(self) -> Mapping[RouteSource, int]:
        return {}

    def with_clock(self, epoch: float, boot_count: int) -> ToySettings:
        del boot_count
        return replace(self, epoch=epoch)

    def drain(self) -> ToySettings:
        return replace(self, drained=True)


class Advertisement(NamedTuple):
    """The only type of entry in the database."""

    origin: int
    sequence: int
    prefix: int
    neighbors: tuple[int, ...]

    def encode(self, sender: int) -> bytes:
        head = _HEADER.pack(sender, self.origin, self.sequence, self.prefix, len(self.neighbors))
        return head + struct.pack(f"!{len(self.neighbors)}I", *self.neighbors)


def decode(payload: bytes) -> tuple[int, Advertisement] | None:
    """Return the sender and its advertisement; None if malformed."""
    if len(payload) < _HEADER.size:
        return None
    sender, origin, sequence, prefix, count = _HEADER.unpack_from(payload)
    if len(payload) != _HEADER.size + 4 * count:
        return None
    return sender, Advertisement(
        origin, sequence, prefix, struct.unpack_from(f"!{count}I", payload, _HEADER.size)
    )


@dataclass
class Neighbor:
    router_id: int
    address: int
    dead: Timer


class ToyEngine(ProcessEngine[EngineOutput]):
    """Inputs in, outputs out, as of any engine (``fared.router.engine.Engine``)."""

    takes_routes = False
    ranges: tuple[tuple[AreaId, Prefix], ...] = ()
    budgets: Mapping[str, AnnounceBudget] = MappingProxyType({})
    limits: Mapping[str, LimitView] = MappingProxyType({})
    prefix_limit = LimitView(0, 1, 1, Fullness.ROOM, 0, 0)
    boot_count = 0
    restarting = False
    restart_announced = True

    def __init__(self, settings: ToySettings, rng: Rng) -> None:
        super().__init__(Process("toy", settings.epoch, rng, dotted))
        self.settings = settings
        self.links: dict[int, Link] = {}
        self.neighbors: dict[int, Neighbor] = {}
        """By ifindex: a link has two ends."""
        self.database: dict[int, Advertisement] = {}
        self._sequence = 0
        self._hellos: dict[int, Timer] = {}

    def handle(self, event: igp.Input[None, ToySettings] | RoutesComputed, now: float) -> None:
        self._process.now = now
        self.settled = False
        match event:
            case igp.PacketReceived():
                self._receive(event)
            case igp.LinkChanged(link):
                self._close(link.ifindex, "link changed")
                if link.up and not link.loopback:
                    self.links[link.ifindex] = link
                    self._process.emit(igp.OpenInterface(link.ifindex))
                self._originate()
                self._hello(link.ifindex)
            case igp.LinkRemoved(ifindex):
                self._close(ifindex, "link removed")
            case igp.ShutdownRequested():
                self._shutdown()
            case _:
                pass

    def receive(self, packets: Iterator[igp.PacketReceived], now: float) -> None:
        for packet in packets:
            self.handle(packet, now)

    @property
    def instance(self) -> dict[int, Advertisement]:
        return self.database

    def databases_text(self, now: float) -> Iterator[str]:
        del now
        yield repr(self.database)

    def adjacency_progress(self) -> tuple[int, int, int]:
        return len(self.links), len(self.neighbors), 0

    def _settle(self) -> None:
        """Everything is sent at once."""

    def _publish(self) -> None:
        """So are changes of the TED."""

    def _leave(self) -> None:
        """The neighbors wait until they hear nothing any more."""

    def _receive(self, packet: igp.PacketReceived) -> None:
        if packet.ifindex not in self.links:
            return
        found = decode(packet.payload)
        if found is None:
            self._process.reject("malformed", packet.source)
            return
        sender, heard = found
        self._counters(packet.ifindex).received["advertisement"] += 1
        self._hear(packet.ifindex, sender, packet.source)
        known = self.database.get(heard.origin)
        if known is None or heard.sequence > known.sequence:
            self._install(heard, packet.ifindex)

    def _counters(self, ifindex: int) -> PacketCounters:
        return self._process.counters.interfaces.setdefault(ifindex, PacketCounters())

    def _hear(self, ifindex: int, sender: int, address: int) -> None:
        neighbor = self.neighbors.get(ifindex)
        dead = self._process.timers.arm(
            self._process.now + DEAD, partial(self._lost, ifindex, "not heard of any more")
        )
        if neighbor is not None:
            self._process.timers.cancel(neighbor.dead)
            neighbor.dead = dead
            return
        self.neighbors[ifindex] = Neighbor(sender, address, dead)
        self._changed(ifindex, sender, "Down", "Up", "heard")
        for entry in list(self.database.values()):
            self._send(ifindex, entry)

    def _lost(self, ifindex: int, reason: str) -> None:
        neighbor = self.neighbors.pop(ifindex, None)
        if neighbor is not None:
            self._process.timers.cancel(neighbor.dead)
            self._changed(ifindex, neighbor.router_id, "Up", "Down", reason)

    def _close(self, ifindex: int, reason: str) -> None:
        self._lost(ifindex, reason)
        self._process.timers.cancel(self._hellos.pop(ifindex, None))
        if self.links.pop(ifindex, None) is not None:
            self._process.emit(igp.CloseInterface(ifindex))

    def _changed(self, ifindex: int, who: int, before: str, after: str, reason: str) -> None:
        process, name = self._process, self.links[ifindex].name
        process.counters.transitions[before, after] += 1
        process.emit(
            igp.AdjacencyChanged(
                ifindex, name, NodeId(who), before, after, reason, gained_or_lost=True
            )
        )
        links = tuple(
            LocalLink(at, self.links[at].name, NodeId(n.router_id), n.address, at, 1, None)
            for at, n in sorted(self.neighbors.items())
        )
        process.emit(LocalLinksChanged(0, links, reason, process.now))
        self._originate()

    def _originate(self) -> None:
        self._sequence += 1
        neighbors = tuple(neighbor.router_id for _, neighbor in sorted(self.neighbors.items()))
        mine = self.settings
        self._install(Advertisement(mine.router_id, self._sequence, mine.prefix, neighbors), None)

    def _install(self, entry: Advertisement, came_from: int | None) -> None:
        process = self._process
        self.database[entry.origin] = entry
        process.counters.lsdb["installed"] += 1
        cause = f"advertisement of {dotted(entry.origin)}"
        process.emit(TedUpdated(0, NodeId(entry.origin), block(entry), cause, process.now))
        for ifindex in self.links:
            if ifindex != came_from:
                self._send(ifindex, entry)

    def _hello(self, ifindex: int) -> None:
        if ifindex in self.links:
            self._send(ifindex, self.database[self.settings.router_id])
            due = self._process.now + HELLO
            self._hellos[ifindex] = self._process.timers.arm(due, partial(self._hello, ifindex))

    def _send(self, ifindex: int, entry: Advertisement) -> None:
        self._counters(ifindex).sent["advertisement"] += 1
        payload = entry.encode(self.settings.router_id)
        self._process.emit(igp.SendPacket(ifindex, ALL_ROUTERS, payload))


def block(entry: Advertisement) -> NodeBlock:
    """The TED block of a router: every link has cost 1 and unknown capacity."""
    count = len(entry.neighbors)
    unknown = np.full(count, np.nan)
    return NodeBlock(
        node=NodeId(entry.origin),
        neighbors=np.array(entry.neighbors, np.int64),
        metrics=np.ones(count, np.int64),
        capacities=unknown,
        availables=unknown,
        local_ids=np.zeros(count, np.int64),
        remote_ids=np.zeros(count, np.int64),
        prefixes=(PrefixReachability(ipv4_prefix(entry.prefix, 24), 0),),
    )


def _start(settings: ToySettings, rng: Rng) -> Started:
    return Started(ToyEngine(settings, rng), NodeId(settings.router_id), (4,))


TOY = RoutingProtocol(
    "toy", "Toy", "packet", "neighbor", "advertisement", 90, lambda area: f"net-{area}", _start
)
