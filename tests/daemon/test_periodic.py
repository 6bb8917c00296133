"""Periodic jobs: when they run, and in how many wakeups."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from fared.daemon.loop import periodic
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.periodic import Periodic
from tests.daemon.pump import VirtualLoop

START = 1000.0


class Jobs:
    """Jobs on a virtual clock; ``ran`` has each run, with seconds since the start."""

    def __init__(self, **intervals: float) -> None:
        self.clock = SimpleNamespace(now=START)
        self.loop = VirtualLoop(self.clock)
        self.defence = Defence(SimpleNamespace(error=lambda *_, **__: None))
        original = periodic.asyncio.get_running_loop
        periodic.asyncio.get_running_loop = lambda: self.loop
        try:
            self.jobs = Periodic(self.defence.guard)
        finally:
            periodic.asyncio.get_running_loop = original
        self.ran: list[tuple[float, str]] = []
        self.wakeups = 0
        for name, interval in intervals.items():
            self.add(name, interval)

    def add(self, name: str, interval: float) -> None:
        self.jobs.every(interval, name, lambda: self.ran.append((self.since(), name)))

    def since(self) -> float:
        return round(self.clock.now - START, 6)

    def run(self, until: float) -> None:
        """Advance the clock to this many seconds after the start."""
        while (due := self.loop.due()) <= START + until:
            self.clock.now = max(self.clock.now, due)
            self.wakeups += 1
            self.loop.fire()
        self.clock.now = START + until


def test_alone_a_job_runs_at_multiples_of_its_interval():
    jobs = Jobs(load=1.0)
    jobs.run(3.5)
    assert jobs.ran == [(1.0, "load"), (2.0, "load"), (3.0, "load")]


def test_jobs_that_are_due_about_the_same_time_run_in_one_wakeup():
    jobs = Jobs(load=1.0, lag=1.0, speed=4.9)
    jobs.run(100.0)
    counts = Counter(name for _, name in jobs.ran)
    assert counts["load"] >= 100
    assert counts["speed"] >= 20
    assert jobs.wakeups == counts["load"] == counts["lag"] <= 102


def test_other_timers_share_their_wakeup_with_jobs_that_are_nearly_due():
    jobs = Jobs(load=1.0, clock=10.0)
    jobs.run(0.89)
    jobs.jobs.share(START + 0.89)
    assert jobs.ran == []
    jobs.run(0.95)
    jobs.jobs.share(START + 0.95)
    jobs.jobs.share(START + 0.95)
    assert jobs.ran == [(0.95, "load")]
    jobs.run(2.0)
    assert jobs.ran == [(0.95, "load"), (1.95, "load")]
    assert jobs.wakeups == 1


def test_a_job_counts_its_interval_from_the_beginning_of_the_wakeup_that_it_shared():
    jobs = Jobs(load=1.0)
    for woken, busy in ((0.9, 0.003), (1.8, 0.002), (2.7, 0.001)):
        jobs.run(woken + busy)  # the router sends its hellos before
        jobs.jobs.share(START + woken)
    assert [name for _, name in jobs.ran] == ["load"] * 3
    assert jobs.wakeups == 0


def test_missed_runs_are_not_repeated():
    jobs = Jobs(load=1.0)
    jobs.clock.now += 3.4
    jobs.run(4.5)
    assert jobs.ran == [(3.4, "load"), (4.0, "load")]


def test_a_job_of_the_same_name_replaces_the_former():
    jobs = Jobs(load=1.0)
    jobs.run(1.5)
    jobs.add("load", 2.0)
    assert jobs.jobs.due("load") == START + 3.5
    jobs.run(4.0)
    assert jobs.ran == [(1.0, "load"), (3.5, "load")]


def test_a_job_that_fails_is_counted_and_runs_again():
    jobs = Jobs(lag=1.0)
    jobs.jobs.every(1.0, "audit", [].pop)
    jobs.run(3.0)
    assert jobs.defence.counts["audit"] == 3
    assert [name for _, name in jobs.ran] == ["lag"] * 3


def test_after_a_stop_nothing_runs():
    jobs = Jobs(load=1.0)
    jobs.jobs.stop()
    jobs.run(5.0)
    assert jobs.ran == []
    assert jobs.wakeups == 0
