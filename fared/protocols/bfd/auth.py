"""Keyed SHA1 and Meticulous Keyed SHA1 authentication (RFC 5880 §4.4, §6.7.4)."""

from __future__ import annotations

import hashlib
import hmac
import struct

from msgspec.structs import replace

from fared.core.bfd import Sha1Key
from fared.protocols.bfd.packet import AuthSection, AuthType, ControlPacket, encode_packet

_DIGEST = 20
_BODY = struct.Struct("!xI20s")
"""After the key id: a reserved byte, the sequence number, the digest."""
_DIGEST_AT = -_DIGEST
_SEQUENCES = 1 << 32


def auth_type(key: Sha1Key) -> AuthType:
    """Return the authentication type of a key."""
    return AuthType.METICULOUS_KEYED_SHA1 if key.meticulous else AuthType.KEYED_SHA1


def sign(packet: ControlPacket, key: Sha1Key, sequence: int) -> bytes:
    """Encode a packet with its digest."""
    # RFC 5880 §6.7.4: the digest covers the packet with the key in place of the digest
    body = _BODY.pack(sequence, key.secret.ljust(_DIGEST, b"\0"))
    section = AuthSection(auth_type(key), key.key_id, body)
    data = encode_packet(replace(packet, authentication=section))
    return data[:_DIGEST_AT] + hashlib.sha1(data).digest()  # noqa: S324 - the RFC's algorithm


class Verifier:
    """Verifies packets under one key, and the order of their sequence numbers (§6.7.4).

    ``known`` is bfd.AuthSeqKnown.
    """

    def __init__(self, key: Sha1Key) -> None:
        self._key = key
        self._received = 0
        self.known = False

    def problem(self, packet: ControlPacket, payload: bytes) -> str | None:
        """Return why a packet is not authentic, else None."""
        auth = packet.authentication
        # §6.7.4: type, key id, length
        if auth is None or auth.auth_type != auth_type(self._key):
            return "auth-type"
        if auth.key_id != self._key.key_id:
            return "auth-key-id"
        if len(auth.data) != _BODY.size:
            return "auth-length"
        sequence, digest = _BODY.unpack(auth.data)
        # the section is the last of a packet, whose length is in its fourth byte
        data = payload[: payload[3]]
        expected = data[:_DIGEST_AT] + self._key.secret.ljust(_DIGEST, b"\0")
        computed = hashlib.sha1(expected).digest()  # noqa: S324
        if data[_DIGEST_AT:] != digest or not hmac.compare_digest(computed, digest):
            return "auth-digest"
        # §6.7.4: the digest first here, since a forged number need not be examined
        if self.known and not self._in_order(sequence, packet.detect_mult):
            return "auth-sequence"
        self._received, self.known = sequence, True
        return None

    def _in_order(self, sequence: int, detect_mult: int) -> bool:
        """Within three detection multipliers of the last one; meticulous: above it."""
        ahead = (sequence - self._received) % _SEQUENCES
        return self._key.meticulous <= ahead <= 3 * detect_mult
