"""Which routes ``show routes`` lists: within a prefix, via a next hop, of a type, by age."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fared.core.ids import format_address
from fared.management.documents.context import ViewContext, type_of
from fared.management.documents.errors import CommandError, not_found
from fared.management.documents.routes import CONNECTED, DISCARD, ROUTE_TYPES
from fared.router.convergence import MOST_CHANGES

if TYPE_CHECKING:
    from fared.core.ids import Prefix
    from fared.paths.rib.model import NextHop, NextHopSet, Route

Found = tuple[str, "Prefix", "Route"]
"""Protocol, prefix, route."""
Wanted = Callable[[Found], bool]


def change_times(context: ViewContext) -> Callable[[str, Prefix], float | None]:
    """Return what gives the Unix time of the last change of a protocol's route to a prefix.

    None: it is not remembered. A route without a recorded change has been there since the start; of
    routes that another protocol's route overrides none is recorded.
    """
    router, runtime = context.router, context.runtime
    source, known = router.table.source, router.journal.last_change
    several, to_unix = len(router.instances) > 1, context.wall - context.now

    def changed_at(proto: str, prefix: Prefix) -> float | None:
        if several and source(prefix) not in (None, proto):
            return None
        last = known.get(prefix)
        if last is not None:
            return last.at + to_unix
        return runtime.started_at if len(known) < MOST_CHANGES else None

    return changed_at


def wanted_routes(
    context: ViewContext,
    via: str | None,
    kind: str | None,
    older: float | None,
    newer: float | None,
) -> list[Wanted]:
    """Return the conditions that a route must fulfil. Raises CommandError."""
    found: list[Wanted] = []
    age = _age_of(context)
    if kind is not None:
        found.append(_of_type(kind))
    if via is not None:
        found.append(_via(context, via))
    if older is not None:
        found.append(lambda row: age(row) >= older)
    if newer is not None:
        found.append(lambda row: age(row) <= newer)
    return found


def _age_of(context: ViewContext) -> Callable[[Found], float]:
    """Return what gives the age of a route, seconds; one that is not remembered is old."""
    changed_at, wall = change_times(context), context.wall

    def age(row: Found) -> float:
        at = changed_at(row[0], row[1])
        return float("inf") if at is None else wall - at

    return age


def _of_type(kind: str) -> Wanted:
    if kind not in ROUTE_TYPES:
        raise CommandError("bad-argument", f"{kind!r} is not a type: {', '.join(ROUTE_TYPES)}")
    if kind == CONNECTED:
        return lambda row: row[2].nexthops is None
    if kind == DISCARD:
        return lambda row: row[2].discard
    return lambda row: type_of(row[0], row[2]) == kind


def _via(context: ViewContext, name: str) -> Wanted:
    """Return whether a route has a next hop; many routes share few sets of them."""
    known: dict[int, tuple[NextHopSet, bool]] = {}
    links = [link for instance in context.instances for link in instance.local_links]
    names = {context.name(link.neighbor): None for link in links}
    addresses = {link.interface: None for link in links}
    ids = {context.node(link.neighbor) for link in links}
    gateways = {format_address(link.family, link.gateway) for link in links}
    if name not in names.keys() | addresses.keys() | ids | gateways:
        raise not_found("next hop", name, [*names, *addresses])

    def wanted(row: Found) -> bool:
        hops = row[2].nexthops
        if hops is None or row[2].discard:
            return False
        if id(hops) not in known:
            known[id(hops)] = hops, any(_is_called(context, hop, name) for hop in hops.hops)
        return known[id(hops)][1]

    return wanted


def _is_called(context: ViewContext, hop: NextHop, name: str) -> bool:
    return name in (
        hop.interface,
        context.name(hop.neighbor),
        context.node(hop.neighbor),
        format_address(hop.family, hop.gateway) if hop.gateway else None,
    )
