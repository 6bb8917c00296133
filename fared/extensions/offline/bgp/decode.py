"""One BGP message from bytes to a ``fared-decode/1`` document.

Errors after which the daemon treats routes as withdrawn (RFC 7606) are ``findings`` of an UPDATE.
AS numbers have four octets, unless the OPEN messages of a capture say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fared.extensions.offline.bgp.capture import CapturedEnd, read_messages
from fared.extensions.offline.decoded import decoded_document
from fared.protocols.bgp.packet.capabilities import FourOctetAs
from fared.protocols.bgp.packet.codec import decode_message, encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import Message, OpenMessage
from fared.protocols.igp.keys import AuthKey

Json = dict[str, Any]


def decode_document(
    data: bytes,
    form: str,
    *,
    key: AuthKey | None = None,
    reencode: bool = False,
    coding: Coding | None = None,
) -> Json:
    """Decode ``data`` as one message; a malformed one gives ``"ok": false``."""
    del key  # TCP is authenticated, not its contents
    return decoded_document("bgp", form, lambda: _decode(data, coding), reencode=reencode)


def _decode(data: bytes, coding: Coding | None) -> Json:
    message = decode_message(data, coding)
    return {
        "packet": message.document(),
        "bytes": (data, lambda: b"".join(encode_message(message, coding))),
    }


def capture_documents(path: Path, *, key: AuthKey | None, reencode: bool) -> Iterator[Json]:
    """A document for each message of a capture. Raises CaptureError."""
    wide: dict[tuple[CapturedEnd, CapturedEnd], bool] = {}
    for found in read_messages(path):
        there = wide.get((found.source, found.destination), True)
        back = wide.get((found.destination, found.source), True)
        coding = Coding(four_octet_as=there and back, limit=_LIMIT)
        document = decode_document(found.data, "packet", key=key, reencode=reencode, coding=coding)
        opened = _opened(found.data)
        if opened is not None:
            wide[found.source, found.destination] = opened.has(FourOctetAs)
        yield {
            **document,
            "frame": found.frame,
            "time": found.time,
            "source": str(found.source),
            "destination": str(found.destination),
        }


_LIMIT = 65535
_OPEN, _TYPE_AT = 1, 18


def _opened(data: bytes) -> OpenMessage | None:
    if data[_TYPE_AT : _TYPE_AT + 1] != bytes((_OPEN,)):
        return None
    try:
        message: Message = decode_message(data)
    except ValueError:
        return None
    return message if isinstance(message, OpenMessage) else None
