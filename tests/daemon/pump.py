"""Two routers under the daemon's pump, each with a loop and sockets that can be stopped.

Packets for a stopped router are queued in its socket. A router that continues runs timers before
it reads packets, as asyncio does: the interrupted epoll call returned no event.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from types import SimpleNamespace
from typing import Any

from fared.config import load_text
from fared.core.links import InterfaceAddress, Link
from fared.daemon.change.settings import link_events, router_settings
from fared.daemon.loop import runner as module
from fared.daemon.loop.runner import Runner
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.igp import events as igp
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.circuit import AdjacencyState
from fared.protocols.ospf.neighbor import NeighborState
from fared.router import events
from fared.router.router import Router

_LINK = "{network-type: point-to-point, hello-interval: 1, %s}"
CONFIG = {
    "ospf": "ospf: {areas: {0: {interfaces: {e0: %s}}}}" % (_LINK % "dead-interval: 4"),
    "isis": "isis: {net: 49.0001.0000.0000.000%%d.00, interfaces: {e0: %s}}"
    % (_LINK % "hello-multiplier: 4"),
}


class VirtualLoop:
    """Time and timers of one process."""

    def __init__(self, clock: SimpleNamespace) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._real = asyncio.new_event_loop()
        self._real.close()

    def time(self) -> float:
        return self._clock.now

    def call_at(self, when: float, callback: Any, *arguments: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, arguments, self._real)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def due(self) -> float:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else float("inf")

    def fire(self) -> None:
        """Run the timers that are due, once."""
        ready = []
        while self.due() <= self.time():
            ready.append(heapq.heappop(self._timers)[2])
        for handle in ready:
            if not handle.cancelled():
                handle._run()


class Process:
    """One router, its pump, and both protocols' sockets on one interface."""

    def __init__(self, clock: SimpleNamespace, number: int, protocol: str) -> None:
        self.loop = VirtualLoop(clock)
        self.asleep = False
        self.waiting: list[events.Input] = []
        self.peer: Process | None = None
        self.changes: list[tuple[str, str]] = []
        self.said: list[str] = []
        text = CONFIG[protocol] % number if protocol == "isis" else CONFIG[protocol]
        config = load_text(text)
        settings = router_settings(config, number, f"r{number}")
        router = Router(settings, random.Random(number), clock.now, lambda: 0.0)
        self.number = number
        address = InterfaceAddress(4, 0x0A000000 + number, 30)
        link = Link(1, "e0", True, 1500, (address,), speed=1e9, hardware_address=2 + number)
        (self.link_event,) = link_events(config, link)
        self.protocol = protocol
        log = SimpleNamespace(
            **{
                level: lambda event, **_: self.said.append(event)
                for level in ("debug", "info", "warning", "error")
            }
        )
        io = SimpleNamespace(open=lambda _: None, close=lambda _: None, send=self._send)
        original = asyncio.get_running_loop
        module.asyncio.get_running_loop = lambda: self.loop
        try:
            self.runner = Runner(router, SimulatedFib(), {protocol: io}, log, catch_up=self.read)
        finally:
            module.asyncio.get_running_loop = original
        self.runner.observers.append(self._observe)

    def start(self) -> None:
        self.runner.feed(self.link_event, events.LinksKnown())

    def read(self) -> None:
        """Read all packets in the socket."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.runner.feed_all(waiting)

    def neighbor(self) -> Any:
        """The state of the neighbor in the engine, or None."""
        router = self.runner.router
        instance = next(iter(router.instances.values()))
        live: Any = instance.engine.instance
        if instance.name == "ospf":
            return next(iter(live.neighbors()), None)
        return next((a for c in live.ordered_circuits() for a in all_adjacencies(c)), None)

    def up(self) -> bool:
        """Whether the neighbor is Full (OSPF) or Up (IS-IS)."""
        neighbor = self.neighbor()
        return neighbor is not None and neighbor.state in (NeighborState.FULL, AdjacencyState.UP)

    def dead_in(self) -> float:
        """Seconds until the neighbor's hold time expires."""
        neighbor = self.neighbor()
        ends = neighbor.dead_at if self.protocol == "ospf" else neighbor.expires
        return float(ends - self.loop.time())

    def _send(self, packet: igp.SendPacket) -> None:
        own = 0x0A000000 if self.protocol == "ospf" else 2
        received = igp.PacketReceived(
            1, packet.source or own + self.number, packet.destination, packet.payload, packet.ttl
        )
        assert self.peer is not None
        self.peer.waiting.append(events.To(self.protocol, received))

    def _observe(self, output: events.Output) -> None:
        match output:
            case events.From(_, igp.AdjacencyChanged() as change):
                self.changes.append((change.state, change.reason))


class Pair:
    """Two processes on one link and one clock."""

    def __init__(self, protocol: str) -> None:
        self.clock = SimpleNamespace(now=1000.0)
        self.left, self.right = (Process(self.clock, n, protocol) for n in (1, 2))
        self.left.peer, self.right.peer = self.right, self.left
        for process in (self.left, self.right):
            process.start()

    def run(self, seconds: float) -> None:
        """Advance the clock; a stopped process does nothing."""
        end = self.clock.now + seconds
        while True:
            awake = [p for p in (self.left, self.right) if not p.asleep]
            for process in awake:
                process.loop.fire()
            for process in awake:
                process.read()
            if any(p.waiting or p.loop.due() <= self.clock.now for p in awake):
                continue
            due = min(p.loop.due() for p in awake)
            if due > end:
                self.clock.now = end
                return
            self.clock.now = due

    def await_up(self, seconds: float) -> float:
        """Run until both adjacencies are up; return the seconds that this took."""
        begun = self.clock.now
        while not (self.left.up() and self.right.up()):
            assert self.clock.now < begun + seconds, (self.left.neighbor(), self.right.neighbor())
            self.run(0.01)
        return self.clock.now - begun
