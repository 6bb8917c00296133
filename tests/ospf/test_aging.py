"""When LSAs are due: one timer for all of a second, cancelled with the last of them."""

import random
import sys

import pytest

from fared.core.timers import TimerQueue
from fared.protocols.ospf.flooding.aging import Aging
from fared.protocols.ospf.lsdb import CURRENT, EXPIRED, LsaEntry, Lsdb, Scope
from fared.protocols.ospf.packet.lsa import MAX_AGE
from tests.ospf.scripted import make_lsa


class Case:
    def __init__(self) -> None:
        self.timers = TimerQueue()
        self.due: list[int] = []
        self.aging = Aging(self.timers, self._fired)
        self.lsdb = Lsdb(Scope.AREA)

    def _fired(self, entry: LsaEntry) -> None:
        self.due.append(entry.key.advertising_router)

    def armed(self, number: int, deadline: float) -> LsaEntry:
        lsa = make_lsa(number)
        entry = LsaEntry(self.lsdb, lsa.header.key, lsa.raw, 0.0)
        self.aging.arm(entry, deadline)
        return entry


def test_an_lsa_fits_the_96_bytes_that_the_allocator_has_for_it():
    assert sys.getsizeof(Case().armed(1, 5.0)) <= 96  # of the next class: 112


@pytest.mark.rfc("RFC 2328 §14")
def test_an_lsa_that_has_reached_max_age_here_is_at_max_age_from_then_on():
    entry = Case().armed(1, 5.0)
    assert (entry.base_age, entry.at_max_age) == (1, False)
    entry.mark(EXPIRED, on=True)
    assert (entry.base_age, entry.age(0.0), entry.at_max_age) == (MAX_AGE, MAX_AGE, True)
    assert not entry.flushed
    assert not entry.deferred


def test_lsas_are_due_within_the_second_after_their_deadline():
    case = Case()
    for number, deadline in ((1, 5.1), (2, 5.9), (3, 6.0), (4, 6.2)):
        case.armed(number, deadline)
    case.timers.fire(5.95)
    assert case.due == []
    case.timers.fire(6.0)
    assert case.due == [1, 2, 3]


def test_a_replaced_lsa_is_not_due():
    case = Case()
    old = case.armed(1, 5.0)
    old.mark(CURRENT, on=False)
    case.aging.cancel(old)
    case.armed(1, 7.0)
    case.timers.fire(6.0)
    assert case.due == []
    case.timers.fire(7.0)
    assert case.due == [1]


def test_an_lsa_that_is_due_may_be_cancelled_and_armed_for_the_same_second_again():
    case = Case()
    first, second = case.armed(1, 5.0), case.armed(2, 5.0)
    again = []

    def fired(entry: LsaEntry) -> None:
        case.due.append(entry.key.advertising_router)
        if not again:
            again.append(case.armed(3, 5.0))
            case.aging.cancel(second)
            second.mark(CURRENT, on=False)

    case.aging._due = fired
    case.timers.fire(5.0)
    case.timers.fire(5.0)
    assert case.due == [1, 3]
    assert not first.due_second


def test_however_many_are_cancelled_all_others_are_due_and_no_timer_stays():
    dice = random.Random(5)
    case = Case()
    entries = [case.armed(number, dice.choice((10.0, 11.0))) for number in range(500)]
    cancelled = set(dice.sample(range(500), 400))
    for number in sorted(cancelled, key=lambda _: dice.random()):
        entries[number].mark(CURRENT, on=False)
        case.aging.cancel(entries[number])
    assert sum(len(second.entries) for second in case.aging._seconds.values()) <= 135
    case.timers.fire(11.0)
    assert sorted(case.due) == sorted(set(range(500)) - cancelled)
    assert case.timers.next_deadline() is None


def test_cancelling_all_of_a_second_cancels_its_timer():
    case = Case()
    for entry in [case.armed(number, 10.0) for number in range(5)]:
        entry.mark(CURRENT, on=False)
        case.aging.cancel(entry)
    assert case.timers.next_deadline() is None
