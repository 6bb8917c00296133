"""Authentication of PDUs: clear text (ISO 10589), HMAC-MD5 (RFC 5304), HMAC-SHA (RFC 5310).

Keys and their lifetimes are those of ``core.keys``. Digests cover the whole PDU, its
authentication value blank; of an LSP neither remaining lifetime nor checksum, so that it can age
on its way. Nothing here guards against replay: IS-IS has no means to.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

from fared.core.keys import Algorithm, AuthKey, Keyring, accept_keys
from fared.core.wire import DecodeError
from fared.isis.pdu.header import (
    blank_mutable,
    checksum_of,
    insert_tlv,
    pdu_type,
    read_frame,
    with_checksum,
)
from fared.isis.pdu.model import Lsp, Pdu, PduType, TlvType
from fared.isis.pdu.triplet import HEADER, read_triplets, write_triplet

CLEARTEXT: Final = 1
GENERIC: Final = 3
HMAC_MD5: Final = 54
_KEY_ID = struct.Struct(">H")
_MAX_PASSWORD: Final = 254
_APAD: Final = bytes.fromhex("878fe1f3")
_LSPS: Final = (PduType.L1_LSP, PduType.L2_LSP)
_ROUTER_FINGERPRINT: Final = 15
_IN_PURGES: Final = (
    TlvType.AUTHENTICATION,
    TlvType.PURGE_ORIGINATOR,
    TlvType.HOSTNAME,
    _ROUTER_FINGERPRINT,
)
"""TLVs that a purge may carry under authentication (RFC 6233, RFC 8196)."""


def kind_of_key(key: AuthKey) -> int:
    """The authentication type of PDUs under this key, first byte of TLV 10."""
    if key.algorithm is Algorithm.CLEARTEXT:
        return CLEARTEXT
    return HMAC_MD5 if key.algorithm is Algorithm.MD5 else GENERIC


def authentication_size(key: AuthKey | None) -> int:
    """Bytes the authentication TLV takes, its header included; 0 without a key."""
    return 0 if key is None else HEADER + 1 + len(_value(key, key.algorithm.digest_size * b"\0"))


def keyring_size(keyring: Keyring) -> int:
    """Bytes the authentication TLV takes under any of the keys, at most."""
    return max((authentication_size(timed.key) for timed in keyring), default=0)


def sign(raw: bytes, key: AuthKey) -> bytes:
    """Authenticate an encoded PDU that has no authentication TLV: one is put in front.

    The checksum of an LSP is made new. Raises ValueError if the PDU outgrows 65535 bytes.
    """
    filler = _filler(key)
    tlv = write_triplet(TlvType.AUTHENTICATION, bytes((kind_of_key(key),)) + _value(key, filler))
    signed = insert_tlv(raw, tlv)
    if filler:
        end = read_frame(signed).tlvs + len(tlv)
        digest = _digest(blank_mutable(signed), key)
        signed = signed[: end - len(filler)] + digest + signed[end:]
    if pdu_type(signed) in _LSPS:
        return with_checksum(signed, checksum_of(signed))
    return signed


def verify(raw: bytes, pdu: Pdu, keyring: Keyring, wall: float) -> None:
    """Check a received PDU against the keys of its circuit or level at a wall-clock time.

    ``raw`` is exactly the PDU, ``pdu`` what it decodes to. Without keys everything passes,
    signed or not (RFC 5304). A purge must carry nothing that the purged LSP might have
    (RFC 6233). Digests are compared in constant time. Raises DecodeError ``auth``.
    """
    if not keyring:
        return
    found = _find(raw)
    if found is None:
        raise DecodeError("auth", 0, "no authentication, or more than one")
    first, last = found
    if isinstance(pdu, Lsp) and not pdu.remaining_lifetime:
        _check_purge(raw)
    blank = b""
    for timed in accept_keys(keyring, wall):
        if not _matches(raw, first, last, timed.key):
            continue
        if timed.key.algorithm is Algorithm.CLEARTEXT:
            if hmac.compare_digest(raw[first + 1 : last], _value(timed.key, b"")):
                return
            continue
        blank = blank or blank_mutable(raw)
        start = last - timed.key.algorithm.digest_size
        message = blank[:start] + _filler(timed.key) + blank[last:]
        if hmac.compare_digest(raw[start:last], _digest(message, timed.key)):
            return
    raise DecodeError("auth", first, "no key fits the authentication")


def _find(raw: bytes) -> tuple[int, int] | None:
    """Where the value of the only authentication TLV is; None if there are none or several."""
    frame = read_frame(raw)
    found = [
        (first, last)
        for kind, first, last in read_triplets(raw, frame.tlvs, frame.end)
        if kind == TlvType.AUTHENTICATION and last > first
    ]
    return found[0] if len(found) == 1 else None


def _check_purge(raw: bytes) -> None:
    frame = read_frame(raw)
    for kind, first, _ in read_triplets(raw, frame.tlvs, frame.end):
        if kind not in _IN_PURGES:
            raise DecodeError("auth", first, f"TLV {kind} in a purge")


def _matches(raw: bytes, first: int, last: int, key: AuthKey) -> bool:
    """Whether a key may have made this TLV, by its type, size and key id."""
    kind = kind_of_key(key)
    if raw[first] != kind:
        return False
    if kind == CLEARTEXT:
        return True
    if last - first != 1 + len(_value(key, _filler(key))):
        return False
    return kind != GENERIC or raw[first + 1 : first + 3] == _key_id(key)


def _value(key: AuthKey, digest: bytes) -> bytes:
    """The authentication value: password, digest, or key id and digest."""
    kind = kind_of_key(key)
    if kind == CLEARTEXT:
        return key.key[:_MAX_PASSWORD]
    return _key_id(key) + digest if kind == GENERIC else digest


def _key_id(key: AuthKey) -> bytes:
    """The low 16 bits: RFC 5310 has no more."""
    return _KEY_ID.pack(key.key_id & 0xFFFF)


def _filler(key: AuthKey) -> bytes:
    """What stands in the place of the digest while it is computed.

    Zeros for HMAC-MD5 (RFC 5304 §2), a constant for the others (RFC 5310 §3.3).
    """
    size = key.algorithm.digest_size
    return bytes(size) if kind_of_key(key) == HMAC_MD5 else _APAD * (size // len(_APAD))


def _digest(message: bytes, key: AuthKey) -> bytes:
    return hmac.digest(key.key, message, key.algorithm.hash_name or "md5")
