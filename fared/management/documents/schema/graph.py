"""Documents of the graph: topology and SPF."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fared.management.documents.schema.common import BytesPerSecond, JsonDocument, Seconds, UnixTime


class TopologyNode(TypedDict):
    """``transit`` False: paths may end here but not pass (overload bit).

    ``last_resort``: paths pass where there is no other way (stub router, RFC 6987). ``prefixes``
    counts those of all families.
    """

    id: str
    hostname: str | None
    network: bool
    transit: bool
    last_resort: bool
    prefixes: int


TopologyLink = TypedDict(
    "TopologyLink",
    {
        "from": str,
        "to": str,
        "metric": int,
        "capacity": BytesPerSecond,
        "available": BytesPerSecond,
        "two_way": bool,
        "families": list[str],
    },
)
"""One direction of one link. ``two_way`` False: the other end does not confirm it.

``families`` (ipv4, ipv6) are those that may take it.
"""


class TopologyArea(TypedDict):
    """The graph of one area of OSPF, or of one level of IS-IS (``level-2``)."""

    proto: str
    area: str
    nodes: list[TopologyNode]
    links: list[TopologyLink]


class TopologyDocument(JsonDocument):
    """``show topology``: the traffic engineering database; argument ``proto`` optional."""

    router_id: str
    areas: list[TopologyArea]


class SpfNode(TypedDict):
    """A vertex of the shortest-path DAG; ``first_hops`` are ids of neighbors.

    If the paths of families differ, each family has its own entry.
    """

    id: str
    hostname: str | None
    proto: str
    families: list[str]
    area: str
    metric: int
    first_hops: list[str]


class SpfRun(TypedDict):
    """One computation. ``spf_ran`` False: only capacities were computed again."""

    at: UnixTime
    causes: list[str]
    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    """The number of changed routes."""
    duration: Seconds
    backoff: str


class Spf(JsonDocument):
    """``show spf`` (``nodes``) and ``show spf log`` (argument ``log`` true: ``log`` instead).

    Argument ``proto`` optional; ``root`` is the id in the first protocol that is shown.
    """

    root: str
    backoff: str
    nodes: NotRequired[list[SpfNode]]
    log: NotRequired[list[SpfRun]]
