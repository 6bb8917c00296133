"""What notifications tell of our objects that other programs deleted, changed or replaced.

It is kept until somebody repairs it: by a notification each, a program may delete faster than that.
"""

from __future__ import annotations

from fared.core.ids import Prefix
from fared.kernel.claims import Claims
from fared.kernel.fibdump import RoutePlace, holder
from fared.kernel.netlink import attributes, u32
from fared.kernel.rtnetlink import (
    NHA_ID,
    NHMSG,
    RTM_DELNEXTHOP,
    RTM_DELROUTE,
    RTM_NEWNEXTHOP,
    RTM_NEWROUTE,
)
from fared.paths.fib.model import ForeignChanges
from fared.paths.fib.settings import FibSettings

_MOST_ROUTES = 1000
"""Routes that are repaired in one turn of the loop."""


class ForeignNotices:
    """Collects notifications; ``claimed`` are the places of our routes."""

    def __init__(self, place: RoutePlace, settings: FibSettings, claimed: Claims) -> None:
        self._place = place
        self._claimed = claimed
        self._ids = range(settings.id_base, settings.id_base + settings.id_count)
        self._deleted: dict[int, None] = {}
        self._changed: dict[int, None] = {}
        self._routes: dict[Prefix, None] = {}
        self._taken: dict[Prefix, None] = {}

    def add(self, kind: int, body: bytes) -> None:
        """Take a message about an object of ours; what it says of others is ignored."""
        if kind in (RTM_NEWROUTE, RTM_DELROUTE):
            found = holder(body, self._place)
            if found is not None and found[0] in self._claimed:
                self._routes[found[0]] = None
        elif kind in (RTM_NEWNEXTHOP, RTM_DELNEXTHOP):
            number = attributes(body, NHMSG.size).get(NHA_ID)
            if number is not None and (object_id := u32(number)) in self._ids:
                # a deleted group has taken its routes along, even if it is there again
                kept = self._deleted if kind == RTM_DELNEXTHOP else self._changed
                kept[object_id] = None

    def taken(self, prefix: Prefix) -> None:
        """Take a route of another program in a place of ours."""
        self._taken[prefix] = None

    def take(self) -> ForeignChanges | None:
        """Return what has come, some thousand routes at a time; None: nothing."""
        if not (self._deleted or self._changed or self._routes or self._taken):
            return None
        found = ForeignChanges(
            tuple(self._deleted), tuple(self._changed), _some(self._routes), _some(self._taken)
        )
        self._deleted.clear()
        self._changed.clear()
        return found


def _some(prefixes: dict[Prefix, None]) -> tuple[Prefix, ...]:
    some = tuple(prefixes)[:_MOST_ROUTES]
    for prefix in some:
        del prefixes[prefix]
    return some
