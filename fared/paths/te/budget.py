"""A budget for the announcements of an area: how many changed bandwidths its routers may advertise.

Every router of an area processes every announcement, so what counts is their sum. A router knows
the number of link ends advertised in its database that both ends advertise, of routers that it
reaches (``LinkEnds``); its own part of them is its share of the budget (``AnnounceBudget``).
Databases are equal, so the shares add up to the budget, and no router needs to know the demand of
another. A neighbor can invent routers with both ends of their links: every router has a least
share, whatever there seems to be. In any ten seconds a router announces no more than ten
seconds of its share, except changes of capacity, which are not load.

While the share is too small, a router averages loads over a longer time and raises the threshold:
jobs that send and pause then cost few announcements, and the average is what weights need, as they
are damped. The largest changes go first.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

WINDOW = 10.0
"""Seconds in which a router announces no more than ten seconds of its share.

A share below 0.2 a second is less than two changes in this time; it holds over a longer time.
"""
LONGEST_AVERAGE = 60.0
"""Loads are averaged over at most this time, seconds."""
_BURST = 2.0
"""Seconds of its share that a router may save up."""
LEAST_REFILL = 0.5
"""Part of the share that is refilled where it is too small for a bucket of one announcement."""
_JOINING = 0.01
"""Part of the budget that a router may use while its database is still growing."""
_LONGEST_JOINING = 60.0
"""Seconds after which a database that goes on growing is not being learned, but flooded."""
_LEAST_PART = 1 / 2500
"""The part of each router at least: that of a leaf with 64 uplinks among 1,250 such leaves. All
routers of a larger area may announce somewhat more than the budget."""
_GROWTH = 1.125
"""A smaller growth is a link or a router that came up, not a database that is being learned."""
RELAX = 0.3
"""Seconds by which the averaging time decreases each second while the share suffices."""
_STEEPNESS = 60.0
"""Averaging time, seconds, at which the threshold has doubled."""


class LinkEnds:
    """The link ends advertised in one area or level, by the LSA or LSP that carries them."""

    __slots__ = ("_began", "_counted", "_ends", "_grown_at", "_learned", "_level", "own", "total")

    def __init__(self) -> None:
        self._ends: dict[Hashable, int] = {}
        self.own = 0
        """Those of this router."""
        self.total = 0
        self._counted: tuple[int, int] | None = None
        """Ours and all, of routers on a path; None: not computed yet."""
        self._level = 0.0
        self._began: float | None = None
        self._grown_at: float | None = None
        self._learned = False

    def put(self, key: Hashable, ends: int, now: float, *, own: bool) -> None:
        """An LSA or LSP carries this number of ends from now on; 0: it is gone, or has none."""
        change = ends - self._ends.get(key, 0)
        if not change:
            return
        if ends:
            self._ends[key] = ends
        else:
            del self._ends[key]
        self.total += change
        if own:
            self.own += change
        elif self.total > self._level:
            self._level, self._grown_at = self.total * _GROWTH, now
            self._began = now if self._began is None else self._began
        if own and not self.own:  # without a link it learns nothing, and begins anew with the next
            self._level, self._began, self._grown_at, self._learned = 0.0, None, None, False

    def count(self, own: int, total: int) -> None:
        """Our ends and all, as far as both ends advertise the link, and routers are reached."""
        self._counted = own, total

    def joining(self, now: float) -> bool:
        """Whether the database is still being learned: the number of ends grew a moment ago.

        Once it is learned, it is not learned again while we have a link: others may invent ends.
        """
        if self._learned or self._began is None or self._grown_at is None:
            return not self._learned
        until = min(self._grown_at + WINDOW, self._began + _LONGEST_JOINING)
        self._learned = now >= until
        return not self._learned

    @property
    def shared(self) -> tuple[int, int]:
        """Our ends and all that share the budget: those advertised, until they are counted."""
        return self._counted or (self.own, self.total)

    def part(self, now: float) -> float:
        """Return the part of the budget that is our own, 0..1."""
        if not self.own:
            return 0.0
        own, total = self.shared
        part = min(own / total, _JOINING if self.joining(now) else 1.0) if total else 0.0
        return max(part, _LEAST_PART)


class AnnounceBudget:
    """The share of this router in the budget of one area, as a token bucket.

    ``averaging`` (seconds) is the time over which loads are averaged: the time that the deferred
    changes need to be announced. It increases by a second each second, so that an average begins
    with the first change that was deferred. ``waiting`` is their number, set by ``Announcer``.
    """

    __slots__ = ("_at", "_tokens", "averaging", "budget", "ends", "least", "spent", "waiting")

    def __init__(self, budget: float, least: float) -> None:
        self.budget = budget
        """Announcements a second of the whole area."""
        self.least = least
        """The configured threshold, as part of the capacity."""
        self.ends = LinkEnds()
        self.averaging = 0.0
        self.waiting = 0
        self.spent = 0
        """Announcements so far."""
        self._tokens = 0.0
        self._at: float | None = None

    def share(self, now: float) -> float:
        """Return how many announcements a second this router may make."""
        return self.budget * self.ends.part(now)

    def _bucket(self, now: float) -> tuple[float, float]:
        """Return size and refill: the full bucket and the refills of a window are the share."""
        share = self.share(now)
        size = max(1.0, share * _BURST)
        return size, max(share - size / WINDOW, share * LEAST_REFILL)

    def advance(self, now: float) -> None:
        """Credit the share of the time since the last call, and adapt the averaging time."""
        if self._at is not None and now <= self._at:
            return
        most, rate = self._bucket(now)
        if self._at is None:
            self._at, self._tokens = now, most
            return
        since, self._at = now - self._at, now
        self._tokens = min(most, self._tokens + since * rate)
        backlog = min(LONGEST_AVERAGE, self.waiting / rate) if rate else LONGEST_AVERAGE
        if self.waiting and backlog > self.averaging:
            self.averaging = min(backlog, self.averaging + since)
        else:
            self.averaging = max(0.0, self.averaging - since * RELAX)

    @property
    def threshold(self) -> float:
        """The change to announce, as part of the capacity."""
        return self.least * (1.0 + self.averaging / _STEEPNESS)

    @property
    def ready(self) -> bool:
        """Whether the share permits one more announcement."""
        return self._tokens >= 1.0

    def ready_at(self, now: float) -> float | None:
        """Return when it will; None: never, as no end of ours is advertised."""
        _, rate = self._bucket(now)
        if not rate:
            return None
        # The margin: rounding must not end a wait just before the token is there.
        return now + max(0.0, 1.0 - self._tokens) / rate + 1e-6

    def spend(self) -> None:
        """Pay for an announcement. One that cannot wait may be owed, until the bucket is at -1."""
        self._tokens = max(self._tokens - 1.0, -1.0)
        self.spent += 1


def count_ends(
    budgets: Iterable[tuple[int, AnnounceBudget]], ends: Mapping[int, tuple[int, int]]
) -> None:
    """Count the ends of areas or levels, ours and all, of routers on a path."""
    for scope, budget in budgets:
        budget.ends.count(*ends.get(scope, (0, 0)))


def average(before: float | None, load: float | None, since: float, over: float) -> float | None:
    """Return a load averaged exponentially over a time, ``since`` seconds after the last one."""
    if before is None or load is None or over <= 0.0:
        return load
    return before + (load - before) * (1.0 - exp(-since / over))
