"""Signatures of states: to load a state runs what it says, so who has written it must be known.

A state is the whole router, with closures and timers, and only code describes these. Its owner,
mode or place prove nothing: who unpacks a stranger's archive owns what is in it. So a key of this
machine, which only the daemon's user may read, signs each state (HMAC, RFC 2104, with SHA-256), and
a replay loads others only if it is told to trust them.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

KEY_NAME: Final = "recording.key"
_SIZE: Final = 32
_UNSIGNED: Final = bytes(_SIZE)


def made_key(directory: Path) -> bytes | None:
    """Return the key in a directory, made at first; None: there can be none."""
    with contextlib.suppress(OSError):
        if (known := _read(directory)) is not None:
            return known
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        directory.mkdir(mode=0o750, exist_ok=True)
        with os.fdopen(os.open(directory / KEY_NAME, flags, 0o600), "wb") as sink:
            sink.write(secrets.token_bytes(_SIZE))
        return _read(directory)
    return None


def _read(directory: Path) -> bytes | None:
    """Return the key of a directory; None: there is none, or we may not read it."""
    try:
        key = (directory / KEY_NAME).read_bytes()
    except OSError:
        return None
    return key if len(key) == _SIZE else None


def signed(state: bytes, key: bytes | None) -> bytes:
    """Return a state as it stands in its file; without a key it is unsigned."""
    return (_UNSIGNED if key is None else hmac.digest(key, state, "sha256")) + state


def state_of(content: bytes) -> bytes:
    """Return the state in a file, whoever has written it."""
    return content[_SIZE:]


def is_ours(content: bytes, directory: Path) -> bool:
    """Whether the key in a directory has signed the state in a file."""
    key = _read(directory)
    if key is None:
        return False
    return hmac.compare_digest(hmac.digest(key, content[_SIZE:], "sha256"), content[:_SIZE])
