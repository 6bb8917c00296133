"""Between the daemon and its Prometheus registry. What reads the values is loaded when asked."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from fared.api.metrics import Metrics, MetricValues
from fared.api.views.context import ViewContext
from fared.router import events

STAGES = (
    "detected",
    "originated",
    "flooded",
    "waited",
    "computed",
    "spf",
    "weighed",
    "planned",
    "programmed",
    "total",
)


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
        from fared.daemon.metrics import metric_values  # noqa: PLC0415 - not before it is scraped

        return metric_values(self._host.context(), self._host.operations())


def observe(metrics: Metrics, output: events.Output) -> None:
    """Feed the histograms from what the router puts out."""
    match output:
        case events.Computed(record):
            metrics.observe_spf(record.computed)
        case events.Converged(record):
            for stage in STAGES:
                metrics.observe_convergence(stage, getattr(record, stage))
