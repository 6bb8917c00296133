"""Authentication keys with lifetimes: which one signs now, and which ones may have signed what arrives.

Lifetimes overlap, so that keys roll without losing an adjacency: a router accepts the new key
before its neighbors send with it, and the old one until the last of them has changed over.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class AuthKey:
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


@dataclass(frozen=True, slots=True)
class TimedKey:
    """One key and when it counts: wall-clock seconds since 1970, from start up to before end.

    RFC 2328 §D.3 calls the four times KeyStartGenerate, KeyStopGenerate, KeyStartAccept and
    KeyStopAccept.
    """

    key: AuthKey
    send_start: float = -math.inf
    send_end: float = math.inf
    accept_start: float = -math.inf
    accept_end: float = math.inf

    def sends(self, wall: float) -> bool:
        """Whether it may sign now."""
        return self.send_start <= wall < self.send_end

    def accepts(self, wall: float) -> bool:
        """Whether it may verify now."""
        return self.accept_start <= wall < self.accept_end


Keyring = tuple[TimedKey, ...]
"""The keys of one interface in the order of the configuration; empty: no authentication."""


def send_key(keyring: Keyring, wall: float) -> TimedKey | None:
    """Choose the key that signs by its times: the valid one that began last, the first of equals.

    RFC 2328 §D.3: after the last key has expired that one goes on, since sending without
    authentication would be worse. None if no key has begun yet.
    """
    valid = [timed for timed in keyring if timed.sends(wall)]
    if valid:
        return max(valid, key=lambda timed: timed.send_start)
    begun = [timed for timed in keyring if timed.send_start <= wall]
    return max(begun, key=lambda timed: timed.send_end, default=None)


def equal_keys(keyring: Keyring, wall: float) -> Keyring:
    """Choose all keys that could as well sign as that of ``send_key``, in order."""
    first = send_key(keyring, wall)
    if first is None or not first.sends(wall):
        return () if first is None else (first,)
    return tuple(
        timed for timed in keyring if timed.sends(wall) and timed.send_start == first.send_start
    )


def accept_keys(keyring: Keyring, wall: float) -> Keyring:
    """Choose the keys that verify: all that are valid, else the one that expired last."""
    valid = tuple(timed for timed in keyring if timed.accepts(wall))
    if valid:
        return valid
    begun = [timed for timed in keyring if timed.accept_start <= wall]
    last = max(begun, key=lambda timed: timed.accept_end, default=None)
    return () if last is None else (last,)
