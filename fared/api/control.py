"""The control socket: one JSON request a line, one JSON answer a line, over a unix socket.

Request: ``{"command": "show", "what": "routes", "args": {...}}``; answer: ``{"ok": true,
"document": {...}}`` or ``{"ok": false, "error": {"code", "message"}}`` (codes: schema).

The server knows nothing of routing. It calls a dispatcher with the command (``show routes``,
``explain``...) and the arguments, and answers with the document. Whatever a client does, sends
half a line, sends megabytes, stops reading, goes away, it costs the daemon one closed connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from fared.api.encode import encode

Json = dict[str, Any]
Dispatcher = Callable[[str, Json], "Mapping[str, Any] | Awaitable[Mapping[str, Any]]"]
"""``(command, args) -> document``, or a coroutine of one. Raises CommandError to refuse."""
ErrorHook = Callable[[str, Exception], None]

MAX_REQUEST = 1 << 20
_MAX_CONNECTIONS = 32
_IDLE_TIMEOUT = 60.0
_WRITE_TIMEOUT = 20.0
_WRITE_CHUNK = 1 << 16
_MODE = 0o660


class CommandError(Exception):
    """A request that is refused; ``code`` is one of ``schema.ERROR_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SocketInUse(OSError):  # noqa: N818 - reads as the condition it is
    """Another daemon answers on this path."""


async def dispatch(
    dispatcher: Dispatcher, command: str, args: Json, on_error: ErrorHook | None = None
) -> Mapping[str, Any]:
    """Run one command; anything but CommandError becomes ``internal`` and goes to ``on_error``."""
    try:
        document = dispatcher(command, args)
        return await document if isinstance(document, Awaitable) else document
    except CommandError:
        raise
    except Exception as error:
        if on_error is not None:
            on_error(command, error)
        message = f"{command} failed: {type(error).__name__}; see the daemon's log"
        raise CommandError("internal", message) from error


class ControlServer:
    """Listens on ``path`` (mode 0660) from ``start`` to ``stop``.

    ``on_error`` is told of exceptions in the dispatcher, which clients only see as ``internal``.
    """

    def __init__(
        self, path: str, dispatcher: Dispatcher, on_error: ErrorHook | None = None
    ) -> None:
        self.path = Path(path)
        self._dispatcher = dispatcher
        self._on_error = on_error
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to listen. Raises SocketInUse if a daemon is there, OSError where it cannot."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(_clear_stale, self.path)
        except SocketInUse:
            raise
        except OSError as error:
            raise self._cannot_listen(error) from error
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            umask = os.umask(0o777 & ~_MODE)
            try:
                listener.bind(str(self.path))
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
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # gone, stuck, or the daemon is stopping: nothing is owed to this client
        finally:
            self._connections.discard(task)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()
            else:
                writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the conversation is over."""
        try:
            line = await asyncio.wait_for(reader.readline(), _IDLE_TIMEOUT)
        except ValueError:  # longer than the limit
            await _write(writer, await encode(_failure("bad-request", "the request is too large")))
            return False
        if not line.endswith(b"\n"):
            return False
        await _write(writer, await self._answer(line))
        return True

    async def _answer(self, line: bytes) -> bytes:
        try:
            command, args = parse_request(line)
            document = await dispatch(self._dispatcher, command, args, self._on_error)
            return await encode({"ok": True, "document": document})
        except CommandError as error:
            return await encode(_failure(error.code, error.message))
        except (TypeError, ValueError) as error:  # a document that is not JSON
            if self._on_error is not None:
                self._on_error(line[:80].decode(errors="replace"), error)
            return await encode(_failure("internal", "the answer is not JSON; see the log"))


def parse_request(line: bytes) -> tuple[str, Json]:
    """Return command and arguments of a request. Raises CommandError (bad-request)."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError("bad-request", "the request is not JSON") from error
    if not isinstance(request, dict):
        raise CommandError("bad-request", "the request is not a JSON object")
    command, what, args = request.get("command"), request.get("what"), request.get("args")
    args = {} if args is None else args
    if not isinstance(command, str) or not isinstance(args, dict):
        raise CommandError("bad-request", 'expected {"command": text, "args": {...}}')
    if what is None:
        return command, args
    if not isinstance(what, str):
        raise CommandError("bad-request", '"what" is not text')
    return f"{command} {what}", args


def _failure(code: str, message: str) -> Json:
    return {"ok": False, "error": {"code": code, "message": message}}


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one line, waiting a bounded time for a client that does not read."""
    async with asyncio.timeout(_WRITE_TIMEOUT):
        for start in range(0, len(data), _WRITE_CHUNK):
            writer.write(data[start : start + _WRITE_CHUNK])
            await writer.drain()
        writer.write(b"\n")
        await writer.drain()


def _clear_stale(path: Path) -> None:
    """Remove the socket of a dead daemon. Raises SocketInUse where a live one answers."""
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
            pass  # there, but too busy or forbidden: not ours to remove
    raise SocketInUse(
        errno.EADDRINUSE, f"another daemon is listening on {path} (api: socket: in the file)"
    )
