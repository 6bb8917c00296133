"""One planning pass: the operations from the installed state to the desired one.

They make before they break, in this order: next hops; groups that are new, or rewritten because all
users agree; routes; groups that could only be rewritten after the routes that need other next hops
had left them; deleted routes. A route joins only groups whose content is right at that point of the
order, so no route ever follows next hops that were not computed for it.

Of few routes, as a lost link changes, those to most addresses are written first: networks of hosts
before links and single routers. Each write waits for the kernel's RTNL lock, which just then many
hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.paths.fib.desired import wanted_of
from fared.paths.fib.installed import InstalledState, MemberVector, Users
from fared.paths.fib.model import (
    DeleteRoute,
    FibOperation,
    Member,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.paths.rib.model import NextHopSet, Route

FEW_USERS = 16
"""Routes that are written instead of their group. To rewrite a group the kernel waits for an RCU
grace period with the RTNL lock held, so nothing else is written in any namespace meanwhile: 0.1 to
0.5 ms with idle CPUs, 3 to 6 ms (one in ten: 28 ms) with busy ones, as just after a failure; a new
group and three routes take 0.1 to 0.3 ms (``python -m bench fib``)."""
_LENGTH = attrgetter("prefix.length")
_Parts = dict[MemberVector, list[Prefix]]


class PlanningPass:
    """The working state of one pass; ``run`` returns the operations and updates ``installed``.

    ``previous`` gets the former id of each rewritten route (None: it is new), ``rewritten`` the
    former members of each rewritten group, unless it has some already.
    """

    def __init__(
        self,
        installed: InstalledState,
        wanted: Mapping[Prefix, Route],
        resolve: Callable[[NextHopSet], MemberVector],
        previous: dict[Prefix, int | None],
        rewritten: dict[int, tuple[Member, ...]],
        *,
        resilient: bool,
        max_groups: int | None = None,
    ) -> None:
        self._installed = installed
        self._wanted = wanted
        self._resolve = resolve
        self._previous = previous
        self._rewritten = rewritten
        self._resilient = resilient
        self._max_groups = max_groups
        self._spare = self._spare_groups()
        self._nexthops: list[FibOperation] = []
        self._groups: list[FibOperation] = []
        self._routes: list[PutRoute] = []
        self._late_groups: dict[int, MemberVector] = {}
        self._gone: list[Prefix] = []
        self._unassigned: _Parts = {}
        self._reassigned: dict[int, _Parts] = {}
        self._checked: set[int] = set()

    def run(self, prefixes: Iterable[Prefix]) -> list[FibOperation]:
        """Plan for ``prefixes``; others are left as they are."""
        self._sort(prefixes)
        for group_id, parts in self._reassigned.items():
            self._divide(group_id, parts)
        for vector, members in self._unassigned.items():
            self._place(vector, members)
        late = [self._write_group(g, v, replace=True) for g, v in self._late_groups.items()]
        gone: list[FibOperation] = [DeleteRoute(prefix) for prefix in self._gone]
        for prefix in self._gone:
            self._installed.drop_route(prefix)
        if 1 < len(self._routes) <= FEW_USERS:
            self._routes.sort(key=_LENGTH)
        return self._nexthops + self._groups + self._routes + late + gone

    def _sort(self, prefixes: Iterable[Prefix]) -> None:
        """Group the prefixes whose route must change by desired vector and present id."""
        present, wanted = self._installed.state.routes.get, self._wanted.get
        batches: dict[tuple[int, int | None], list[Prefix]] = {}
        samples: dict[int, Route | None] = {}
        for prefix in prefixes:
            route = wanted(prefix)
            hops, current = None if route is None else route.nexthops, present(prefix)
            # The solver gives equal prefixes one set object: it is resolved once for all.
            batch = batches.get((id(hops), current))
            if batch is None:
                batch = batches[id(hops), current] = []
                samples[id(hops)] = route
            batch.append(prefix)
        vectors: dict[int, MemberVector] = {}
        for (set_id, current), batch in batches.items():
            hops = wanted_of(samples[set_id])
            if hops is None:
                self._gone += batch if current is not None else ()
                continue
            vector = vectors.get(set_id)
            if vector is None:
                vector = vectors[set_id] = self._resolve(hops)
            self._sort_batch(vector, current, batch)

    def _sort_batch(self, vector: MemberVector, current: int | None, batch: list[Prefix]) -> None:
        """Sort prefixes with one present id and one desired vector."""
        if not vector.members:
            return  # no usable next hop: keep the present route, if any, and its traffic
        held = self._installed.content.get(current) if current is not None else None
        if held is vector:  # vectors are interned: the group has the desired members
            return
        if held is not None and current is not None:
            self._reassigned.setdefault(current, {}).setdefault(vector, []).extend(batch)
        elif not self._points_directly(current, vector):
            self._unassigned.setdefault(vector, []).extend(batch)

    def _points_directly(self, current: int | None, vector: MemberVector) -> bool:
        members = vector.members
        if len(members) != 1 or members[0].nexthop_id != current:
            return False
        nexthops = self._installed.state.nexthops
        return nexthops.get(current) == self._installed.hop_of(current)

    def _divide(self, group_id: int, parts: _Parts) -> None:
        """Choose the successor of a group: the vector that it holds after its users diverge.

        The largest part of the users keeps the group, so that the fewest routes are written; at a
        tie the part that needs no change. The other parts become unassigned. Few users all leave a
        group that loses next hops (``FEW_USERS``).
        """
        users = self._installed.users[group_id]
        leaving = {p for p in self._gone if p in users} if self._gone else set()
        staying = len(users) - sum(map(len, parts.values())) - len(leaving)
        successor = max(parts, key=lambda vector: len(parts[vector]))
        old = self._installed.content[group_id]
        successor_takes = (
            len(parts[successor]) > staying
            and not self._should_move(users, old, successor)
            and group_id not in self._installed.unusable
            and not self._too_early(successor, leaving)
        )
        if successor_takes and staying:
            if old.members:
                moving = {prefix for part in parts.values() for prefix in part}
                rest = [p for p in users if p not in moving and p not in leaving]
                self._unassigned.setdefault(old, []).extend(rest)
            else:  # the present content is unknown, so no other group can hold it
                successor_takes = False
        others = {v: part for v, part in parts.items() if not (successor_takes and v is successor)}
        for vector, part in others.items():
            self._unassigned.setdefault(vector, []).extend(part)
        if not successor_takes:
            return
        if staying or others:
            self._late_groups[group_id] = successor
            self._record_members(group_id)
            self._installed.mark_unknown(group_id)  # no route may join it before it is rewritten
        else:
            self._groups.append(self._write_group(group_id, successor, replace=True))

    def _should_move(self, users: Users, old: MemberVector, successor: MemberVector) -> bool:
        """Whether to move routes to another group instead of rewriting theirs.

        They move if a next hop was lost, or if another group holds the vector. A resilient group
        is rewritten, since flows keep their buckets.
        """
        if self._resilient or len(users) > FEW_USERS:
            return False
        before = {nexthop_id for nexthop_id, _ in old.members}
        after = {nexthop_id for nexthop_id, _ in successor.members}
        return before > after or (before != after and bool(self._installed.holders(successor)))

    def _too_early(self, successor: MemberVector, leaving: set[Prefix]) -> bool:
        """Whether the kernel would refuse the group's new content while withdrawn routes use it.

        They are deleted last, and the kernel refuses IPv4 next hops in a group that IPv6 routes
        point at (EINVAL).
        """
        return any(prefix.family == FAMILY_IPV6 for prefix in leaving) and any(
            hop is not None and hop[1] == FAMILY_IPV4
            for hop in (self._installed.hop_of(member.nexthop_id) for member in successor.members)
        )

    def _place(self, vector: MemberVector, prefixes: list[Prefix]) -> None:
        """Point routes at the one next hop, at a group that holds the vector, or at a new one."""
        if len(vector.members) == 1:
            self._need_nexthops(vector)
            target = vector.members[0].nexthop_id
        else:
            existing = next(iter(self._installed.holders(vector)), None)
            if existing is not None:
                target = existing
            else:
                spare = self._take_spare()
                target = self._installed.new_group_id() if spare is None else spare
                written = self._write_group(target, vector, replace=spare is not None)
                self._groups.append(written)
        routes = self._installed.state.routes
        for prefix in prefixes:
            self._previous.setdefault(prefix, routes.get(prefix))
            self._installed.set_route(prefix, target)
            self._routes.append(PutRoute(prefix, target))

    def _spare_groups(self) -> list[int]:
        """Return unused groups that may be rewritten where their number is bounded.

        A refused route stays at its former group, so that is not unused before the answer.
        """
        if self._max_groups is None:
            return []
        expected = set(self._previous.values()) | self._installed.unusable
        return [group for group in self._installed.unused_groups() if group not in expected]

    def _take_spare(self) -> int | None:
        """Return an unused group for another vector; None as long as there may be more."""
        if self._max_groups is None or len(self._installed.state.groups) < self._max_groups:
            return None
        while self._spare:
            group_id = self._spare.pop()
            if group_id not in self._installed.users and group_id in self._installed.content:
                return group_id
        return None

    def _record_members(self, group_id: int) -> None:
        if members := self._installed.state.groups[group_id]:
            self._rewritten.setdefault(group_id, members)

    def _write_group(self, group_id: int, vector: MemberVector, *, replace: bool) -> PutGroup:
        self._need_nexthops(vector)
        if replace:
            self._record_members(group_id)
        self._installed.set_group(group_id, vector)
        return PutGroup(group_id, vector.members, replace=replace, resilient=self._resilient)

    def _need_nexthops(self, vector: MemberVector) -> None:
        """Write the next hops of a vector that the kernel does not have, or may have otherwise."""
        installed = self._installed
        # Hundreds of groups share members: each next hop is examined once a pass.
        unseen = {nexthop_id for nexthop_id, _ in vector.members} - self._checked
        self._checked |= unseen
        for nexthop_id in sorted(unseen):
            hop = installed.hop_of(nexthop_id)
            if hop is None:  # an adopted duplicate of a next hop: never written again
                continue
            if (
                installed.state.nexthops.get(nexthop_id) != hop
                or nexthop_id in installed.unverified
            ):
                installed.state.nexthops[nexthop_id] = hop
                installed.unverified.discard(nexthop_id)
                self._nexthops.append(PutNextHop(nexthop_id, hop))
