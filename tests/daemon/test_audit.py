"""Audits: one at a time; a dump that a change overtook is repeated, one that fails is skipped."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from types import SimpleNamespace

from fared.core.ids import Prefix
from fared.daemon.loop import audit as module
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.defence import Defence
from fared.kernel.fibdump import FibReading
from fared.paths.fib.model import FibState
from fared.router import events
from tests.waiting import loop_until

EXPECTED: dict[Prefix, int] = {}
"""The routes that the router believes to be in the kernel."""


class Table:
    """A table whose reads run a function meanwhile, or fail, in order."""

    def __init__(self) -> None:
        self.written = 0
        self.foreign: dict[object, int] = {}
        self.turns: list[object] = []
        self.readings = 0

    async def read(self, expected: dict[Prefix, int] | None = None) -> FibReading:
        assert expected is EXPECTED
        self.readings += 1
        turn = self.turns.pop(0) if self.turns else None
        if isinstance(turn, BaseException):
            raise turn
        if turn is not None:
            turn()
        await asyncio.sleep(0)
        return SimpleNamespace(state=FibState())

    def accept(self, reading: FibReading) -> FibState:
        return reading.state


class World:
    """An auditor and its surroundings."""

    def __init__(self) -> None:
        self.table = Table()
        self.fed: list[events.Input] = []
        self.said: list[str] = []
        self.links = 0
        self.done: Counter[str] = Counter()
        log = SimpleNamespace(
            warning=lambda event, **_: self.said.append(event),
            error=lambda event, **_: self.said.append(event),
        )
        self.auditor = Auditor(
            self.table,
            expected=lambda: EXPECTED,
            feed=self.fed.append,
            drift=lambda: 0,
            poll=lambda: None,
            links=lambda: self.links,
            log=log,
            defence=Defence(log),
            done=self.done,
        )
        self.auditor.start()


def busy() -> OSError:
    return OSError(errno.EBUSY, "busy")


async def test_requests_during_an_audit_cause_one_more_audit():
    world = World()
    world.auditor.request("foreign-change")
    world.auditor.request("foreign-change")
    world.auditor.request("periodic")
    await loop_until(lambda: world.fed)
    assert len(world.fed) == 1
    assert world.done == {"foreign-change": 1, "periodic": 1}
    world.auditor.stop()


async def test_a_dump_overtaken_by_our_own_operation_or_a_link_is_repeated(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.0)
    world = World()

    def write() -> None:
        world.table.written += 1

    def lose_link() -> None:
        world.links += 1

    world.table.turns = [write, lose_link]
    world.auditor.request("periodic")
    await loop_until(lambda: world.fed)
    assert world.table.readings == 3
    assert len(world.fed) == 1
    world.auditor.stop()


async def test_a_failed_dump_skips_one_audit_and_is_logged_at_a_limited_rate(
    monkeypatch,
):
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.0)
    monkeypatch.setattr(module, "GAP", 0.0)
    world = World()
    for skipped in (1, 2):
        world.table.turns = [busy() for _ in range(module._ATTEMPTS)]
        world.auditor.request("periodic")
        await loop_until(lambda wanted=skipped: world.auditor.skipped == wanted)
    assert world.said == ["audit-skipped"]
    assert world.fed == []
    world.auditor.request("periodic")
    await loop_until(lambda: world.fed)
    world.auditor.stop()


async def test_an_unexpected_exception_does_not_end_the_audits():
    world = World()
    world.table.turns = [ZeroDivisionError("what")]
    world.auditor.request("periodic")
    await loop_until(lambda: world.said == ["internal-error"])
    world.auditor.request("periodic")
    await loop_until(lambda: world.fed)
    world.auditor.stop()
