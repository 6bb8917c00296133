"""A kernel FIB in memory, with the kernel's rules, for simulations and tests.

``sim`` uses it. The rules were measured on Linux 6.18: a group needs its members to exist; a
deleted next hop takes direct routes and its memberships with it; an emptied group is deleted with
its routes; a link without carrier silently loses its next hops, of both families, and takes no new
ones. IPv4 routes go over next hops of either family, IPv6 routes over IPv6 ones only.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.paths.fib.model import (
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
from fared.paths.rib.model import HopKey

_MAX_WEIGHT = 65535
_ONLY_IPV6 = (errno.EINVAL, "IPv6 routes can not use an IPv4 nexthop")
_Answer = tuple[int, str]
_OK: _Answer = (0, "")


class SimulatedFib:
    """Executes operations as the kernel would; ``state`` is its content.

    ``down`` are links without carrier, ``without_ipv6`` those where IPv6 is switched off.
    ``applied`` counts operations; ``version`` grows whenever ``state`` may have changed. ``refuse``
    maps an object (HopKey, group id or Prefix) to the errno with which writing it fails.
    """

    def __init__(self) -> None:
        self.state = FibState()
        self.down: set[int] = set()
        self.without_ipv6: set[int] = set()
        self.refuse: dict[HopKey | int | Prefix, int] = {}
        self.applied = 0
        self.version = 0
        self._ipv6_routes: set[Prefix] = set()
        """The IPv6 routes written so far, which include all present ones."""

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Execute in order; one answer for each operation. A failure does not stop the rest."""
        return [OperationResult(op, *self._apply(op)) for op in operations]

    def dump(self) -> FibState:
        """Return a copy of the state."""
        state = self.state
        return FibState(
            nexthops=dict(state.nexthops),
            groups=dict(state.groups),
            routes=dict(state.routes),
            resilient=set(state.resilient),
            reserved=set(state.reserved),
        )

    def link_down(self, ifindex: int) -> None:
        """Lose the carrier: the next hops of the link are removed without notice."""
        self.version += 1
        self.down.add(ifindex)
        self._remove([i for i, hop in self.state.nexthops.items() if hop[0] == ifindex])

    def link_up(self, ifindex: int) -> None:
        """Restore the carrier. The kernel restores nothing by itself."""
        self.down.discard(ifindex)

    def path(self, prefix: Prefix) -> dict[HopKey, int] | None:
        """Return the next hops of a prefix with their weights (1 for a direct one)."""
        target = self.state.routes.get(prefix)
        if target is None:
            return None
        return {self.state.nexthops[m.nexthop_id]: m.weight for m in self._members(target)}

    def _apply(self, operation: FibOperation) -> _Answer:
        self.applied += 1
        self.version += 1
        match operation:
            case PutNextHop():
                return self._put_nexthop(operation)
            case PutGroup():
                return self._put_group(operation)
            case PutRoute():
                return self._put_route(operation)
        return self._delete(operation)

    def _delete(self, operation: DeleteRoute | DeleteGroup | DeleteNextHop) -> _Answer:
        state = self.state
        match operation:
            case DeleteRoute(prefix):
                found = state.routes.pop(prefix, None) is not None
                return _OK if found else (errno.ESRCH, "No such process")
            case DeleteGroup(group_id) if group_id in state.groups:
                self._remove_group(group_id)
                return _OK
            case DeleteNextHop(nexthop_id) if nexthop_id in state.nexthops:
                self._remove([nexthop_id])
                return _OK
        return errno.ENOENT, "No such file or directory"

    def _put_route(self, operation: PutRoute) -> _Answer:
        prefix, target = operation.prefix, operation.nexthop_id
        if prefix in self.refuse:
            return self.refuse[prefix], "refused"
        if target not in self.state.nexthops and target not in self.state.groups:
            return errno.EINVAL, "Nexthop id does not exist"
        if prefix.family == FAMILY_IPV6 and self._has_ipv4(self._members(target)):
            return _ONLY_IPV6
        self.state.routes[prefix] = target
        if prefix.family == FAMILY_IPV6:
            self._ipv6_routes.add(prefix)
        return _OK

    def _put_nexthop(self, operation: PutNextHop) -> _Answer:
        if operation.hop in self.refuse:
            return self.refuse[operation.hop], "refused"
        if operation.hop[0] in self.down:
            return errno.ENETDOWN, "Carrier for nexthop device is down"
        if operation.hop[0] in self.without_ipv6 and operation.hop[1] == FAMILY_IPV6:
            return errno.EACCES, "IPv6 is disabled on nexthop device"
        if operation.nexthop_id in self.state.groups:
            return errno.EINVAL, "Can not replace a nexthop group with a nexthop"
        if operation.hop[1] == FAMILY_IPV4 and self._carries_ipv6(operation.nexthop_id):
            return _ONLY_IPV6
        self.state.nexthops[operation.nexthop_id] = operation.hop
        return _OK

    def _put_group(self, operation: PutGroup) -> _Answer:
        group_id, members = operation.group_id, operation.members
        answer = self._refusal(operation)
        if answer is not _OK:
            return answer
        self.state.groups[group_id] = members
        if operation.resilient:
            self.state.resilient.add(group_id)
        return _OK

    def _refusal(self, operation: PutGroup) -> _Answer:
        """Return the kernel's answer to a group; ``_OK``: accepted."""
        group_id, members = operation.group_id, operation.members
        ids = {m.nexthop_id for m in members}
        groups, nexthops = self.state.groups, self.state.nexthops
        other_type = operation.resilient != (group_id in self.state.resilient)
        answer = _OK
        if group_id in self.refuse:
            answer = self.refuse[group_id], "refused"
        elif not members or len(ids) != len(members) or group_id in nexthops:
            answer = errno.EINVAL, "Invalid nexthop group"
        elif not ids <= nexthops.keys():
            answer = errno.EINVAL, "Invalid nexthop id"
        elif len(ids) > 1 and any(not nexthops[nexthop_id][0] for nexthop_id in ids):
            answer = errno.EINVAL, "Blackhole nexthop can not be used in a group"
        elif not all(1 <= m.weight <= _MAX_WEIGHT for m in members):
            answer = errno.EINVAL, "Invalid value for weight"
        elif group_id in groups and other_type:
            answer = errno.EINVAL, "Can not replace a nexthop group with one of a different type"
        elif self._has_ipv4(members) and self._carries_ipv6(group_id):
            answer = _ONLY_IPV6
        return answer

    def _members(self, target: int) -> tuple[Member, ...]:
        return self.state.groups.get(target, (Member(target, 1),))

    def _has_ipv4(self, members: Iterable[Member]) -> bool:
        return any(self.state.nexthops[m.nexthop_id][1] == FAMILY_IPV4 for m in members)

    def _carries_ipv6(self, object_id: int) -> bool:
        """Whether IPv6 routes point at a next hop or group, or at a group with it."""
        routes = self.state.routes
        targets = {routes[prefix] for prefix in self._ipv6_routes if prefix in routes}
        return object_id in targets or any(
            member.nexthop_id == object_id
            for target in targets
            for member in self.state.groups.get(target, ())
        )

    def _remove(self, nexthop_ids: Iterable[int]) -> None:
        gone = set(nexthop_ids)
        for nexthop_id in gone:
            del self.state.nexthops[nexthop_id]
        self._remove_routes(gone)
        for group_id, members in list(self.state.groups.items()):
            left = tuple(m for m in members if m.nexthop_id not in gone)
            if left:
                self.state.groups[group_id] = left
            else:
                self._remove_group(group_id)

    def _remove_group(self, group_id: int) -> None:
        del self.state.groups[group_id]
        self.state.resilient.discard(group_id)
        self._remove_routes({group_id})

    def _remove_routes(self, targets: set[int]) -> None:
        for prefix in [p for p, target in self.state.routes.items() if target in targets]:
            del self.state.routes[prefix]
