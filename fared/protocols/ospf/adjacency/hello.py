"""The Hello protocol (RFC 2328 §9.5, §10.5).

Hellos are sent periodically, and at once when a link comes up, when a neighbor appears, and when
one no longer lists us. So an adjacency forms within a few round trips.

``repeated`` is a fast path beside ``receive``: tests/igp/test_repeated_hellos.py proves them equal;
row ``repeated hellos``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import dotted
from fared.protocols.igp.events import PacketReceived
from fared.protocols.igp.refusals import Differs
from fared.protocols.ospf.adjacency.detection import FailureDetection
from fared.protocols.ospf.adjacency.fsm import Adjacencies
from fared.protocols.ospf.adjacency.problems import problem_of
from fared.protocols.ospf.adjacency.subnets import Subnets
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceEvent, InterfaceState, Neighbor
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.packets import Hello, Options, Packet, PacketType
from fared.protocols.ospf.processing.transmit import Transmitter
from fared.protocols.ospf.settings import InterfaceSettings

_JITTER = 0.1
"""Part of HelloInterval by which a hello may be early: at random, and to share a wakeup."""
_TYPE, _ROUTER_ID = slice(1, 2), slice(4, 8)
"""In the packet header (RFC 2328 §A.3.1)."""
_HELLO = bytes((PacketType.HELLO,))
_LABEL = PacketType.HELLO.label
_ALIVE_HELLOS = 2
"""A neighbor with a hello within this many intervals is alive; no other replaces it."""
MAX_LAN_NEIGHBORS = 256
"""On one broadcast network; a hello with all of them fits into an Ethernet frame."""


class HelloProtocol:
    """Sends and receives hellos on all interfaces.

    ``interface_event`` is called with the interface events that hellos cause (RFC 2328 §9.2).
    """

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        adjacency: Adjacencies,
        detection: FailureDetection,
        *,
        subnets: Subnets,
        interface_event: Callable[[Interface, InterfaceEvent], None],
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter
        self._adjacency = adjacency
        self._detection = detection
        self._subnets = subnets
        self._interface_event = interface_event

    def start(self, interface: Interface) -> None:
        """Send the first hello now, then one every HelloInterval (§9.5), each a little early.

        Hellos of all interfaces leave together, since a wakeup costs more than a hello.
        """
        interface.tx.hello()
        self._arm(interface)

    def stop(self, interface: Interface) -> None:
        """Stop sending hellos."""
        self._process.timers.cancel(interface.hello_timer)
        self._process.timers.cancel(interface.move_timer)
        interface.hello_timer = interface.move_timer = None

    def settings_changed(self, interface: Interface, former: InterfaceSettings) -> None:
        """Send a hello at once if an interval changed, and the next ones by the new interval.

        The neighbor refuses the hellos until it has the same intervals (§10.5). So that the
        adjacency survives if it has them soon, its silence is judged by a longer dead interval at
        once, and by a shorter one from its next hello on.
        """
        settings = interface.settings
        longer = settings.router_dead_interval - former.router_dead_interval
        if longer == 0 and settings.hello_interval == former.hello_interval:
            return
        for neighbor in interface.neighbors.values():
            neighbor.dead_at += max(0, longer)
        if interface.hello_timer is not None:
            self.stop(interface)
            self.start(interface)

    def _arm(self, interface: Interface) -> None:
        now, interval = self._process.now, interface.settings.hello_interval
        due = now + interval * (1 - _JITTER * self._process.rng.random())
        tick = partial(self._tick, interface)
        interface.hello_timer = self._process.timers.arm(due, tick, now + interval * (1 - _JITTER))

    def _tick(self, interface: Interface) -> None:
        self._process.routine += 1
        interface.tx.hello()
        self._arm(interface)

    def repeated(self, received: PacketReceived) -> bool:
        """Process a packet that equals the last hello of its neighbor; False: it does not.

        While nothing else has changed, it passes the checks of §8.2, and only restarts the
        inactivity timer (§10.5). Authenticated hellos are verified each time.
        """
        interface = self._instance.interfaces.get(received.ifindex)
        if interface is None or received.payload[_TYPE] != _HELLO:
            return False
        router_id = int.from_bytes(received.payload[_ROUTER_ID], "big")
        # By either key (``Interface.key``): if it is another one, its last hello is another, too.
        neighbors = interface.neighbors
        neighbor = neighbors.get(router_id) or neighbors.get(received.source)
        if neighbor is None or neighbor.last_hello != _circumstances(neighbor, received):
            return False
        interface.counters.received[_LABEL] += 1
        self._adjacency.restart_inactivity(neighbor)
        return True

    def receive(
        self, interface: Interface, received: PacketReceived, packet: Packet, hello: Hello
    ) -> None:
        """Process a hello that passed the checks of §8.2 (§10.5)."""
        source = received.source
        # RFC 2328 §10.5: mask, intervals and E-bit must match
        found = self._mismatch(interface, source, packet.router_id, hello)
        if found is not None:
            self._reject(interface, source, packet.router_id, *found)
            return
        # §10.5: match the source to a neighbor, or create one in state Down
        neighbor = self._identify(interface, source, packet.router_id)
        if neighbor is None:
            return
        self._process.refusals.accepted(interface.ifindex, source, dotted(packet.router_id))
        previous = neighbor.state
        declared = _declared(neighbor)
        # §10.5: HelloReceived restarts the inactivity timer
        neighbor.fire(NeighborEvent.HELLO_RECEIVED)
        # RFC 3623 §3.1: a neighbor that restarts stays DR or BDR, until it declares so again
        if neighbor.helping is None:
            neighbor.priority = hello.router_priority
            neighbor.designated_router = hello.designated_router
            neighbor.backup_designated_router = hello.backup_designated_router
        neighbor.lists_us = self._instance.router_id in hello.neighbors
        if not self._detection.admits(neighbor, hello, received.payload):
            self._reject(interface, source, packet.router_id, "lls-block")
        # §10.5: 2-WayReceived if the neighbor lists this router, else 1-WayReceived
        if neighbor.lists_us:
            if not neighbor.awaits_bfd:
                neighbor.fire(NeighborEvent.TWO_WAY_RECEIVED)
        else:
            neighbor.fire(NeighborEvent.ONE_WAY_RECEIVED)
        # Not in §9.5: a hello at once when the neighbor appears, and when it begins or ceases to
        # list this router. The adjacency would otherwise wait for HelloInterval.
        appeared = previous < NeighborState.INIT
        restarted = previous >= NeighborState.TWO_WAY and neighbor.state is NeighborState.INIT
        now_two_way = previous < NeighborState.TWO_WAY <= neighbor.state
        if appeared or restarted or now_two_way:
            interface.tx.hello()
        # §10.5: after 1-WayReceived processing stops
        if interface.broadcast and neighbor.state >= NeighborState.TWO_WAY:
            self._follow_declarations(neighbor, declared)
        self._tell_problem(neighbor)
        # One that does not list us may be complained of.
        again = interface.settings.authentication or neighbor.state < NeighborState.TWO_WAY
        neighbor.last_hello = None if again else _circumstances(neighbor, received)

    def _tell_problem(self, neighbor: Neighbor) -> None:
        """Log why a neighbor is not used all the same."""
        process, source = self._process, neighbor.address
        problem = problem_of(neighbor, process.now)
        if problem is not None and process.may_log(source, problem.cause):
            process.log(
                "warning",
                "ospf-neighbor-problem",
                reason=problem.cause,
                source=dotted(source),
                interface=neighbor.interface.name,
                router_id=dotted(neighbor.router_id),
                what=problem.text,
            )

    def _follow_declarations(self, neighbor: Neighbor, before: tuple[int, bool, bool]) -> None:
        """Fire BackupSeen or NeighborChange if a neighbor's priority, DR or BDR changed (§10.5)."""
        interface = neighbor.interface
        after = _declared(neighbor)
        _, designated, backup = after
        # RFC 2328 §10.5, Waiting: it declares itself BDR, or DR without a BDR
        if interface.state is InterfaceState.WAITING:
            # RFC 3623 §2: a router that restarts has the office that its neighbors list it for
            if self._instance.restarting:
                backup = self._resume_office(neighbor) or backup
            if backup or (designated and neighbor.backup_designated_router == 0):
                self._interface_event(interface, InterfaceEvent.BACKUP_SEEN)
        # §10.5, otherwise: its priority changed, or it begins or ceases to declare itself DR or BDR
        elif after != before:
            self._interface_event(interface, InterfaceEvent.NEIGHBOR_CHANGE)

    def _resume_office(self, neighbor: Neighbor) -> bool:
        """Declare this router DR or BDR again, if a neighbor lists it as such; False: none does."""
        interface = neighbor.interface
        if neighbor.designated_router == interface.address:
            interface.designated_router = interface.address
        elif neighbor.backup_designated_router == interface.address:
            interface.backup_designated_router = interface.address
        else:
            return False
        return True

    def _mismatch(
        self, interface: Interface, source: int, router_id: int, hello: Hello
    ) -> tuple[str, Differs] | None:
        """What of a hello does not match this interface (RFC 2328 §10.5), or None."""
        settings = interface.settings
        if not self._subnets.review(interface, source, router_id, hello):
            return "other-subnet", None
        # RFC 2328 §10.5: the mask is ignored on point-to-point networks
        if interface.broadcast and hello.network_mask != interface.network_mask:
            masks = dotted(hello.network_mask), dotted(interface.network_mask)
            return "network-mask-mismatch", masks
        if hello.hello_interval != settings.hello_interval:
            return "hello-interval-mismatch", (hello.hello_interval, settings.hello_interval)
        if hello.router_dead_interval != settings.router_dead_interval:
            intervals = hello.router_dead_interval, settings.router_dead_interval
            return "dead-interval-mismatch", intervals
        # §10.5: the E-bit must match the area; all other options are ignored
        ours = self._transmitter.area_options(interface)
        if (hello.options ^ ours) & Options.E:
            return "options-mismatch", None
        return None

    def _identify(self, interface: Interface, source: int, router_id: int) -> Neighbor | None:
        """Find the neighbor by router id (§10.5); a second one on the link is rejected.

        A new router id at the known address, or a new address of the known router id, is a
        restarted neighbor. It replaces the old one only when that is silent or no longer lists us.
        This is stricter than §10.5, which adopts any new address: a stray hello must not end an
        adjacency or move its next hop.
        """
        if interface.broadcast:
            return self._identify_by_address(interface, source, router_id)
        neighbor = interface.neighbors.get(router_id)
        if neighbor is not None and neighbor.address == source:
            return neighbor
        for other in list(interface.neighbors.values()):
            moved = other is neighbor
            if self._is_alive(other) or not (moved or other.address == source):
                reason = "neighbor-address" if moved else "second-neighbor"
                self._reject(interface, source, router_id, reason)
                return None
            other.fire(NeighborEvent.KILL_NBR)
        return self._adjacency.create(interface, router_id, source)

    def _identify_by_address(
        self, interface: Interface, source: int, router_id: int
    ) -> Neighbor | None:
        """On broadcast networks, find the neighbor by address (§10.5).

        §10.5 only stores a changed router id; here the neighbor is a new one, since the router
        that the adjacency was formed with is gone.
        """
        neighbor = interface.neighbors.get(source)
        if neighbor is not None and neighbor.router_id != router_id:
            neighbor.fire(NeighborEvent.KILL_NBR)
            neighbor = None
        if neighbor is None and not self._make_room(interface):
            self._reject(interface, source, router_id, "too-many-neighbors")
            return None
        return neighbor or self._adjacency.create(interface, router_id, source)

    def _make_room(self, interface: Interface) -> bool:
        """Whether one more neighbor fits; the oldest that is not two-way is removed for it.

        Not in RFC 2328: sources are easily forged, and a hello must hold all neighbors.
        """
        if len(interface.neighbors) < MAX_LAN_NEIGHBORS:
            return True
        idle = [n for n in interface.neighbors.values() if n.state < NeighborState.TWO_WAY]
        if not idle:
            return False
        oldest = min(idle, key=lambda neighbor: (neighbor.dead_at, neighbor.address))
        oldest.fire(NeighborEvent.KILL_NBR)
        return True

    def _reject(
        self,
        interface: Interface,
        source: int,
        router_id: int,
        reason: str,
        differs: Differs = None,
    ) -> None:
        name = dotted(router_id)
        process = self._process
        process.refusals.add(interface, source, (reason, differs), process.now, name)
        process.reject(
            reason, source, 0.0, differs, interface=interface, kind=_LABEL, router_id=name
        )

    def _is_alive(self, neighbor: Neighbor) -> bool:
        settings = neighbor.interface.settings
        received_at = neighbor.dead_at - settings.router_dead_interval
        silence = self._process.now - received_at
        return (
            neighbor.state >= NeighborState.TWO_WAY
            and silence < _ALIVE_HELLOS * settings.hello_interval
        )


def _circumstances(neighbor: Neighbor, received: PacketReceived) -> tuple[object, ...]:
    """The values that determine the effect of a hello from a known neighbor."""
    interface = neighbor.interface
    return (
        received,
        interface.link,
        interface.settings,
        interface.borrowable,
        interface.state,
        neighbor.state,
    )


def _declared(neighbor: Neighbor) -> tuple[int, bool, bool]:
    """Priority, and whether the neighbor declares itself DR or BDR: changes count (§10.5)."""
    return (
        neighbor.priority,
        neighbor.designated_router == neighbor.address,
        neighbor.backup_designated_router == neighbor.address,
    )
