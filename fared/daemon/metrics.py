"""What Prometheus is told: plain values read from the live rooms at each scrape."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from fared.api.metrics import Metrics, MetricValues
from fared.api.views.context import ViewContext
from fared.api.views.ospf import lsa_type_name
from fared.api.views.routes import quantization_error
from fared.core.ids import dotted
from fared.router import events

PROTO = "ospf"


STAGES = ("waited", "computed", "planned", "programmed", "total")


class Host(Protocol):
    """What the metrics need of the daemon."""

    def context(self) -> ViewContext:
        """One moment of the daemon."""

    def operations(self) -> Counter[str]:
        """Operations on the kernel by kind and result."""


class Source:
    """Gives the metrics registry the values of the moment."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def metric_values(self) -> MetricValues:
        """Read all values."""
        return metric_values(self._host.context(), self._host.operations())


def observe(metrics: Metrics, output: events.Output) -> None:
    """Feed the histograms from what the router puts out."""
    match output:
        case events.Computed(record):
            metrics.observe_spf(record.computed)
        case events.Converged(record):
            for stage in STAGES:
                metrics.observe_convergence(stage, getattr(record, stage))


def metric_values(context: ViewContext, operations: Counter[str]) -> MetricValues:
    """Gather all families; ``operations`` counts ``Operation/result``."""
    router, snapshot, runtime = context.router, context.ospf, context.runtime
    values = MetricValues(
        ready=float(router.startup.ready),
        init_stage_seconds={
            (stage.label,): seconds for stage, seconds in router.startup.reached.items()
        },
        neighbor_transitions={(PROTO, a, b): n for a, b, n in snapshot.transitions},
        packets={(PROTO, direction, kind): n for direction, kind, n in snapshot.packets},
        packet_errors={(PROTO, reason): n for reason, n in snapshot.errors},
        spf_runs={
            (PROTO, "topology"): router.journal.counts["spf"],
            (PROTO, "capacity"): router.journal.counts["capacity"],
        },
        routes={(PROTO,): len(router.solver.routes)},
        fib_operations={
            (name.partition("/")[0], name.partition("/")[2]): n for name, n in operations.items()
        },
        fib_drift_routes=float(router.journal.counts["last-drift"]),
        fib_resyncs={(reason,): n for reason, n in runtime.resyncs.items()},
        weight_changes={("group-rewrite",): router.planner.counters["group-rewrite"]},
        event_loop_lag_seconds=runtime.event_loop_lag,
        config_last_reload_success=0.0 if runtime.last_reload_ok is False else 1.0,
    )
    values.neighbors = Counter((PROTO, dotted(n.area), n.state) for n in snapshot.neighbors)
    entries: Counter[tuple[str, ...]] = Counter()
    checksums: dict[tuple[str, ...], float] = {}
    for view in snapshot.databases:
        area = view.scope if view.area is None else dotted(view.area)
        entries.update((PROTO, area, lsa_type_name(stored.lsa)) for stored in view.lsas)
        if view.scope == "area":
            checksums[PROTO, area] = float(view.checksum & 0xFFFFFFFF)
    values.lsdb_entries, values.lsdb_checksum = entries, checksums
    _links(context, values)
    sets = {r.nexthops for r in router.solver.routes.values() if r.nexthops is not None}
    values.weight_quantization_error_ratio = max(
        (quantization_error(hops) for hops in sets if hops.hops), default=0.0
    )
    return values


def _links(context: ViewContext, values: MetricValues) -> None:
    capacity: dict[tuple[str, ...], float] = {}
    available: dict[tuple[str, ...], float] = {}
    utilization: dict[tuple[str, ...], float] = {}
    for view in context.ospf.interfaces:
        if view.capacity is None:
            continue
        capacity[(view.name,)] = view.capacity
        used = context.runtime.utilized.get(view.ifindex)
        if used is not None:
            available[(view.name,)] = max(0.0, view.capacity - used)
            utilization[(view.name,)] = used / view.capacity
    values.link_capacity_bytes_per_second = capacity
    values.link_available_bytes_per_second = available
    values.link_utilization_ratio = utilization
