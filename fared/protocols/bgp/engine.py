"""The BGP engine: inputs in, outputs out, no clock, no sockets.

The engine connects the parts and dispatches to them. In a turn it processes what sessions have
told, decides for a portion of the prefixes, and tells neighbors; only then the graph is told of
what is decided, for the route solver. What is left is done in further turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from fared.core.bfd import BfdChanged
from fared.core.filters import Withheld
from fared.core.ids import NodeId, Prefix
from fared.core.rng import Rng
from fared.core.streams import (
    RouterHeard,
    StreamClosed,
    StreamOpened,
    StreamReceived,
    StreamSent,
)
from fared.core.timers import Timer
from fared.paths.te.budget import AnnounceBudget
from fared.paths.ted.events import AreaRange, Computed
from fared.protocols.bgp.announcing import Announcing
from fared.protocols.bgp.exchange import BgpExchange
from fared.protocols.bgp.instance import BgpInstance, decision_settings
from fared.protocols.bgp.networks import Networks
from fared.protocols.bgp.peering import Peering
from fared.protocols.bgp.policy import kept_out
from fared.protocols.bgp.reach import loads_measured
from fared.protocols.bgp.redistributed import RedistributedRoutes
from fared.protocols.bgp.restarter import BgpRestarter
from fared.protocols.bgp.settings import BgpLinkSettings, BgpSettings
from fared.protocols.igp import events as igp
from fared.protocols.igp.database_limit import Fullness, LimitView
from fared.protocols.igp.engine import ProcessEngine

_BATCH: Final = 0.02
_MOST_BATCHED: Final = 0.32
"""Seconds after which changes are told to the graph though more are to be decided: at first, and in
the end. All that is told is computed, and of many prefixes most will soon have other paths."""
_SWEEP_AFTER: Final = 1000
"""Updates after which prefixes and paths that nobody knows any more are forgotten, once all is
decided; without an end of that, after one more for each prefix."""
_SWEEP_WITHIN: Final = 60.0
"""Seconds after a change within which they are forgotten in any case."""
_LOADING: Final = 3.0
"""Seconds after which the first table of a neighbor counts as received, whatever it says."""
Inputs = igp.Input[BgpLinkSettings, BgpSettings] | Computed
_Stream = StreamOpened | StreamReceived | StreamSent | StreamClosed


class BgpEngine(ProcessEngine[Any]):
    """One BGP speaker (RFC 4271)."""

    takes_routes = False
    boot_count = 0
    ranges: tuple[AreaRange, ...] = ()
    budgets: Mapping[str, AnnounceBudget] = MappingProxyType({})
    limits: Mapping[str, LimitView] = MappingProxyType({})

    def __init__(self, settings: BgpSettings, rng: Rng) -> None:
        instance = self._instance = BgpInstance(settings, rng)
        super().__init__(instance.process)
        instance.wake = self._wake
        self._announcing = Announcing(instance)
        self._exchange = BgpExchange(instance, self._announcing)
        self._peering = Peering(instance, self._exchange)
        self._networks = Networks(instance)
        self._redistributed = RedistributedRoutes(instance, self._networks)
        self.restarter = BgpRestarter(instance)
        self._work: Timer | None = None
        self._batch = _BATCH
        self._woken = self._waits = False
        """Whether more is due than to send KEEPALIVE messages; whether that waits for a timer."""
        self._swept = 0
        self._sweeping: Timer | None = None

    # -- the contract -------------------------------------------------------------------------

    def handle(self, event: Inputs, now: float) -> None:
        """Process one input."""
        if self._stopped:
            return
        self._process.now = now
        match event:
            case StreamReceived() | StreamSent() | StreamOpened() | StreamClosed():
                self._stream(event)
            case igp.LoadsMeasured(loads):
                if loads_measured(self._instance, loads):
                    self._unsettle()
            case _:
                self._unsettle()
                self._process_input(event)

    def _stream(self, event: _Stream) -> None:
        """Pass an input to a session; if it only shows that the neighbor lives, nothing is due."""
        neighbor = self._instance.neighbors.get(event.stream.peer)
        if neighbor is None or neighbor.session is None:
            return
        neighbor.session.handle(event)
        told = bool(self._instance.surroundings.told)
        if told or self._process.has_outputs or neighbor.unread or neighbor.full:
            # at once: in the tables routes take less memory than in messages
            self._exchange.hear()
            self._announcing.touch(neighbor.number)
            self._unsettle()

    def _process_input(self, event: Inputs) -> None:
        match event:
            case igp.LinkChanged(link, settings):
                self._peering.link_changed(link, settings)
                self._networks.changed(None if settings is None else link)
                self._redistributed.examine_all()
            case igp.LinkRemoved(ifindex):
                self._peering.removed(ifindex)
                self._networks.changed()
            case RouterHeard():
                self._peering.heard(event)
            case igp.SettingsApplied(settings):
                self._apply(settings)
            case igp.ExternalRoutes():
                self._redistributed.update(event)
            case BfdChanged():
                self._peering.bfd_changed(event)
            case _:
                self._operate(event)

    def _operate(self, event: Inputs) -> None:
        """Process an input of an operator."""
        match event:
            case igp.NeighborCleared():
                self._peering.clear(event)
            case igp.ShutdownRequested():
                self._shutdown()
            case igp.GracefulRestartRequested():
                self._leave_for_restart()
            case igp.GracefulRestartBegun():
                self.restarter.begin(event)

    def receive(self, packets: Iterator[igp.Received], now: float) -> None:
        """There are no packets: BGP has streams."""

    def tick(self, now: float) -> None:
        """Fire the timers that are due; of a quiet engine, mostly those that send a KEEPALIVE."""
        settled = self.settled
        super().tick(now)
        if self._instance.surroundings.told:
            self._exchange.hear()
            self._woken = True
        self._sends_alone = settled and not self.settled

    def _wake(self) -> None:
        self._woken, self._waits = True, False
        self._unsettle()

    def _send_alone(self) -> bool:
        """Whether nothing but KEEPALIVE messages was due."""
        return not self._woken

    def _settle(self) -> None:
        self._woken = False
        self._exchange.hear()
        self._peering.settle()
        self._networks.settle()
        self._redistributed.settle()
        self.restarter.settle()
        if self._instance.urgent:
            # a neighbor is lost: what is decided and told of that follows when its routes are gone
            self._publish()
            self._waits = True
        at = self._process.now if self._waits else self._announcing.settle()
        self._process.timers.cancel(self._work)
        if at is not None:
            # the loop reads packets, and computes, before the next portion
            self._work = self._process.timers.arm(at, self._wake)

    def _publish(self) -> None:
        """Tell the graph of what is decided: of a lost neighbor at once, else of all together."""
        instance = self._instance
        since, now = instance.since, self._process.now
        if since is not None and (self._sweeping is None or not self._sweeping.active):
            self._sweeping = self._process.timers.arm(now + _SWEEP_WITHIN, self._sweep)
        settled = all(rib.settled for rib in instance.ribs.values())
        if since is not None and (settled or instance.urgent or now >= since + self._batch):
            instance.since, instance.urgent = None if settled else now, False
            self._batch = _BATCH if settled else min(2 * self._batch, _MOST_BATCHED)
            for rib in instance.ribs.values():
                for output in rib.graph.take(instance.cause, since):
                    self._process.emit(output)
        self._networks.publish()
        received = self._process.counters.lsdb["updates-received"] - self._swept
        tables = 0 if settled else sum([len(rib.table) for rib in instance.ribs.values()])
        if received >= _SWEEP_AFTER + tables:
            self._sweep()

    def _sweep(self) -> None:
        """Forget prefixes and paths that nobody knows any more."""
        self._process.timers.cancel(self._sweeping)
        self._swept = self._process.counters.lsdb["updates-received"]
        for rib in self._instance.ribs.values():
            rib.sweep()

    # -- operation ----------------------------------------------------------------------------

    def _apply(self, settings: BgpSettings) -> None:
        """Apply new settings; AS, router id and families need a restart."""
        instance = self._instance
        instance.settings = settings
        instance.process.epoch = settings.epoch
        for rib in instance.ribs.values():
            rib.apply(decision_settings(settings))
        instance.changed("settings")
        self._peering.settings_changed()
        self._networks.changed()
        self._redistributed.examine_all()

    def _leave_for_restart(self) -> None:
        """Leave without a word, so that neighbors go on forwarding; else end the sessions."""
        if not self._instance.settings.graceful_restart.enabled:
            self._shutdown()

    def _leave(self) -> None:
        self._peering.leave()

    # -- what is asked ------------------------------------------------------------------------

    @property
    def instance(self) -> BgpInstance:
        """The live state, which is not to be changed."""
        return self._instance

    @property
    def restarting(self) -> bool:
        """Whether it restarts gracefully: the routes from before the restart stay unchanged."""
        return self._instance.restarting_until is not None

    @property
    def restart_announced(self) -> bool:
        """A restart needs no announcement: the session ends without a NOTIFICATION."""
        return True

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Neighbors that could be up, those that are, those whose routes are not all known yet."""
        neighbors = self._instance.neighbors.values()
        expected = [one for one in neighbors if one.session is not None and one.held is None]
        up = [one for one in expected if one.agreed is not None]
        loading = sum(self._loads(one.since, len(one.unended)) for one in up)
        waiting = any(not rib.settled for rib in self._instance.ribs.values())
        return len(expected), len(up), loading + waiting

    def _loads(self, since: float, unended: int) -> bool:
        """Whether a first table is on its way: not every neighbor says when it ends."""
        return unended > 0 and self._process.now < since + _LOADING

    def databases_text(self, now: float) -> Iterator[str]:
        """The paths of each neighbor, by prefix."""
        del now
        for family, rib in self._instance.ribs.items():
            table = rib.table
            for group, numbers in sorted(table.members.items()):
                paths = [(one.peer.number, one.path) for one in table.candidates(group)]
                yield f"ipv{family} {sorted(numbers)} {paths}"

    @property
    def prefix_limit(self) -> LimitView:
        """Prefixes of all neighbors, and what all of them may announce."""
        most = [one.settings.maximum_prefixes for one in self._instance.neighbors.values()]
        limits = [limit for limit in most if limit is not None]
        entries = sum([len(rib.table) for rib in self._instance.ribs.values()])
        return LimitView(entries, sum(limits), max(limits, default=0), Fullness.ROOM, 0, 0)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield what keeps a prefix out of redistribution, or out of what neighbors exchange."""
        yield from self._redistributed.withheld(prefix)
        yield from kept_out(self._instance.neighbors.values(), prefix)

    def preference(self, prefix: Prefix, usual: int) -> int:
        """The preference of the route to a prefix: another one for what internal neighbors told."""
        rib = self._instance.ribs.get(prefix.family)
        internal = rib is not None and rib.is_internal(prefix)
        return self._instance.settings.internal_preference if internal else usual

    def borders(self) -> Iterator[tuple[int, NodeId]]:
        """There are no areas."""
        return iter(())
