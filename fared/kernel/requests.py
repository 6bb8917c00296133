"""Synchronous netlink requests on a socket that is replaced when an error makes it unusable.

The kernel executes requests inside ``send``, so a blocking socket does not wait and no event loop
is needed. A failure is a result (``batch``) or an OSError; the next request finds a usable socket,
a new one if necessary. ``dumps`` reads long tables without blocking the event loop.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Sequence

from fared.kernel import netlink
from fared.kernel.errors import InterruptedDumpError, NetlinkError, PrivilegeError
from fared.kernel.netlink import (
    HEADER,
    NETLINK_ROUTE,
    NLM_F_ACK,
    NLM_F_DUMP,
    NLM_F_DUMP_INTR,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    Message,
    RequestFailure,
    failure_in,
    messages,
    raise_if_ended_badly,
)

_RECEIVE_SIZE = 1 << 18
_ANSWER_SIZE = 1 << 16
"""Bytes for the answer to a change, which is far smaller. More would be mapped, and unmapped, for
each answer."""
_WORD = 0xFFFFFFFF
_REQUEST = int(NLM_F_REQUEST)
_REQUEST_AND_ACK = int(NLM_F_REQUEST | NLM_F_ACK)
_CHUNK = 16 << 10
_DUMP_ATTEMPTS = 8
_TIMEOUT = struct.pack("=qq", 1, 0)
"""The answer is queued when ``send`` returns: one that does not arrive was lost."""
_PASSING = frozenset((errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EBUSY, errno.EINTR))
"""Errors of ``send`` that leave the socket usable."""


LOST = RequestFailure(errno.ENOBUFS, "answers were lost")
"""The request may or may not have been executed."""


class RequestSocket:
    """Sends requests synchronously. ``port_id`` marks the echoes of our own changes.

    After an error that leaves answers in the queue, or an unfinished dump (the kernel would answer
    EBUSY to the next), the socket is replaced by one with the same port id.
    """

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        self._protocol = protocol
        self._socket: socket.socket | None = None
        self._sequence = 0
        self.port_id = 0
        self._ready()

    def close(self) -> None:
        """Close the socket; a later request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ready(self) -> socket.socket:
        """Return the socket, reopened if necessary. Raises OSError."""
        if self._socket is None:
            self._socket = netlink.open_socket(self._protocol, port=self.port_id)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)
            self.port_id = self._socket.getsockname()[0]
        return self._socket

    def _send(self, data: bytes) -> socket.socket:
        sock = self._ready()
        try:
            sock.send(data)
        except OSError as error:
            if error.errno not in _PASSING:
                self.close()
            raise
        return sock

    def request(
        self, kind: int, flags: int, body: bytes, purpose: str = "change networking"
    ) -> None:
        """Send one request and wait for its answer.

        Raises NetlinkError, or PrivilegeError naming ``purpose``.
        """
        failure = self.batch([(kind, flags, body)]).get(0)
        if failure is None:
            return
        if failure.error in (errno.EPERM, errno.EACCES):
            raise PrivilegeError("CAP_NET_ADMIN", purpose)
        raise NetlinkError(*failure)

    def batch(self, requests: Sequence[Message]) -> dict[int, RequestFailure]:
        """Send requests in order, many at a time; return those that failed, by position.

        A failed request does not stop the rest, and no socket error is raised: an unsent request
        fails with its error, and one whose answer was lost with ENOBUFS (``LOST``).
        """
        failures: dict[int, RequestFailure] = {}
        parts: list[bytes] = []
        size = first = 0
        pack, number = HEADER.pack, self._sequence
        last = len(requests) - 1
        for position, (kind, flags, body) in enumerate(requests):
            # The kernel always reports a failure, and success only with NLM_F_ACK, which the last
            # message of a chunk has. Sequence numbers advance by two, as ``parts`` does.
            length = 16 + len(body)
            size += length
            if length & 3:
                padding = -length % 4
                body += b"\0" * padding  # noqa: PLW2901
                size += padding
            ends = size >= _CHUNK or position == last
            wanted = flags | (_REQUEST_AND_ACK if ends else _REQUEST)
            parts.append(pack(length, kind, wanted, number + len(parts) & _WORD, 0))
            parts.append(body)
            if ends:
                self._exchange(b"".join(parts), first, position, failures)
                parts, size, first, number = [], 0, position + 1, self._sequence
        return failures

    def _exchange(
        self, data: bytes, first: int, last: int, failures: dict[int, RequestFailure]
    ) -> None:
        """Send one chunk and collect answers up to that of its last message."""
        base = self._sequence
        final = (base + 2 * (last - first)) & _WORD
        self._sequence = (final + 2) & _WORD
        try:
            sock = self._send(data)
        except OSError as error:
            number = error.errno or errno.EIO
            lost = RequestFailure(number, os.strerror(number))
            failures.update(dict.fromkeys(range(first, last + 1), lost))
            return
        try:
            while not _answers(sock.recv(_ANSWER_SIZE), base, final, first, failures):
                pass
        except OSError as error:
            # ENOBUFS drops answers, and the socket stays usable. After a timeout or another error
            # late answers would be taken for those of the next chunk: replace the socket.
            if error.errno != errno.ENOBUFS:
                self.close()
            for position in range(first, last + 1):
                failures.setdefault(position, LOST)

    def dump(self, kind: int, body: bytes, flags: int = 0) -> list[tuple[int, bytes]]:
        """Read a table: (message type, body) of each entry.

        A dump interrupted by a change (NLM_F_DUMP_INTR) is read again. Raises NetlinkError,
        InterruptedDumpError if the table never stopped changing, or another OSError.
        """
        for _ in range(_DUMP_ATTEMPTS):
            found, whole = self.dump_once(kind, body, flags)
            if whole:
                return found
        raise InterruptedDumpError(errno.EAGAIN, "the table changes faster than it can be read")

    def dump_once(
        self, kind: int, body: bytes, flags: int = 0
    ) -> tuple[list[tuple[int, bytes]], bool]:
        """Read a table once; also whether nothing changed meanwhile. Raises OSError."""
        try:
            return self._dump(kind, body, flags)
        except OSError as error:
            # A refusal ends the dump. Otherwise it is still in progress; EBUSY reports one before.
            if not isinstance(error, NetlinkError) or error.errno == errno.EBUSY:
                self.close()
            raise

    def _dump(self, kind: int, body: bytes, flags: int) -> tuple[list[tuple[int, bytes]], bool]:
        """Return all answers, and whether no change and no full buffer interrupted them."""
        wanted = self._next_sequence()
        flags |= NLM_F_REQUEST | NLM_F_DUMP
        sock = self._send(HEADER.pack(16 + len(body), kind, flags, wanted, 0) + body)
        found: list[tuple[int, bytes]] = []
        whole = True
        while True:
            try:
                received = sock.recv(_RECEIVE_SIZE)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                # Part of the dump was dropped, but its end still arrives.
                whole = False
                continue
            for answer, answer_flags, sequence, _, payload in messages(received):
                if sequence != wanted:
                    continue
                whole &= not answer_flags & NLM_F_DUMP_INTR
                if answer == NLMSG_ERROR:
                    _raise_failure(answer_flags, payload)
                elif answer == NLMSG_DONE:
                    raise_if_ended_badly(payload)
                    return found, whole
                else:
                    found.append((answer, payload))

    def query(self, kind: int, body: bytes) -> list[tuple[int, bytes]]:
        """Request one object; return the answers before the acknowledgment. Raises OSError."""
        wanted = self._next_sequence()
        flags = NLM_F_REQUEST | NLM_F_ACK
        sock = self._send(HEADER.pack(16 + len(body), kind, flags, wanted, 0) + body)
        found: list[tuple[int, bytes]] = []
        while True:
            try:
                received = sock.recv(_RECEIVE_SIZE)
            except OSError:
                self.close()
                raise
            for answer, answer_flags, sequence, _, payload in messages(received):
                if sequence != wanted:
                    continue
                if answer == NLMSG_ERROR:
                    _raise_failure(answer_flags, payload)
                    return found
                found.append((answer, payload))

    def _next_sequence(self) -> int:
        wanted = (self._sequence + 2) & _WORD
        self._sequence = (wanted + 2) & _WORD
        return wanted


def _answers(
    received: bytes, base: int, final: int, first: int, failures: dict[int, RequestFailure]
) -> bool:
    """Record failures; return whether the last message of the chunk was answered."""
    last = first + ((final - base) & _WORD) // 2
    for kind, flags, sequence, _, body in messages(received):
        if kind != NLMSG_ERROR:
            continue
        failure = failure_in(flags, body)
        position = first + ((sequence - base) & _WORD) // 2
        if failure is not None and position <= last:
            failures[position] = failure
        if sequence == final:
            return True
    return False


def _raise_failure(flags: int, payload: bytes) -> None:
    failure = failure_in(flags, payload)
    if failure is not None:
        raise NetlinkError(*failure)
