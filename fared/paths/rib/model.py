"""Routes of the RIB, and the next-hop sets that they share.

Thousands of prefixes share one ``NextHopSet`` object (all prefixes behind a leaf, and in a
healthy fabric those behind every leaf), so later packages compare and group by its ``key``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from fared.core.ids import FAMILY_IPV4, NodeId

if TYPE_CHECKING:
    from fared.core.ids import Prefix
    from fared.paths.ted.model import PathType

HopKey = tuple[int, int, int, bool]
"""The identity of a kernel next hop: (ifindex, family, gateway, onlink); ifindex 0 discards."""


class NextHop(msgspec.Struct, frozen=True):
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


class NextHopSet:
    """The weighted next hops of one or many routes, sorted by ``hop_key``.

    A value: equal content is equal, and the solver hands out one object for all routes that share
    it, so none is changed.
    """

    def __init__(self, hops: tuple[NextHop, ...]) -> None:
        self.hops = hops

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hops={self.hops!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NextHopSet) and (self is other or self.hops == other.hops)

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> tuple[tuple[HopKey, int], ...]:
        """The content as the kernel has it: (next hop, weight) pairs in stable order."""
        return tuple((hop.hop_key, hop.weight) for hop in self.hops)

    @property
    def total_weight(self) -> int:
        """Sum of weights; a share is ``weight / total_weight``."""
        return sum(hop.weight for hop in self.hops)


DISCARD = NextHopSet((NextHop(0, "", FAMILY_IPV4, 0, NodeId(0), None, None, 1),))
"""The next-hop set of discard routes: packets are dropped."""


class Route(msgspec.Struct, frozen=True, gc=False):
    """The best route to a prefix. ``nexthops`` None: connected here, not for the kernel.

    It does not name the prefix: a router may redistribute a hundred thousand prefixes at one
    metric, which then share one object. It is in no cycle of references: the collector skips it.
    """

    metric: int
    path_type: PathType
    area: int | None
    nexthops: NextHopSet | None
    destinations: tuple[NodeId, ...]

    @property
    def discard(self) -> bool:
        """Whether this is a discard route: it drops packets without a longer match."""
        return self.nexthops is DISCARD


RouteDelta: TypeAlias = "dict[Prefix, Route | None]"
"""The changed routes, None for a withdrawn one: passed from a solver, through load adaptation and
the table of all protocols, to the planner. A stage that rebuilds its state passes on all routes."""
NumberedRoutes: TypeAlias = "tuple[list[int], list[Route]]"
"""The numbers of prefixes (``rib.prefixes``), and the route to each."""
