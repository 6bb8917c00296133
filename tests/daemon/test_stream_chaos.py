"""Engines and neighbors do anything in any order: nothing fails, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from pathlib import Path
from typing import Any

import pytest

from fared.core.streams import (
    CloseStream,
    ReadStream,
    SendStream,
    StreamClosed,
    StreamId,
    StreamKey,
    StreamOpened,
    Transport,
)
from tests.daemon.stream_ends import End, Ends

pytestmark = pytest.mark.netns

SEEDS = range(60) if os.environ.get("FARED_TEST_SOAK") else range(3)
STEPS = 400
KEYS = (None, None, StreamKey(b"key"))


class Wild:
    """The engine above an end, which asks for anything; ``remote`` is the other end's address."""

    def __init__(self, end: End, remote: str, rng: random.Random) -> None:
        self.end, self.remote, self.rng = end, remote, rng
        self.closed: set[StreamId] = set()
        """Those that it has closed itself, and those that it was told of."""

    @property
    def streams(self) -> list[StreamId]:
        """All that there were, also those that are closed."""
        return [one.stream for one in self.end.told(StreamOpened)]

    def act(self) -> None:
        rng, end = self.rng, self.end
        transport = Transport(self.remote, key=rng.choice(KEYS), ttl=rng.choice((None, 1, 255)))
        size = rng.choice((1, 19, 5_000, 200_000))
        if not self.streams or rng.random() < 0.25:
            end.connect(transport) if rng.random() < 0.6 else end.listen(transport)
            return
        number = rng.choice(self.streams)
        match rng.randrange(8):
            case 0:
                end.do(CloseStream(number))
                self.closed.add(number)
            case 1:
                self._break(number)
            case 2:
                end.edge.read_quiet()
            case 3 | 4:
                end.do(ReadStream(number, wanted=rng.random() < 0.6))
            case _:
                end.do(SendStream(number, bytes(size)))

    def _break(self, number: StreamId) -> None:
        """What the network or the neighbor may do to a connection."""
        found = self.end.edge._streams.get(number)
        if found is not None and self.rng.random() < 0.3:
            with contextlib.suppress(OSError):
                found.sock.shutdown(self.rng.randrange(3))

    def check(self, known: int) -> int:
        """Nothing is told of a stream that is closed; return how many inputs there were."""
        heard = self.end.heard
        for event in heard[known:]:
            assert event.stream not in self.closed, event
            if isinstance(event, StreamClosed):
                self.closed.add(event.stream)
        return len(heard)


@pytest.mark.parametrize("seed", SEEDS)
async def test_any_order_of_requests_and_failures_is_survived(seed):
    rng = random.Random(seed)
    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    before = descriptors()
    ends = Ends()
    try:
        wild = [Wild(ends.left, "10.0.0.2", rng), Wild(ends.right, "10.0.0.1", rng)]
        known = [0, 0]
        for _ in range(STEPS):
            number = rng.randrange(2)
            wild[number].act()
            for _ in range(rng.choice((0, 0, 1, 3))):
                await asyncio.sleep(0)
            known = [one.check(so_far) for one, so_far in zip(wild, known, strict=True)]
        assert all(one.streams for one in wild)
    finally:
        ends.close()
    await asyncio.sleep(0)
    assert failed == []
    assert descriptors() == before


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
