"""When routes are computed: at once, soon, or after the back-off of RFC 8405.

``Router`` requests a run for each change; its delay depends on the kind of change (``ted/change``):

- a topology change triggers the RFC 8405 back-off; a loss is never delayed by more than
``LOSS_GAP`` after the run before it;
- a link that only one end lists waits ``OTHER_END`` for the LSA or LSP of the other end;
- a lost link that the other end has dropped before waits for nothing: a run comes ``DROPPED_GAP``
after the one before it, so that the network of the link is withdrawn before border routers
advertise that it has become farther;
- a change of capacity needs no SPF and runs at once, at most every ``CAPACITY_GAP``;
- a change of load alone waits for the next step of the weights (``adapting``);
- the capacities advertised with prefixes of other areas and levels, which move with load there,
  have a back-off of their own.

One run processes all changes; only an SPF that the RFC 8405 back-off has scheduled still runs, with
little to do. The schedule has no clock: methods take ``now``.
"""

from __future__ import annotations

from msgspec.structs import replace

from fared.core.backoff import BackoffSettings, SpfBackoff
from fared.paths.ted.change import ChangeKind

LOSS_GAP = 0.01
CAPACITY_GAP = 0.01
OTHER_END = 0.2
"""Seconds for which the LSA of one end of a link waits for that of the other."""
DROPPED_GAP = 0.02
"""Below the flood delay, after which the LSA of the second end of a lost link arrives."""


class Schedule:
    """Decides when the next run is due."""

    def __init__(self, settings: BackoffSettings) -> None:
        self.backoff = SpfBackoff(settings)
        self._advertised = SpfBackoff(_soon(settings))
        self._at: float | None = None
        self._last_run = float("-inf")

    def configure(self, settings: BackoffSettings, now: float) -> None:
        """Apply new delays, and run at once: other settings have changed, too."""
        self.backoff.settings = settings
        self._advertised.settings = _soon(settings)
        self.backoff.urgent(now)

    def request(self, kind: ChangeKind, now: float) -> None:
        """Request a run for a change of this kind."""
        match kind:
            # Deviation from RFC 8405, which delays every event by state: packets are lost.
            case ChangeKind.LOSS:
                self.backoff.urgent(now, self._last_run + LOSS_GAP)
            case ChangeKind.TOPOLOGY | ChangeKind.PREFIX:
                self.backoff.event(now)
            # No path changes yet: INITIAL_SPF_DELAY is kept for the LSA or LSP of the other end.
            case ChangeKind.ONE_WAY:
                self._no_later(now + OTHER_END)
            case ChangeKind.DROPPED:
                self._no_later(max(now, self._last_run + DROPPED_GAP))
            case ChangeKind.ADVERTISED:
                self._advertised.event(now)
            # Without SPF, RFC 8405 does not apply.
            case _:
                self._no_later(max(now, self._last_run + CAPACITY_GAP))

    def due(self, now: float) -> bool:
        """Whether to run now; if so, the pending run of the back-off is done."""
        if self.backoff.due(now):
            self.backoff.ran()
            return True
        return self._advertised.due(now) or (self._at is not None and self._at <= now)

    def ran(self, now: float) -> None:
        """A run was made, due or not."""
        self._at = None
        self._advertised.ran()
        self._last_run = now

    def next_deadline(self) -> float | None:
        """Return when to call ``due`` next."""
        candidates = (self.backoff.next_deadline(), self._advertised.next_deadline(), self._at)
        return min((at for at in candidates if at is not None), default=None)

    def _no_later(self, at: float) -> None:
        """Run by then at the latest, regardless of the back-offs."""
        self._at = at if self._at is None else min(self._at, at)


def _soon(backoff: BackoffSettings) -> BackoffSettings:
    """The back-off of changes without SPF: its first runs are as close as those for capacities."""
    return replace(backoff, initial_delay=0.0, short_delay=min(backoff.short_delay, CAPACITY_GAP))
