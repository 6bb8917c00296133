"""Sick links: from error counters to the part of a link's capacity that may still be used.

Errors and packets of the last ``window`` seconds decide. A step is taken as soon as its ratio is
reached; a link recovers only after ``hold_down`` seconds without errors of that extent, so that one
good window of a bad link changes nothing.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec


class ErrorCounters(NamedTuple):
    """Packets and errors of an interface, both directions, since an arbitrary time."""

    packets: int
    errors: int


class ErrorStep(NamedTuple):
    """From this ratio of errors to packets, the share of the capacity that is left."""

    ratio: float
    share: float


class ErrorSettings(msgspec.Struct, frozen=True):
    """Times in seconds. ``errors``: fewer than this in a window count for nothing."""

    window: float = 10.0
    errors: int = 10
    steps: tuple[ErrorStep, ...] = (ErrorStep(1e-5, 0.25), ErrorStep(1e-3, 0.0))
    hold_down: float = 60.0


class LinkErrors:
    """The judgment of one link. ``share``: 1 while it is well; ``reason``: why it is less."""

    def __init__(self, settings: ErrorSettings) -> None:
        self.settings = settings
        self.share = 1.0
        self.reason = ""
        self._last: ErrorCounters | None = None
        self._window: deque[tuple[float, ErrorCounters]] = deque()
        self._held_until = 0.0

    def sample(self, counters: ErrorCounters, now: float) -> bool:
        """Take the present counters; return whether the share is another one."""
        self._count(counters, now)
        found, before = self._present(), self.share
        if found.share < 1.0 and found.share <= self.share:
            self._held_until = now + self.settings.hold_down
            self.share = found.share
            self.reason = f"{found.errors} errors in {found.packets} packets"
        elif self.share < 1.0 and now >= self._held_until:
            self.share = found.share
            self._held_until = now + self.settings.hold_down
            if found.share >= 1.0:
                self.reason = ""
        return self.share != before

    @property
    def errors(self) -> ErrorCounters:
        """Packets and errors of the window."""
        packets = sum(counted.packets for _, counted in self._window)
        return ErrorCounters(packets, sum(counted.errors for _, counted in self._window))

    def recovers_in(self, now: float) -> float:
        """Return the seconds until the link recovers, if it stays as it is; 0 if it is well."""
        return max(0.0, self._held_until - now) if self.share < 1.0 else 0.0

    def _count(self, counters: ErrorCounters, now: float) -> None:
        last, self._last = self._last, counters
        if last is not None:
            packets, errors = counters.packets - last.packets, counters.errors - last.errors
            if packets >= 0 and errors >= 0:  # else they were reset
                self._window.append((now, ErrorCounters(packets, errors)))
        while self._window and self._window[0][0] <= now - self.settings.window:
            self._window.popleft()

    def _present(self) -> _Window:
        packets, errors = self.errors
        if errors < self.settings.errors:
            return _Window(1.0, packets, errors)
        ratio = errors / max(packets + errors, 1)
        shares = (step.share for step in self.settings.steps if ratio >= step.ratio)
        return _Window(min(shares, default=1.0), packets, errors)


class _Window(NamedTuple):
    share: float
    packets: int
    errors: int
