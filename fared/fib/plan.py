"""One planning pass: from what is believed to be there to what is wanted, make before break.

The order of what comes out is next hops; groups that are new, or rewritten with all their
users agreeing; routes; groups that could only be rewritten once the routes that want something
else had left them; deleted routes. A route joins only groups of which the content is right at
that point of the order, so no route ever follows next hops that were not computed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.fib.belief import Belief, Vector
from fared.fib.model import DeleteRoute, FibOperation, PutGroup, PutNextHop, PutRoute
from fared.rib.model import NextHopSet

_Parts = dict[Vector, list[Prefix]]


class Plan:
    """The working state of one pass; ``run`` returns the operations and updates the belief.

    ``displaced`` gets the id each rewritten route had before (None: it was new).
    """

    def __init__(
        self,
        belief: Belief,
        desired: Mapping[Prefix, NextHopSet],
        resolve: Callable[[NextHopSet], Vector],
        displaced: dict[Prefix, int | None],
        *,
        resilient: bool,
    ) -> None:
        self._belief = belief
        self._desired = desired
        self._resolve = resolve
        self._displaced = displaced
        self._resilient = resilient
        self._nexthops: list[FibOperation] = []
        self._groups: list[FibOperation] = []
        self._routes: list[FibOperation] = []
        self._late_groups: dict[int, Vector] = {}
        self._gone: list[Prefix] = []
        self._homeless: _Parts = {}
        self._movers: dict[int, _Parts] = {}
        self._there: set[int] = set()

    def run(self, prefixes: Iterable[Prefix]) -> list[FibOperation]:
        """Plan for ``prefixes``; others are left as they are."""
        self._sort(prefixes)
        for group_id, parts in self._movers.items():
            self._divide(group_id, parts)
        for vector, members in self._homeless.items():
            self._place(vector, members)
        late = [self._write_group(g, v, replace=True) for g, v in self._late_groups.items()]
        gone: list[FibOperation] = [DeleteRoute(prefix) for prefix in self._gone]
        for prefix in self._gone:
            self._belief.drop_route(prefix)
        return self._nexthops + self._groups + self._routes + late + gone

    def _sort(self, prefixes: Iterable[Prefix]) -> None:
        """Find what each prefix wants and put those that lack it with others of their kind."""
        routes = self._belief.state.routes
        desired = self._desired
        batches: dict[tuple[int, int | None], list[Prefix]] = {}
        for prefix in prefixes:
            hops = desired.get(prefix)
            current = routes.get(prefix)
            if hops is not None:
                batch = batches.get((id(hops), current))
                if batch is None:
                    batch = batches[id(hops), current] = []
                batch.append(prefix)
            elif current is not None:
                self._gone.append(prefix)
        vectors: dict[int, Vector] = {}
        for (set_id, current), batch in batches.items():
            vector = vectors.get(set_id)
            if vector is None:
                vector = vectors[set_id] = self._resolve(desired[batch[0]])
            self._sort_batch(vector, current, batch)

    def _sort_batch(self, vector: Vector, current: int | None, batch: list[Prefix]) -> None:
        """Sort prefixes that all have the same and want the same."""
        if not vector.members:
            return  # nothing usable now: what is there, if anything, beats a black hole
        held = self._belief.content.get(current) if current is not None else None
        if held is vector:
            return
        if held is not None and current is not None:
            self._movers.setdefault(current, {}).setdefault(vector, []).extend(batch)
        elif not self._points_directly(current, vector):
            self._homeless.setdefault(vector, []).extend(batch)

    def _points_directly(self, current: int | None, vector: Vector) -> bool:
        members = vector.members
        if len(members) != 1 or members[0].nexthop_id != current:
            return False
        nexthops = self._belief.state.nexthops
        return nexthops.get(current) == self._belief.hop_of(current)

    def _divide(self, group_id: int, parts: _Parts) -> None:
        """Decide who keeps a group of which some users want something else.

        The largest part keeps it, so that the fewest routes are written; at a tie the part
        that wants no change.
        """
        users = self._belief.users[group_id]
        leaving = {p for p in self._gone if p in users} if self._gone else set()
        staying = len(users) - sum(map(len, parts.values())) - len(leaving)
        heir = max(parts, key=lambda vector: len(parts[vector]))
        old = self._belief.content[group_id]
        heir_takes = (
            len(parts[heir]) > staying
            and group_id not in self._belief.unusable
            and not self._too_early(heir, leaving)
        )
        if heir_takes and staying:
            if old.members:
                moving = {prefix for part in parts.values() for prefix in part}
                rest = [p for p in users if p not in moving and p not in leaving]
                self._homeless.setdefault(old, []).extend(rest)
            else:  # what those who stay follow is unknown, so it cannot be copied
                heir_takes = False
        others = {v: part for v, part in parts.items() if not (heir_takes and v is heir)}
        for vector, part in others.items():
            self._homeless.setdefault(vector, []).extend(part)
        if not heir_takes:
            return
        if staying or others:
            self._late_groups[group_id] = heir
            self._belief.blur_group(group_id)  # nobody may join it before it is rewritten
        else:
            self._groups.append(self._write_group(group_id, heir, replace=True))

    def _too_early(self, heir: Vector, leaving: set[Prefix]) -> bool:
        """Whether the kernel would refuse the group's new content while withdrawn routes use it.

        They are deleted last, and IPv6 routes bar IPv4 next hops from their group.
        """
        return any(prefix.family == FAMILY_IPV6 for prefix in leaving) and any(
            hop is not None and hop[1] == FAMILY_IPV4
            for hop in (self._belief.hop_of(member.nexthop_id) for member in heir.members)
        )

    def _place(self, vector: Vector, prefixes: list[Prefix]) -> None:
        """Point routes at the one next hop, at a group that holds the vector, or at a new one."""
        if len(vector.members) == 1:
            self._need_nexthops(vector)
            target = vector.members[0].nexthop_id
        else:
            existing = next(iter(self._belief.holders(vector)), None)
            if existing is not None:
                target = existing
            else:
                target = self._belief.new_group_id()
                self._groups.append(self._write_group(target, vector, replace=False))
        routes = self._belief.state.routes
        for prefix in prefixes:
            self._displaced.setdefault(prefix, routes.get(prefix))
            self._belief.set_route(prefix, target)
            self._routes.append(PutRoute(prefix, target))

    def _write_group(self, group_id: int, vector: Vector, *, replace: bool) -> PutGroup:
        self._need_nexthops(vector)
        self._belief.set_group(group_id, vector)
        return PutGroup(group_id, vector.members, replace=replace, resilient=self._resilient)

    def _need_nexthops(self, vector: Vector) -> None:
        belief = self._belief
        # Hundreds of groups have the same members: each is looked at once a pass.
        unseen = {member[0] for member in vector.members} - self._there
        self._there |= unseen
        for nexthop_id in sorted(unseen):
            hop = belief.hop_of(nexthop_id)
            if hop is None:  # a second id of an adopted next hop: not ours to write again
                continue
            if belief.state.nexthops.get(nexthop_id) != hop or nexthop_id in belief.doubtful:
                belief.state.nexthops[nexthop_id] = hop
                belief.doubtful.discard(nexthop_id)
                self._nexthops.append(PutNextHop(nexthop_id, hop))
