"""Server-sent events: what changed in the fabric, for browsers that watch.

While anybody watches, a task takes an image of the fabric four times a second and sends all of them
the same events:

- ``begin``: now read ``show fabric``; the next events are about what changes from here on;
- ``delta`` (``FabricDelta``): links that changed;
- ``missing`` (``FabricMissing``): other links are missing than before;
- ``weakest`` (``FabricWeakest``): another pair is the weakest, or has another capacity;
- ``reset``: routers or places changed: read ``show fabric`` again;
- ``change``: a computation changed routes, or the kernel has them: read ``show convergence``.

A delta has present values, so one that is about the time before ``show fabric`` was read does no
harm. Images are made in a thread, of frozen blocks, and compared for a few milliseconds in
one turn of the loop. All pairs are compared beside that, one root in a turn, and then not for
twenty times as long as it took. A client that does not keep up
gets a ``reset`` in place of what it missed. Nothing runs, and nothing is kept, if nobody watches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator
from typing import TypeVar

from fared.management.api.encode import SLICE, encode
from fared.management.api.fabric_changes import changed_links, changed_nodes, is_other
from fared.management.api.seats import Seats
from fared.management.documents.context import ViewContext
from fared.management.documents.fabric import FabricDelta, FabricLink, FabricMissing, FabricWeakest
from fared.management.documents.sliced import Work, finished
from fared.management.documents.views.fabric import missing_of
from fared.management.documents.views.fabric_image import FabricImage, image_of, sight
from fared.management.documents.views.lost import lost_links
from fared.management.documents.views.weakest import weakest_pair

T = TypeVar("T")
INTERVAL = 0.25
"""Seconds between two images."""
KEEPALIVE = 15.0
"""Seconds without an event, after which a comment shows that the stream is alive."""
WEAKEST_PAUSE = 1.0
"""Seconds between two comparisons of all pairs, at least."""
_WEAKEST_TIMES = 20.0
"""And at least so many times as long as the last one took."""
MOST_WATCHERS = 16
"""Few: each may read the whole fabric again and again."""
_BEHIND = 32
"""Events that wait for a client, at most."""
_COMMENT = b":\n\n"


class FabricWatch:
    """The watchers, and the task that works for them; ``context`` returns the present state."""

    def __init__(
        self, context: Callable[[], ViewContext], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._context = context
        self._clock = clock
        self._seats = Seats(MOST_WATCHERS)
        self._queues: set[asyncio.Queue[bytes]] = set()
        self._task: asyncio.Task[None] | None = None
        self._image: FabricImage | None = None
        self._runs = (0, 0.0)
        self._lost = 0
        self._missing = True

    async def events(self, client: Hashable) -> AsyncGenerator[bytes, None]:
        """Yield events as text, until the client leaves. Raises CommandError: too many watch."""
        seat = self._seats.take(client)
        queue: asyncio.Queue[bytes] = asyncio.Queue(_BEHIND)
        self._queues.add(queue)
        try:
            if self._task is None:
                self._image, self._missing = None, True
                self._runs = self._last_run()
                self._task = asyncio.create_task(self._run(), name="watch")
            yield b"retry: 1000\n" + event("begin", {})
            while True:
                try:
                    yield await asyncio.wait_for(queue.get(), KEEPALIVE)
                except TimeoutError:
                    yield _COMMENT
                self._seats.read(seat)
        finally:
            self._seats.free(seat)
            self._queues.discard(queue)
            if not self._queues and self._task is not None:
                self._task.cancel()
                self._task = self._image = None

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self._follow_weakest(), name="weakest")
            while True:
                await self._step()
                await asyncio.sleep(INTERVAL)

    async def _step(self) -> None:
        """Send what changed since the last step."""
        old = self._image
        new = await asyncio.to_thread(image_of, sight(self._context(), old), old)
        self._image = new
        if old is not None:
            if is_other(old, new):
                self._send(event("reset", {}))
            else:
                await self._send_changes(old, new)
        runs = self._last_run()
        if runs != self._runs:
            self._runs = runs
            self._send(event("change", {}))
        elif old is not None and old.shape.ends is new.shape.ends:
            return
        await self._send_missing(old, new)

    async def _send_changes(self, old: FabricImage, new: FabricImage) -> None:
        links: list[FabricLink] = []
        lost: list[tuple[str, str]] = []
        end = self._clock() + SLICE
        for node in changed_nodes(old, new):
            for row in changed_links(old, new, node):
                if isinstance(row, tuple):
                    lost.append(row)
                else:
                    links.append(row)
            if self._clock() >= end:
                await asyncio.sleep(0)
                end = self._clock() + SLICE
        if links or lost:
            self._send(event("delta", FabricDelta(at=time.time(), links=links, lost=lost)))

    async def _send_missing(self, old: FabricImage | None, new: FabricImage) -> None:
        """Send what is missing, if other links are there, or are known to be lost, than before."""
        context = self._context()
        for _ in context.router.changes.settled():
            await asyncio.sleep(0)
        lost = finished(lost_links(context))
        version = context.router.changes.lost.version
        same = old is None or (version == self._lost and old.shape.ends is new.shape.ends)
        self._lost = version
        if same:
            return
        missing = await asyncio.to_thread(missing_of, new, lost, context.unix)
        if missing or self._missing:
            self._send(event("missing", FabricMissing(missing=missing)))
        self._missing = bool(missing)

    async def _follow_weakest(self) -> None:
        """Tell which pair is the weakest, after changes of routes."""
        runs = self._last_run()
        while True:
            await asyncio.sleep(INTERVAL)
            if self._image is None or runs == self._last_run():
                continue
            runs, began = self._last_run(), self._clock()
            found = await _turns(weakest_pair(self._context(), self._image))
            self._send(event("weakest", FabricWeakest(weakest=found)))
            took = self._clock() - began
            await asyncio.sleep(max(WEAKEST_PAUSE, took * _WEAKEST_TIMES))

    def _last_run(self) -> tuple[int, float]:
        journal = self._context().router.journal
        at = journal.spf_runs[-1].at if journal.spf_runs else 0.0
        return sum(journal.counts.values()) + len(journal.changes), at

    def _send(self, text: bytes) -> None:
        for queue in self._queues:
            if queue.full():
                for _ in _drained(queue):
                    pass
                queue.put_nowait(event("reset", {}))
            else:
                queue.put_nowait(text)


async def _turns(work: Work[T]) -> T:
    """Do work, a step in each turn of the loop."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            value: T = done.value
            return value
        await asyncio.sleep(0)


def _drained(queue: asyncio.Queue[bytes]) -> Iterator[bytes]:
    while not queue.empty():
        yield queue.get_nowait()


def event(name: str, data: object) -> bytes:
    """Format an event (HTML Living Standard, 9.2): JSON has no line ends."""
    return b"event: " + name.encode() + b"\ndata: " + encode(data) + b"\n\n"
