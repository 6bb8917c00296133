"""Local links: the interface state machine (RFC 2328 §9.3), driven by the kernel's links."""

from __future__ import annotations

from collections.abc import Callable

from fared.core.ids import AreaId
from fared.core.links import InterfaceAddress, Link
from fared.protocols.igp.events import CloseInterface, OpenInterface
from fared.protocols.ospf.adjacency.broadcast import BroadcastNetworks
from fared.protocols.ospf.adjacency.detection import FailureDetection
from fared.protocols.ospf.adjacency.fsm import Adjacencies
from fared.protocols.ospf.adjacency.hello import HelloProtocol
from fared.protocols.ospf.flooding.database import Database
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.interface import (
    INTERFACE_TABLE,
    Interface,
    InterfaceAction,
    InterfaceEvent,
    InterfaceState,
)
from fared.protocols.ospf.neighbor import NeighborEvent
from fared.protocols.ospf.origination import contents
from fared.protocols.ospf.origination.originate import Originator
from fared.protocols.ospf.processing.checks import source_problem, unicasts_of
from fared.protocols.ospf.processing.transmit import Transmitter
from fared.protocols.ospf.restarter import Restarter
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings
from fared.protocols.ospf.ted.builder import TedBuilder


class LinkManager:
    """Creates, moves and removes interfaces."""

    def __init__(
        self,
        instance: Instance,
        *,
        hello: HelloProtocol,
        adjacency: Adjacencies,
        detection: FailureDetection,
        originator: Originator,
        transmitter: Transmitter,
        database: Database,
        ted: TedBuilder,
        restarter: Restarter,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._hello = hello
        self._adjacency = adjacency
        self._detection = detection
        self._originator = originator
        self._transmitter = transmitter
        self._database = database
        self._ted = ted
        self._restarter = restarter
        self._borrowable: tuple[int, ...] = ()
        self._readdressed = False
        self._broadcast = BroadcastNetworks(instance, self.fire, self._designated_router_changed)
        self._actions: dict[InterfaceAction, Callable[[Interface], InterfaceState | None]] = {
            InterfaceAction.START: self._start,
            InterfaceAction.ELECT: self._broadcast.elect,
            InterfaceAction.RESET: self._reset,
        }

    def ensure_area(self, area_id: AreaId) -> None:
        """Create an area that does not exist yet."""
        if area_id in self._instance.areas:
            return
        known = {area.area: area for area in self._instance.settings.areas}
        area = Area(known.get(area_id, AreaSettings(area_id)))
        self._instance.areas[area_id] = area
        self._originator.add_area(area)

    def area_changed(self, settings: AreaSettings) -> None:
        """Apply new settings of an area; adjacencies end if ``stub`` changed.

        Both ends of an adjacency must agree on the E-bit only (RFC 2328 §10.5).
        """
        area = self._instance.areas[settings.area]
        if area.settings == settings:
            return
        agreed = area.settings.stub == settings.stub
        area.settings = settings
        if agreed:
            return
        for interface in self._instance.area_interfaces(settings.area):
            self._adjacency.kill_all(interface, NeighborEvent.KILL_NBR)
            interface.tx.hello()

    def changed(self, link: Link, settings: InterfaceSettings | None) -> None:
        """Process a new or changed link, or new settings; ``settings`` None: OSPF is off on it."""
        self._instance.participants.changed()
        self._readdressed |= self._instance.own_addresses.put(link.ifindex, link.ipv4())
        interface = self._instance.interfaces.get(link.ifindex)
        if settings is None:
            if interface is not None:
                self._drop(interface, polite=link.up)
            return
        if interface is not None and _needs_restart(interface, link, settings):
            self._drop(interface, polite=link.up)
            interface = None
        if interface is None:
            self._add(link, settings)
        else:
            self._update(interface, link, settings)
            self._update_unnumbered(interface)

    def removed(self, ifindex: int) -> None:
        """Process the removal of a link."""
        self._instance.participants.changed()
        self._readdressed |= self._instance.own_addresses.put(ifindex, ())
        interface = self._instance.interfaces.get(ifindex)
        if interface is not None:
            self._drop(interface, polite=False)

    def clear(self, ifindex: int, router_id: int) -> None:
        """End the adjacency with a router; our next hello, at once, no longer lists it."""
        interface = self._instance.interfaces.get(ifindex)
        for neighbor in () if interface is None else list(interface.neighbors.values()):
            if neighbor.router_id == router_id:
                neighbor.fire(NeighborEvent.KILL_NBR)
                neighbor.interface.tx.hello()

    def settle(self) -> None:
        """End the adjacencies whose hellos are refused since our addresses changed."""
        if not self._readdressed:
            return
        self._readdressed = False
        for interface in self._instance.interfaces.values():
            for neighbor in list(interface.neighbors.values()):
                if source_problem(self._instance, interface, neighbor.address):
                    neighbor.fire(NeighborEvent.KILL_NBR)

    def _update_unnumbered(self, changed: Interface) -> None:
        """Update unnumbered links after a loopback has changed, whose addresses they borrow."""
        if not changed.loopback:
            return
        borrowable = self._borrowable = contents.loopback_addresses(self._instance)
        for interface in self._instance.interfaces.values():
            if interface.borrowable == borrowable:
                continue
            before = (interface.unnumbered, interface.address)
            interface.borrowable = borrowable
            if (interface.unnumbered, interface.address) == before:
                continue
            if interface.is_active:
                self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
            self._apply_link_state(interface)

    def _add(self, link: Link, settings: InterfaceSettings) -> None:
        self.ensure_area(settings.area)
        interface = Interface(link, settings, self._instance.unsent)
        interface.borrowable = self._borrowable
        self._instance.add_interface(interface)
        if not interface.loopback and not settings.passive:
            self._originator.add_interface(interface)
            self._originator.bandwidth_changed(interface)
        self._apply_link_state(interface)
        self._update_unnumbered(interface)

    def _drop(self, interface: Interface, *, polite: bool) -> None:
        """Stop OSPF on an interface; ``polite``: with a final hello, as the link is up."""
        if polite and interface.is_active:
            self._originator.remove_network(interface)
            self._transmitter.final_hello(interface)
        self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
        self._instance.remove_interface(interface.ifindex)
        self._originator.remove_interface(interface)
        self._update_unnumbered(interface)

    def _update(self, interface: Interface, link: Link, settings: InterfaceSettings) -> None:
        """Apply a changed link, or changed settings, to an interface that exists."""
        if (interface.link, interface.settings) == (link, settings):
            return
        priority_changed = interface.settings.router_priority != settings.router_priority
        bfd_changed = interface.settings.bfd != settings.bfd
        former, mtu = interface.settings, (interface.link.mtu, interface.settings.mtu_ignore)
        interface.link, interface.settings = link, settings
        if bfd_changed:
            self._detection.settings_changed(interface)
        if priority_changed:
            self.fire(interface, InterfaceEvent.NEIGHBOR_CHANGE)
        if link.up:  # else nothing is advertised of it, and neighbors wait for the loss
            self._originator.bandwidth_changed(interface)
        before = interface.state
        self._apply_link_state(interface)
        if interface.is_active:
            self._open(interface)
        self._hello.settings_changed(interface, former)
        if (link.mtu, settings.mtu_ignore) != mtu:
            self._adjacency.mtu_changed(interface)
        if interface.state is before:
            self._originator.link_changed(interface)
        self._ted.interface_changed(interface, "changed")

    def _apply_link_state(self, interface: Interface) -> None:
        """Fire the interface event for the state of the link (RFC 2328 §9.2)."""
        if not interface.link.up:
            self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
        elif interface.loopback:
            self.fire(interface, InterfaceEvent.LOOP_IND)
        elif interface.addresses or (interface.unnumbered and not interface.settings.passive):
            self.fire(interface, InterfaceEvent.INTERFACE_UP)

    def fire(self, interface: Interface, event: InterfaceEvent) -> None:
        """Run an event through the interface state machine."""
        before = interface.state
        transition = INTERFACE_TABLE.find(interface.state, event)
        if transition is None:
            return
        decided = None
        if transition.action is not None:
            decided = self._actions[transition.action](interface)
        target = transition.target or decided
        if target is None or target is before:
            return
        interface.state = target
        self._ted.interface_changed(interface, target.value)
        # RFC 2328 §12.4 (2): the interface state changed
        if target is InterfaceState.POINT_TO_POINT and interface.is_active:
            self._originator.link_came_up(interface)
        else:
            self._originator.link_changed(interface)

    def move(self, interface: Interface, address: InterfaceAddress) -> None:
        """Let an interface speak from another of its addresses, which forms adjacencies anew."""
        self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
        interface.chosen = address
        self._apply_link_state(interface)

    def _start(self, interface: Interface) -> InterfaceState:
        """InterfaceUp in state Down (§9.3)."""
        # RFC 2328 §9.3: start the hello timer
        if not interface.settings.passive:
            self._open(interface)
            self._restarter.link_up(interface)
            self._hello.start(interface)
        # §9.3: Point-to-point, or on broadcast networks Waiting or DR Other
        if not interface.broadcast:
            return InterfaceState.POINT_TO_POINT
        if not interface.settings.passive:
            self._originator.add_network(interface)
        return self._broadcast.start(interface)

    def _open(self, interface: Interface) -> None:
        """Open its sockets, or tell them that other unicasts can come from the link now."""
        unicasts = unicasts_of(interface)
        if unicasts != interface.unicasts:
            interface.unicasts = unicasts
            self._process.emit(OpenInterface(interface.ifindex, unicasts))

    def _designated_router_changed(self, interface: Interface) -> None:
        """Reconsider the LSAs of a network with a new DR or BDR (§12.4 (3))."""
        self._originator.link_changed(interface)
        self._ted.links_changed(interface.settings.area, f"{interface.name} designated router")

    def _reset(self, interface: Interface) -> None:
        """InterfaceDown, LoopInd (§9.3): disable timers, remove neighbors and link-local LSAs."""
        if not interface.is_active:
            return
        # RFC 2328 §9.3 fires KillNbr; LLDown has the same action and names the cause
        self._hello.stop(interface)
        self._broadcast.stop(interface)
        self._adjacency.kill_all(interface, NeighborEvent.LL_DOWN)
        self._database.drop_all(interface.lsdb)
        self._originator.remove_network(interface)
        interface.unicasts = None
        self._process.emit(CloseInterface(interface.ifindex))


def _needs_restart(interface: Interface, link: Link, settings: InterfaceSettings) -> bool:
    """Whether a change requires new adjacencies: area, network type, passive or address."""
    old = interface.settings
    return (
        (old.area, old.network_type, old.passive)
        != (settings.area, settings.network_type, settings.passive)
        or interface.link.loopback != link.loopback
        or (interface.link.up and link.up and not interface.keeps_own(link))
    )
