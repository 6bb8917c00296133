"""Counts of one protocol for the metrics: neighbors, its database, its links."""

from __future__ import annotations

from collections import Counter

import msgspec

from fared.protocols.igp.counted import Countable


class CensusLink(msgspec.Struct):
    """A link that should have a neighbor; ``adjacent``: whether each one is, by id."""

    broadcast: bool
    adjacent: dict[str, bool] = msgspec.field(default_factory=dict)


class Census(msgspec.Struct):
    """Counts by area name; in IS-IS the areas are the levels."""

    countable: Countable
    """What the protocol's counters can count."""
    neighbors: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """By area and state."""
    links: dict[str, CensusLink] = msgspec.field(default_factory=dict)
    """By name of the interface."""
    others: set[str] = msgspec.field(default_factory=set)
    """Interfaces that need no neighbor: passive ones and loopbacks."""
    entries: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """LSAs or LSPs, by area and type."""
    checksums: dict[str, int] = msgspec.field(default_factory=dict)
    """Sum of the checksums of each area: equal on all its routers (RFC 4750)."""
    capacities: list[tuple[int, str, float]] = msgspec.field(default_factory=list)
    """Interface index, name and capacity in bytes/s of each link of known capacity."""

    def on(self, name: str) -> dict[str, bool]:
        """Return the neighbors on a link, and whether each is adjacent."""
        link = self.links.get(name)
        return {} if link is None else link.adjacent
