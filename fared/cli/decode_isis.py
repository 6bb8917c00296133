"""One IS-IS PDU or TLV list from bytes to a ``fared-decode/1`` document.

Stricter than the daemon, which keeps sub-TLVs of a wrong size as bytes: here they are an error.
Offsets in errors count from the first byte that was given, headers in front of the PDU included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fared.cli.capture_isis import read_isis_capture, strip_llc
from fared.core.keys import AuthKey, TimedKey
from fared.core.wire import DecodeError
from fared.isis.auth import verify
from fared.isis.ids import format_snpa
from fared.isis.pdu.codec import decode_pdu, encode_pdu, encode_tlvs, exact, with_checksum
from fared.isis.pdu.model import Authentication, Lsp, Pdu, of_type
from fared.isis.pdu.render import authentication_name, render_pdu, render_tlvs, tlv_order
from fared.isis.pdu.tlv_decode import decode_tlvs
from fared.isis.pdu.triplet import Reading

Json = dict[str, Any]


def decode_isis_document(
    data: bytes, form: str, *, key: AuthKey | None = None, reencode: bool = False
) -> Json:
    """Decode ``data`` as packet or tlvs; a malformed one gives ``"ok": false``."""
    document: Json = {"format": "fared-decode/1", "proto": "isis", "form": form}
    try:
        content = _decode_packet_form(data, key) if form == "packet" else _decode_tlvs_form(data)
    except DecodeError as error:
        details = {"code": error.code, "offset": error.offset, "message": error.what}
        return {**document, "ok": False, "error": details}
    original, encode = content.pop("bytes")
    document |= {"ok": True, **content}
    if reencode:
        document |= _compare(original, encode)
    return document


def capture_documents(path: Path, *, key: AuthKey | None, reencode: bool) -> Iterator[Json]:
    """A document for each PDU of a capture. Raises CaptureError."""
    for frame in read_isis_capture(path):
        document = decode_isis_document(frame.payload, "packet", key=key, reencode=reencode)
        yield {
            **document,
            "frame": frame.number,
            "time": frame.time,
            "source": None if frame.source is None else format_snpa(frame.source),
            "destination": None if frame.destination is None else format_snpa(frame.destination),
        }


def _compare(original: bytes, encode: Callable[[], bytes]) -> Json:
    """The encoding again; null if it outgrew a length field."""
    try:
        encoded = encode()
    except ValueError:
        return {"reencoded": None, "identical": False}
    return {"reencoded": encoded.hex(), "identical": encoded == original}


def _decode_packet_form(data: bytes, key: AuthKey | None) -> Json:
    data, offset = strip_llc(data)
    try:
        pdu = decode_pdu(data, strict=True)
        raw = exact(data)
        if key is not None:
            verify(raw, pdu, (TimedKey(key),), 0.0)
    except DecodeError as error:
        raise DecodeError(error.code, error.offset + offset, error.what) from error
    return {
        "packet": render_pdu(pdu, raw),
        "auth": _render_auth(pdu, key),
        "bytes": (raw, lambda: _reencode(pdu)),
    }


def _reencode(pdu: Pdu) -> bytes:
    """Decoded and encoded; a digest is kept as it is, and so is the checksum, also one of zero."""
    encoded = encode_pdu(pdu)
    return with_checksum(encoded, pdu.checksum) if isinstance(pdu, Lsp) else encoded


def _render_auth(pdu: Pdu, key: AuthKey | None) -> Json:
    found = of_type(pdu.tlvs, Authentication)
    if not found:
        return {"type": "none", "verified": None}
    rendered: Json = {"type": authentication_name(found[0])}
    if found[0].kind == 3 and len(found[0].value) >= 2:
        rendered["key_id"] = int.from_bytes(found[0].value[:2], "big")
    return {**rendered, "verified": None if key is None else True}


def _decode_tlvs_form(data: bytes) -> Json:
    tlvs = decode_tlvs(data, 0, len(data), Reading(strict=True))
    return {
        "tlvs": render_tlvs(tlvs),
        "tlv_order": tlv_order(data, 0, len(data)),
        "bytes": (data, lambda: encode_tlvs(tlvs)),
    }
