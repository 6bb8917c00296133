"""What is sprayed: the desired state from the installed FIB, and when to change the kernel to it.

``router.spraying`` owns the planner. One change is in progress at a time, since it takes the kernel
milliseconds; what changes meanwhile follows with the answer. After a refusal the kernel's state is
read with the answer, and the rest is tried again after pauses that double.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fared.core.ids import Prefix
from fared.paths.fib.model import FibState, Member
from fared.paths.fib.round_robin import period_of, rotated, smooth
from fared.paths.fib.settings import Granularity, SpraySettings
from fared.paths.fib.spray import (
    Block,
    SprayOperation,
    SprayRound,
    SprayState,
    blocks_of,
    operations_between,
)

SMALL = 256
"""Bytes. Acknowledgments are smaller, data is larger. If both shared a round, a pattern of the two
with a period of its own would give next hops of equal weight unequal bytes: where they alternate,
one of two next hops would get all data."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SEVERAL = 2


class SprayPlanner:
    """Holds the desired and the installed state.

    ``counters``: operations by kind, ``failed``, ``drift``. ``installed`` and ``desired`` are
    read-only for others; ``error`` is the last refusal, until a change succeeds.
    """

    def __init__(self, settings: SpraySettings) -> None:
        self.settings = settings
        self.counters: Counter[str] = Counter()
        self.installed = SprayState()
        self.desired = SprayState()
        self.error = ""
        self.busy = False
        """Whether a change is in progress."""
        self._known = False
        self._planned = self.installed
        self._lost: set[int] = set()
        """Marks that went while a change was in progress."""
        self._pause = _FIRST_PAUSE
        self._retry_at: float | None = None
        self._holders: dict[Prefix, int | None] = {}
        self._blocks: dict[Block, int] = {}
        self._inside: tuple[Prefix, ...] | None = None

    def sprayed(self, prefix: Prefix) -> bool:
        """Whether packets to addresses of a prefix are sprayed, as far as ``match`` selects."""
        inside = self.settings.prefixes
        return self._holders.get(prefix) in self.installed.rounds and (
            not inside or any(each.covers(prefix) or prefix.covers(each) for each in inside)
        )

    def desire(self, fib: FibState, routes: Iterable[Prefix], local: Iterable[Prefix]) -> None:
        """Derive the desired state from the installed FIB.

        ``routes``: prefixes that this router routes, installed or not. ``local``: prefixes of other
        routes in the kernel, which keep their path.
        """
        if self.settings.by_flow:
            self.desired = SprayState()
            return
        blocks = self._destinations(_holders(fib, routes, local))
        rounds = {g: self._round(fib.groups[g]) for g in dict.fromkeys(blocks.values())}
        used = dict.fromkeys(hop for each in rounds.values() for hop in each.order)
        marks = {hop: fib.nexthops[hop][1] for hop in used if hop in fib.nexthops}
        self.desired = SprayState(self.settings.match, marks, rounds, blocks)

    def _destinations(self, holders: dict[Prefix, int | None]) -> dict[Block, int]:
        """Return the blocks; a change of weights alone does not divide addresses again."""
        if holders != self._holders or self._inside != self.settings.prefixes:
            self._holders, self._inside = holders, self.settings.prefixes
            self._blocks = blocks_of(holders, self.settings.prefixes)
        return self._blocks

    def _round(self, members: tuple[Member, ...]) -> SprayRound:
        ids = [member.nexthop_id for member in members]
        order = smooth(period_of([member.weight for member in members]))
        hops = tuple(ids[at] for at in rotated(order, self.settings.phase))
        if self.settings.granularity is Granularity.FLOWLET:  # may begin with a small packet
            return SprayRound(hops, gap=max(round(self.settings.gap * 1e3), 1))
        return SprayRound(hops, small=SMALL)

    def lose_marks(self, nexthops: Mapping[int, object]) -> None:
        """Record that the kernel removed the routes of next hops that are not among these."""
        for gone in [hop for hop in self.installed.marks if hop not in nexthops]:
            self.installed.marks[gone] = 0
            if self.busy:
                self._lost.add(gone)

    # --- the kernel

    def adopt(self, state: SprayState) -> None:
        """Start from what the kernel holds."""
        self.installed, self._known = state, True

    def reconcile(self, state: SprayState) -> int:
        """Take the state of the kernel; return how many objects others changed."""
        drift = len(operations_between(state, self.installed)) if self._known else 0
        self.counters["drift"] += drift
        self.adopt(state)
        return drift

    def plan(self, now: float) -> list[SprayOperation]:
        """Return the operations to the desired state, unless one must wait."""
        waits = self._retry_at is not None and now < self._retry_at
        if not self._known or self.busy or waits:
            return []
        operations = operations_between(self.installed, self.desired)
        if not operations:
            return []
        self.counters.update(operation.kind for operation in operations)
        self.busy, self._retry_at, self._planned = True, None, self.desired
        self._lost.clear()
        return operations

    def answered(self, error: str, state: SprayState | None, now: float) -> None:
        """Take the kernel's answer; after an error ``state`` is what it holds, None: unknown."""
        self.busy = False
        self.error = error
        if not error:
            self.installed, self._pause = _copy(self._planned), _FIRST_PAUSE
            self.installed.marks.update(dict.fromkeys(self._lost & {*self.installed.marks}, 0))
            self._lost.clear()
            return
        self.counters["failed"] += 1
        self._retry_at = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        if state is not None:
            self.installed = state
        else:  # the rules of marks are gone
            self.installed.marks = dict.fromkeys(self.installed.marks, 0)

    def next_deadline(self) -> float | None:
        """Return when to plan again after a refusal."""
        return None if self.busy else self._retry_at


def _holders(
    fib: FibState, routes: Iterable[Prefix], local: Iterable[Prefix]
) -> dict[Prefix, int | None]:
    """Return the group of each prefix with several next hops, None for all others."""
    groups = fib.groups
    several = {g for g, members in groups.items() if len(members) >= _SEVERAL}
    holders: dict[Prefix, int | None] = dict.fromkeys(routes)
    holders.update((p, target if target in several else None) for p, target in fib.routes.items())
    holders.update(dict.fromkeys(local))
    return holders


def _copy(state: SprayState) -> SprayState:
    return SprayState(state.match, dict(state.marks), dict(state.rounds), dict(state.blocks))
