"""RFC 8405: a lone event runs SPF at once, a burst waits shortly, a storm waits long."""

import pytest

from fared.core.backoff import BackoffSettings, BackoffState, SpfBackoff

pytestmark = pytest.mark.rfc("RFC 8405 §5")

SETTINGS = BackoffSettings(0.0, 0.05, 1.0, 2.0, 0.5)


def run(backoff: SpfBackoff, now: float) -> bool:
    due = backoff.due(now)
    if due:
        backoff.ran()
    return due


def test_first_event_runs_at_once_and_the_next_after_the_short_delay():
    backoff = SpfBackoff(SETTINGS)
    backoff.event(10.0)
    assert run(backoff, 10.0)
    backoff.event(10.01)
    assert not run(backoff, 10.02)
    assert backoff.next_deadline() == 10.06
    assert run(backoff, 10.06)


def test_events_while_a_run_is_pending_do_not_push_it_away():
    backoff = SpfBackoff(SETTINGS)
    backoff.event(0.0)
    run(backoff, 0.0)
    backoff.event(0.01)
    backoff.event(0.04)
    assert backoff.next_deadline() == pytest.approx(0.06)


def test_a_storm_longer_than_time_to_learn_waits_long_until_it_is_quiet_for_holddown():
    backoff = SpfBackoff(SETTINGS)
    for step in range(60):
        backoff.event(step * 0.01)
        run(backoff, step * 0.01)
    assert backoff.state is BackoffState.LONG_WAIT
    deadline = backoff.next_deadline()
    assert 1.4 < deadline < 1.6  # the first event in LONG_WAIT asked for it, one second before
    backoff.event(0.8)
    assert backoff.next_deadline() == deadline
    assert run(backoff, deadline)
    backoff.event(2.9)  # 2.1 s after the last event: quiet again
    assert run(backoff, 2.9)


def test_a_loss_is_never_delayed():
    backoff = SpfBackoff(SETTINGS)
    for step in range(60):
        backoff.event(step * 0.01)
        run(backoff, step * 0.01)
    backoff.urgent(0.61)
    assert run(backoff, 0.61)
