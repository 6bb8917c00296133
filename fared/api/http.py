"""The HTTP server: metrics, health, the JSON documents and one page, read-only.

uvicorn runs inside the daemon's own loop as one task; it takes no signals, writes no access log.
The documents are those of the control socket, from the same dispatcher. Imported only where the
HTTP server is on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import uvicorn

from fared.api.control import CommandError, Dispatcher, ErrorHook, dispatch
from fared.api.encode import encode
from fared.api.metrics import CONTENT_TYPE, Metrics
from fared.api.page import render_page
from fared.api.schema import NARROWED_DOCUMENTS, PROTOCOLS, SHOW_DOCUMENTS

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

API_ROOT = "/api/v1/"
READ_ONLY_COMMANDS = ("explain", "path", "validate")
_JSON = "application/json"
_HTML = "text/html; charset=utf-8"
_MAX_CONNECTIONS = 64
_STOP_TIMEOUT = 2
_STATUS = {
    "not-found": HTTPStatus.NOT_FOUND,
    "unknown-command": HTTPStatus.NOT_FOUND,
    "bad-argument": HTTPStatus.BAD_REQUEST,
    "bad-request": HTTPStatus.BAD_REQUEST,
    "unsupported": HTTPStatus.NOT_IMPLEMENTED,
}
_SECURITY = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


class Answer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    body: bytes
    content_type: str = _JSON


class App:
    """The ASGI application. ``ready`` says whether the daemon has finished starting."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        metrics: Metrics,
        ready: Callable[[], bool],
        on_error: ErrorHook | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._ready = ready
        self._on_error = on_error

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        answer = await self._guarded(scope)
        headers = [
            (b"content-type", answer.content_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
            (b"date", formatdate(usegmt=True).encode()),
            *_SECURITY,
        ]
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append((b"allow", b"GET, HEAD"))
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _guarded(self, scope: Scope) -> Answer:
        if scope["method"] not in ("GET", "HEAD"):
            return _error(HTTPStatus.METHOD_NOT_ALLOWED, "bad-request", "only GET and HEAD")
        try:
            return await self._answer(scope["path"], _arguments(scope["query_string"]))
        except CommandError as error:
            status = _STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
            return _error(status, error.code, error.message)
        except Exception as error:  # noqa: BLE001 - a request never ends the daemon
            if self._on_error is not None:
                self._on_error(f"GET {scope['path']}", error)
            message = f"{type(error).__name__}; see the daemon's log"
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", message)

    async def _answer(self, path: str, args: dict[str, Any]) -> Answer:
        match path:
            case "/":
                return Answer(HTTPStatus.OK, await render_page(self._document), _HTML)
            case "/metrics":
                return Answer(HTTPStatus.OK, self._metrics.render(), CONTENT_TYPE)
            case "/healthz":
                return Answer(HTTPStatus.OK, b'{"ok":true}')
            case "/readyz":
                ready = self._ready()
                status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
                return Answer(status, json.dumps({"ready": ready}).encode())
            case "/api/v1" | "/api/v1/":
                names = [*SHOW_DOCUMENTS, *READ_ONLY_COMMANDS]
                return Answer(HTTPStatus.OK, await encode([API_ROOT + name for name in names]))
        if path.startswith(API_ROOT):
            return Answer(
                HTTPStatus.OK, await encode(await self._document(path[len(API_ROOT) :], args))
            )
        raise CommandError("not-found", f"no page {path}; try / or {API_ROOT}")

    async def _document(self, name: str, args: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        proto, _, narrowed = name.partition("/")
        if narrowed in NARROWED_DOCUMENTS and proto in PROTOCOLS:
            name, args = narrowed, {**args, "proto": proto}
        if name in SHOW_DOCUMENTS:
            command = f"show {name}"
        elif name in READ_ONLY_COMMANDS:
            command = name
        else:
            raise CommandError("unknown-command", f"no document {name!r}; {API_ROOT} lists them")
        return await dispatch(self._dispatcher, command, args, self._on_error)


def _arguments(query: bytes) -> dict[str, Any]:
    """Query parameters as arguments; ``log=true`` is a truth value as in JSON."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    words: dict[str, Any] = {"true": True, "false": False}
    return {key: words.get(value, value) for key, value in pairs}


def _error(status: int, code: str, message: str) -> Answer:
    body = {"ok": False, "error": {"code": code, "message": message}}
    return Answer(status, json.dumps(body).encode())


class _Server(uvicorn.Server):
    """uvicorn as a guest: signals stay with the daemon, and its start can be awaited.

    It sleeps until it is told to leave, where uvicorn looks ten times a second whether it should,
    and renews a date header: a third of what an idle daemon woke up for.
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
    """Serves an ``App`` on ``host:port`` from ``start`` to ``stop``."""

    def __init__(self, host: str, port: int, app: App) -> None:
        self.host = host
        self.port = port
        self._app = app
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen; ``port`` is then the real one. Raises OSError where it cannot."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server((self.host, self.port), family=family)
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            self._app,
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_TIMEOUT,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve([listener]), name="http")
        started = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait({self._task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Finish running answers, for a bounded time, and close."""
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        self._server.leaving.set()
        done, _ = await asyncio.wait({self._task}, timeout=_STOP_TIMEOUT + 1)
        if not done:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
