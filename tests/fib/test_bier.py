"""What the planner of BIER promises the kernel: marks keep their meaning, changes take turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import ipv4_prefix
from fared.paths.bier.bift import make_bifts
from fared.paths.bier.birt import BfrNeighbor, BirtEntry, make_birt
from fared.paths.fib.bier import BierFib, BierPlanner, BierPort

PORTS = [BierPort(n, f"e{n}", n) for n in range(1, 5)]
ways = st.dictionaries(st.integers(1, 4), st.integers(1, 4), min_size=1, max_size=4)
births = st.dictionaries(st.integers(1, 200), ways, max_size=12)


def desire(planner: BierPlanner, bfers: dict[int, dict[int, int]]) -> None:
    entries = make_birt(
        BirtEntry(
            bfr_id,
            ipv4_prefix(bfr_id, 32),
            tuple((BfrNeighbor(n, n, f"e{n}"), weight) for n, weight in sorted(found.items())),
        )
        for bfr_id, found in bfers.items()
    )
    planner.desire(make_bifts(entries, 64), PORTS)


def used(fib: BierFib) -> set[int]:
    return {mark for table in fib.tables for mark in table.marks}


def started() -> BierPlanner:
    planner = BierPlanner(1, 64)
    planner.adopt(0)
    return planner


@given(st.lists(births, min_size=1, max_size=8))
def test_a_mark_never_changes_its_meaning_and_outlives_the_state_that_used_it(states):
    planner, meaning = started(), {}
    before: set[int] = set()
    for bfers in states:
        desire(planner, bfers)
        fib = planner.desired
        assert fib is not None
        assert all(meaning.setdefault(mark, copy) == copy for mark, copy in fib.copies.items())
        assert len({*fib.copies.values()}) == len(fib.copies)
        assert used(fib) | before <= fib.copies.keys()
        before = used(fib)


@given(births)
def test_the_same_tables_again_are_no_change(bfers):
    planner = started()
    desire(planner, bfers)
    assert planner.plan(0.0) is planner.desired
    planner.answered("", 0.0)
    desire(planner, dict(reversed(bfers.items())))
    assert planner.plan(0.0) is None


def test_one_change_at_a_time_and_the_last_state_wins():
    planner = started()
    desire(planner, {1: {1: 1}})
    first = planner.plan(0.0)
    desire(planner, {1: {2: 1}})
    assert planner.plan(0.0) is None
    planner.answered("", 0.0)
    second = planner.plan(0.0)
    assert (first, second) != (None, None)
    assert second is planner.desired
    planner.answered("", 0.0)
    assert planner.plan(0.0) is None


def test_after_refusals_pauses_double_and_a_success_ends_them():
    planner = started()
    desire(planner, {1: {1: 1}})
    now, pauses = 0.0, []
    for _ in range(3):
        assert planner.plan(now) is not None
        planner.answered("refused", now)
        assert planner.plan(now) is None
        due = planner.next_deadline()
        pauses.append(due - now)
        now = due
    assert pauses == [0.25, 0.5, 1.0]
    assert planner.plan(now) is not None
    planner.answered("", now)
    assert (planner.error, planner.next_deadline(), planner.counters["failed"]) == ("", None, 3)


def test_drift_is_written_again_but_not_while_a_change_is_in_progress():
    planner = started()
    desire(planner, {1: {1: 1}})
    planner.plan(0.0)
    assert not planner.reconcile(intact=False)
    planner.answered("", 0.0)
    assert not planner.reconcile(intact=True)
    assert planner.reconcile(intact=False)
    assert planner.plan(0.0) is planner.desired


def test_nothing_is_written_before_the_kernel_was_read_and_marks_of_the_former_are_not_used():
    planner = BierPlanner(1, 64)
    desire(planner, {1: {1: 1}})
    assert planner.plan(0.0) is None
    planner.adopt(41)
    desire(planner, {1: {1: 1}})
    assert planner.plan(0.0).copies.keys() == {42}
