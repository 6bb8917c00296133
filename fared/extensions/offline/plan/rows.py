"""What is kept of a set of failures: one row for each of them, and the worst case of each pair."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.equal import least_of_equal_pairs
from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.paths import NONE
from fared.extensions.offline.plan.sets import Failures
from fared.extensions.offline.plan.sweep import FailureRows, SetOutcome


class SetResult(FailureRows, frozen=True, eq=False):
    """All failures of a set (K) and all pairs (P, P).

    Where failures stand for classes of equal ones, ``pair_source`` (P, P) is the pair, as row * P +
    column, for which ``pair_cause`` is the cause; a failure of its class is that of this pair.
    """

    failures: Failures
    pair_source: NDArray[np.int64] | None = None

    @property
    def harmless(self) -> NDArray[np.int64]:
        """The failures that reduce no pair."""
        return np.flatnonzero(self.reduced == 0)

    @property
    def cutting(self) -> NDArray[np.int64]:
        """The failures after which some pair has no path."""
        return np.flatnonzero(self.cut > 0)

    def mean_of(self, values: NDArray[np.float64]) -> float:
        """Return the mean of some column (K,) over all failures, 1 if there are none."""
        return float(np.average(values, weights=self.failures.sizes)) if len(values) else 1.0

    def mean_interval(self, deviations: float) -> tuple[float, float, float]:
        """Return the mean part that the worst pair keeps, and its interval for a sample.

        The half width is so many standard deviations of the mean of a sample without replacement.
        """
        size, population = len(self.left), self.failures.population
        mean = self.mean_of(self.left)
        if not self.failures.sampled or size < 2:
            return mean, mean, mean
        spread = float(self.left.std(ddof=1)) / size**0.5
        half = deviations * spread * ((population - size) / (population - 1)) ** 0.5
        return mean, mean - half, mean + half


def merged(failures: Failures, outcomes: Iterable[SetOutcome], fabric: PlanFabric) -> SetResult:
    """Join the outcomes of all parts of a set; the result does not depend on the parts."""
    whole = sorted(outcomes, key=lambda outcome: outcome.first)
    ends, source = len(fabric.ends), None
    least, cause = np.full((ends, ends), np.inf), np.full((ends, ends), NONE)
    for outcome in whole:
        better = outcome.pair_least < least
        least[better], cause[better] = outcome.pair_least[better], outcome.pair_cause[better]

    if failures.routers is not None:
        least, source = least_of_equal_pairs(least, fabric.ends, failures.routers)
        cause = cause.ravel()[source]

    def joined(name: str) -> NDArray[np.float64]:
        parts = [getattr(outcome, name) for outcome in whole]
        found: NDArray[np.float64] = np.concatenate(parts)
        return found

    return SetResult(
        failures=failures,
        left=joined("left"),
        worst=joined("worst").astype(np.int64),
        capacity=joined("capacity"),
        reduced=joined("reduced").astype(np.int64),
        cut=joined("cut").astype(np.int64),
        mean=joined("mean"),
        pair_least=least,
        pair_cause=cause,
        utilization=joined("utilization"),
        busiest=joined("busiest").astype(np.int64),
        unserved=joined("unserved"),
        pair_source=source,
    )
