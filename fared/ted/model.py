"""What an engine tells the TED about one router, and nothing protocol-specific.

An engine turns the LSAs (or LSPs) of one router into one ``NodeBlock`` whenever they change:
small arrays, made once per arrival, so that building the whole graph is concatenation and not
a walk over Python objects. The two-way check is the graph's business, not the engine's.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix


class PathType(enum.IntEnum):
    """Kinds of routes, most preferred first (RFC 2328 §11)."""

    INTRA_AREA = 1
    INTER_AREA = 2
    EXTERNAL_1 = 3
    EXTERNAL_2 = 4
    LEVEL_1 = 5
    LEVEL_2 = 6
    LEVEL_1_DOWN = 7
    """Learnt in level 1, but leaked down from level 2 (RFC 5302 §3.2), or an attached default."""
    LEVEL_1_REDISTRIBUTED = 8
    LEVEL_2_REDISTRIBUTED = 9
    """What this router itself announces there though it is of other origin; of others, it is a
    prefix of the level like any other."""

    @property
    def label(self) -> str:
        """The name promised in JSON: ``intra-area``, ``external-1``, ``level-2``..."""
        if self in (PathType.LEVEL_1_DOWN, PathType.LEVEL_1_REDISTRIBUTED):
            return "level-1"
        if self is PathType.LEVEL_2_REDISTRIBUTED:
            return "level-2"
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class PrefixAttachment:
    """A prefix that a node says it reaches, at a metric of its own.

    ``capacity`` is what the announcing node says lies behind it (bytes/s), None where it says
    nothing: then the node itself is taken to reach it without limit.

    An external prefix may lie behind an AS boundary router of another area: ``asbr`` names it
    where ``node`` is a border router on the way to it, and ``distance`` is the rest of the way
    from the node on, which for external type 2 counts only among equal metrics. ``forward`` is
    a forwarding address (0 none): then the prefix lies wherever that address does, and
    ``metric`` is what it costs from there.
    """

    prefix: Prefix
    metric: int
    path_type: PathType = PathType.INTRA_AREA
    capacity: float | None = None
    asbr: NodeId | None = None
    distance: int = 0
    forward: int = 0


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """One router as the flooded database describes it: arrays of equal length, one row a link.

    ``capacities`` and ``availables`` are bytes/s, NaN where the router floods none.
    ``local_ids``/``remote_ids`` tell parallel links apart (OSPF: interface address or index;
    0 where unknown). ``transit`` is False for a router that must not be passed through
    (stub-router, overload bit): paths may end there, not cross it.
    """

    node: NodeId
    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    prefixes: tuple[PrefixAttachment, ...] = ()
    transit: bool = True
    hostname: str | None = None
    network: bool = field(default=False)
    """True for a pseudonode or transit network, whose outgoing links cost and limit nothing."""
    boundary: bool = False
    """An AS boundary router (OSPF's E bit): others want to know the way to it."""
    leads_to: tuple[tuple[NodeId, int], ...] = ()
    """AS boundary routers in other areas, and the cost at which this border router reaches them."""


@dataclass(frozen=True, slots=True)
class LocalLink:
    """A link of this router over which an adjacency is full: where next hops come from.

    ``neighbor`` is the TED vertex at the other end, ``gateway`` the address to send to (0 with
    family 4 means directly attached), ``local_id`` matches ``NodeBlock.local_ids``.
    """

    ifindex: int
    interface: str
    neighbor: NodeId
    gateway: int
    local_id: int
    metric: int
    bandwidth: float | None
    family: int = 4
    onlink: bool = False
