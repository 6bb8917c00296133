"""Single values of Redis: whatever they are, a value or None, and what was wrong is counted."""

from __future__ import annotations

from collections import Counter

MBIT = 125_000.0
"""Bytes/s."""
_LONGEST = 32
_MOST = (1 << 64) - 1
_FASTEST = 100_000_000
"""100 Tbit/s in Mbit/s: no port is faster."""
_UNKNOWN = (b"", b"N/A")
_LONGEST_NAME = 64
REASONS = ("not-a-number", "not-a-word", "not-a-name", "too-many")
"""Why a value is wrong."""
Raw = bytes | None


class Values:
    """Reads values; ``wrong`` counts those that are not what they should be, by reason."""

    def __init__(self) -> None:
        self.wrong: Counter[str] = Counter()

    def number(self, raw: Raw, most: int = _MOST) -> int | None:
        """Return a decimal number; None: there is none, or it is not known yet."""
        if raw is None or raw in _UNKNOWN:
            return None
        if not raw.isdigit() or len(raw) > _LONGEST or (value := int(raw)) > most:
            self.wrong["not-a-number"] += 1
            return None
        return value

    def speed(self, *candidates: Raw) -> float | None:
        """Return the first known speed in bytes/s; they are in Mbit/s, 0 is unknown."""
        for raw in candidates:
            speed = self.number(raw, _FASTEST)
            if speed:
                return speed * MBIT
        return None

    def word(self, raw: Raw) -> str:
        """Return a word in small letters; empty: there is none."""
        if raw is None:
            return ""
        if len(raw) > _LONGEST or not raw.isascii():
            self.wrong["not-a-word"] += 1
            return ""
        return raw.decode().strip().lower()

    def name(self, raw: Raw) -> str:
        """Return a name of an interface or object; empty: there is none."""
        if raw is None:
            return ""
        if not 0 < len(raw) <= _LONGEST_NAME or not raw.isascii() or not raw.decode().isprintable():
            self.wrong["not-a-name"] += 1
            return ""
        return raw.decode()
