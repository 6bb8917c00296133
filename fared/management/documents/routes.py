"""``show routes``: routes with their weighted next hops. Next hops of all documents are here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Cell, dim
from fared.management.documents.declare import AF, PREFIX, Answer, Document
from fared.management.documents.facts import BytesPerSecond, Facts, Ratio

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_TYPES = {
    "intra-area": "intra",
    "inter-area": "inter",
    "external-1": "E1",
    "external-2": "E2",
    "level-1": "L1",
    "level-2": "L2",
}
_COLUMNS = ("Prefix", "Type", ">Metric", "Next hop", "Interface", ">Weight", ">Share", ">Path")


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
    """``type`` is intra-area, inter-area, external-1, external-2, level-1 or level-2.

    ``protocol`` (ospf, isis) is the source of the route, ``preference`` that of the protocol: of
    several routes to a prefix the lower one wins. ``area`` is ``level-1`` or ``level-2`` with
    IS-IS. ``connected``: this router itself advertises the prefix; ``redistributed``: as an
    external one. ``discard``: an active area range; packets without a longer match are dropped,
    without next hop. ``tag``: the external route tag of OSPF (0: no tag), or the first
    administrative tag of IS-IS (RFC 5130); None: it has no such field.
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


class Routes(Answer, tag="fared-routes/1"):
    """``show routes``; argument ``prefix`` optional: only that one, or for an address the best.

    Arguments ``af`` (ipv4, ipv6) and ``proto`` (ospf, isis) narrow the list. With ``proto`` all
    routes of that protocol are shown, also those that another protocol's route overrides. ``af``:
    the listed families: ipv4, ipv6 or both.
    """

    root: str
    af: str
    routes: Sequence[RouteEntry]

    def show(self, paper: Paper) -> None:
        """Print a table for each family, since the lengths of addresses differ much."""
        families: dict[bool, list[RouteEntry]] = {}
        for route in self.routes:
            families.setdefault(":" in route.prefix, []).append(route)
        if not families:
            paper.line("none")
        for index, found in enumerate(families.values()):
            if index:
                paper.line()
            paper.grid(_COLUMNS, (row for route in found for row in _rows(route)))


def _rows(route: RouteEntry) -> Iterator[Sequence[Cell]]:
    """Yield a row for each next hop of a route."""
    head = (route.prefix, _TYPES.get(route.type, route.type), str(route.metric))
    if route.connected or route.discard:
        local = "redistributed" if route.redistributed else "connected"
        yield *head, dim(local if route.connected else "discard")
        return
    for hop in route.nexthops:
        weight, share = str(hop.weight), human.share(hop.share)
        yield *head, _next_hop(hop), hop.via, weight, share, human.bandwidth(hop.capacity)
        head = ("", "", "")


def _next_hop(hop: RouteNextHop) -> str:
    """Return a neighbor's name rather than a link-local address; the JSON has both."""
    link_local = hop.address is not None and hop.address.startswith("fe80:")
    return hop.name if link_local else hop.address or "direct"


DOCUMENT = Document(
    Routes,
    "routes:routes",
    "Routes with their weighted next hops.",
    (PREFIX, AF),
    narrowed=True,
)
