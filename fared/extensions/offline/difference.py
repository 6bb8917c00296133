"""The routes of a router that change, before and after (``fared-routes-diff/1``)."""

from __future__ import annotations

from fared.core.ids import parse_prefix
from fared.extensions.offline.documents import (
    HopDifference,
    HopFacts,
    OfflineRoutes,
    RouteDifference,
    RouteFacts,
    RoutesDiff,
)
from fared.management.documents.routes import RouteEntry, RouteNextHop


def difference(before: OfflineRoutes, after: OfflineRoutes, changes: list[str]) -> RoutesDiff:
    """Compare two routes documents of the same root; unchanged routes are only counted."""
    old = {route.prefix: route for route in before.routes}
    new = {route.prefix: route for route in after.routes}
    prefixes = sorted({*old, *new}, key=parse_prefix)
    rows = [_route(prefix, old.get(prefix), new.get(prefix)) for prefix in prefixes]
    changed = [row for row in rows if row.moves]
    unchanged = len(rows) - len(changed)
    return RoutesDiff.of(after, changes=changes, routes=changed, unchanged=unchanged)


def _route(prefix: str, old: RouteEntry | None, new: RouteEntry | None) -> RouteDifference:
    was, now = _hops(old), _hops(new)
    return RouteDifference(
        prefix=prefix,
        before=RouteFacts.of(old) if old else None,
        after=RouteFacts.of(new) if new else None,
        nexthops=[_hop(was.get(key), now.get(key)) for key in dict.fromkeys((*was, *now))],
    )


def _hop(old: RouteNextHop | None, new: RouteNextHop | None) -> HopDifference:
    before, after = (None if hop is None else HopFacts.of(hop) for hop in (old, new))
    return HopDifference.of(old or new, before=before, after=after)


def _hops(route: RouteEntry | None) -> dict[tuple[str | None, ...], RouteNextHop]:
    """The next hops of a route by interface, address and neighbor; equal ones by their order."""
    found: dict[tuple[str | None, ...], RouteNextHop] = {}
    for hop in route.nexthops if route else ():
        key: tuple[str | None, ...] = (hop.interface, hop.address, hop.neighbor)
        while key in found:
            key = (*key, "again")
        found[key] = hop
    return found
