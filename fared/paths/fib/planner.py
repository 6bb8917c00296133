"""The FIB planner: the desired state of the kernel, and the smallest safe list of operations.

``router.programming`` passes changed routes in and the operations to the kernel.

There is one next-hop object for each (interface, gateway), and one group for each distinct weight
vector, shared by all routes that have it. The rules of identity:

* A next hop gets its id at first use and keeps it for the life of the process. Objects of a
  former process are matched by content and keep their ids, so that a restart into an unchanged
  network writes nothing.
* All users of a group change to the same new vector: one atomic replace, no route is written.
  That is every change of capacity, and most failures in large networks.
* Few users (``plan.FEW_USERS``) leave a group that loses next hops, for one that holds the new
  vector: writing a few routes is faster than a replace, for which the kernel waits.
* The users diverge: the largest part keeps the group (at a tie the part without a change),
  the others move to a group that already holds their vector, or to a new one, created before
  the routes point at it.
* Two groups become identical: both stay, since merging would write routes in the middle of an
  event. After a quiet period the routes of the smaller one move to the larger.
* A single next hop: a route without a group points at the next-hop object itself. A group whose
  users all shrink to one next hop stays, as a group of one: then 4 -> 1 -> 4 next hops is two
  group replaces for any number of routes, while pointing routes away and back would write each of
  them twice. Such a group is never collapsed, since it is one small object.
* Where another program has replaced our route, ours is written again at once; if that goes on and
  on, at a limited rate (``Disputes``): two daemons in dispute must not take up the CPU.
* With a bound on groups, sets share the groups that are nearest (``MergedWeights``). A new group
  takes the place of an unused one; if there are too many nevertheless, since groups are made before
  routes leave others, these are removed as soon as the kernel has answered.
* Unused groups and next hops stay until the same quiet period, so that a flap uses them
  again, and nothing is deleted before the answers to the writes have arrived
  (deleting a next hop or group silently deletes the routes that still point at it).

The owner calls ``results`` with the kernel's answers after each list of operations, before it
calls for another: also after success, since deletions wait for the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.core.tables import shrink
from fared.paths.fib.answers import KernelAnswers
from fared.paths.fib.desired import DesiredRoutes, Routes
from fared.paths.fib.installed import InstalledState, MemberVector
from fared.paths.fib.merged import MergedWeights, Weights
from fared.paths.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    FibOperation,
    FibState,
    ForeignChanges,
    OperationResult,
    PutGroup,
    PutNextHop,
    PutRoute,
    deletions,
)
from fared.paths.fib.plan import PlanningPass
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import NextHopSet, RouteDelta
from fared.paths.weights.quantise import divide_buckets

_K = TypeVar("_K")
_V = TypeVar("_V")


class FibPlanner:
    """Holds the desired and the installed state, and plans the difference.

    ``counters``: operations by kind (``put-route``...), ``group-rewrite``, ``route-repoint``,
    ``coalesced-group``, ``failed-<kind>``, ``drift``.
    ``desired`` follows the routes from the first ``update`` on; ``installed`` is read-only for
    others.
    """

    def __init__(self, routes: Routes, settings: FibSettings | None = None) -> None:
        """``routes`` are those to program; their owner changes them before it calls ``update``."""
        self.settings = settings or FibSettings()
        self._desired = DesiredRoutes(routes)
        self._merged = MergedWeights(self.settings)
        self.counters: Counter[str] = Counter()
        self._installed = InstalledState(self.settings)
        self._answers = KernelAnswers(self.settings, self._installed, self.counters)
        self._swept = True
        self._tidy_at: float | None = None
        self._tidy_limit = 0.0

    @property
    def desired(self) -> Mapping[Prefix, NextHopSet]:
        """The next hops that each prefix should have in the kernel."""
        return self._desired

    @property
    def installed(self) -> FibState:
        """The known content of the kernel."""
        return self._installed.state

    def take_touched(self) -> set[Prefix]:
        """Return the prefixes whose installed route or next hops may have changed since last time.

        At first those of all routes. Who mirrors the table elsewhere calls this; only then changes
        are noted, also those of the kernel's answers, of lost links and of audits.
        """
        return self._installed.take_touched()

    def ignore_touched(self) -> None:
        """Note no more changes."""
        self._installed.touched = None

    @property
    def failed(self) -> int:
        """The number of refused next hops, groups and routes that will be retried."""
        return self._answers.failed

    @property
    def refusals(self) -> Sequence[OperationResult]:
        """The refusals among the last answers that have no known cause."""
        return self._answers.refusals

    # --- inputs

    def adopt(self, state: FibState) -> None:
        """Start from the objects that a former process left; before the first ``update``."""
        self._installed.replace(state)
        self._swept = not (state.nexthops or state.groups or state.routes)

    def update(
        self, changed: RouteDelta, now: float, lost: Iterable[int] = ()
    ) -> list[FibOperation]:
        """Plan for changed routes (None: withdrawn), and after the loss of the links ``lost``."""
        without = [prefix for ifindex in lost for prefix in self._lose_link(ifindex)]
        self._desired.begin()
        moved = self._merged.take(changed, self._desired.table())
        if without or moved:
            others = dict.fromkeys([*without, *moved])
            more = [p for p in others if p not in changed and p in self.desired]
            return self._plan([*changed, *more], now)
        return self._plan(changed, now)

    def written(self, hops: NextHopSet) -> Weights:
        """Return the weights that are written for a next-hop set, each next hop once."""
        return self._merged.written(hops)

    def bound(self, settings: FibSettings, now: float) -> list[FibOperation]:
        """Use other bounds of weights and groups; plan for the routes that they change."""
        bounds = (settings.max_weight, settings.max_group_size, settings.max_groups)
        present = self.settings
        if bounds == (present.max_weight, present.max_group_size, present.max_groups):
            return []
        self.settings = replace(
            present, max_weight=bounds[0], max_group_size=bounds[1], max_groups=bounds[2]
        )
        self._merged = MergedWeights(self.settings)
        table = self._desired.table()
        if table:
            self._merged.take({}, table)
        return self._plan(self.desired, now)

    def link_lost(self, ifindex: int, now: float) -> list[FibOperation]:
        """Plan after the loss of a link.

        The list is usually empty, because the rest is already as desired.
        """
        lost = self._lose_link(ifindex)
        return self._plan([prefix for prefix in lost if prefix in self.desired], now)

    def _lose_link(self, ifindex: int) -> list[Prefix]:
        """Follow the loss of a link, with which the kernel silently removed objects.

        It deletes the next hops of the link, shrinks groups, and deletes emptied groups together
        with their routes. Returns the prefixes of these.
        """
        self._answers.link_lost(ifindex)
        lost = self._installed.lose_nexthops(self._installed.ids_on(ifindex))
        for prefix in lost:
            self._answers.previous.pop(prefix, None)
        return lost

    def link_restored(self, ifindex: int, now: float) -> list[FibOperation]:
        """Plan after a link came up again: write its next hops that are needed."""
        self._answers.link_restored(ifindex)
        return self._plan(self.desired, now)

    def reconcile(self, actual: FibState, now: float) -> tuple[int, list[FibOperation]]:
        """Compare with a dump; return how many objects others changed, and the repair.

        Where the routes are as expected the dump has the very dictionary of ``installed``.
        No operation may be unanswered while the dump is read.
        """
        drift = _differences(self._installed.state, actual)
        if not drift:
            return 0, []
        self.counters["drift"] += drift
        self._installed.replace(actual)
        self._answers.expect_nothing()
        scope: Iterable[Prefix] = self.desired
        # until the sweep, adopted routes that nothing desires yet keep forwarding
        if self._swept:
            scope = dict.fromkeys((*self.desired, *actual.routes))
        waiting = {
            prefix
            for prefix in actual.taken
            if prefix not in self.desired or not self._answers.may_take_back(prefix, now)
        }
        if waiting:
            scope = [prefix for prefix in scope if prefix not in waiting]
        operations = self._plan(scope, now)
        self._touch(now)
        return drift, operations

    def mend(self, changes: ForeignChanges, now: float) -> tuple[int, list[FibOperation]]:
        """Write again what notifications tell; return of how many objects, and the repair.

        What is not installed is not missed. No operation may be unanswered.
        """
        drift, concerned = self._installed.damaged(changes)
        self.counters["drift"] += drift
        nexthops = self.installed.nexthops
        again: list[FibOperation] = [
            PutNextHop(object_id, nexthops[object_id])
            for object_id in changes.changed
            if object_id in nexthops
        ]
        waiting = {p for p in changes.taken if not self._answers.may_take_back(p, now)}
        scope = [p for p in concerned if p in self.desired and p not in waiting]
        return drift, [*self._count(again), *self._plan(scope, now)]

    def results(
        self, results: Sequence[OperationResult], now: float, unanswered: int = 0
    ) -> list[FibOperation]:
        """Process the kernel's answers; return operations to try at once after refusals.

        ``unanswered`` is the number of lists without answers. Links that were lost meanwhile must
        already be known (``link_lost``). ``refusals`` are then the answers without a known cause.
        """
        again = self._answers.take(results, now, unanswered)
        # This ends: each round excludes a next hop or group that was not refused before.
        return self._plan(self.desired, now) if again else []

    def sweep(self, now: float) -> list[FibOperation]:
        """Delete adopted objects that no route needs; call once the network has converged."""
        self._swept = True
        stale = [prefix for prefix in self._installed.state.routes if prefix not in self.desired]
        operations = self._plan(stale, now)
        # While an answer is awaited, a refused write may leave its route on the old object.
        if not self._answers.previous:
            operations += self._count(self._retire())
        return operations

    def withdraw(self) -> list[FibOperation]:
        """Remove everything of ours, routes first: for a clean exit."""
        self._desired.end()
        self._answers.forget()
        self._tidy_at = None
        state = self._installed.state
        operations = deletions(state)
        self._installed.replace(FibState(reserved=state.reserved))
        return self._count(operations)

    # --- time

    def next_deadline(self) -> float | None:
        """Return when to call ``tick``; None while there is nothing to do."""
        tidy = None if self._answers.previous else self._tidy_at
        deadlines = (self._answers.next_retry(), tidy)
        return min((at for at in deadlines if at is not None), default=None)

    def tick(self, now: float) -> list[FibOperation]:
        """Retry refused operations; after a quiet period merge groups and remove unused objects."""
        due = self._answers.retry(now)
        if due:
            operations = self._plan(self.desired, now)
            self._answers.retried(due, operations)
            return operations
        if self._tidy_at is None or self._answers.previous or now < self._tidy_at:
            return []
        operations = self._coalesce()
        if operations:
            return self._count(operations)  # retire in the next tick, after the answers
        self._tidy_at = None
        # Adopted objects may still get users: they stay until ``sweep``.
        return self._count(self._retire()) if self._swept else []

    # --- planning

    def _plan(self, prefixes: Iterable[Prefix], now: float) -> list[FibOperation]:
        plan = PlanningPass(
            self._installed,
            self._desired.table(),
            self._resolve,
            self._answers.previous,
            self._answers.rewritten,
            resilient=self.settings.resilient,
            max_groups=self.settings.max_groups,
        )
        operations = plan.run(prefixes)
        self._installed.forget_vectors()
        shrink(self._installed.state.routes)
        if operations:
            self._touch(now)
        return self._count(operations)

    def _resolve(self, hops: NextHopSet) -> MemberVector:
        """Return the members of a next-hop set, without next hops that cannot be installed now."""
        weights: dict[int, int] = {}
        unusable, hop_ids = self._answers.unusable, self._installed.hop_ids
        for hop, weight in self._merged.written(hops):
            if unusable and not self._answers.usable(hop):
                continue
            hop_id = hop_ids.get(hop)
            if hop_id is None:
                hop_id = self._installed.hop_id(hop)
            weights[hop_id] = weight
        if self.settings.resilient and len(weights) > 1:
            weights = self._in_buckets(weights)
        return self._installed.intern(self._installed.members(weights))

    def _in_buckets(self, weights: dict[int, int]) -> dict[int, int]:
        """Return weights for a resilient group: the whole number of buckets of each member.

        The kernel would round other weights to buckets in the order of members. Vectors with the
        same buckets are equal, so no group is rewritten between them. A member with less than one
        bucket gets none.
        """
        shares = divide_buckets(tuple(weights.values()), self.settings.buckets_of(len(weights)))
        return {hop_id: n for hop_id, n in zip(weights, shares, strict=True) if n}

    def _touch(self, now: float) -> None:
        """Delay housekeeping until changes pause, up to a limit; not with too many groups."""
        if self._tidy_at is None:
            self._tidy_limit = now + self.settings.coalesce_limit
        most = self.settings.max_groups
        if most is not None and len(self._installed.state.groups) > most:
            self._tidy_limit = now
        self._tidy_at = min(now + self.settings.coalesce_delay, self._tidy_limit)

    def _coalesce(self) -> list[FibOperation]:
        operations: list[FibOperation] = []
        users = self._installed.users
        for groups in self._installed.identical():
            survivor = max(groups, key=lambda g: (len(users[g]), -g))
            for group_id in groups:
                if group_id == survivor:
                    continue
                self.counters["coalesced-group"] += 1
                for prefix in list(users[group_id]):
                    self._answers.previous[prefix] = group_id
                    self._installed.set_route(prefix, survivor)
                    operations.append(PutRoute(prefix, survivor))
        return operations

    def _retire(self) -> list[FibOperation]:
        operations: list[FibOperation] = []
        for group_id in self._installed.unused_groups():
            self._installed.drop_group(group_id)
            self._answers.settled(group_id)
            operations.append(DeleteGroup(group_id))
        unused = self._installed.unused_nexthops()
        self._installed.lose_nexthops(unused)
        operations += [DeleteNextHop(nexthop_id) for nexthop_id in unused]
        return operations

    def _count(self, operations: list[FibOperation]) -> list[FibOperation]:
        counters, previous = self.counters, self._answers.previous
        for operation in operations:
            counters[operation.kind] += 1
            if isinstance(operation, PutGroup) and operation.replace:
                counters["group-rewrite"] += 1
            elif isinstance(operation, PutRoute) and previous.get(operation.prefix) is not None:
                counters["route-repoint"] += 1
        return operations


def _differences(installed: FibState, actual: FibState) -> int:
    """Return the number of next hops, groups and routes that differ."""
    return (
        _unlike(installed.nexthops, actual.nexthops)
        + _unlike(installed.groups, actual.groups)
        + _unlike(installed.routes, actual.routes)
    )


def _unlike(left: Mapping[_K, _V], right: Mapping[_K, _V]) -> int:
    if left is right or left == right:
        return 0
    changed = sum(right.get(key) != value for key, value in left.items())
    return changed + sum(key not in left for key in right)
