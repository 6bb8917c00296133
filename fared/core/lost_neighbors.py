"""Neighbors whose adjacency has ended and not formed again, by protocol and name of the interface.

An engine forgets them, and the kernel may forget their interface. The daemon remembers them, so
that alerts last as long as their cause, and people read who was there.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from fared.core.ids import NodeId

Place = tuple[str, str]
"""Protocol and name of the interface."""
_MOST = 4096


class LostNeighbor(msgspec.Struct, frozen=True):
    """An adjacency that was lost ``at`` (Unix time); ``reason`` as in the log."""

    node: NodeId
    at: float
    reason: str


class LostNeighbors:
    """Those of all interfaces; of too many, the one lost first is forgotten."""

    def __init__(self) -> None:
        self._lost: dict[tuple[Place, NodeId], LostNeighbor] = {}

    def add(self, place: Place, lost: LostNeighbor) -> None:
        """An adjacency has ended."""
        self.discard(place, lost.node)
        self._lost[place, lost.node] = lost
        if len(self._lost) > _MOST:
            del self._lost[next(iter(self._lost))]

    def discard(self, place: Place, node: NodeId) -> None:
        """An adjacency has formed."""
        self._lost.pop((place, node), None)

    def by_place(self) -> dict[Place, list[LostNeighbor]]:
        """Return them in the order in which they were lost."""
        found: defaultdict[Place, list[LostNeighbor]] = defaultdict(list)
        for (place, _), lost in self._lost.items():
            found[place].append(lost)
        return dict(found)
