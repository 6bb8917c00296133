"""The header of messages (RFC 4271 §4.1), and a stream of bytes cut into them.

The header is checked as soon as it is there. Bytes of a message that is not complete are appended
to, never copied.
"""

from __future__ import annotations

import struct
from typing import Final

from fared.protocols.bgp.packet.notification import Fault, MessageError

MARKER: Final = b"\xff" * 16
HEADER: Final = 19
TYPE_AT: Final = 18
MAX_LENGTH: Final = 4096
MAX_EXTENDED: Final = 65535
_LEAST: Final = {1: 29, 2: 23, 3: 21, 4: 19, 5: 23}
"""Octets of a message at least, by type (RFC 4271 §6.1)."""
_ALWAYS_SHORT: Final = (1, 4)
"""RFC 8654 §4: OPEN and KEEPALIVE never exceed 4,096 octets."""
_KEEPALIVE: Final = 4
_HEAD: Final = struct.Struct(">HB")


def frame(kind: int, body: bytes) -> bytes:
    """Put a header before a body. Raises struct.error for more than 65,535 octets."""
    return MARKER + _HEAD.pack(HEADER + len(body), kind) + body


def check_header(data: bytes | bytearray, limit: int) -> tuple[int, int]:
    """Return type and length that the first 19 octets tell. Raises MessageError (§6.1)."""
    if data[:16] != MARKER:
        what = "the marker of a message is not all ones"
        raise MessageError(Fault.CONNECTION_NOT_SYNCHRONIZED, what)
    length, kind = _HEAD.unpack_from(data, 16)
    least = _LEAST.get(kind)
    if least is None:
        what = f"message of type {kind}"
        raise MessageError(Fault.BAD_MESSAGE_TYPE, what, bytes((kind,)), TYPE_AT)
    most = HEADER if kind == _KEEPALIVE else MAX_LENGTH if kind in _ALWAYS_SHORT else limit
    if not least <= length <= most:
        what = f"message of type {kind} and {length} bytes, not {least} to {most}"
        raise MessageError(Fault.BAD_MESSAGE_LENGTH, what, length.to_bytes(2, "big"), 16)
    return kind, length


class Framer:
    """Takes bytes as they come, returns messages. ``limit``: octets of a message at most."""

    def __init__(self) -> None:
        self.limit = MAX_LENGTH
        self._buffer = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Append bytes; who reads from the stream looks at ``waiting`` first."""
        # what has been returned goes first, so that it is done once for all messages of a turn
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    @property
    def waiting(self) -> int:
        """Octets that no message has been made of."""
        return len(self._buffer) - self._at

    @property
    def ready(self) -> bool:
        """Whether ``next`` returns a message, or raises."""
        if self.waiting < HEADER:
            return False
        length = int.from_bytes(self._buffer[self._at + 16 : self._at + 18], "big")
        return self.waiting >= length or length > self.limit

    def next(self) -> tuple[int, bytes] | None:
        """Return type and bytes of the next message, None if it is not complete.

        Raises MessageError for a header that is wrong, after which nothing can be read.
        """
        at = self._at
        if len(self._buffer) - at < HEADER:
            return None
        kind, length = check_header(self._buffer[at : at + HEADER], self.limit)
        if len(self._buffer) - at < length:
            return None
        self._at = at + length
        with memoryview(self._buffer) as view:
            return kind, bytes(view[at : self._at])
