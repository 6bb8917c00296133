"""The timer queue and the FSM table, on which the engines stand."""

import pytest

from fared.core.fsm import Row, TransitionTable
from fared.core.timers import TimerQueue


def test_equal_deadlines_fire_in_order_of_arming():
    queue, fired = TimerQueue(), []
    for name in "abc":
        queue.arm(5.0, lambda name=name: fired.append(name))
    queue.arm(4.0, lambda: fired.append("first"))
    assert queue.fire(5.0) == 4
    assert fired == ["first", "a", "b", "c"]


def test_cancelled_timers_neither_fire_nor_hold_the_deadline():
    queue = TimerQueue()
    timer = queue.arm(1.0, pytest.fail)
    queue.arm(2.0, lambda: None)
    queue.cancel(timer)
    queue.cancel(timer)
    queue.cancel(None)
    assert len(queue) == 1
    assert queue.next_deadline() == 2.0
    assert queue.fire(1.5) == 0


def test_a_timer_that_may_be_early_fires_with_one_that_is_due():
    """One wake-up for both; alone it waits for its deadline."""
    queue, fired = TimerQueue(), []
    queue.arm(1.0, lambda: fired.append("due"), earliest=0.8)
    queue.arm(1.2, lambda: fired.append("early"), earliest=0.9)
    queue.arm(1.3, lambda: fired.append("not yet"), earliest=1.1)
    assert queue.next_deadline() == 1.0
    assert queue.fire(1.0) == 2
    assert fired == ["due", "early"]
    assert queue.next_deadline() == 1.3


def test_a_cancelled_timer_hides_none_that_may_be_early():
    queue = TimerQueue()
    queue.arm(0.6, lambda: None, earliest=0.5)
    queue.cancel(queue.arm(1.0, pytest.fail))
    queue.arm(1.1, lambda: None, earliest=0.5)
    assert queue.fire(0.6) == 2
    assert len(queue) == 0


def test_a_timer_that_may_be_early_waits_where_nothing_is_due():
    """Nor does it follow a timer that could not wait: a neighbor's hellos would time ours."""
    queue = TimerQueue()
    queue.arm(1.1, lambda: None, earliest=0.5)
    assert queue.fire(0.6) == 0
    queue.arm(0.7, lambda: None)
    assert queue.fire(0.7) == 1
    assert queue.fire(1.1) == 1


def test_a_timer_that_rearms_itself_at_now_waits_for_the_next_call():
    queue, fired = TimerQueue(), []

    def again():
        fired.append(1)
        queue.arm(1.0, again)

    queue.arm(1.0, again)
    assert queue.fire(1.0) == 1
    assert queue.fire(1.0) == 1
    assert queue.next_deadline() == 1.0


def test_many_cancelled_timers_do_not_pile_up():
    queue = TimerQueue()
    for n in range(10_000):
        queue.cancel(queue.arm(float(n), lambda: None))
    assert len(queue) == 0
    assert len(queue._heap) < 200


def test_a_table_finds_rows_and_refuses_two_for_one_event():
    table = TransitionTable([Row(("off",), "press", "light", "on")])
    assert table.find("off", "press").target == "on"
    assert table.find("on", "press") is None
    with pytest.raises(ValueError, match="two rows"):
        TransitionTable([Row(("off",), "press", None, "on"), Row(("off",), "press", None, "off")])
