"""The journal of changes has a limit, whatever is learnt."""

import sys

from fared.core.ids import Prefix
from fared.router.convergence import MOST_CHANGES, Journal


def prefixes(first: int, count: int) -> list[Prefix]:
    return [Prefix(4, n << 8, 24) for n in range(first, first + count)]


def test_the_last_change_of_a_route_is_remembered():
    journal = Journal()
    journal.changed(prefixes(0, 2), 1.0, ("a",))
    journal.changed(prefixes(1, 1), 2.0, ("b",))
    assert [journal.last_change[each].causes for each in prefixes(0, 2)] == [("a",), ("b",)]


def test_only_the_most_recent_changes_are_remembered():
    journal = Journal()
    often = prefixes(0, 1)
    for at in range(10):
        journal.changed(prefixes(1 + at * MOST_CHANGES // 4, MOST_CHANGES // 4), at, ("learnt",))
        journal.changed(often, at + 0.5, ("load",))
    assert MOST_CHANGES <= len(journal.last_change) <= MOST_CHANGES * 9 // 8
    assert journal.last_change[often[0]].at == 9.5
    assert prefixes(1, 1)[0] not in journal.last_change


def test_more_changes_at_once_than_are_remembered_leave_the_last_of_them():
    journal = Journal()
    journal.changed(prefixes(0, 1), 1.0, ("long ago",))
    journal.changed(prefixes(0, 2 * MOST_CHANGES), 2.0, ("learnt",))
    assert list(journal.last_change) == prefixes(MOST_CHANGES, MOST_CHANGES)


def test_a_hundred_thousand_changes_take_no_more_memory_than_those_that_are_remembered():
    few, many = Journal(), Journal()
    few.changed(prefixes(0, MOST_CHANGES), 1.0, ("learnt",))
    many.changed(prefixes(0, 100_000), 1.0, ("learnt",))
    assert sys.getsizeof(many.last_change) == sys.getsizeof(few.last_change)
