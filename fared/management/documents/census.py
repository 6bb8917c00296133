"""Counts of one protocol for the metrics: neighbors, its database, its links."""

from __future__ import annotations

from collections import Counter

import msgspec


class Census(msgspec.Struct):
    """Counts by area name; in IS-IS the areas are the levels."""

    neighbors: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By area and state."""
    entries: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """LSAs or LSPs, by area and type."""
    checksums: dict[str, int] = msgspec.field(default_factory=dict)
    """Sum of the checksums of each area: equal on all its routers (RFC 4750)."""
    capacities: list[tuple[int, str, float]] = msgspec.field(default_factory=list)
    """Interface index, name and capacity in bytes/s of each link of known capacity."""
