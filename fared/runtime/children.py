"""Child processes of the daemon: how they start, answer and end; ``child`` is their own side.

A child reads code from where fared is installed and from nowhere else: by default ``python -m``
looks into the working directory first, where a daemon that was started by hand may find files of
others. It inherits the environment and standard error, and of the descriptors its socket or pipes.
There are three kinds: servers, which ``supervisor`` starts again when they end, programs that
answer one question, and forks, which have a copy of this process's memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import warnings
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, NoReturn

from fared.runtime.child import end_with_parent, give_way
from fared.runtime.connection import FrameConnection, PacketConnection

_DIRECTORY: Final = "/"
_END_WITHIN: Final = 1.0
"""Seconds for a server to end by itself, once its socket has closed."""
_FORK_NICE: Final = 10


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module in this interpreter, with no directory added (-P)."""
    return (sys.executable, "-P", "-m", module, *arguments)


def reason(status: int) -> str:
    """Return how a process ended in words: by its exit code, or by a signal, whose is negative."""
    if status >= 0:
        return f"exit code {status}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


class ServerProcess(NamedTuple):
    """A process that serves the daemon, and our end of its socket."""

    process: subprocess.Popen[bytes]
    connection: FrameConnection | PacketConnection

    @classmethod
    def started(cls, module: str, most: int | None = None) -> ServerProcess:
        """Start a process, which waits for messages (``child.serve_daemon``). Raises OSError.

        Messages are packets, or frames of at most ``most`` bytes.
        """
        kind = socket.SOCK_SEQPACKET if most is None else socket.SOCK_STREAM
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        with theirs:
            try:
                process = subprocess.Popen(
                    python(module, str(theirs.fileno())),
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    cwd=_DIRECTORY,
                )
            except OSError:
                ours.close()
                raise
        connection = PacketConnection(ours) if most is None else FrameConnection(ours, most, most)
        return cls(process, connection)

    def end(self, *, kill: bool) -> int:
        """Close the socket, which ends the process; return its exit status."""
        self.connection.close()
        if kill:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(_END_WITHIN)
        self.process.kill()
        return self.process.wait()


class Answered(NamedTuple):
    """What a program has said, and its exit status."""

    output: bytes
    errors: str
    status: int


async def ask(
    command: tuple[str, ...],
    within: float,
    question: Callable[[StreamWriter], Awaitable[None]] | None = None,
) -> Answered:
    """Run a program that answers one question, and wait for its end.

    ``question`` writes to its standard input, which is then closed. Raises OSError, or TimeoutError
    after so many seconds; then the program has been killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL if question is None else PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=_DIRECTORY,
    )
    try:
        async with asyncio.timeout(within):
            output, errors, _ = await asyncio.gather(
                _read(process.stdout), _read(process.stderr), _write(process.stdin, question)
            )
            return Answered(output, errors.decode(errors="replace"), await process.wait())
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _read(pipe: StreamReader | None) -> bytes:
    assert pipe is not None
    return await pipe.read()


async def _write(
    pipe: StreamWriter | None, question: Callable[[StreamWriter], Awaitable[None]] | None
) -> None:
    if pipe is None or question is None:
        return
    # a program that has read enough to refuse says why
    with contextlib.suppress(ConnectionError):
        await question(pipe)
    pipe.close()


class Fork:
    """A copy of this process, with its memory as it is at that moment, which does some work."""

    def __init__(self, work: Callable[[], object], within: int) -> None:
        """Start it; it is killed after so many seconds. Raises OSError."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads: it calls none of them
            self.pid = os.fork()
        if self.pid == 0:
            _work(work, within)

    def ended(self) -> int | None:
        """Return the exit status, None while it runs; to be called until it is known."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def kill(self) -> int:
        """End it at once; return the exit status."""
        os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    async def end(self, within: float) -> int:
        """Wait so many seconds for its end, then kill it; return the exit status."""
        waiting = asyncio.ensure_future(asyncio.to_thread(os.waitpid, self.pid, 0))
        done, _ = await asyncio.wait([waiting], timeout=within)
        if not done:
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode((await waiting)[1])


def _work(work: Callable[[], object], within: int) -> NoReturn:
    """In a fork: do the work, and end. The exit code is 1 if it raised an exception."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)  # it is the parent's
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(within)
        end_with_parent()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # sockets that the parent may close
        gc.disable()
        give_way(_FORK_NICE)
        work()
        code = 0
    finally:
        os._exit(code)
