"""Virtual time and virtual wires: a whole fabric of real routers in one process.

Each node runs the ``Router`` of the daemon, with another adapter. Packets are events in a heap, a
wire has delay and loss, and the kernel FIB is simulated with the rules of the real one (next hops
on a failed link are removed without notice). With the same seed a run repeats exactly, since it
depends on no clock, hash order or thread.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.core.links import InterfaceAddress
from fared.core.routes import LocalRoute, RouteKey, RouteSource
from fared.core.streams import StreamInput, StreamOutput
from fared.extensions.sim.port import LAYERS, LOCAL_MAC, Layer, Port
from fared.extensions.sim.streams import VirtualStreams
from fared.extensions.sim.wire import VirtualTime
from fared.paths.fib.simulated import SimulatedFib
from fared.paths.fib.spray import SprayState
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings


class Node(msgspec.Struct):
    """One router of the fabric with its ports and its simulated kernel."""

    name: str
    settings: RouterSettings
    number: int = 0
    ports: dict[int, Port] = msgspec.field(default_factory=dict)
    kernel: SimulatedFib = msgspec.field(default_factory=SimulatedFib)
    local_routes: dict[RouteKey, LocalRoute] = msgspec.field(default_factory=dict)
    router: Router | None = None
    wake_at: float | None = None
    logs: list[igp.LogRecord] = msgspec.field(default_factory=list)

    @property
    def running(self) -> Router:
        """The router process; it must have been started."""
        if self.router is None:
            raise RuntimeError(f"{self.name} is not running")
        return self.router


_Arrival = tuple[Port, events.To]


class Network(VirtualTime):
    """The virtual clock, the wires and the nodes on them."""

    def __init__(
        self,
        seed: int = 1,
        *,
        delay: float = 0.0005,
        loss: float = 0.0,
        layers: Mapping[str, Layer] = LAYERS,
    ) -> None:
        """``layers``: the available protocols."""
        super().__init__()
        self.layers = layers
        self.delay = delay
        self.loss = loss
        self.nodes: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()
        self.random = random.Random(seed)
        self._seed = seed
        self._bursts: dict[tuple[float, str], list[_Arrival]] = {}
        self.streams = VirtualStreams(self)

    # -- building ---------------------------------------------------------------------------

    def add_node(self, name: str, settings: RouterSettings) -> Node:
        """Add a router, to be started by ``start``."""
        node = Node(name, settings, number=len(self.nodes))
        self.nodes[name] = node
        return node

    def add_port(
        self,
        name: str,
        address: int,
        prefix_length: int,
        settings: Mapping[str, Any],
        *,
        interface: str,
        capacity: float | None = None,
        loopback: bool = False,
        global6: InterfaceAddress | None = None,
    ) -> Port:
        """Add an interface without a wire to a node; ``settings`` by protocol."""
        node = self.nodes[name]
        ifindex = len(node.ports) + 1
        port = Port(
            name,
            ifindex,
            interface,
            address,
            prefix_length,
            dict(settings),
            capacity,
            loopback=loopback,
            global6=global6,
            mac=LOCAL_MAC | node.number << 16 | ifindex,
        )
        node.ports[ifindex] = port
        return port

    def connect(self, left: Port, right: Port) -> None:
        """Connect two ports."""
        left.peer, right.peer = right, left

    def join(self, ports: list[Port]) -> None:
        """Connect ports to one segment."""
        for port in ports:
            port.segment = ports

    def cost(self, port: Port) -> int | None:
        """Return the cost of a port in the first protocol; None without a protocol."""
        costs = (self.layers[name].cost(settings) for name, settings in port.settings.items())
        return next(costs, None)

    def find_port(self, node: str, toward: str) -> Port:
        """Return the first port of ``node`` whose wire leads to ``toward``. Raises KeyError."""
        for port in self.nodes[node].ports.values():
            if any(end.node == toward for end in port.far):
                return port
        raise KeyError(f"{node} has no link to {toward}")

    # -- operating --------------------------------------------------------------------------

    def start(self, name: str, *before: events.Input) -> None:
        """Start (or restart) a node's router: it adopts what its kernel still contains.

        ``before``: inputs that come before any link.
        """
        node = self.nodes[name]
        node.router = router = self.new_router(node, f"{self._seed}/{name}/{self.now}")
        router.handle(events.FibAdopted(node.kernel.dump()), self.now)
        if not node.settings.spray.by_flow:
            router.handle(events.SprayAdopted(SprayState()), self.now)
        if node.settings.bier is not None:
            router.handle(events.BierAdopted(), self.now)
        for event in before:
            router.handle(event, self.now)
        for port in node.ports.values():
            for event in link_events(node, port):
                router.handle(event, self.now)
        router.handle(igp.ExternalRoutes(dict(node.local_routes)), self.now)
        router.handle(events.LinksKnown(), self.now)
        self._settle(node)

    def new_router(self, node: Node, seed: str) -> Router:
        """Return a router that a node is to run."""
        protocols = {name: layer.protocol for name, layer in self.layers.items()}
        return Router(node.settings, random.Random(seed), self.now, lambda: self.now, protocols)

    def start_all(self) -> None:
        """Start every node within the first tenth of a second, in seeded order."""
        for name in self.nodes:
            self.at(self.random.uniform(0, 0.1), lambda name=name: self.start(name))  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """Kill a node's router without warning; its kernel continues to forward."""
        self.nodes[name].router = None
        self.streams.killed(name)

    def input(self, name: str, *together: events.Input) -> None:
        """Pass inputs to a node's router now, all before its outputs are executed."""
        node = self.nodes[name]
        for event in together:
            node.running.handle(event, self.now)
        self._settle(node)

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Set the first link between two nodes down at a, or up again."""
        port = self.find_port(a, b)
        port.admin_up = up
        for end in (port, *port.far):
            self._notify(end)
        self.streams.link_changed()

    def set_capacity(self, a: str, b: str, capacity: float | None) -> None:
        """Change the capacity (bytes/s) of the first link from a toward b: that direction only."""
        port = self.find_port(a, b)
        port.capacity = capacity
        self._notify(port)

    def set_share(self, a: str, b: str, share: float) -> None:
        """Derate the first link from a toward b at a, or (1) use all of it again."""
        port = self.find_port(a, b)
        port.settings = {n: replace(part, share=share) for n, part in port.settings.items()}
        self._notify(port)

    def set_local_route(
        self,
        name: str,
        prefix: Prefix,
        route: LocalRoute | None,
        source: RouteSource = RouteSource.STATIC,
    ) -> None:
        """Add a route of another source to a node's kernel, or remove it with None."""
        node, key = self.nodes[name], (source, prefix)
        if route is None:
            del node.local_routes[key]
        else:
            node.local_routes[key] = route
        if node.router is not None:
            self.input(name, igp.ExternalRoutes({key: route}))

    def _notify(self, port: Port) -> None:
        node = self.nodes[port.node]
        if port.up:
            node.kernel.link_up(port.ifindex)
        else:
            node.kernel.link_down(port.ifindex)
        if node.router is not None:
            for event in link_events(node, port):
                self.input(port.node, event)

    # -- time -------------------------------------------------------------------------------

    def run_for(self, seconds: float) -> None:
        """Let this much virtual time pass."""
        self.run_until(self.now + seconds)

    def run_until_quiet(self, deadline: float, *, quiet: float = 2.0) -> float:
        """Run until no database or table has changed for ``quiet`` seconds; return when.

        Raises TimeoutError if the network still changes after ``deadline`` seconds.
        """
        end = self.now + deadline
        changed_at, fingerprint = self.now, self._fingerprint()
        while self.now < end:
            self.run_for(0.25)
            current = self._fingerprint()
            if current != fingerprint:
                changed_at, fingerprint = self.now, current
            elif self.now - changed_at >= quiet:
                return changed_at
        raise TimeoutError(f"the fabric is still changing at {self.now}")

    def _fingerprint(self) -> tuple[int, ...]:
        return tuple(
            value
            for router in self.routers()
            for value in (
                router.activity,
                router.journal.counts["spf"],
                router.journal.counts["capacity"],
            )
        )

    def routers(self) -> Iterator[Router]:
        """Yield the running routers in the order in which their nodes were added."""
        return (node.router for node in self.nodes.values() if node.router is not None)

    # -- the adapter ------------------------------------------------------------------------

    def _settle(self, node: Node) -> None:
        """Execute the outputs of the router until there are none."""
        router = node.running
        while outputs := router.take_outputs():
            for output in outputs:
                match output:
                    case events.From(proto, igp.SendPacket() as packet):
                        self._send(node, proto, packet)
                    case events.ApplyFib(operations):
                        self.counts["fib-operations"] += len(operations)
                        results = tuple(node.kernel.apply(operations))
                        router.handle(events.FibApplied(output, results), self.now)
                    case events.ApplySpray():
                        router.handle(events.SprayApplied(), self.now)
                    case events.ApplyBier():
                        router.handle(events.BierApplied(), self.now)
                    case igp.LogRecord():
                        node.logs.append(output)
                    case events.From(proto, event) if isinstance(event, StreamOutput):
                        self.streams.perform((node.name, proto), event)
                    case _:
                        pass
        self._arm(node)

    def _send(self, node: Node, proto: str, sent: igp.SendPacket) -> None:
        port, layer = node.ports[sent.ifindex], self.layers[proto]
        self.counts["packets"] += 1
        self.counts["bytes"] += len(sent.payload)
        group = layer.is_group(sent.destination)
        for peer in port.far if port.up else ():
            if group or sent.destination == layer.address(peer):
                packet = igp.PacketReceived(
                    peer.ifindex, layer.address(port), sent.destination, sent.payload, sent.ttl
                )
                self._carry(peer, events.To(proto, packet))

    def _carry(self, peer: Port, packet: events.To) -> None:
        if self.loss and self.random.random() < self.loss:
            self.counts["lost"] += 1
            return
        delay = self.delay if peer.delay is None else peer.delay
        key = (self.now + delay, peer.node)
        burst = self._bursts.get(key)
        if burst is None:
            self._bursts[key] = burst = []
            self.at(key[0], lambda: self._deliver(key))
        burst.append((peer, packet))

    def _deliver(self, key: tuple[float, str]) -> None:
        """Pass a node the packets of one time, as the daemon does with those of one wake-up."""
        burst, node = self._bursts.pop(key), self.nodes[key[1]]
        if node.router is None:
            return
        for port, packet in burst:
            if port.up:
                node.router.handle(packet, self.now)
        self._settle(node)

    def ports(self, name: str) -> Iterator[Port]:
        """The ports of a router."""
        return iter(self.nodes[name].ports.values())

    def tell(self, place: tuple[str, str], event: StreamInput) -> None:
        """Pass an input of a stream to a protocol of a router, if that runs."""
        name, proto = place
        if self.nodes[name].router is not None:
            self.input(name, events.To(proto, event))

    def _arm(self, node: Node) -> None:
        """Wake the router at its next deadline; an earlier wake-up is kept."""
        deadline = node.running.next_deadline()
        if deadline is None or (node.wake_at is not None and node.wake_at <= deadline):
            return
        at = max(deadline, self.now)
        node.wake_at = at
        self.at(at, lambda: self._wake(node, at))

    def _wake(self, node: Node, at: float) -> None:
        if node.wake_at != at:
            return
        node.wake_at = None
        if node.router is not None:
            node.router.tick(self.now)
            self._settle(node)


def link_events(node: Node, port: Port) -> Iterator[events.Input]:
    """Yield the link events of a port, one for each protocol with its own settings."""
    for proto in node.settings.protocols:
        yield events.To(proto, igp.LinkChanged(port.link(), port.settings.get(proto)))
