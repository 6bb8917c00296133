"""Requests to ``fared-ina`` over its unix socket, one at a time."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from fared.extensions.ina.messages import Answer, InaState, Request, RequestRefused, ShowJobs

_TIMEOUT = 10.0
_READ = 1 << 16


class OperatorError(Exception):
    """``fared-ina`` does not answer, or refused; the text tells why."""


def ask(path: Path, request: Request) -> Answer:
    """Return the answer to a request. Raises OperatorError."""
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_TIMEOUT)
            sock.connect(str(path))
            sock.sendall(msgspec.json.encode(request) + b"\n")
            line = bytearray()
            while not line.endswith(b"\n"):
                data = sock.recv(_READ)
                if not data:
                    raise OperatorError(f"{path}: fared-ina closed the connection")
                line += data
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from error
    try:
        answer: Answer = msgspec.json.decode(line, type=Answer)
    except msgspec.MsgspecError as error:
        raise OperatorError(f"{path}: not an answer of this version") from error
    if isinstance(answer, RequestRefused):
        raise OperatorError(answer.reason)
    return answer


def state(path: Path) -> InaState:
    """Return the state of all jobs. Raises OperatorError."""
    answer = ask(path, ShowJobs())
    if not isinstance(answer, InaState):
        raise OperatorError(f"{path}: not an answer to the request")
    return answer
