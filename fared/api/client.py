"""The client's end of the control socket: blocking, and cheap to import."""

from __future__ import annotations

import json
import socket
from typing import Any

Json = dict[str, Any]

_CHUNK = 1 << 16


class DaemonUnreachableError(Exception):
    """Nobody answers on the socket, or the answer never came."""


class DaemonRefusedError(Exception):
    """The daemon answered with an error; ``code`` as in ``schema.ERROR_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ControlClient:
    """One request a connection: a daemon that restarts in between is no trouble."""

    def __init__(self, path: str, timeout: float = 30.0) -> None:
        self.path = path
        self.timeout = timeout

    def request(self, command: str, what: str | None = None, args: Json | None = None) -> Json:
        """Ask the daemon and return the document.

        Raises DaemonUnreachableError or DaemonRefusedError.
        """
        request: Json = {"command": command, "args": args or {}}
        if what is not None:
            request["what"] = what
        answer = self._exchange(json.dumps(request).encode() + b"\n")
        if answer.get("ok") is True and isinstance(answer.get("document"), dict):
            document: Json = answer["document"]
            return document
        error = answer.get("error") or {}
        raise DaemonRefusedError(
            str(error.get("code", "internal")), str(error.get("message", "no reason given"))
        )

    def _exchange(self, request: bytes) -> Json:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(self.timeout)
            try:
                connection.connect(self.path)
                connection.sendall(request)
                line = _read_line(connection)
            except TimeoutError as error:
                raise DaemonUnreachableError(
                    f"fared does not answer on {self.path} within {self.timeout:g} s"
                ) from error
            except OSError as error:
                raise DaemonUnreachableError(_explain(self.path, error)) from error
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise DaemonUnreachableError(f"the answer on {self.path} was cut short") from error
        return answer if isinstance(answer, dict) else {}


def _read_line(connection: socket.socket) -> bytes:
    received: list[bytes] = []
    while chunk := connection.recv(_CHUNK):
        received.append(chunk)
        if chunk.endswith(b"\n"):
            break
    return b"".join(received)


def _explain(path: str, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"no permission to use {path}: be root or in its group"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return f"fared is not running, or not with its socket at {path} (try -s SOCKET)"
    return f"cannot reach fared on {path}: {error.strerror or error}"
