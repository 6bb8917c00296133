"""Packet authentication: signing encoded packets and verifying received ones.

The types of RFC 2328 appendix D and its updates, all over whole packets as bytes:

- a clear-text password in the header (AuType 1, §D.4.2),
- a keyed digest appended to the packet (AuType 2): MD5 (§D.4.3) or HMAC-SHA (RFC 5709 §3.3),
- the same with a 64-bit sequence number between packet and digest, and the source address in
  the digest (AuType 3, RFC 7474).

``verify`` returns the sequence number of an authentic packet; ``processing/authenticate`` compares
it with earlier ones (§D.5.3 (2), RFC 7474 §2).
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

import msgspec

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey, Keyring
from fared.protocols.ospf.packet.codec import PACKET_HEADER_SIZE, packet_checksum, packet_length
from fared.protocols.ospf.packet.packets import AuType

_AUTH_OFFSET: Final = 16
_CHECKSUM_AND_TYPE = struct.Struct(">HH")
_CRYPTO = struct.Struct(">HBBI")  # 0, key id, auth data length, sequence (§D.3)
_EXTENDED = struct.Struct(">HBBI")  # 0, 0, auth data length, key id (RFC 7474 §3)
_SEQUENCE_64 = struct.Struct(">Q")
_SIMPLE_SIZE: Final = 8
_MD5_KEY_SIZE: Final = 16
_APAD: Final = bytes.fromhex("878fe1f3")
_CRYPTOGRAPHIC_PROTOCOL_ID: Final = (3).to_bytes(2, "big")  # OSPFv2 (RFC 7474 §6, IANA)


class AuthInfo(msgspec.Struct, frozen=True):
    """The authentication fields of a packet, verified or not.

    ``sequence`` has 32 or 64 bits; ``data_length`` is the number of authentication bytes after the
    packet. All but ``au_type`` are zero for types 0 and 1.
    """

    au_type: int
    key_id: int = 0
    sequence: int = 0
    data_length: int = 0


def read_auth(payload: bytes) -> AuthInfo:
    """Read the authentication fields that select the key, without verification.

    Raises DecodeError: that of ``packet_length``, ``auth`` for an unknown type, and ``truncated``
    if authentication data is missing.
    """
    length = packet_length(payload)
    _, au_type = _CHECKSUM_AND_TYPE.unpack_from(payload, 12)
    if au_type in (AuType.NULL, AuType.SIMPLE):
        return AuthInfo(au_type)
    if au_type not in (AuType.CRYPTOGRAPHIC, AuType.CRYPTOGRAPHIC_EXTENDED):
        raise DecodeError("auth", 14, f"unknown authentication type {au_type}")
    _, key_id, size, sequence = _CRYPTO.unpack_from(payload, _AUTH_OFFSET)
    if length + size > len(payload):
        raise DecodeError(
            "truncated",
            len(payload),
            f"{len(payload) - length} bytes of authentication data, expected {size}",
        )
    if au_type == AuType.CRYPTOGRAPHIC_EXTENDED:
        if size < _SEQUENCE_64.size:
            raise DecodeError(
                "auth", 19, f"{size} bytes of authentication data, expected 8 or more"
            )
        _, _, _, key_id = _EXTENDED.unpack_from(payload, _AUTH_OFFSET)
        (sequence,) = _SEQUENCE_64.unpack_from(payload, length)
    return AuthInfo(au_type, key_id, sequence, size)


def au_type_of(key: AuthKey) -> AuType:
    """Return the AuType of packets under this key."""
    if key.algorithm is Algorithm.CLEARTEXT:
        return AuType.SIMPLE
    return AuType.CRYPTOGRAPHIC_EXTENDED if key.extended else AuType.CRYPTOGRAPHIC


def overhead_of(key: AuthKey) -> int:
    """Return the size of the authentication data after a packet, which counts toward the MTU."""
    return key.algorithm.digest_size + key.extended * _SEQUENCE_64.size


def overhead(keyring: Keyring) -> int:
    """Return the largest size of the authentication data with any of the keys."""
    return max((overhead_of(timed.key) for timed in keyring), default=0)


def sign(packet: bytes, key: AuthKey, sequence: int = 0, source: int = 0) -> bytes:
    """Authenticate an encoded packet; its present authentication fields are replaced.

    ``packet`` is exactly one packet; ``sequence`` has 32 bits, or 64 if the key is extended;
    ``source`` is the IPv4 address it will be sent from, used by AuType 3 only. The result goes
    into one IP datagram; the length in the packet header does not include the digest.
    """
    body = packet[PACKET_HEADER_SIZE:]
    # RFC 2328 §D.4.2 (2), (3): the checksum excludes the password
    if key.algorithm is Algorithm.CLEARTEXT:
        head = packet[:12] + _CHECKSUM_AND_TYPE.pack(0, AuType.SIMPLE)
        checksum = packet_checksum(head + bytes(_SIMPLE_SIZE) + body)
        return (
            packet[:12] + _CHECKSUM_AND_TYPE.pack(checksum, AuType.SIMPLE) + _password(key) + body
        )
    # §D.4.3 (1), (2): AuType, and checksum 0
    head = packet[:12] + _CHECKSUM_AND_TYPE.pack(0, au_type_of(key))
    # §D.4.3 (3) to (5): key id, length, sequence number; extended: RFC 7474 §3
    if key.extended:
        field = _EXTENDED.pack(0, 0, overhead_of(key), key.key_id)
        trailer = _SEQUENCE_64.pack(sequence)
    else:
        field = _CRYPTO.pack(0, key.key_id, overhead_of(key), sequence)
        trailer = b""
    # §D.4.3 (6): the digest is appended
    message = head + field + body + trailer
    return message + digest(message, key, source)


def verify(payload: bytes, key: AuthKey | None, source: int = 0) -> AuthInfo:
    """Verify a received packet with the key of its interface (§D.5); None: no authentication.

    ``source`` is the IPv4 source address of the datagram, used by AuType 3 only. Digests are
    compared in constant time. Raises DecodeError ``auth`` if type, key id or digest do not match,
    and that of ``read_auth``.
    """
    info = read_auth(payload)
    expected = AuType.NULL if key is None else au_type_of(key)
    if info.au_type != expected:
        raise DecodeError("auth", 14, f"authentication type {info.au_type}, expected {expected}")
    if key is None:
        return info
    # RFC 2328 §D.5.2 (2); ``decode_packet`` verifies the checksum (1)
    if key.algorithm is Algorithm.CLEARTEXT:
        found = payload[_AUTH_OFFSET:PACKET_HEADER_SIZE]
        if not hmac.compare_digest(found, _password(key)):
            raise DecodeError("auth", _AUTH_OFFSET, "the password does not match")
        return info
    # §D.5.3 (1): the key id
    if info.key_id != key.key_id:
        raise DecodeError("auth", 18, f"key id {info.key_id}, expected {key.key_id}")
    if info.data_length != overhead_of(key):
        raise DecodeError(
            "auth",
            19,
            f"{info.data_length} bytes of authentication data, expected {overhead_of(key)}",
        )
    # §D.5.3 (3): the digest
    end = packet_length(payload) + overhead_of(key)
    start = end - key.algorithm.digest_size
    if not hmac.compare_digest(payload[start:end], digest(payload[:start], key, source)):
        raise DecodeError("auth", start, "the digest does not match")
    return info


def _password(key: AuthKey) -> bytes:
    return key.key[:_SIMPLE_SIZE].ljust(_SIMPLE_SIZE, b"\0")


def digest(message: bytes, key: AuthKey, source: int = 0) -> bytes:
    """The digest over a packet and, if extended, the sequence number; or over an LLS block."""
    name = key.algorithm.hash_name
    # RFC 2328 §D.4.3 (6): MD5 over packet and key
    if name is None:
        padded = key.key[:_MD5_KEY_SIZE].ljust(_MD5_KEY_SIZE, b"\0")
        return hashlib.md5(message + padded, usedforsecurity=False).digest()
    size = key.algorithm.digest_size
    secret = key.key
    apad = _APAD * (size // len(_APAD))
    # RFC 7474 §6: the key ends with the protocol id; §5: Apad begins with the source address
    if key.extended:
        secret += _CRYPTOGRAPHIC_PROTOCOL_ID
        apad = source.to_bytes(4, "big") + apad[4:]
    # RFC 5709 §3.3 (1) hashes keys longer than the digest. Here only those longer than a block are
    # hashed, as RFC 2104 does: so does BIRD (recorded in the tests).
    return hmac.digest(secret, message + apad, name)
