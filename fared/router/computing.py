"""The computing of a turn: routes of what changed, weights that follow load, and their programs.

``Router`` decides the order within a turn, ``schedule`` and ``adapting`` when each is due; here is
what is done then, and the record of it in the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fared.paths.ted.change import ChangeKind
from fared.router import events
from fared.router.convergence import Journal, PendingChange, SpfRecord
from fared.router.programming import SolvedChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from fared.paths.rib.model import RouteDelta
    from fared.paths.rib.table import RoutingTable
    from fared.router.adapting import AdaptationClock
    from fared.router.instance import ProtocolInstance
    from fared.router.multicast import Multicast
    from fared.router.programming import FibProgramming
    from fared.router.redistribution import Redistributor
    from fared.router.schedule import Schedule


class Consumers(msgspec.Struct, frozen=True):
    """Who takes the routes that are computed."""

    table: RoutingTable
    redistribution: Redistributor
    fib: FibProgramming
    multicast: Multicast
    outputs: list[events.Output]


class Computing:
    """Solves changes, and programs routes and weights."""

    def __init__(
        self,
        instances: dict[str, ProtocolInstance],
        schedule: Schedule,
        adaptation: AdaptationClock,
        journal: Journal,
        consumers: Consumers,
    ) -> None:
        self.pending = PendingChange()
        self.unplanned: SolvedChange | None = None
        """Routes that are planned once other routers have been told of them."""
        self._instances = instances
        self._schedule = schedule
        self._adaptation = adaptation
        self._journal = journal
        self._to = consumers

    @property
    def dirty(self) -> bool:
        """Whether a protocol has changes that are not computed."""
        return any(instance.dirty for instance in self._instances.values())

    def request(self, kind: ChangeKind, cause: str, since: float, now: float) -> bool:
        """Request a run for a change, if it is one; ``since``: the time of its first sign."""
        # Weights that follow load do so at the next step; the others do not depend on it.
        load = kind is ChangeKind.LOAD
        if kind is ChangeKind.NONE or (load and not self._adaptation.running):
            return False
        self.pending.add(cause, since)
        if not load:
            self._schedule.request(kind, now)
        return True

    def solve(self, now: float, stopwatch: Callable[[], float]) -> SolvedChange:
        """Compute the routes of all pending changes."""
        pending, self.pending = self.pending, PendingChange()
        self._schedule.ran(now)
        started = stopwatch()
        changed, spf_ran, nodes, edges, spf = self._solve()
        solved = stopwatch()
        record = SpfRecord(
            at=now,
            causes=pending.summary(),
            spf_ran=spf_ran,
            nodes=nodes,
            edges=edges,
            routes=len(changed),
            computed=solved - started,
            backoff=self._schedule.backoff.state.value,
            spf=spf,
        )
        self._journal.spf_runs.append(record)
        self._to.outputs.append(events.Computed(record))
        self._journal.changed(changed, now, record.causes)
        if changed:
            self._to.multicast.routes_changed()
        self._journal.counts["spf" if spf_ran else "capacity"] += 1
        since = now if pending.since is None else pending.since
        return SolvedChange(changed, record, since, pending.stage_times(), solved)

    def _solve(self) -> tuple[RouteDelta, bool, int, int, float]:
        """Run the solvers with changes.

        Returns the changed best routes, whether SPF ran, nodes, edges, and the duration of SPF.
        """
        changed: RouteDelta = {}
        spf_ran, nodes, edges, spf = False, 0, 0, 0.0
        for instance in self._instances.values():
            if not instance.dirty:
                continue
            routes, updates = instance.solve()
            retagged = [prefix for update in updates for prefix in update.retagged]
            changed.update(self._to.table.take(routes))
            changed.update(self._to.table.reconsider(retagged))
            self._to.redistribution.examine((*routes, *retagged))
            ran = True in [update.spf_ran for update in updates]
            self._journal.runs[instance.name, "topology" if ran else "capacity"] += 1
            spf_ran |= ran
            nodes += max([update.nodes for update in updates])
            edges += max([update.edges for update in updates])
            spf += sum([update.spf_seconds for update in updates])
        return changed, spf_ran, nodes, edges, spf

    def plan(self, change: SolvedChange, now: float, stopwatch: Callable[[], float]) -> None:
        """Have computed routes written."""
        self.unplanned = None
        self._to.fib.plan(change, now, stopwatch)

    def step(self, now: float) -> None:
        """Let weights take a step toward the load that was flooded."""
        seconds, stale = self._adaptation.step(now)
        for instance in self._instances.values():
            instance.step(seconds, stale=stale)
        if any(instance.unprogrammed for instance in self._instances.values()):
            self._journal.counts["adaptation"] += not self._to.fib.frozen
            self.program_portion(now)

    def program_portion(self, now: float) -> None:
        """Program a portion of the weights that the last step moved.

        They are those of now: a change that was computed since the step has taken effect in them.
        """
        for instance in self._instances.values():
            if instance.unprogrammed:
                portion = instance.program(self._adaptation.portion)
                self.write(self._to.table.take(portion), now, "load")
                break
        more = any(instance.unprogrammed for instance in self._instances.values())
        self._adaptation.programmed(now, more=more)
        if not more:
            self._to.multicast.routes_changed()

    def write(self, changed: RouteDelta, now: float, cause: str) -> None:
        """Have routes written that changed without a run of the solvers."""
        self._to.redistribution.examine(changed)
        self._journal.changed(changed, now, (cause,))
        self._to.fib.update(changed, now, cause)
