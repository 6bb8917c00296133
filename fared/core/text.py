"""Text of others, safe for terminals, logs and metrics; names of numbers in packets."""

from __future__ import annotations

import enum


def printable(text: str) -> str:
    """Return a text with what is not printable escaped: it may steer a terminal or turn a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def type_name(kinds: type[enum.IntEnum], value: int) -> str:
    """Return ``point-to-point``, or ``type-42`` for a type without a name here."""
    known = {int(kind): kind.name.lower().replace("_", "-") for kind in kinds}
    return known.get(value, f"type-{value}")


def flag_names(flags: type[enum.IntFlag], value: int) -> list[str]:
    """Return the names of the bits that are set."""
    return [str(flag.name) for flag in flags if value & flag]
