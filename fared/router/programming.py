"""Passes the planner's operations to the kernel, and the kernel's answers back.

While the FIB is frozen nothing is written: the routes adopted from a former process stay unchanged
until start-up has the whole database. Nothing is written after a withdrawal either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from fared.paths.fib.model import FibOperation, FibState, ForeignChanges, OperationResult
from fared.paths.fib.planner import FibPlanner
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import RouteDelta
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.convergence import Journal, SpfRecord, StageTimes

_TOLD_EVERY: Final = 1.0
"""Seconds between two lines about repairs, which may be hundreds a second."""


class SolvedChange(msgspec.Struct, frozen=True):
    """Changed routes that are to be planned; ``solved``: the stopwatch when they were computed."""

    routes: RouteDelta
    record: SpfRecord
    since: float
    stages: StageTimes
    solved: float


class FibProgramming:
    """Executes a planner; ``outputs`` receives the operations and log records."""

    def __init__(self, planner: FibPlanner, journal: Journal, outputs: list[events.Output]) -> None:
        self.frozen = False
        self.withdrawn = False
        self.unanswered = 0
        """Batches that the kernel has not answered yet."""
        self.version = 0
        """Incremented whenever the installed state may have changed."""
        self._planner = planner
        self._journal = journal
        self._outputs = outputs
        self._audited_drift = self._untold = 0
        self._told_at = float("-inf")
        self._lost_links: set[int] = set()
        self.unfollowed: list[int] = []
        """Lost links whose next hops the planner still believes to be installed."""

    def adopt(self, state: FibState) -> None:
        """Start from the objects that a former process left in the kernel."""
        self.version += 1
        self._planner.adopt(state)
        self.frozen = bool(state.routes)

    def withdraw(self, now: float) -> None:
        """Remove everything: a clean exit."""
        self.follow_losses(now)
        self.withdrawn = True
        self.apply(self._planner.withdraw(), "clean exit")

    def tick(self, now: float) -> None:
        """Retry refused operations, merge groups and remove unused objects."""
        self.follow_losses(now)
        if not self.frozen and not self.withdrawn:
            self.apply(self._planner.tick(now), "retry or housekeeping")

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""
        return None if self.frozen or self.withdrawn else self._planner.next_deadline()

    def link_state(self, ifindex: int, now: float, *, up: bool) -> None:
        """Follow the next hops of a link: at once if it is up, else after the loss is flooded."""
        if up == (ifindex not in self._lost_links):
            return
        self.version += 1
        if up:
            self.follow_losses(now)
            self._lost_links.discard(ifindex)
            self.apply(self._planner.link_restored(ifindex, now), "link restored")
        else:
            self._lost_links.add(ifindex)
            if not self.withdrawn:
                self.unfollowed.append(ifindex)

    def follow_losses(self, now: float) -> None:
        """Follow the next hops that the kernel removed with links.

        Neighbors wait for the flooded loss; this router's kernel needs nothing for it.
        """
        while self.unfollowed:
            self.apply(self._planner.link_lost(self.unfollowed.pop(0), now), "link lost")

    def configure(self, settings: FibSettings, now: float) -> None:
        """Use other bounds of weights and groups."""
        self.follow_losses(now)
        operations = self._planner.bound(settings, now)
        if not (self.frozen or self.withdrawn):
            self.apply(operations, "configuration")

    def update(self, changed: RouteDelta, now: float, cause: str) -> None:
        """Write changed routes, unless the FIB is frozen."""
        self.follow_losses(now)
        if not self.frozen:
            self.apply(self._planner.update(changed, now), cause)

    def plan(self, change: SolvedChange, now: float, stopwatch: Callable[[], float]) -> None:
        """Write computed routes, unless the FIB is frozen, and record how long it takes."""
        if self.frozen:
            return
        lost, self.unfollowed = self.unfollowed, []
        operations = self._planner.update(change.routes, now, lost)
        if operations:
            record, planned = change.record, stopwatch() - change.solved
            whole = events.PlannedChange(record, change.since, planned, change.stages)
            self.apply(operations, "; ".join(record.causes), whole)

    def sweep(self, now: float) -> None:
        """Remove adopted objects that nothing uses."""
        self.apply(self._planner.sweep(now), "sweep of stale objects")

    def apply(
        self, operations: list[FibOperation], cause: str, change: events.PlannedChange | None = None
    ) -> None:
        """Have operations applied, as one batch."""
        if operations:
            self.version += 1
            self.unanswered += 1
            self._outputs.append(events.ApplyFib(tuple(operations), cause, change))

    def applied(self, event: events.FibApplied, now: float) -> None:
        """Take the kernel's answers to a batch."""
        self.follow_losses(now)
        self.version += 1
        self.unanswered -= 1
        again = self._planner.results(event.results, now, self.unanswered)
        self.apply(again, "retry after a refusal")
        for result in self._planner.refusals:
            self._log_refusal(result)
        change = event.request.change
        if change is None:
            return
        converged = change.done(len(event.request.operations), event.seconds, now)
        self._journal.changes.append(converged)
        self._outputs.append(events.Converged(converged))

    def _log_refusal(self, result: OperationResult) -> None:
        fields: dict[str, object] = {
            "operation": str(result.operation),
            "error": result.error,
            "message": result.message,
        }
        self._outputs.append(igp.LogRecord("warning", "fib-operation-refused", fields))

    def audit(self, state: FibState, now: float) -> None:
        """Repair changes by others; a reading that a batch of ours overtakes is ignored."""
        self.follow_losses(now)
        if self.withdrawn or self.unanswered:
            return
        self.version += 1
        self._repair(*self._planner.reconcile(state, now), now)
        drifted = self._journal.counts["drift"]
        self._journal.counts["last-drift"] = drifted - self._audited_drift
        self._audited_drift = drifted

    def mend(self, changes: ForeignChanges, now: float) -> None:
        """Repair what notifications tell; while a batch is unanswered the next audit does."""
        self.follow_losses(now)
        if not (self.withdrawn or self.unanswered):
            self._repair(*self._planner.mend(changes, now), now)

    def _repair(self, drift: int, operations: list[FibOperation], now: float) -> None:
        """Have foreign changes repaired; a line tells of all within ``_TOLD_EVERY`` seconds."""
        if drift:
            self.version += 1
            self._journal.counts["drift"] += drift
            self._untold += drift
        if self._untold and now >= self._told_at + _TOLD_EVERY:
            fields: dict[str, object] = {"objects": self._untold}
            self._outputs.append(igp.LogRecord("warning", "fib-drift-repaired", fields))
            self._untold, self._told_at = 0, now
        self.apply(operations, "repair of foreign changes")
