"""When routes are computed: at once, soon, or with the patience of RFC 8405.

Everything that was flooded is followed by a run, but not every kind by the same:

- a topology change asks the RFC 8405 back-off; a loss is never delayed by more than ``LOSS_GAP``
  after the run before it;
- what only one end of a link tells of waits ``OTHER_END`` for the other end's word (``news``);
- a capacity change needs no SPF and runs at once, at most every ``CAPACITY_GAP``;
- what other areas and levels say of capacities behind them, which moves with load there, asks a
  back-off of its own.

One run takes up all there is, whoever asked for it; only what the RFC 8405 back-off has pending
comes round all the same, and finds little to do. Owns no clock: methods take ``now``.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.backoff import BackoffSettings, SpfBackoff
from fared.router.news import News

LOSS_GAP = 0.01
CAPACITY_GAP = 0.01
OTHER_END = 0.2
"""How long what one end of a link says waits for the word of the other."""


class Schedule:
    """Asked for runs by what happens, and asked by the router whether one is due."""

    def __init__(self, settings: BackoffSettings) -> None:
        self.backoff = SpfBackoff(settings)
        self._announced = SpfBackoff(_soon(settings))
        self._at: float | None = None
        self._last_run = float("-inf")

    def configure(self, settings: BackoffSettings, now: float) -> None:
        """Go by other delays from now on, and run at once: other settings have changed, too."""
        self.backoff.settings = settings
        self._announced.settings = _soon(settings)
        self.backoff.urgent(now)

    def topology(self, news: News, now: float) -> None:
        """Links, prefixes or metrics have changed."""
        if news is News.LOSS:
            self.backoff.urgent(now, self._last_run + LOSS_GAP)
        elif news is News.ONE_SIDED:
            self._no_later(now + OTHER_END)
        else:
            self.backoff.event(now)

    def capacity(self, now: float) -> None:
        """Capacities of links have changed, nothing else."""
        self._no_later(max(now, self._last_run + CAPACITY_GAP))

    def announced(self, now: float) -> None:
        """Capacities that come along with prefixes of other areas have changed, nothing else."""
        self._announced.event(now)

    def due(self, now: float) -> bool:
        """Whether to run now; what the back-off had pending is then taken as done."""
        if self.backoff.due(now):
            self.backoff.ran()
            return True
        return self._announced.due(now) or (self._at is not None and self._at <= now)

    def ran(self, now: float) -> None:
        """A run takes place, due or not."""
        self._at = None
        self._announced.ran()
        self._last_run = now

    def next_deadline(self) -> float | None:
        """When ``due`` next needs asking."""
        candidates = (self.backoff.next_deadline(), self._announced.next_deadline(), self._at)
        return min((at for at in candidates if at is not None), default=None)

    def _no_later(self, at: float) -> None:
        """Run by then, whatever the back-offs say."""
        self._at = at if self._at is None else min(self._at, at)


def _soon(backoff: BackoffSettings) -> BackoffSettings:
    """The delays of an SPF for what needs none: the first runs are as close as for capacities."""
    return replace(backoff, initial_delay=0.0, short_delay=min(backoff.short_delay, CAPACITY_GAP))
