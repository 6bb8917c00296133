"""``show routes``: routes with their weighted next hops. Next hops of all documents are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, dim
from fared.management.documents.declare import AF, PREFIX, Answer, Argument, Document
from fared.management.documents.facts import BytesPerSecond, Facts, Ratio, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_TYPES = {
    "intra-area": "intra",
    "inter-area": "inter",
    "external-1": "E1",
    "external-2": "E2",
    "level-1": "L1",
    "level-2": "L2",
    "bgp": "BGP",
}
CONNECTED, DISCARD = "connected", "discard"
ROUTE_TYPES = (*_TYPES, CONNECTED, DISCARD)
"""What ``--type`` selects."""
_COLUMNS = ("Prefix", ">Metric", "Next hop", "Interface", ">Weight", ">Share", ">Path")
_LIVE = ("  Prefix", ">Age", *_COLUMNS[1:])
"""The same for a router that runs; installed routes have a star."""


class NextHopFacts(Facts):
    """A next hop in any document: ``bandwidth`` of the local link, ``capacity`` of the path.

    ``interface`` None where it is not known, as to ``fared-cli spf``; ``address`` None where the
    next hop needs no gateway address.
    """

    interface: str | None
    address: str | None
    neighbor: str
    hostname: str | None
    bandwidth: BytesPerSecond
    capacity: BytesPerSecond

    @property
    def name(self) -> str:
        """The neighbor's hostname, or its id."""
        return human.router(self.neighbor, self.hostname)

    @property
    def via(self) -> str:
        """The interface, or the neighbor where that is not known."""
        return self.interface or self.name


class RouteNextHop(NextHopFacts):
    """``weight`` as in the kernel."""

    weight: int
    share: Ratio


class RouteEntry(Facts):
    """``type`` is intra-area, inter-area, external-1, external-2, level-1, level-2 or bgp.

    ``protocol`` is the source of the route, ``preference`` that of the protocol: of several routes
    to a prefix the lower one wins. ``area`` is ``level-1`` or ``level-2`` with
    IS-IS. ``connected``: this router itself advertises the prefix; ``redistributed``: as an
    external one. ``discard``: an active area range; packets without a longer match are dropped,
    without next hop. ``tag``: the external route tag of OSPF (0: no tag), or the first
    administrative tag of IS-IS (RFC 5130); None: it has no such field. ``changed_at``: when route
    or weights last changed, at the latest the start of the daemon; None: that is not remembered.
    ``installed``: the kernel has the route. Offline there is neither.
    """

    prefix: str
    protocol: str
    preference: int
    metric: int
    type: str
    area: str | None
    connected: bool
    redistributed: bool
    discard: bool
    tag: int | None
    nexthops: Sequence[RouteNextHop]
    changed_at: UnixTime | UnsetType | None = UNSET
    installed: bool | UnsetType = UNSET


class RouteCount(Facts):
    """How many routes of a protocol, family and type there are; ``weighted``: unequal weights.

    ``type`` as in ``RouteEntry``, or connected or discard; ``installed``: those in the kernel.
    """

    protocol: str
    af: str
    type: str
    routes: int
    weighted: int
    installed: int


class Routes(Answer, tag="fared-routes/1"):
    """``show routes``; argument ``prefix`` optional: only that one, or for an address the best.

    With ``longer`` all routes within the prefix; ``via`` (a router, address or interface), ``type``
    and the least and the largest age, ``older`` and ``newer``, select more. ``summary`` true: their
    number, and no ``routes``.

    Arguments ``af`` (ipv4, ipv6) and ``proto`` (ospf, isis, bgp) narrow the list. With ``proto``
    all routes of that protocol are shown, also those that another protocol's route overrides.
    ``af``: the listed families: ipv4, ipv6 or both.
    """

    root: str
    af: str
    routes: Sequence[RouteEntry]
    summary: Sequence[RouteCount] | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print a table for each family."""
        if self.summary is not UNSET:
            paper.table(self.summary, _COUNTS)
            return
        for found in paper.by_family(self.routes):
            live = found[0].installed is not UNSET
            hops = (hop for route in found for hop in route.nexthops)
            alike = all(_next_hop(hop) == hop.via for hop in hops)
            columns = [c for c in (_LIVE if live else _COLUMNS) if not (alike and c == "Interface")]
            rows = (row for route in found for row in _rows(route, paper, alike=alike))
            paper.grid(columns, rows)
        if any(route.installed is True for route in self.routes):
            paper.line(dim(f"* in the kernel; {human.RATES}"))
        elif self.routes:
            paper.rates()


def _head(route: RouteEntry, paper: Paper) -> tuple[Cell, ...]:
    kind = _TYPES.get(route.type, route.type)
    metric = kind if route.type == route.protocol else f"{kind} {route.metric}"
    if route.installed is UNSET or route.changed_at is UNSET:
        return route.prefix, metric
    age = human.DASH if route.changed_at is None else paper.ago(route.changed_at)
    return f"{'*' if route.installed else ' '} {route.prefix}", age, metric


def _rows(route: RouteEntry, paper: Paper, *, alike: bool) -> Iterator[Sequence[Cell]]:
    """Yield a row for each next hop of a route; ``alike``: interfaces are called like them."""
    head = _head(route, paper)
    if route.connected or route.discard:
        local = "redistributed" if route.redistributed else "connected"
        yield *head, dim(local if route.connected else "discard")
        return
    for hop in route.nexthops:
        weight, share = str(hop.weight), human.share(hop.share)
        via = (_next_hop(hop),) if alike else (_next_hop(hop), hop.via)
        yield *head, *via, weight, share, human.bandwidth(hop.capacity)
        head = ("",) * len(head)


def _next_hop(hop: RouteNextHop) -> str:
    """Return a neighbor's name rather than a link-local address; the JSON has both."""
    link_local = hop.address is not None and hop.address.startswith("fe80:")
    return hop.name if link_local else hop.address or "direct"


_COUNTS: Columns = {
    "Protocol": lambda row: human.PROTOCOLS.get(row.protocol, row.protocol),
    "Family": "af",
    "Type": "type",
    ">Routes": "routes",
    ">Weighted": "weighted",
    ">In the kernel": "installed",
}

DOCUMENT = Document(
    Routes,
    "routes:routes",
    "Routes with their weighted next hops.\n\n"
    "PREFIX: that route, or of an address the best; `summary`: their number, by type.",
    (
        PREFIX,
        Argument("summary", "flag"),
        AF,
        Argument("longer", "switch", help="All routes within PREFIX."),
        Argument(
            "via", "option", word="NEXTHOP", help="Only via a router, an address, an interface."
        ),
        Argument("type", choices=ROUTE_TYPES, parameter="kind", help="Only routes of one type."),
        Argument("older", "duration", help="Only routes unchanged for so long, such as 5m."),
        Argument("newer", "duration", help="Only routes that changed within so long."),
    ),
    narrowed=True,
)
