"""Packet authentication: signing what ``encode_packet`` made, verifying what arrived.

The three kinds of RFC 2328 §D and its successors, all over whole packets as bytes:

- a clear-text password in the header (AuType 1, §D.4.2),
- a keyed digest appended to the packet (AuType 2): MD5 (§D.4.3) or HMAC-SHA (RFC 5709 §3.3),
- the same with a 64-bit sequence number between packet and digest, and the source address in
  the digest (AuType 3, RFC 7474).

Nothing here remembers sequence numbers: ``verify`` returns the one that was protected, and
whether it is fresh (§D.3, RFC 7474 §2) is for the neighbor structure to judge.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Final

from fared.core.keys import Algorithm, AuthKey, Keyring
from fared.core.wire import DecodeError
from fared.ospf.packet.codec import PACKET_HEADER_SIZE, packet_checksum, packet_length
from fared.ospf.packet.packets import AuType

_AUTH_OFFSET: Final = 16
_CHECKSUM_AND_TYPE = struct.Struct(">HH")
_CRYPTO = struct.Struct(">HBBI")  # 0, key id, auth data length, sequence (§D.3)
_EXTENDED = struct.Struct(">HBBI")  # 0, 0, auth data length, key id (RFC 7474 §3)
_SEQUENCE_64 = struct.Struct(">Q")
_SIMPLE_SIZE: Final = 8
_MD5_KEY_SIZE: Final = 16
_APAD: Final = bytes.fromhex("878fe1f3")
_CRYPTOGRAPHIC_PROTOCOL_ID: Final = (3).to_bytes(2, "big")  # OSPFv2 (RFC 7474 §6, IANA)


@dataclass(frozen=True, slots=True)
class AuthInfo:
    """What a packet says of its authentication, verified or not.

    ``sequence`` has 32 or 64 bits; ``data_length`` counts the bytes after the packet that
    belong to the authentication. All but ``au_type`` are zero for types 0 and 1.
    """

    au_type: int
    key_id: int = 0
    sequence: int = 0
    data_length: int = 0


def read_auth(payload: bytes) -> AuthInfo:
    """Read the authentication fields, as needed to choose the key. Verifies nothing.

    Raises DecodeError: what ``packet_length`` raises, ``auth`` for an unknown type, and
    ``truncated`` if the authentication data is not all there.
    """
    length = packet_length(payload)
    _, au_type = _CHECKSUM_AND_TYPE.unpack_from(payload, 12)
    if au_type in (AuType.NULL, AuType.SIMPLE):
        return AuthInfo(au_type)
    if au_type not in (AuType.CRYPTOGRAPHIC, AuType.CRYPTOGRAPHIC_EXTENDED):
        raise DecodeError("auth", 14, f"authentication type {au_type} is not 0 to 3")
    _, key_id, size, sequence = _CRYPTO.unpack_from(payload, _AUTH_OFFSET)
    if length + size > len(payload):
        raise DecodeError(
            "truncated",
            len(payload),
            f"{size} bytes of authentication data announced, {len(payload) - length} came",
        )
    if au_type == AuType.CRYPTOGRAPHIC_EXTENDED:
        if size < _SEQUENCE_64.size:
            raise DecodeError("auth", 19, f"{size} bytes cannot hold a 64-bit sequence number")
        _, _, _, key_id = _EXTENDED.unpack_from(payload, _AUTH_OFFSET)
        (sequence,) = _SEQUENCE_64.unpack_from(payload, length)
    return AuthInfo(au_type, key_id, sequence, size)


def au_type_of(key: AuthKey) -> AuType:
    """Return the AuType of packets under this key."""
    if key.algorithm is Algorithm.CLEARTEXT:
        return AuType.SIMPLE
    return AuType.CRYPTOGRAPHIC_EXTENDED if key.extended else AuType.CRYPTOGRAPHIC


def overhead_of(key: AuthKey) -> int:
    """Return the bytes a signature adds after the packet: leave this much room below the MTU."""
    return key.algorithm.digest_size + key.extended * _SEQUENCE_64.size


def overhead(keyring: Keyring) -> int:
    """Return the bytes that a signature under any of the keys adds to a packet, at most."""
    return max((overhead_of(timed.key) for timed in keyring), default=0)


def sign(packet: bytes, key: AuthKey, sequence: int = 0, source: int = 0) -> bytes:
    """Authenticate an encoded packet, whatever authentication it carries now.

    ``packet`` is exactly one packet; ``sequence`` has 32 bits, or 64 if the key is extended;
    ``source`` is the IPv4 address it will be sent from, used by AuType 3 only. The result
    goes into one IP datagram; the packet's own length field does not count the digest.
    """
    body = packet[PACKET_HEADER_SIZE:]
    if key.algorithm is Algorithm.CLEARTEXT:  # §D.4.2: the checksum leaves the password out
        head = packet[:12] + _CHECKSUM_AND_TYPE.pack(0, AuType.SIMPLE)
        checksum = packet_checksum(head + bytes(_SIMPLE_SIZE) + body)
        return (
            packet[:12] + _CHECKSUM_AND_TYPE.pack(checksum, AuType.SIMPLE) + _password(key) + body
        )
    head = packet[:12] + _CHECKSUM_AND_TYPE.pack(0, au_type_of(key))
    if key.extended:
        field = _EXTENDED.pack(0, 0, overhead_of(key), key.key_id)
        trailer = _SEQUENCE_64.pack(sequence)
    else:
        field = _CRYPTO.pack(0, key.key_id, overhead_of(key), sequence)
        trailer = b""
    message = head + field + body + trailer
    return message + _digest(message, key, source)


def verify(payload: bytes, key: AuthKey | None, source: int = 0) -> AuthInfo:
    """Check a received packet against the key of its interface; None means no authentication.

    ``source`` is the IPv4 source address of the datagram, used by AuType 3 only. Digests are
    compared in constant time. Raises DecodeError ``auth`` if type, key id or digest do not
    match, and what ``read_auth`` raises.
    """
    info = read_auth(payload)
    expected = AuType.NULL if key is None else au_type_of(key)
    if info.au_type != expected:
        raise DecodeError("auth", 14, f"authentication type {info.au_type}, expected {expected}")
    if key is None:
        return info
    if key.algorithm is Algorithm.CLEARTEXT:
        found = payload[_AUTH_OFFSET:PACKET_HEADER_SIZE]
        if not hmac.compare_digest(found, _password(key)):
            raise DecodeError("auth", _AUTH_OFFSET, "the password is another one")
        return info
    if info.key_id != key.key_id:
        raise DecodeError("auth", 18, f"key id {info.key_id}, expected {key.key_id}")
    if info.data_length != overhead_of(key):
        raise DecodeError(
            "auth", 19, f"{info.data_length} bytes of authentication data, not {overhead_of(key)}"
        )
    end = packet_length(payload) + overhead_of(key)
    start = end - key.algorithm.digest_size
    if not hmac.compare_digest(payload[start:end], _digest(payload[:start], key, source)):
        raise DecodeError("auth", start, "the digest does not match")
    return info


def _password(key: AuthKey) -> bytes:
    return key.key[:_SIMPLE_SIZE].ljust(_SIMPLE_SIZE, b"\0")


def _digest(message: bytes, key: AuthKey, source: int) -> bytes:
    """The digest over packet and, if extended, sequence number."""
    name = key.algorithm.hash_name
    if name is None:  # §D.4.3: MD5 over packet and key
        padded = key.key[:_MD5_KEY_SIZE].ljust(_MD5_KEY_SIZE, b"\0")
        return hashlib.md5(message + padded, usedforsecurity=False).digest()
    size = key.algorithm.digest_size
    secret = key.key
    apad = _APAD * (size // len(_APAD))
    if key.extended:
        secret += _CRYPTOGRAPHIC_PROTOCOL_ID
        apad = source.to_bytes(4, "big") + apad[4:]  # RFC 7474 §5
    # RFC 5709 §3.3 (1) hashes keys longer than the digest; BIRD (recorded in the tests) does as
    # RFC 2104, which hashes only those longer than a block. Where they differ, peers decide.
    return hmac.digest(secret, message + apad, name)
