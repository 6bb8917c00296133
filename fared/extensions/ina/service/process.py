"""Starting and watching ``fared-jobs``, and the messages to and from it.

It has no state that the daemon could not tell again: if it ends, it is started again, after growing
delays, and gets all that is known. What waits to be told is kept by its subject, so that there is
never more of it than is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec

from fared.extensions.ina.control.exchange import FromJobs, ToJobs
from fared.runtime import children

Told = Callable[[], ToJobs | None]
"""Makes a message when it is its turn, of what is known then; None: there is nothing to tell."""
_FIRST_DELAY: Final = 0.1
_LONGEST_DELAY: Final = 30.0
_STEADY: Final = 60.0
"""A process that ran for so many seconds starts again without delay."""
_SIZE = struct.Struct("!I")


class JobsProcess:
    """The process. ``begins`` is called when it has started, to tell what is known."""

    def __init__(
        self,
        begins: Callable[[], None],
        took: Callable[[FromJobs], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        self._begins, self._took, self._log = begins, took, log
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Hashable, Told] = {}
        self._wake = asyncio.Event()
        self._process: Process | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(FromJobs).decode
        self._task = asyncio.create_task(self._run())

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return None if self._process is None else self._process.pid

    def tell(self, subject: Hashable, told: Told) -> None:
        """Send a message, in place of one of the same subject that waits."""
        self._waiting[subject] = told
        self._wake.set()

    def stop(self) -> None:
        """End the process."""
        self._task.cancel()
        if self._process is not None:
            self._kill(self._process)

    # -- life of the process ----------------------------------------------------------------

    async def _run(self) -> None:
        delay = 0.0
        while True:
            began = self._loop.time()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve()
            status = await self._ended()
            if self._loop.time() - began > _STEADY:
                delay = 0.0
            self._log.error("ina-jobs-process-ended", status=status, effect="started again")
            await asyncio.sleep(delay)
            delay = min(_LONGEST_DELAY, 2 * delay or _FIRST_DELAY)

    async def _serve(self) -> None:
        """Run the process until it ends. Raises OSError or IncompleteReadError then."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = children.python("fared.extensions.ina.jobd", str(theirs.fileno()))
            self._process = await asyncio.create_subprocess_exec(
                *command, pass_fds=(theirs.fileno(),), stdin=DEVNULL, cwd=children.DIRECTORY
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        self._waiting.clear()
        self._begins()
        sending = asyncio.create_task(self._send(writer))
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                self._took(self._decode(await reader.readexactly(size)))
        finally:
            sending.cancel()
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        """Send what waits, a message in each turn of the loop, as fast as the process reads."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                subject = next(iter(self._waiting))
                message = self._waiting.pop(subject)()
                if message is not None:
                    text = self._encode(message)
                    writer.write(_SIZE.pack(len(text)) + text)
                    await writer.drain()
                await asyncio.sleep(0)

    async def _ended(self) -> int | None:
        """End the process, if it runs, and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        self._kill(process)
        return await process.wait()

    def _kill(self, process: Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
