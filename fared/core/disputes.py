"""Back-off of repairs that another program keeps undoing: at once at first, then after pauses.

Used for routes and for sysctls. Two daemons with the same metric would otherwise replace each
other's route, and two with different settings overwrite each other's, as fast as the kernel
notifies them. The pauses double.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

_PATIENT = 3
"""So many repairs are made at once."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_PEACE = 60.0
"""Seconds without a dispute after which the count starts again."""


class _Dispute(msgspec.Struct):
    times: int
    last: float


class Disputes:
    """Counts how often each repair was undone recently. Times are seconds."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Dispute] = {}

    def pause(self, what: Hashable, now: float) -> float:
        """Count an undone repair; return the seconds to wait before repeating it, 0 for none."""
        dispute = self._known.get(what)
        if dispute is None or now - dispute.last > _PEACE:
            dispute = self._known[what] = _Dispute(0, now)
        dispute.times += 1
        dispute.last = now
        if dispute.times <= _PATIENT:
            return 0.0
        pause = _FIRST_PAUSE * 2.0 ** min(dispute.times - _PATIENT - 1, 16)
        return min(pause, _LONGEST_PAUSE)
