"""The Hello protocol (RFC 2328 §9.5, §10.5).

A hello is due by timer, but also at once when a link comes up and when a neighbor is first
heard or stops hearing us: so an adjacency forms in round trips and not in hello intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.ospf.adjacency import Adjacency
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceEvent, InterfaceState
from fared.ospf.neighbor import Neighbor, NeighborEvent, NeighborState
from fared.ospf.packet.packets import Hello, Options, Packet
from fared.ospf.transmit import Transmitter

_JITTER = 0.1
_ALIVE_HELLOS = 2
"""A neighbor heard within so many hello intervals is there: nobody else takes its place."""


class HelloProtocol:
    """Sends and receives hellos on all interfaces.

    ``interface_event`` is told what hellos mean to the interface (RFC 2328 §9.2).
    """

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        adjacency: Adjacency,
        interface_event: Callable[[Interface, InterfaceEvent], None],
    ) -> None:
        self._instance = instance
        self._transmitter = transmitter
        self._adjacency = adjacency
        self._interface_event = interface_event

    def start(self, interface: Interface) -> None:
        """Send the first hello now and the others periodically, a little early at random."""
        self._due(interface)
        self._arm(interface)

    def _due(self, interface: Interface) -> None:
        interface.hello_due = True
        self._instance.unsent[interface.ifindex] = interface

    def stop(self, interface: Interface) -> None:
        """Send no more."""
        self._instance.timers.cancel(interface.hello_timer)
        interface.hello_timer = None

    def _arm(self, interface: Interface) -> None:
        early = 1 - _JITTER * self._instance.rng.random()
        due = self._instance.now + interface.settings.hello_interval * early
        interface.hello_timer = self._instance.timers.arm(due, partial(self._tick, interface))

    def _tick(self, interface: Interface) -> None:
        self._due(interface)
        self._arm(interface)

    def receive(self, interface: Interface, source: int, packet: Packet, hello: Hello) -> None:
        """Process a hello that passed the checks of §8.2."""
        reason = self._mismatch(interface, hello)
        if reason is not None:
            self._instance.reject(
                reason, source, interface=interface.name, router_id=packet.router_id
            )
            return
        neighbor = self._identify(interface, source, packet.router_id)
        if neighbor is None:
            return
        known = neighbor.state
        declared = _declared(neighbor)
        neighbor.fire(NeighborEvent.HELLO_RECEIVED)
        neighbor.priority = hello.router_priority
        neighbor.designated_router = hello.designated_router
        neighbor.backup_designated_router = hello.backup_designated_router
        if self._instance.router_id in hello.neighbors:
            neighbor.fire(NeighborEvent.TWO_WAY_RECEIVED)
        else:
            neighbor.fire(NeighborEvent.ONE_WAY_RECEIVED)
        newly_heard = known < NeighborState.INIT
        restarted = known >= NeighborState.TWO_WAY and neighbor.state is NeighborState.INIT
        now_two_way = known < NeighborState.TWO_WAY <= neighbor.state
        if newly_heard or restarted or now_two_way:
            self._due(interface)
        if interface.broadcast and neighbor.state >= NeighborState.TWO_WAY:
            self._follow_declarations(neighbor, declared)

    def _follow_declarations(self, neighbor: Neighbor, before: tuple[int, bool, bool]) -> None:
        """What a bidirectional neighbor says of itself may matter to the election (§10.5)."""
        interface = neighbor.interface
        after = _declared(neighbor)
        _, designated, backup = after
        if interface.state is InterfaceState.WAITING:
            if backup or (designated and neighbor.backup_designated_router == 0):
                self._interface_event(interface, InterfaceEvent.BACKUP_SEEN)
        elif after != before:
            self._interface_event(interface, InterfaceEvent.NEIGHBOR_CHANGE)

    def _mismatch(self, interface: Interface, hello: Hello) -> str | None:
        """RFC 2328 §10.5; the network mask means nothing on point-to-point links."""
        if interface.broadcast and hello.network_mask != interface.network_mask:
            return "network-mask-mismatch"
        if hello.hello_interval != interface.settings.hello_interval:
            return "hello-interval-mismatch"
        if hello.router_dead_interval != interface.settings.router_dead_interval:
            return "dead-interval-mismatch"
        ours = self._transmitter.area_options(interface)
        if (hello.options ^ ours) & Options.E:
            return "options-mismatch"
        return None

    def _identify(self, interface: Interface, source: int, router_id: int) -> Neighbor | None:
        """Find the neighbor by router id; a second one on the link is turned away.

        The same address with another router id is a neighbor that restarted under a new name,
        once the old name has fallen silent or hears us no more: a stray hello must not end a
        live adjacency.
        """
        if interface.broadcast:
            return self._identify_by_address(interface, source, router_id)
        neighbor = interface.neighbors.get(router_id)
        if neighbor is not None:
            if neighbor.address != source:
                neighbor.address = source
                self._adjacency.readdressed(neighbor)
            return neighbor
        for other in list(interface.neighbors.values()):
            if other.address != source or self._lives(other):
                self._instance.reject(
                    "second-neighbor", source, interface=interface.name, router_id=router_id
                )
                return None
            other.fire(NeighborEvent.KILL_NBR)
        return self._adjacency.create(interface, router_id, source)

    def _identify_by_address(self, interface: Interface, source: int, router_id: int) -> Neighbor:
        """On broadcast networks (§10.5): another router id there is another router."""
        neighbor = interface.neighbors.get(source)
        if neighbor is not None and neighbor.router_id != router_id:
            neighbor.fire(NeighborEvent.KILL_NBR)
            neighbor = None
        return neighbor or self._adjacency.create(interface, router_id, source)

    def _lives(self, neighbor: Neighbor) -> bool:
        settings = neighbor.interface.settings
        heard_at = neighbor.dead_at - settings.router_dead_interval
        silence = self._instance.now - heard_at
        return (
            neighbor.state >= NeighborState.TWO_WAY
            and silence < _ALIVE_HELLOS * settings.hello_interval
        )


def _declared(neighbor: Neighbor) -> tuple[int, bool, bool]:
    """What the election looks at: priority, and whether it takes itself for DR, or backup."""
    return (
        neighbor.priority,
        neighbor.designated_router == neighbor.address,
        neighbor.backup_designated_router == neighbor.address,
    )
