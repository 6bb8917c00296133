"""Flooding reduction: a leaf defers flooding, because another router usually delivers the LSA.

In a Clos fabric a leaf receives everything from every spine, so nearly all that it floods from one
spine to the others is a duplicate. With ``Reduction.LEAF`` it defers such an instance: the
instance goes on the neighbor's retransmission list as if it had been sent and lost, and is sent
after its delay. A copy or an acknowledgment from the neighbor takes it off the list earlier. No
router needs the topology. An LSA that no other router delivers is late by at most ``delay`` at
each router that defers it, and the reliable flooding of the protocol, which is unchanged, keeps
the databases equal (RFC 2328 §13.6, ISO 10589 §7.3.15).

The delay is random for each neighbor. Among many leaves that could deliver to a spine, the one with
the shortest delay does; the spine then floods to the others, which send nothing. So with more
leaves the spine receives the instance sooner.
"""

from __future__ import annotations

import enum
import math

import msgspec

from fared.core.rng import Rng

_EARLIEST = 0.25
"""The fixed part of the delay, in which copies of the same flood arrive."""
_SHARED = 0.125
"""Instances within this part of the delay share one random delay, and so a packet."""
_SOON = 0.05
"""Part of the delay in which the copies of others come that were on their way."""


class Reduction(enum.Enum):
    """How flooding is reduced; values are the names in the configuration."""

    NONE = "none"
    LEAF = "leaf"
    DYNAMIC = "dynamic"
    """Over a flooding topology (``igp.dynamic_flooding``)."""


class ReductionSettings(msgspec.Struct, frozen=True):
    """How to reduce flooding; the longest delay of a leaf, in seconds."""

    mode: Reduction = Reduction.NONE
    delay: float = 0.2

    @property
    def active(self) -> bool:
        """Whether all flooding from one neighbor to others is deferred."""
        return self.mode is Reduction.LEAF

    @property
    def dynamic(self) -> bool:
        """Whether this router takes part in dynamic flooding."""
        return self.mode is Reduction.DYNAMIC


class FloodDelay:
    """The random delay after which a deferred instance is sent to one neighbor."""

    __slots__ = ("_drawn_at", "_due")

    def __init__(self) -> None:
        self._drawn_at = -math.inf
        self._due = -math.inf

    def due(self, settings: ReductionSettings, now: float, rng: Rng) -> float:
        """Return when to send an instance that arrived now, unless acknowledged before."""
        if not 0 <= now - self._drawn_at <= settings.delay * _SHARED:
            spread = _EARLIEST + (1 - _EARLIEST) * rng.random()
            self._drawn_at, self._due = now, now + settings.delay * spread
        return self._due

    def waiting(self, settings: ReductionSettings, now: float) -> float | None:
        """When what waits is sent; None: nothing waits, or the fixed part is not over."""
        passed = now - self._drawn_at >= settings.delay * _EARLIEST
        return self._due if passed and now < self._due else None

    def hasten(self, settings: ReductionSettings, now: float) -> float:
        """Let what waits be sent soon; return when."""
        self._due = min(self._due, now + settings.delay * _SOON)
        return self._due
