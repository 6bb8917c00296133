"""Text of others, safe for terminals, logs and metrics."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with what is not printable escaped: it may steer a terminal or turn a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
