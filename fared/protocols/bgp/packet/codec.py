"""Messages and their bytes (RFC 4271 §4): for a session, or for those of a capture.

Decoders return a value or raise MessageError, with the NOTIFICATION that its sender is to get.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from fared.core.wire import DecodeError
from fared.protocols.bgp.packet.capabilities import decode_parameters, encode_parameters
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.framing import HEADER, MAX_EXTENDED, check_header, frame
from fared.protocols.bgp.packet.messages import (
    VERSION,
    Keepalive,
    Message,
    MessageType,
    OpenMessage,
    RouteRefresh,
    Update,
)
from fared.protocols.bgp.packet.notification import Fault, MessageError, Notification
from fared.protocols.bgp.packet.packing import pack_update
from fared.protocols.bgp.packet.update import UpdateReader

_OPEN = struct.Struct(">BHHI")
_REFRESH = struct.Struct(">HBB")
KEEPALIVE: Final = frame(MessageType.KEEPALIVE, b"")


class Decoder:
    """Decodes the messages of one session; ``coding`` is what is agreed on it."""

    def __init__(self, coding: Coding) -> None:
        self._updates = UpdateReader(coding)

    def decode(self, kind: int, data: bytes) -> Message:
        """Decode a whole message with a checked header. Raises MessageError."""
        match kind:
            case MessageType.UPDATE:
                return self._updates.decode(data, HEADER)
            case MessageType.KEEPALIVE:
                return Keepalive()
            case MessageType.OPEN:
                return decode_open(data)
            case MessageType.NOTIFICATION:
                return Notification(data[HEADER], data[HEADER + 1], data[HEADER + 2 :])
            case _:
                return _decode_refresh(data)


def decode_message(data: bytes, coding: Coding | None = None) -> Message:
    """Decode one message by itself, of any length. Raises MessageError."""
    coding = coding or Coding()
    kind, length = check_header(data, MAX_EXTENDED) if len(data) >= HEADER else (0, 0)
    if length != len(data):
        raise MessageError(Fault.BAD_MESSAGE_LENGTH, f"message of {len(data)} bytes")
    return Decoder(coding).decode(kind, data)


def decode_open(data: bytes) -> OpenMessage:
    """Decode an OPEN (RFC 4271 §4.2); whether its values are acceptable is the session's matter."""
    version, my_as, hold_time, identifier = _OPEN.unpack_from(data, HEADER)
    if version != VERSION:
        # RFC 4271 §6.2: the data are the version that is supported
        what = f"its BGP version is {version}, not {VERSION}"
        data = VERSION.to_bytes(2, "big")
        raise MessageError(Fault.UNSUPPORTED_VERSION_NUMBER, what, data, HEADER)
    try:
        capabilities = decode_parameters(data, HEADER + _OPEN.size)
    except DecodeError as error:
        other = error.code == "type"
        fault = Fault.UNSUPPORTED_OPTIONAL_PARAMETER if other else Fault.OPEN_UNSPECIFIC
        raise MessageError(fault, error.what, offset=error.offset) from None
    return OpenMessage(my_as, hold_time, identifier, capabilities)


def _decode_refresh(data: bytes) -> RouteRefresh:
    if len(data) != HEADER + _REFRESH.size:
        # RFC 7313 §5: the data are the message
        what = f"route refresh of {len(data)} bytes"
        raise MessageError(Fault.INVALID_MESSAGE_LENGTH, what, data)
    afi, subtype, safi = _REFRESH.unpack_from(data, HEADER)
    return RouteRefresh(afi, safi, subtype)


def encode_message(message: Message, coding: Coding | None = None) -> Iterator[bytes]:
    """Yield the bytes of a message; an UPDATE may need several, or none if nothing is in it.

    Raises ValueError, OverflowError or struct.error if a value does not fit.
    """
    match message:
        case Update():
            yield from pack_update(message, coding or Coding())
        case Keepalive():
            yield KEEPALIVE
        case OpenMessage():
            yield encode_open(message)
        case Notification():
            yield encode_notification(message)
        case RouteRefresh():
            body = _REFRESH.pack(message.afi, message.subtype, message.safi)
            yield frame(MessageType.ROUTE_REFRESH, body)


def encode_open(message: OpenMessage) -> bytes:
    """Encode an OPEN."""
    body = _OPEN.pack(message.version, message.my_as, message.hold_time, message.identifier)
    return frame(MessageType.OPEN, body + encode_parameters(message.capabilities))


def encode_notification(message: Notification) -> bytes:
    """Encode a NOTIFICATION."""
    return frame(MessageType.NOTIFICATION, bytes((message.code, message.subcode)) + message.data)
