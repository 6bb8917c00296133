"""Reading ends whatever Redis does: also one that never answers does not hold up the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from types import SimpleNamespace

import pytest

from fared.sonic.databases import SonicDatabase
from fared.sonic.platform import SonicPlatform
from fared.sonic.reader import SonicReader

TURNS = 20
"""Of the loop, in which a first question reaches a frozen server."""


def platform(server):
    said = []
    log = SimpleNamespace(info=lambda *_, **__: None, warning=lambda event, **_: said.append(event))
    return SonicPlatform(server.databases, log, lambda **_: None)


async def ended(task):
    await asyncio.wait({task}, timeout=60)
    return task.done()


def pause(server):
    os.kill(server.process.pid, signal.SIGSTOP)


@pytest.mark.parametrize("server", ["", "KEA"], indirect=True, ids=["polled", "notified"])
@pytest.mark.parametrize("frozen", [False, True])
async def test_while_it_waits_for_the_next_reading(server, frozen):
    server.port("Ethernet0", 100_000)
    here = platform(server)
    await here.start(lambda: None)
    async with asyncio.timeout(60):
        await here.reader.ready.wait()
    task = here._task
    if frozen:
        pause(server)
    here.stop()
    assert await ended(task)


async def test_while_redis_owes_an_answer(server):
    """Redis is frozen before it is asked: the first reading waits for its answer."""
    pause(server)
    here = platform(server)
    starting = asyncio.create_task(here.start(lambda: None))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    task = here._task
    assert not task.done()
    here.stop()
    assert await ended(task)
    starting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await starting


class Swallowing:
    """Connections of a library that makes another error of a cancellation."""

    def __init__(self):
        self.asked, self.closed = asyncio.Event(), False

    async def keys(self, _, __):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the connection was closed") from None
        yield []

    async def close(self):
        self.closed = True


async def test_with_a_library_that_swallows_a_cancellation():
    heard, made = [], Swallowing()
    clock = asyncio.get_running_loop().time
    databases = {"CONFIG_DB": SonicDatabase("/none", 4, "|")}
    reader = SonicReader(databases, lambda: None, heard.append, clock, lambda _: made)
    task = asyncio.create_task(reader.run())
    async with asyncio.timeout(60):
        await made.asked.wait()
    task.cancel()
    reader.stop()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert task.done()
    assert made.closed
    assert heard == [], "the end is no loss of Redis"


async def test_while_it_waits_to_try_again(server):
    server.stop()
    here = platform(server)
    await here.start(lambda: None)
    assert here.error
    task = here._task
    here.stop()
    assert await ended(task)
    server.start()
