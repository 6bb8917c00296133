"""Limits of link state databases: which new LSAs are accepted as a database fills up."""

import random

from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.igp.database_limit import (
    MOST_MISSED,
    RECHECK,
    DatabaseLimit,
    Fullness,
    LimitSettings,
    Originators,
)
from fared.protocols.igp.process import Process
from tests.core.test_limit_shares import HONEST, ROOT, paths


class Database:
    """A list of originators."""

    def __init__(self) -> None:
        self.originators = Originators()

    def __len__(self) -> int:
        return self.originators.total()


class Limited:
    """A database with a limit of 100 and 60 for each originator; 11 to 19 are on a path."""

    def __init__(self) -> None:
        self.process = Process("test", 0.0, random.Random(1), str)
        self.database = Database()
        self.asked: list[list[int] | None] = []
        self.settings = LimitSettings(100, 60)
        self.paths = set(range(11, 20))
        self.limit = DatabaseLimit(
            self.process,
            self.database,
            "0.0.0.0",
            settings=lambda: self.settings,
            on_path=lambda: paths(*((ROOT, HONEST), *((HONEST, one) for one in self.paths))),
            ask=self.ask,
        )

    def ask(self, ignored) -> None:
        self.asked.append(None if ignored is None else sorted(ignored))

    def offer(self, originator: int, more: int = 0) -> bool:
        if self.limit.admits(originator, more):
            self.database.originators[originator] += 1
            return True
        self.limit.ignore(originator, originator)
        return False

    def forge(self, count: int) -> int:
        return sum(self.offer(1000 + number) for number in range(count))

    def wait(self, seconds: float) -> None:
        self.process.now += seconds
        self.process.timers.fire(self.process.now)

    def events(self) -> list[str]:
        return [record.event for record in self.process.take_outputs()]


def test_at_the_limit_only_originators_on_a_path_are_accepted_and_a_quarter_beyond_nobody():
    limited = Limited()
    assert limited.forge(500) == 100
    assert all(limited.offer(one % 9 + 11) for one in range(25))
    assert not limited.offer(11)
    assert len(limited.database) == 125


def test_the_log_warns_at_three_quarters_and_tells_once_that_the_database_is_full():
    limited = Limited()
    limited.forge(75)
    assert limited.events() == []
    limited.forge(1)
    assert limited.events() == ["test-database-nearly-full"]
    limited.forge(500)
    assert limited.events() == ["test-database-full"]
    assert (limited.limit.view().times, limited.limit.view().ignored) == (1, 476)


def test_an_originator_has_a_limit_of_its_own():
    limited = Limited()
    assert sum(limited.offer(5) for _ in range(200)) == 60
    assert limited.offer(6)


def test_what_was_ignored_is_asked_for_when_there_is_room_again_and_not_before():
    limited = Limited()
    limited.forge(102)
    limited.wait(RECHECK)
    assert (limited.asked, limited.limit.state) == ([], Fullness.FULL)
    for gone in range(11):
        del limited.database.originators[1000 + gone]
    limited.wait(RECHECK)
    assert (limited.asked, limited.limit.state) == ([[1100, 1101]], Fullness.WARNING)
    limited.wait(10 * RECHECK)
    assert len(limited.asked) == 1


def test_what_was_ignored_is_asked_for_when_its_originator_has_come_onto_a_path():
    limited = Limited()
    limited.forge(102)
    limited.paths = {1101}
    limited.wait(RECHECK)
    assert limited.asked == [[1101]]
    limited.wait(10 * RECHECK)
    assert len(limited.asked) == 1


def test_of_more_than_it_remembers_everything_is_asked_for():
    limited = Limited()
    limited.forge(101 + MOST_MISSED)
    limited.settings = LimitSettings(10 * MOST_MISSED, 60)
    limited.wait(RECHECK)
    assert (limited.asked, limited.limit.state) == ([None], Fullness.ROOM)


def test_a_neighbor_that_sends_more_than_is_remembered_hides_nothing_of_another():
    limited = Limited()
    limited.forge(100)
    limited.limit.ignore(5000, 5000, sender="honest")
    for one in range(10_000, 10_000 + 2 * MOST_MISSED):
        limited.limit.ignore(one, one, sender="liar")
    limited.paths = {5000}
    limited.wait(RECHECK)
    assert limited.asked == [[5000]]


def test_a_reset_zeroes_the_counts_and_asks_again_at_once():
    limited = Limited()
    limited.forge(102)
    limited.limit.reset()
    assert limited.asked == [[1100, 1101]]
    assert (limited.limit.view().times, limited.limit.view().ignored) == (0, 0)
    assert not limited.offer(1000)
    assert limited.limit.view().times == 1


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.integers(0, 50)), max_size=600))
def test_no_sequence_of_offers_exceeds_the_limit_by_more_than_a_quarter(steps):
    limited = Limited()
    for originator, remove, more in steps:
        if remove and limited.database.originators[originator]:
            limited.database.originators[originator] -= 1
        else:
            limited.offer(originator, more)
        limited.wait(0.1)
        assert len(limited.database) <= 125
        assert max(limited.database.originators.values(), default=0) <= 60
