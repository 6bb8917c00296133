"""The client's end of the control socket: blocking, and cheap to import."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Json = dict[str, Any]

STREAM = b'{"ok":true,"stream":'
"""The beginning of the line before a stream of events."""
ANSWER, ANSWER_END = b'{"ok":true,"document":', b"}\n"
"""The envelope of a document: its text can be extracted without parsing it."""
_CHUNK = 1 << 20
PATIENCE = 30.0
"""Seconds for an answer: that of a large database takes some."""


class DaemonUnreachableError(Exception):
    """No daemon answers on the socket, or not in time."""


class DaemonRefusedError(Exception):
    """The daemon answered with an error; ``code`` as in ``errors.ERROR_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ControlClient:
    """One connection for each request: a restart of the daemon in between is harmless."""

    def __init__(self, path: str, timeout: float = PATIENCE) -> None:
        self.path = path
        self.timeout = timeout

    def request(self, command: str, what: str | None = None, args: Json | None = None) -> Json:
        """Send a request and return the document.

        Raises DaemonUnreachableError or DaemonRefusedError.
        """
        document: Json = json.loads(self.text(command, what, args))
        return document

    def text(self, command: str, what: str | None = None, args: Json | None = None) -> bytes:
        """Send a request and return the document as the JSON text that the daemon sent.

        Raises DaemonUnreachableError or DaemonRefusedError.
        """
        request: Json = {"command": command, "args": args or {}}
        if what is not None:
            request["what"] = what
        with self._connected() as connection, self._explained():
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = _read_line(connection)
        if not line.endswith(b"\n"):
            raise DaemonUnreachableError(f"the answer on {self.path} was cut short")
        if line.startswith(ANSWER):
            return line[len(ANSWER) : -len(ANSWER_END)]
        raise _refusal(line)

    @contextmanager
    def stream(self, command: str, args: Json) -> Iterator[tuple[socket.socket, bytes]]:
        """Send a request that a stream of lines answers; yield the connection, and its first bytes.

        Raises DaemonUnreachableError or DaemonRefusedError.
        """
        request = json.dumps({"command": command, "args": args}).encode() + b"\n"
        with self._connected() as connection:
            with self._explained():
                connection.sendall(request)
                first, rest = _first_line(connection)
            if not first.startswith(STREAM):
                raise _refusal(first)
            connection.settimeout(None)
            yield connection, rest

    @contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        """Connect for a block. Raises DaemonUnreachableError."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self.timeout)
            with self._explained():
                connection.connect(self.path)
            yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert errors of the connection into DaemonUnreachableError."""
        try:
            yield
        except TimeoutError as error:
            raise DaemonUnreachableError(
                f"fared does not answer on {self.path} within {self.timeout:g} s"
            ) from error
        except OSError as error:
            raise DaemonUnreachableError(_explain(self.path, error)) from error


def _refusal(line: bytes) -> DaemonRefusedError:
    try:
        error = json.loads(line)["error"]
        return DaemonRefusedError(str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return DaemonRefusedError("internal", "no reason given")


def _read_line(connection: socket.socket) -> bytes:
    received: list[bytes] = []
    while chunk := connection.recv(_CHUNK):
        received.append(chunk)
        if chunk.endswith(b"\n"):
            break
    return b"".join(received)


def _first_line(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read until the end of the first line; return it, and what came with it."""
    received = b""
    while b"\n" not in received and (chunk := connection.recv(_CHUNK)):
        received += chunk
    line, _, rest = received.partition(b"\n")
    return line, rest


def _explain(path: str, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"no permission to use {path}: be root or in its group"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return f"fared is not running, or not with its socket at {path} (try -s SOCKET)"
    return f"cannot reach fared on {path}: {error.strerror or error}"
