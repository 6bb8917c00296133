"""One connection to a Redis server by its socket: commands and their replies, or notifications.

Closing it needs no answer of anybody: whoever waits for a reply has a ConnectionError at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from fared.sonic.resp import Argument, Reply, ReplyReader, RespError, pack

PATIENCE = 2.0
"""Seconds for an answer."""


class RedisSocket(asyncio.Protocol):
    """``pushed`` has each reply that nobody has asked for; ``lost`` is called once at the end."""

    def __init__(
        self,
        pushed: Callable[[Reply], None] = lambda _: None,
        lost: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._pushed, self._lost = pushed, lost
        self._reader = ReplyReader()
        self._wanted: deque[tuple[int, list[Reply], asyncio.Future[list[Reply]]]] = deque()
        self._transport: Any = None
        self.error: str | None = None
        """Why it is of no use; None: it is open."""

    @classmethod
    async def open(
        cls,
        path: str,
        pushed: Callable[[Reply], None] = lambda _: None,
        lost: Callable[[str], None] = lambda _: None,
    ) -> RedisSocket:
        """Connect. Raises OSError."""
        async with asyncio.timeout(PATIENCE):
            loop = asyncio.get_running_loop()
            _, made = await loop.create_unix_connection(lambda: cls(pushed, lost), path)
        return made

    async def ask(self, *commands: Sequence[Argument]) -> list[Reply]:
        """Return the replies to commands. Raises OSError, also if there are none in time."""
        if self.error is not None:
            raise ConnectionError(self.error)
        waiter: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._wanted.append((len(commands), [], waiter))
        self._transport.write(pack(commands))
        try:
            async with asyncio.timeout(PATIENCE):
                return await waiter
        except BaseException:  # a later reply would be taken for that of the next command
            self.close("an answer did not come, or nobody waited for it")
            raise

    def close(self, error: str = "closed") -> None:
        """Close without waiting for anything."""
        self._end(error)
        self._transport.abort()

    # -- asyncio.Protocol -------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - of several kinds
        """Have a transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Give replies to those who wait for them."""
        if self.error is not None:
            return
        try:
            for reply in self._reader.feed(data):
                self._take(reply)
        except RespError as error:
            self.close(f"no Redis: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who wait."""
        self._end(str(exc or "closed by Redis"))

    def _take(self, reply: Reply) -> None:
        if not self._wanted:
            self._pushed(reply)
            return
        count, replies, waiter = self._wanted[0]
        replies.append(reply)
        if len(replies) == count:
            self._wanted.popleft()
            if not waiter.done():
                waiter.set_result(replies)

    def _end(self, error: str) -> None:
        if self.error is not None:
            return
        self.error = error
        for _, _, waiter in self._wanted:
            if not waiter.done():
                waiter.set_exception(ConnectionError(error))
        self._wanted.clear()
        self._lost(error)
