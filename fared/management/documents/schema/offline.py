"""Documents of ``fared-cli spf``: routes of a saved database, and the effect of changes.

``fared-cli spf --bier`` prints ``fared-bier/1`` without counters; ``root`` is the router.
"""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import BytesPerSecond, JsonDocument
from fared.management.documents.spf import SpfNode


class OfflineHop(TypedDict):
    """A next hop as in ``RouteNextHop``.

    ``interface`` is None where the root is not the router whose interfaces the file has;
    ``address`` is then the address that the far end floods, None where that is unknown.
    """

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond
    weight: int
    share: float


class OfflineRoute(TypedDict):
    """As ``RouteEntry``."""

    prefix: str
    metric: int
    type: str
    area: str | None
    connected: bool
    discard: bool
    nexthops: list[OfflineHop]


class IgnoredEntry(TypedDict):
    """An entry of the database that was ignored.

    ``reason`` is maxage, checksum, malformed or unsupported (``key``: an LSA by type, link
    state id and advertising router, or by its place in the file), one-way (``A -> B``, the
    link that B does not confirm), overload or unreachable (a router).
    """

    key: str
    reason: str


class OfflineRoutes(JsonDocument):
    """``fared-cli spf``: ``fared-routes/1`` with the SPF result and ignored entries."""

    root: str
    af: str
    routes: list[OfflineRoute]
    nodes: list[SpfNode]
    ignored: list[IgnoredEntry]


class RouteFacts(TypedDict):
    """The facts of a route, besides its next hops, that a difference compares."""

    metric: int
    type: str
    area: str | None
    connected: bool


class HopFacts(TypedDict):
    """The facts of a next hop that a difference compares."""

    weight: int
    share: float
    capacity: BytesPerSecond


class HopDifference(TypedDict):
    """A next hop of either side; ``before`` None: added, ``after`` None: removed."""

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    before: HopFacts | None
    after: HopFacts | None


class RouteDifference(TypedDict):
    """A route that changes; ``before`` None: new, ``after`` None: lost."""

    prefix: str
    before: RouteFacts | None
    after: RouteFacts | None
    nexthops: list[HopDifference]


class RoutesDiff(JsonDocument):
    """``fared-cli spf --diff`` (``fared-routes-diff/1``): routes whose forwarding changes.

    ``changes`` are the options that made the difference (``fail-link S1,L2``), ``unchanged``
    counts the other routes (their capacities may differ), ``nodes`` and ``ignored`` are those
    after the change.
    """

    root: str
    af: str
    changes: list[str]
    routes: list[RouteDifference]
    unchanged: int
    nodes: list[SpfNode]
    ignored: list[IgnoredEntry]


class RoutesAll(JsonDocument):
    """``fared-cli spf --all`` (``fared-routes-all/1``): one document for each router as root."""

    roots: list[OfflineRoutes] | list[RoutesDiff]
