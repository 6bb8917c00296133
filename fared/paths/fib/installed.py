"""The installed state: a shadow of the kernel's FIB, with indices that make planning cheap.

It changes when operations are planned, when the kernel refuses some of them, when a link goes down
(the kernel then removes next hops silently) and when a dump replaces it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from fared.core.ids import Prefix
from fared.paths.fib.model import FibState, ForeignChanges, Member
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import HopKey

_INTERNED_SLACK = 1024
_SPARE = 16
_MOST_MEMBERS = 1 << 14
"""Members that are kept to be shared: of 64 next hops with weights up to 256."""


class MemberVector:
    """The members of a group, interned: groups with equal members share one object.

    ``members`` are sorted by next-hop id, because the kernel lays out its hash space in member
    order: a stable order moves the fewest flows.
    """

    __slots__ = ("members",)

    def __init__(self, members: tuple[Member, ...]) -> None:
        self.members = members


class _SharedMembers(dict[tuple[int, int], Member]):
    """Members by next-hop id and weight: equal ones of all groups are one object.

    Load changes the weights of hundreds of groups of 64 a second.
    """

    def __missing__(self, pair: tuple[int, int]) -> Member:
        if len(self) >= _MOST_MEMBERS:
            self.clear()
        made = Member._make(pair)
        self[made] = made
        return made


class Users:
    """The prefixes whose routes point at one object, by ``routes``.

    A list takes a sixth of the memory of a dictionary: a hundred thousand routes may use one group.
    A prefix that joins is appended to ``listed``, which may hold some that have left since, or more
    than once.
    """

    __slots__ = ("_id", "_left", "_routes", "listed")

    def __init__(self, routes: Mapping[Prefix, int], object_id: int) -> None:
        self._routes, self._id = routes, object_id
        self.listed: list[Prefix] = []
        self._left = 0

    def __len__(self) -> int:
        return len(self.listed) - self._left

    def __contains__(self, prefix: Prefix) -> bool:
        return self._routes.get(prefix) == self._id

    def __iter__(self) -> Iterator[Prefix]:
        return iter(dict.fromkeys([at for at in self.listed if at in self]))

    def left(self) -> None:
        """A route does not point at the object any more."""
        self._left += 1
        if 2 * self._left > len(self.listed) + _SPARE:
            self.listed, self._left = list(self), 0


class InstalledState:
    """Next hops, groups and routes that should be in the kernel, and their users.

    ``hop_ids``: ids of next hops. ``users``: prefixes by the id they point at. ``content``: the
    members of each group. ``unusable``: groups of the other type, which cannot be rewritten.
    ``unverified``: next hops that may be gone; they are written again before the next use.
    ``touched``: prefixes and ids of groups that changed since it was emptied; None: nobody asks.
    """

    def __init__(self, settings: FibSettings) -> None:
        self._settings = settings
        self.state = FibState()
        self.users: dict[int, Users] = {}
        self.content: dict[int, MemberVector] = {}
        self.unusable: set[int] = set()
        self.unverified: set[int] = set()
        self.touched: set[Prefix | int] | None = None
        self._holders: dict[MemberVector, dict[int, None]] = {}
        self._interned: dict[tuple[Member, ...], MemberVector] = {}
        self._members = _SharedMembers()
        self.hop_ids: dict[HopKey, int] = {}
        self._id_hops: dict[int, HopKey] = {}
        self._next_hop_id = settings.id_base
        self._next_group_id = settings.group_base

    # --- ids and vectors

    def hop_id(self, hop: HopKey) -> int:
        """Return the id of a next hop: assigned at first use, never changed."""
        found = self.hop_ids.get(hop)
        if found is None:
            low, high = self._settings.id_base, self._settings.group_base
            found = self._free(self._next_hop_id, low, high, self._id_hops)
            self._next_hop_id = found + 1
            self._bind(hop, found)
        return found

    def hop_of(self, nexthop_id: int) -> HopKey | None:
        """Return the next hop of an assigned id."""
        return self._id_hops.get(nexthop_id)

    def _bind(self, hop: HopKey, nexthop_id: int) -> None:
        self.hop_ids[hop] = nexthop_id
        self._id_hops[nexthop_id] = hop

    def new_group_id(self) -> int:
        """Return an id that no object has, ours or foreign. Raises RuntimeError if none is left."""
        low = self._settings.group_base
        high = self._settings.id_base + self._settings.id_count
        found = self._free(self._next_group_id, low, high, self.content)
        self._next_group_id = found + 1
        return found

    def return_group_id(self, group_id: int) -> None:
        """Return the id of a group that the kernel refused: the next attempt uses it again."""
        self._next_group_id = min(self._next_group_id, group_id)

    def _free(self, start: int, low: int, high: int, taken: Container[int]) -> int:
        candidate = start
        state = self.state
        for _ in range(high - low):
            if candidate >= high:
                candidate = low
            if (
                candidate not in taken
                and candidate not in state.nexthops
                and candidate not in state.groups
                and candidate not in state.reserved
            ):
                return candidate
            candidate += 1
        raise RuntimeError("the id range of the FIB is used up")

    def intern(self, members: tuple[Member, ...]) -> MemberVector:
        """Return the one MemberVector of these members."""
        vector = self._interned.get(members)
        if vector is None:
            vector = self._interned[members] = MemberVector(members)
        return vector

    def members(self, weights: Mapping[int, int]) -> tuple[Member, ...]:
        """Return the members of a group, from weights by next-hop id."""
        return tuple(map(self._members.__getitem__, sorted(weights.items())))

    def forget_vectors(self) -> None:
        """Drop vectors that no group holds, once there are many."""
        if len(self._interned) > 2 * len(self._holders) + _INTERNED_SLACK:
            self._interned = {vector.members: vector for vector in self._holders}

    # --- changes

    def _touch(self, *changed: Prefix | int) -> None:
        if self.touched is not None:
            self.touched.update(changed)

    def set_group(self, group_id: int, vector: MemberVector) -> None:
        """Record that group ``group_id`` holds ``vector``."""
        self._touch(group_id)
        self._drop_content(group_id)
        self.content[group_id] = vector
        self._holders.setdefault(vector, {})[group_id] = None
        self.state.groups[group_id] = vector.members

    def mark_unknown(self, group_id: int) -> None:
        """Record that the content of a group is unknown: it must be written before use."""
        self._touch(group_id)
        self._drop_content(group_id)
        self.content[group_id] = MemberVector(())
        self.state.groups[group_id] = ()

    def drop_group(self, group_id: int) -> list[Prefix]:
        """Record that a group is gone; return the prefixes whose routes went with it."""
        self._drop_content(group_id)
        self.content.pop(group_id, None)
        self.state.groups.pop(group_id, None)
        self.unusable.discard(group_id)
        return self.drop_users(group_id)

    def _drop_content(self, group_id: int) -> None:
        old = self.content.get(group_id)
        holders = self._holders.get(old) if old is not None else None
        if old is not None and holders is not None:
            holders.pop(group_id, None)
            if not holders:
                del self._holders[old]

    def drop_users(self, object_id: int) -> list[Prefix]:
        """Record that the routes of an object are gone; return their prefixes."""
        lost = list(self.users.pop(object_id, ()))
        self._touch(*lost)
        for prefix in lost:
            del self.state.routes[prefix]
        return lost

    def set_route(self, prefix: Prefix, object_id: int) -> None:
        """Record that the route of ``prefix`` points at ``object_id``."""
        routes = self.state.routes
        if prefix in routes:
            self.drop_route(prefix)
        self._touch(prefix)
        routes[prefix] = object_id
        self._join(prefix, object_id)

    def _join(self, prefix: Prefix, object_id: int) -> None:
        users = self.users.get(object_id)
        if users is None:
            users = self.users[object_id] = Users(self.state.routes, object_id)
        users.listed.append(prefix)

    def drop_route(self, prefix: Prefix) -> None:
        """Record that the route of ``prefix`` is gone."""
        old = self.state.routes.pop(prefix, None)
        if old is not None:
            self._touch(prefix)
            users = self.users[old]
            users.left()
            if not users:
                del self.users[old]

    def lose_nexthops(self, ids: Iterable[int]) -> list[Prefix]:
        """Record that these next hops are gone: the kernel shrinks groups and deletes empty ones.

        Returns the prefixes that lost their route with them.
        """
        gone = set(ids)
        self.unverified -= gone
        lost: list[Prefix] = []
        for nexthop_id in gone:
            self.state.nexthops.pop(nexthop_id, None)
            lost += self.drop_users(nexthop_id)
        for group_id, members in list(self.state.groups.items()):
            left = tuple(m for m in members if m.nexthop_id not in gone)
            if len(left) == len(members):
                continue
            if not left:
                lost += self.drop_group(group_id)
            elif group_id in self.unusable:  # keep it out of ``_holders``: no route may join it
                self.state.groups[group_id] = left
                self._touch(group_id)
            else:
                self.set_group(group_id, self.intern(left))
        return lost

    def damaged(self, changes: ForeignChanges) -> tuple[int, dict[Prefix, None]]:
        """Record what others did; return of how many objects, and the prefixes concerned."""
        state, concerned = self.state, dict[Prefix, None]()
        drift = len(state.nexthops.keys() & changes.changed)
        for group_id in state.groups.keys() & changes.deleted:
            lost = self.drop_group(group_id)
            concerned |= dict.fromkeys(lost)
            drift += 1 + len(lost)
        if gone := state.nexthops.keys() & changes.deleted:
            for group_id, members in state.groups.items():
                if any(member.nexthop_id in gone for member in members):
                    concerned |= dict.fromkeys(self.users.get(group_id, ()))
            lost = self.lose_nexthops(gone)
            concerned |= dict.fromkeys(lost)
            drift += len(gone) + len(lost)
        for group_id in state.groups.keys() & changes.changed:
            concerned |= dict.fromkeys(self.users.get(group_id, ()))
            self.mark_unknown(group_id)
            drift += 1
        for prefix in {*changes.routes, *changes.taken} & state.routes.keys():
            concerned[prefix] = None
            self.drop_route(prefix)
            drift += 1
        return drift, concerned

    def replace(self, actual: FibState) -> None:
        """Replace the state by a dump; ids of known next hops do not change."""
        if self.touched is not None:
            self.touched.update(self.state.routes, actual.routes)
        self.state = FibState(
            nexthops=dict(actual.nexthops),
            groups=dict(actual.groups),
            routes=dict(actual.routes),
            resilient=set(actual.resilient),
            reserved=set(actual.reserved),
        )
        for nexthop_id, hop in sorted(actual.nexthops.items()):
            if hop not in self.hop_ids and nexthop_id not in self._id_hops:
                self._bind(hop, nexthop_id)
        self.content, self._holders, self.unusable, self.users = {}, {}, set(), {}
        self.unverified.clear()
        for group_id, members in actual.groups.items():
            # A group cannot change between hash-threshold and resilient in place.
            if (group_id in actual.resilient) != self._settings.resilient:
                self.unusable.add(group_id)
                self.content[group_id] = MemberVector(members)
            else:
                self.set_group(group_id, self.intern(members))
        for prefix, object_id in actual.routes.items():
            self._join(prefix, object_id)

    # --- questions

    def take_touched(self) -> set[Prefix]:
        """Return the prefixes whose route or its next hops may have changed since the last call.

        At first those of all routes.
        """
        touched, self.touched = self.touched, set()
        if touched is None:
            return set(self.state.routes)
        found = {one for one in touched if not isinstance(one, int)}
        for one in touched:
            if isinstance(one, int):
                found.update(self.users.get(one, ()))
        return found

    def ids_on(self, ifindex: int) -> list[int]:
        """Return the ids of the next hops through an interface."""
        hops = {**self.state.nexthops, **self._id_hops}
        return [nexthop_id for nexthop_id, hop in hops.items() if hop[0] == ifindex]

    def holders(self, vector: MemberVector) -> Iterable[int]:
        """Return the groups that hold exactly this vector, oldest first."""
        return self._holders.get(vector, ())

    def identical(self) -> list[list[int]]:
        """Return sets of two or more groups in use with equal members."""
        found = [[g for g in groups if g in self.users] for groups in self._holders.values()]
        return [groups for groups in found if len(groups) > 1]

    def unused_groups(self) -> list[int]:
        """Return the groups that no route points at."""
        return [group_id for group_id in self.state.groups if group_id not in self.users]

    def unused_nexthops(self) -> list[int]:
        """Return the next hops that no route points at and no group contains."""
        used = {m.nexthop_id for members in self.state.groups.values() for m in members}
        return [i for i in self.state.nexthops if i not in used and i not in self.users]
