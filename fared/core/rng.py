"""The randomness of the engines: a seeded source, so that a run can be repeated."""

from __future__ import annotations

from typing import Protocol


class Rng(Protocol):
    """The seeded source of jitter, phases and first sequence numbers."""

    def random(self) -> float:
        """Return a float in [0, 1)."""


class NoJitter:
    """A generator without randomness, for engines that only read a saved database."""

    def random(self) -> float:
        """The lower bound of every interval."""
        return 0.0
