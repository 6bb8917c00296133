"""The OSPFv2 engine: inputs in, outputs out, no clock, no sockets.

The engine wires the parts and dispatches to them. Work that can wait for the end of an input,
and gains from being done once for several (originating, encoding floods, TED blocks), happens
in ``drain``; so call ``drain`` after each ``handle`` and ``tick``, or after a batch of them,
and look at ``next_deadline`` after that.
"""

from __future__ import annotations

from fared.core.ids import AreaId, Prefix
from fared.core.rng import Rng
from fared.core.wire import DecodeError
from fared.ospf.adjacency import Adjacency
from fared.ospf.authenticate import refusal
from fared.ospf.border import Border
from fared.ospf.broadcast import adjacency_due
from fared.ospf.checks import SILENT, envelope_problem, header_problem
from fared.ospf.database import Database
from fared.ospf.events import (
    ExternalRoutes,
    Input,
    LinkChanged,
    LinkRemoved,
    LoadMeasured,
    Output,
    PacketReceived,
    RoutesComputed,
    SettingsApplied,
    ShutdownRequested,
)
from fared.ospf.exchange import Exchange
from fared.ospf.external import External
from fared.ospf.flooding import Flooding
from fared.ospf.hello import HelloProtocol
from fared.ospf.instance import Counters, Instance
from fared.ospf.interface import Interface, InterfaceEvent, InterfaceState
from fared.ospf.links import LinkManager
from fared.ospf.lsdb import LsaEntry
from fared.ospf.neighbor import Neighbor, NeighborState
from fared.ospf.originate import Originator
from fared.ospf.packet.codec import decode_packet
from fared.ospf.packet.lsa import LsType
from fared.ospf.packet.packets import (
    DatabaseDescription,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
    Packet,
)
from fared.ospf.retransmit import Retransmitter
from fared.ospf.settings import OspfSettings
from fared.ospf.snapshot import OspfSnapshot, take_snapshot
from fared.ospf.ted import TedBuilder
from fared.ospf.transmit import Transmitter


class OspfEngine:
    """One OSPF process (RFC 2328) of one router."""

    def __init__(self, settings: OspfSettings, rng: Rng) -> None:
        self._stopped = False
        self._start(settings, rng)

    def _start(self, settings: OspfSettings, rng: Rng) -> None:
        instance = self._instance = Instance(settings, rng)
        self._transmitter = Transmitter(instance)
        self._database = Database(instance, self)
        retransmitter = Retransmitter(instance)
        self._flooding = Flooding(
            instance, self._database, retransmitter, self._own_received, self._requests_served
        )
        self._exchange = Exchange(instance, self._transmitter, self._flooding, retransmitter)
        self._adjacency = Adjacency(
            instance, self._exchange, self._full_changed, self._heard_changed
        )
        self._hello = HelloProtocol(
            instance, self._transmitter, self._adjacency, self._interface_event
        )
        self._originator = Originator(instance, self._flooding)
        self._border = Border(instance, self._originator)
        self._external = External(instance, self._originator)
        self._ted = TedBuilder(instance)
        self._links = LinkManager(
            instance,
            hello=self._hello,
            adjacency=self._adjacency,
            originator=self._originator,
            transmitter=self._transmitter,
            database=self._database,
            ted=self._ted,
        )
        for area in settings.areas:
            self._links.ensure_area(area.area)

    # The contract

    def handle(self, event: Input, now: float) -> None:
        """Process one input."""
        if self._stopped:
            return
        self._instance.now = now
        match event:
            case PacketReceived():
                self._receive(event)
            case LinkChanged():
                self._links.changed(event.link, event.settings)
                self._border.stale = self._external.stale = True
            case LinkRemoved():
                self._links.removed(event.ifindex)
                self._border.stale = self._external.stale = True
            case LoadMeasured():
                self._links.load_measured(event.ifindex, event.utilized)
            case SettingsApplied():
                self._apply(event.settings)
            case ShutdownRequested():
                self._shutdown()
            case RoutesComputed():
                self._border.routes_computed(event)
                self._external.reached(event.asbrs)
            case ExternalRoutes():
                self._external.routes_changed(event)

    def tick(self, now: float) -> None:
        """Fire what is due."""
        self._instance.now = now
        self._instance.timers.fire(now)

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        return self._instance.timers.next_deadline()

    def drain(self) -> list[Output]:
        """Finish what handle and tick began and return all outputs, in order."""
        if not self._stopped:
            self._border.settle()
            self._external.settle()
            self._originator.settle()
            self._transmitter.flush()
            self._database.sweep()
            self._originator.settle()
            self._transmitter.flush()
            self._ted.flush()
        return self._instance.take_outputs()

    def snapshot(self, now: float) -> OspfSnapshot:
        """An immutable picture of the whole process."""
        return take_snapshot(self._instance, now)

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Interfaces that could have a full neighbor, those that have, neighbors still forming."""
        speaking = served = forming = 0
        for interface in self._instance.interfaces.values():
            if not interface.speaks:
                continue
            speaking += 1
            full = False
            for neighbor in interface.neighbors.values():
                if neighbor.state is NeighborState.FULL:
                    full = True
                elif _forming(neighbor):
                    forming += 1
            served += full
        return speaking, served, forming

    @property
    def in_several_areas(self) -> bool:
        """Whether routes are to be told to this engine (``RoutesComputed``).

        Also for which AS boundary routers there are besides this one.
        """
        return len(self._instance.areas) > 1 or self._external.minds_others

    @property
    def ranges(self) -> tuple[tuple[AreaId, Prefix], ...]:
        """The area ranges that this router stands for, being a border router (§3.5)."""
        if not self._instance.border:
            return ()
        return tuple(
            (area.area_id, item.prefix)
            for area in self._instance.areas.values()
            for item in area.settings.ranges
        )

    @property
    def counters(self) -> Counters:
        """Running totals since the start: for reading, without a snapshot of everything."""
        return self._instance.counters

    def activity(self) -> int:
        """LSAs originated, flooded, repeated or received so far: stands still in a quiet network."""
        return sum(self._instance.counters.lsas.values())

    # Packets

    def _receive(self, event: PacketReceived) -> None:
        instance = self._instance
        interface = instance.interfaces.get(event.ifindex)
        problem = envelope_problem(interface, event.source, event.destination)
        if problem is not None or interface is None:
            if problem not in SILENT:
                instance.reject(problem or "", event.source, ifindex=event.ifindex)
            return
        refused = refusal(instance, interface, event.source, event.payload)
        if refused is not None:
            instance.reject(
                refused.reason, event.source, interface=interface.name, what=refused.what
            )
            return
        try:
            packet = decode_packet(event.payload)
        except DecodeError as error:
            instance.reject(error.code, event.source, interface=interface.name, what=str(error))
            return
        problem = header_problem(instance, interface, event.source, packet)
        if problem is not None:
            instance.reject(
                problem, event.source, interface=interface.name, router_id=packet.router_id
            )
            return
        instance.counters.packets["received", packet.packet_type.label] += 1
        self._dispatch(interface, event.source, packet)

    def _dispatch(self, interface: Interface, source: int, packet: Packet) -> None:
        body = packet.body
        if isinstance(body, Hello):
            self._hello.receive(interface, source, packet, body)
            return
        neighbor = interface.neighbors[interface.key(packet.router_id, source)]
        match body:
            case DatabaseDescription():
                self._exchange.receive_description(neighbor, body)
            case LsRequest():
                self._exchange.receive_request(neighbor, body)
            case LsUpdate():
                self._flooding.receive_update(neighbor, body)
            case LsAck():
                self._flooding.receive_ack(neighbor, body)

    # What the parts tell each other

    def lsa_changed(self, entry: LsaEntry) -> None:
        """DatabaseWatcher: the TED follows the database."""
        self._ted.lsa_changed(entry)
        if entry.key.ls_type == LsType.AS_EXTERNAL:
            gone = entry.maxed(self._instance.now)
            self._external.lsa_changed(entry, None if gone else entry.body)

    def lsa_expired(self, entry: LsaEntry) -> None:
        """DatabaseWatcher: flood what has reached MaxAge."""
        self._flooding.flood(entry, None)

    def lsa_needs_refresh(self, entry: LsaEntry) -> None:
        """DatabaseWatcher: LSRefreshTime."""
        self._originator.refresh(entry)

    def lsa_removed(self, entry: LsaEntry) -> None:
        """DatabaseWatcher: a MaxAge LSA is gone."""
        self._originator.removed(entry)

    def _own_received(self, entry: LsaEntry) -> None:
        self._originator.own_received(entry)

    def _requests_served(self, neighbor: Neighbor) -> None:
        self._exchange.requests_served(neighbor)

    def _full_changed(self, interface: Interface, reason: str) -> None:
        self._originator.link_changed(interface)
        self._border.stale = True
        self._ted.links_changed(interface.settings.area, f"{interface.name} {reason}")

    def _heard_changed(self, interface: Interface) -> None:
        if interface.broadcast:
            self._ted.links_changed(interface.settings.area, f"{interface.name} neighbors")
            self._links.fire(interface, InterfaceEvent.NEIGHBOR_CHANGE)

    def _interface_event(self, interface: Interface, event: InterfaceEvent) -> None:
        self._links.fire(interface, event)

    # Operation

    def _apply(self, settings: OspfSettings) -> None:
        """Take new settings; a new router id is a new router and starts from nothing."""
        instance = self._instance
        if settings.router_id != instance.settings.router_id:
            self._renumber(settings)
            return
        instance.settings = settings
        for area_settings in settings.areas:
            self._links.ensure_area(area_settings.area)
            self._links.area_changed(area_settings)
        self._border.everything_changed()
        self._external.everything_changed()
        self._originator.everything_changed()
        self._ted.all_links_changed("settings")

    def _renumber(self, settings: OspfSettings) -> None:
        old = self._instance
        interfaces = list(old.interfaces.values())
        self._say_goodbye()
        for interface in interfaces:
            self._links.removed(interface.ifindex)
        outputs = self._ted.withdraw_all()
        leftovers = [*old.take_outputs(), *outputs]
        counters, external = old.counters, self._external.known
        self._start(settings, old.rng)
        self._instance.now = old.now
        self._instance.counters = counters
        self._external.routes_changed(external)
        for output in leftovers:
            self._instance.emit(output)
        for interface in interfaces:
            self._links.changed(interface.link, interface.settings)

    def _shutdown(self) -> None:
        self._say_goodbye()
        self._instance.timers.clear()
        self._stopped = True

    def _say_goodbye(self) -> None:
        """Flush our LSAs while the neighbors still listen, then tell them that we are gone."""
        self._originator.flush_all()
        for interface in self._instance.interfaces.values():
            if interface.speaks:
                self._transmitter.goodbye(interface)


def _forming(neighbor: Neighbor) -> bool:
    """Whether more is to come of a neighbor; two routers that serve no LAN stay in 2-Way."""
    if neighbor.state is NeighborState.TWO_WAY:
        return neighbor.interface.state is InterfaceState.WAITING or adjacency_due(neighbor)
    return neighbor.state not in (NeighborState.DOWN, NeighborState.FULL)
