"""When to advertise the path capacities of redistributed prefixes, and which first.

They follow links of another domain, and one link there may be part of the paths to thousands of
prefixes. A small change is not advertised (``PathCapacities``). A capacity that appears, disappears
or falls to less than half is, at once; other changes share the budget of announcements
(``te.budget``), the largest ones first. A withdrawn prefix is no matter of this: it never waits.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fared.paths.te.advertise import PathCapacities

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from fared.core.ids import Prefix
    from fared.core.timers import Timer, TimerQueue
    from fared.paths.te.advertise import AdvertiseSettings
    from fared.paths.te.budget import AnnounceBudget

_SOON = 0.1
"""Changes that wait are considered again after at least this time, so that packets are full."""
_HALVED = -0.5


class RedistributedCapacities:
    """The path capacities that one engine advertises with the prefixes that it redistributes.

    ``budgets`` are those of its areas or levels, of which the smallest share counts. ``carrier``
    names the LSA or LSP of a prefix, which is paid for once. ``again``: prefixes to ``advertise``
    again.
    """

    def __init__(
        self,
        timers: TimerQueue,
        clock: Callable[[], float],
        budgets: Callable[[], Iterable[AnnounceBudget]],
        carrier: Callable[[Prefix], Hashable],
        again: Callable[[Iterable[Prefix]], None],
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._budgets = budgets
        self._carrier = carrier
        self._again = again
        self._capacities = PathCapacities()
        self._waiting: dict[Prefix, float] = {}
        """By prefix the change, as part of what is advertised, negative: the largest first."""
        self._order: list[tuple[float, Prefix]] = []
        """A heap of these; of those that wait no more, or for another change, a part is left."""
        self._together: dict[Hashable, dict[Prefix, None]] = {}
        """Those that wait, by carrier."""
        self._paid: tuple[float, set[Hashable]] = (0.0, set())
        """The carriers that were paid for, and when."""
        self._timer: Timer | None = None

    def advertise(
        self, prefix: Prefix, old: float | None, new: float | None, rules: AdvertiseSettings
    ) -> float | None:
        """Return the capacity to advertise now where ``old`` is advertised; None: none is."""
        wanted = self._capacities.chosen(prefix, old, new, rules)
        if old is not None and wanted is not None and wanted != old:
            change = (wanted - old) / old if old else 1.0
            if not self._pays(prefix, urgent=change < _HALVED):
                self._wait(prefix, -abs(change))
                return old
        self._waiting.pop(prefix, None)
        return self._capacities.advertise(prefix, old, new, rules)

    def withdraw(self, prefix: Prefix) -> None:
        """The prefix is no longer advertised."""
        self._capacities.withdraw(prefix)
        self._waiting.pop(prefix, None)

    def _wait(self, prefix: Prefix, change: float) -> None:
        if self._waiting.get(prefix) != change:
            self._waiting[prefix] = change
            heappush(self._order, (change, prefix))
            self._together.setdefault(self._carrier(prefix), {})[prefix] = None
        if self._timer is None:
            self._wake()

    def _budget(self, now: float) -> AnnounceBudget | None:
        """The budget that counts; None: no link of ours is advertised, and nothing is limited."""
        known = [budget for budget in self._budgets() if budget.ends.own]
        return min(known, key=lambda budget: budget.share(now), default=None)

    def _pays(self, prefix: Prefix, *, urgent: bool = False) -> bool:
        """Pay for the carrier of a prefix, if the budget permits it, or the change is urgent."""
        now = self._clock()
        budget, carrier = self._budget(now), self._carrier(prefix)
        if self._paid[0] != now:
            self._paid = now, set()
        _, paid = self._paid
        if budget is None or carrier in paid:
            return True
        budget.advance(now)
        # others wait: the largest changes of all come first
        if not urgent and (not budget.ready or (self._waiting and prefix not in self._waiting)):
            return False
        budget.spend()
        paid.add(carrier)
        return True

    def _wake(self) -> None:
        now = self._clock()
        budget = self._budget(now)
        at = None if budget is None else budget.ready_at(now)
        if at is not None:
            at = max(at, now + _SOON)
            self._timer = self._timers.arm(at, self._due)

    def _due(self) -> None:
        """Have what waits advertised, the largest changes first, all of an LSP together."""
        self._timer = None
        chosen: list[Prefix] = []
        while self._order:
            change, prefix = self._order[0]
            if self._waiting.get(prefix) == change:
                if not self._pays(prefix):
                    break
                others = self._together.pop(self._carrier(prefix), {})
                found = [each for each in {prefix: None, **others} if each in self._waiting]
                for each in found:
                    del self._waiting[each]
                chosen += found
            heappop(self._order)
        self._again(chosen)
        if self._waiting:
            self._wake()
        else:
            self._order, self._together = [], {}
