"""The budget of an area: what its routers announce together, in which order, and how averaged."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.links import Link
from fared.core.timers import TimerQueue
from fared.paths.te.advertise import AdvertisedLink, AdvertiseSettings
from fared.paths.te.announcer import Announcer, Carrier
from fared.paths.te.budget import LONGEST_AVERAGE, WINDOW, AnnounceBudget, LinkEnds, average
from tests.work import counting_calls

C = 1e9
AREA = "area"
Test = AdvertisedLink["Configured"]


class Configured(msgspec.Struct, frozen=True):
    capacity: float | None = C
    share: float = 1.0


class Router:
    """The links of one router, each in an LSA of its own or several in a fragment, on a clock."""

    def __init__(self, ends: int, total: int, budget: float, *, fragment: int = 1) -> None:
        self.settings = AdvertiseSettings(budget=budget)
        self.timers = TimerQueue()
        self.announcer: Announcer[Test, str] = Announcer(
            self.timers,
            lambda: self.settings,
            lambda link: [Carrier(AREA, link.ifindex // fragment)],
        )
        self.budget = self.announcer.budget(AREA)
        self.links = [
            Test(Link(n, f"eth{n}", up=True, mtu=1500), Configured()) for n in range(ends)
        ]
        self.budget.ends.put("ours", ends, 0.0, own=True)
        self.budget.ends.put("others", total - ends, 0.0, own=False)
        self.fragment = fragment
        self.announced: list[tuple[float, int]] = []
        self.now = 0.0
        for link in self.links:
            self.announcer.offer(link, self.now)
        self.announcer.settle(self.now)
        self.budget._tokens = 0.0  # joined long ago
        self.advance(WINDOW + 1)

    def advance(self, until: float) -> None:
        """Let timers fire until a time."""
        while (at := self.timers.next_deadline()) is not None and at <= until:
            self.now = max(self.now, at)
            self.timers.fire(self.now)
            self._settle()
        self.now = until

    def measure(self, *loads: float, links: int | None = None) -> list[int]:
        """Measure the first links, as parts of their capacity; return the links announced."""
        before = len(self.announced)
        known = dict(enumerate(self.links[:links]))
        measured = {number: load * C for number, load in enumerate(loads)}
        self.announcer.measured(measured, known, self.now)
        self._settle()
        return [number for _, number in self.announced[before:]]

    def capacity(self, number: int, capacity: float) -> list[int]:
        """Change the capacity of a link."""
        before = len(self.announced)
        self.links[number].settings = Configured(capacity)
        self.announcer.offer(self.links[number], self.now)
        self._settle()
        return [number for _, number in self.announced[before:]]

    def _settle(self) -> None:
        for link in self.announcer.settle(self.now):
            self.announced.append((self.now, link.ifindex))

    def carriers(self) -> list[float]:
        """The times of LSAs or LSPs: several links of one fragment share one."""
        return [at for at, _ in sorted({(at, n // self.fragment) for at, n in self.announced})]


def most(times: list[float], window: float = WINDOW) -> int:
    """The largest number of times in any window."""
    return max((sum(at <= other < at + window for other in times) for at in times), default=0)


# The share


def test_the_shares_of_all_routers_add_up_to_the_budget():
    routers = {"spine": 8, "other spine": 8, "leaf": 2, "other leaf": 14}
    shares = 0.0
    for name in routers:
        budget = AnnounceBudget(500.0, 0.03)
        for other, ends in routers.items():
            budget.ends.put(other, ends, 0.0, own=other == name)
        shares += budget.share(WINDOW)
    assert shares == pytest.approx(500.0)


def test_a_router_that_still_learns_the_database_uses_a_hundredth_of_the_budget():
    """It would take itself for a large part of the area."""
    budget = AnnounceBudget(500.0, 0.03)
    budget.ends.put("ours", 64, 0.0, own=True)
    assert budget.share(0.0) == 5.0
    budget.ends.put("others", 64, 100.0, own=False)
    assert budget.share(109.0) == 5.0
    assert budget.share(110.0) == 250.0


def test_ends_that_only_one_router_advertises_take_nothing_of_the_budget():
    """Nor those of routers that are not reached: where routes are computed they are counted."""
    budget = AnnounceBudget(500.0, 0.03)
    budget.ends.put("ours", 64, 0.0, own=True)
    budget.ends.put("others", 64, 0.0, own=False)
    budget.ends.put("invented", 10_000, 0.0, own=False)
    budget.ends.count(64, 128)
    assert budget.share(WINDOW) == 250.0


def test_every_router_has_a_least_share_whatever_others_invent():
    budget = AnnounceBudget(500.0, 0.03)
    budget.ends.put("ours", 2, 0.0, own=True)
    budget.ends.put("invented", 78_000, 0.0, own=False)
    budget.ends.count(2, 78_002)
    assert budget.share(0.0) == budget.share(WINDOW) == pytest.approx(0.2)
    budget.ends.put("ours", 0, 20.0, own=True)
    assert budget.share(20.0) == 0.0


def test_a_database_that_grows_for_ever_is_learned_after_a_minute():
    ends = LinkEnds()
    ends.put("ours", 1, 0.0, own=True)
    for second in range(200):
        ends.put(second, 2**second, float(second), own=False)
        ends.count(1, 3)
        assert ends.joining(second) == (second < 60)
    assert ends.part(200.0) == pytest.approx(1 / 3)


def test_a_link_that_comes_up_elsewhere_is_no_database_to_learn():
    ends = LinkEnds()
    ends.put("ours", 64, 0.0, own=True)
    ends.put("others", 64, 0.0, own=False)
    ends.put("one more", 1, 50.0, own=False)
    assert not ends.joining(50.0)
    assert ends.part(50.0) == pytest.approx(64 / 129)


def test_what_leaves_the_database_is_counted_no_more():
    ends = LinkEnds()
    ends.put("ours", 4, 0.0, own=True)
    ends.put("others", 12, 0.0, own=False)
    ends.put("others", 0, 30.0, own=False)
    ends.put("ours", 2, 30.0, own=True)
    assert (ends.own, ends.total) == (2, 2)


# Loads that change little


@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(0.0, 1.2) | st.sampled_from([0.0, 0.015, 0.03, 0.5]), min_size=3),
            st.sampled_from([None, None, None, 0.5, 2.0]),
            st.sampled_from([0.01, 1.0]),
        ),
        max_size=12,
    ),
    st.sampled_from([0.4, 500.0]),
)
def test_loads_near_the_advertised_ones_are_not_judged_again_and_nothing_else_differs(
    steps, budget
):
    fast, slow = (Router(3, 6, budget) for _ in range(2))
    for link in slow.links:
        link.stays_near = lambda *_: False
    for loads, capacity, seconds in steps:
        if capacity is not None:
            assert fast.capacity(0, capacity * C) == slow.capacity(0, capacity * C)
        assert fast.measure(*loads) == slow.measure(*loads)
        for router in (fast, slow):
            router.advance(router.now + seconds)
        assert fast.announced == slow.announced
        assert [(link.averaged, link.utilized) for link in fast.links] == [
            (link.averaged, link.utilized) for link in slow.links
        ]


def test_what_a_load_near_the_advertised_one_costs():
    router = Router(20, 40, 500.0)
    links = dict(enumerate(router.links))
    router.announcer.measured(dict.fromkeys(links, 0.0), links, router.now)
    with counting_calls() as calls:
        assert not router.announcer.measured(dict.fromkeys(links, 90.0), links, router.now)
    assert calls.count < 4 * len(links)


# The order


def test_while_the_share_suffices_every_change_is_announced_at_once():
    router = Router(4, 8, 500.0)
    assert router.measure(0.1, 0.5, 0.02, 0.3) == [1, 3, 0]
    assert router.budget.averaging == 0.0


def test_the_largest_changes_are_announced_first_whatever_their_order():
    router = Router(4, 400, 50.0)  # half an announcement a second
    assert router.measure(0.1, 0.2, 0.5, 0.3) == [2]
    router.advance(router.now + 2.6)
    assert [number for _, number in router.announced] == [2, 3]


def test_a_deferred_link_is_announced_once_with_its_last_load():
    router = Router(2, 200, 50.0)
    assert router.measure(0.9, 0.5) == [0]
    router.measure(0.9, 0.6)
    router.advance(router.now + 30)
    assert [number for _, number in router.announced] == [0, 1]
    advertised = router.links[1].advertised
    assert advertised is not None
    assert advertised.bandwidth.available == pytest.approx(0.4 * C)


def test_a_deferred_change_that_ends_is_not_announced():
    router = Router(2, 200, 50.0)
    assert router.measure(0.9, 0.5) == [0]
    router.measure(0.9, 0.0)
    router.advance(router.now + 30)
    assert len(router.announced) == 1
    assert router.timers.next_deadline() is None


def test_a_changed_capacity_waits_for_no_budget():
    router = Router(8, 80_000, 50.0)
    router.measure(*[0.9] * 8)
    for number in range(8):
        assert router.capacity(number, C / 2) == [number]


def test_links_of_one_lsp_share_an_announcement():
    router = Router(6, 600, 50.0, fragment=3)
    assert router.measure(0.5, 0.2, 0.02, 0.3, 0.3, 0.3) == [0, 1]
    router.advance(router.now + 3)
    assert [number for _, number in router.announced] == [0, 1, 3, 4, 5]


# Averages and threshold


def test_the_threshold_rises_while_changes_wait_and_falls_later():
    router = Router(16, 1600, 50.0)
    assert router.budget.threshold == 0.03
    for second in range(20):
        router.measure(*[0.8 * ((second + n) % 2) for n in range(16)])
        router.advance(router.now + 1)
    assert router.budget.threshold > 0.033
    assert 0 < router.budget.averaging <= LONGEST_AVERAGE
    for _ in range(700):
        router.measure(*[0.4] * 16)
        router.advance(router.now + 1)
    assert router.budget.threshold == 0.03


def test_load_that_is_on_and_off_is_advertised_as_its_mean():
    router = Router(16, 1600, 50.0)
    for second in range(120):
        router.measure(*[0.5 * (second % 2)] * 16)
        router.advance(router.now + 1)
    for link in router.links:
        assert link.advertised is not None
        assert link.advertised.bandwidth.available == pytest.approx(0.75 * C, abs=0.08 * C)


def test_an_average_moves_by_the_part_that_the_time_is_of_it():
    assert average(0.0, 1.0, 1.0, 0.0) == 1.0
    assert average(0.0, 1.0, 10.0, 10.0) == pytest.approx(0.632, abs=1e-3)
    assert average(0.5, None, 1.0, 10.0) is None
    assert average(None, 0.5, 1.0, 10.0) == 0.5


# Bounds

LOADS = st.lists(st.floats(0, 1), min_size=1, max_size=12)
ROUNDS = st.lists(st.tuples(st.sampled_from([0.05, 0.3, 1.0, 1.7, 6.0]), LOADS), max_size=60)


@given(ROUNDS, st.sampled_from([4.0, 20.0, 100.0]), st.sampled_from([1, 3]))
@settings(deadline=None)
def test_no_loads_make_a_router_exceed_its_share_in_ten_seconds(rounds, budget, fragment):
    router = Router(12, 48, budget, fragment=fragment)
    share = budget / 4
    for gap, loads in rounds:
        router.measure(*loads)
        router.advance(router.now + gap)
    router.advance(router.now + WINDOW)
    assert most(router.carriers()) <= share * WINDOW


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.15])
def test_a_small_share_holds_over_a_longer_time(share):
    router = Router(4, 400, 100 * share)
    for second in range(int(20 / share)):
        router.measure(*[0.9 * ((second // 3 + n) % 2) for n in range(4)])
        router.advance(router.now + 1)
    times = router.carriers()
    assert times
    assert most(times, 2 / share) <= 2
    assert len(times) <= 20


@given(ROUNDS)
@settings(deadline=None)
def test_all_changes_are_announced_in_the_end(rounds):
    """What is left is below the threshold."""
    router = Router(12, 48, 20.0)
    for gap, loads in rounds:
        router.measure(*loads)
        router.advance(router.now + gap)
    router.advance(router.now + 60)
    for link in router.links:
        assert abs(link.change) <= router.budget.threshold


@given(ROUNDS, st.sampled_from([4.0, 20.0]))
@settings(deadline=None)
def test_runs_with_the_same_loads_are_the_same(rounds, budget):
    def run() -> list[tuple[float, int]]:
        router = Router(12, 48, budget)
        for gap, loads in rounds:
            router.measure(*loads)
            router.advance(router.now + gap)
        return router.announced

    assert run() == run()


@pytest.mark.parametrize("routers", [(4, 4, 8), (64, 2, 2)])
@pytest.mark.parametrize("halved", [False, True])
def test_the_area_stays_within_its_budget(routers, halved):
    """Also when it is halved: what was saved up of the former budget is not spent."""
    total, budget = sum(routers), 12.0
    area = [Router(ends, total, budget) for ends in routers]

    def flip(second: int, n: int) -> float:
        return 0.7 * ((second // 2 + n) % 2)

    for second in range(120):
        if halved and second == 60:
            for router in area:
                router.settings = AdvertiseSettings(budget=budget / 2)
        for router in area:
            router.measure(*[flip(second, n) for n in range(len(router.links))])
            router.advance(router.now + 1)
    times = sorted(at for router in area for at in router.carriers())
    assert len(times) > 60
    assert most(times) <= budget * WINDOW
    late = [at for at in times if at >= 11 + 60]
    assert most(late) <= (budget / 2 if halved else budget) * WINDOW
