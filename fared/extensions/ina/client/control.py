"""The connection of a worker to its router: it joins, and learns of epochs and losses.

It never blocks. A connection that breaks is opened again, since the sums do not depend on it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec

from fared.extensions.ina.client.errors import JoinError
from fared.extensions.ina.messages import (
    MAX_LINE,
    Current,
    Join,
    Leave,
    WorkerAnswer,
    WorkerProgress,
    WorkerRequest,
    checked_answer,
)
from fared.extensions.ina.slots.setup import SetupError
from fared.runtime.connection import LineConnection

_RETRY = 0.2
_ROUTES = Path("/proc/net/route")


def default_gateway() -> str:
    """Return the address of the router on the default route. Raises JoinError."""
    for line in _ROUTES.read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == fields[7] == "00000000":
            return socket.inet_ntoa(struct.pack("=I", int(fields[2], 16)))
    raise JoinError("no default route: give the address of the router (gateway=)")


class Control:
    """One connection at a time, opened again until ``close``."""

    def __init__(self, router: tuple[str, int], join: Join) -> None:
        self.error = "not connected yet"
        """Why there is no connection."""
        self._router, self._join = router, join
        self._line: LineConnection | None = None
        self._connecting: socket.socket | None = None
        self._retry_at = 0.0
        self._told: WorkerProgress | None = None
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(WorkerAnswer).decode

    @property
    def sock(self) -> socket.socket | None:
        """The socket to wait for: to read, and to write if ``writes``."""
        return self._connecting if self._line is None else self._line.sock

    @property
    def writes(self) -> bool:
        """Whether to wait until the socket can be written to."""
        return self._line is None or self._line.blocked

    def deadline(self) -> float | None:
        """Return when ``tick`` has something to do."""
        return self._retry_at if self.sock is None else None

    def tick(self, now: float) -> None:
        """Open a connection if there is none."""
        if self.sock is not None or now < self._retry_at:
            return
        self._retry_at = now + _RETRY
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                sock.connect(self._router)
            except BlockingIOError:
                raise
            except OSError as error:
                self.error = error.strerror or str(error)
                sock.close()
                return
        self._connecting = sock

    def ready(self, take: Callable[[WorkerAnswer], None]) -> None:
        """Read and write; pass on what arrived."""
        if self._connecting is not None:
            self._connected(self._connecting)
            return
        line = self._line
        if line is None:
            return
        if line.blocked:
            line.flush()
        for text in line.messages():
            try:
                answer = checked_answer(self._decode(text))
            except (msgspec.MsgspecError, SetupError):
                self.error = "the router is of another version"
                line.closed = True
                break
            take(answer)
        if line.closed and self._line is line:
            line.close()
            self._line = None

    def _connected(self, sock: socket.socket) -> None:
        self._connecting = None
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self.error = OSError(failed, "").__class__.__name__
            sock.close()
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._line = LineConnection(sock, MAX_LINE)
        self._told = None
        self.send(self._join)

    def installed(self, epoch: int) -> None:
        """Tell the router of this epoch when a connection is opened again."""
        self._join = msgspec.structs.replace(self._join, epoch=epoch)

    def send(self, request: WorkerRequest) -> None:
        """Send a request, if there is a connection."""
        if self._line is not None:
            self._line.send(self._encode(request))

    def tell(self, progress: WorkerProgress) -> None:
        """Tell the router how far this worker is, if that has changed."""
        if self._line is not None and progress != self._told:
            self._told = progress
            self.send(progress)

    def refresh(self) -> None:
        """Ask for the present epoch."""
        self.send(Current())

    def leave(self) -> None:
        """Leave in good order, and close."""
        self.send(Leave())
        self.close()

    def close(self) -> None:
        """Close the connection: without ``leave`` the router takes this worker for lost."""
        for sock in (self._connecting, self._line.sock if self._line is not None else None):
            if sock is not None:
                sock.close()
        self._connecting = self._line = None
