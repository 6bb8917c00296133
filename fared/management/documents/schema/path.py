"""The document of ``path``."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond, JsonDocument

PathEdge = TypedDict(
    "PathEdge",
    {
        "from": str,
        "from_hostname": str | None,
        "to": str,
        "to_hostname": str | None,
        "metric": int,
        "capacity": BytesPerSecond,
        "available": BytesPerSecond,
        "share": float,
    },
)
"""One link on a shortest path; ``share`` is the part of the source's traffic over it."""


class PathDocument(JsonDocument):
    """``path SRC DST``: all shortest paths, with the split at every node.

    Arguments ``source`` and ``destination`` are router ids or hostnames; the destination may
    also be a prefix or an address. Arguments ``af`` and ``proto`` optional: without them the
    preferred protocol that knows both ends is followed, to an IPv4 prefix where there is one.
    ``prefix`` is the followed one. ``capacity``: what the paths carry together; edges are in order
    of distance from the source.
    """

    protocol: str
    af: str
    prefix: str
    source: str
    source_hostname: str | None
    destination: str
    destination_hostname: str | None
    metric: int
    capacity: BytesPerSecond
    edges: list[PathEdge]
