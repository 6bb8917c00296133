"""The two Prometheus histograms."""

from __future__ import annotations

from fared.management.api.durations import Observed
from fared.router import events


def observe(observed: Observed, output: events.Output) -> None:
    """Update the histograms from outputs of the router."""
    match output:
        case events.Computed(record):
            observed.spf.observe(record.computed)
        case events.Converged(record):
            for stage, durations in observed.convergence.items():
                durations.observe(getattr(record, stage))
