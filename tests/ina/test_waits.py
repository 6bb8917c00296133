"""Whom an error names: who is waited for, by what routers and the places of a ring told."""

from fared.extensions.ina.client.waits import RingWaits, TreeWaits

ALL = 0b1111


def test_routers_name_whom_they_wait_for_until_two_seconds_later():
    waits = TreeWaits()
    waits.told(0b0010, 0.0, silent=False)
    waits.told(0b1000, 1.5, silent=False)
    assert sorted(waits.lately(1.9)) == [2, 4]
    assert waits.lately(2.5) == [4]
    assert waits.lately(9.0) == []


def test_who_is_stuck_in_a_ring_is_missing_at_all_places():
    """Worker 2 of four: what it should pass on is missing behind it as well."""
    waits = RingWaits()
    for bits in (0b0011, 0b1011, 0b0010):
        waits.told(bits, 0.0, silent=False)
    assert waits.lately(0.1) == [2]


def test_a_worker_that_is_late_for_a_moment_is_not_named_for_who_is_stuck():
    """The place behind worker 4 told of it, even as the last one."""
    waits = RingWaits()
    for now in range(3):
        waits.told(0b0011, now / 10, silent=False)
        waits.told(0b0010, now / 10, silent=False)
    waits.told(0b1000, 0.3, silent=False)
    assert waits.lately(0.4) == [2]


def test_who_is_silent_is_named_whomever_others_lack():
    waits = RingWaits()
    for _ in range(9):
        waits.told(0b1000, 0.0, silent=False)
    waits.told(0b0010, 0.5, silent=True)
    assert waits.lately(1.0) == [2]
    waits.told(0b1000, 3.0, silent=False)
    assert waits.lately(3.1) == [4]


def test_what_was_told_long_ago_does_not_count():
    waits = RingWaits()
    for _ in range(5):
        waits.told(0b0001, 0.0, silent=False)
    waits.told(0b0100, 3.0, silent=False)
    assert waits.lately(3.1) == [3]
    assert waits.lately(9.0) == []


def test_what_is_kept_is_bounded():
    waits = RingWaits()
    for _ in range(10_000):
        waits.told(ALL, 0.0, silent=False)
    waits.told(0b0001, 0.0, silent=False)
    assert len(waits._told) < 2_000
