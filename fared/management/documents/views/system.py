"""Views of the daemon itself: status, convergence, counters, log, configuration, self-checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fared import __version__
from fared.core.ids import Prefix
from fared.management.documents.context import EXTERNAL, ViewContext, family_name, gateway
from fared.management.documents.convergence import stages
from fared.management.documents.each import ProtocolViews, views_of
from fared.management.documents.views.kernel import differences
from fared.management.documents.views.link import refused_hellos
from fared.paths.fib.model import FibState
from fared.paths.rib.model import Route
from fared.router.protocols import ISIS, OSPF

if TYPE_CHECKING:
    from fared.management.documents.schema import system as schema


_FOREIGN_SHOWN = 100
_NAMED = 5
_ONGOING = 60.0
"""Seconds: a source that has sent a hello since may go on."""


def status(context: ViewContext) -> schema.Status:
    """``show status``."""
    router, runtime = context.router, context.runtime
    installed = router.planner.installed
    parts = {instance.name: views.status(context) for instance, views in views_of(context)}
    runs = router.journal.spf_runs
    foreign = context.foreign()
    return {
        "format": "fared-status/1",
        "version": __version__,
        "router_id": context.root,
        "hostname": router.settings.hostname or "",
        "pid": runtime.pid,
        "started_at": runtime.started_at,
        "uptime": round(context.wall - runtime.started_at, 3),
        "ready": router.startup.ready,
        "stage": router.startup.stage.label,
        "stages": stages(context),
        "drained": router.settings.drained,
        "drained_by": None if context.drained is None else context.drained.by,
        "drained_reason": None if context.drained is None else context.drained.reason,
        "weights": context.weights,
        "config": {
            "file": runtime.config_file,
            "loaded_at": runtime.loaded_at,
            "last_reload_ok": runtime.last_reload_ok,
            "last_reload_error": runtime.last_reload_error,
            "unconfirmed_until": runtime.unconfirmed_until,
        },
        "ospf": parts.get(OSPF),
        "isis": parts.get(ISIS),
        "spf": {
            "runs": router.journal.counts["spf"],
            "backoff": router.schedule.backoff.state.value,
            "last_at": context.unix(runs[-1].at) if runs else None,
            "last_duration": runs[-1].computed if runs else None,
        },
        "routes": _routes(context),
        "fib": {
            "routes": len(installed.routes),
            "groups": len(installed.groups),
            "nexthops": len(installed.nexthops),
            "drift": router.planner.counters["drift"],
            "resyncs": sum(runtime.resyncs.values()),
            "foreign": [
                {"prefix": str(prefix), "protocol": protocol}
                for prefix, protocol in sorted(foreign.items())[:_FOREIGN_SHOWN]
            ],
            "foreign_total": len(foreign),
        },
        "spraying": spraying(context),
        "sysctls": runtime.sysctls,
        "event_loop_lag": round(runtime.event_loop_lag, 6),
    }


def spraying(context: ViewContext) -> schema.SprayStatus:
    """Return what of the granularity is in effect, and the packets of each next hop."""
    router, facts = context.router, context.spraying
    programming = router.spraying.programming
    planner = None if programming is None else programming.planner
    nexthops = router.planner.installed.nexthops
    hops: list[schema.SprayedHop] = []
    for nexthop_id, (packets, size) in sorted(facts.counted.items()):
        if nexthop_id in nexthops:
            ifindex, family, address, _ = nexthops[nexthop_id]
            link = context.links.get(ifindex)
            hop: schema.SprayedHop = {
                "interface": str(ifindex) if link is None else link.name,
                "address": gateway(family, address),
                "packets": packets,
                "bytes": size,
            }
            hops.append(hop)
    return {
        "granularity": router.settings.spray.granularity.value,
        "groups": 0 if planner is None else len(planner.installed.rounds),
        "prefixes": 0 if planner is None else sum(map(planner.sprayed, router.planner.desired)),
        "drift": 0 if planner is None else planner.counters["drift"],
        "problem": facts.problem or (planner.error if planner is not None else "") or None,
        "nexthops": hops,
    }


def _routes(context: ViewContext) -> schema.RouteCounts:
    routes = context.routes
    local = [route for route in routes.values() if route.nexthops is None]
    redistributed = sum(route.path_type in EXTERNAL for route in local)
    return {
        "total": len(routes),
        "connected": len(local) - redistributed,
        "redistributed": redistributed,
        "weighted": weighted_routes(routes),
        "martians": sum(instance.martians for instance in context.instances),
        "protocols": routes_by_protocol(context),
        "families": {
            family_name(family): number
            for family, number in Counter(prefix.family for prefix in routes).items()
        },
    }


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


def counters(context: ViewContext) -> schema.Counters:
    """``show counters``."""
    rows: list[schema.Counter] = [
        {"proto": proto or None, "group": group, "name": name, "value": value}
        for proto, groups in context.counters().items()
        if context.proto in (None, proto)
        for group, counts in groups.items()
        for name, value in sorted(counts.items())
    ]
    return {"format": "fared-counters/1", "counters": rows}


def log(context: ViewContext, lines: int | None = None) -> schema.LogDocument:
    """``show log``."""
    records = list(context.log)
    chosen = records if lines is None else records[-lines:] if lines > 0 else []
    return {
        "format": "fared-log/1",
        "lines": [
            {
                "time": record["time"],
                "level": record["level"],
                "event": record["event"],
                "fields": record["fields"],
            }
            for record in chosen
        ],
    }


def validate(context: ViewContext) -> schema.Validate:
    """``validate``: compare computed routes, installed state and kernel."""
    router = context.router
    installed, found = router.planner.installed, context.dump()
    differing = differences(context, installed, found)
    missing = _missing(context, installed)
    wrong = [row["name"] for row in context.runtime.sysctls if not row["ok"]]
    checks: list[schema.SelfCheck] = [
        *_adjacencies(context),
        _hellos(context),
        _identity(context),
        {
            "name": "routes are in the FIB",
            "ok": not missing,
            "detail": _named(f"{len(missing)} routes not programmed", missing),
        },
        {
            "name": "kernel holds the FIB",
            "ok": not differing,
            "detail": f"{len(differing)} objects differ",
        },
        {
            "name": "sysctls let weights work",
            "ok": not wrong,
            "detail": _named(f"{len(wrong)} settings are wrong", wrong),
        },
        _file(context),
    ]
    return {
        "format": "fared-validate/1",
        "ok": all(check["ok"] for check in checks),
        "checks": checks,
    }


def _file(context: ViewContext) -> schema.SelfCheck:
    """Check that the file was not refused when it was read last."""
    runtime = context.runtime
    ok = runtime.last_reload_ok is not False
    detail = "" if ok else f"another configuration runs: {runtime.last_reload_error}"
    return {"name": "the configuration file is in use", "ok": ok, "detail": detail}


def _adjacencies(context: ViewContext) -> list[schema.SelfCheck]:
    """Check, by protocol, that every neighbor is full, or its adjacency up."""
    return [_forming(*views.unready(context)) for _, views in views_of(context)]


def _forming(name: str, reasons: list[str]) -> schema.SelfCheck:
    who = "neighbor is" if len(reasons) == 1 else "neighbors are"
    known = list(filter(None, reasons))
    detail = _named(f"{len(reasons)} {who} forming an adjacency", known)
    return {"name": name, "ok": not reasons, "detail": detail}


def _hellos(context: ViewContext) -> schema.SelfCheck:
    """Check that no hellos are being refused."""
    refused = [item for item in refused_hellos(context) if item["last"] <= _ONGOING]
    named = [f"{item['source']} on {item['interface']}: {item['text']}" for item in refused]
    details = [_named(f"{len(refused)} sources are refused", named)]
    silent = [row["interface"] for _, views in views_of(context) for row in _silent(views, context)]
    if silent:
        details.append(_named("no hello has arrived on some links", silent))
    return {"name": "hellos are accepted", "ok": not refused, "detail": "; ".join(details)}


def _silent(views: ProtocolViews, context: ViewContext) -> Iterator[Any]:
    """Yield the point-to-point links without a neighbor, on which none is refused either.

    That is no fault by itself. The other end may run no routing protocol, but a filter may be in
    between, or it may have our address: the kernel drops such packets as martians.
    """
    for row in views.interfaces(context):
        carries = row["up"] and row["state"] == "Point-to-point" and not row["passive"]
        if carries and not row["neighbors"] and not row["refused"]:
            yield row


def _identity(context: ViewContext) -> schema.SelfCheck:
    """Check that no other router originates what is ours."""
    found = [(i.protocol.entry, i.engine.contested(context.now)) for i in context.instances]
    named = [f"{entry} {ours}" for entry, ours in found if ours is not None]
    detail = _named("another router has our id" if named else "no other router has it", named)
    return {"name": "router id is unique", "ok": not named, "detail": detail}


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
