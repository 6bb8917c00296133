"""The randomness that engines are given: a seeded source, so that a run can be repeated."""

from __future__ import annotations

from typing import Protocol


class Rng(Protocol):
    """The seeded source of jitter, phases and first sequence numbers."""

    def random(self) -> float:
        """Return a float in [0, 1)."""
