"""Frames of FPM: a header in network byte order around netlink messages in host byte order.

A frame of SONiC has at most 16,384 bytes. A reader keeps at most one incomplete frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from fared.core.wire import DecodeError
from fared.kernel.netlink import HEADER as NETLINK_HEADER

HEADER = struct.Struct(">BBH")
VERSION, NETLINK = 1, 1
LARGEST = 16384
_ALIGNMENT = 4

Received = tuple[int, bytes]
"""A netlink message: its type and the bytes after the header."""


def frames(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Pack netlink messages in order, as many as fit into each frame.

    Raises ValueError if a message fits into no frame.
    """
    parts: list[bytes] = []
    size = HEADER.size
    for message in messages:
        if HEADER.size + len(message) > LARGEST:
            raise ValueError(f"a message of {len(message)} bytes fits into no frame")
        if size + len(message) > LARGEST:
            yield _frame(parts, size)
            parts, size = [], HEADER.size
        parts.append(message)
        size += len(message)
    if parts:
        yield _frame(parts, size)


def _frame(parts: list[bytes], size: int) -> bytes:
    return HEADER.pack(VERSION, NETLINK, size) + b"".join(parts)


class FrameReader:
    """Reads netlink messages from the pieces of a stream, in which frames start anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Received]:
        """Return the messages of all frames that ``data`` completes.

        Raises DecodeError: where the next frame starts is then unknown, the stream is of no use.
        """
        rest, offset = self._rest + data, 0
        found: list[Received] = []
        while len(rest) - offset >= HEADER.size:
            version, kind, length = HEADER.unpack_from(rest, offset)
            if (version, kind) != (VERSION, NETLINK):
                raise DecodeError("version", offset, f"frame of version {version}, type {kind}")
            if not HEADER.size <= length <= LARGEST:
                raise DecodeError("length", offset, f"frame of {length} bytes")
            if len(rest) - offset < length:
                break
            found += _messages(rest[offset + HEADER.size : offset + length])
            offset += length
        self._rest = rest[offset:]
        return found


def _messages(body: bytes) -> Iterator[Received]:
    """Split the body of a frame. ``kernel.netlink.messages`` would ignore a malformed tail."""
    offset = 0
    while offset < len(body):
        if len(body) - offset < NETLINK_HEADER.size:
            raise DecodeError("truncated", offset, "header of a message in a frame")
        length, kind, _, _, _ = NETLINK_HEADER.unpack_from(body, offset)
        if not NETLINK_HEADER.size <= length <= len(body) - offset:
            raise DecodeError("length", offset, f"message of {length} bytes in a frame")
        yield kind, body[offset + NETLINK_HEADER.size : offset + length]
        offset += -(-length // _ALIGNMENT) * _ALIGNMENT
