"""What if: changes that are assumed of a network, whatever protocol describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Direction = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is assumed. A link is named by the vertices of its ends: all parallel ones.

    The end of a link to a LAN is the LAN's vertex: the transit network, the pseudonode.

    ``failed_links`` holds both directions of each; ``costs`` and ``bandwidths`` (bytes/s, of
    each of parallel links) go by direction.
    """

    failed_links: frozenset[Direction] = frozenset()
    failed_nodes: frozenset[int] = frozenset()
    costs: Mapping[Direction, int] = field(default_factory=dict)
    bandwidths: Mapping[Direction, float] = field(default_factory=dict)
    overloaded: frozenset[int] = frozenset()

    def fails(self, tail: int, head: int) -> bool:
        """Whether the links between two vertices are gone."""
        ends = {tail, head}
        return (tail, head) in self.failed_links or not ends.isdisjoint(self.failed_nodes)
