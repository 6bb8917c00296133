"""The document of the whole fabric, and the events that keep it up to date."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond, JsonDocument, UnixTime


class LinkMark(TypedDict):
    """What is unusual about the links to one neighbor.

    ``state``: ``one-way`` (the other end does not confirm it), ``drained``, ``sick`` (its errors),
    ``reduced`` (less capacity than its siblings). ``reason`` is for people.
    """

    to: str
    state: str
    reason: str


class LinkColumns(TypedDict):
    """The links of a router to each of its neighbors, as columns: one entry for each of ``to``.

    Parallel links are one entry, ``count`` links with the sum of their capacities; ``metric`` is
    the least. ``marks`` has only the unusual ones.
    """

    to: list[str]
    count: list[int]
    metric: list[int]
    capacity: list[BytesPerSecond]
    available: list[BytesPerSecond]
    marks: list[LinkMark]


class FabricNode(TypedDict):
    """A router, or a network (``network``) that several share.

    ``here``: the router that answers. ``transit`` False: paths may end there but not pass (overload
    bit). ``last_resort``: they pass where there is no other way (stub router, RFC 6987).
    ``tier``: 0 for leaves, 1 for spines, 2 for super-spines (``role``), and None where the graph is
    no Clos; ``pod`` and ``plane`` count from 1. If a router has an id in each of two protocols,
    ``id`` is the first and ``ids`` has all.
    """

    id: str
    ids: list[str]
    hostname: str | None
    network: bool
    here: bool
    transit: bool
    last_resort: bool
    prefixes: int
    tier: int | None
    role: str | None
    pod: int | None
    plane: int | None
    links: LinkColumns


class DrawnBranch(TypedDict):
    """A router of a tree, and the next one toward the root; None: it is the root."""

    router: str
    parent: str | None


class DrawnTree(TypedDict):
    """A tree of in-network aggregation: routers that sum; weight among the trees of the job."""

    root: str
    weight: int
    branches: list[DrawnBranch]


class DrawnJob(TypedDict):
    """A job of in-network aggregation: the leaves of its workers, and its trees."""

    name: str
    leaves: list[str]
    trees: list[DrawnTree]


class FabricDocument(JsonDocument):
    """``show fabric``: all routers and links that this router knows, and their places.

    ``clos``: whether places were found.
    """

    router_id: str
    hostname: str
    at: UnixTime
    clos: bool
    nodes: list[FabricNode]
    jobs: list[DrawnJob]


FabricLink = TypedDict(
    "FabricLink",
    {
        "from": str,
        "to": str,
        "count": int,
        "metric": int,
        "capacity": BytesPerSecond,
        "available": BytesPerSecond,
        "state": str | None,
        "reason": str | None,
    },
)
"""One direction between two routers, as ``LinkColumns`` has it; ``state`` None: usual."""


class FabricDelta(TypedDict):
    """The data of an event ``delta``: only what changed.

    ``lost``: pairs of routers without a link in this direction any more.
    """

    at: UnixTime
    links: list[FabricLink]
    lost: list[list[str]]
