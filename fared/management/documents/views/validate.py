"""The view of ``validate``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fared.core.link_facts import KERNEL
from fared.management.documents.cells import count
from fared.management.documents.context import ViewContext
from fared.management.documents.each import views_of
from fared.management.documents.human import share
from fared.management.documents.validate import SelfCheck, Validate
from fared.management.documents.views.kernel import differences
from fared.management.documents.views.link import refused_hellos
from fared.management.documents.views.missing import link_counts
from fared.paths.fib.model import FibState
from fared.paths.rib.model import HopKey
from fared.paths.rib.set_builder import SolvedHops
from fared.paths.weights.defaults import MAX_WEIGHT
from fared.paths.weights.path_capacity import WeightMode
from fared.paths.weights.quantise import throughput_lost
from fared.router.protocols import BGP

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAMED = 5
_DUPLICATES = ("duplicate-router-id", "duplicate-system-id")
_MOST_LOST = 0.05
"""Of the throughput, by bounds of weights."""
_ONGOING = 60.0
"""Seconds: a source that has sent a hello since may go on."""


def validate(context: ViewContext) -> Validate:
    """``validate``: compare computed routes, installed state and kernel."""
    router = context.router
    installed, found = router.planner.installed, context.dump()
    differing = differences(context, installed, found)
    missing = _missing(context, installed)
    wrong = [row.name for row in context.runtime.sysctls if not row.ok]
    checks = [
        *_adjacencies(context),
        _links(context),
        *_hellos(context),
        _identity(context),
        SelfCheck(
            name="routes are in the FIB",
            ok=not missing,
            detail=_named(f"{len(missing)} routes not programmed", missing),
        ),
        SelfCheck(
            name="kernel holds the FIB",
            ok=not differing,
            detail=f"{len(differing)} objects differ",
        ),
        SelfCheck(
            name="sysctls let weights work",
            ok=not wrong,
            detail=_named(f"{len(wrong)} settings are wrong", wrong),
        ),
        *_fpm(context),
        *_bounds(context),
        _file(context),
        *_platform(context),
    ]
    return Validate(ok=all(check.ok for check in checks), checks=checks)


def _file(context: ViewContext) -> SelfCheck:
    """Check that the file was not refused when it was read last."""
    runtime = context.runtime
    ok = runtime.last_reload_ok is not False
    detail = "" if ok else f"another configuration runs: {runtime.last_reload_error}"
    return SelfCheck(name="the configuration file is in use", ok=ok, detail=detail)


def _platform(context: ViewContext) -> list[SelfCheck]:
    """Check that the databases of a switch can be read, where it has some."""
    error, name = context.platform.error, context.platform.name
    if name == KERNEL:
        return []
    detail = "" if error is None else f"the last facts stay: {error}"
    return [SelfCheck(name=f"facts of {name} can be read", ok=error is None, detail=detail)]


def _fpm(context: ViewContext) -> list[SelfCheck]:
    """Check that the switch has acknowledged all routes, and all of each."""
    if context.fpm is None:
        return []
    session, address = context.fpm.session, context.fpm.address
    if session.state == "down":
        problems = [f"no connection to {address}"]
    elif context.fpm.slow:
        problems = [f"{address} does not read"]
    else:
        routes = context.router.planner.installed.routes
        absent = [str(p) for p in routes if not session.offloaded(p)]
        told = {
            "routes not acknowledged": absent,
            "routes with next hops withheld": sorted(map(str, session.withheld)),
            "routes with too many next hops": sorted(map(str, session.too_long)),
        }
        problems = [_named(f"{len(names)} {what}", names) for what, names in told.items() if names]
    detail = "; ".join(problems) or f"{count(len(session.rows.announced), 'route')}"
    return [SelfCheck(name="the switch has the routes", ok=not problems, detail=detail)]


def _adjacencies(context: ViewContext) -> list[SelfCheck]:
    """Check, by protocol, that every neighbor is full, or its adjacency up."""
    return [
        _forming(*views.unready(context), of=len(views.neighbors(context)))
        for _, views in views_of(context)
    ]


def _forming(name: str, reasons: list[str], *, of: int) -> SelfCheck:
    """Tell those that are forming from those with a problem, whose adjacency may even be up."""
    problems = list(filter(None, reasons))
    found = []
    if forming := len(reasons) - len(problems):
        who = "neighbor is" if forming == 1 else "neighbors are"
        found.append(f"{forming} {who} forming an adjacency")
    if problems:
        found.append(_named(f"{count(len(problems), 'neighbor')} with a problem", problems))
    return SelfCheck(name=name, ok=not reasons, detail="; ".join(found) or f"{of} of {of}")


def _sends_hellos(context: ViewContext) -> bool:
    """Whether a protocol runs that has hellos, and adjacencies: BGP has sessions."""
    return any(instance.name != BGP for instance in context.instances)


def _hellos(context: ViewContext) -> Iterator[SelfCheck]:
    """Check that no hellos are being refused."""
    if not _sends_hellos(context):
        return
    refused = [item for item in refused_hellos(context) if item.last <= _ONGOING]
    named = [f"{item.source} on {item.interface}: {item.text}" for item in refused]
    detail = _named(f"{len(refused)} sources are refused", named)
    yield SelfCheck(name="hellos are accepted", ok=not refused, detail=detail)


def _links(context: ViewContext) -> SelfCheck:
    """Check that every link has an adjacency, or session, unless it is passive."""
    links = link_counts(context)
    names = {each.interface for each in links.missing}
    detail = _named(
        f"{links.total - len(names)} of {links.total} have one",
        [f"{each.interface}: {each.text}" for each in links.missing],
    )
    what = "an adjacency" if _sends_hellos(context) else "a session"
    return SelfCheck(name=f"links have {what}", ok=not links.missing, detail=detail)


def _identity(context: ViewContext) -> SelfCheck:
    """Check that no other router originates what is ours, nor is a neighbor with our id."""
    found = [(i.protocol.entry, i.engine.contested(context.now)) for i in context.instances]
    named = [f"{entry} {ours}" for entry, ours in found if ours is not None]
    refused = [item for item in refused_hellos(context) if item.cause in _DUPLICATES]
    named += [f"{item.source} on {item.interface}" for item in refused if item.last <= _ONGOING]
    detail = _named("another router has our id" if named else "no other router has it", named)
    return SelfCheck(name="router id is unique", ok=not named, detail=detail)


def _bounds(context: ViewContext) -> list[SelfCheck]:
    """Check, where weights are bounded, that this costs no route much.

    By load, or for few flows, weights differ from capacities by intent.
    """
    settings = context.router.settings.solver
    groups = context.router.settings.fib.max_groups
    bounded = settings.max_group_size is not None or settings.max_weight < MAX_WEIGHT
    bounded |= groups is not None
    if not bounded or settings.mode is not WeightMode.CAPACITY or settings.flows is not None:
        return []
    # By identity: thousands of routes share few sets.
    sets = {id(route.nexthops): (at, route.nexthops) for at, route in context.routes.items()}
    costly = []
    for prefix, hops in sets.values():
        if isinstance(hops, SolvedHops):
            _, capacities, _ = hops.arrays()
            lost = throughput_lost(_given(context, hops), capacities, settings.max_paths)
            if lost > _MOST_LOST:
                costly.append(f"{prefix} loses {share(lost)}")
    detail = _named(f"{count(len(costly), 'vector')} with a loss above {share(_MOST_LOST)}", costly)
    return [SelfCheck(name="bounded weights carry the capacity", ok=not costly, detail=detail)]


def _given(context: ViewContext, hops: SolvedHops) -> NDArray[np.float64]:
    """Return the weight of each member as it is written: in a shared group others than its own."""
    members, _, weights = hops.arrays()
    written, wanted = dict(context.router.planner.written(hops)), Counter[HopKey]()
    for hop, weight in hops.key:
        wanted[hop] += weight
    part = [written.get(hop, 0) / wanted[hop] if wanted[hop] else 0.0 for hop in members.keys]
    return np.array(part) * weights


def _named(count: str, names: list[str]) -> str:
    """Format a count with the first names."""
    if not names:
        return count
    more = ", ..." if len(names) > _NAMED else ""
    return f"{count}: {', '.join(names[:_NAMED])}{more}"


def _missing(context: ViewContext, installed: FibState) -> list[str]:
    foreign = context.foreign()
    return [
        f"{prefix} (protocol {foreign[prefix]} is there)" if prefix in foreign else str(prefix)
        for prefix, route in context.routes.items()
        if route.nexthops is not None and prefix not in installed.routes
    ]
