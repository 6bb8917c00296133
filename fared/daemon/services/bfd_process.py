"""Starting and watching ``fared-bfd``, and the messages to and from it.

It is also started again if it does not answer. So that this is within the detection time of fast
sessions, a spare process is started beforehand, which has all its code and waits for its first
message.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from fared.protocols.bfd.messages import (
    VERSION,
    Answer,
    Ask,
    CloseSession,
    Greeting,
    OpenSession,
    Ready,
    Report,
    SessionKey,
)
from fared.runtime.children import ServerProcess
from fared.runtime.supervisor import ServerEvents, Supervisor

ASK_INTERVAL = 5.0
"""Seconds between two requests for counters, which also show that the process works."""
_ANSWER_WITHIN = 2 * ASK_INTERVAL
_SPARE_DELAY = 0.5
"""Seconds from the first message of a process to the start of its spare: sessions come first."""


class BfdSupervisor(Supervisor):
    """The process, while any session is wanted."""

    def __init__(
        self,
        answered: Callable[[Answer], None],
        everything: Callable[[], Iterable[SessionKey]],
        request: Callable[[SessionKey], OpenSession | CloseSession],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        """``everything`` lists the sessions; ``request`` is for the present wish for one."""
        super().__init__(
            "fared.kernel.bfdd",
            Answer,
            log,
            ServerEvents("bfd-process-not-started", "bfd-process-ended", "bfd-message-refused"),
            effect="started again; sessions resume",
            farewell=True,
        )
        self.priority = ""
        self.reported_at = 0.0
        """When the last report arrived, in the time of the loop."""
        self._answered, self._everything, self._request = answered, everything, request
        self._spare: ServerProcess | None = None
        self._spare_ready = False
        self._asked_at: float | None = None
        """When the first request was sent that has no answer yet."""
        self._asking: asyncio.TimerHandle | None = None
        self._sparing: asyncio.TimerHandle | None = None

    @property
    def spare_pid(self) -> int | None:
        """The id of the process that is ready to take its place, None while there is none."""
        return self._spare.process.pid if self._spare is not None and self._spare_ready else None

    def sync(self, key: SessionKey) -> None:
        """Ask for what is wanted of a session: now, since its neighbor waits."""
        self.tell(key, partial(self._request, key))
        if self._server is not None:
            self._push()
        elif self._timer is None and not self._stopped:
            self._start()

    def refresh(self) -> None:
        """Ask for a report now, which arrives in a later turn of the loop."""
        if self._server is not None:
            self._send(Ask())

    def stop(self) -> None:
        """End the process, which tells the neighbors that this is no failure."""
        super().stop()
        spare = self._released_spare()
        if spare is not None:
            spare.end(kill=False)

    # -- the process ------------------------------------------------------------------------

    def _began(self) -> None:
        self._asked_at = None
        self._send(Greeting())
        for key in self._everything():
            self.tell(key, partial(self._request, key))
        self._push()
        self._asking = self._loop.call_later(ASK_INTERVAL, self._ask)

    def _closing(self) -> None:
        for timer in (self._asking, self._sparing):  # a spare would be late, and take CPU time
            if timer is not None:
                timer.cancel()
        self._sparing = None

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

    def _took(self, answer: Answer) -> None:
        self._asked_at = None
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

    # -- the spare --------------------------------------------------------------------------

    def _start_spare(self) -> None:
        self._sparing = None
        if self._spare is None:
            with contextlib.suppress(OSError):  # then the next start takes longer
                self._spare = super()._next()
                self._loop.add_reader(self._spare.connection.sock, self._spare_readable)

    def _spare_readable(self) -> None:
        """The spare process is ready, or has ended; what it says is read when it is needed."""
        assert self._spare is not None
        sock = self._spare.connection.sock
        if not _says(sock):
            spare = self._released_spare()
            assert spare is not None
            spare.end(kill=True)
            return
        self._loop.remove_reader(sock)
        self._spare_ready = True

    def _released_spare(self) -> ServerProcess | None:
        """Return the spare process, if there is one; it is no longer that."""
        spare, self._spare, self._spare_ready = self._spare, None, False
        if spare is not None:
            self._loop.remove_reader(spare.connection.sock)
        return spare

    def _next(self) -> ServerProcess:
        """Return the spare process, unless it has ended, or start another. Raises OSError."""
        spare = self._released_spare()
        if spare is not None and spare.process.poll() is None:
            return spare
        if spare is not None:
            spare.end(kill=False)
        return super()._next()


def _says(sock: socket.socket) -> bool:
    """Whether a socket that can be read has a message; else its other end has closed."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
