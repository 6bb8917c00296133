"""Authentication of PDUs: clear text (ISO 10589), HMAC-MD5 (RFC 5304), HMAC-SHA (RFC 5310).

Keys and their lifetimes are those of ``igp.keys``. Digests cover the whole PDU with a blank
authentication value; of an LSP neither remaining lifetime nor checksum, since other systems change
the former. There is no protection against replay (RFC 5304 §3, RFC 5310 §4).
"""

from __future__ import annotations

import contextlib
import hmac
import struct
from typing import Final

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey, Keyring, accept_keys
from fared.protocols.isis.pdu.header import (
    LSPS,
    RawPdu,
    blank_mutable,
    checksum_of,
    insert_tlv,
    read_pdu,
    with_checksum,
)
from fared.protocols.isis.pdu.model import Lsp, Pdu
from fared.protocols.isis.pdu.tlvs import Authentication, Hostname, PurgeOriginator
from fared.protocols.isis.pdu.triplet import HEADER, read_triplets, write_triplet

CLEARTEXT: Final = 1
GENERIC: Final = 3
HMAC_MD5: Final = 54
_KEY_ID = struct.Struct(">H")
_MAX_PASSWORD: Final = 254
_APAD: Final = bytes.fromhex("878fe1f3")
_ROUTER_FINGERPRINT: Final = 15
_IN_PURGES: Final = (
    Authentication.code,
    PurgeOriginator.code,
    Hostname.code,
    _ROUTER_FINGERPRINT,
)
"""TLVs that a purge may carry under authentication (RFC 5304 §2, RFC 6232, RFC 6233, RFC 8196)."""


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
    """Authenticate an encoded PDU without authentication TLV: one is inserted in front.

    The checksum of an LSP is recomputed. Raises ValueError if the PDU exceeds 65535 bytes.
    """
    # RFC 5304 §2, RFC 5310 §3.4: type, length and key id are set before the digest is computed,
    # after padding; lifetime and checksum of an LSP are zero meanwhile
    filler = _filler(key)
    tlv = write_triplet(Authentication.code, bytes((kind_of_key(key),)) + _value(key, filler))
    kind, signed, start = read_pdu(insert_tlv(raw, tlv))
    if filler:
        end = start + len(tlv)
        digest = _digest(blank_mutable(signed), key)
        signed = signed[: end - len(filler)] + digest + signed[end:]
    if kind in LSPS:
        return with_checksum(signed, checksum_of(signed))
    return signed


def verify(raw: RawPdu, pdu: Pdu, keyring: Keyring, wall: float) -> None:
    """Check a received PDU against the keys of its circuit or level at a wall-clock time.

    ``pdu`` is the decoded ``raw``. Without keys all PDUs pass, signed or not. Digests are compared
    in constant time. Raises DecodeError ``auth``.
    """
    if not keyring:
        return
    # RFC 5304 §2: unauthenticated PDUs are discarded, purges among them
    found = _find(raw)
    if found is None:
        raise DecodeError("auth", 0, "no authentication, or more than one")
    first, last = found
    # RFC 5304 §2, RFC 6233: a purge with the body of the LSP is discarded. Its digest is that of
    # the LSP, so that any system could set the lifetime of a received LSP to zero.
    if isinstance(pdu, Lsp) and not pdu.remaining_lifetime:
        _check_purge(raw)
    # RFC 5304 §2, RFC 5310 §3.5: any key that is accepted now
    data, blank = raw.data, b""
    for timed in accept_keys(keyring, wall):
        if not _matches(data, first, last, timed.key):
            continue
        if timed.key.algorithm is Algorithm.CLEARTEXT:
            if hmac.compare_digest(data[first + 1 : last], _value(timed.key, b"")):
                return
            continue
        blank = blank or blank_mutable(data)
        start = last - timed.key.algorithm.digest_size
        message = blank[:start] + _filler(timed.key) + blank[last:]
        if hmac.compare_digest(data[start:last], _digest(message, timed.key)):
            return
    raise DecodeError("auth", first, "no key matches the authentication")


def without_password(raw: bytes) -> bytes:
    """An LSP to be shown: stars in place of a clear text password, with the checksum of that.

    Malformed TLVs end the search, as nothing tells what is behind them.
    """
    shown = bytearray(raw)
    with contextlib.suppress(DecodeError):
        for kind, first, last in read_triplets(raw, read_pdu(raw).tlvs, len(raw)):
            if kind == Authentication.code and raw[first : first + 1] == bytes((CLEARTEXT,)):
                shown[first + 1 : last] = b"*" * (last - first - 1)
    return raw if shown == raw else with_checksum(bytes(shown), checksum_of(bytes(shown)))


def _find(raw: RawPdu) -> tuple[int, int] | None:
    """Offset of the value of the only authentication TLV; None if there are none or several."""
    found = [
        (first, last)
        for kind, first, last in read_triplets(raw.data, raw.tlvs, len(raw.data))
        if kind == Authentication.code and last > first
    ]
    return found[0] if len(found) == 1 else None


def _check_purge(raw: RawPdu) -> None:
    for kind, first, _ in read_triplets(raw.data, raw.tlvs, len(raw.data)):
        if kind not in _IN_PURGES:
            raise DecodeError("auth", first, f"TLV {kind} is not allowed in a purge")


def _matches(raw: bytes, first: int, last: int, key: AuthKey) -> bool:
    """Whether a key can have produced this TLV, by its type, size and key id."""
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
    """The low 16 bits of the key id: the field has two bytes (RFC 5310 §2, §3.1)."""
    return _KEY_ID.pack(key.key_id & 0xFFFF)


def _filler(key: AuthKey) -> bytes:
    """The authentication value while the digest is computed.

    Zeros for HMAC-MD5 (RFC 5304 §2), a constant for the others (RFC 5310 §3.3).
    """
    size = key.algorithm.digest_size
    return bytes(size) if kind_of_key(key) == HMAC_MD5 else _APAD * (size // len(_APAD))


def _digest(message: bytes, key: AuthKey) -> bytes:
    """The HMAC of RFC 2104.

    RFC 5310 §3.3 hashes a key that is longer than the digest, RFC 2104 one that is longer than a
    block of the hash function. They differ for keys between both.
    """
    return hmac.digest(key.key, message, key.algorithm.hash_name or "md5")
