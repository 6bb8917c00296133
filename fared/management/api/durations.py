"""Durations of route computations and reactions, counted since the start of the daemon.

These are plain counters: ``metrics``, which renders them, is only loaded for the first scrape.
"""

from __future__ import annotations

from bisect import bisect_left

SPF_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)
CONVERGENCE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

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
"""The stages of a change and their sum, named as in ``documents.convergence``."""


class Durations:
    """Counts of durations (seconds) by bucket, and their sum.

    ``counts[i]``: those up to ``bounds[i]`` and above the bound before; the last one counts those
    above all bounds.
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration in seconds."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


class Observed:
    """The two histograms of the daemon; ``convergence`` by stage of a change."""

    def __init__(self) -> None:
        self.spf = Durations(SPF_BUCKETS)
        self.convergence = {stage: Durations(CONVERGENCE_BUCKETS) for stage in STAGES}
