"""Documents of the graph: topology and SPF."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from fared.api.schema.common import BytesPerSecond, Document, Seconds, UnixTime


class TopologyNode(TypedDict):
    """``transit`` False: paths may end here but not pass (stub router)."""

    id: str
    hostname: str | None
    network: bool
    transit: bool
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
    },
)
"""One direction of one link. ``two_way`` False: the other end does not confirm it."""


class TopologyArea(TypedDict):
    """The graph of one area."""

    area: str
    nodes: list[TopologyNode]
    links: list[TopologyLink]


class Topology(Document):
    """``show topology``: the traffic engineering database."""

    router_id: str
    areas: list[TopologyArea]


class SpfNode(TypedDict):
    """A vertex of the shortest-path DAG; ``first_hops`` are ids of neighbors."""

    id: str
    hostname: str | None
    area: str
    metric: int
    first_hops: list[str]


class SpfRun(TypedDict):
    """One computation. ``spf_ran`` False: only capacities were propagated again."""

    at: UnixTime
    causes: list[str]
    spf_ran: bool
    nodes: int
    edges: int
    routes: int
    """How many routes changed."""
    duration: Seconds
    backoff: str


class Spf(Document):
    """``show spf`` (``nodes``) and ``show spf log`` (argument ``log`` true: ``log`` instead)."""

    root: str
    backoff: str
    nodes: NotRequired[list[SpfNode]]
    log: NotRequired[list[SpfRun]]
