"""Authentication keys with lifetimes: the key that signs now, and the keys that are accepted.

Lifetimes overlap, so that keys change without losing an adjacency: a router accepts the new key
before its neighbors send with it, and the old one until the last neighbor has changed.
"""

from __future__ import annotations

import enum
import math

import msgspec


class Algorithm(enum.Enum):
    """How packets are authenticated; the values are the names used in the configuration."""

    CLEARTEXT = "cleartext"
    MD5 = "md5"
    HMAC_SHA_1 = "hmac-sha-1"
    HMAC_SHA_256 = "hmac-sha-256"
    HMAC_SHA_384 = "hmac-sha-384"
    HMAC_SHA_512 = "hmac-sha-512"

    @property
    def digest_size(self) -> int:
        """Bytes of the digest; 0 for a password."""
        return _DIGEST_SIZES[self]

    @property
    def hash_name(self) -> str | None:
        """The hash of an HMAC-SHA algorithm as hashlib names it, None for the others."""
        return _HASHES.get(self)


_HASHES = {
    Algorithm.HMAC_SHA_1: "sha1",
    Algorithm.HMAC_SHA_256: "sha256",
    Algorithm.HMAC_SHA_384: "sha384",
    Algorithm.HMAC_SHA_512: "sha512",
}
_DIGEST_SIZES = {
    Algorithm.CLEARTEXT: 0,
    Algorithm.MD5: 16,
    Algorithm.HMAC_SHA_1: 20,
    Algorithm.HMAC_SHA_256: 32,
    Algorithm.HMAC_SHA_384: 48,
    Algorithm.HMAC_SHA_512: 64,
}


class AuthKey(msgspec.Struct, frozen=True):
    """One key. ``key_id`` is 0..255 (0..2**32-1 if extended) and unused for a password.

    MD5 is OSPF's keyed MD5 (RFC 2328 §D) or IS-IS's HMAC-MD5 (RFC 5304). ``extended`` selects
    OSPF's AuType 3, which RFC 7474 defines for the HMAC algorithms only.
    """

    algorithm: Algorithm
    key_id: int
    key: bytes
    extended: bool = False

    def __post_init__(self) -> None:
        if self.extended and self.algorithm.hash_name is None:
            raise ValueError(f"{self.algorithm.value} has no extended sequence numbers")

    def __repr__(self) -> str:
        return f"AuthKey({self.algorithm.value}, key_id={self.key_id}, extended={self.extended})"


class TimedKey(msgspec.Struct, frozen=True):
    """One key and its lifetimes: wall-clock seconds since 1970, start inclusive, end exclusive.

    RFC 2328 §D.3 calls the four times KeyStartGenerate, KeyStopGenerate, KeyStartAccept and
    KeyStopAccept.
    """

    key: AuthKey
    send_start: float = -math.inf
    send_end: float = math.inf
    accept_start: float = -math.inf
    accept_end: float = math.inf

    def sends(self, wall: float) -> bool:
        """Whether the key may sign now."""
        return self.send_start <= wall < self.send_end

    def accepts(self, wall: float) -> bool:
        """Whether the key may verify now."""
        return self.accept_start <= wall < self.accept_end


Keyring = tuple[TimedKey, ...]
"""The keys of one interface in the order of the configuration; empty: no authentication."""


def send_key(keyring: Keyring, wall: float) -> TimedKey | None:
    """Return the key that signs: of the valid keys the one that began last, the first of equals.

    RFC 2328 §D.3: the last key remains in use after it has expired, since sending without
    authentication would be worse. None if no key has begun yet.
    """
    valid = [timed for timed in keyring if timed.sends(wall)]
    if valid:
        return max(valid, key=lambda timed: timed.send_start)
    begun = [timed for timed in keyring if timed.send_start <= wall]
    return max(begun, key=lambda timed: timed.send_end, default=None)


def equal_keys(keyring: Keyring, wall: float) -> Keyring:
    """Return all keys that are equal to the choice of ``send_key``, in order."""
    first = send_key(keyring, wall)
    if first is None or not first.sends(wall):
        return () if first is None else (first,)
    return tuple(
        [timed for timed in keyring if timed.sends(wall) and timed.send_start == first.send_start]
    )


def accept_keys(keyring: Keyring, wall: float) -> Keyring:
    """Return the keys that verify: all valid ones, else the one that expired last (§D.3)."""
    valid = tuple([timed for timed in keyring if timed.accepts(wall)])
    if valid:
        return valid
    begun = [timed for timed in keyring if timed.accept_start <= wall]
    last = max(begun, key=lambda timed: timed.accept_end, default=None)
    return () if last is None else (last,)
