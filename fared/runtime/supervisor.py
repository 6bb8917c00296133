"""Keeps a process that serves the daemon: starts it, speaks to it, and starts it again if it ends.

At once the first time, then after growing delays. It has no state that the daemon could not tell
again: each new process is told all that is known. What waits to be told is kept by its subject, and
made when its turn comes, so that there is never more of it than is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

import msgspec

from fared.runtime.children import ServerProcess, reason

FIRST_DELAY, LONGEST_DELAY = 0.1, 30.0
"""Seconds before the second start, and before any; the first one is at once."""
_STEADY: Final = 60.0
"""A process that ran for so many seconds starts again without delay."""
_AT_ONCE: Final = 256
"""Messages sent in one turn of the loop."""


class ServerEvents(NamedTuple):
    """The names of events in the log."""

    not_started: str
    ended: str
    refused: str
    """A message that cannot be decoded."""


class Supervisor:
    """One process of a ``module``; a subclass tells it messages, and processes its answers.

    These are msgpack, in packets or in frames of at most ``most`` bytes; ``answers`` is their type.
    ``effect`` says in the log what the start of another process means. With ``farewell`` a process
    that is stopped gets a second to end by itself.
    """

    def __init__(
        self,
        module: str,
        answers: Any,  # noqa: ANN401 - a union of types
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        events: ServerEvents,
        *,
        effect: str = "started again",
        most: int | None = None,
        farewell: bool = False,
    ) -> None:
        self.starts = 0
        self._module, self._most, self._farewell = module, most, farewell
        self._log, self._events, self._effect = log, events, effect
        self._loop = asyncio.get_running_loop()
        self._server: ServerProcess | None = None
        self._unsent: dict[Hashable, Callable[[], Any]] = {}
        self._delay = self._started_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(answers).decode

    # -- for a subclass -------------------------------------------------------------------------

    def _next(self) -> ServerProcess:
        """Return the process that serves from now on. Raises OSError."""
        return ServerProcess.started(self._module, self._most)

    def _began(self) -> None:
        """Tell a process that has just started all that is known."""

    def _took(self, answer: Any) -> None:  # noqa: ANN401 - one of the answers
        """Process an answer."""

    def _closing(self) -> None:
        """The process ends now, or has ended."""

    # -- life of the process --------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process id, None while it does not run."""
        return None if self._server is None else self._server.process.pid

    def stop(self) -> None:
        """End the process, which may still do what it does when its socket closes."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._close()

    def _start(self) -> None:
        self._timer = None
        try:
            self._server = self._next()
        except OSError as error:
            self._log.error(self._events.not_started, error=error.strerror or str(error))
            self._again()
            return
        self.starts += 1
        self._started_at = self._loop.time()
        self._loop.add_reader(self._server.connection.sock, self._readable)
        self._unsent.clear()
        self._began()

    def _again(self) -> None:
        """Start the process again after the present delay."""
        if self._loop.time() - self._started_at > _STEADY:
            self._delay = 0.0
        self._timer = self._loop.call_later(self._delay, self._start)
        self._delay = min(LONGEST_DELAY, 2 * self._delay or FIRST_DELAY)

    def _ended(self, event: str) -> None:
        """Start the process again: it ended, or must end."""
        status = self._close()
        if status is not None and not self._stopped:
            self._log.error(event, status=status, reason=reason(status), effect=self._effect)
            self._again()

    def _close(self) -> int | None:
        """End the process; return its exit status."""
        self._closing()
        server, self._server = self._server, None
        if server is None:
            return None
        self._loop.remove_reader(server.connection.sock)
        self._loop.remove_writer(server.connection.sock)
        return server.end(kill=not (self._stopped and self._farewell))

    # -- messages -------------------------------------------------------------------------------

    def tell(self, subject: Hashable, message: Callable[[], Any]) -> None:
        """Send a message soon, in place of one of the same subject that waits; None: nothing."""
        self._unsent[subject] = message
        if self._server is not None:
            self._loop.add_writer(self._server.connection.sock, self._push)

    def _send(self, message: Any) -> bool:  # noqa: ANN401 - what the process decodes
        """Send a message now; return False if that must wait."""
        assert self._server is not None
        return self._server.connection.send(self._encode(message))

    def _push(self) -> None:
        """Send what waits, as far as the socket takes it."""
        server, left = self._server, _AT_ONCE
        assert server is not None
        connection = server.connection
        connection.flush()
        while self._unsent and left and not connection.blocked:
            subject = next(iter(self._unsent))
            message = self._unsent[subject]()
            if message is not None and not self._send(message):
                break
            del self._unsent[subject]
            left -= 1
        if self._unsent or connection.blocked:
            self._loop.add_writer(connection.sock, self._push)
        else:
            self._loop.remove_writer(connection.sock)

    def _readable(self) -> None:
        server = self._server
        assert server is not None
        for data in server.connection.messages():
            try:
                self._took(self._decode(data))
            except (msgspec.DecodeError, msgspec.ValidationError) as error:
                self._log.error(self._events.refused, error=str(error))
            if self._server is not server:
                return  # what it said has ended it
        if server.connection.closed:
            self._ended(self._events.ended)
