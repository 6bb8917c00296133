"""Settings of a session; times are integers of microseconds, as in the packets."""

from __future__ import annotations

import msgspec

DEFAULT_INTERVAL = 300_000
DEFAULT_MULTIPLIER = 3
MICROSECONDS = 1_000_000


class Sha1Key(msgspec.Struct, frozen=True):
    """Keyed SHA1, meticulous or not (RFC 5880 §6.7.4); the secret has at most 20 bytes."""

    key_id: int
    secret: bytes
    meticulous: bool = True

    def __repr__(self) -> str:
        return f"Sha1Key(key_id={self.key_id}, meticulous={self.meticulous})"


class SessionSettings(msgspec.Struct, frozen=True):
    """Timers and authentication of a session (RFC 5880 §6.8.1)."""

    min_tx: int = DEFAULT_INTERVAL
    min_rx: int = DEFAULT_INTERVAL
    multiplier: int = DEFAULT_MULTIPLIER
    key: Sha1Key | None = None
