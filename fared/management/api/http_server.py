"""The HTTP server: uvicorn inside the daemon's loop, with limits for each client.

Clients are not trusted. Each has a limited time to send the head of a request, and to receive the
answer, or each event of a stream. If there are too many, idle connections are closed first; if all
are being answered, a new client can still get the metrics. Imported for the first client
(``daemon.people.http``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator, MutableMapping
from http import HTTPStatus
from typing import Any

import uvicorn
from h11 import IDLE, SEND_RESPONSE
from uvicorn.protocols.http.h11_impl import H11Protocol

from fared.management.api.http import EVENTS, App, Receive, Reply, Scope, Send, error_answer
from fared.management.api.listener import ClientListener, let_go

MAX_CONNECTIONS = 64
SPARE_CONNECTIONS = 8
"""Additional connections while all others are being answered; they get ``ESSENTIAL`` only."""
ESSENTIAL = ("/metrics", "/healthz", "/readyz")
HEAD_TIMEOUT = 5.0
"""Seconds for the head of a request, from the connection or the end of the last answer."""
ANSWER_TIMEOUT = 60.0
"""Seconds within which the client must receive an answer."""
_LOG_INTERVAL = 60.0
STOP_TIMEOUT = 2
"""Seconds for pending answers when the server stops."""


class Connection(H11Protocol):
    """One client, with a timer for its present phase and a limit on the number of others."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request, and make room for it."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_TIMEOUT, transport.abort)
        self._answering: object = None
        self._task: asyncio.Task[Any] | None = None
        self._app, self.app = self.app, self._answer
        self._spare = False
        self.watches = False
        """Whether it gets events, an answer that has no end."""
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read on; part of a head does not restart its timer."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start the timer of the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the client and cancel its answer."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        super().connection_lost(exc)
        self.app = self._app  # it no longer refers to itself
        let_go(self.transport)

    def send_400_response(self, msg: str) -> None:
        """Refuse malformed HTTP, except in the middle of an answer."""
        if self.idle and self.conn.our_state in (IDLE, SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        """Start the timer of the client's present phase, once."""
        answering = None if self.idle else self.cycle
        if answering is not self._answering:
            self._answering = answering
            self.since = self.loop.time()
            self._timer.cancel()
            limit = HEAD_TIMEOUT if answering is None else ANSWER_TIMEOUT
            self._timer = self.loop.call_later(limit, self.transport.abort)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        if self._spare and scope["path"] not in ESSENTIAL:
            message = "too many connections are being answered; try again"
            await Reply(send).whole(error_answer(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message))
            return
        self._task = asyncio.current_task()
        if scope["path"] == EVENTS:
            self._timer.cancel()
            self.watches = True
            send = _within(ANSWER_TIMEOUT, send)
        try:
            await self._app(scope, receive, send)
        except (asyncio.CancelledError, TimeoutError):
            self.transport.abort()
        finally:
            self._task = None

    def _make_room(self) -> None:
        here = [c for c in self.connections if not c.transport.is_closing()]
        if len(here) <= MAX_CONNECTIONS:
            return
        waiting = [c for c in here if isinstance(c, Connection) and c.idle and c is not self]
        if waiting:
            min(waiting, key=lambda client: client.since).transport.abort()
        elif len(here) <= MAX_CONNECTIONS + SPARE_CONNECTIONS:
            self._spare = True
        else:
            self.transport.abort()


def _within(seconds: float, send: Send) -> Send:
    """Limit the time for each part of an answer that has no end."""

    async def limited(message: MutableMapping[str, Any]) -> None:
        await asyncio.wait_for(send(message), seconds)

    return limited


class _RepeatFilter(logging.Filter):
    """Passes the same line once a minute, so that clients cannot fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._last.get(str(record.msg), -_LOG_INTERVAL) < _LOG_INTERVAL:
            return False
        self._last[str(record.msg)] = now
        return True


class _Server(uvicorn.Server):
    """uvicorn inside the daemon: the daemon keeps the signals and can await the start.

    It sleeps until it is stopped. uvicorn itself polls ten times a second for a stop and renews a
    date header, which was a third of an idle daemon's wake-ups.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.leaving = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.leaving.wait()


class HttpServer:
    """Serves an ``App`` on a listening socket from ``start`` to ``stop``, which closes it."""

    def __init__(self, listener: ClientListener, app: App) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._app = app
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._log, self._repeat_filter = logging.getLogger("uvicorn.error"), _RepeatFilter()

    async def start(self) -> None:
        """Begin to serve; clients that already wait come first."""
        self._log.addFilter(self._repeat_filter)
        config = uvicorn.Config(
            self._app,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=STOP_TIMEOUT,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([self._listener]), name="http")
        started = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait({self._task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Complete pending answers but those without an end, for a bounded time, and close."""
        if self._server is None or self._task is None:
            return
        for client in list(self._server.server_state.connections):
            if isinstance(client, Connection) and client.watches:
                client.transport.abort()
        self._log.removeFilter(self._repeat_filter)
        self._server.should_exit = True
        self._server.leaving.set()
        done, _ = await asyncio.wait({self._task}, timeout=STOP_TIMEOUT + 1)
        if not done:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
