"""Views of the kernel's forwarding table: the programmed state, and differences from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TypeVar

from msgspec import UNSET

from fared.core.ids import Prefix
from fared.management.documents.context import FpmFacts, ViewContext, gateway
from fared.management.documents.errors import CommandError
from fared.management.documents.fib import (
    FibDifference,
    FibDocument,
    FibFpm,
    FibGroup,
    FibMember,
    FibNextHop,
    FibRoute,
)
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Sliced, Work, in_order
from fared.paths.fib.model import FibState, Member
from fared.paths.rib.model import HopKey

_FIRST = itemgetter(0)
K = TypeVar("K", int, Prefix)


@Sliced
def fib(
    context: ViewContext, prefix: str | None = None, *, diff: bool = False
) -> Work[FibDocument]:
    """``show fib [PREFIX]`` or ``show fib diff``. Raises CommandError."""
    settings = context.config.fib
    document = FibDocument(table=settings.table, protocol=settings.protocol, metric=settings.metric)
    installed = context.router.planner.installed
    if diff:
        document.diff = differences(context, installed, context.dump())
        return document
    users = Counter(installed.routes.values())
    if prefix is not None:
        wanted = _installed_prefix(context, installed, prefix)
        installed = _behind(installed, installed.routes[wanted], wanted)
    document.nexthops = [
        FibNextHop(
            id=nexthop_id,
            interface=_interface(context, hop),
            address=gateway(hop[1], hop[2]),
            onlink=hop[3],
            discard=not hop[0],
        )
        for nexthop_id, hop in sorted(installed.nexthops.items())
    ]
    nexthops = installed.nexthops.copy()
    resilient = installed.resilient.copy()

    def group(of: tuple[int, tuple[Member, ...]]) -> FibGroup:
        group_id, members = of
        return FibGroup(
            id=group_id,
            type="resilient" if group_id in resilient else "hash-threshold",
            routes=users[group_id],
            members=[_member(context, nexthops, member) for member in members],
        )

    groups, routes = list(installed.groups.items()), list(installed.routes.items())
    document.groups = Rows((yield from in_order(groups, _FIRST)), group)
    document.routes = Rows((yield from in_order(routes, _FIRST)), _fib_route(context.fpm))
    if context.fpm is not None:
        document.fpm = _session(context.fpm)
    return document


def _session(fpm: FpmFacts) -> FibFpm:
    session = fpm.session
    return FibFpm(
        address=fpm.address,
        state=session.state,
        since=fpm.connected_at,
        slow=fpm.slow,
        announced=len(session.rows.announced),
        waiting=session.waiting,
        withheld=sorted(map(str, session.withheld)),
        too_long=sorted(map(str, session.too_long)),
        warm_restart=fpm.warm_restart,
    )


def _installed_prefix(context: ViewContext, installed: FibState, text: str) -> Prefix:
    """Find an installed prefix: the exact one, or the longest match of an address."""
    wanted = context.wanted_prefix(text)
    covering = (wanted,) if "/" in text else installed.routes
    found = [each for each in covering if each in installed.routes and each.covers(wanted)]
    if not found:
        raise CommandError("not-found", f"no route to {text} is in the kernel")
    return max(found, key=lambda each: each.length)


def _behind(installed: FibState, target: int, prefix: Prefix) -> FibState:
    """Return the part of the state that one route refers to."""
    members = installed.groups.get(target, ())
    ids = {target, *(member.nexthop_id for member in members)}
    return FibState(
        nexthops={key: hop for key, hop in installed.nexthops.items() if key in ids},
        groups={target: members} if members else {},
        routes={prefix: target},
        resilient=installed.resilient & ids,
    )


def _fib_route(fpm: FpmFacts | None) -> Callable[[tuple[Prefix, int]], FibRoute]:
    """Return what makes a row; with FPM it tells whether the route is offloaded."""

    def row(entry: tuple[Prefix, int]) -> FibRoute:
        prefix, target = entry
        offloaded = UNSET if fpm is None else fpm.session.offloaded(prefix)
        return FibRoute(prefix=str(prefix), nexthop_id=target, offloaded=offloaded)

    return row


def _interface(context: ViewContext, hop: HopKey) -> str:
    if not hop[0]:
        return ""
    link = context.links.get(hop[0])
    return f"if{hop[0]}" if link is None else link.name


def _member(context: ViewContext, nexthops: Mapping[int, HopKey], member: Member) -> FibMember:
    hop = nexthops.get(member.nexthop_id, (0, 4, 0, False))
    return FibMember(
        nexthop_id=member.nexthop_id,
        interface=_interface(context, hop),
        address=gateway(hop[1], hop[2]),
        weight=member.weight,
    )


def differences(context: ViewContext, wanted: FibState, found: FibState) -> list[FibDifference]:
    """Compare two tables object by object."""
    rows: list[FibDifference] = []

    def compare(kind: str, key: str, left: str | None, right: str | None) -> None:
        if left != right:
            rows.append(FibDifference(object=kind, key=key, wanted=left, found=right))

    for prefix in _differing(wanted.routes, found.routes):
        compare("route", str(prefix), _route(wanted, prefix), _route(found, prefix))
    for group_id in _differing(wanted.groups, found.groups):
        left, right = wanted.groups.get(group_id), found.groups.get(group_id)
        compare("group", str(group_id), _members(left), _members(right))
    for nexthop_id in _differing(wanted.nexthops, found.nexthops):
        left_hop, right_hop = wanted.nexthops.get(nexthop_id), found.nexthops.get(nexthop_id)
        compare("nexthop", str(nexthop_id), _hop(context, left_hop), _hop(context, right_hop))
    return rows


def _differing(wanted: Mapping[K, object], found: Mapping[K, object]) -> list[K]:
    """Return the keys whose values differ, in order: few, of tables that may be large."""
    return sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))


def _route(state: FibState, prefix: Prefix) -> str | None:
    target = state.routes.get(prefix)
    return None if target is None else f"nhid {target}"


def _members(members: tuple[Member, ...] | None) -> str | None:
    if members is None:
        return None
    return " ".join(f"{member.nexthop_id}:{member.weight}" for member in members)


def _hop(context: ViewContext, hop: HopKey | None) -> str | None:
    if hop is None:
        return None
    if not hop[0]:
        return "discard"
    address = gateway(hop[1], hop[2])
    via = f"via {address} " if address else ""
    return f"{via}dev {_interface(context, hop)}"
