"""When weights follow load, and whether the load of our own links is still measured.

``Router`` steps the weights by this clock, and computes changes of load alone only with a step, by
default once a second; ``schedule`` has the other kinds of change, damage and healing among them.
The timer has a random phase and jitter, so that routers do not step in unison. The vectors that a
step moves are programmed in portions. To compute loads, and each portion, takes a ``tick`` of its
own: between them packets are read, and other changes computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.paths.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.rng import Rng
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.weights.adaptation import AdaptationSettings

STEP_AFTER = 0.005
"""Seconds from computing what the flooded load changes to the step: packets are read between."""
LOAD_GAP = 0.1
"""Changes of load alone are computed at most every so many seconds, whatever the period."""
PORTION = 1024
"""The next hops of the weight vectors that one turn programs: 16 vectors over 64 paths."""
PORTION_GAP = 0.002
"""Seconds from one portion to the next."""


class AdaptationClock:
    """The clock of weights that follow load."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._settings: AdaptationSettings | None = None
        self._stepped = 0.0
        self._measured: float | None = None
        self._due: float | None = None
        """When the step was due that was put off."""
        self.next_at: float | None = None
        """The next step, None while weights do not follow load."""
        self.portion = PORTION
        """How many next hops one portion programs."""
        self._portion_at: float | None = None
        """The next portion of the present step."""
        self._ticked = False
        """Whether a timer has fired, and nothing was done since."""

    @property
    def running(self) -> bool:
        """Whether weights follow load."""
        return self.next_at is not None

    def configure(self, solver: SolverSettings, now: float) -> None:
        """Start, continue or stop the clock, as configured."""
        if solver.mode is not WeightMode.AVAILABLE:
            self._settings = self.next_at = self._portion_at = None
            return
        self._settings = solver.adaptation
        if self.next_at is None:
            self._stepped = now
            self.next_at = now + self._rng.random() * self._settings.period

    def measured(self, now: float) -> None:
        """Record that the load of our own links was measured."""
        self._measured = now

    def tick(self, *, fired: bool) -> None:
        """A timer ``fired``, and one thing that is due may be done, or what follows is over."""
        self._ticked = fired

    def due(self, now: float) -> bool:
        """Whether to step now."""
        return self._ticked and self.next_at is not None and self.next_at <= now

    def portion_due(self, now: float) -> bool:
        """Whether to program the next portion of the present step now."""
        return self._ticked and self._portion_at is not None and self._portion_at <= now

    def programmed(self, now: float, *, more: bool) -> None:
        """Record that a portion was programmed; ``more``: it was not the last one."""
        self._ticked = False
        self._portion_at = now + PORTION_GAP if more else None

    def next_deadline(self) -> float | None:
        """When to step, or to program the next portion."""
        return min((at for at in (self.next_at, self._portion_at) if at is not None), default=None)

    def put_off(self, now: float) -> bool:
        """Step a moment later, unless that has been done; return whether."""
        if self._due is not None:
            return False
        self._ticked = False
        self._due, self.next_at = now, now + STEP_AFTER
        return True

    def step(self, now: float) -> tuple[float, bool]:
        """Return the time since the last step, and whether our own loads are stale.

        A router that never measured has no loads that could be stale.
        """
        assert self._settings is not None
        settings, self._ticked = self._settings, False
        seconds, self._stepped = now - self._stepped, now
        due, self._due = now if self._due is None else self._due, None
        jitter = settings.jitter * (2 * self._rng.random() - 1)
        self.next_at = due + max(LOAD_GAP, settings.period * (1 + jitter))
        silent = 0.0 if self._measured is None else now - self._measured
        return seconds, silent > settings.stale_after
