"""The changes to a network that a "what if" assumes, for either protocol."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Direction = tuple[int, int]


class Changes(msgspec.Struct, frozen=True):
    """The assumed changes. A link is named by the vertices of its ends, and so are parallel links.

    The far end of a link to a LAN is the vertex of the LAN: the transit network or pseudonode.

    ``failed_links`` holds both directions of each link. ``costs`` and ``bandwidths`` (bytes/s,
    of each parallel link) are per direction.
    """

    failed_links: frozenset[Direction] = frozenset()
    failed_nodes: frozenset[int] = frozenset()
    costs: Mapping[Direction, int] = msgspec.field(default_factory=dict)
    bandwidths: Mapping[Direction, float] = msgspec.field(default_factory=dict)
    overloaded: frozenset[int] = frozenset()

    def fails(self, tail: int, head: int) -> bool:
        """Whether the links between two vertices fail."""
        ends = {tail, head}
        return (tail, head) in self.failed_links or not ends.isdisjoint(self.failed_nodes)
