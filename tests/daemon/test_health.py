"""Periodic measurements of load: the router's inputs, also if the kernel does not answer."""

from __future__ import annotations

import asyncio
import errno
from types import SimpleNamespace

import pytest

from fared.daemon.loop import health as module
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.health import Health
from fared.daemon.loop.periodic import Periodic
from fared.daemon.loop.runtime import Runtime
from fared.paths.weights.adaptation import AdaptationSettings
from fared.protocols.igp.events import LoadsMeasured

ENOUGH = 3


class Source:
    """Answers of the kernel, in order: loads, or an error."""

    def __init__(self) -> None:
        self.answers: list[dict[int, float] | OSError] = []
        self.old: list[int] = []
        self.asked: list[float] = []
        self.enough = asyncio.Event()

    def measure(self, now: float) -> dict[int, float]:
        self.asked.append(now)
        if len(self.asked) == ENOUGH:
            self.enough.set()
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, OSError):
            raise answer
        return answer

    def expired(self, now: float, stale_after: float) -> list[int]:
        found, self.old = self.old, []
        return found

    def close(self) -> None:
        pass


class Host:
    """A daemon reduced to the parts that measurements use."""

    def __init__(self, period: float) -> None:
        self.fed: list[LoadsMeasured] = []
        self.said: list[str] = []
        self.runtime = Runtime(0.0, 1, "test.yaml", 0.0)
        self.monitor = SimpleNamespace(refresh=lambda: None)
        self.notifier = SimpleNamespace(watchdog_interval=None)
        self.operation = SimpleNamespace(watches_links=False, check_clock=lambda: None)
        self.log = SimpleNamespace(
            info=lambda event, **_: self.said.append(event),
            warning=lambda event, **_: self.said.append(event),
        )
        self.defence = Defence(self.log)
        self.auditor = SimpleNamespace(request=lambda _: None)
        self.sysctls = SimpleNamespace(check=lambda: None)
        self.runner = SimpleNamespace(feed=self.fed.append, router=None)
        self.measure_every(period)

    def health(self) -> Health:
        return Health(
            self.runner,
            self.runtime,
            self.operation,
            jobs=Periodic(self.defence.guard),
            monitor=self.monitor,
            sysctls=self.sysctls,
            auditor=self.auditor,
            notifier=self.notifier,
            look_for_floods=lambda: None,
            keep_lost_links=lambda: None,
            log=self.log,
        )

    def measure_every(self, period: float) -> None:
        adaptation = AdaptationSettings(measure_period=period)
        settings = SimpleNamespace(solver=SimpleNamespace(adaptation=adaptation))
        self.runner.router = SimpleNamespace(settings=settings)


@pytest.fixture
def source(monkeypatch):
    made = Source()
    monkeypatch.setattr(module, "LoadSource", lambda: made)
    return made


def measured(
    host: Host, source: Source, *answers: dict[int, float] | OSError
) -> list[LoadsMeasured]:
    """Measure once per answer; return the router's inputs."""
    source.answers += answers

    async def work() -> None:
        health = host.health()
        for _ in answers:
            health.measure_load()

    asyncio.run(work())
    return host.fed


def test_the_router_receives_every_load(source):
    host = Host(1.0)
    told = measured(host, source, {3: 5.0, 4: 0.0})
    assert told == [LoadsMeasured({3: 5.0, 4: 0.0})]
    assert host.runtime.utilized == {3: 5.0, 4: 0.0}
    assert [load for _, load in host.runtime.load_history.samples(3)][-1:] == [5.0]


def test_a_kernel_that_does_not_answer_is_logged_once_and_loads_stay(source):
    host = Host(1.0)
    full = OSError(errno.ENOBUFS, "No buffer space available")
    told = measured(host, source, {3: 5.0}, full, full, {3: 6.0}, full)
    assert told == [LoadsMeasured({3: 5.0}), LoadsMeasured({3: 6.0})]
    assert host.said == ["load-not-measured", "load-measured-again", "load-not-measured"]
    assert host.runtime.load_samples == {"ok": 2, "failed": 3}
    assert host.runtime.utilized == {3: 6.0}


def test_a_load_that_is_too_old_is_withdrawn(source):
    host = Host(1.0)
    measured(host, source, {3: 5.0, 4: 7.0})
    source.old = [4]
    told = measured(host, source, OSError(errno.EBUSY, "busy"))
    assert told[1:] == [LoadsMeasured({4: None})]
    assert host.runtime.utilized == {3: 5.0}


def test_a_changed_period_applies_from_the_reload_on(source):
    host = Host(3600.0)

    async def work() -> float:
        health = host.health()
        health.reconfigured()  # before the start there is nothing to do
        health.start()
        health.reconfigured()
        assert source.asked == []
        host.measure_every(0.01)
        reloaded = asyncio.get_running_loop().time()
        health.reconfigured()
        async with asyncio.timeout(20):
            await source.enough.wait()
        health.stop()
        return reloaded

    reloaded = asyncio.run(work())
    turns = enumerate(source.asked, 1)
    assert all(asked - reloaded >= turn * 0.01 - 1e-4 for turn, asked in turns)


async def test_a_late_loop_is_remembered_until_the_next_scrape(monkeypatch):
    """Afterwards it is in time, a second later as much as 19 seconds later."""
    loop = asyncio.get_running_loop()
    host = Host(1.0)
    health, lags = host.health(), host.runtime.recent_lags
    now = 100.0
    monkeypatch.setattr(loop, "time", lambda: now)
    monkeypatch.setattr(health._jobs, "due", lambda _: now + 1.0)
    for late, worst in [(0.0, 0.0), (1.5, 1.5), *[(0.0, 1.5)] * 19, (0.25, 0.25)]:
        health._lag_due = now
        now += late
        health._measure_lag()
        assert max(lags) == worst
        assert host.runtime.event_loop_lag == late
