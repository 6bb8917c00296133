"""Damping of flapping links by the arithmetic of RFC 2439.

Each loss of the carrier adds a penalty, which halves in ``half_life``. Above ``suppress`` the link
stays down although its carrier is back, until the penalty is below ``reuse``, but never longer than
``maximum`` after the last flap. A loss is never delayed.
"""

from __future__ import annotations

import math

import msgspec

PENALTY = 1000.0
"""For each flap (RFC 2439 §4.2)."""


class DampingSettings(msgspec.Struct, frozen=True):
    """Times in seconds; ``suppress`` and ``reuse`` are limits of the penalty."""

    half_life: float = 15.0
    suppress: float = 2000.0
    reuse: float = 750.0
    maximum: float = 60.0

    @property
    def ceiling(self) -> float:
        """The highest penalty: it decays to ``reuse`` in ``maximum`` (§4.2)."""
        return self.reuse * math.exp2(min(self.maximum / self.half_life, 64.0))


class Damping:
    """The penalty of one link."""

    def __init__(self, settings: DampingSettings) -> None:
        self.settings = settings
        self.suppressed = False
        self._penalty = 0.0
        self._at = 0.0

    def penalty(self, now: float) -> float:
        """Return the penalty, decayed until ``now``."""
        return self._penalty * math.exp2((self._at - now) / self.settings.half_life)

    def flapped(self, now: float, times: int = 1) -> None:
        """The carrier was lost, several times since the last call perhaps."""
        self._penalty = min(self.penalty(now) + times * PENALTY, self.settings.ceiling)
        self._at = now
        self.suppressed |= self._penalty > self.settings.suppress

    def reuse_in(self, now: float) -> float:
        """Return the seconds until the link may be used again; 0: it is not suppressed, or may."""
        if not self.suppressed:
            return 0.0
        excess = self.penalty(now) / self.settings.reuse
        return 0.0 if excess <= 1.0 else math.log2(excess) * self.settings.half_life

    def released(self, now: float) -> bool:
        """End the suppression if it is time; return whether it ended."""
        if not self.suppressed or self.reuse_in(now) > 1e-6:
            return False
        self.suppressed = False
        return True
