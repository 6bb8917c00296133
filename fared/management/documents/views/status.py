"""The view of ``show status``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fared import __version__
from fared.core.ids import Prefix
from fared.management.documents.context import EXTERNAL, ViewContext, family_name, gateway
from fared.management.documents.convergence import stages
from fared.management.documents.each import views_of
from fared.management.documents.status import (
    ConfigStatus,
    FibCounts,
    ForeignRoute,
    RouteCounts,
    SpfStatus,
    SprayedHop,
    SprayStatus,
    Status,
)
from fared.management.documents.views.missing import link_counts
from fared.paths.rib.model import Route
from fared.router.protocols import BGP, ISIS, OSPF

_FOREIGN_SHOWN = 100


def status(context: ViewContext) -> Status:
    """``show status``."""
    router, runtime = context.router, context.runtime
    parts = {instance.name: views.status(context) for instance, views in views_of(context)}
    return Status(
        version=__version__,
        router_id=context.root,
        hostname=router.settings.hostname or "",
        pid=runtime.pid,
        started_at=runtime.started_at,
        uptime=round(context.wall - runtime.started_at, 3),
        ready=router.startup.ready,
        stage=router.startup.stage.label,
        stages=stages(context),
        drained=router.settings.drained,
        drained_by=None if context.drained is None else context.drained.by,
        drained_reason=None if context.drained is None else context.drained.reason,
        weights=context.weights,
        links=link_counts(context),
        config=ConfigStatus.of(runtime, file=runtime.config_file),
        ospf=parts.get(OSPF),
        isis=parts.get(ISIS),
        bgp=parts.get(BGP),
        spf=_spf(context),
        routes=_routes(context),
        fib=_fib(context),
        spraying=spraying(context),
        sysctls=runtime.sysctls,
        event_loop_lag=round(runtime.event_loop_lag, 6),
    )


def _spf(context: ViewContext) -> SpfStatus:
    router = context.router
    runs = router.journal.spf_runs
    return SpfStatus(
        runs=router.journal.counts["spf"],
        backoff=router.schedule.backoff.state.value,
        last_at=context.unix(runs[-1].at) if runs else None,
        last_duration=runs[-1].computed if runs else None,
    )


def _fib(context: ViewContext) -> FibCounts:
    planner, foreign = context.router.planner, context.foreign()
    return FibCounts(
        routes=len(planner.installed.routes),
        groups=len(planner.installed.groups),
        nexthops=len(planner.installed.nexthops),
        drift=planner.counters["drift"],
        resyncs=sum(context.runtime.resyncs.values()),
        foreign=[
            ForeignRoute(prefix=str(prefix), protocol=protocol)
            for prefix, protocol in sorted(foreign.items())[:_FOREIGN_SHOWN]
        ],
        foreign_total=len(foreign),
    )


def spraying(context: ViewContext) -> SprayStatus:
    """Return what of the granularity is in effect, and the packets of each next hop."""
    router, facts = context.router, context.spraying
    programming = router.spraying.programming
    planner = None if programming is None else programming.planner
    nexthops = router.planner.installed.nexthops
    hops: list[SprayedHop] = []
    for nexthop_id, (packets, size) in sorted(facts.counted.items()):
        if nexthop_id in nexthops:
            ifindex, family, address, _ = nexthops[nexthop_id]
            link = context.links.get(ifindex)
            name = str(ifindex) if link is None else link.name
            at = gateway(family, address)
            hops.append(SprayedHop(interface=name, address=at, packets=packets, bytes=size))
    return SprayStatus(
        granularity=router.settings.spray.granularity.value,
        groups=0 if planner is None else len(planner.installed.rounds),
        prefixes=0 if planner is None else sum(map(planner.sprayed, router.planner.desired)),
        drift=0 if planner is None else planner.counters["drift"],
        problem=facts.problem or (planner.error if planner is not None else "") or None,
        nexthops=hops,
    )


def _routes(context: ViewContext) -> RouteCounts:
    routes = context.routes
    local = [route for route in routes.values() if route.nexthops is None]
    redistributed = sum(route.path_type in EXTERNAL for route in local)
    families = Counter(prefix.family for prefix in routes)
    return RouteCounts(
        total=len(routes),
        connected=len(local) - redistributed,
        redistributed=redistributed + context.router.redistribution.count,
        weighted=weighted_routes(routes),
        martians=sum(instance.martians for instance in context.instances),
        protocols=routes_by_protocol(context),
        families={family_name(family): number for family, number in families.items()},
    )


def weighted_routes(routes: Mapping[Prefix, Route]) -> int:
    """Return how many routes have unequal weights; thousands share a few sets."""
    users = Counter(id(route.nexthops) for route in routes.values())
    sets = {id(route.nexthops): route.nexthops for route in routes.values()}
    return sum(
        users[key]
        for key, nexthops in sets.items()
        if nexthops is not None and len({hop.weight for hop in nexthops.hops}) > 1
    )


def routes_by_protocol(context: ViewContext) -> dict[str, int]:
    """Return the number of best routes of each running protocol."""
    found = {instance.name: 0 for instance in context.instances}
    if len(found) == 1:
        return dict.fromkeys(found, len(context.routes))
    for prefix in context.routes:
        found[context.instance_of(prefix).name] += 1
    return found
