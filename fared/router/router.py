"""One whole router without I/O: what the daemon runs on sockets and ``sim`` on a virtual clock.

The way of a change (design: data flows one way): the engine says what was flooded, the solver
turns it into routes, the FIB planner into kernel operations. This module only decides *when*:

- what is to be flooded on goes out before anything is computed;
- what is new asks for a run, of which ``schedule`` says when it is due;
- where weights follow load they do so once a second, with jitter (``AdaptationClock``);
- until start-up has the whole database, routes adopted from a previous life stay as they are.

Same contract as the engine: ``handle``, ``tick``, ``next_deadline``, ``drain``. ``stopwatch``
only measures durations for people; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fared.core.events import (
    ExternalRoutes,
    LinkRemoved,
    LoadMeasured,
    LogRecord,
    ShutdownRequested,
)
from fared.core.ids import NodeId, Prefix, isis_node
from fared.core.rng import Rng
from fared.fib.model import FibOperation, FibState, OperationResult
from fared.fib.planner import FibPlanner
from fared.isis import events as isis
from fared.ospf import events as ospf
from fared.rib.model import Route
from fared.rib.solver import RouteSolver
from fared.rib.table import RoutingTable
from fared.router import events
from fared.router.adapting import AdaptationClock
from fared.router.convergence import Journal, PendingChange, SpfRecord
from fared.router.news import News
from fared.router.schedule import Schedule
from fared.router.settings import RouterSettings
from fared.router.speaker import ISIS, OSPF, Speaker
from fared.router.stages import AdjacencyProgress, Stage, StartUp, sum_progress
from fared.ted.events import LocalLinksChanged, TedUpdated

if TYPE_CHECKING:
    from fared.isis.engine import IsisEngine
    from fared.ospf.engine import OspfEngine


class Router:
    """Engine, solver and FIB planner of one router, and the timing between them."""

    def __init__(
        self, settings: RouterSettings, rng: Rng, now: float, stopwatch: Callable[[], float]
    ) -> None:
        self.settings = settings
        self.speakers: dict[str, Speaker] = {}
        self._ospf: OspfEngine | None = None
        self._isis: IsisEngine | None = None
        self._add_engines(settings, rng)
        self.table = RoutingTable()
        self.table.prefer(settings.preferences)
        self.planner = FibPlanner(settings.fib)
        self.schedule = Schedule(settings.backoff)
        self.adaptation = AdaptationClock(rng)
        self.adaptation.configure(settings.solver, now)
        self.startup = StartUp(now, settings.start_deadline)
        self.journal = Journal()
        self._stopwatch = stopwatch
        self._outputs: list[events.Output] = []
        self._pending = PendingChange()
        self._detected = self._engine_seconds = 0.0
        self._handed_out: float | None = None
        for speaker in self.speakers.values():
            for solver in speaker.solvers.values():
                solver.stopwatch = stopwatch
        self._held = False
        self._swept = False
        self._stopping = False
        self._lost_links: set[int] = set()
        self._unanswered = 0
        self._now = now

    def _add_engines(self, settings: RouterSettings, rng: Rng) -> None:
        """Make the engine of each protocol that has settings. Raises ValueError without any.

        What is not spoken is not loaded: it is a tenth of a daemon's memory and start-up.
        """
        if settings.ospf is not None:
            from fared.ospf.engine import OspfEngine  # noqa: PLC0415

            self._ospf = OspfEngine(settings.ospf, rng)
            root = NodeId(settings.ospf.router_id)
            self.speakers[OSPF] = Speaker(OSPF, self._ospf, root, (4,), settings.solver)
        if settings.isis is not None:
            from fared.isis.engine import IsisEngine  # noqa: PLC0415

            self._isis = IsisEngine(settings.isis, rng)
            root, families = isis_node(settings.isis.system_id), settings.isis.families
            self.speakers[ISIS] = Speaker(ISIS, self._isis, root, families, settings.solver)
        if not self.speakers:
            raise ValueError("a router speaks at least one protocol")

    @property
    def engine(self) -> OspfEngine:
        """The OSPF engine. Raises ValueError where there is none."""
        if self._ospf is None:
            raise ValueError("this router does not speak OSPF")
        return self._ospf

    @property
    def isis(self) -> IsisEngine:
        """The IS-IS engine. Raises ValueError where there is none."""
        if self._isis is None:
            raise ValueError("this router does not speak IS-IS")
        return self._isis

    @property
    def solver(self) -> RouteSolver:
        """The solver of the first protocol, first family."""
        return next(iter(self.speakers.values())).solver

    @property
    def activity(self) -> int:
        """What all databases went through: stands still in a quiet network."""
        return sum(speaker.engine.activity() for speaker in self.speakers.values())

    # -- the contract -----------------------------------------------------------------------

    def detected(self, seconds: float) -> None:
        """Note how long the coming inputs have been on their way inside this process."""
        self._detected = seconds

    def handle(self, event: events.Input, now: float) -> None:
        """Take one input and do everything that follows from it now."""
        match event:
            case events.FibAdopted(state):
                self.planner.adopt(state)
                self._held = bool(state.routes)
            case events.FibAudited(state):
                self._audit(state, now)
            case events.FibApplied():
                self._applied(event, now)
            case events.LinksKnown():
                self._reach(Stage.LINKS_KNOWN, now)
            case events.RouterSettingsApplied(settings):
                self._apply_settings(settings, now)
            case events.WithdrawRequested():
                self._stopping = True
                self._emit_fib(self.planner.withdraw(), "clean exit")
            case _:
                started = self._stopwatch()
                self._engine_input(event, now)
                self._engine_seconds += self._stopwatch() - started
        self._now = now

    def _engine_input(self, event: events.EngineInput, now: float) -> None:
        """Hand an input to the engine it is for, or to all of them."""
        match event:
            case ospf.LinkChanged(link):
                self._link_state(link.ifindex, now, up=link.up)
                self.engine.handle(event, now)
            case isis.CircuitChanged(link):
                self._link_state(link.ifindex, now, up=link.up)
                self.isis.handle(event, now)
            case ospf.PacketReceived():
                self.engine.handle(event, now)
            case isis.PduReceived():
                self.isis.handle(event, now)
            case LinkRemoved(ifindex):
                self._link_state(ifindex, now, up=False)
                self._tell_all(event, now)
            case LoadMeasured() | ShutdownRequested() | ExternalRoutes():
                if isinstance(event, LoadMeasured) and event.utilized is not None:
                    self.adaptation.measured(now)
                self._tell_all(event, now)

    def _tell_all(
        self, event: LinkRemoved | LoadMeasured | ShutdownRequested | ExternalRoutes, now: float
    ) -> None:
        for speaker in self.speakers.values():
            speaker.engine.handle(event, now)

    def tick(self, now: float) -> None:
        """Do what has become due."""
        for speaker in self.speakers.values():
            speaker.engine.tick(now)
        if not self._held and not self._stopping:
            self._emit_fib(self.planner.tick(now), "retry or tidy")
        self._now = now

    def next_deadline(self) -> float | None:
        """When ``tick`` wants to be called next, if nothing comes in before."""
        candidates = [self.schedule.next_deadline(), self.adaptation.next_at]
        candidates += [speaker.engine.next_deadline() for speaker in self.speakers.values()]
        if not self._held and not self._stopping:
            candidates.append(self.planner.next_deadline())
        candidates.append(self.startup.next_deadline(self._now))
        known = [deadline for deadline in candidates if deadline is not None]
        return min(known) if known else None

    def drain(self) -> list[events.Output]:
        """What to send, apply and log, in order.

        What several inputs caused is worked out here, once: a burst of packets handled before
        one ``drain`` is flooded in full packets and computed in one run. Packets are handed out
        first, what is computed by the next call: call until nothing comes.
        """
        if self._handed_out is not None:
            self._pending.flooded += self._stopwatch() - self._handed_out
            self._handed_out = None
        self._turn(self._now)
        outputs, self._outputs = self._outputs, []
        if not outputs:
            self._detected = self._engine_seconds = 0.0
        elif self._pending.causes:
            self._handed_out = self._stopwatch()
        return outputs

    def _link_state(self, ifindex: int, now: float, *, up: bool) -> None:
        """Follow what the kernel did with next hops when a link's state changed."""
        if up == (ifindex not in self._lost_links):
            return
        if up:
            self._lost_links.discard(ifindex)
            self._emit_fib(self.planner.link_restored(ifindex, now), "link restored")
        else:
            self._lost_links.add(ifindex)
            self._emit_fib(self.planner.link_lost(ifindex, now), "link lost")

    # -- the turn ---------------------------------------------------------------------------

    def _turn(self, now: float) -> None:
        started = self._stopwatch()
        for speaker in self.speakers.values():
            self._drain_engine(speaker, now)
        self._engine_seconds += self._stopwatch() - started
        if self._pending.causes:
            self._pending.detected += self._detected
            self._pending.originated += self._engine_seconds
            self._detected = self._engine_seconds = 0.0
        if self._stopping or self._outputs:
            return
        if self.schedule.due(now):
            self._compute(now)
        if self.adaptation.due(now):
            self._adapt(now)
        if not self.startup.ready:
            self._advance(now)

    def _drain_engine(self, speaker: Speaker, now: float) -> None:
        for output in speaker.engine.drain():
            match output:
                case TedUpdated():
                    self._ted_updated(speaker, output, now)
                case LocalLinksChanged():
                    self._pending.add(output.cause, output.since)
                    self.schedule.topology(speaker.local_links_changed(output), now)
                case _:
                    self._outputs.append(output)

    def _ted_updated(self, speaker: Speaker, update: TedUpdated, now: float) -> None:
        news = speaker.ted_updated(update)
        self._pending.add(update.cause, update.since)
        if news is not News.FLOATS:
            self.schedule.topology(news, now)
        elif speaker.only_load and self.adaptation.running:
            pass  # weights follow it at the next step
        elif speaker.only_announced:
            self.schedule.announced(now)
        else:
            self.schedule.capacity(now)

    def _compute(self, now: float) -> None:
        """Solve, plan, and hand the difference to the kernel."""
        pending, self._pending = self._pending, PendingChange()
        self.schedule.ran(now)
        started = self._stopwatch()
        changed, spf_ran, nodes, edges, spf = self._solve()
        solved = self._stopwatch()
        record = SpfRecord(
            at=now,
            causes=pending.summary(),
            spf_ran=spf_ran,
            nodes=nodes,
            edges=edges,
            routes=len(changed),
            computed=solved - started,
            backoff=self.schedule.backoff.state.value,
            spf=spf,
        )
        self.journal.spf_runs.append(record)
        self._outputs.append(events.Computed(record))
        self.journal.last_change.update(dict.fromkeys(changed, record))
        self.journal.counts["spf" if spf_ran else "capacity"] += 1
        for speaker in self.speakers.values():
            if speaker.tell_engine(now):
                self._drain_engine(speaker, now)
        if self._held:
            return
        operations = self.planner.update(changed, now)
        planned = self._stopwatch()
        if operations:
            since = now if pending.since is None else pending.since
            change = events.Change(record, since, planned - solved, pending.lead())
            self._emit_fib(operations, "; ".join(record.causes), change)

    def _adapt(self, now: float) -> None:
        """Let weights follow the load that was flooded since, a step of their way."""
        waiting = self.schedule.backoff.next_deadline() is not None
        if not waiting and any(speaker.dirty for speaker in self.speakers.values()):
            self._compute(now)
        seconds, stale = self.adaptation.step(now)
        changed: dict[Prefix, Route | None] = {}
        for speaker in self.speakers.values():
            changed.update(self.table.take(speaker.name, speaker.step(seconds, stale=stale)))
        if changed and not self._held:
            self.journal.counts["adaptation"] += 1
            self._emit_fib(self.planner.update(changed, now), "load")

    def _solve(self) -> tuple[dict[Prefix, Route | None], bool, int, int, float]:
        """Run the solvers that have something new.

        Returns the changed best routes, whether SPF ran, nodes, edges, and what SPF took.
        """
        changed: dict[Prefix, Route | None] = {}
        spf_ran, nodes, edges, spf = False, 0, 0, 0.0
        if self._ospf is not None:
            self.speakers[OSPF].solver.set_ranges(self._ospf.ranges)
        for speaker in self.speakers.values():
            if not speaker.dirty:
                continue
            routes, updates = speaker.solve()
            changed.update(self.table.take(speaker.name, routes))
            ran = any(update.spf_ran for update in updates)
            self.journal.runs[speaker.name, "topology" if ran else "capacity"] += 1
            spf_ran |= ran
            nodes += max(update.nodes for update in updates)
            edges += max(update.edges for update in updates)
            spf += sum(update.spf_seconds for update in updates)
        return changed, spf_ran, nodes, edges, spf

    # -- the kernel -------------------------------------------------------------------------

    def _emit_fib(
        self, operations: list[FibOperation], cause: str, change: events.Change | None = None
    ) -> None:
        if operations:
            self._unanswered += 1
            self._outputs.append(events.ApplyFib(tuple(operations), cause, change))

    def _applied(self, event: events.FibApplied, now: float) -> None:
        self._unanswered -= 1
        self._emit_fib(self.planner.results(event.results, now), "again after a refusal")
        for result in event.results:
            if result.error:
                self._log_refusal(result)
        change = event.request.change
        if change is None:
            return
        converged = change.done(len(event.request.operations), event.seconds, now)
        self.journal.changes.append(converged)
        self._outputs.append(events.Converged(converged))

    def _log_refusal(self, result: OperationResult) -> None:
        fields: dict[str, object] = {
            "operation": str(result.operation),
            "error": result.error,
            "message": result.message,
        }
        self._outputs.append(LogRecord("warning", "fib-operation-refused", fields))

    def _audit(self, state: FibState, now: float) -> None:
        if self._stopping or not self.startup.ready or self._unanswered:
            return
        drift, operations = self.planner.reconcile(state, now)
        self.journal.counts["drift"] += drift
        self.journal.counts["last-drift"] = drift
        if drift:
            fields: dict[str, object] = {"objects": drift}
            self._outputs.append(LogRecord("warning", "fib-drift-repaired", fields))
        self._emit_fib(operations, "repair of foreign changes")

    # -- settings and start-up --------------------------------------------------------------

    def _apply_settings(self, settings: RouterSettings, now: float) -> None:
        self.settings = settings
        if settings.ospf is not None and self._ospf is not None:
            self._ospf.handle(ospf.SettingsApplied(settings.ospf), now)
        if settings.isis is not None and self._isis is not None:
            self._isis.handle(isis.SettingsApplied(settings.isis), now)
        for speaker in self.speakers.values():
            speaker.apply_settings(settings.solver)
        self.adaptation.configure(settings.solver, now)
        preferred = self.table.prefer(settings.preferences)
        if not self._held:
            self._emit_fib(self.planner.update(preferred, now), "preference")
        self._pending.add("configuration", now)
        self.schedule.configure(settings.backoff, now)

    def _reach(self, stage: Stage, now: float) -> None:
        if self.startup.reach(stage, now):
            self._outputs.append(events.StageReached(stage.label, self.startup.reached[stage]))

    def progress(self) -> AdjacencyProgress:
        """How many interfaces await a neighbor, have a full one, or are forming one."""
        return sum_progress(speaker.progress() for speaker in self.speakers.values())

    def _advance(self, now: float) -> None:
        """Go through the start-up stages as far as they are reached."""
        startup = self.startup
        if startup.stage is Stage.LINKS_KNOWN and startup.adjacencies_up(self.progress(), now):
            self._reach(Stage.ADJACENCIES_UP, now)
        if startup.stage is Stage.ADJACENCIES_UP and startup.lsdb_in_sync(
            self.progress(), now, confirmed=self._confirmed()
        ):
            self._reach(Stage.LSDB_IN_SYNC, now)
        if startup.stage is Stage.LSDB_IN_SYNC:
            self._first_spf(now)
        if startup.stage is Stage.FIRST_SPF and not self._unanswered:
            if self._swept:
                self._reach(Stage.FIB_IN_SYNC, now)
                self._reach(Stage.READY, now)
            else:
                self._swept = True
                self._emit_fib(self.planner.sweep(now), "sweep of stale objects")
                self._advance(now)

    def _confirmed(self) -> bool:
        return all(speaker.confirmed() for speaker in self.speakers.values())

    def _first_spf(self, now: float) -> None:
        """Bring the table up to date with the whole database, whatever the back-off says."""
        held, self._held = self._held, False
        self.schedule.backoff.ran()
        self._compute(now)
        if held:
            operations = self.planner.update(dict(self.table.routes), now)
            self._emit_fib(operations, "adopted routes brought up to date")
        self._reach(Stage.FIRST_SPF, now)
