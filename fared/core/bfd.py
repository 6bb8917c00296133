"""BFD between a routing protocol and the process that runs the sessions: settings and events.

An engine asks for a session with each neighbor, and learns when it fails (RFC 5882). Intervals are
integers of microseconds, as in the packets (RFC 5880); addresses are bytes, four or sixteen.
"""

from __future__ import annotations

import enum

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


class BfdSettings(msgspec.Struct, frozen=True):
    """BFD on an interface.

    ``strict``: an adjacency forms only once its session has been up for ``hold_time`` seconds, if
    the neighbor agrees (RFC 9355, RFC 6213).
    """

    session: SessionSettings = SessionSettings()
    strict: bool = False
    hold_time: float = 0.0


def is_strict(settings: BfdSettings | None) -> bool:
    """Whether adjacencies of an interface wait for their sessions."""
    return settings is not None and settings.strict


class BfdStatus(enum.Enum):
    """A session as a protocol sees it (RFC 5882 §3); values are display labels."""

    DOWN = "Down"
    UP = "Up"
    ADMIN_DOWN = "AdminDown"
    """The neighbor has disabled it, which is no failure (RFC 5882 §4.2)."""


class BfdWanted(msgspec.Struct, frozen=True):
    """Output: run a session with a neighbor; ``settings`` None: no longer.

    ``local``: the address to send from; ``strict``: the adjacency waits for it.
    """

    ifindex: int
    interface: str
    local: bytes
    remote: bytes
    settings: SessionSettings | None
    strict: bool = False


class BfdChanged(msgspec.Struct, frozen=True):
    """Input: the status of a session; ``reason``: why it went down.

    ``independent``: BFD of the neighbor does not share the fate of its control plane (the C bit,
    RFC 5880 §4.1), so that a restart there does not end the session.
    """

    ifindex: int
    remote: bytes
    status: BfdStatus
    reason: str = ""
    independent: bool = False
