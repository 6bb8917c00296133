"""Prometheus metrics: a view of plain values, rendered when somebody asks.

The daemon fills a ``MetricValues`` from its snapshots at each scrape; nothing is counted twice.
Only the two histograms are fed as things happen. Names, labels and meaning are a promise: base
units, no per-prefix labels. Imported only where the HTTP server is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from prometheus_client import (
    CollectorRegistry,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labelled = Mapping[tuple[str, ...], float]
"""Values by label values, in the order of ``FAMILIES``."""

_SPF_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)
_CONVERGENCE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Family(NamedTuple):
    """Name without ``fared_`` (and without ``_total``), help, labels, and whether it counts up."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    counter: bool = False


FAMILIES = (
    Family("ready", "1 once start-up is over and the kernel has the routes"),
    Family("init_stage_seconds", "Seconds from start to each start-up stage", ("stage",)),
    Family("neighbors", "Neighbors by state", ("proto", "area", "state")),
    Family("neighbor_transitions", "Neighbor state changes", ("proto", "from", "to"), counter=True),
    Family("packets", "Protocol packets", ("proto", "direction", "type"), counter=True),
    Family("packet_errors", "Packets that were discarded", ("proto", "reason"), counter=True),
    Family("lsdb_entries", "LSAs or LSPs in the database", ("proto", "area", "type")),
    Family(
        "lsdb_checksum",
        "Sum of the checksums of an area or level: equal on all its routers (RFC 4750)",
        ("proto", "area"),
    ),
    Family("spf_runs", "Route computations", ("proto", "reason"), counter=True),
    Family("routes", "Routes in the routing table", ("proto",)),
    Family("fib_operations", "Operations on the kernel", ("op", "result"), counter=True),
    Family("fib_drift_routes", "Objects found different from what was programmed, last check"),
    Family("fib_resyncs", "Full comparisons with the kernel", ("reason",), counter=True),
    Family("link_capacity_bytes_per_second", "What a link can carry", ("interface",)),
    Family("link_available_bytes_per_second", "What a link has left to give", ("interface",)),
    Family("link_utilization_ratio", "Outbound load over capacity", ("interface",)),
    Family("load_samples", "Measurements of the load of all links", ("result",), counter=True),
    Family("weight_changes", "Next-hop groups rewritten", ("reason",), counter=True),
    Family("weight_quantization_error_ratio", "Largest throughput loss to integer weights"),
    Family("event_loop_lag_seconds", "How late the event loop runs its timers"),
    Family("config_last_reload_success", "0 after a reload that was refused"),
)


@dataclass(slots=True)
class MetricValues:
    """One value of each family at one moment; fields are the families of ``FAMILIES``.

    Leave out links whose figure is unknown: there is no NaN among the metrics.
    """

    ready: float = 0.0
    init_stage_seconds: Labelled = field(default_factory=dict)
    neighbors: Labelled = field(default_factory=dict)
    neighbor_transitions: Labelled = field(default_factory=dict)
    packets: Labelled = field(default_factory=dict)
    packet_errors: Labelled = field(default_factory=dict)
    lsdb_entries: Labelled = field(default_factory=dict)
    lsdb_checksum: Labelled = field(default_factory=dict)
    spf_runs: Labelled = field(default_factory=dict)
    routes: Labelled = field(default_factory=dict)
    fib_operations: Labelled = field(default_factory=dict)
    fib_drift_routes: float = 0.0
    fib_resyncs: Labelled = field(default_factory=dict)
    link_capacity_bytes_per_second: Labelled = field(default_factory=dict)
    link_available_bytes_per_second: Labelled = field(default_factory=dict)
    link_utilization_ratio: Labelled = field(default_factory=dict)
    load_samples: Labelled = field(default_factory=dict)
    weight_changes: Labelled = field(default_factory=dict)
    weight_quantization_error_ratio: float = 0.0
    event_loop_lag_seconds: float = 0.0
    config_last_reload_success: float = 1.0


class MetricsSource(Protocol):
    """Whoever can say how things are now."""

    def metric_values(self) -> MetricValues:
        """Return all values; called once a scrape, in the event loop."""


class _Snapshot(Collector):
    def __init__(self, source: MetricsSource, version: str) -> None:
        self._source = source
        self._version = version

    def describe(self) -> Iterable[Metric]:
        """Nothing: asking the source at registration would be too early."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every family, those without values too, so that dashboards find them."""
        build = GaugeMetricFamily("fared_build_info", "What is running", labels=["version"])
        build.add_metric([self._version], 1)
        yield build
        values = self._source.metric_values()
        for entry in FAMILIES:
            kind = CounterMetricFamily if entry.counter else GaugeMetricFamily
            family = kind(f"fared_{entry.name}", entry.help, labels=entry.labels)
            value = getattr(values, entry.name)
            for labels, number in value.items() if entry.labels else (((), value),):
                family.add_metric(labels, number)
            yield family


class Metrics:
    """The registry of one daemon: private, so that two in one process do not mix."""

    def __init__(self, source: MetricsSource, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each, unused
        self._registry = CollectorRegistry(auto_describe=False)
        self._spf = Histogram(
            "fared_spf_duration_seconds",
            "Time of one route computation",
            registry=self._registry,
            buckets=_SPF_BUCKETS,
        )
        self._convergence = Histogram(
            "fared_convergence_seconds",
            "Time of each stage of a change, from detected to programmed, and in total",
            ["stage"],
            registry=self._registry,
            buckets=_CONVERGENCE_BUCKETS,
        )
        self._registry.register(_Snapshot(source, version))
        ProcessCollector(registry=self._registry)

    def observe_spf(self, seconds: float) -> None:
        """A route computation took this long."""
        self._spf.observe(seconds)

    def observe_convergence(self, stage: str, seconds: float) -> None:
        """A stage of a change took this long; stages as in ``schema.ConvergenceChange``."""
        self._convergence.labels(stage).observe(seconds)

    def render(self) -> bytes:
        """Return the exposition text."""
        return generate_latest(self._registry)
