"""One IS-IS PDU or TLV list from bytes to a ``fared-decode/1`` document.

A malformed TLV of an LSP and a sub-TLV of a wrong size, which the daemon ignores, are errors here.
Offsets in errors count from the first byte of the input, which may be a header before the PDU.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fared.core.wire import DecodeError
from fared.extensions.offline.decoded import decoded_document
from fared.extensions.offline.isis.capture import read_isis_capture, strip_llc
from fared.protocols.igp.keys import AuthKey, TimedKey
from fared.protocols.isis.ids import format_snpa
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import (
    decode_raw,
    encode_pdu,
    encode_tlvs,
    read_pdu,
    with_checksum,
)
from fared.protocols.isis.pdu.model import Lsp, Pdu
from fared.protocols.isis.pdu.render import render_pdu, tlv_order
from fared.protocols.isis.pdu.tlv_lists import decode_tlvs, render_tlvs
from fared.protocols.isis.pdu.tlvs import Authentication, of_type
from fared.protocols.isis.pdu.triplet import DecodeOptions

Json = dict[str, Any]


def decode_document(
    data: bytes, form: str, *, key: AuthKey | None = None, reencode: bool = False
) -> Json:
    """Decode ``data`` as packet or tlvs; a malformed one gives ``"ok": false``."""

    def decode() -> Json:
        return _decode_packet_form(data, key) if form == "packet" else _decode_tlvs_form(data)

    return decoded_document("isis", form, decode, reencode=reencode)


def capture_documents(path: Path, *, key: AuthKey | None, reencode: bool) -> Iterator[Json]:
    """A document for each PDU of a capture. Raises CaptureError."""
    for frame in read_isis_capture(path):
        document = decode_document(frame.payload, "packet", key=key, reencode=reencode)
        yield {
            **document,
            "frame": frame.number,
            "time": frame.time,
            "source": None if frame.source is None else format_snpa(frame.source),
            "destination": None if frame.destination is None else format_snpa(frame.destination),
        }


def _decode_packet_form(data: bytes, key: AuthKey | None) -> Json:
    data, offset = strip_llc(data)
    try:
        raw = read_pdu(data)
        pdu = decode_raw(raw, strict=True)
        if key is not None:
            verify(raw, pdu, (TimedKey(key),), 0.0)
    except DecodeError as error:
        raise DecodeError(error.code, error.offset + offset, error.what) from error
    return {
        "packet": render_pdu(pdu, raw.data),
        "auth": _render_auth(pdu, key),
        "bytes": (raw.data, lambda: _reencode(pdu)),
    }


def _reencode(pdu: Pdu) -> bytes:
    """Encode a decoded PDU with the authentication digest and LSP checksum that it came with."""
    encoded = encode_pdu(pdu)
    return with_checksum(encoded, pdu.checksum) if isinstance(pdu, Lsp) else encoded


def _render_auth(pdu: Pdu, key: AuthKey | None) -> Json:
    found = of_type(pdu.tlvs, Authentication)
    if not found:
        return {"type": "none", "verified": None}
    rendered: Json = {"type": found[0].name}
    if found[0].kind == 3 and len(found[0].value) >= 2:
        rendered["key_id"] = int.from_bytes(found[0].value[:2], "big")
    return {**rendered, "verified": None if key is None else True}


def _decode_tlvs_form(data: bytes) -> Json:
    tlvs = decode_tlvs(data, 0, len(data), DecodeOptions(strict=True))
    return {
        "tlvs": render_tlvs(tlvs),
        "tlv_order": tlv_order(data, 0, len(data)),
        "bytes": (data, lambda: encode_tlvs(tlvs)),
    }
