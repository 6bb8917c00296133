"""Prometheus metrics: families of plain values, rendered at each scrape.

The daemon yields its families from the live parts, so nothing is counted twice. Only the two
histograms are updated by events (``durations``). Names, labels and meaning are stable: base units,
no per-prefix labels. Imported for the first client of the HTTP server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from fared.management.api.durations import Durations, Observed
from fared.management.documents.sliced import Work, finished

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = TypeVar("Labels", bound=tuple[str, ...])
"""The values of labels, in their order."""
Families = Callable[[], Iterable[Metric | None]]
"""Returns all present families, None where it may pause; called once for each scrape, in the loop.
"""


def gauge(
    name: str, help_text: str, values: float | Mapping[Labels, float], labels: tuple[str, ...] = ()
) -> Metric:
    """Make a gauge; ``name`` without ``fared_``, ``values`` by label values."""
    return _filled(GaugeMetricFamily(f"fared_{name}", help_text, labels=labels), values)


def counter(
    name: str, help_text: str, values: Mapping[Labels, float], labels: tuple[str, ...]
) -> Metric:
    """Make a counter; ``name`` without ``fared_`` and ``_total``."""
    return _filled(CounterMetricFamily(f"fared_{name}", help_text, labels=labels), values)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, values: float | Mapping[Labels, float]
) -> Metric:
    for labels, number in values.items() if isinstance(values, Mapping) else (((), values),):
        family.add_metric(labels, number)
    return family


def _histogram(
    name: str, help_text: str, series: Mapping[Labels, Durations], labels: tuple[str, ...] = ()
) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=labels)
    for values, durations in series.items():
        bounds = [*map(floatToGoString, durations.bounds), "+Inf"]
        counts = map(float, accumulate(durations.counts))
        family.add_metric(values, list(zip(bounds, counts, strict=True)), durations.sum)
    return family


class _Family(CollectorRegistry):
    """A registry of one family, as the library writes it."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        """Yield the family."""
        yield self._family


class Metrics:
    """The metrics of one daemon: private, so that two in one process do not mix."""

    def __init__(self, families: Families, version: str, observed: Observed) -> None:
        self._families = families
        self._version = version
        self._observed = observed
        self._process = ProcessCollector(registry=None)

    def _all(self) -> Iterator[Metric | None]:
        """Yield all families, also those without values, so that dashboards find them."""
        yield gauge("build_info", "The running version", {(self._version,): 1}, ("version",))
        text = "Time of one route computation"
        yield _histogram("fared_spf_duration_seconds", text, {(): self._observed.spf})
        text = "Time of each stage of a change, from detected to programmed, and in total"
        stages = {(stage,): seen for stage, seen in self._observed.convergence.items()}
        yield _histogram("fared_convergence_seconds", text, stages, ("stage",))
        yield from self._families()
        yield from self._process.collect()

    def work(self) -> Work[bytes]:
        """Return the exposition text, made a family at a time."""
        texts: list[bytes] = []
        for family in self._all():
            yield
            if family is not None:
                texts.append(generate_latest(_Family(family)))
        return b"".join(texts)

    def render(self) -> bytes:
        """Return the exposition text at once."""
        return finished(self.work())
