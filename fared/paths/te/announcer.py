"""Which changed bandwidths a router advertises now, and which wait (``te.budget``).

Both engines offer each link whose load or capacity was measured, and ask once for all of them
which to advertise: the largest changes of a batch, not its first ones, get the share of the budget.
A deferred link keeps its present bandwidth only, so a link that changes again waits once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fared.paths.te.advertise import (
    AdvertisedBandwidth,
    AdvertisedLink,
    AdvertiseSettings,
    advertise_at,
)
from fared.paths.te.budget import AnnounceBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from fared.core.timers import Timer, TimerQueue

_SOON = 0.1
"""Deferred changes are considered again after at least this time, so that packets are full."""
_LATER = 1.0
"""And after this time: the threshold may have fallen."""

LinkT = TypeVar("LinkT", bound=AdvertisedLink[Any])
ScopeT = TypeVar("ScopeT", bound="Hashable")


class Carrier(NamedTuple, Generic[ScopeT]):
    """An LSA or LSP that advertises a link, in an area or level; one payment covers all of it."""

    scope: ScopeT
    identifier: Hashable


class _Round(Generic[ScopeT]):
    """One decision about all candidates: what is paid, what waits for the budget, until when."""

    __slots__ = ("now", "paid", "times", "waiting")

    def __init__(self, now: float) -> None:
        self.now = now
        self.paid: set[Carrier[ScopeT]] = set()
        self.waiting: dict[Carrier[ScopeT], None] = {}
        self.times: list[float] = []


class Announcer(Generic[LinkT, ScopeT]):
    """The links of one engine whose bandwidth is to be advertised, and the budgets of its areas.

    ``settings`` returns the present ones, ``carriers`` where a link is advertised.
    """

    def __init__(
        self,
        timers: TimerQueue,
        settings: Callable[[], AdvertiseSettings],
        carriers: Callable[[LinkT], list[Carrier[ScopeT]]],
    ) -> None:
        self.budgets: dict[ScopeT, AnnounceBudget] = {}
        self._timers = timers
        self._settings = settings
        self._carriers = carriers
        self._candidates: dict[int, LinkT] = {}
        self._timer: Timer | None = None
        self._stirred = False

    def budget(self, scope: ScopeT) -> AnnounceBudget:
        """The budget of an area or level."""
        settings, found = self._settings(), self.budgets.get(scope)
        if found is None:
            found = self.budgets[scope] = AnnounceBudget(settings.budget, settings.threshold)
        found.budget, found.least = settings.budget, settings.threshold
        return found

    def averaging(self, link: LinkT, now: float) -> float:
        """Return the time over which to average the load of a link, seconds."""
        if not any(budget.waiting or budget.averaging for budget in self.budgets.values()):
            return 0.0  # as nearly always: no need to find the carriers
        longest = 0.0
        for carrier in self._carriers(link):
            budget = self.budget(carrier.scope)
            budget.advance(now)
            longest = max(longest, budget.averaging)
        return longest

    def measured(
        self, loads: Mapping[int, float | None], links: Mapping[int, LinkT], now: float
    ) -> bool:
        """Store the measured loads of those links, by ifindex; return whether to ``settle``."""
        average = any(budget.waiting or budget.averaging for budget in self.budgets.values())
        settings, due = self._settings(), False
        for ifindex, utilized in loads.items():
            link = links.get(ifindex)
            if link is None:
                continue
            if not average and utilized is not None and link.stays_near(utilized, settings, now):
                continue
            link.measured(utilized, self.averaging(link, now), now)
            due |= self.offer(link, now)
        return due

    def offer(self, link: LinkT, now: float) -> bool:
        """Consider a link whose load or capacity may have changed; whether to ``settle``."""
        due = self._due(link, now) is not None
        link.judged(self._settings(), due=due)
        if not due:
            if self._candidates.pop(link.ifindex, None) is not None:
                self._stirred = True
            return False
        self._candidates[link.ifindex] = link
        self._stirred = True
        return True

    def forget(self, link: LinkT) -> None:
        """The link is gone."""
        if self._candidates.pop(link.ifindex, None) is not None:
            self._stirred = True

    def settle(self, now: float) -> list[LinkT]:
        """Return the links to advertise now, recorded as such; a timer wakes for the others."""
        if not self._stirred:
            return []
        self._stirred = False
        self._timers.cancel(self._timer)
        self._timer = None
        chosen: list[LinkT] = []
        this: _Round[ScopeT] = _Round(now)
        for link in sorted(self._candidates.values(), key=_rank):
            due = self._due(link, now)
            if due is not None and due > now:
                this.times.append(due)
                continue
            if due is not None and not self._pays(link, this):
                continue
            del self._candidates[link.ifindex]
            if due is not None:
                link.advertised = AdvertisedBandwidth(link.bandwidth, now)
                chosen.append(link)
        for scope, budget in self.budgets.items():
            budget.waiting = sum(carrier.scope == scope for carrier in this.waiting)
        self._arm(this)
        return chosen

    def _due(self, link: LinkT, now: float) -> float | None:
        settings = self._settings()
        return advertise_at(
            link.advertised,
            link.bandwidth,
            threshold=settings.threshold,
            minimum_interval=settings.minimum_interval,
            now=now,
        )

    def _pays(self, link: LinkT, this: _Round[ScopeT]) -> bool:
        """Whether to advertise a link now; if so, pay for the LSAs or LSPs that carry it."""
        unpaid = [carrier for carrier in self._carriers(link) if carrier not in this.paid]
        budgets = [self.budget(carrier.scope) for carrier in unpaid]
        for budget in budgets:
            budget.advance(this.now)
        if not link.urgent:
            if any(abs(link.change) <= budget.threshold for budget in budgets):
                return False
            if not all(budget.ready for budget in budgets):
                this.waiting.update(dict.fromkeys(unpaid))
                return False
        for budget in budgets:
            budget.spend()
        this.paid.update(unpaid)
        return True

    def _arm(self, this: _Round[ScopeT]) -> None:
        """Consider the other candidates again: when due, affordable, or above the threshold."""
        if not self._candidates:
            return
        times = [this.now + _LATER, *this.times]
        for scope in {carrier.scope for carrier in this.waiting}:
            at = self.budgets[scope].ready_at(this.now)
            if at is not None:
                times.append(max(at, this.now + _SOON))
        self._timer = self._timers.arm(min(times), self._stir)

    def _stir(self) -> None:
        self._stirred = True


def _rank(link: AdvertisedLink[Any]) -> tuple[bool, float, bool, int]:
    """What cannot wait first, then the largest changes, of equal ones decreases first."""
    change = link.change
    return not link.urgent, -abs(change), change > 0, link.ifindex
