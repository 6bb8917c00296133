"""The IS-IS engine: inputs in, outputs out, no clock, no sockets.

The engine connects the parts and dispatches to them. Work that serves several inputs at once
(originating and sending LSPs, TED blocks) is done in ``take_outputs``: call it after each
``handle`` and ``tick``, or after a batch of them, and read ``next_deadline`` after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fared.core.bfd import BfdChanged
from fared.core.filters import Withheld
from fared.core.ids import NodeId, Prefix, SystemId
from fared.core.rng import Rng
from fared.core.routes import TagOf
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
)
from fared.protocols.igp.restart import RestartEnded
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.hello import HelloProtocol
from fared.protocols.isis.circuit import Adjacency, Circuit
from fared.protocols.isis.events import Input, Output
from fared.protocols.isis.ids import Level, LevelSet, system_of
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.links import CircuitManager
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.origination.derated import DeratedLinks
from fared.protocols.isis.origination.external import External
from fared.protocols.isis.origination.leaking import RouteLeaking
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.reception import Reception
from fared.protocols.isis.restarter import Restarter
from fared.protocols.isis.settings import IsisSettings
from fared.protocols.isis.starter import Starter
from fared.protocols.isis.ted.builder import TedBuilder
from fared.protocols.isis.transmit import Transmitter
from fared.protocols.isis.update.bandwidth import only_bandwidth
from fared.protocols.isis.update.database import DatabaseWatcher
from fared.protocols.isis.update.flooding import Flooding

_SETTLING = 1.0
"""Seconds after which a new neighbor's database is expected to have arrived."""


class IsisEngine(ProcessEngine[Output]):
    """One IS-IS process (ISO 10589, RFC 1195) of one router."""

    def __init__(self, settings: IsisSettings, rng: Rng) -> None:
        instance = self._instance = Instance(settings, rng)
        super().__init__(instance.process)
        self._changed: set[tuple[Level, SystemId]] = set()
        """The systems whose LSPs have changed while this router helps neighbors to restart."""
        transmitter = Transmitter(instance)
        # Parts created further down are looked up when called.
        self._flooding = Flooding(
            instance,
            transmitter,
            DatabaseWatcher(
                changed=self._lsp_changed,
                removed=self._lsp_removed,
                own_received=lambda level, lsp_id, _: self._originator.renew(level, lsp_id),
                own_refresh=lambda level, lsp_id: self._originator.renew(level, lsp_id),
            ),
        )
        self._hello = HelloProtocol(instance, transmitter, self)
        self._reception = Reception(instance, self._hello, self._flooding)
        self._circuits = CircuitManager(instance, self._hello, self)
        self._originator = Originator(instance, self._flooding)
        self._restarter = Restarter(instance, self._hello, self._flooding, self._originator)
        self._starter = Starter(instance, self._hello, self.adjacency_progress)
        self._ted = TedBuilder(instance)
        self._derated = DeratedLinks(instance)
        self._leaking = RouteLeaking(instance, self._originator, self._ted.attributes)
        self._external = External(instance, self._originator)
        self._overloaded = False
        """Whether the metrics of prefixes behind this router are those of an overloaded one."""

    # The contract

    def handle(self, event: Input, now: float) -> None:
        """Process one input."""
        if self._stopped:
            return
        self._process.now = now
        match event:
            case PacketReceived() if self._hello.repeated(event):
                pass
            case LoadsMeasured(loads):
                if self._originator.loads_measured(loads):
                    self._unsettle()
            case _:
                self._unsettle()
                self._originator.begin()
                self._process_input(event)

    def receive(self, packets: Iterator[Received], now: float) -> None:
        """Process packets that arrived together: copies of LSPs, which most are, in one pass."""
        if self._stopped:
            return
        self._process.now = now
        before = self.settled or self._sends_alone
        taken = self._flooding.copies.take(packets, partial(self.handle, now=now))
        if taken:
            alone = before and (self.settled or self._sends_alone)  # nothing else came
            self._unsettle()
            self._sends_alone = alone

    def _process_input(self, event: Input) -> None:
        match event:
            case PacketReceived():
                self._reception.receive(event)
            case LinkChanged():
                self._circuits.changed(event.link, event.settings)
            case LinkRemoved():
                self._circuits.removed(event.ifindex)
            case SettingsApplied():
                self._apply(event.settings)
            case EndsCounted(ends):
                count_ends(self._instance.budgets.items(), ends)
            case RoutesComputed():
                self._leaking.routes_computed(event)
                self._restarter.routes_computed()
            case ExternalRoutes():
                self._external.routes.update(event)
            case BfdChanged():
                self._hello.detection.changed(event)
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
            case NeighborCleared(ifindex, node):
                self._hello.clear(ifindex, node)
            case LimitsReset():
                self._flooding.limits.reset()
                self._ted.prefix_limit.reset()

    def _settle(self) -> None:
        self._circuits.settle()
        self._restarter.settle()
        self._starter.settle()
        if self._changed:
            changed, self._changed = self._changed, set()
            self._hello.helper.topology_changed(changed)
        self._settle_attached()
        if self._originator.overloaded != self._overloaded:
            self._prefixes_changed()
        self._leaking.settle()
        self._external.settle()
        self._originator.settle()
        self._flooding.flush()

    def _send_alone(self) -> bool:
        """Acknowledge copies of LSPs, unless they are part of a start or restart."""
        instance = self._instance
        if instance.starting or instance.restart is not None:
            return False
        self._flooding.flush()
        return True

    def _publish(self) -> None:
        self._ted.flush()

    @property
    def instance(self) -> Instance:
        """The live state, which is not to be changed."""
        return self._instance

    @property
    def overloaded(self) -> bool:
        """Whether our LSPs have the overload bit."""
        return self._originator.overloaded

    @property
    def attached(self) -> bool:
        """Whether our LSPs have the attached bit."""
        return self._originator.attached

    @property
    def restarted(self) -> RestartEnded | None:
        """The last graceful restart of this router."""
        return self._restarter.last

    def waiting(self) -> dict[int, int]:
        """LSPs that are still to be sent or acknowledged, by ifindex."""
        return self._flooding.waiting()

    def topologies(self) -> tuple[TopologyView, ...]:
        """The flooding topologies, by level."""
        return self._flooding.dynamic.views()

    def databases_text(self, now: float) -> Iterator[str]:
        """Each database as text, with the lifetimes of its LSPs."""
        for level, lsdb in sorted(self._instance.databases.items()):
            lsps = [
                (e.remaining_lifetime(now), now - e.since, e.own, e.raw) for e in lsdb.ordered()
            ]
            yield f"{level.label} {lsps}"

    def tags(self) -> TagOf:
        """The first administrative tags of prefixes, by level (RFC 5130 §3.1)."""
        attributes = self._ted.attributes

        def tag_of(prefix: Prefix, level: int | None, _: tuple[NodeId, ...]) -> int | None:
            found = None if level is None else attributes.of(Level(level), prefix)
            return next(iter(found.tags), None) if found is not None else None

        return tag_of

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """The filters that keep a prefix out of redistribution, and of leaking."""
        yield from self._external.withheld(prefix)
        yield from self._leaking.withheld(prefix)

    def borders(self) -> Iterator[tuple[Level, NodeId]]:
        """The routers of each level that are in the other one, too."""
        return self._ted.borders()

    def externals(self) -> Iterator[tuple[NodeId, Prefix]]:
        """The prefixes that a router redistributes, by the X bit or flag."""
        return self._ted.externals()

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Circuits that could have a neighbor, those that have, neighbors still forming.

        A new adjacency is still forming until the database has arrived, and so are all while LSPs
        that neighbors have are being requested.
        """
        speaking = [c for c in self._instance.circuits.values() if c.is_active]
        known = [all_adjacencies(circuit) for circuit in speaking]
        having = sum(any(adjacency.up for adjacency in found) for found in known)
        forming = sum(self._forming(adjacency) for found in known for adjacency in found)
        return len(speaking), having, forming + self._flooding.awaited()

    def _forming(self, adjacency: Adjacency) -> bool:
        since = adjacency.up_since
        return since is None or self._process.now < since + _SETTLING

    @property
    def takes_routes(self) -> bool:
        """Whether this engine takes ``RoutesComputed``."""
        return self._instance.settings.levels is LevelSet.BOTH

    @property
    def restarting(self) -> bool:
        """Whether it restarts gracefully: the routes from before the restart stay unchanged."""
        return self._instance.restart is not None

    @property
    def restart_announced(self) -> bool:
        """Whether all neighbors have acknowledged a requested graceful restart."""
        return self._stopped or self._restarter.announced

    @property
    def boot_count(self) -> int:
        """IS-IS keeps no sequence number across restarts."""
        return 0

    @property
    def budgets(self) -> dict[str, AnnounceBudget]:
        """The budget of announcements of each level."""
        return {level.label: budget for level, budget in self._instance.budgets.items()}

    @property
    def limits(self) -> dict[str, LimitView]:
        """The limits of the databases of both levels."""
        return {level.label: limit for level, limit in self._flooding.limits.views()}

    @property
    def prefix_limit(self) -> LimitView:
        """The limit of the prefixes that LSPs list."""
        return self._ted.prefix_limit.view()

    @property
    def ranges(self) -> tuple[AreaRange, ...]:
        """IS-IS levels have no ranges."""
        return ()

    # AdjacencyWatcher

    def adjacency_changed(
        self, circuit: Circuit, adjacency: Adjacency, level: Level, reason: str
    ) -> None:
        """An adjacency came up or went down in a level."""
        # §7.3.17: exchange databases; §7.3.6: the adjacency is an event that changes our LSP
        if adjacency.up and adjacency.levels & level:
            self._flooding.adjacency_up(circuit, level)
            self._process.timers.arm(self._process.now + _SETTLING, _wake)
        else:
            self._flooding.adjacency_down(circuit, level)
        self._originator.circuit_changed(circuit, level)
        if self._derated.changed(circuit):
            self._share_changed(circuit)
        self._ted.links_changed(f"{circuit.name} {reason}", level, circuit.ifindex)

    def neighbor_restarted(self, circuit: Circuit, level: Level) -> None:
        """Send a neighbor the whole database again (RFC 8706 §3.2.1 c))."""
        self._flooding.neighbor_restarted(circuit, level)

    def dis_changed(self, circuit: Circuit, level: Level, previous_lan_id: int) -> None:
        """The designated IS of a LAN changed."""
        del previous_lan_id
        self._flooding.dis_changed(circuit, level)
        self._originator.circuit_changed(circuit, level)
        self._ted.links_changed(f"{circuit.name} designated IS", level, circuit.ifindex)

    def circuit_changed(self, circuit: Circuit) -> None:
        """Addresses, metric, state or capacity of a circuit, or hellos of a neighbor, changed."""
        self._external.routes.stale = True
        if circuit.ifindex in self._instance.circuits:
            self._originator.bandwidth_changed(circuit)
            self._originator.circuit_changed(circuit)
        else:
            self._originator.circuit_removed(circuit)
        if not circuit.is_active:
            self._flooding.circuit_removed(circuit)
        # A changed loopback changes the addresses that links borrow.
        only = None if circuit.loopback else circuit.ifindex
        self._ted.links_changed(f"{circuit.name} changed", ifindex=only)

    def _lsp_changed(self, level: Level, entry: StoredLsp, previous: StoredLsp | None) -> None:
        self._ted.lsp_changed(level, entry, previous)
        self._originator.lsp_changed(level, entry, previous)
        instance = self._instance
        strict = instance.helped and instance.settings.strict_lsp_checking
        if strict and not only_bandwidth(previous, entry):
            self._changed.add((level, system_of(entry.lsp_id)))
        for circuit in self._derated.lsp_changed(level, entry):
            self._share_changed(circuit)

    def _share_changed(self, circuit: Circuit) -> None:
        """The neighbor derates a link, or no longer."""
        self._originator.bandwidth_changed(circuit)
        self._ted.links_changed(f"{circuit.name} derated", ifindex=circuit.ifindex)

    def _lsp_removed(self, level: Level, entry: StoredLsp) -> None:
        self._ted.lsp_removed(level, entry)
        if entry.own:
            self._originator.forget(level, entry.lsp_id)

    # Operation

    def _settle_attached(self) -> None:
        """Determine whether level 2 reaches other areas, and act if that changed (§7.2.9.2)."""
        stale = self._ted.ways_stale
        if self._instance.settings.levels is not LevelSet.BOTH:
            return
        if stale[Level.TWO]:
            # §7.2.9.1 is for level-1 routers: an attached one follows no attached bits of others
            attached = self._ted.reaches_other_area()
            self._originator.set_attached(attached=attached)
            self._ted.follow_attached(follow=not attached)
        if stale[Level.ONE] and self._originator.overloaded:
            self._originator.set_only_way_out(only=self._ted.is_only_way_out())

    def _prefixes_changed(self) -> None:
        """Consider all prefixes of other levels and sources again: settings, or overload."""
        self._overloaded = self._originator.overloaded
        self._leaking.everything_changed()
        self._external.everything_changed()

    def _apply(self, settings: IsisSettings) -> None:
        """Apply new settings; system id and levels require a restart."""
        instance = self._instance
        before = instance.settings
        instance.apply(settings)
        self._hello.settings_changed()
        self._flooding.settings_changed(before)
        self._originator.everything_changed()
        self._ted.everything_changed("settings")
        self._prefixes_changed()

    def _restart(self, event: GracefulRestartRequested | GracefulRestartBegun) -> None:
        """Restart gracefully, if that is enabled; else the adjacencies end, and begin anew."""
        settings = self._instance.settings
        if isinstance(event, GracefulRestartBegun):
            if settings.restarts:
                self._restarter.begin(event)
        elif settings.restarts:
            self._restarter.announce(min(event.period, settings.restart_period))
        else:
            self._shutdown()

    def _leave(self) -> None:
        """Purge our LSPs while adjacencies are up, then send final hellos.

        ISO 10589 lets the LSPs expire. A purge removes this router from the graph at once.
        """
        self._originator.purge_all()
        self._flooding.flush(force=True)
        self._hello.shutdown()


def _wake() -> None:
    """Do nothing but wake the engine: an adjacency is no longer new."""
