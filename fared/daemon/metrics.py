"""What Prometheus is told: plain values read from the live rooms at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fared.api.metrics import MetricValues
from fared.api.views.adaptation import programmed_shares
from fared.api.views.context import ViewContext
from fared.api.views.ospf import lsa_type_name
from fared.api.views.routes import quantization_error
from fared.api.views.system import routes_by_protocol
from fared.core.ids import dotted
from fared.isis.ids import Level
from fared.router.speaker import ISIS, OSPF


def metric_values(context: ViewContext, operations: Counter[str]) -> MetricValues:
    """Gather all families; ``operations`` counts ``Operation/result``."""
    router, runtime = context.router, context.runtime
    values = MetricValues(
        ready=float(router.startup.ready),
        init_stage_seconds={
            (stage.label,): seconds for stage, seconds in router.startup.reached.items()
        },
        spf_runs={
            (proto, reason): router.journal.runs[proto, reason]
            for proto in router.speakers
            for reason in ("topology", "capacity")
        },
        routes={(proto,): count for proto, count in routes_by_protocol(context).items()},
        fib_operations={
            (name.partition("/")[0], name.partition("/")[2]): n for name, n in operations.items()
        },
        fib_drift_routes=float(router.journal.counts["last-drift"]),
        fib_resyncs={(reason,): n for reason, n in runtime.resyncs.items()},
        load_samples={(result,): runtime.load_samples[result] for result in ("ok", "failed")},
        weight_changes={("group-rewrite",): router.planner.counters["group-rewrite"]},
        event_loop_lag_seconds=runtime.event_loop_lag,
        config_last_reload_success=0.0 if runtime.last_reload_ok is False else 1.0,
    )
    by_protocol: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _BY_PROTOCOL}
    if OSPF in router.speakers:
        _ospf(context, by_protocol)
    if ISIS in router.speakers:
        _isis(context, by_protocol)
    for name, found in by_protocol.items():
        setattr(values, name, found)
    _links(context, values)
    sets = {r.nexthops: p for p, r in context.routes.items() if r.nexthops is not None}
    values.weight_quantization_error_ratio = max(
        (
            quantization_error(context, hops, programmed_shares(context, prefix, hops))
            for hops, prefix in sets.items()
            if hops.hops
        ),
        default=0.0,
    )
    return values


_BY_PROTOCOL = (
    "neighbors",
    "neighbor_transitions",
    "packets",
    "packet_errors",
    "lsdb_entries",
    "lsdb_checksum",
)


def _ospf(context: ViewContext, values: dict[str, Counter[tuple[str, ...]]]) -> None:
    snapshot = context.ospf
    for neighbor in snapshot.neighbors:
        values["neighbors"][OSPF, dotted(neighbor.area), neighbor.state] += 1
    values["neighbor_transitions"].update({(OSPF, a, b): n for a, b, n in snapshot.transitions})
    values["packets"].update({(OSPF, way, kind): n for way, kind, n in snapshot.packets})
    values["packet_errors"].update({(OSPF, reason): n for reason, n in snapshot.errors})
    for view in snapshot.databases:
        area = view.scope if view.area is None else dotted(view.area)
        values["lsdb_entries"].update((OSPF, area, lsa_type_name(s.lsa)) for s in view.lsas)
        if view.scope == "area":
            values["lsdb_checksum"][OSPF, area] = view.checksum & 0xFFFFFFFF


def _isis(context: ViewContext, values: dict[str, Counter[tuple[str, ...]]]) -> None:
    """Levels are the areas: an adjacency of both counts as ``level-1-2``, once."""
    from fared.api.views.isis import levels_name, lsp_type  # noqa: PLC0415 - only where it runs

    snapshot = context.isis
    for adjacency in snapshot.adjacencies:
        values["neighbors"][ISIS, levels_name(adjacency.levels), adjacency.state] += 1
    values["neighbor_transitions"].update({(ISIS, a, b): n for a, b, n in snapshot.transitions})
    values["packets"].update({(ISIS, way, kind): n for way, kind, n in snapshot.pdus})
    values["packet_errors"].update({(ISIS, reason): n for reason, n in snapshot.errors})
    for view in snapshot.databases:
        level = Level(view.level).label
        values["lsdb_entries"].update((ISIS, level, lsp_type(s)) for s in view.lsps if not s.purged)
        values["lsdb_checksum"][ISIS, level] = view.checksum & 0xFFFFFFFF


def _capacities(context: ViewContext) -> Iterator[tuple[int, str, float]]:
    """Interface index, name and capacity of links that any protocol runs on."""
    if OSPF in context.router.speakers:
        for view in context.ospf.interfaces:
            if view.capacity is not None:
                yield view.ifindex, view.name, view.capacity
    if ISIS in context.router.speakers:
        for circuit in context.isis.circuits:
            if circuit.capacity is not None:
                yield circuit.ifindex, circuit.name, circuit.capacity


def _links(context: ViewContext, values: MetricValues) -> None:
    capacity: dict[tuple[str, ...], float] = {}
    available: dict[tuple[str, ...], float] = {}
    utilization: dict[tuple[str, ...], float] = {}
    for ifindex, name, bandwidth in _capacities(context):
        capacity[(name,)] = bandwidth
        used = context.runtime.utilized.get(ifindex)
        if used is not None:
            available[(name,)] = max(0.0, bandwidth - used)
            utilization[(name,)] = used / bandwidth
    values.link_capacity_bytes_per_second = capacity
    values.link_available_bytes_per_second = available
    values.link_utilization_ratio = utilization
