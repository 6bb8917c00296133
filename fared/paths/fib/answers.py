"""The kernel's answers to operations: corrections of the installed state, and retries.

``FibPlanner`` passes the answers in. A refusal is one of three kinds: a link went away while the
operation was on its way (``overtaken``: planned again at once, without a back-off), a deletion of
an object that is already gone, or any other refusal, which is logged and retried after pauses that
double.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import Prefix
from fared.paths.fib.disputes import Disputes
from fared.paths.fib.model import (
    DeleteGroup,
    DeleteRoute,
    FibOperation,
    Member,
    OperationResult,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.rib.model import HopKey

if TYPE_CHECKING:
    from collections import Counter

    from fared.paths.fib.installed import InstalledState
    from fared.paths.fib.settings import FibSettings

_ALREADY_GONE = frozenset((errno.ENOENT, errno.ESRCH))
_Key = HopKey | Prefix | int
"""The key of a back-off: a next hop, a route, or a group (or deleted next hop) by its id."""


class _Backoff(msgspec.Struct):
    """How often an operation was refused, and when to try again."""

    attempts: int
    retry_at: float


class KernelAnswers:
    """Corrects the installed state by answers, and schedules retries.

    ``previous``: routes written and not yet answered, with the ids they pointed at before (None:
    new routes). ``rewritten``: the members that groups had before the first rewrite that is not yet
    answered. ``refusals`` are those of the last answers without a known cause.
    """

    def __init__(
        self, settings: FibSettings, installed: InstalledState, counters: Counter[str]
    ) -> None:
        self.previous: dict[Prefix, int | None] = {}
        self.rewritten: dict[int, tuple[Member, ...]] = {}
        self.refusals: list[OperationResult] = []
        self._settings = settings
        self._installed = installed
        self._counters = counters
        self._down: set[int] = set()
        self._lost_meanwhile: set[int] = set()
        """Links lost while answers are outstanding, even if restored since."""
        self._excluded: set[HopKey] = set()
        self._backoffs: dict[_Key, _Backoff] = {}
        self._disputes = Disputes()

    @property
    def failed(self) -> int:
        """The number of refused next hops, groups and routes that will be retried."""
        return len(self._backoffs)

    @property
    def unusable(self) -> bool:
        """Whether some next hops cannot be installed now."""
        return bool(self._down or self._excluded)

    def usable(self, hop: HopKey) -> bool:
        """Whether a next hop can be installed now, as far as is known."""
        return hop[0] not in self._down and hop not in self._excluded

    # --- links

    def link_lost(self, ifindex: int) -> None:
        """Record that a link lost its carrier or was removed."""
        self._down.add(ifindex)
        self._lost_meanwhile.add(ifindex)

    def link_restored(self, ifindex: int) -> None:
        """Record that a link is up again: its refused next hops may succeed now."""
        self._down.discard(ifindex)
        for hop in [hop for hop in self._excluded if hop[0] == ifindex]:
            self._excluded.discard(hop)
            self.settled(hop)

    # --- back-offs

    def settled(self, key: _Key) -> None:
        """Cancel the retry of an object."""
        self._backoffs.pop(key, None)

    def forget(self) -> None:
        """Drop all retries and expected answers."""
        self._backoffs.clear()
        self.expect_nothing()

    def expect_nothing(self) -> None:
        """Drop what was recorded of operations that are not yet answered."""
        self.previous.clear()
        self.rewritten.clear()

    def next_retry(self) -> float | None:
        """Return when the next retry is due, None if there is none."""
        return min((known.retry_at for known in self._backoffs.values()), default=None)

    def retry(self, now: float) -> list[_Key]:
        """Return the objects to retry now, each once; attempts are counted until success."""
        due = [key for key, known in self._backoffs.items() if known.retry_at <= now]
        for key in due:
            self._backoffs[key].retry_at = now + self._settings.retry_limit
            if type(key) is tuple:
                self._excluded.discard(key)
        return due

    def retried(self, due: Iterable[_Key], operations: Iterable[FibOperation]) -> None:
        """Drop the back-offs of objects that no operation needs any more."""
        tried = {_key(operation) for operation in operations}
        for key in due:
            if key not in tried:
                self.settled(key)

    def may_take_back(self, prefix: Prefix, now: float) -> bool:
        """Whether to replace another program's route now; otherwise a retry is scheduled."""
        if prefix in self._backoffs:
            return False
        pause = self._disputes.pause(prefix, now)
        if pause:
            self._backoffs[prefix] = _Backoff(1, now + pause)
        return not pause

    def _back_off(self, key: _Key, now: float) -> int:
        """Schedule the next attempt; return the number of attempts so far."""
        known = self._backoffs.get(key)
        attempts = known.attempts + 1 if known is not None else 1
        delay = self._settings.retry_initial * 2.0 ** min(attempts - 1, 16)
        self._backoffs[key] = _Backoff(attempts, now + min(delay, self._settings.retry_limit))
        return attempts

    # --- answers

    def take(self, results: Sequence[OperationResult], now: float, unanswered: int) -> bool:
        """Correct the installed state by the answers; return whether to plan again at once."""
        self.refusals.clear()
        again = False
        for result in results:
            if result.error == 0:
                again |= self._confirmed(result.operation)
            elif self._removed_by_kernel(result):
                again |= self._overtaken(result.operation)
            else:
                self.refusals.append(result)
                again |= self._refused(result, now)
        if not unanswered:
            self._lost_meanwhile &= self._down
        if not self.previous:
            self.previous.clear()  # and its table, which may have had room for a hundred thousand
        return again

    def _confirmed(self, operation: FibOperation) -> bool:
        """Process a success; return whether to plan again at once."""
        again = False
        if isinstance(operation, PutRoute):
            self.previous.pop(operation.prefix, None)
            # Two lists may be unanswered: the answers to the first may have reverted this route.
            if self._installed.state.routes.get(operation.prefix) != operation.nexthop_id:
                self._installed.set_route(operation.prefix, operation.nexthop_id)
        elif isinstance(operation, PutGroup):
            former = self.rewritten.pop(operation.group_id, ())
            # If all former members were on lost links, the kernel may have removed the group with
            # its routes before it made a new one of the same id.
            if former and all(self._on_lost_link(member.nexthop_id) for member in former):
                again = bool(self._installed.drop_users(operation.group_id))
        if self._backoffs:
            self.settled(_key(operation))
        return again

    def _removed_by_kernel(self, result: OperationResult) -> bool:
        """Whether an operation was refused only because its link was lost meanwhile.

        The kernel removes next hops with their link before it notifies of either. A link that flaps
        may be up again before the answer arrives.
        """
        match result.operation:
            case PutNextHop(hop=hop):
                return hop[0] in self._lost_meanwhile
            case PutGroup(members=members):
                return any(self._on_lost_link(member.nexthop_id) for member in members)
            case PutRoute(nexthop_id=target):
                return bool(self._lost_meanwhile) and self._is_lost(target)
        return result.error in _ALREADY_GONE

    def _is_lost(self, target: int) -> bool:
        """Whether a next hop or group is gone, or was written again since."""
        state = self._installed.state
        members = state.groups.get(target)
        # a group of unknown content: the kernel refused to rewrite it, and removed it if it had
        # only members on the lost link
        if members is not None:
            return not members or any(self._on_lost_link(k.nexthop_id) for k in members)
        return target not in state.nexthops or self._on_lost_link(target)

    def _on_lost_link(self, nexthop_id: int) -> bool:
        hop = self._installed.hop_of(nexthop_id)
        return hop is not None and hop[0] in self._lost_meanwhile

    def _overtaken(self, operation: FibOperation) -> bool:
        """Process an operation whose link was lost; return whether to plan again at once.

        ``link_lost`` has corrected the state already, except the content of a refused group.
        """
        self._counters["overtaken"] += 1
        if isinstance(operation, PutNextHop):
            # On a link that is up again it may have been written twice, and then it exists.
            self._installed.lose_nexthops([operation.nexthop_id])
            return operation.hop[0] not in self._down
        if isinstance(operation, PutGroup):
            known = operation.group_id in self._installed.content
            # A refused creation leaves no group. A refused replace leaves the old one, unless it
            # had members on lost links only: the kernel removed it with them, and its routes.
            former = self.rewritten.pop(operation.group_id, ())
            if former and all(self._on_lost_link(member.nexthop_id) for member in former):
                self._installed.drop_group(operation.group_id)
            elif known and operation.replace:
                self._installed.mark_unknown(operation.group_id)
            elif known:
                self._installed.drop_group(operation.group_id)
                self._installed.return_group_id(operation.group_id)
        elif isinstance(operation, PutRoute):
            self.previous.pop(operation.prefix, None)
            if self._installed.state.routes.get(operation.prefix) == operation.nexthop_id:
                self._installed.drop_route(operation.prefix)
        return isinstance(operation, PutGroup | PutRoute)

    def _refused(self, result: OperationResult, now: float) -> bool:
        """Process a refusal; return whether to plan again at once."""
        operation = result.operation
        self._counters[f"failed-{operation.kind}"] += 1
        if isinstance(operation, PutNextHop):
            self._installed.lose_nexthops([operation.nexthop_id])
            self._excluded.add(operation.hop)
            self._back_off(operation.hop, now)
            return True
        if isinstance(operation, PutGroup):
            return self._group_refused(operation, now)
        if isinstance(operation, PutRoute):
            self._route_refused(operation, now)
        elif result.error not in _ALREADY_GONE:
            # The unused object stays in the kernel until the next comparison with a dump.
            self._counters["left-behind"] += 1
        return False

    def _group_refused(self, operation: PutGroup, now: float) -> bool:
        group_id = operation.group_id
        self.rewritten.pop(group_id, None)
        # The kernel may have removed a member silently: write all of them before the next use.
        self._installed.unverified.update(member.nexthop_id for member in operation.members)
        if operation.replace:
            # The kernel still has the group with its old content, even if the refusal of its only
            # member has just removed it from the installed state.
            self._installed.mark_unknown(group_id)
        else:
            self._installed.drop_group(group_id)
            self._installed.return_group_id(group_id)
        return self._back_off(group_id, now) == 1

    def _route_refused(self, operation: PutRoute, now: float) -> None:
        prefix = operation.prefix
        # A refused replace leaves the old route, unless its next hop or group was lost meanwhile.
        if prefix in self.previous:
            before = self.previous.pop(prefix)
            state = self._installed.state
            if before is not None and (before in state.groups or before in state.nexthops):
                self._installed.set_route(prefix, before)
            else:
                self._installed.drop_route(prefix)
        self._back_off(prefix, now)


def _key(operation: FibOperation) -> _Key:
    """Return the key of an operation's back-off."""
    match operation:
        case PutNextHop():
            return operation.hop
        case PutRoute() | DeleteRoute():
            return operation.prefix
        case PutGroup() | DeleteGroup():
            return operation.group_id
    return operation.nexthop_id
