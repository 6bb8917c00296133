"""The measured loads of the last minutes, by interface: a ring of samples with common times.

The daemon measures the load of all interfaces at once; what it announces of that changes far less
often. The history is for people, and for plans that look for the period of a job.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

MOST_SAMPLES = 600
"""Samples that are kept: ten minutes at the default interval."""


class LoadHistory:
    """Samples of all interfaces, oldest first; an interface that was not measured has NaN."""

    def __init__(self, most: int = MOST_SAMPLES) -> None:
        self._most = most
        self._times = array("d")
        self._loads: dict[int, array[float]] = {}

    def add(self, now: float, loads: Mapping[int, float]) -> None:
        """Add the loads measured at ``now``, bytes/s by interface index."""
        self._times.append(now)
        for ifindex in loads.keys() - self._loads.keys():
            self._loads[ifindex] = array("f", [math.nan]) * (len(self._times) - 1)
        for ifindex, kept in self._loads.items():
            kept.append(loads.get(ifindex, math.nan))
        # A quarter too many are removed together: the rest moves once in a while only.
        if len(self._times) > self._most + self._most // 4:
            self._forget(len(self._times) - self._most)

    def _forget(self, count: int) -> None:
        del self._times[:count]
        for ifindex, kept in list(self._loads.items()):
            del kept[:count]
            if all(map(math.isnan, kept)):
                del self._loads[ifindex]

    def samples(self, ifindex: int) -> list[tuple[float, float]]:
        """Return time and load (bytes/s) of each sample of an interface, oldest first."""
        loads = self._loads.get(ifindex, ())
        pairs = zip(self._times, loads, strict=False)
        found = [(at, load) for at, load in pairs if not math.isnan(load)]
        return found[-self._most :]
