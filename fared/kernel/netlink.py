"""Netlink sockets and framing, and nothing about what the messages mean.

The sockets are ours because pyroute2's are dead after one ENOBUFS and filter dumps in Python.
The kernel carries requests out inside ``send``, so a blocking socket never waits and no event
loop is needed here. The attributes packed here by hand serve the messages that pyroute2 does not
know (next hops) or encodes a hundred times slower than the kernel takes them (routes, counters);
all others are its own, in ``rtnl``.
Layouts are those of linux/netlink.h and linux/rtnetlink.h, in host byte order.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fared.kernel.errors import InterruptedDumpError, NetlinkError, PrivilegeError

NETLINK_ROUTE = 0
NETLINK_GENERIC = 16
NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_DUMP_INTR = 0x10
NLM_F_DUMP = 0x300
NLM_F_REPLACE = 0x100
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLM_F_CAPPED = 0x100
NLM_F_ACK_TLVS = 0x200
NLA_F_NESTED = 0x8000
NLA_TYPE_MASK = 0x3FFF

_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_SOL_NETLINK = 270
_NETLINK_CAP_ACK, _NETLINK_EXT_ACK, _NETLINK_GET_STRICT_CHK = 10, 11, 12
_SO_RCVBUFFORCE = 33
_RECEIVE_SIZE = 1 << 18
_ANNOUNCED_SIZE = 1 << 16
_MOST_READS = 64
_CHUNK = 16 << 10
_DUMP_ATTEMPTS = 8
_TIMEOUT = struct.pack("=qq", 10, 0)

HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_U32_ATTRIBUTE = struct.Struct("=HHI")


Message = tuple[int, int, bytes]
"""A request to be sent: message type, flags besides REQUEST, and what follows the header."""


class Failure(NamedTuple):
    """An errno (positive) and the kernel's words for it."""

    error: int
    text: str


def attribute(kind: int, payload: bytes) -> bytes:
    """Pack an attribute, padded to four bytes."""
    return _ATTRIBUTE.pack(4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def u32_attribute(kind: int, value: int) -> bytes:
    """Pack a 32-bit attribute."""
    return _U32_ATTRIBUTE.pack(8, kind, value)


def attributes(data: bytes, offset: int = 0, end: int | None = None) -> dict[int, bytes]:
    """Unpack attributes by type; the last of a kind wins, a malformed tail is left out."""
    found: dict[int, bytes] = {}
    stop = len(data) if end is None else end
    while offset + 4 <= stop:
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < 4 or offset + length > stop:
            break
        found[kind & NLA_TYPE_MASK] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


def u32(payload: bytes) -> int:
    """Read a 32-bit attribute in host order."""
    return int.from_bytes(payload[:4], sys.byteorder)


def messages(data: bytes) -> Iterator[tuple[int, int, int, int, bytes]]:
    """Split what one recv returned into (type, flags, sequence, port id, body)."""
    offset, size = 0, len(data)
    while offset + 16 <= size:
        length, kind, flags, sequence, port = HEADER.unpack_from(data, offset)
        if length < 16 or offset + length > size:
            break
        yield kind, flags, sequence, port, data[offset + 16 : offset + length]
        offset += (length + 3) & ~3


def open_socket(protocol: int = NETLINK_ROUTE, receive_buffer: int = 4 << 20) -> socket.socket:
    """Open a netlink socket with strict checks and extended errors in the caller's namespace."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        # Beyond rmem_max only with CAP_NET_ADMIN in the first user namespace.
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, receive_buffer)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    for option in (_NETLINK_CAP_ACK, _NETLINK_EXT_ACK, _NETLINK_GET_STRICT_CHK):
        try:
            sock.setsockopt(_SOL_NETLINK, option, 1)
        except OSError:
            continue  # an older kernel: more to filter here, fewer words in errors
    sock.bind((0, 0))
    return sock


def announced(sock: socket.socket) -> Iterator[bytes | None]:
    """What waits in a socket that does not block, a number of reads at most.

    None stands for what the kernel had to leave out (ENOBUFS). Raises OSError for other errors.
    """
    for _ in range(_MOST_READS):
        try:
            data = sock.recv(_ANNOUNCED_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            yield None
        else:
            yield data


class RequestSocket:
    """Asks the kernel, synchronously. ``port_id`` marks the echoes of our own changes."""

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        self._socket = open_socket(protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)
        self._sequence = 0
        self.port_id: int = self._socket.getsockname()[0]

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

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

    def batch(self, requests: Sequence[Message]) -> dict[int, Failure]:
        """Send requests in order, many at a time; return those that failed, by position.

        A failing one does not stop the rest. An answer that was lost counts as ENOBUFS.
        """
        failures: dict[int, Failure] = {}
        parts: list[bytes] = []
        size = first = 0
        pack = HEADER.pack
        last = len(requests) - 1
        for position, (kind, flags, body) in enumerate(requests):
            length = 16 + len(body)
            padding = -length % 4
            size += length + padding
            ends = position == last or size >= _CHUNK
            wanted = flags | NLM_F_REQUEST | (NLM_F_ACK if ends else 0)
            parts.append(pack(length, kind, wanted, (self._sequence + len(parts)) & 0xFFFFFFFF, 0))
            parts.append(body if not padding else body + b"\0" * padding)
            if ends:
                self._exchange(b"".join(parts), first, position, failures)
                parts, size, first = [], 0, position + 1
        return failures

    def _exchange(self, data: bytes, first: int, last: int, failures: dict[int, Failure]) -> None:
        """Send one chunk and gather answers up to that of its last message."""
        base = self._sequence
        final = (base + 2 * (last - first)) & 0xFFFFFFFF
        self._sequence = (final + 2) & 0xFFFFFFFF
        self._socket.send(data)
        while True:
            try:
                received = self._socket.recv(_RECEIVE_SIZE)
            except OSError as error:
                if error.errno not in (errno.ENOBUFS, errno.EAGAIN):
                    raise
                for position in range(first, last + 1):
                    failures.setdefault(position, Failure(errno.ENOBUFS, "answers were lost"))
                return
            for kind, flags, sequence, _, body in messages(received):
                if kind != _NLMSG_ERROR:
                    continue
                failure = _failure(flags, body)
                ahead = (sequence - base) & 0xFFFFFFFF
                position = first + ahead // 2
                if failure is not None and position <= last:
                    failures[position] = failure
                if sequence == final:
                    return

    def dump(self, kind: int, body: bytes, flags: int = 0) -> list[tuple[int, bytes]]:
        """Read a table: (message type, body) of each entry.

        A dump that a change interrupted (NLM_F_DUMP_INTR) is read again. Raises NetlinkError,
        or InterruptedDumpError if it never came to rest.
        """
        for _ in range(_DUMP_ATTEMPTS):
            found = self._dump(kind, body, flags)
            if found is not None:
                return found
        raise InterruptedDumpError(errno.EAGAIN, "the table changes faster than it can be read")

    def _dump(self, kind: int, body: bytes, flags: int) -> list[tuple[int, bytes]] | None:
        self._sequence = wanted = (self._sequence + 2) & 0xFFFFFFFF
        self._sequence = (wanted + 2) & 0xFFFFFFFF
        flags |= NLM_F_REQUEST | NLM_F_DUMP
        self._socket.send(HEADER.pack(16 + len(body), kind, flags, wanted, 0) + body)
        found: list[tuple[int, bytes]] = []
        interrupted = False
        while True:
            try:
                received = self._socket.recv(_RECEIVE_SIZE)
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    interrupted = True
                    continue
                raise
            for answer, answer_flags, sequence, _, payload in messages(received):
                if sequence != wanted:
                    continue
                interrupted |= bool(answer_flags & NLM_F_DUMP_INTR)
                if answer == _NLMSG_ERROR:
                    failure = _failure(answer_flags, payload)
                    if failure is not None:
                        raise NetlinkError(*failure)
                elif answer == _NLMSG_DONE:
                    return None if interrupted else found
                else:
                    found.append((answer, payload))

    def query(self, kind: int, body: bytes) -> list[tuple[int, bytes]]:
        """Ask for one object: the answers before the acknowledgement. Raises NetlinkError."""
        wanted = self._sequence = (self._sequence + 2) & 0xFFFFFFFF
        flags = NLM_F_REQUEST | NLM_F_ACK
        self._socket.send(HEADER.pack(16 + len(body), kind, flags, wanted, 0) + body)
        found: list[tuple[int, bytes]] = []
        while True:
            received = self._socket.recv(_RECEIVE_SIZE)
            for answer, answer_flags, sequence, _, payload in messages(received):
                if sequence != wanted:
                    continue
                if answer == _NLMSG_ERROR:
                    failure = _failure(answer_flags, payload)
                    if failure is not None:
                        raise NetlinkError(*failure)
                    self._sequence += 2
                    return found
                found.append((answer, payload))


def _failure(flags: int, body: bytes) -> Failure | None:
    """Read an NLMSG_ERROR: None for a plain acknowledgement."""
    error = -struct.unpack_from("=i", body)[0]
    if error == 0:
        return None
    text = os.strerror(error)
    if flags & NLM_F_ACK_TLVS:
        # The failed request follows the error number: all of it, or only its header.
        length = 16 if flags & NLM_F_CAPPED else struct.unpack_from("=I", body, 4)[0]
        words = attributes(body, 4 + ((length + 3) & ~3)).get(1)  # NLMSGERR_ATTR_MSG
        if words:
            text = words.rstrip(b"\0").decode("ascii", "replace")
    return Failure(error, text)
