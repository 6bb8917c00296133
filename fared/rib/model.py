"""Routes as the RIB holds them.

Thousands of prefixes share one ``NextHopSet`` object (all prefixes behind a leaf, and in a
healthy fabric those behind every leaf), so later rooms compare and group by its ``key``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fared.core.ids import FAMILY_IPV4, NodeId

if TYPE_CHECKING:
    from fared.core.ids import Prefix
    from fared.ted.model import PathType

HopKey = tuple[int, int, int, bool]
"""What makes a kernel next hop: (ifindex, family, gateway, onlink); interface 0 discards."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """One weighted next hop.

    ``bandwidth`` of the local link and ``capacity`` of the whole path through it are bytes/s,
    None where unknown; ``weight`` is the integer for the kernel.
    """

    ifindex: int
    interface: str
    family: int
    gateway: int
    neighbor: NodeId
    bandwidth: float | None
    capacity: float | None
    weight: int
    onlink: bool = False

    @property
    def hop_key(self) -> HopKey:
        """Identity of the kernel's next-hop object."""
        return (self.ifindex, self.family, self.gateway, self.onlink)


@dataclass(frozen=True, eq=False)
class NextHopSet:
    """The weighted next hops of one or many routes, sorted by ``hop_key``.

    Equal content is equal; the solver hands out one object for all routes that share it.
    """

    hops: tuple[NextHop, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NextHopSet) and (self is other or self.hops == other.hops)

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> tuple[tuple[HopKey, int], ...]:
        """What the kernel sees of it: (next hop, weight) pairs in stable order."""
        return tuple((hop.hop_key, hop.weight) for hop in self.hops)

    @property
    def total_weight(self) -> int:
        """Sum of weights; a share is ``weight / total_weight``."""
        return sum(hop.weight for hop in self.hops)


DISCARD = NextHopSet((NextHop(0, "", FAMILY_IPV4, 0, NodeId(0), None, None, 1),))
"""Where packets end that must go no further."""


@dataclass(frozen=True, slots=True)
class Route:
    """The best route of one prefix. ``nexthops`` None: connected here, not for the kernel."""

    prefix: Prefix
    metric: int
    path_type: PathType
    area: int | None
    nexthops: NextHopSet | None
    destinations: tuple[NodeId, ...]

    @property
    def discard(self) -> bool:
        """Whether what has no longer match ends here."""
        return self.nexthops is DISCARD
