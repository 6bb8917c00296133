"""One whole router without I/O: what the daemon runs on sockets and ``sim`` on a virtual clock.

A change goes one way: the engine reports flooded changes, the solver turns them into routes, the
FIB planner into kernel operations. This module decides only *when*:

- flooding comes before computing, and what other areas or levels are to be told of changed routes
  is flooded before these are planned;
- a change requests a run, and ``schedule`` decides when it is due;
- weights that follow load do so once a second, with jitter, in portions (``AdaptationClock``);
- routes adopted from a former process stay untouched until start-up has the whole database.

It has the contract of an engine: ``handle``, ``tick``, ``next_deadline``, ``take_outputs``.
``stopwatch`` only measures durations to display; no decision depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from fared.core.rng import Rng
from fared.paths.fib.planner import FibPlanner
from fared.paths.rib.solver import RouteSolver
from fared.paths.rib.table import RoutingTable
from fared.paths.ted.events import (
    BierUpdated,
    LocalLinksChanged,
    LocalNetworksChanged,
    PrefixesUpdated,
    TedUpdated,
)
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.adapting import AdaptationClock
from fared.router.changes import DatabaseChanges
from fared.router.computing import Computing, Consumers
from fared.router.convergence import Journal
from fared.router.instance import ProtocolInstance
from fared.router.multicast import Multicast
from fared.router.programming import FibProgramming
from fared.router.protocols import PROTOCOLS, RoutingProtocol
from fared.router.redistribution import Redistributor
from fared.router.schedule import Schedule
from fared.router.settings import RouterSettings
from fared.router.spraying import Spraying
from fared.router.stages import AdjacencyProgress, Stage, StartUp
from fared.router.starting import Starting

_LATER = 1.0
"""Seconds from a computation to what may wait."""


class Router:
    """Engine, solver and FIB planner of one router, and the timing between them."""

    def __init__(
        self,
        settings: RouterSettings,
        rng: Rng,
        now: float,
        stopwatch: Callable[[], float],
        protocols: Mapping[str, RoutingProtocol] = PROTOCOLS,
    ) -> None:
        """``protocols`` are those available. Raises ValueError if none is configured."""
        self.settings = settings
        self.table = RoutingTable()
        self.instances = {
            name: ProtocolInstance(protocols[name], part, rng, settings.solver)
            for name, part in settings.protocols.items()
        }
        """By protocol."""
        if not self.instances:
            raise ValueError("a router runs at least one protocol")
        for name, instance in self.instances.items():
            self.table.follow(name, instance)
        self.table.prefer(self.preferences)
        self.planner = FibPlanner(lambda: self.table.routes, settings.fib)
        self.schedule = Schedule(settings.backoff)
        self.adaptation = AdaptationClock(rng)
        self.adaptation.configure(settings.solver, now)
        self.startup = StartUp(now, settings.start_deadline)
        self.journal = Journal()
        self._outputs: list[events.Output] = []
        self._detected = self._engine_seconds = self._flood_seconds = 0.0
        self._handed_out: float | None = None
        self.seconds_computing = 0.0
        """Seconds in which routes and weights were computed so far."""
        self.measure_with(stopwatch)
        self._fib = FibProgramming(self.planner, self.journal, self._outputs)
        self.spraying = Spraying(settings.spray, self.planner, self._fib, self._outputs)
        self.multicast = Multicast(settings.bier, self.table, self._outputs)
        self.redistribution = Redistributor(self.instances, self.table)
        self.redistribution.configure(settings.redistributed, now)
        consumers = Consumers(
            self.table, self.redistribution, self._fib, self.multicast, self._outputs
        )
        self._computing = Computing(
            self.instances, self.schedule, self.adaptation, self.journal, consumers
        )
        self._starting = Starting(
            self.startup, self.instances, self._fib, self._outputs, self._first_spf
        )
        self.settled = False
        """Whether ``take_outputs`` has nothing to do, and ``next_deadline`` is what it was."""
        self._engines_alone = False
        """Whether nothing has happened since it was settled but a tick of the engines."""
        self.changes = DatabaseChanges()
        self._later: float | None = None
        """When what may wait is done: by the first tick from then, which comes anyway."""
        self._settled_until = -math.inf
        """When something but the engines is to be called, while this is settled."""
        self._now = now

    def measure_with(self, stopwatch: Callable[[], float]) -> None:
        """Measure durations with ``stopwatch`` (seconds) from now on, in all solvers too."""
        self._stopwatch = stopwatch
        for instance in self.instances.values():
            for solver in instance.solvers.values():
                solver.measure_with(stopwatch)

    @property
    def solver(self) -> RouteSolver:
        """The solver of the first protocol, first family."""
        return next(iter(self.instances.values())).solver

    @property
    def activity(self) -> int:
        """A count of events in all databases: constant in a quiet network."""
        return sum(instance.engine.activity() for instance in self.instances.values())

    # -- the contract -----------------------------------------------------------------------

    def detected(self, seconds: float) -> None:
        """Seconds that the next inputs have spent inside this process already."""
        self._detected = seconds

    def handle(self, event: events.Input, now: float) -> None:
        """Process one input and its consequences."""
        settled, self.settled = self.settled, False
        match event:
            case events.To():  # nearly always: a packet
                self._pass_on(event, now, settled=settled)
            case (
                events.FibAdopted()
                | events.FibAudited()
                | events.FibDamaged()
                | events.FibApplied()
            ):
                self._fib_event(event, now)
            case events.SprayAdopted() | events.SprayAudited() | events.SprayApplied():
                self.spraying.handle(event, now)
            case events.BierAdopted() | events.BierAudited() | events.BierApplied():
                self.multicast.handle(event, now)
            case (
                events.LinksKnown()
                | events.LostLinksKnown()
                | events.RouterSettingsApplied()
                | events.WithdrawRequested()
            ):
                self._operate(event, now)
            case _:
                self._pass_on(event, now, settled=settled)
        if not self.settled:
            self._now, self._engines_alone = now, False

    def receive(self, proto: str, packets: Iterator[igp.Received], now: float) -> None:
        """Process packets of one protocol that arrived together, as ``handle`` does one by one.

        After an exception the packets that ``packets`` has left are as yet unprocessed.
        """
        settled, self.settled = self.settled, False
        started = self._stopwatch()
        self._now = now
        engine = self.instances[proto].engine
        engine.receive(packets, now)
        if settled and engine.settled and not (self._outputs or self._fib.unfollowed):
            # The other engines are settled still.
            self.settled = True
            return
        self._engines_alone = False
        self._engine_seconds += self._stopwatch() - started

    def _fib_event(
        self,
        event: events.FibAdopted | events.FibAudited | events.FibDamaged | events.FibApplied,
        now: float,
    ) -> None:
        match event:
            case events.FibAdopted(state):
                self._fib.adopt(state)
            case events.FibAudited(state):
                if self.startup.ready:
                    self._fib.audit(state, now)
            case events.FibDamaged(changes):
                if self.startup.ready:
                    self._fib.mend(changes, now)
            case events.FibApplied():
                self._fib.applied(event, now)

    def _pass_on(self, event: events.To | events.ToAll, now: float, *, settled: bool) -> None:
        """Pass an input to its engine, or to all; a settled router may stay so."""
        started = self._stopwatch()
        self._engine_input(event, now)
        if settled and self._engines_settled():
            self.settled = True
            return
        self._engine_seconds += self._stopwatch() - started

    def _operate(
        self,
        event: events.LinksKnown
        | events.LostLinksKnown
        | events.RouterSettingsApplied
        | events.WithdrawRequested,
        now: float,
    ) -> None:
        """Process an input of the daemon about this router as a whole."""
        match event:
            case events.LinksKnown():
                self._starting.reach(Stage.LINKS_KNOWN, now)
            case events.LostLinksKnown(links):
                self.changes.lost.restore(links)
            case events.RouterSettingsApplied(settings):
                self._apply_settings(settings, now)
            case events.WithdrawRequested():
                self._fib.withdraw(now)

    def _engine_input(self, event: events.To | events.ToAll, now: float) -> None:
        """Pass an input to its engine, or to all of them."""
        self.multicast.input(event)
        match event:
            case events.To(proto, inner):
                if isinstance(inner, igp.LinkChanged):
                    self._fib.link_state(inner.link.ifindex, now, up=inner.link.up)
                self.instances[proto].engine.handle(inner, now)
                return
            case igp.LinkRemoved(ifindex):
                self._fib.link_state(ifindex, now, up=False)
            case igp.LoadsMeasured(loads) if any(load is not None for load in loads.values()):
                self.adaptation.measured(now)
            case igp.ExternalRoutes(changes):
                self.spraying.local_changed(changes)
        for instance in self.instances.values():
            instance.engine.handle(event, now)
        if isinstance(event, igp.ExternalRoutes):
            better = self.redistribution.kernel_changed(event.changes)
            if better:
                self._computing.write(better, now, "routes of the kernel")
            self.redistribution.update(now)

    def tick(self, now: float) -> None:
        """Run what is due."""
        settled, self.settled = self.settled, False
        self._now = now
        for instance in self.instances.values():
            instance.engine.tick(now)
        self._engines_alone = settled and now < self._settled_until
        if self._later is not None and now >= self._later:
            self._engines_alone = False
            self._catch_up(now)
        if self.redistribution.waits:
            self._engines_alone = False
            self.redistribution.update(now)
        if not self._engines_alone:
            self._fib.tick(now)
            self.adaptation.tick(fired=True)

    def _catch_up(self, now: float) -> None:
        """Do what may wait after a computation: routes come first, changes often come together."""
        self._later = None
        for instance in self.instances.values():
            instance.count_ends(now)

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        deadline = self._settled_until if self.settled else self._own_deadline()
        for instance in self.instances.values():
            at = instance.engine.next_deadline()
            if at is not None and at < deadline:
                deadline = at
        return None if deadline == math.inf else deadline

    def _own_deadline(self) -> float:
        """When something but the engines is due; infinity: nothing is."""
        candidates = (
            self.schedule.next_deadline(),
            self.adaptation.next_deadline(),
            self._fib.next_deadline(),
            self.spraying.next_deadline(),
            self.multicast.next_deadline(),
            self.startup.next_deadline(self._now),
            self.redistribution.next_deadline(self._now),
        )
        return min((at for at in candidates if at is not None), default=math.inf)

    def take_outputs(self) -> list[events.Output]:
        """Return what to send, apply and log, in order.

        The consequences of several inputs are computed here, once: a burst of packets handled
        before one ``take_outputs`` is flooded in full packets and computed in one run. Packets are
        returned first, the results of the computation by the next call: call until nothing is
        returned.
        """
        if self._handed_out is not None:
            self._flood_seconds += self._stopwatch() - self._handed_out
            self._handed_out = None
        computes_later = self._process(self._now)
        outputs = self._outputs.copy()
        self._outputs.clear()
        alone, self._engines_alone = self._engines_alone, False
        if alone and self._engines_settled() and all(map(_is_packet, outputs)):  # hellos
            self._detected = self._engine_seconds = self._flood_seconds = 0.0
            self.settled = True
        elif not outputs:
            self._detected = self._engine_seconds = self._flood_seconds = 0.0
            self.adaptation.tick(fired=False)
            self.settled = self.startup.ready and self._engines_settled()
            if self.settled:
                self._settled_until = self._own_deadline()
        elif computes_later:
            self._handed_out = self._stopwatch()
        return outputs

    def _engines_settled(self) -> bool:
        if self._outputs or self._fib.unfollowed or self.redistribution.waits:
            return False
        for instance in self.instances.values():  # noqa: SIM110 - any() would take twice the calls
            if not instance.engine.settled:
                return False
        return True

    # -- the turn ---------------------------------------------------------------------------

    def _process(self, now: float) -> bool:
        """Do what is due; return whether computing waits until the outputs are handed out."""
        started = self._stopwatch()
        for instance in self.instances.values():
            self._take_from(instance, now)
        self._engine_seconds += self._stopwatch() - started
        computing = self._computing
        if computing.pending.causes:
            computing.pending.detected += self._detected
            computing.pending.originated += self._engine_seconds
            computing.pending.flooded += self._flood_seconds
            self._detected = self._engine_seconds = self._flood_seconds = 0.0
        if self._fib.withdrawn or self._outputs:
            return bool(self._outputs)
        started = self._stopwatch()
        if computing.unplanned is not None:
            computing.plan(computing.unplanned, now, self._stopwatch)
        elif self.schedule.due(now):
            self._compute(now)  # weights follow when what this writes is in the kernel
        elif self.adaptation.due(now):
            self._adapt(now)
        elif self.adaptation.portion_due(now):
            computing.program_portion(now)
        if computing.unplanned is None:
            self._fib.follow_losses(now)
            self._follow(now)
        self.seconds_computing += self._stopwatch() - started
        return False

    def _follow(self, now: float) -> None:
        """Do what depends on routes, once these are planned."""
        if not self.startup.ready:
            self._starting.advance(now)
        self.spraying.process(now)
        self.multicast.process(now, frozen=self._fib.frozen or self._fib.withdrawn)

    def _take_from(self, instance: ProtocolInstance, now: float) -> None:
        request = self._computing.request
        for output in instance.engine.take_outputs():
            match output:
                case TedUpdated():
                    kind = instance.ted_updated(output)
                    matters = request(kind, output.cause, output.since, now)
                    self.changes.collect(instance.name, output, instance.family, matters=matters)
                case PrefixesUpdated():
                    kind = instance.prefixes_updated(output)
                    if request(kind, output.cause, output.since, now):
                        self.changes.collect_prefixes(instance.name, output)
                case LocalLinksChanged():
                    request(instance.local_links_changed(output), output.cause, output.since, now)
                    self.multicast.links_changed(instance.name, output)
                case LocalNetworksChanged():
                    kind = instance.local_networks_changed(output)
                    request(kind, output.cause, output.since, now)
                case BierUpdated():
                    self.multicast.advertised(instance.name, output)
                case igp.LogRecord():
                    self._outputs.append(output)
                case _:
                    self._outputs.append(events.From(instance.name, output))
        self._outputs += instance.take_martian_logs(now)

    def _compute(self, now: float) -> None:
        """Solve, and plan now, or in the next turn if other routers are to be told before."""
        change = self._computing.solve(now, self._stopwatch)
        self.changes.computed(now)
        if self._later is None:
            self._later = now + _LATER
        for instance in self._pass_routes(now):
            self._take_from(instance, now)
        if self.startup.ready and any(map(_is_packet, self._outputs)):
            self._computing.unplanned = change
        else:
            self._computing.plan(change, now, self._stopwatch)

    def _pass_routes(self, now: float) -> list[ProtocolInstance]:
        """Pass routes to the engines that advertise them; return those that were told."""
        told: dict[str, None] = {}
        for name, instance in self.instances.items():
            is_told, changed = instance.advertise(now)
            if is_told:
                told[name] = None
            self.redistribution.examine(changed)
        told.update(dict.fromkeys(each.name for each in self.redistribution.update(now)))
        return [self.instances[name] for name in told]

    def _adapt(self, now: float) -> None:
        """Let weights follow load.

        What the load changes is computed in the turn before, so that none takes as long as both.
        """
        waiting = self.schedule.backoff.next_deadline() is not None
        if not waiting and self._computing.dirty and self.adaptation.put_off(now):
            self._compute(now)
        else:
            self._computing.step(now)

    @property
    def preferences(self) -> dict[str, int]:
        """The preference of each protocol: the lower one wins."""
        usual = {name: instance.protocol.preference for name, instance in self.instances.items()}
        return {**usual, **self.settings.preferences}

    # -- settings and start-up --------------------------------------------------------------

    def _apply_settings(self, settings: RouterSettings, now: float) -> None:
        self.settings = settings
        for name, part in settings.protocols.items():
            self.instances[name].engine.handle(igp.SettingsApplied(part), now)
        for instance in self.instances.values():
            instance.apply_settings(settings.solver)
        self.adaptation.configure(settings.solver, now)
        self._fib.configure(settings.fib, now)
        self.spraying.configure(settings.spray)
        self.multicast.configure(settings.bier)
        better = self.redistribution.configure(settings.redistributed, now)
        self._computing.write({**better, **self.table.prefer(self.preferences)}, now, "preference")
        self.redistribution.update(now)
        self._computing.pending.add("configuration", now)
        self.schedule.configure(settings.backoff, now)

    def progress(self) -> AdjacencyProgress:
        """Interfaces without a full neighbor, with one, and neighbors still forming."""
        return self._starting.progress()

    def _first_spf(self, now: float) -> None:
        """Compute the routes of the whole database, regardless of the back-off."""
        held, self._fib.frozen = self._fib.frozen, False
        self.schedule.backoff.ran()
        self._compute(now)
        if held:
            self._fib.update(dict(self.table.routes.items()), now, "update of adopted routes")


def _is_packet(output: events.Output) -> bool:
    return isinstance(output, events.From) and isinstance(output.event, igp.SendPacket)
