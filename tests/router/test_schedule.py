"""The schedule of runs: their causes and their delays."""

from __future__ import annotations

import pytest

from fared.core.backoff import BackoffSettings
from fared.paths.ted.change import ChangeKind
from fared.router.schedule import CAPACITY_GAP, DROPPED_GAP, LOSS_GAP, OTHER_END, Schedule

STORM = 1.0
"""Seconds after which a back-off has been patient for long: past time to learn (RFC 8405)."""


def in_a_storm() -> Schedule:
    """An SPF was requested every 10 ms, for a second; the last one has just run."""
    schedule = Schedule(BackoffSettings())
    for step in range(int(STORM * 100) + 1):
        now = step / 100
        schedule.request(ChangeKind.TOPOLOGY, now)
        if schedule.due(now):
            schedule.ran(now)
    schedule.backoff.ran()
    schedule.ran(STORM)
    return schedule


def test_nothing_is_due_when_nothing_has_happened() -> None:
    schedule = Schedule(BackoffSettings())
    assert not schedule.due(0.0)
    assert schedule.next_deadline() is None


def test_a_change_waits_in_a_storm_but_a_loss_does_not() -> None:
    schedule = in_a_storm()
    schedule.request(ChangeKind.TOPOLOGY, STORM)
    assert schedule.next_deadline() == pytest.approx(STORM + BackoffSettings().long_delay)
    schedule.request(ChangeKind.LOSS, STORM)
    assert schedule.next_deadline() == pytest.approx(STORM + LOSS_GAP)
    assert not schedule.due(STORM + LOSS_GAP / 2)
    assert schedule.due(STORM + LOSS_GAP)


def test_a_change_at_one_end_of_a_link_waits_for_the_other_end() -> None:
    schedule = Schedule(BackoffSettings())
    schedule.request(ChangeKind.ONE_WAY, 5.0)
    assert schedule.next_deadline() == pytest.approx(5.0 + OTHER_END)
    schedule.request(ChangeKind.TOPOLOGY, 5.01)  # the other end, say
    assert schedule.due(5.01)


def test_a_link_lost_at_the_other_end_too_is_due_soon_and_uses_no_back_off() -> None:
    schedule = Schedule(BackoffSettings())
    schedule.request(ChangeKind.LOSS, 5.0)
    assert schedule.due(5.0)
    schedule.ran(5.0)
    schedule.request(ChangeKind.DROPPED, 5.001)
    assert schedule.next_deadline() == pytest.approx(5.0 + DROPPED_GAP)
    assert schedule.due(5.0 + DROPPED_GAP)
    schedule.ran(5.0 + DROPPED_GAP)
    schedule.request(ChangeKind.DROPPED, 6.0)
    assert schedule.due(6.0)
    schedule.ran(6.0)
    schedule.request(ChangeKind.LOSS, 6.0)
    assert schedule.next_deadline() == pytest.approx(6.0 + LOSS_GAP)


def test_capacities_run_at_once_and_then_keep_their_distance() -> None:
    schedule = in_a_storm()
    schedule.request(ChangeKind.CAPACITY, STORM + 1.0)
    assert schedule.due(STORM + 1.0)
    schedule.ran(STORM + 1.0)
    schedule.request(ChangeKind.CAPACITY, STORM + 1.001)
    assert schedule.next_deadline() == pytest.approx(STORM + 1.0 + CAPACITY_GAP)


def test_announced_capacities_do_not_make_topology_wait() -> None:
    schedule = Schedule(BackoffSettings())
    now = 0.0
    while now < STORM:
        schedule.request(ChangeKind.ADVERTISED, now)
        if schedule.due(now):
            schedule.ran(now)
        now += CAPACITY_GAP / 2
    schedule.ran(now)
    schedule.request(ChangeKind.ADVERTISED, now)
    later = schedule.next_deadline()
    assert later is not None
    assert later > now + 10 * CAPACITY_GAP
    schedule.request(ChangeKind.TOPOLOGY, now)
    assert schedule.due(now)


def test_one_run_processes_all_pending_changes() -> None:
    schedule = Schedule(BackoffSettings())
    schedule.request(ChangeKind.TOPOLOGY, 1.0)
    schedule.request(ChangeKind.ONE_WAY, 1.0)
    schedule.request(ChangeKind.CAPACITY, 1.0)
    schedule.request(ChangeKind.ADVERTISED, 1.0)
    assert schedule.due(1.0)
    schedule.ran(1.0)
    assert schedule.next_deadline() is None


def test_a_new_configuration_is_due_at_once_and_counts_from_now_on() -> None:
    schedule = in_a_storm()
    schedule.configure(BackoffSettings(long_delay=3.0), STORM)
    assert schedule.due(STORM)
    schedule.ran(STORM)
    schedule.request(ChangeKind.TOPOLOGY, STORM)
    assert schedule.next_deadline() == pytest.approx(STORM + 3.0)
