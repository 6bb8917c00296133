"""Netlink sockets and framing, independent of the meaning of messages.

The sockets are our own because pyroute2's are unusable after one ENOBUFS and filter dumps in
Python. ``requests`` sends requests, ``dumps`` reads long tables. Attributes are packed by hand for
messages that pyroute2 does not know (next hops) or encodes a hundred times slower than the kernel
processes them (routes, counters); all others are pyroute2's, in ``rtnl``. Layouts are those of
linux/netlink.h and linux/rtnetlink.h, in host byte order.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

from fared.kernel.errors import NetlinkError

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

NLMSG_ERROR = 2
NLMSG_DONE = 3
_SOL_NETLINK = 270
_NETLINK_CAP_ACK, _NETLINK_EXT_ACK, _NETLINK_GET_STRICT_CHK = 10, 11, 12
_SO_RCVBUFFORCE = 33
_NOTIFICATION_SIZE = 1 << 16
_MOST_READS = 64

HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_U32_ATTRIBUTE = struct.Struct("=HHI")
_INT = 4


Message = tuple[int, int, bytes]
"""A request: message type, flags besides NLM_F_REQUEST, and the bytes after the header."""


class RequestFailure(NamedTuple):
    """An errno (positive) and the kernel's text for it."""

    error: int
    text: str


def attribute(kind: int, payload: bytes) -> bytes:
    """Pack an attribute, padded to four bytes."""
    return _ATTRIBUTE.pack(4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def u32_attribute(kind: int, value: int) -> bytes:
    """Pack a 32-bit attribute."""
    return _U32_ATTRIBUTE.pack(8, kind, value)


def attributes(data: bytes, offset: int = 0, end: int | None = None) -> dict[int, bytes]:
    """Unpack attributes by type; the last of a type wins, a malformed tail is ignored."""
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
    """Split one received datagram into (type, flags, sequence, port id, body)."""
    offset, size = 0, len(data)
    while offset + 16 <= size:
        length, kind, flags, sequence, port = HEADER.unpack_from(data, offset)
        if length < 16 or offset + length > size:
            break
        yield kind, flags, sequence, port, data[offset + 16 : offset + length]
        offset += (length + 3) & ~3


def open_socket(
    protocol: int = NETLINK_ROUTE, receive_buffer: int = 4 << 20, port: int = 0
) -> socket.socket:
    """Open a netlink socket with strict checks and extended errors in the caller's namespace.

    ``port`` is the port id to use if it is free. Raises OSError.
    """
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        # Larger than rmem_max only with CAP_NET_ADMIN in the first user namespace (else EPERM).
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, receive_buffer)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    for option in (_NETLINK_CAP_ACK, _NETLINK_EXT_ACK, _NETLINK_GET_STRICT_CHK):
        try:
            sock.setsockopt(_SOL_NETLINK, option, 1)
        except OSError:
            continue  # ENOPROTOOPT of an older kernel: unfiltered dumps, errors without text
    try:
        sock.bind((port, 0))
    except OSError:  # EADDRINUSE: let the kernel choose a port id
        sock.bind((0, 0))
    return sock


def notifications(sock: socket.socket) -> Iterator[bytes | None]:
    """Read the messages queued in a non-blocking socket, with a bounded number of reads.

    None stands for messages that the kernel dropped because the queue was full (ENOBUFS, reported
    once; the socket stays usable). After any other error, too, messages may be missing.
    """
    for _ in range(_MOST_READS):
        try:
            data = sock.recv(_NOTIFICATION_SIZE)
        except BlockingIOError:
            return
        except OSError as error:
            yield None
            if error.errno != errno.ENOBUFS:
                return
        else:
            yield data


def failure_in(flags: int, body: bytes) -> RequestFailure | None:
    """Read an NLMSG_ERROR: None for a plain acknowledgement."""
    if len(body) < _INT:
        return RequestFailure(errno.EBADMSG, os.strerror(errno.EBADMSG))
    error = -struct.unpack_from("=i", body)[0]
    if error == 0:
        return None
    text = os.strerror(error)
    if flags & NLM_F_ACK_TLVS:
        # The failed request follows the error number: all of it, or only its header.
        length = 16 if flags & NLM_F_CAPPED else u32(body[4:])
        words = attributes(body, 4 + ((length + 3) & ~3)).get(1)  # NLMSGERR_ATTR_MSG
        if words:
            text = words.rstrip(b"\0").decode("ascii", "replace")
    return RequestFailure(error, text)


def raise_if_ended_badly(payload: bytes) -> None:
    """Raise NetlinkError if the end of a dump (NLMSG_DONE) carries an error."""
    error = -struct.unpack_from("=i", payload)[0] if len(payload) >= _INT else 0
    if error > 0:
        raise NetlinkError(error, os.strerror(error))
