"""Local links: running the interface state machine (RFC 2328 §9) as the kernel's links change."""

from __future__ import annotations

from collections.abc import Callable

from fared.core.ids import AreaId
from fared.core.links import Link
from fared.ospf import contents
from fared.ospf.adjacency import Adjacency
from fared.ospf.broadcast import BroadcastNetworks
from fared.ospf.database import Database
from fared.ospf.events import JoinGroup, LeaveGroup
from fared.ospf.hello import HelloProtocol
from fared.ospf.instance import Area, Instance
from fared.ospf.interface import (
    INTERFACE_TABLE,
    Interface,
    InterfaceAction,
    InterfaceEvent,
    InterfaceState,
)
from fared.ospf.neighbor import NeighborEvent
from fared.ospf.originate import Originator
from fared.ospf.settings import AreaSettings, InterfaceSettings
from fared.ospf.ted import TedBuilder
from fared.ospf.transmit import Transmitter


class LinkManager:
    """Creates, moves and removes interfaces."""

    def __init__(
        self,
        instance: Instance,
        *,
        hello: HelloProtocol,
        adjacency: Adjacency,
        originator: Originator,
        transmitter: Transmitter,
        database: Database,
        ted: TedBuilder,
    ) -> None:
        self._instance = instance
        self._hello = hello
        self._adjacency = adjacency
        self._originator = originator
        self._transmitter = transmitter
        self._database = database
        self._ted = ted
        self._lent: tuple[int, ...] = ()
        self._broadcast = BroadcastNetworks(instance, self.fire, self._designation_changed)
        self._actions: dict[InterfaceAction, Callable[[Interface], InterfaceState | None]] = {
            InterfaceAction.START: self._start,
            InterfaceAction.ELECT: self._broadcast.elect,
            InterfaceAction.RESET: self._reset,
        }

    def ensure_area(self, area_id: AreaId) -> None:
        """Make an area exist."""
        if area_id in self._instance.areas:
            return
        known = {area.area: area for area in self._instance.settings.areas}
        area = Area(known.get(area_id, AreaSettings(area_id)))
        self._instance.areas[area_id] = area
        self._originator.add_area(area)

    def area_changed(self, settings: AreaSettings) -> None:
        """An area became stub or ceased to be: adjacencies in it form again."""
        area = self._instance.areas[settings.area]
        if area.settings == settings:
            return
        area.settings = settings
        for interface in self._instance.area_interfaces(settings.area):
            self._adjacency.kill_all(interface, NeighborEvent.KILL_NBR)
            interface.hello_due = interface.speaks
            self._instance.unsent[interface.ifindex] = interface

    def changed(self, link: Link, settings: InterfaceSettings | None) -> None:
        """A link appeared or changed, or OSPF was switched on or off on it."""
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
            self._lend(interface)

    def removed(self, ifindex: int) -> None:
        """The kernel has no such link any more."""
        interface = self._instance.interfaces.get(ifindex)
        if interface is not None:
            self._drop(interface, polite=False)

    def _lend(self, changed: Interface) -> None:
        """Let unnumbered links follow the addresses of the loopbacks that they borrow."""
        if not changed.loopback:
            return
        lent = self._lent = contents.lent_addresses(self._instance)
        for interface in self._instance.interfaces.values():
            if interface.lent == lent:
                continue
            before = (interface.unnumbered, interface.address)
            interface.lent = lent
            if (interface.unnumbered, interface.address) == before:
                continue
            if interface.speaks:
                self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
            self._follow(interface)

    def load_measured(self, ifindex: int, utilized: float | None) -> None:
        """Note the outbound load of a link, bytes/s; None: no longer known."""
        interface = self._instance.interfaces.get(ifindex)
        if interface is not None:
            interface.utilized = utilized
            self._originator.bandwidth_changed(interface)

    def _add(self, link: Link, settings: InterfaceSettings) -> None:
        self.ensure_area(settings.area)
        interface = Interface(link, settings)
        interface.lent = self._lent
        self._instance.add_interface(interface)
        if not interface.loopback and not settings.passive:
            self._originator.add_interface(interface)
            self._originator.bandwidth_changed(interface)
        self._follow(interface)
        self._lend(interface)

    def _drop(self, interface: Interface, *, polite: bool) -> None:
        """Stop OSPF on an interface; neighbors are told if the link still carries packets."""
        if polite and interface.speaks:
            self._originator.remove_network(interface)
            self._transmitter.goodbye(interface)
        self.fire(interface, InterfaceEvent.INTERFACE_DOWN)
        self._instance.timers.cancel(interface.announce_timer)
        self._instance.remove_interface(interface.ifindex)
        self._originator.remove_interface(interface)
        self._lend(interface)

    def _update(self, interface: Interface, link: Link, settings: InterfaceSettings) -> None:
        if (interface.link, interface.settings) == (link, settings):
            return
        reprioritised = interface.settings.router_priority != settings.router_priority
        interface.link, interface.settings = link, settings
        if reprioritised:
            self.fire(interface, InterfaceEvent.NEIGHBOR_CHANGE)
        self._originator.bandwidth_changed(interface)
        before = interface.state
        self._follow(interface)
        if interface.state is before:
            self._originator.link_changed(interface)
        self._ted.links_changed(settings.area, f"{interface.name} changed")

    def _follow(self, interface: Interface) -> None:
        """Bring the interface's state in line with its link."""
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
        if target is InterfaceState.POINT_TO_POINT and interface.speaks:
            self._originator.link_came_up(interface)
        else:
            self._originator.link_changed(interface)

    def _start(self, interface: Interface) -> InterfaceState:
        """InterfaceUp (§9.3)."""
        if not interface.settings.passive:
            self._instance.emit(JoinGroup(interface.ifindex))
            self._hello.start(interface)
        if not interface.broadcast:
            return InterfaceState.POINT_TO_POINT
        if not interface.settings.passive:
            self._originator.add_network(interface)
        return self._broadcast.start(interface)

    def _designation_changed(self, interface: Interface) -> None:
        self._originator.link_changed(interface)
        self._ted.links_changed(interface.settings.area, f"{interface.name} designated router")

    def _reset(self, interface: Interface) -> None:
        """InterfaceDown (§9.3): timers off, neighbors gone, link-local LSAs forgotten."""
        if not interface.speaks:
            return
        self._hello.stop(interface)
        self._broadcast.stop(interface)
        self._adjacency.kill_all(interface, NeighborEvent.LL_DOWN)
        self._database.drop_all(interface.lsdb)
        self._originator.remove_network(interface)
        self._instance.emit(LeaveGroup(interface.ifindex))


def _needs_restart(interface: Interface, link: Link, settings: InterfaceSettings) -> bool:
    """Whether a change touches what adjacencies are built on."""
    old = interface.settings
    return (
        (old.area, old.network_type, old.passive)
        != (settings.area, settings.network_type, settings.passive)
        or interface.link.loopback != link.loopback
        or (interface.link.up and link.up and interface.link.ipv4()[:1] != link.ipv4()[:1])
    )
