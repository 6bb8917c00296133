"""Fewer copies of the same: a router that waits before it floods on what it was flooded.

In a Clos fabric a leaf hears everything from every spine, so what it passes on from one spine to
the others is a duplicate nearly always. With ``Reduction.LEAF`` it does not send such an instance
at once: it stands on the list of what the neighbor has not acknowledged, as if it had been sent
and lost, and is sent when its time has come. A copy or an acknowledgment from the neighbor
takes it off the list before. Nothing depends on the topology: what nobody else delivers arrives
later by at most ``delay`` for each router that waits, and what keeps the databases equal is the
reliable flooding of the protocol, unchanged (RFC 2328 §13.6, ISO 10589 §7.3.15).

The time is drawn at random for each neighbor. Of many leaves that could all tell a spine, the
first one does; the spine floods to the others, and they have nothing left to say. So the time
until it hears becomes shorter with their number.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from fared.core.rng import Rng

_EARLIEST = 0.25
"""Of the delay: for so long everybody waits, in which copies of the same flood arrive."""
_SHARED = 0.125
"""Of the delay: what comes within it travels together."""


class Reduction(enum.Enum):
    """Who floods at once what it received; values are the names in the configuration."""

    NONE = "none"
    LEAF = "leaf"


@dataclass(frozen=True, slots=True)
class ReductionSettings:
    """Whether to wait, and for how many seconds at most."""

    mode: Reduction = Reduction.NONE
    delay: float = 0.2

    @property
    def active(self) -> bool:
        """Whether anything waits."""
        return self.mode is not Reduction.NONE


class Turn:
    """When this router takes its turn to flood to one neighbor what others may deliver first."""

    __slots__ = ("_drawn_at", "_due")

    def __init__(self) -> None:
        self._drawn_at = -math.inf
        self._due = -math.inf

    def due(self, settings: ReductionSettings, now: float, rng: Rng) -> float:
        """The time at which an instance that came now is sent, unless it has become needless."""
        if not 0 <= now - self._drawn_at <= settings.delay * _SHARED:
            spread = _EARLIEST + (1 - _EARLIEST) * rng.random()
            self._drawn_at, self._due = now, now + settings.delay * spread
        return self._due
