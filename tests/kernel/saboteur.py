"""Netlink sockets in which one call fails, in any of the ways known of the kernel."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from fared.kernel import netlink
from fared.kernel.netlink import HEADER, messages

ERRORS = (errno.EAGAIN, errno.EBUSY, errno.EEXIST, errno.ENOENT, errno.ENOBUFS, errno.EMFILE)
_ERROR, _DONE, _INTERRUPTED = 2, 3, 0x10


class Fault:
    """A named failure; ``send`` raises instead of sending, ``receive`` alters answers."""

    def __init__(self, name: str, error: int, *, where: str) -> None:
        self.name, self.error, self.where = name, error, where

    def __repr__(self) -> str:
        return self.name


def _refused(data: bytes, error: int) -> bytes:
    """The answers to ``data`` if the kernel refuses every request."""
    answers = b""
    for _, _, sequence, _, _ in messages(data):
        body = struct.pack("=i", -error) + HEADER.pack(16, 0, 0, sequence, 0)
        answers += HEADER.pack(16 + len(body), _ERROR, 0x100, sequence, 0) + body
    return answers


def _ended(data: bytes, error: int) -> bytes:
    """A dump that ends at once, with an error."""
    *_, (_, _, sequence, _, _) = messages(data)
    return HEADER.pack(20, _DONE, 2, sequence, 0) + struct.pack("=i", -error)


def _interrupted(data: bytes) -> bytes:
    """Mark every message as part of a dump that was inconsistent (NLM_F_DUMP_INTR)."""
    parts = []
    for kind, flags, sequence, port, body in messages(data):
        head = HEADER.pack(16 + len(body), kind, flags | _INTERRUPTED, sequence, port)
        parts.append(head + body + b"\0" * (-len(body) % 4))
    return b"".join(parts)


FAULTS = (
    *(Fault(f"send-{errno.errorcode[e]}", e, where="send") for e in ERRORS),
    *(Fault(f"recv-{errno.errorcode[e]}", e, where="recv") for e in ERRORS),
    *(Fault(f"refused-{errno.errorcode[e]}", e, where="refused") for e in ERRORS),
    Fault("dump-ends-with-EBUSY", errno.EBUSY, where="ended"),
    Fault("dump-interrupted", 0, where="interrupted"),
    Fault("no-descriptor", errno.EMFILE, where="open"),
)


class Saboteur:
    """Wraps the sockets of ``fared.kernel``, and makes one call fail."""

    def __init__(self, monkeypatch: Any, *modules: Any) -> None:
        self.fault: Fault | None = None
        self.struck = 0
        self._at = 0
        self._calls: Counter[str] = Counter()
        for module in (netlink, *modules):
            monkeypatch.setattr(module, "open_socket", self._opening(module.open_socket))

    def arm(self, fault: Fault, at: int) -> None:
        """Make the ``at``-th send or recv from now on fail; interruptions of dumps continue."""
        self.fault, self._at, self.struck = fault, at, 0
        self._calls.clear()

    def disarm(self) -> None:
        """Let all calls succeed from now on."""
        self.fault = None

    def strikes(self, call: str) -> bool:
        """Whether this ``open``, ``send`` or ``recv`` is to fail."""
        number, fault = self._calls[call], self.fault
        self._calls[call] += 1
        if fault is None:
            return False
        if call == "open":  # a socket that is lost cannot be replaced: no descriptor is free
            hit = fault.where == "open" and self.struck > 0
        elif (call == "send") is not (fault.where in ("send", "refused")):
            hit = False
        else:
            hit = number == self._at or (fault.where == "interrupted" and number > self._at)
        self.struck += hit
        return hit

    def _opening(self, real: Callable[..., socket.socket]) -> Callable[..., Any]:
        def open_socket(*args: Any, **options: Any) -> Any:
            if self.strikes("open"):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return Sabotaged(real(*args, **options), self)

        return open_socket


class Sabotaged:
    """A real socket, each call of which the saboteur may make fail."""

    def __init__(self, real: socket.socket, saboteur: Saboteur) -> None:
        self._real, self._saboteur = real, saboteur
        self._answers: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def send(self, data: bytes) -> int:
        if self._saboteur.strikes("send"):
            fault = self._saboteur.fault
            if fault.where == "send":
                raise OSError(fault.error, os.strerror(fault.error))
            self._answers.append(_refused(data, fault.error))
            return len(data)
        return self._real.send(data)

    def recv(self, size: int) -> bytes:
        if self._answers:
            return self._answers.pop()
        fault = self._saboteur.fault
        if not self._saboteur.strikes("recv"):
            return self._real.recv(size)
        if fault.where == "recv":
            raise OSError(fault.error, os.strerror(fault.error))
        data = self._real.recv(size)
        match fault.where:
            case "ended":
                return _ended(data, fault.error)
            case "interrupted":
                return _interrupted(data)
        self._real.close()  # "open": the socket is lost, and no descriptor is free for another
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
