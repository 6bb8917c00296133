"""Which routes are acknowledged, although an acknowledgement does not say of which version.

The rule: a route waits from the moment it is sent until as many acknowledgements have come as it
was sent on this connection. With suppression SONiC may acknowledge several versions once: then a
route has also arrived if at least one acknowledgement came after it was sent last, and none for so
many seconds (``patience``) since. What a lost connection was about to acknowledge is forgotten.

A peer is silent if nothing is acknowledged for so long after a route was sent. Routes that waited
so long before do not count, while others are acknowledged: what the chip refuses is no reason to
connect anew. Each connection without any acknowledgement doubles the time for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fared.core.ids import Prefix

_DOUBLINGS = 3


class Flight(msgspec.Struct, gc=False):
    """A route that waits: sent so often, last as message ``number``.

    ``since``: when it was sent first after its last acknowledgement.
    """

    count: int
    number: int
    since: float
    acknowledged: float | None = None
    """When an acknowledgement came since it was sent last."""


class Acknowledgements:
    """``patience`` are the seconds after which a route, or a peer, counts as silent."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.flights: dict[Prefix, Flight] = {}
        self._gone: set[Prefix] = set()
        """Those in flight that were deleted since: they are counted, and nobody waits for them."""
        self._asked: float | None = None
        """Since when the peer could have acknowledged something; None: it owes nothing."""
        self._look_at: float | None = None
        self._refused: set[Prefix] = set()
        """Those of former connections that waited too long."""
        self._answers = False
        """Whether this connection has acknowledged anything."""
        self._silent = 0
        """Connections in succession that have not."""

    def connected(self, now: float) -> None:
        """Begin a connection."""
        self._refused.update(self.overdue(now))
        if self.silent(now):
            self._silent = min(self._silent + 1, _DOUBLINGS)
        self._answers = False
        self.flights.clear()
        self._gone.clear()
        self._asked = self._look_at = None

    def sent(self, prefix: Prefix, number: int, now: float) -> None:
        """Record a route that is sent."""
        flight = self.flights.get(prefix)
        if flight is None:
            self.flights[prefix] = Flight(1, number, now)
        else:
            since = now if flight.acknowledged is not None else flight.since
            self.flights[prefix] = Flight(flight.count + 1, number, since)
        self._gone.discard(prefix)
        if self._asked is None and not (self._answers and self._is_refused(prefix, flight, now)):
            self._asked = now
        if self._look_at is None:
            self._look_at = now + self.patience

    def deleted(self, prefix: Prefix) -> None:
        """Record a deletion that is sent, which is never acknowledged."""
        self._refused.discard(prefix)
        if prefix in self.flights:
            self._gone.add(prefix)

    def received(self, prefix: Prefix, now: float) -> int | None:
        """Record an acknowledgement; return the number of the message if the route has arrived."""
        self._asked, self._answers, self._silent = None, True, 0
        self._refused.discard(prefix)
        flight = self.flights.get(prefix)
        if flight is None:
            return None
        flight.count -= 1
        if flight.count:
            flight.acknowledged = now
            return None
        del self.flights[prefix]
        if prefix in self._gone:
            self._gone.remove(prefix)
            return None
        return flight.number

    def waits(self, prefix: Prefix) -> bool:
        """Whether a route is not acknowledged."""
        return prefix in self.flights and prefix not in self._gone

    def waiting(self) -> int:
        """How many routes are not acknowledged."""
        return len(self.flights) - len(self._gone)

    def overdue(self, now: float) -> Iterator[Prefix]:
        """Yield the routes that have waited for longer than ``patience``."""
        for prefix, flight in self.flights.items():
            if self._overdue(flight, now) and prefix not in self._gone:
                yield prefix

    def _is_refused(self, prefix: Prefix, flight: Flight | None, now: float) -> bool:
        return prefix in self._refused or (flight is not None and self._overdue(flight, now))

    def _overdue(self, flight: Flight, now: float) -> bool:
        return now - flight.since >= self.patience

    @property
    def _bearable(self) -> float:
        return self.patience * (1 << self._silent)

    # -- time ---------------------------------------------------------------------------------

    def silent(self, now: float) -> bool:
        """Whether routes were sent ``patience`` ago, and nothing was acknowledged since."""
        return self._asked is not None and now - self._asked >= self._bearable

    def settle(self, now: float) -> None:
        """Let routes arrive whose last acknowledgement is ``patience`` ago."""
        if self._look_at is None or now < self._look_at:
            return
        for prefix, flight in list(self.flights.items()):
            if prefix in self._gone:
                over = self._overdue(flight, now)
            else:
                at = flight.acknowledged
                over = at is not None and now - at >= self.patience
            if over:
                del self.flights[prefix]
                self._gone.discard(prefix)
        self._look_at = now + self.patience if self.flights else None

    def next_deadline(self) -> float | None:
        """When ``silent`` or ``settle`` has to be asked; it may lie in the past."""
        asked = None if self._asked is None else self._asked + self._bearable
        return min((at for at in (asked, self._look_at) if at is not None), default=None)
