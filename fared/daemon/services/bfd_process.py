"""Starting and watching ``fared-bfd``, and the messages to and from it.

If it ends, or does not answer, another takes its place: at once, then with growing delays. So that
this is within the detection time of fast sessions, a spare process is started beforehand, which has
all its code and waits for its first message. Requests are not queued: the sessions that changed
are, and what is asked for is what is wanted when the socket takes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from fared.protocols.bfd.messages import (
    MAX_SIZE,
    VERSION,
    Answer,
    Ask,
    CloseSession,
    Greeting,
    OpenSession,
    Ready,
    Report,
    Request,
    SessionKey,
)
from fared.runtime import children

ASK_INTERVAL = 5.0
"""Seconds between two requests for counters, which also show that the process works."""
_ANSWER_WITHIN = 2 * ASK_INTERVAL
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 30.0
"""Seconds before the second start, and before any; the first one is at once."""
_STEADY = 60.0
"""A process that ran for so many seconds starts again without delay."""
_AT_ONCE = 256
"""Messages read in one turn of the loop."""
_END_WITHIN = 1.0
_SPARE_DELAY = 0.5
"""Seconds from the first message of a process to the start of its spare: sessions come first."""


class _Child(NamedTuple):
    """A process, and our end of its socket."""

    process: subprocess.Popen[bytes]
    sock: socket.socket

    @classmethod
    def started(cls) -> _Child:
        """Start a process, which waits for requests. Raises OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            process = subprocess.Popen(
                children.python("fared.kernel.bfdd", str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                cwd=children.DIRECTORY,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return cls(process, ours)

    def end(self, *, kill: bool) -> int:
        """Close the socket, which ends the process; return its exit status."""
        self.sock.close()
        if kill:
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(_END_WITHIN)
        self.process.kill()
        return self.process.wait()


class BfdSupervisor:
    """The process, while any session is wanted."""

    def __init__(
        self,
        answered: Callable[[Answer], None],
        everything: Callable[[], Iterable[SessionKey]],
        request: Callable[[SessionKey], OpenSession | CloseSession],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``everything`` lists the sessions; ``request`` is for the present wish for one."""
        self.priority = ""
        self.starts = 0
        self.reported_at = 0.0
        """When the last report arrived, in the time of the loop."""
        self._answered, self._everything, self._request, self._log = (
            answered,
            everything,
            request,
            log,
        )
        self._loop = asyncio.get_running_loop()
        self._child: _Child | None = None
        self._spare: _Child | None = None
        self._spare_ready = False
        self._unsent: dict[SessionKey, None] = {}
        self._delay = 0.0
        self._started_at = 0.0
        self._asked_at: float | None = None
        """When the first request was sent that has no answer yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.TimerHandle | None = None
        self._sparing: asyncio.TimerHandle | None = None
        self._stopped = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Answer).decode

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return None if self._child is None else self._child.process.pid

    @property
    def spare_pid(self) -> int | None:
        """The id of the process that is ready to take its place, None while there is none."""
        return self._spare.process.pid if self._spare is not None and self._spare_ready else None

    def sync(self, key: SessionKey) -> None:
        """Ask for what is wanted of a session."""
        self._unsent[key] = None
        if self._child is not None:
            self._push()
        elif self._timer is None and not self._stopped:
            self._start()

    def refresh(self) -> None:
        """Ask for a report now, which arrives in a later turn of the loop."""
        if self._child is not None:
            self._send(Ask())

    def stop(self) -> None:
        """End the process."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._close()
        spare = self._released_spare()
        if spare is not None:
            spare.end(kill=False)

    # -- life of the process ----------------------------------------------------------------

    def _start(self) -> None:
        self._timer = None
        try:
            self._child = self._next()
        except OSError as error:
            self._log.error("bfd-process-not-started", error=error.strerror or str(error))
            self._again()
            return
        self.starts += 1
        self._started_at = self._loop.time()
        self._asked_at = None
        self._loop.add_reader(self._child.sock, self._readable)
        self._send(Greeting())
        self._unsent = dict.fromkeys(self._everything())
        self._push()
        self._asking = self._loop.call_later(ASK_INTERVAL, self._ask)

    def _again(self) -> None:
        """Start the process again after the present delay."""
        if self._stopped:
            return
        if self._loop.time() - self._started_at > _STEADY:
            self._delay = 0.0
        self._timer = self._loop.call_later(self._delay, self._start)
        self._delay = min(_LONGEST_DELAY, 2 * self._delay or _FIRST_DELAY)

    def _ended(self, event: str) -> None:
        """Start the process again: it ended, or must end."""
        status = self._close()
        if not self._stopped:
            self._log.error(event, status=status, effect="started again; sessions resume")
            self._again()

    def _close(self) -> int | None:
        """End the process; return its exit status."""
        for timer in (self._asking, self._sparing):  # a spare would be late, and take CPU time
            if timer is not None:
                timer.cancel()
        self._sparing = None
        child, self._child = self._child, None
        if child is None:
            return None
        self._loop.remove_reader(child.sock)
        self._loop.remove_writer(child.sock)
        return child.end(kill=not self._stopped)

    def _start_spare(self) -> None:
        self._sparing = None
        if self._spare is None:
            with contextlib.suppress(OSError):  # then the next start takes longer
                self._spare = _Child.started()
                self._loop.add_reader(self._spare.sock, self._spare_readable)

    def _spare_readable(self) -> None:
        """The spare process is ready, or has ended; what it says is read when it is needed."""
        assert self._spare is not None
        if not _says(self._spare.sock):
            spare = self._released_spare()
            assert spare is not None
            spare.end(kill=True)
            return
        self._loop.remove_reader(self._spare.sock)
        self._spare_ready = True

    def _released_spare(self) -> _Child | None:
        """Return the spare process, if there is one; it is no longer that."""
        spare, self._spare, self._spare_ready = self._spare, None, False
        if spare is not None:
            self._loop.remove_reader(spare.sock)
        return spare

    def _next(self) -> _Child:
        """Return the spare process, unless it has ended, or start another. Raises OSError."""
        spare = self._released_spare()
        if spare is None:
            return _Child.started()
        if spare.process.poll() is None:
            return spare
        spare.end(kill=False)
        return _Child.started()

    def _ask(self) -> None:
        # Not since the last answer: if this loop was away, nobody has asked meanwhile. Answers that
        # wait have been read, since the loop runs readers before timers.
        now = self._loop.time()
        if self._asked_at is not None and now - self._asked_at > _ANSWER_WITHIN:
            self._ended("bfd-process-silent")
            return
        if self._asked_at is None:
            self._asked_at = now
        self._send(Ask())
        self._asking = self._loop.call_later(ASK_INTERVAL, self._ask)

    # -- messages ---------------------------------------------------------------------------

    def _push(self) -> None:
        """Send the requests that wait, as far as the socket takes them."""
        assert self._child is not None
        while self._unsent:
            key = next(iter(self._unsent))
            if not self._send(self._request(key)):
                self._loop.add_writer(self._child.sock, self._push)
                return
            del self._unsent[key]
        self._loop.remove_writer(self._child.sock)

    def _send(self, request: Request) -> bool:
        assert self._child is not None
        try:
            self._child.sock.send(self._encode(request))
        except BlockingIOError:
            return False
        except OSError:
            return True  # it has ended: the reader reports it
        return True

    def _readable(self) -> None:
        for _ in range(_AT_ONCE):
            if self._child is None:
                return
            try:
                data = self._child.sock.recv(MAX_SIZE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._ended("bfd-process-ended")
                return
            self._asked_at = None
            try:
                self._take(self._decode(data))
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                self._log.error("bfd-message-refused", error=str(error))

    def _take(self, answer: Answer) -> None:
        match answer:
            case Ready(version) if version != VERSION:
                self._log.error("bfd-version", daemon=VERSION, process=version)
                self._ended("bfd-process-refused")
            case Ready(_, priority):
                self.priority = priority
                self._log.info("bfd-process-started", pid=self.pid, priority=priority)
                if self._sparing is None:
                    self._sparing = self._loop.call_later(_SPARE_DELAY, self._start_spare)
            case _:
                if isinstance(answer, Report):
                    self.reported_at = self._loop.time()
                self._answered(answer)


def _says(sock: socket.socket) -> bool:
    """Whether a socket that can be read has a message; else its other end has closed."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
