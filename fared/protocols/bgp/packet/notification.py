"""NOTIFICATION: errors by name (RFC 4271 §4.5, §6), texts, and hard resets.

``MessageError`` is the one error that codecs raise: what was wrong, and the NOTIFICATION for it.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from fared.core.text import printable
from fared.core.wire import DecodeError

_MAX_TEXT: Final = 255
_CODES: Final = {
    1: "message header error",
    2: "OPEN message error",
    3: "UPDATE message error",
    4: "hold timer expired",
    5: "finite state machine error",
    6: "cease",
    7: "ROUTE-REFRESH message error",
    8: "send hold timer expired",
}

REASONS: Final = {
    1: "header",
    2: "open",
    3: "update",
    5: "out-of-turn",
    7: "route-refresh",
}
"""What a message is rejected for, in counters, by the error code that its sender is told."""


class Fault(enum.Enum):
    """Error code and subcode; the names are the RFCs'."""

    # RFC 4271 §6.1
    CONNECTION_NOT_SYNCHRONIZED = 1, 1
    BAD_MESSAGE_LENGTH = 1, 2
    BAD_MESSAGE_TYPE = 1, 3
    # §6.2, RFC 5492 §5
    OPEN_UNSPECIFIC = 2, 0
    UNSUPPORTED_VERSION_NUMBER = 2, 1
    BAD_PEER_AS = 2, 2
    BAD_BGP_IDENTIFIER = 2, 3
    UNSUPPORTED_OPTIONAL_PARAMETER = 2, 4
    UNACCEPTABLE_HOLD_TIME = 2, 6
    UNSUPPORTED_CAPABILITY = 2, 7
    # §6.3
    MALFORMED_ATTRIBUTE_LIST = 3, 1
    UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE = 3, 2
    MISSING_WELL_KNOWN_ATTRIBUTE = 3, 3
    ATTRIBUTE_FLAGS_ERROR = 3, 4
    ATTRIBUTE_LENGTH_ERROR = 3, 5
    INVALID_ORIGIN_ATTRIBUTE = 3, 6
    INVALID_NEXT_HOP_ATTRIBUTE = 3, 8
    OPTIONAL_ATTRIBUTE_ERROR = 3, 9
    INVALID_NETWORK_FIELD = 3, 10
    MALFORMED_AS_PATH = 3, 11
    HOLD_TIMER_EXPIRED = 4, 0
    # RFC 6608 §3
    UNEXPECTED_MESSAGE_IN_OPENSENT = 5, 1
    UNEXPECTED_MESSAGE_IN_OPENCONFIRM = 5, 2
    UNEXPECTED_MESSAGE_IN_ESTABLISHED = 5, 3
    # RFC 4486 §3, RFC 8538 §3, RFC 9384
    MAXIMUM_NUMBER_OF_PREFIXES_REACHED = 6, 1
    ADMINISTRATIVE_SHUTDOWN = 6, 2
    PEER_DECONFIGURED = 6, 3
    ADMINISTRATIVE_RESET = 6, 4
    CONNECTION_REJECTED = 6, 5
    OTHER_CONFIGURATION_CHANGE = 6, 6
    CONNECTION_COLLISION_RESOLUTION = 6, 7
    OUT_OF_RESOURCES = 6, 8
    HARD_RESET = 6, 9
    BFD_DOWN = 6, 10
    # RFC 7313 §5
    INVALID_MESSAGE_LENGTH = 7, 1
    # RFC 9687
    SEND_HOLD_TIMER_EXPIRED = 8, 0


_NAMES: Final = {fault.value: fault.name.lower().replace("_", " ") for fault in Fault}
_WITH_TEXT: Final = (Fault.ADMINISTRATIVE_SHUTDOWN.value, Fault.ADMINISTRATIVE_RESET.value)


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A NOTIFICATION message: the sender closes the session."""

    code: int
    subcode: int = 0
    data: bytes = b""

    @property
    def text(self) -> str:
        """The text of an administrator (RFC 9003 §2), safe for terminals; empty without one."""
        value = self.data[1:]
        if self.kind not in _WITH_TEXT or not value or len(value) != self.data[0]:
            return ""
        return printable(value.decode(errors="replace"))

    @property
    def kind(self) -> tuple[int, int]:
        """Code and subcode."""
        return self.code, self.subcode

    @property
    def inner(self) -> Notification | None:
        """The cause of a hard reset (RFC 8538 §3.1), whose data are another NOTIFICATION."""
        if self.kind != Fault.HARD_RESET.value or len(self.data) < 2:
            return None
        return Notification(self.data[0], self.data[1], self.data[2:])

    @property
    def words(self) -> str:
        """What it says: ``cease, administrative shutdown: "maintenance"``."""
        name = _CODES.get(self.code, f"error code {self.code}")
        if self.subcode:
            name += f", {_NAMES.get(self.kind, f'subcode {self.subcode}')}"
        inner = self.inner
        if inner is not None and inner.inner is None:
            return f"{name}: {inner.words}"
        return f'{name}: "{self.text}"' if self.text else name

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        data = {"code": self.code, "subcode": self.subcode, "data": self.data.hex()}
        return {"message": "notification", **data, "words": self.words}


def notification(fault: Fault, data: bytes = b"") -> Notification:
    """Return the NOTIFICATION of an error."""
    return Notification(*fault.value, data)


def with_text(fault: Fault, text: str) -> Notification:
    """Return a Cease with a text, cut to 255 bytes of UTF-8 (RFC 9003 §2)."""
    value = text.encode(errors="replace")[:_MAX_TEXT].decode(errors="ignore").encode()
    return notification(fault, bytes((len(value),)) + value if value else b"")


def hard_reset(cause: Notification) -> Notification:
    """Return a hard reset for a cause: routes are withdrawn in spite of graceful restart."""
    return notification(Fault.HARD_RESET, bytes(cause.kind) + cause.data)


class MessageError(DecodeError):
    """A message for which the session is closed: with the NOTIFICATION that tells its sender."""

    def __init__(self, fault: Fault, what: str, data: bytes = b"", offset: int = 0) -> None:
        super().__init__("message", offset, what)
        self.notification = notification(fault, data)
