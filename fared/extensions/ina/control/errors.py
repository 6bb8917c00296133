"""What operators are told."""

from __future__ import annotations


class ManagerError(ValueError):
    """A request that cannot be fulfilled; the text tells why."""
