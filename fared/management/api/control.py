"""The control socket: one JSON request a line, one JSON answer a line, over a unix socket.

Request: ``{"command": "show", "what": "routes", "args": {...}}``; answer: ``{"ok": true,
"document": {...}}`` or ``{"ok": false, "error": {"code", "message"}}`` (codes: schema).

The server passes the command (``show routes``, ``explain``...) and the arguments to a ``Responder``
and sends the document that it encodes. ``monitor`` alone is answered by a stream (``stream``), with
which its connection ends. A client that sends half a line or megabytes, stops reading
or disconnects costs the daemon one closed connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from fared.core.json_text import decode_json
from fared.management.api.caller import CALLER, PEER, name_of, peer_of
from fared.management.api.client import ANSWER, ANSWER_END
from fared.management.api.encode import encode
from fared.management.api.feed import EventFeed
from fared.management.api.listener import ClientListener, let_go
from fared.management.api.respond import Json, Responder
from fared.management.api.stream import stream_events
from fared.management.documents.errors import CommandError

MAX_REQUEST = 5 << 20
"""Bytes: ``config diff`` sends a file of up to 4 MB."""
_MAX_CONNECTIONS = 32
_BACKLOG = 100
"""Connections that wait to be accepted, asyncio's default."""
_IDLE_TIMEOUT = 60.0
_WRITE_TIMEOUT = 20.0
_ANSWER_TIMEOUT = 60.0
_STREAM_END = 0.2
"""Seconds in which streams send what is queued when the daemon stops."""
_MODE = 0o660


class SocketInUse(OSError):  # noqa: N818 - reads as the condition it is
    """Another daemon answers on this path."""


class ControlServer:
    """Listens on ``path`` (mode 0660) from ``start`` to ``stop``.

    ``feed``: the events that clients may follow.
    """

    def __init__(self, path: str, responder: Responder, feed: EventFeed | None = None) -> None:
        self.path = Path(path)
        self._responder = responder
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._feed = feed
        self._streams: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Begin to listen. Raises SocketInUse if a daemon answers there, or another OSError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(_clear_stale, self.path)
        except SocketInUse:
            raise
        except OSError as error:
            raise self._cannot_listen(error) from error
        listener = ClientListener(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            umask = os.umask(0o777 & ~_MODE)
            try:
                listener.bind(str(self.path))
                listener.listen(_BACKLOG)  # at once: whoever sees the path may connect
            finally:
                os.umask(umask)
            found = self.path.stat()
            self._identity = (found.st_dev, found.st_ino)
            self._server = await asyncio.start_unix_server(
                self._connected, sock=listener, limit=MAX_REQUEST
            )
        except OSError as error:
            listener.close()
            raise self._cannot_listen(error) from error

    def _cannot_listen(self, error: OSError) -> OSError:
        reason = error.strerror or str(error)
        message = f"cannot listen on {self.path}: {reason} (api: socket: in the file)"
        return OSError(error.errno or errno.EINVAL, message)

    async def stop(self) -> None:
        """Stop listening, drop the clients and remove the socket if it is still this server's."""
        if self._server is None:
            return
        self._server.close()
        self._stopping.set()
        if self._streams:
            await asyncio.wait(self._streams, timeout=_STREAM_END)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None
        with contextlib.suppress(OSError):
            found = self.path.stat()
            if (found.st_dev, found.st_ino) == self._identity:
                self.path.unlink()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        peer = peer_of(writer.get_extra_info("socket"))
        PEER.set(peer)
        CALLER.set(name_of(peer))
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the client is gone or does not read, or the daemon is stopping
        finally:
            self._connections.discard(task)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()
            else:
                writer.close()
            let_go(writer.transport)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False at the end of the connection."""
        try:
            # wait_for would take a task of its own, and with it two more turns of the loop
            async with asyncio.timeout(_IDLE_TIMEOUT):
                line = await reader.readline()
        except ValueError:  # longer than the limit
            await _write(writer, _failure("bad-request", "the request is too large"))
            return False
        if not line.endswith(b"\n"):
            return False
        return await self._answer(line, reader, writer)

    async def _answer(
        self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send the answer to a request; return False if the connection ends with it."""
        begun = False
        try:
            command, args = parse_request(line)
            if command == "monitor" and self._feed is not None:
                await self._stream(self._feed, args, reader, writer)
                return False
            async with (
                asyncio.timeout(_ANSWER_TIMEOUT),
                aclosing(self._responder.stream(command, args)) as document,
            ):
                async for text in document:
                    await _write(writer, text if begun else ANSWER + text)
                    begun = True
                await _write(writer, ANSWER_END)
        except CommandError as error:
            if begun:
                writer.transport.abort()  # a partial document must not look complete
                return False
            await _write(writer, _failure(error.code, error.message))
        return True

    async def _stream(
        self,
        feed: EventFeed,
        args: Json,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Send events until client or daemon end. Raises CommandError before the first."""
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await stream_events(feed, args, reader, writer, self._stopping)
        finally:
            self._streams.discard(task)


def parse_request(line: bytes) -> tuple[str, Json]:
    """Return command and arguments of a request. Raises CommandError (bad-request)."""
    try:
        request = decode_json(line, dict[str, Any])
    except msgspec.ValidationError as error:
        raise CommandError("bad-request", "the request is not a JSON object") from error
    except ValueError as error:
        raise CommandError("bad-request", "the request is not JSON") from error
    command, what, args = request.get("command"), request.get("what"), request.get("args")
    args = {} if args is None else args
    if not isinstance(command, str) or not isinstance(args, dict):
        raise CommandError("bad-request", 'expected {"command": text, "args": {...}}')
    if what is None:
        return command, args
    if not isinstance(what, str):
        raise CommandError("bad-request", '"what" is not text')
    return f"{command} {what}", args


def _failure(code: str, message: str) -> bytes:
    return encode({"ok": False, "error": {"code": code, "message": message}}) + b"\n"


async def _write(writer: asyncio.StreamWriter, text: bytes) -> None:
    """Send text; wait a bounded time for a client that does not read."""
    async with asyncio.timeout(_WRITE_TIMEOUT):
        writer.write(text)
        await writer.drain()


def _clear_stale(path: Path) -> None:
    """Remove the socket of a daemon that ended. Raises SocketInUse if one answers."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "it exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except (OSError, TimeoutError):
            pass  # it exists, but is busy or not permitted: leave it
    raise SocketInUse(
        errno.EADDRINUSE, f"another daemon is listening on {path} (api: socket: in the file)"
    )
