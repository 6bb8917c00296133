"""Keys with lifetimes: which one signs now, and which ones may have signed what arrives.

Lifetimes overlap, so that keys roll without losing an adjacency: a router accepts the new key
before its neighbors send with it, and the old one until the last of them has changed over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fared.ospf.auth import AuthKey


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


def overhead(keyring: Keyring) -> int:
    """Return the bytes that a signature under any of the keys adds to a packet, at most."""
    return max((timed.key.overhead for timed in keyring), default=0)
