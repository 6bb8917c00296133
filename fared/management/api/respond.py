"""Answers commands with documents as JSON text, for the control socket and the HTTP server.

Clients take turns: for any number of clients one slice of one answer is computed in each turn of
the event loop, so the rest of the daemon waits for one slice at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fared.management.api.encode import SLICE, slices
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import Built
from fared.management.documents.sliced import Work

Json = dict[str, Any]
T = TypeVar("T")
Dispatcher = Callable[[str, Json], Built | Work[Built] | Awaitable[Built]]
"""``(command, args) -> document``, work that builds it, or a coroutine. Raises CommandError."""
ErrorHook = Callable[[str, Exception], None]


class Responder:
    """Answers commands through ``dispatcher``, for any number of clients of any number of servers.

    ``on_error`` receives exceptions that clients only see as ``internal``; ``clock`` is in seconds.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        on_error: ErrorHook | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dispatcher = dispatcher
        self._on_error = on_error
        self._clock = clock
        self._turn = asyncio.Lock()

    async def document(self, command: str, args: Json) -> Built:
        """Run one command. Raises CommandError, with code ``internal`` for other exceptions."""
        try:
            async with self._my_turn():
                document = self._dispatcher(command, args)
            if isinstance(document, Generator):
                return await self.built(document)
            return await document if isinstance(document, Awaitable) else document
        except CommandError:
            raise
        except Exception as error:
            raise self.failed(command, error) from error

    async def built(self, work: Work[T]) -> T:
        """Do work in slices of ``SLICE`` seconds, and return its value."""
        result = None
        while True:
            async with self._my_turn():
                end, step = self._clock() + SLICE, None
                try:
                    while step is None and self._clock() < end:
                        step, result = work.send(result), None
                except StopIteration as done:
                    value: T = done.value
                    return value
            if step is not None:
                result = await asyncio.to_thread(step)

    async def stream(self, command: str, args: Json) -> AsyncGenerator[bytes, None]:
        """Run one command and yield its document as JSON text, slice by slice.

        Raises CommandError, possibly after the first slice: then the answer must be aborted.
        """
        document = await self.document(command, args)
        remaining = slices(document, self._clock)
        while True:
            try:
                async with self._my_turn():
                    text = next(remaining, None)
            except Exception as error:
                raise self.failed(command, error) from error
            if text is None:
                return
            yield text

    @asynccontextmanager
    async def _my_turn(self) -> AsyncGenerator[None, None]:
        """Work until the next turn of the loop; then the next client may work."""
        async with self._turn:
            yield
            await asyncio.sleep(0)

    def failed(self, what: str, error: Exception) -> CommandError:
        """Report an exception to the daemon and return the answer for the client."""
        if self._on_error is not None:
            self._on_error(what, error)
        message = f"{what} failed: {type(error).__name__}; see the daemon's log"
        return CommandError("internal", message)
