"""``monitor``: writes the events that a client follows, a line each, as long as it listens.

A client that does not read fills the buffers of its socket; then this task waits, without a limit,
while the follower's queue drops what is too much, until another needs its place (``seats``). A
client ends the stream by closing the connection, and the daemon by ``stopping``: what is queued
then is sent first.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from fared.management.api.caller import PEER
from fared.management.api.encode import encode
from fared.management.api.feed import EventFeed, Follower
from fared.management.api.respond import Json

STREAM: Final = "fared-events/1"
_BATCH: Final = 64
"""Events that are encoded in one turn of the loop: about a millisecond."""


async def stream_events(
    feed: EventFeed,
    args: Json,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    stopping: asyncio.Event,
) -> None:
    """Send events until client or daemon end. Raises CommandError before the first line."""
    peer = PEER.get()
    follower = feed.follow(args, None if peer is None else peer.user)
    ends = (
        asyncio.create_task(_closed(reader)),
        asyncio.create_task(stopping.wait()),
    )
    try:
        writer.write(encode({"ok": True, "stream": STREAM}) + b"\n")
        await writer.drain()
        while await _something(follower, ends):
            await _send(follower, writer)
            feed.seats.read(follower.seat)
        if stopping.is_set():
            while records := follower.take(_BATCH):
                await _write(records, writer)
    finally:
        feed.leave(follower)
        for task in ends:
            task.cancel()


async def _something(follower: Follower, ends: tuple[asyncio.Task[object], ...]) -> bool:
    """Wait for events; return False when client or daemon end."""
    arrived = asyncio.create_task(follower.arrived())
    try:
        await asyncio.wait((arrived, *ends), return_when=asyncio.FIRST_COMPLETED)
        return not any(task.done() for task in ends)
    finally:
        arrived.cancel()


async def _send(follower: Follower, writer: asyncio.StreamWriter) -> None:
    await _write(follower.take(_BATCH), writer)
    await asyncio.sleep(0)


async def _write(records: list[Json], writer: asyncio.StreamWriter) -> None:
    writer.write(b"".join(encode(record) + b"\n" for record in records))
    await writer.drain()


async def _closed(reader: asyncio.StreamReader) -> None:
    """Wait until the client closes the connection; what it says meanwhile is ignored."""
    with contextlib.suppress(OSError):
        while await reader.read(1 << 12):
            pass
