"""The OSPFv2 engine: from inputs to outputs, without clock or sockets.

The engine connects the parts and dispatches to them. Work that is done once for several inputs
(originating, encoding floods, TED blocks) happens in ``take_outputs``; so call it after each
``handle`` and ``tick``, or after a batch of them, until it returns nothing, and read
``next_deadline`` after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from fared.core.bfd import BfdChanged
from fared.core.filters import Withheld
from fared.core.ids import AreaId, NodeId, Prefix, dotted
from fared.core.rng import Rng
from fared.paths.te.budget import AnnounceBudget, count_ends
from fared.paths.ted.events import AreaRange, EndsCounted, RoutesComputed
from fared.protocols.igp.database_limit import LimitView
from fared.protocols.igp.dynamic_flooding import TopologyView
from fared.protocols.igp.engine import ProcessEngine
from fared.protocols.igp.events import (
    ExternalRoutes,
    GracefulRestartBegun,
    GracefulRestartRequested,
    InformationOffered,
    LimitsReset,
    LinkChanged,
    LinkRemoved,
    LoadsMeasured,
    NeighborCleared,
    PacketReceived,
    Received,
    SettingsApplied,
    ShutdownRequested,
    each,
)
from fared.protocols.ospf.adjacency.detection import FailureDetection
from fared.protocols.ospf.adjacency.exchange import Exchange
from fared.protocols.ospf.adjacency.fsm import Adjacencies
from fared.protocols.ospf.adjacency.hello import HelloProtocol
from fared.protocols.ospf.adjacency.helper import HelpEnded, RestartHelper
from fared.protocols.ospf.adjacency.progress import adjacency_progress
from fared.protocols.ospf.adjacency.requests import Requests
from fared.protocols.ospf.adjacency.subnets import Subnets
from fared.protocols.ospf.events import Input, Output
from fared.protocols.ospf.flooding.database import Database, DatabaseWatcher
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceEvent
from fared.protocols.ospf.links import LinkManager
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.origination.border import Border
from fared.protocols.ospf.origination.derated import DeratedLinks
from fared.protocols.ospf.origination.external import External
from fared.protocols.ospf.origination.originate import Originator
from fared.protocols.ospf.origination.self_lsas import SelfLsas
from fared.protocols.ospf.packet.body import is_te_lsa
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.processing.transmit import Transmitter
from fared.protocols.ospf.reception import Reception, is_acknowledgment
from fared.protocols.ospf.restarter import Restarter
from fared.protocols.ospf.route_tags import RouteTags
from fared.protocols.ospf.settings import OspfSettings
from fared.protocols.ospf.ted.builder import TedBuilder


class OspfEngine(ProcessEngine[Output]):
    """One OSPF process (RFC 2328) of one router."""

    _ends_with_publishing = True

    def __init__(self, settings: OspfSettings, rng: Rng) -> None:
        instance = self._instance = Instance(settings, rng)
        super().__init__(instance.process)
        self._begun = False
        self._transmitter = Transmitter(instance)
        self._database = Database(instance, self._database_watcher())
        retransmitter = Retransmitter(instance)
        requests = Requests(instance, self._transmitter)
        self._flooding = self._make_flooding(retransmitter, requests)
        self._exchange = Exchange(
            instance, self._transmitter, self._flooding, retransmitter, requests
        )
        self._detection = FailureDetection(instance)
        self._adjacency = self._make_adjacencies()
        self._helper = RestartHelper(
            instance, self._adjacency, self._full_changed, self._two_way_changed
        )
        self._hello = HelloProtocol(
            instance,
            self._transmitter,
            self._adjacency,
            self._detection,
            subnets=Subnets(instance, lambda *moved: self._links.move(*moved)),
            interface_event=lambda interface, event: self._links.fire(interface, event),
        )
        self._reception = Reception(instance, self._hello, self._exchange, self._flooding)
        self._self_lsas = SelfLsas(instance, self._flooding)
        self._originator = Originator(instance, self._self_lsas)
        self._restarter = Restarter(instance, self._flooding, self._originator, self._self_lsas)
        self._border = Border(instance, self._originator)
        self._external = External(instance, self._originator)
        self._ted = TedBuilder(instance)
        if self._ted.bier is not None:
            self._border.bier_of = self._ted.bier.of
        self._derated = DeratedLinks(instance)
        self._links = self._make_links()
        for area in settings.areas:
            self._links.ensure_area(area.area)

    # Parts: the lambdas refer to others, which are made later.

    def _make_flooding(self, retransmitter: Retransmitter, requests: Requests) -> Flooding:
        return Flooding(
            self._instance,
            self._database,
            retransmitter,
            self_originated_received=lambda entry: self._self_lsas.received(entry),
            requests_served=requests.served,
            request=requests.send_again,
        )

    def _make_adjacencies(self) -> Adjacencies:
        return Adjacencies(
            self._instance,
            self._exchange,
            self._detection,
            self._full_changed,
            self._two_way_changed,
            lost=lambda neighbor, reason: self._helper.lost(neighbor, reason),
        )

    def _make_links(self) -> LinkManager:
        return LinkManager(
            self._instance,
            hello=self._hello,
            adjacency=self._adjacency,
            detection=self._detection,
            originator=self._originator,
            transmitter=self._transmitter,
            database=self._database,
            ted=self._ted,
            restarter=self._restarter,
        )

    def _database_watcher(self) -> DatabaseWatcher:
        return DatabaseWatcher(
            changed=self._lsa_changed,
            withdrawn=self._externals_withdrawn,
            expired=lambda entry: self._flooding.flood(entry),
            refresh=lambda entry: self._self_lsas.refresh(entry),
            removed=self._lsa_removed,
        )

    # Inputs, time and outputs

    def handle(self, event: Input, now: float) -> None:
        """Process one input."""
        if self._stopped:
            return
        self._process.now = now
        match event:
            case PacketReceived() if self._hello.repeated(event):
                pass
            case PacketReceived() if self.settled and is_acknowledgment(event):
                self._acknowledged(event)
            case LoadsMeasured(loads):
                if self._originator.loads_measured(loads):
                    self._unsettle()
            case _:
                self._unsettle()
                self._process_input(event)

    def _acknowledged(self, event: PacketReceived) -> None:
        """Process an acknowledgment: nearly always it only shortens retransmission lists."""
        deadline = self.next_deadline()
        self._reception.receive(event)
        self.settled = not (
            self._process.has_outputs
            or self._instance.maxage_acknowledged
            or self._restarter.waits
            or self.next_deadline() != deadline
        )

    def _process_input(self, event: Input) -> None:
        if not self._begun:
            self._begin(event)
        match event:
            case PacketReceived():
                self._reception.receive(event)
            case LinkChanged():
                self._links.changed(event.link, event.settings)
                self._border.stale = self._external.routes.stale = True
            case LinkRemoved():
                self._links.removed(event.ifindex)
                self._border.stale = self._external.routes.stale = True
            case SettingsApplied():
                self._apply(event.settings)
            case EndsCounted(ends):
                count_ends(self._instance.budgets.items(), ends)
            case RoutesComputed():
                self._border.routes_computed(event)
                self._external.reached(event.asbrs)
            case ExternalRoutes():
                self._external.routes.update(event)
            case BfdChanged():
                self._detection.changed(event)
            case _:
                self._operate(event)

    def _operate(self, event: Input) -> None:
        """Process an input of an operator."""
        match event:
            case ShutdownRequested():
                self._shutdown()
            case GracefulRestartRequested() | GracefulRestartBegun():
                self._restart(event)
            case InformationOffered(items, only):
                self._originator.offer(items, only)
            case NeighborCleared(ifindex, router_id):
                self._links.clear(ifindex, router_id)
            case LimitsReset():
                self._flooding.limits.reset()
                self._ted.prefixes.limit.reset()

    def _restart(self, event: GracefulRestartRequested | GracefulRestartBegun) -> None:
        """Restart gracefully, if that is enabled; else the adjacencies end, and begin anew."""
        restart = self._instance.settings.graceful_restart
        if isinstance(event, GracefulRestartBegun):
            if restart.enabled:
                remaining = min(event.remaining, restart.period)
                self._restarter.begin(replace(event, remaining=remaining))
        elif restart.enabled:
            self._restarter.announce(min(event.period, restart.period))
        else:
            self._shutdown()

    def receive(self, packets: Iterator[Received], now: float) -> None:
        """Process packets that arrived together."""
        duplicates = self._flooding.duplicates
        duplicates.gathering = True
        try:
            for packet in each(packets):
                self.handle(packet, now)
        finally:
            duplicates.gathering = False
            duplicates.settle()

    def _send_alone(self) -> bool:
        if self._restarter.waits or self._self_lsas.marked:
            return False  # both await a time
        self._transmitter.flush()
        return True

    def _settle(self) -> None:
        self._links.settle()
        self._restarter.settle()
        self._adjacency.settle()
        if self._ted.bier is not None:
            self._border.bier_changed(self._ted.bier.take_prefixes())
        self._border.settle()
        self._originator.settle()
        self._restarter.flush()
        self._transmitter.flush()
        if not self._process.has_outputs:  # neighbors wait for what is sent, as a lost link
            self._external.settle()
        # What is removed, or originated, may be cause to originate others.
        if self._database.sweep() or self._self_lsas.marked:
            self._originator.settle()
            self._transmitter.flush()

    def _publish(self) -> None:
        self._ted.flush()

    @property
    def instance(self) -> Instance:
        """The live state, which is not to be changed."""
        return self._instance

    @property
    def restarter(self) -> Restarter:
        """The graceful restart of this router."""
        return self._restarter

    @property
    def help_ended(self) -> Iterable[HelpEnded]:
        """The last graceful restarts of neighbors."""
        return self._helper.ended

    def topologies(self) -> tuple[TopologyView, ...]:
        """The flooding topologies, by area."""
        return self._flooding.dynamic.views()

    def databases_text(self, now: float) -> Iterator[str]:
        """Each database as text, with the ages of its LSAs."""
        for lsdb in self._instance.databases():
            lsas = [(entry.age(now), entry.raw) for entry in lsdb]
            yield f"{lsdb.scope.value} {lsdb.area} {lsdb.ifindex} {lsas}"

    def tags(self) -> RouteTags:
        """The external route tags in the database."""
        return RouteTags(self._instance)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """The filters that keep a prefix out of redistribution, and of summaries."""
        yield from self._external.withheld(prefix)
        yield from self._border.withheld(prefix)

    def borders(self) -> Iterator[tuple[AreaId, NodeId]]:
        """The area border routers of each area, by their B-bit (RFC 2328 §A.4.2)."""
        return self._ted.borders()

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Count active interfaces, those with a full neighbor, and adjacencies still forming."""
        return adjacency_progress(self._instance)

    @property
    def restarting(self) -> bool:
        """Whether it restarts gracefully: the routes from before the restart stay unchanged."""
        return self._instance.restarting

    @property
    def restart_announced(self) -> bool:
        """Whether all neighbors have acknowledged our grace LSAs."""
        return self._restarter.announced

    @property
    def takes_routes(self) -> bool:
        """Whether the engine takes ``RoutesComputed``, to advertise routes in other areas.

        Also for the reachable AS boundary routers (§12.4.4.1).
        """
        return len(self._instance.areas) > 1 or self._external.tracks_asbrs

    @property
    def budgets(self) -> dict[str, AnnounceBudget]:
        """The budget of announcements of each area."""
        return {dotted(area): budget for area, budget in self._instance.budgets.items()}

    @property
    def limits(self) -> dict[str, LimitView]:
        """The limits of the databases, by area, and of the AS."""
        views = self._flooding.limits.views()
        return {"as" if area is None else dotted(area): limit for area, limit in views}

    @property
    def prefix_limit(self) -> LimitView:
        """The limit of the prefixes that LSAs list."""
        return self._ted.prefixes.limit.view()

    @property
    def ranges(self) -> tuple[AreaRange, ...]:
        """The area ranges that this border router advertises (§3.5)."""
        if not self._instance.border:
            return ()
        areas = [area.settings for area in self._instance.areas.values()]
        found: list[AreaRange] = []
        for home in areas:
            into = tuple([each.filter_in for each in areas if each is not home])
            found += [
                AreaRange(home.area, item.prefix, home.filter_out, into) for item in home.ranges
            ]
        return tuple(found)

    @property
    def boot_count(self) -> int:
        """The present boot count of 64-bit sequence numbers (RFC 7474 §2)."""
        return self._instance.sequences.boot_count

    # Events for several parts

    def _lsa_changed(self, entry: LsaEntry) -> None:
        """Update the TED, the budget, and the externals of other AS boundary routers."""
        self._ted.lsa_changed(entry)
        if entry.key.ls_type == LsType.AS_EXTERNAL:
            self._helper.lsa_changed(entry)
            gone = entry.is_maxage(self._process.now)
            self._external.lsa_changed(entry, None if gone else entry.body)
            entry.body = None  # both have what they need; externals are too many to keep twice
            return
        self._flooding.dynamic.lsa_changed(entry)
        key, area = entry.key, entry.lsdb.area
        if key.ls_type == LsType.ROUTER and area is not None:
            gone = entry.is_maxage(self._process.now)
            body = None if gone else entry.body
            self._border.router_changed(area, key.advertising_router, body)
        if is_te_lsa(entry.key):
            self._originator.te_lsa_changed(entry)
            for interface in self._derated.te_lsa_changed(entry):
                self._share_changed(interface)
            return
        self._helper.lsa_changed(entry)
        self._restarter.lsa_changed(entry)

    def _externals_withdrawn(self, entries: Sequence[LsaEntry]) -> None:
        """Like ``_lsa_changed``, for AS-external LSAs of one other router at MaxAge."""
        self._ted.externals_withdrawn(entries)
        for entry in entries:
            self._helper.lsa_changed(entry)
            self._external.lsa_changed(entry, None)

    def _share_changed(self, interface: Interface) -> None:
        """The neighbor derates a link, or no longer."""
        self._originator.bandwidth_changed(interface)
        self._ted.interface_changed(interface, "derated")

    def _lsa_removed(self, entry: LsaEntry) -> None:
        self._flooding.dynamic.removed(entry)
        self._self_lsas.removed(entry)

    def _full_changed(self, interface: Interface, reason: str) -> None:
        self._flooding.dynamic.adjacencies_changed(interface.settings.area)
        if self._derated.changed(interface):
            self._share_changed(interface)
        self._originator.link_changed(interface)
        self._border.stale = True
        self._ted.links_changed(interface.settings.area, f"{interface.name} {reason}")

    def _two_way_changed(self, interface: Interface) -> None:
        if interface.broadcast:
            self._ted.links_changed(interface.settings.area, f"{interface.name} neighbors")
            self._links.fire(interface, InterfaceEvent.NEIGHBOR_CHANGE)

    # Operation

    def _apply(self, settings: OspfSettings) -> None:
        """Apply new settings, except the router id: changing that requires a restart."""
        instance = self._instance
        instance.apply(settings)
        instance.participants.changed()
        for area_settings in settings.areas:
            self._links.ensure_area(area_settings.area)
            self._links.area_changed(area_settings)
        self._flooding.dynamic.settings_changed()
        self._helper.settings_changed()
        self._border.everything_changed()
        self._external.everything_changed()
        self._originator.everything_changed()
        self._ted.all_links_changed("settings")

    def _begin(self, event: Input) -> None:
        """Be a stub router for a time, unless this is a graceful restart (RFC 6987 §2)."""
        self._begun = True
        seconds = self._instance.settings.stub_router_on_startup
        if seconds > 0.0 and not isinstance(event, GracefulRestartBegun):
            self._instance.starting = True
            self._process.timers.arm(self._process.now + seconds, self._started_up)

    def _started_up(self) -> None:
        self._instance.starting = False
        self._border.everything_changed()
        self._external.everything_changed()
        self._originator.everything_changed()

    def _leave(self) -> None:
        """Flush self-originated LSAs (§14.1), then send final hellos."""
        self._self_lsas.flush_all()
        for interface in self._instance.interfaces.values():
            if interface.is_active:
                self._transmitter.final_hello(interface)
