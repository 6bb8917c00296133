"""Loads of links whose packets the platform counts, beside those that the kernel counts.

Used where there is such a platform only. On a switch the kernel counts only what its CPU sends: of
such a link its figure would be about zero, so it is never taken, even while the platform has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from fared.core.link_facts import LinkPlatform
from fared.core.links import Link


class Loads(Protocol):
    """Measures loads (``kernel.counters.LoadSource``)."""

    def measure(self, now: float) -> dict[int, float]:
        """Return outbound loads (bytes/s) by ifindex since the previous call. Raises OSError."""

    def expired(self, now: float, stale_after: float) -> list[int]:
        """Return interfaces whose load became too old, once each."""

    def close(self) -> None:
        """Close what is open."""


class PlatformLoads:
    """The loads of both, by ifindex of the ``links``."""

    def __init__(
        self, kernel: Loads, platform: LinkPlatform, links: Callable[[], Mapping[int, Link]]
    ) -> None:
        self._kernel, self._platform, self._links = kernel, platform, links
        self._taken: dict[int, float] = {}
        """When the last load of each interface was measured."""
        self._standing: set[int] = set()
        """Those whose load is not too old."""

    def close(self) -> None:
        """Close the socket to the kernel."""
        self._kernel.close()

    def measure(self, now: float) -> dict[int, float]:
        """Return the loads that are new. Raises OSError."""
        loads = self._kernel.measure(now)
        counted = self._counted()
        for ifindex in counted:
            loads.pop(ifindex, None)
        for ifindex, name in counted.items():
            load = self._platform.load(name)
            if load is not None and load.at > self._taken.get(ifindex, -math.inf):
                self._taken[ifindex] = load.at
                self._standing.add(ifindex)
                loads[ifindex] = load.rate
        return loads

    def expired(self, now: float, stale_after: float) -> list[int]:
        """Return interfaces whose load became too old, once each."""
        counted, links = self._counted(), self._links()
        for ifindex in self._taken.keys() - links.keys():
            del self._taken[ifindex]
        self._standing &= self._taken.keys()
        old = {i for i in self._standing if now - self._taken[i] > stale_after}
        self._standing -= old
        of_kernel = set(self._kernel.expired(now, stale_after)) - counted.keys()
        return sorted(old | of_kernel)

    def _counted(self) -> dict[int, str]:
        """The links whose packets the platform counts: name by ifindex."""
        links = self._links()
        return {i: link.name for i, link in links.items() if self._platform.counts(link.name)}
