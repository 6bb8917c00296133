"""The Adj-RIB-Out of a neighbor (RFC 4271 §9.1.3): what it has been told, and what is due.

Prefixes whose routes may be others are marked. ``take`` compares a portion of them with what the
neighbor knows: lost ones first, then by attributes. A route of which only the bandwidth is another
waits until that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.core.filters import Filter, denying
from fared.protocols.bgp.packet.as_path import join_paths, sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ClusterList,
    Communities,
    ExtendedCommunities,
    LocalPref,
    Med,
    OriginatorId,
    PathAttributes,
    SharedLimits,
    UnknownAttribute,
)
from fared.protocols.bgp.packet.communities import AvailableBandwidth, LinkBandwidth, SharedLimit
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_in import AdjRibIn, Numbers
from fared.protocols.bgp.rib.paths import (
    DEFAULT_LOCAL_PREF,
    with_bandwidth,
    with_communities,
    without,
)

_NON_TRANSITIVE: Final = 0x40
_NO_ADVERTISE: Final = 0xFFFFFF02
_NO_EXPORT: Final = (0xFFFFFF01, 0xFFFFFF03)
_MORE: Final = 1.1
"""A route that was withheld is told again if it carries so much more than the least."""
_HALF, _LOW = 32, 0xFFFF_FFFF
"""Two routes in one number: the one that is known, and the one that is wanted."""
_LATER: Final = -2
_AGAIN: Final = -1
"""A route that the neighbor knows, and is told again."""
_SPARE: Final = 64
"""Routes kept at least, beside those that the neighbor knows."""
Announces = Callable[[float | None, float | None], bool]
"""Whether a bandwidth has to be announced instead of the one that a neighbor knows."""


class ExportSettings(msgspec.Struct, frozen=True):
    """What this router says of itself, and which routes a neighbor is told.

    ``send``: types of Link Bandwidth (RFC 10005 §3.1). ``words``: ``own``, ``igp``, ``bgp`` or
    ``all``. ``least``: routes that carry less, bytes/s, are withheld. ``drained``: others are to be
    preferred to all routes (RFC 8326). ``share``: a host is told its part of what all of them
    find, who send ``demand``, bytes/s; None: as much as their links.
    """

    local_as: int
    next_hop: BgpNextHop
    send: Literal["transitive", "non-transitive", "both", "none"] = "transitive"
    words: tuple[str, ...] = ("all",)
    filters: tuple[Filter, ...] = ()
    least: float | None = None
    drained: bool = False
    share: bool = False
    demand: float | None = None

    def tells(self, word: str) -> bool:
        """Whether routes of a source are told."""
        return "all" in self.words or word in self.words


class ExportedRoute:
    """The attributes of a route for neighbors, without Link Bandwidth: it is hashed once."""

    __slots__ = ("_hash", "attributes")

    def __init__(self, attributes: PathAttributes) -> None:
        self.attributes = attributes
        self._hash = hash(attributes)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExportedRoute) and self.attributes == other.attributes


class Outgoing(NamedTuple):
    """A route for a neighbor, its Link Bandwidth in bytes/s, and routers that all paths pass.

    ``available``: what load leaves of the bandwidth, None: all of it.
    """

    route: ExportedRoute
    bandwidth: float | None
    limits: tuple[SharedLimit, ...] = ()
    available: float | None = None


def exported(
    attributes: PathAttributes, local_as: int, *, internal: bool, own: bool
) -> PathAttributes | None:
    """Return the attributes of a route for a neighbor; None if it may not be told of it.

    ``own``: this router originates it, and its MED is for all neighbors.
    """
    communities = attributes.find(Communities)
    limits = () if communities is None else communities.communities
    if _NO_ADVERTISE in limits or not (internal or set(limits).isdisjoint(_NO_EXPORT)):
        # RFC 1997
        return None
    items = attributes.items
    # RFC 4271 §5: what is not known here, and not transitive, ends here
    dropped = [one for one in items if isinstance(one, UnknownAttribute) and not one.transitive]
    if dropped:
        kept = tuple([one for one in items if one not in dropped])
        attributes = PathAttributes(kept, attributes.partial)
    if internal:
        # RFC 4271 §5.1.5
        if attributes.find(LocalPref) is None:
            return attributes.replaced(LocalPref(DEFAULT_LOCAL_PREF))
        return attributes
    path = attributes.find(AsPath)
    # RFC 4271 §5.1.2, §5.1.4, §5.1.5; RFC 4456 §8
    longer = join_paths(sequence(local_as), () if path is None else path.path)
    attributes = without(attributes, LocalPref, OriginatorId, ClusterList, *() if own else (Med,))
    extended = attributes.find(ExtendedCommunities)
    if extended is not None:
        # RFC 4360 §6
        some = tuple([raw for raw in extended.communities if not raw[0] & _NON_TRANSITIVE])
        attributes = with_communities(attributes, some)
    return attributes.replaced(AsPath(longer))


def _widest(old: Outgoing, new: Outgoing) -> tuple[float | None, float | None]:
    """Return the bandwidth of two routes that changes most, None for none."""
    pairs = [(old.bandwidth, new.bandwidth), _loads(old, new)]
    before, after = ({one.speaker: one for one in each.limits} for each in (old, new))
    for speaker in {**before, **after}:
        was, now = before.get(speaker), after.get(speaker)
        if was is None or now is None:
            return None, new.bandwidth
        pairs += [(was.bandwidth, now.bandwidth), (was.reach, now.reach)]
    return max(pairs, key=_change)


def _loads(old: Outgoing, new: Outgoing) -> tuple[float | None, float | None]:
    """Return a pair that differs as what load leaves does, beside the bandwidth of the route.

    As for links, a change counts in proportion to the bandwidth: little that is left may double.
    """
    if old.bandwidth is None or new.bandwidth is None:
        return old.available, new.available
    before, after = (
        one.bandwidth if one.available is None else one.available for one in (old, new)
    )
    assert before is not None
    assert after is not None
    return new.bandwidth, new.bandwidth + after - before


def _change(pair: tuple[float | None, float | None]) -> float:
    """How much a bandwidth changes, in proportion: infinite where there is none before or after."""
    old, new = pair
    if old == new:
        return 0.0
    if old is None or new is None:
        return math.inf
    return abs(new - old) / old if old else math.inf


class AdjRibOut:
    """What one neighbor knows. ``wanted`` tells the route of a group for it, None for none."""

    def __init__(
        self,
        settings: ExportSettings,
        wanted: Callable[[int], Outgoing | None],
        announces: Announces,
        capacity: Callable[[], float | None] = lambda: None,
    ) -> None:
        """``capacity``: C of the neighbor, bytes/s; None: not known."""
        self.settings = settings
        self.sent = np.zeros(0, np.int32)
        """By number of prefix: the number of the route that the neighbor knows, 0 for none."""
        self._wanted = wanted
        self._announces = announces
        self._capacity = capacity
        self._routes: list[Outgoing | None] = [None]
        self._numbers: dict[Outgoing, int] = {}
        self._most = _SPARE
        self._due = np.zeros(0, bool)
        self._waiting = np.zeros(0, bool)

    @property
    def due(self) -> bool:
        """Whether something remains to be looked at."""
        return bool(self._due.any())

    @property
    def waiting(self) -> int:
        """The number of prefixes whose bandwidth is another than the neighbor knows."""
        return int(np.count_nonzero(self._waiting))

    def told(self, number: int) -> Outgoing | None:
        """Return the route to a prefix, by its number, as the neighbor knows it; None: not."""
        return self._routes[max(int(self.sent[number]), 0)] if number < len(self.sent) else None

    def mark(self, numbers: Numbers) -> None:
        """Look at prefixes again."""
        if len(numbers):
            self._fit(int(numbers.max()) + 1)
            self._due[numbers] = True

    def change(self, settings: ExportSettings, table: AdjRibIn) -> None:
        """Tell everything again, by other settings."""
        self.settings = settings
        self.refresh(table)

    def mark_waiting(self) -> None:
        """Look again at all whose bandwidth is another than the neighbor knows."""
        self._due |= self._waiting

    def refresh(self, table: AdjRibIn) -> None:
        """Announce everything again (RFC 2918 §4)."""
        self.sent[self.sent != 0] = _AGAIN
        self.mark(np.concatenate([table.groups.nonzero()[0], self.sent.nonzero()[0]]))

    def take(self, table: AdjRibIn, limit: int) -> list[Update]:
        """Return what to tell the neighbor about at most so many prefixes."""
        if len(self._routes) > self._most:
            self._forget()
        due = self._due.nonzero()[0]
        groups = table.groups[due]
        lost = due[groups == 0]
        numbers = np.concatenate([lost, due[groups != 0]])[:limit] if len(lost) else due[:limit]
        self._due[numbers] = self._waiting[numbers] = False
        groups, place = np.unique(table.groups[numbers], return_inverse=True)
        want = np.array([self._number(group) for group in groups.tolist()], np.int32)[place]
        filters, prefixes = self.settings.filters, table.prefixes
        if filters:
            denied = [denying(filters, prefixes[at]) is not None for at in numbers.tolist()]
            want[denied] = 0
        have = self.sent[numbers]
        return self._updates(table, numbers, have, want)

    def _updates(
        self,
        table: AdjRibIn,
        numbers: Numbers,
        have: NDArray[np.int32],
        want: NDArray[np.int32],
    ) -> list[Update]:
        # of the same route, less than the least may pass the link now
        differ = (have != want) | (self.settings.least is not None)
        numbers, have, want = numbers[differ], have[differ], want[differ]
        pairs, place = np.unique(
            have.astype(np.int64) << _HALF | want.astype(np.int64), return_inverse=True
        )
        now = [self._now(pair >> _HALF, pair & _LOW) for pair in pairs.tolist()]
        told_as = np.array(now, np.int64)[place]
        self._waiting[numbers[told_as == _LATER]] = True
        tells = (told_as != _LATER) & (told_as != have)
        numbers, told_as = numbers[tells], told_as[tells]
        order = told_as.argsort(kind="stable")
        routes, starts = np.unique(told_as[order], return_index=True)
        prefixes = table.prefixes
        updates = []
        for route, some in zip(routes.tolist(), np.split(numbers[order], starts[1:]), strict=False):
            self.sent[some] = route
            told = tuple([prefixes[number] for number in some.tolist()])
            outgoing = self._routes[route]
            if outgoing is None:
                updates.append(Update(withdrawn=told))
            else:
                group = RouteGroup(self.settings.next_hop, told)
                updates.append(Update(routes=(group,), attributes=self._attributes(outgoing)))
        return updates

    def _now(self, before: int, wanted: int) -> int:
        """Return the route to tell now instead of the one known, or that it is told later."""
        least, new = self.settings.least, self._routes[wanted]
        if least is not None and new is not None:
            # one that takes the minimum with its link itself is not told it
            known = [one for one in (new.bandwidth, self._capacity()) if one is not None]
            if min(known, default=math.inf) < (least if before else least * _MORE):
                wanted = 0
        if wanted == before:
            return before
        return _LATER if self._waits(before, wanted) else wanted

    def _waits(self, before: int, after: int) -> bool:
        old, new = self._routes[max(before, 0)], self._routes[after]
        if old is None or new is None or old.route != new.route or not new.bandwidth:
            # a route that comes, goes or is another, and one that carries nothing any more
            return False
        return not self._announces(*_widest(old, new))

    def _number(self, group: int) -> int:
        outgoing = self._wanted(group) if group else None
        if outgoing is None:
            return 0
        found = self._numbers.get(outgoing)
        if found is None:
            found = self._numbers[outgoing] = len(self._routes)
            self._routes.append(outgoing)
        return found

    def _forget(self) -> None:
        """Keep only the routes that the neighbor knows, numbered anew."""
        known = self.sent > 0
        used = np.unique(self.sent[known])
        renumbered = np.zeros(len(self._routes), np.int32)
        renumbered[used] = np.arange(1, len(used) + 1)
        self.sent[known] = renumbered[self.sent[known]]
        self._routes = [None, *[self._routes[number] for number in used.tolist()]]
        self._numbers = {one: at for at, one in enumerate(self._routes) if one is not None}
        self._most = 2 * len(self._routes) + _SPARE

    def _attributes(self, outgoing: Outgoing) -> PathAttributes:
        send, bandwidth = self.settings.send, outgoing.bandwidth
        if bandwidth is None or send == "none":
            return outgoing.route.attributes
        types = {"transitive": (True,), "non-transitive": (False,)}.get(send, (True, False))
        local_as, free = self.settings.local_as, outgoing.available
        own: list[LinkBandwidth | AvailableBandwidth]
        own = [LinkBandwidth(local_as, bandwidth, each) for each in types]
        own += [] if free is None else [AvailableBandwidth(free)]
        found = with_bandwidth(outgoing.route.attributes, *own)
        return found.replaced(SharedLimits(outgoing.limits)) if outgoing.limits else found

    def _fit(self, size: int) -> None:
        if size > len(self.sent):
            # of each neighbor: a part that is not used is worth sparing
            more = max(size, len(self.sent) + len(self.sent) // 4) - len(self.sent)
            self.sent = np.concatenate([self.sent, np.zeros(more, np.int32)])
            self._due = np.concatenate([self._due, np.zeros(more, bool)])
            self._waiting = np.concatenate([self._waiting, np.zeros(more, bool)])
