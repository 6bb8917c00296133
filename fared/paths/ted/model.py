"""Descriptions of routers that an engine reports to the TED, the same for OSPF and IS-IS.

An engine turns the LSAs or LSPs of one router into one ``NodeBlock`` whenever they change: small
arrays, made once for each arrival, so that building the graph concatenates arrays and walks no
Python objects. The graph makes the two-way check, not the engine.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import ISIS_NODE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix


MAX_LINK_METRIC = 0xFF_FFFF
"""No path crosses a link of this metric (RFC 5305 §3): it only serves the two-way check."""
HIGHEST_OSPF_METRIC = 0xFFFF
"""MaxLinkMetric of OSPF (RFC 6987 §3), a cost like any other (RFC 2328 §16.1)."""
HIGHEST_ISIS_METRIC = MAX_LINK_METRIC - 1
"""The highest metric that a path of IS-IS may cross."""


class PathType(enum.IntEnum):
    """Kinds of routes, most preferred first (RFC 2328 §11; levels: RFC 5302 §3.2)."""

    INTRA_AREA = 1
    INTER_AREA = 2
    EXTERNAL_1 = 3
    EXTERNAL_2 = 4
    LEVEL_1 = 5
    LEVEL_2 = 6
    LEVEL_1_DOWN = 7
    """Learned in level 1: leaked down from level 2 (RFC 5302 §3.2), or a default by attached
    bit."""
    LEVEL_1_REDISTRIBUTED = 8
    LEVEL_2_REDISTRIBUTED = 9
    """Redistributed by this router. A prefix that another router redistributes is one of its
    level."""

    @property
    def label(self) -> str:
        """The name in JSON: ``intra-area``, ``external-1``, ``level-2``..."""
        if self in (PathType.LEVEL_1_DOWN, PathType.LEVEL_1_REDISTRIBUTED):
            return "level-1"
        if self is PathType.LEVEL_2_REDISTRIBUTED:
            return "level-2"
        return self.name.lower().replace("_", "-")


EXTERNAL_TYPES = (PathType.EXTERNAL_1, PathType.EXTERNAL_2)


class PrefixReachability(msgspec.Struct, frozen=True, gc=False):
    """A prefix that a node advertises, with the node's own metric for it.

    ``capacity`` is the path capacity that the node advertises for the prefix (bytes/s). None: it
    advertises none, and its path to the prefix counts as unlimited.

    ``asbr`` is set where the node is an area border router and the prefix is external to the AS
    and originated in another area: it is the AS boundary router, and ``distance`` the cost from
    the node to it, which breaks ties between equal metrics of external type 2 (RFC 2328 §16.4
    (6)). ``forward`` is the forwarding address (0 none): ``metric`` then counts from there.
    ``tag`` is the administrative tag (RFC 2328 §A.4.5, RFC 5130), 0 for none: no path depends on
    it.

    The collector skips these, as it does routes (``rib.model``).
    """

    prefix: Prefix
    metric: int
    path_type: PathType = PathType.INTRA_AREA
    capacity: float | None = None
    asbr: NodeId | None = None
    distance: int = 0
    forward: int = 0
    tag: int = 0


class NodeBlock(msgspec.Struct, frozen=True):
    """One router as the flooded database describes it: arrays of equal length, one row a link.

    ``capacities`` and ``availables`` are bytes/s, NaN where the router floods none.
    ``local_ids``/``remote_ids`` distinguish parallel links (OSPF: interface address or index;
    0 where unknown). A metric of MAX_LINK_METRIC keeps SPF off that direction of the link and
    leaves the other one usable. ``transit`` is False for a router with the overload bit: paths may
    end there, not cross it.
    """

    node: NodeId
    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    prefixes: tuple[PrefixReachability, ...] = ()
    transit: bool = True
    hostname: str | None = None
    network: bool = False
    """A pseudonode or transit network, whose outgoing links have metric 0 and no capacity limit."""
    is_asbr: bool = False
    """An AS boundary router (OSPF's E bit), which the other routers need a route to."""
    virtual_end: bool = False
    """The end of a virtual link through this area (OSPF's V bit)."""
    virtual: frozenset[tuple[int, int]] = frozenset()
    """Rows that are virtual links: neighbor and local id. Packets cross them over another area."""
    asbr_routes: tuple[tuple[NodeId, int], ...] = ()
    """ASBRs of other areas that this border router advertises (type 4 summaries), with costs."""
    delays: NDArray[np.float64] | None = None
    """Microseconds, NaN where the router floods none; None: it floods none of any link."""

    def each_delay(self) -> NDArray[np.float64]:
        """Return the delay of each link (K,), microseconds, NaN where it is not known."""
        if self.delays is not None:
            return self.delays
        return self.capacities * math.nan

    @property
    def last_resort(self) -> bool:
        """Whether all its links have the highest metric of paths, as those of a stub router."""
        highest = HIGHEST_ISIS_METRIC if self.node & ISIS_NODE else HIGHEST_OSPF_METRIC
        return len(self.metrics) > 0 and bool((self.metrics == highest).all())

    def lists(self, node: int) -> bool:
        """Whether any of its links leads to a node."""
        return b"\1" in (self.neighbors == node).tobytes()  # ``graph.anywhere``


def longest(a: float, b: float) -> float:
    """Return the delay of two parallel links: that of either, since packets may take both."""
    return b if b > a or a != a else a  # noqa: PLR0124 - NaN


class LocalNetwork(msgspec.Struct, frozen=True):
    """A network that an interface of this router is on: packets go to its hosts directly.

    ``refused`` are addresses in it that are no next hops: those of this router, and broadcasts.
    ``onlink`` is as in ``LocalLink``; ``bandwidth`` is in bytes/s.
    """

    prefix: Prefix
    ifindex: int
    interface: str
    metric: int
    bandwidth: float | None
    refused: frozenset[int] = frozenset()
    onlink: bool = False


class LocalLink(msgspec.Struct, frozen=True):
    """A link of this router over which an adjacency is full: the source of next hops.

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
