"""Repairs that another program keeps undoing: at once, up to a rate that costs nothing.

Used for routes and for sysctls. Two daemons with the same metric would otherwise replace each
other's route, and two with different settings overwrite each other's, as fast as the kernel
notifies them. A program that undoes a repair with each event of its own, such as an interface that
appears, is no such dispute: it is repaired each time.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec

_AT_ONCE = 60
"""Repairs of one object that are made at once, after a time without any."""
_EVERY = 0.5
"""Seconds between two repairs beyond these; those of many objects fall together."""


class _Dispute(msgspec.Struct):
    left: float
    last: float


class Disputes:
    """Counts how often each repair was undone recently. Times are seconds."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Dispute] = {}

    def pause(self, what: Hashable, now: float) -> float:
        """Count an undone repair; return the seconds to wait before repeating it, 0 for none."""
        dispute = self._known.get(what)
        if dispute is None:
            dispute = self._known[what] = _Dispute(_AT_ONCE, now)
        left = min(_AT_ONCE, dispute.left + (now - dispute.last) / _EVERY) - 1.0
        dispute.left, dispute.last = max(-1.0, left), now  # below 0: for the repair after the pause
        if left >= 0.0:
            return 0.0
        return (math.floor(now / _EVERY) + 1) * _EVERY - now
