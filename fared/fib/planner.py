"""The FIB planner: what the kernel should hold, and the smallest safe way to get there.

One next-hop object per (interface, gateway), one group per distinct weight vector, shared by
all routes that have it. The rules of identity:

* Ids of next hops are given at first use and stay for the life of the process; what a former
  process left is matched by content and keeps its ids, so that a restart into an unchanged
  network writes nothing.
* All users of a group go to the same new vector: one atomic replace, no route is touched.
  That is every change of capacity, and most failures.
* The users split: the largest part keeps the group (at a tie the part that wants no change),
  the others move to a group that holds their vector already, or to a new one, created before
  the routes are pointed at it.
* Two groups become identical: both stay, since merging would write routes in the middle of an
  event. After a quiet period the routes of the smaller are pointed at the larger.
* A single next hop: a route that had none points at the next-hop object itself. A group of
  which all users shrink to one next hop stays, as a group of one: then 4 -> 1 -> 4 next hops
  is two group replaces however many routes there are, while pointing routes away and back
  would write each of them twice. It is never collapsed: it costs one small object.
* Unused groups and next hops stay until the same quiet period, so that a flap finds them
  again, and so that nothing is deleted before the answers to the writes have been seen
  (deleting a next hop or group silently deletes the routes that still point at it).

The owner calls ``results`` with the kernel's answers after each list of operations, before it
asks for another: success too, because deletions wait for it.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from fared.core.ids import Prefix
from fared.fib.belief import Belief, Vector
from fared.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    DeleteRoute,
    FibOperation,
    FibState,
    Member,
    OperationResult,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.fib.plan import Plan
from fared.fib.settings import FibSettings
from fared.rib.model import HopKey, NextHopSet, Route
from fared.weights.quantise import divide_buckets

MAX_WEIGHT = 65535
_K = TypeVar("_K")
_V = TypeVar("_V")
_MEMBER: Callable[[tuple[int, int]], Member] = partial(tuple.__new__, Member)
"""``Member._make`` without its checks: there are tens of thousands where hundreds of groups change."""
_ALREADY_GONE = frozenset((errno.ENOENT, errno.ESRCH))


@dataclass(slots=True)
class _Backoff:
    """How often something was refused, and when to try again."""

    attempts: int
    retry_at: float


class FibPlanner:
    """Holds what is desired and what is believed to be there, and plans the difference.

    ``counters``: operations by kind (``put-route``...), ``group-rewrite``, ``route-repoint``,
    ``coalesced-group``, ``failed-<kind>``, ``drift``.
    ``desired`` and ``believed`` may be read by anybody; only the planner changes them.
    """

    def __init__(self, settings: FibSettings | None = None) -> None:
        self.settings = settings or FibSettings()
        self.desired: dict[Prefix, NextHopSet] = {}
        self.counters: Counter[str] = Counter()
        self._belief = Belief(self.settings)
        self._down: set[int] = set()
        self._excluded: set[HopKey] = set()
        self._usable: dict[HopKey, int] = {}
        self._backoffs: dict[HopKey | Prefix | int, _Backoff] = {}
        self._displaced: dict[Prefix, int | None] = {}
        self._swept = True
        self._tidy_at: float | None = None
        self._tidy_limit = 0.0

    @property
    def believed(self) -> FibState:
        """What the kernel is believed to hold."""
        return self._belief.state

    @property
    def failed(self) -> int:
        """How many next hops, groups and routes the kernel refused and are to be retried."""
        return len(self._backoffs)

    # --- inputs

    def adopt(self, state: FibState) -> None:
        """Start from what a former process left in the kernel; before the first ``update``."""
        self._belief.replace(state)
        self._swept = not (state.nexthops or state.groups or state.routes)

    def update(self, changed: Mapping[Prefix, Route | None], now: float) -> list[FibOperation]:
        """Take over changed routes (None: withdrawn) and plan for them."""
        for prefix, route in changed.items():
            hops = route.nexthops if route is not None else None
            if hops is None or not hops.key:
                self.desired.pop(prefix, None)
            else:
                self.desired[prefix] = hops
        return self._plan(changed, now)

    def link_lost(self, ifindex: int, now: float) -> list[FibOperation]:
        """A link lost its carrier or went away: so did, silently, all that went through it.

        The kernel deleted the next hops of the link, shrank groups, deleted emptied groups
        together with their routes. The list is mostly empty: what is left is what is wanted.
        """
        self._down.add(ifindex)
        self._usable.clear()
        lost = self._belief.lose_nexthops(self._belief.ids_on(ifindex))
        for prefix in lost:
            self._displaced.pop(prefix, None)
        return self._plan([prefix for prefix in lost if prefix in self.desired], now)

    def link_restored(self, ifindex: int, now: float) -> list[FibOperation]:
        """A link works again: put back what is still wanted of it."""
        self._down.discard(ifindex)
        for hop in [h for h in self._excluded if h[0] == ifindex]:
            self._excluded.discard(hop)
            self._backoffs.pop(hop, None)
        return self._plan(self.desired, now)

    def reconcile(self, actual: FibState, now: float) -> tuple[int, list[FibOperation]]:
        """Compare with a dump; return how many objects others changed, and the repair.

        The dump must be taken while no operation is on its way.
        """
        drift = _differences(self._belief.state, actual)
        if not drift:
            return 0, []
        self.counters["drift"] += drift
        self._belief.replace(actual)
        self._displaced.clear()
        scope: Iterable[Prefix] = self.desired
        if self._swept:
            scope = {**self.desired, **dict.fromkeys(actual.routes)}
        operations = self._plan(scope, now)
        self._touch(now)
        return drift, operations

    def results(self, results: Sequence[OperationResult], now: float) -> list[FibOperation]:
        """Take the kernel's answers; return what to try at once instead of what failed."""
        again = False
        for result in results:
            operation = result.operation
            if result.error == 0:
                self._confirmed(operation)
            else:
                again |= self._refused(operation, result.error, now)
        # Each round has a next hop or group that was not refused before: this comes to an end.
        return self._plan(self.desired, now) if again else []

    def sweep(self, now: float) -> list[FibOperation]:
        """Delete what was adopted and nobody wants: only once the network has converged."""
        self._swept = True
        stale = [prefix for prefix in self._belief.state.routes if prefix not in self.desired]
        operations = self._plan(stale, now)
        if not self._displaced:
            operations += self._count(self._retire())
        return operations

    def withdraw(self) -> list[FibOperation]:
        """Remove everything of ours, routes first: for a clean exit."""
        self.desired.clear()
        self._backoffs.clear()
        self._displaced.clear()
        self._tidy_at = None
        state = self._belief.state
        operations: list[FibOperation] = [DeleteRoute(prefix) for prefix in state.routes]
        operations += [DeleteGroup(group_id) for group_id in state.groups]
        operations += [DeleteNextHop(nexthop_id) for nexthop_id in state.nexthops]
        self._belief.replace(FibState(reserved=state.reserved))
        return self._count(operations)

    # --- time

    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do; None while nothing is waiting."""
        deadlines = [b.retry_at for b in self._backoffs.values()]
        if self._tidy_at is not None and not self._displaced:
            deadlines.append(self._tidy_at)
        return min(deadlines, default=None)

    def tick(self, now: float) -> list[FibOperation]:
        """Retry what was refused; after a quiet period merge groups and remove the unused."""
        due = [key for key, b in self._backoffs.items() if b.retry_at <= now]
        if due:
            return self._retry(due, now)
        if self._tidy_at is None or self._displaced or now < self._tidy_at:
            return []
        operations = self._coalesce()
        if operations:
            return self._count(operations)  # retire in the next tick, after the answers
        self._tidy_at = None
        # What was adopted may still find a user: until convergence is declared, it stays.
        return self._count(self._retire()) if self._swept else []

    def _retry(self, due: list[HopKey | Prefix | int], now: float) -> list[FibOperation]:
        for key in due:
            # Fires once; the attempts are kept until success.
            self._backoffs[key].retry_at = now + self.settings.retry_limit
            if type(key) is tuple:
                self._excluded.discard(key)
        operations = self._plan(self.desired, now)
        tried = {_key(operation) for operation in operations}
        for key in due:
            if key not in tried:
                del self._backoffs[key]
        return operations

    # --- planning

    def _plan(self, prefixes: Iterable[Prefix], now: float) -> list[FibOperation]:
        plan = Plan(
            self._belief,
            self.desired,
            self._resolve,
            self._displaced,
            resilient=self.settings.resilient,
        )
        operations = plan.run(prefixes)
        self._belief.forget_vectors()
        if operations:
            self._touch(now)
        return self._count(operations)

    def _resolve(self, hops: NextHopSet) -> Vector:
        """The members of a next-hop set, without next hops that cannot be installed now."""
        weights: dict[int, int] = {}
        usable = self._usable
        for hop, weight in hops.key:
            hop_id = usable.get(hop)
            if hop_id is None:
                if hop[0] in self._down or hop in self._excluded:
                    continue
                hop_id = usable[hop] = self._belief.hop_id(hop)
            if hop_id in weights:  # two neighbors behind one next hop
                weight = min(weights[hop_id] + weight, MAX_WEIGHT)  # noqa: PLW2901
            weights[hop_id] = weight
        if self.settings.resilient and len(weights) > 1:
            weights = self._in_buckets(weights)
        return self._belief.intern(tuple(map(_MEMBER, sorted(weights.items()))))

    def _in_buckets(self, weights: dict[int, int]) -> dict[int, int]:
        """Weights that a resilient group takes as they are: whole buckets of each member.

        The kernel would round others to buckets by their order; vectors that come to the same
        buckets are one, and no group is rewritten between them. A member with less than its
        first bucket gets none.
        """
        shares = divide_buckets(tuple(weights.values()), self.settings.buckets_of(len(weights)))
        return {hop_id: n for hop_id, n in zip(weights, shares, strict=True) if n}

    def _touch(self, now: float) -> None:
        """Something changed: housekeeping waits for quiet, but not for ever."""
        if self._tidy_at is None:
            self._tidy_limit = now + self.settings.coalesce_limit
        self._tidy_at = min(now + self.settings.coalesce_delay, self._tidy_limit)

    def _coalesce(self) -> list[FibOperation]:
        operations: list[FibOperation] = []
        users = self._belief.users
        for groups in self._belief.identical():
            keeper = max(groups, key=lambda g: (len(users[g]), -g))
            for group_id in groups:
                if group_id == keeper:
                    continue
                self.counters["coalesced-group"] += 1
                for prefix in list(users[group_id]):
                    self._displaced[prefix] = group_id
                    self._belief.set_route(prefix, keeper)
                    operations.append(PutRoute(prefix, keeper))
        return operations

    def _retire(self) -> list[FibOperation]:
        operations: list[FibOperation] = []
        for group_id in self._belief.unused_groups():
            self._belief.drop_group(group_id)
            self._backoffs.pop(group_id, None)
            operations.append(DeleteGroup(group_id))
        unused = self._belief.unused_nexthops()
        self._belief.lose_nexthops(unused)
        operations += [DeleteNextHop(nexthop_id) for nexthop_id in unused]
        return operations

    def _count(self, operations: list[FibOperation]) -> list[FibOperation]:
        counters = self.counters
        for operation in operations:
            counters[_KIND[type(operation)]] += 1
            if isinstance(operation, PutGroup) and operation.replace:
                counters["group-rewrite"] += 1
            elif (
                isinstance(operation, PutRoute)
                and self._displaced.get(operation.prefix) is not None
            ):
                counters["route-repoint"] += 1
        return operations

    # --- answers

    def _confirmed(self, operation: FibOperation) -> None:
        if isinstance(operation, PutRoute):
            self._displaced.pop(operation.prefix, None)
            # Two lists may be on their way at once, and the answer to the first undo the belief.
            if self._belief.state.routes.get(operation.prefix) != operation.nexthop_id:
                self._belief.set_route(operation.prefix, operation.nexthop_id)
        if self._backoffs:
            self._backoffs.pop(_key(operation), None)

    def _refused(self, operation: FibOperation, error: int, now: float) -> bool:
        """Correct the belief; return whether to plan again at once."""
        self.counters[f"failed-{_KIND[type(operation)]}"] += 1
        if isinstance(operation, PutNextHop):
            self._belief.lose_nexthops([operation.nexthop_id])
            self._excluded.add(operation.hop)
            self._usable.clear()
            self._back_off(operation.hop, now)
            return True
        if isinstance(operation, PutGroup):
            return self._group_refused(operation, now)
        if isinstance(operation, PutRoute):
            self._route_refused(operation, now)
        elif error not in _ALREADY_GONE:
            # It is still there and nobody uses it: the next comparison with a dump finds it.
            self.counters["left-behind"] += 1
        return False

    def _group_refused(self, operation: PutGroup, now: float) -> bool:
        group_id = operation.group_id
        # A member may have been removed behind our back: write all of them again next time.
        self._belief.doubtful.update(member.nexthop_id for member in operation.members)
        if operation.replace:
            # It is still there with what it held before, even where a refused member, taken
            # for its only one, has just removed it from the belief.
            self._belief.blur_group(group_id)
        else:
            self._belief.drop_group(group_id)
            self._belief.return_group_id(group_id)
        self._back_off(group_id, now)
        return self._backoffs[group_id].attempts == 1

    def _route_refused(self, operation: PutRoute, now: float) -> None:
        prefix = operation.prefix
        if prefix in self._displaced:
            before = self._displaced.pop(prefix)
            state = self._belief.state
            if before is not None and (before in state.groups or before in state.nexthops):
                self._belief.set_route(prefix, before)
            else:
                self._belief.drop_route(prefix)
        self._back_off(prefix, now)

    def _back_off(self, key: HopKey | Prefix | int, now: float) -> None:
        known = self._backoffs.get(key)
        attempts = known.attempts + 1 if known is not None else 1
        delay = self.settings.retry_initial * 2.0 ** min(attempts - 1, 16)
        self._backoffs[key] = _Backoff(attempts, now + min(delay, self.settings.retry_limit))


_KIND: Mapping[type, str] = {
    PutNextHop: "put-nexthop",
    PutGroup: "put-group",
    PutRoute: "put-route",
    DeleteRoute: "delete-route",
    DeleteGroup: "delete-group",
    DeleteNextHop: "delete-nexthop",
}


def _key(operation: FibOperation) -> HopKey | Prefix | int:
    """What the back-off of an operation goes by."""
    match operation:
        case PutNextHop():
            return operation.hop
        case PutRoute() | DeleteRoute():
            return operation.prefix
        case PutGroup() | DeleteGroup():
            return operation.group_id
    return operation.nexthop_id


def _differences(believed: FibState, actual: FibState) -> int:
    """How many next hops, groups and routes are not the same in both."""
    return (
        _unlike(believed.nexthops, actual.nexthops)
        + _unlike(believed.groups, actual.groups)
        + _unlike(believed.routes, actual.routes)
    )


def _unlike(left: Mapping[_K, _V], right: Mapping[_K, _V]) -> int:
    if left == right:
        return 0
    changed = sum(right.get(key) != value for key, value in left.items())
    return changed + sum(key not in left for key in right)
