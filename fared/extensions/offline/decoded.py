"""The document of one decoded packet, PDU, LSA or list of TLVs, for either protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fared.core.wire import DecodeError

Json = dict[str, Any]


def decoded_document(proto: str, form: str, decode: Callable[[], Json], *, reencode: bool) -> Json:
    """The document that ``decode`` returns, or ``"ok": false`` with its DecodeError.

    ``decode`` also returns, under ``bytes``, the original bytes and a function that encodes the
    decoded value. With ``reencode`` the document contains the result of that function.
    """
    document: Json = {"format": "fared-decode/1", "proto": proto, "form": form}
    try:
        content = decode()
    except DecodeError as error:
        return {**document, **failure(error)}
    original, encode = content.pop("bytes")
    document |= {"ok": True, **content}
    if reencode:
        document |= _compare(original, encode)
    return document


def failure(error: DecodeError) -> Json:
    """The part of a document that describes the error."""
    details = {"code": error.code, "offset": error.offset, "message": error.what}
    return {"ok": False, "error": details}


def _compare(original: bytes, encode: Callable[[], bytes]) -> Json:
    """The second encoding; null if it exceeds a length field, which added padding can cause."""
    try:
        encoded = encode()
    except ValueError:
        return {"reencoded": None, "identical": False}
    return {"reencoded": encoded.hex(), "identical": encoded == original}
