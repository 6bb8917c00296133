"""The HTTP application: metrics, health, the JSON documents and one page, read-only.

The documents are those of the control socket, from the same ``Responder``. The page also reads
events (``watch``) and asks what a failure would change (``what_if``); both are loaded for the first
request. A request with a host name that is not ours (DNS rebinding), or that another site's page
made, is refused, since the documents describe the network, take work, and need no password.
Imported for the first client (``daemon.people.http``).
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, MutableMapping
from contextlib import aclosing
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from fared.management.api.encode import encode
from fared.management.api.metrics import CONTENT_TYPE, Metrics
from fared.management.api.respond import Json, Responder
from fared.management.documents.declare import COMMANDS, PROTOCOLS
from fared.management.documents.errors import CommandError
from fared.management.documents.registry import SHOWN, find

if TYPE_CHECKING:
    from fared.management.api.watch import FabricWatch
    from fared.management.api.what_if import FailureQuestions
    from fared.management.documents.context import ViewContext

ROOT = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


def page_file(path: str) -> tuple[bytes, str]:
    """Return a file and its content type; ``path`` is that of the request.

    Raises CommandError for any other path than those of the files.
    """
    for file in ROOT.rglob("*"):
        name = "/" if file.name == "index.html" else f"/page/{file.relative_to(ROOT).as_posix()}"
        if name == path and file.suffix in _TYPES:
            return file.read_bytes(), _TYPES[file.suffix]
    raise CommandError("not-found", f"no page {path}; try / or /api/v1/")


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

API_ROOT = "/api/v1/"
EVENTS = API_ROOT + "events"
WHAT_IF = API_ROOT + "what-if"
_JSON = "application/json"
_EVENT_STREAM = "text/event-stream"
_STATUS = {
    "not-found": HTTPStatus.NOT_FOUND,
    "unknown-command": HTTPStatus.NOT_FOUND,
    "bad-argument": HTTPStatus.BAD_REQUEST,
    "bad-request": HTTPStatus.BAD_REQUEST,
    "unsupported": HTTPStatus.NOT_IMPLEMENTED,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
}
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+))(?::\d*)?", re.ASCII)
_OUR_SITE = (b"same-origin", b"none")
"""Sec-Fetch-Site (W3C Fetch Metadata §2.4) of our page, and of an address that a user typed."""
_LINK = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document"}
"""How a browser follows a link to a whole page (Fetch Metadata §2.1, §2.2)."""
_SECURITY = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
            b" img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


class HttpAnswer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    body: bytes
    content_type: str = _JSON


class App:
    """The ASGI application. ``ready`` returns whether the daemon has finished starting.

    ``names`` returns the host names that are served besides addresses and localhost, in lower case.
    ``context`` returns the present state, for events and what-if; None: there are neither.
    """

    def __init__(
        self,
        responder: Responder,
        metrics: Metrics,
        ready: Callable[[], bool],
        names: Callable[[], Collection[str]] = tuple,
        context: Callable[[], ViewContext] | None = None,
    ) -> None:
        self._context = context
        self._watch: FabricWatch | None = None
        self._what_if: FailureQuestions | None = None
        self._responder = responder
        self._metrics = metrics
        self._ready = ready
        self._names = names

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request; a failure aborts the answer and does not end the daemon."""
        if scope["type"] != "http":
            return
        reply = Reply(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await reply.whole(refusal)
            return
        try:
            if scope["path"] == EVENTS:
                await self._events(reply, scope)
            else:
                await self._answer(reply, scope["path"], _arguments(scope["query_string"]))
        except CommandError as error:
            if not reply.begun:
                status = _STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
                await reply.whole(error_answer(status, error.code, error.message))

    def _refusal(self, scope: Scope) -> HttpAnswer | None:
        """Refuse other methods than GET and HEAD, foreign host names, and pages of other sites."""
        host = next((value for name, value in scope["headers"] if name == b"host"), None)
        if host is not None and not self._is_ours(host.decode("latin-1")):
            message = "this host name is not served here (api: http-names: in the file)"
            return error_answer(HTTPStatus.MISDIRECTED_REQUEST, "bad-request", message)
        if _of_another_site(scope, host):
            message = "pages of other sites may not ask this router"
            return error_answer(HTTPStatus.FORBIDDEN, "bad-request", message)
        if scope["method"] not in ("GET", "HEAD"):
            return error_answer(HTTPStatus.METHOD_NOT_ALLOWED, "bad-request", "only GET and HEAD")
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header (RFC 9110 §7.2) is an address, localhost, or one of ``names``."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = (match["v6"] or match["name"]).lower().rstrip(".")
        if name == "localhost" or name in self._names():
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    async def _events(self, reply: Reply, scope: Scope) -> None:
        """Send events until the client leaves."""
        if self._watch is None:
            context = self._present()
            await asyncio.to_thread(importlib.import_module, "fared.management.api.watch")
            from fared.management.api.watch import FabricWatch  # noqa: PLC0415 - loaded for the first watcher

            self._watch = self._watch or FabricWatch(context)
        if scope["method"] == "GET":
            async with aclosing(self._watch.events(_client_of(scope))) as events:
                await reply.stream(events, _EVENT_STREAM)
        else:
            await reply.whole(HttpAnswer(HTTPStatus.OK, b"", _EVENT_STREAM))

    async def _answer_what_if(self, reply: Reply, args: Json) -> None:
        """Compute what a failure would change, in a process of its own."""
        if self._what_if is None:
            context = self._present()
            from fared.management.api.what_if import FailureQuestions  # noqa: PLC0415 - loaded for the first question

            self._what_if = FailureQuestions(self._responder, context)
        await reply.whole(HttpAnswer(HTTPStatus.OK, await self._what_if.answer(args)))

    def _present(self) -> Callable[[], ViewContext]:
        if self._context is None:
            raise CommandError("unsupported", "this server shows documents only")
        return self._context

    async def _answer(self, reply: Reply, path: str, args: Json) -> None:
        if path == WHAT_IF:
            await self._answer_what_if(reply, args)
            return
        if path.startswith(API_ROOT) and path != API_ROOT:
            command, args = _command(path.removeprefix(API_ROOT), args)
            async with aclosing(self._responder.stream(command, args)) as document:
                await reply.stream(document)
            return
        try:
            page = await self._page(path)
        except CommandError:
            raise
        except Exception as error:
            raise self._responder.failed(f"GET {path}", error) from error
        await reply.whole(page)

    async def _page(self, path: str) -> HttpAnswer:
        match path:
            case "/metrics":
                text = await self._responder.built(self._metrics.work())
                return HttpAnswer(HTTPStatus.OK, text, CONTENT_TYPE)
            case "/healthz":
                return HttpAnswer(HTTPStatus.OK, b'{"ok":true}')
            case "/readyz":
                ready = self._ready()
                status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
                return HttpAnswer(status, encode({"ready": ready}))
            case "/api/v1" | "/api/v1/":
                index = [API_ROOT + name for name in (*SHOWN, *COMMANDS)]
                return HttpAnswer(HTTPStatus.OK, encode(index))
        return HttpAnswer(HTTPStatus.OK, *page_file(path))


def _client_of(scope: Scope) -> tuple[int, int]:
    """Return who asks: an IPv4 address, or the /64 of an IPv6 one, whose other bits are free."""
    host, _ = scope["client"] or ("::", 0)  # it has left already
    address = ipaddress.ip_address(host)
    return address.version, int(address) >> (0 if address.version == 4 else 64)


class Reply:
    """One HTTP answer; ``begun`` after its head is sent and it cannot change."""

    def __init__(self, send: Send) -> None:
        self.begun = False
        self._send = send

    async def whole(self, answer: HttpAnswer) -> None:
        """Send a complete answer."""
        length = (b"content-length", str(len(answer.body)).encode())
        await self._start(answer.status, answer.content_type, length)
        await self._send({"type": "http.response.body", "body": answer.body})

    async def stream(
        self, document: AsyncGenerator[bytes, None], content_type: str = _JSON
    ) -> None:
        """Send a document in slices; JSON of a single slice is sent whole."""
        first = await anext(document, b"")
        if content_type != _JSON:
            await self._start(HTTPStatus.OK, content_type)
            await self._more(first)
            async for text in document:
                await self._more(text)
            return
        second = await anext(document, None)
        if second is None:
            await self.whole(HttpAnswer(HTTPStatus.OK, first))
            return
        await self._start(HTTPStatus.OK, _JSON)
        await self._more(first)
        await self._more(second)
        async for text in document:
            await self._more(text)
        await self._send({"type": "http.response.body", "body": b""})

    async def _start(self, status: int, content_type: str, *more: tuple[bytes, bytes]) -> None:
        self.begun = True
        headers = [
            (b"content-type", content_type.encode()),
            *more,
            (b"date", formatdate(usegmt=True).encode()),
            *_SECURITY,
        ]
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append((b"allow", b"GET, HEAD"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _more(self, text: bytes) -> None:
        await self._send({"type": "http.response.body", "body": text, "more_body": True})


def _of_another_site(scope: Scope, host: bytes | None) -> bool:
    """Whether a page that is not ours made a request (RFC 6454 §7, W3C Fetch Metadata).

    Its script could not read the answer, but may ask for it without end. A link to the page is
    followed: it is a file. Clients other than browsers send none of these headers.
    """
    headers = dict(scope["headers"])
    origins = (value for name, value in scope["headers"] if name == b"origin")
    if any(host is None or value.partition(b"://")[2] != host for value in origins):
        return True
    if headers.get(b"sec-fetch-site", b"none") in _OUR_SITE:
        return False
    linked = scope["path"] == "/" and headers.items() >= _LINK.items()
    return not linked


def _command(name: str, args: Json) -> tuple[str, Json]:
    """Return the command of a document, and its arguments. Raises CommandError."""
    proto, _, narrowed = name.partition("/")
    document = find(narrowed) if proto in PROTOCOLS else find(name)
    if proto in PROTOCOLS:
        args = {**args, "proto": proto}
    if document is None or (proto in PROTOCOLS and not document.narrowed):
        raise CommandError("unknown-command", f"no document {name!r}; {API_ROOT} lists them")
    return document.command, args


def _arguments(query: bytes) -> dict[str, Any]:
    """Return query parameters as arguments; ``log=true`` is a truth value as in JSON."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    words: dict[str, Any] = {"true": True, "false": False}
    return {key: words.get(value, value) for key, value in pairs}


def error_answer(status: int, code: str, message: str) -> HttpAnswer:
    """Make the answer to a request that is refused; ``code`` as in ``errors.ERROR_CODES``."""
    return HttpAnswer(status, encode({"ok": False, "error": {"code": code, "message": message}}))
