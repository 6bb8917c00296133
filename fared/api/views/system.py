"""Views of the daemon itself: status, convergence, counters, log, configuration, self-checks."""

from __future__ import annotations

from collections import Counter

from fared import __version__
from fared.api.schema import system as schema
from fared.api.views.context import EXTERNAL, ViewContext, family_name
from fared.api.views.kernel import differences
from fared.api.views.ospf import checksum_text
from fared.core.ids import dotted, format_system_id
from fared.core.reduction import ReductionSettings
from fared.fib.model import FibState
from fared.isis.ids import Level
from fared.router.speaker import ISIS, OSPF
from fared.router.stages import Stage


def status(context: ViewContext) -> schema.Status:
    """``show status``."""
    router, runtime = context.router, context.runtime
    believed = router.planner.believed
    runs = router.journal.spf_runs
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
        "weights": context.weights,
        "config": {
            "file": runtime.config_file,
            "loaded_at": runtime.loaded_at,
            "last_reload_ok": runtime.last_reload_ok,
            "last_reload_error": runtime.last_reload_error,
        },
        "ospf": _ospf(context) if context.speaks(OSPF) else None,
        "isis": _isis(context) if context.speaks(ISIS) else None,
        "spf": {
            "runs": router.journal.counts["spf"],
            "backoff": router.schedule.backoff.state.value,
            "last_at": context.unix(runs[-1].at) if runs else None,
            "last_duration": runs[-1].computed if runs else None,
        },
        "routes": _routes(context),
        "fib": {
            "routes": len(believed.routes),
            "groups": len(believed.groups),
            "nexthops": len(believed.nexthops),
            "drift": router.planner.counters["drift"],
            "resyncs": sum(runtime.resyncs.values()),
        },
        "sysctls": runtime.sysctls,
        "event_loop_lag": round(runtime.event_loop_lag, 6),
    }


def _routes(context: ViewContext) -> schema.RouteCounts:
    routes = context.routes
    local = [route for route in routes.values() if route.nexthops is None]
    redistributed = sum(route.path_type in EXTERNAL for route in local)
    return {
        "total": len(routes),
        "connected": len(local) - redistributed,
        "redistributed": redistributed,
        "weighted": sum(
            route.nexthops is not None and len({h.weight for h in route.nexthops.hops}) > 1
            for route in routes.values()
        ),
        "protocols": routes_by_protocol(context),
        "families": dict(Counter(family_name(prefix.family) for prefix in routes)),
    }


def routes_by_protocol(context: ViewContext) -> dict[str, int]:
    """How many best routes come from each protocol that runs."""
    found = {speaker.name: 0 for speaker in context.speakers}
    if len(found) == 1:
        return dict.fromkeys(found, len(context.routes))
    for prefix in context.routes:
        found[context.speaker_of(prefix).name] += 1
    return found


def _ospf(context: ViewContext) -> schema.OspfStatus:
    snapshot = context.ospf
    areas: list[schema.AreaStatus] = []
    for view in snapshot.databases:
        if view.scope != "area" or view.area is None:
            continue
        members = [i for i in snapshot.interfaces if i.area == view.area]
        neighbors = [n for i in members for n in i.neighbors]
        areas.append(
            {
                "area": dotted(view.area),
                "type": "stub" if view.stub else "normal",
                "interfaces": len(members),
                "neighbors": len(neighbors),
                "full": sum(n.state == "Full" for n in neighbors),
                "lsas": len(view.lsas),
                "checksum": checksum_text(view.checksum),
            }
        )
    return {
        "stub_router": snapshot.stub_router,
        "flooding": _flooding(snapshot.reduction),
        "areas": areas,
    }


def _flooding(reduction: ReductionSettings) -> schema.FloodingStatus:
    return {"reduction": reduction.mode.value, "delay": reduction.delay}


def _isis(context: ViewContext) -> schema.IsisStatus:
    from fared.isis.pdu.render import format_area  # noqa: PLC0415 - only where IS-IS runs

    snapshot = context.isis
    levels: list[schema.LevelStatus] = []
    for view in snapshot.databases:
        adjacencies = [a for a in snapshot.adjacencies if a.levels & view.level]
        levels.append(
            {
                "level": Level(view.level).label,
                "interfaces": sum(bool(c.levels & view.level) for c in snapshot.circuits),
                "neighbors": len(adjacencies),
                "up": sum(adjacency.state == "Up" for adjacency in adjacencies),
                "lsps": len(view.lsps),
                "checksum": checksum_text(view.checksum),
            }
        )
    return {
        "system_id": format_system_id(snapshot.system_id),
        "areas": [format_area(area) for area in snapshot.areas],
        "families": [family_name(family) for family in snapshot.families],
        "overloaded": snapshot.overloaded,
        "attached": snapshot.attached,
        "flooding": _flooding(snapshot.reduction),
        "levels": levels,
    }


def stages(context: ViewContext) -> list[schema.StageReached]:
    """The start-up stages reached so far."""
    reached = context.router.startup.reached
    return [
        {"stage": stage.label, "seconds": round(reached[stage], 6)}
        for stage in Stage
        if stage in reached
    ]


def convergence(context: ViewContext) -> schema.Convergence:
    """``show convergence``."""
    return {
        "format": "fared-convergence/1",
        "stages": stages(context),
        "changes": [
            {
                "at": context.unix(change.at),
                "causes": list(change.causes),
                "spf_ran": change.spf_ran,
                "routes": change.routes,
                "operations": change.operations,
                "detected": change.detected,
                "originated": change.originated,
                "flooded": change.flooded,
                "waited": change.waited,
                "computed": change.computed,
                "spf": change.spf,
                "weighed": change.weighed,
                "planned": change.planned,
                "programmed": change.programmed,
                "total": change.total,
            }
            for change in context.router.journal.changes
        ],
    }


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


def log(context: ViewContext, lines: int | None = None) -> schema.Log:
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


def config(context: ViewContext) -> schema.ConfigDocument:
    """``show config``."""
    return {
        "format": "fared-config/1",
        "file": context.runtime.config_file,
        "loaded_at": context.runtime.loaded_at,
        "config": context.config.document(),
    }


def validate(context: ViewContext) -> schema.Validate:
    """``validate``: the kernel holds what the planner believes, and that is what was computed."""
    router = context.router
    believed, found = router.planner.believed, context.dump()
    differing = differences(context, believed, found)
    missing = _missing(context, believed)
    checks: list[schema.Check] = [
        *_adjacencies(context),
        {
            "name": "routes are in the FIB",
            "ok": not missing,
            "detail": f"{len(missing)} routes not programmed",
        },
        {
            "name": "kernel holds the FIB",
            "ok": not differing,
            "detail": f"{len(differing)} objects differ",
        },
        {
            "name": "sysctls let weights work",
            "ok": all(row["ok"] for row in context.runtime.sysctls),
            "detail": f"{sum(not row['ok'] for row in context.runtime.sysctls)} settings are wrong",
        },
    ]
    return {
        "format": "fared-validate/1",
        "ok": all(check["ok"] for check in checks),
        "checks": checks,
    }


def _adjacencies(context: ViewContext) -> list[schema.Check]:
    """Whether every neighbor that is heard is as near as it should be, by protocol."""
    checks: list[schema.Check] = []
    if context.speaks(OSPF):
        forming = [n for n in context.ospf.neighbors if n.state not in ("Full", "2-Way", "Down")]
        checks.append(_forming("neighbors are full", len(forming)))
    if context.speaks(ISIS):
        waiting = [a for a in context.isis.adjacencies if a.state != "Up"]
        checks.append(_forming("adjacencies are up", len(waiting)))
    return checks


def _forming(name: str, count: int) -> schema.Check:
    return {
        "name": name,
        "ok": not count,
        "detail": f"{count} neighbors still forming an adjacency",
    }


def _missing(context: ViewContext, believed: FibState) -> list[str]:
    return [
        str(prefix)
        for prefix, route in context.routes.items()
        if route.nexthops is not None and prefix not in believed.routes
    ]
