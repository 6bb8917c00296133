"""Virtual time and virtual wires: a whole fabric of real routers in one process.

Each node is the very ``Router`` that the daemon runs; what differs is the adapter. Packets are
events in a heap, a wire has delay and loss, the kernel FIB is simulated with the real one's
rules (a next hop on a dead link is gone without a word). With the same seed a run repeats
exactly: no clock, no hash order, no thread.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fared.core.ids import Prefix
from fared.core.links import InterfaceAddress, Link
from fared.core.routes import LocalRoute, RouteKey, RouteSource
from fared.fib.simulated import SimulatedFib
from fared.isis import events as isis
from fared.isis.settings import CircuitSettings
from fared.ospf import events as ospf
from fared.ospf.settings import InterfaceSettings
from fared.router import events
from fared.router.router import Router
from fared.router.settings import RouterSettings

MAX_EVENTS = 20_000_000
_MULTICAST = 0xE
"""The first four bits of an IPv4 multicast address."""
_LOCAL_MAC = 0x0200_0000_0000
"""A locally administered MAC address with room for node and port in its last four bytes."""
_LINK_LOCAL = 0xFE80 << 112


@dataclass(slots=True)
class Port:
    """One end of a wire, or a port on a segment that several share.

    ``settings`` are those of OSPF, ``circuit`` those of IS-IS, None where it does not run.
    ``address`` 0: no IPv4 address. ``global6`` is an IPv6 address beside the link-local one.
    """

    node: str
    ifindex: int
    name: str
    address: int
    prefix_length: int
    settings: InterfaceSettings | None
    capacity: float | None
    peer: Port | None = None
    admin_up: bool = True
    loopback: bool = False
    segment: list[Port] = field(default_factory=list)
    circuit: CircuitSettings | None = None
    global6: InterfaceAddress | None = None
    mac: int = 0

    @property
    def far(self) -> tuple[Port, ...]:
        """The ports that a frame from here can reach."""
        if self.peer is not None:
            return (self.peer,)
        return tuple(port for port in self.segment if port is not self)

    @property
    def up(self) -> bool:
        """Administratively up, with carrier: the far end is up as well."""
        return self.admin_up and (self.peer is None or self.peer.admin_up)

    def link(self) -> Link:
        """What the kernel would show of this interface."""
        return Link(
            ifindex=self.ifindex,
            name=self.name,
            up=self.up,
            mtu=1500,
            addresses=self._addresses(),
            loopback=self.loopback,
            speed=self.capacity,
            hardware_address=0 if self.loopback else self.mac,
        )

    @property
    def link_local(self) -> int:
        """The IPv6 address that neighbors send to."""
        return _LINK_LOCAL | self.mac

    @property
    def cost(self) -> int | None:
        """What crossing it costs; None where no protocol runs."""
        if self.settings is not None:
            return self.settings.cost
        return None if self.circuit is None else self.circuit.metric

    def _addresses(self) -> tuple[InterfaceAddress, ...]:
        found = []
        if self.address:
            peer = None if self.peer is None else self.peer.address
            found.append(InterfaceAddress(4, self.address, self.prefix_length, peer))
        if self.circuit is not None and not self.loopback:
            found.append(InterfaceAddress(6, self.link_local, 64))
        if self.global6 is not None:
            found.append(self.global6)
        return tuple(found)


@dataclass(slots=True)
class Node:
    """One router of the fabric with its ports and its simulated kernel."""

    name: str
    settings: RouterSettings
    number: int = 0
    ports: dict[int, Port] = field(default_factory=dict)
    kernel: SimulatedFib = field(default_factory=SimulatedFib)
    local_routes: dict[RouteKey, LocalRoute] = field(default_factory=dict)
    router: Router | None = None
    wake_at: float | None = None
    logs: list[ospf.LogRecord] = field(default_factory=list)

    @property
    def running(self) -> Router:
        """The router process; it must have been started."""
        if self.router is None:
            raise RuntimeError(f"{self.name} is not running")
        return self.router


_Arrival = tuple[Port, ospf.PacketReceived | isis.PduReceived]


class Network:
    """The virtual clock, the wires and the nodes on them."""

    def __init__(self, seed: int = 1, *, delay: float = 0.0005, loss: float = 0.0) -> None:
        self.now = 0.0
        self.delay = delay
        self.loss = loss
        self.nodes: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()
        self.random = random.Random(seed)
        self._seed = seed
        self._bursts: dict[tuple[float, str], list[_Arrival]] = {}
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    # -- building ---------------------------------------------------------------------------

    def add_node(self, name: str, settings: RouterSettings) -> Node:
        """Add a router; it does nothing until ``start``."""
        node = Node(name, settings, number=len(self.nodes))
        self.nodes[name] = node
        return node

    def add_port(
        self,
        name: str,
        address: int,
        prefix_length: int,
        settings: InterfaceSettings | None,
        *,
        interface: str,
        capacity: float | None = None,
        loopback: bool = False,
        circuit: CircuitSettings | None = None,
        global6: InterfaceAddress | None = None,
    ) -> Port:
        """Give a node an interface, not yet wired to anything."""
        node = self.nodes[name]
        ifindex = len(node.ports) + 1
        port = Port(
            name,
            ifindex,
            interface,
            address,
            prefix_length,
            settings,
            capacity,
            loopback=loopback,
            circuit=circuit,
            global6=global6,
            mac=_LOCAL_MAC | node.number << 16 | ifindex,
        )
        node.ports[ifindex] = port
        return port

    def connect(self, left: Port, right: Port) -> None:
        """Wire two ports together."""
        left.peer, right.peer = right, left

    def join(self, ports: list[Port]) -> None:
        """Put ports on one segment."""
        for port in ports:
            port.segment = ports

    def find_port(self, node: str, toward: str) -> Port:
        """The first port of ``node`` whose wire leads to ``toward``. Raises KeyError."""
        for port in self.nodes[node].ports.values():
            if any(end.node == toward for end in port.far):
                return port
        raise KeyError(f"{node} has no link to {toward}")

    # -- operating --------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start (or restart) a node's router: it adopts what its kernel still holds."""
        node = self.nodes[name]
        seed = f"{self._seed}/{name}/{self.now}"
        router = Router(node.settings, random.Random(seed), self.now, lambda: self.now)
        node.router = router
        router.handle(events.FibAdopted(node.kernel.dump()), self.now)
        for port in node.ports.values():
            for event in _link_events(node, port):
                router.handle(event, self.now)
        router.handle(ospf.ExternalRoutes(dict(node.local_routes)), self.now)
        router.handle(events.LinksKnown(), self.now)
        self._settle(node)

    def start_all(self) -> None:
        """Start every node within the first tenth of a second, in seeded order."""
        for name in self.nodes:
            self.at(self.random.uniform(0, 0.1), lambda name=name: self.start(name))  # type: ignore[misc]

    def kill(self, name: str) -> None:
        """Kill a node's router without a word; its kernel goes on forwarding."""
        self.nodes[name].router = None

    def input(self, name: str, *together: events.Input) -> None:
        """Feed a node's router inputs now, several before it answers."""
        node = self.nodes[name]
        for event in together:
            node.running.handle(event, self.now)
        self._settle(node)

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take the first link between two nodes down on a's side, or bring it back."""
        port = self.find_port(a, b)
        port.admin_up = up
        for end in (port, *port.far):
            self._announce(end)

    def set_capacity(self, a: str, b: str, capacity: float | None) -> None:
        """Change the capacity (bytes/s) of the first link from a toward b: that direction only."""
        port = self.find_port(a, b)
        port.capacity = capacity
        self._announce(port)

    def set_local_route(
        self,
        name: str,
        prefix: Prefix,
        route: LocalRoute | None,
        source: RouteSource = RouteSource.STATIC,
    ) -> None:
        """Give a node's kernel a route of other origin, or take it away with None."""
        node, key = self.nodes[name], (source, prefix)
        if route is None:
            del node.local_routes[key]
        else:
            node.local_routes[key] = route
        if node.router is not None:
            self.input(name, ospf.ExternalRoutes({key: route}))

    def _announce(self, port: Port) -> None:
        node = self.nodes[port.node]
        if port.up:
            node.kernel.link_up(port.ifindex)
        else:
            node.kernel.link_down(port.ifindex)
        if node.router is not None:
            for event in _link_events(node, port):
                self.input(port.node, event)

    # -- time -------------------------------------------------------------------------------

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a time; equal times happen in the order they were asked for."""
        heapq.heappush(self._queue, (time, next(self._order), action))

    def run_until(self, time: float) -> None:
        """Let virtual time pass up to ``time``."""
        for _ in range(MAX_EVENTS):
            if not self._queue or self._queue[0][0] > time:
                self.now = time
                return
            self.now, _, action = heapq.heappop(self._queue)
            self.counts["events"] += 1
            action()
        raise RuntimeError(f"more than {MAX_EVENTS} events before {time}")

    def run_for(self, seconds: float) -> None:
        """Let this much virtual time pass."""
        self.run_until(self.now + seconds)

    def run_until_quiet(self, deadline: float, *, quiet: float = 2.0) -> float:
        """Run until no database or table has changed for ``quiet`` seconds; return when.

        Raises TimeoutError when the network is still busy after ``deadline`` seconds.
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
        """The running routers in the order in which their nodes were added."""
        return (node.router for node in self.nodes.values() if node.router is not None)

    # -- the adapter ------------------------------------------------------------------------

    def _settle(self, node: Node) -> None:
        """Carry out what the router wants until it wants nothing more."""
        router = node.running
        while outputs := router.drain():
            for output in outputs:
                match output:
                    case ospf.SendPacket(ifindex, destination, payload):
                        self._send(node, ifindex, destination, payload)
                    case isis.SendPdu(ifindex, destination, payload):
                        self._send_frame(node, ifindex, destination, payload)
                    case events.ApplyFib(operations):
                        self.counts["fib-operations"] += len(operations)
                        results = tuple(node.kernel.apply(operations))
                        router.handle(events.FibApplied(output, results), self.now)
                    case ospf.LogRecord():
                        node.logs.append(output)
                    case _:
                        pass
        self._arm(node)

    def _send(self, node: Node, ifindex: int, destination: int, payload: bytes) -> None:
        port = node.ports[ifindex]
        self.counts["packets"] += 1
        self.counts["bytes"] += len(payload)
        for peer in port.far if port.up else ():
            if destination >> 28 == _MULTICAST or destination == peer.address:
                packet = ospf.PacketReceived(peer.ifindex, port.address, destination, payload)
                self._carry(peer, packet)

    def _send_frame(self, node: Node, ifindex: int, destination: int, payload: bytes) -> None:
        port = node.ports[ifindex]
        self.counts["packets"] += 1
        self.counts["bytes"] += len(payload)
        for peer in port.far if port.up else ():
            pdu = isis.PduReceived(peer.ifindex, port.mac, destination, payload)
            self._carry(peer, pdu)

    def _carry(self, peer: Port, packet: ospf.PacketReceived | isis.PduReceived) -> None:
        if self.loss and self.random.random() < self.loss:
            self.counts["lost"] += 1
            return
        key = (self.now + self.delay, peer.node)
        burst = self._bursts.get(key)
        if burst is None:
            self._bursts[key] = burst = []
            self.at(key[0], lambda: self._deliver(key))
        burst.append((peer, packet))

    def _deliver(self, key: tuple[float, str]) -> None:
        """Hand a node what arrives at one moment, as the daemon takes all that one wake-up finds."""
        burst, node = self._bursts.pop(key), self.nodes[key[1]]
        if node.router is None:
            return
        for port, packet in burst:
            if port.up:
                node.router.handle(packet, self.now)
        self._settle(node)

    def _arm(self, node: Node) -> None:
        """Wake the router at its next deadline; an earlier armed wake-up is kept."""
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


def _link_events(node: Node, port: Port) -> Iterator[events.Input]:
    """What the router is told of a port: each protocol it speaks hears its own settings."""
    if node.settings.ospf is not None:
        yield ospf.LinkChanged(port.link(), port.settings)
    if node.settings.isis is not None:
        yield isis.CircuitChanged(port.link(), port.circuit)
