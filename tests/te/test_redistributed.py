"""Path capacities of redistributed prefixes: which changes are advertised, and when."""

from __future__ import annotations

from collections.abc import Iterable

from fared.core.ids import Prefix, ipv4_prefix
from fared.core.timers import TimerQueue
from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.paths.te.budget import AnnounceBudget
from fared.paths.te.redistributed import RedistributedCapacities

PREFIXES = [ipv4_prefix(0x0A000000 + (number << 8), 24) for number in range(8)]
P = PREFIXES[0]


class Engine:
    """What advertises: with a budget of two announcements, and one a second after that."""

    def __init__(self, *, limited: bool = True, in_one: bool = False) -> None:
        self.now = 100.0
        self.timers = TimerQueue()
        self.budget = AnnounceBudget(2.0, 0.03)
        self.budget.ends.put("mine", 1, 0.0, own=True)
        self.budget.ends.put("theirs", 1, 0.0, own=False)
        self.budget.ends.joining(self.now)
        budgets = [self.budget] if limited else []
        self.paths = RedistributedCapacities(
            self.timers,
            lambda: self.now,
            lambda: budgets,
            carrier=lambda prefix: 0 if in_one else prefix,
            again=self.again,
        )
        self.advertised: dict[Prefix, float | None] = {}
        self.wanted: dict[Prefix, float | None] = {}

    def again(self, prefixes: Iterable[Prefix]) -> None:
        for prefix in prefixes:
            self.offer(prefix, self.wanted[prefix])

    def offer(self, prefix: Prefix, capacity: float | None) -> float | None:
        self.wanted[prefix] = capacity
        known = self.advertised.get(prefix)
        self.advertised[prefix] = self.paths.advertise(prefix, known, capacity, DEFAULT_ADVERTISE)
        return self.advertised[prefix]

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (at := self.timers.next_deadline()) is not None and at <= end:
            self.now = at
            self.timers.fire(at)
        self.now = end


def changed(engine: Engine, capacities: Iterable[float]) -> list[float | None]:
    """All prefixes have 100; then these. What is advertised of them at once."""
    for prefix in PREFIXES:
        engine.offer(prefix, 100.0)
    for prefix, capacity in zip(PREFIXES, capacities, strict=False):
        engine.offer(prefix, capacity)
    return [engine.advertised[prefix] for prefix in PREFIXES]


def test_a_small_change_is_not_advertised_and_a_path_that_is_whole_again_is():
    engine = Engine()
    assert [engine.offer(P, capacity) for capacity in (100.0, 98.0, 90.0)] == [100.0, 100.0, 90.0]
    assert engine.offer(P, 92.0) == 90.0
    engine.wait(5.0)
    assert engine.offer(P, 100.0) == 100.0


def test_what_appears_disappears_or_is_halved_is_advertised_at_once():
    engine = Engine()
    assert changed(engine, [40.0] * 6) == [40.0] * 6 + [100.0] * 2
    assert engine.offer(P, None) is None
    assert engine.offer(P, 80.0) == 80.0


def test_other_changes_wait_for_the_budget_and_the_largest_go_first():
    engine = Engine()
    wanted = [90.0, 90.0, 95.0, 60.0, 80.0, 70.0, 85.0, 75.0]
    assert changed(engine, wanted) == [90.0, 90.0, *[100.0] * 6]
    order = []
    for _ in range(40):
        before = dict(engine.advertised)
        engine.wait(0.5)
        order += [engine.advertised[p] for p in PREFIXES if engine.advertised[p] != before[p]]
    assert order == [60.0, 70.0, 75.0, 80.0, 85.0, 95.0]
    assert engine.timers.next_deadline() is None


def test_an_lsp_with_many_prefixes_is_paid_for_once():
    engine = Engine(in_one=True)
    assert changed(engine, [90.0] * 8) == [90.0] * 8
    assert engine.budget.spent == 1


def test_without_links_of_its_own_a_router_has_no_budget_and_is_not_limited():
    assert changed(Engine(limited=False), [90.0] * 8) == [90.0] * 8


def test_a_withdrawn_prefix_waits_no_more():
    engine = Engine()
    changed(engine, [90.0, 90.0, 80.0])
    engine.paths.withdraw(PREFIXES[2])
    engine.wait(30.0)
    assert engine.advertised[PREFIXES[2]] == 100.0
