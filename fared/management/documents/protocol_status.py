"""OSPF, IS-IS and BGP in ``show status``: areas or levels, how they flood, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Columns, count, dim, judged, yellow
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class FloodingTopologyStatus(Facts):
    """Dynamic flooding in an area or level. ``leader``: the area leader.

    ``routers``: how many it connects, 0: there is none, and LSAs or LSPs are flooded to all
    neighbors. Of the neighbors that take part, those in ``others`` are sent none.
    """

    scope: str
    leader: str | None
    routers: int
    parents: list[str]
    children: list[str]
    others: list[str]


class FloodingStatus(Facts):
    """Flooding reduction. ``reduction`` is none, leaf or dynamic; ``delay``: seconds at most.

    ``topologies``: with dynamic, one for each area or level.
    """

    reduction: str
    delay: Seconds
    topologies: list[FloodingTopologyStatus]


class AreaStatus(Facts):
    """Summary of an area. ``checksum``: sum of the LS checksums (RFC 4750), 0x and 8 digits."""

    area: str
    type: str
    interfaces: int
    neighbors: int
    full: int
    lsas: int
    checksum: str


class OspfStatus(Facts):
    """Summary of OSPF. ``unauthenticated``: interfaces that accept neighbors without a key."""

    stub_router: bool
    unauthenticated: int
    flooding: FloodingStatus
    areas: list[AreaStatus]

    def show(self, paper: Paper) -> None:
        """Print its areas."""
        paper.table(self.areas, _AREAS)
        _show_links(self, paper)


class LevelStatus(Facts):
    """One level of IS-IS. ``checksum``: sum of the checksums of live LSPs, 0x and 8 digits."""

    level: str
    interfaces: int
    neighbors: int
    up: int
    lsps: int
    checksum: str


class IsisStatus(Facts):
    """Summary of IS-IS: area addresses (``49.0001``), families, the bits of our LSPs.

    ``unauthenticated``: interfaces that accept neighbors without a key.
    """

    system_id: str
    areas: list[str]
    families: list[str]
    overloaded: bool
    attached: bool
    unauthenticated: int
    flooding: FloodingStatus
    levels: list[LevelStatus]

    def show(self, paper: Paper) -> None:
        """Print its levels, and bits that keep traffic away or draw it."""
        areas = ", ".join(self.areas)
        paper.table(self.levels, {"Level": "level", "~Areas": lambda _: areas, **_LEVELS})
        bits = [name for name in ("overloaded", "attached") if getattr(self, name)]
        if bits:
            paper.line(yellow(f"bits of our LSPs: {', '.join(bits)}"))
        _show_links(self, paper)


class BgpFamilyStatus(Facts):
    """Tables of a family: prefixes of this router, those redistributed, paths of neighbors.

    ``prefixes`` with equal paths are one of the ``groups``; ``undecided`` wait for a decision.
    """

    af: str
    own: int
    redistributed: int
    received: int
    prefixes: int
    groups: int
    undecided: int


class BgpStatus(Facts):
    """Summary of BGP. ``unauthenticated``: neighbors without a key; those shut down do not count.

    ``graceful_shutdown``: neighbors are asked to prefer any other path (RFC 8326).
    """

    local_as: int
    router_id: str
    neighbors: int
    established: int
    unauthenticated: int
    graceful_shutdown: bool
    families: list[BgpFamilyStatus]

    def show(self, paper: Paper) -> None:
        """Print its tables, and sessions that anybody on the link could take."""
        sessions = f"{self.established} of {count(self.neighbors, 'session')} established"
        good = self.established == self.neighbors
        paper.line(judged(f"BGP, AS {self.local_as}: {sessions}", good=good, bad="yellow"))
        paper.table(self.families, _FAMILIES)
        if number := self.unauthenticated:
            paper.line(dim(f"{count(number, 'session')} without a key"))
        if self.graceful_shutdown:
            paper.line(yellow("neighbors are asked to prefer any other path"))


_FAMILIES: Columns = {
    "Family": "af",
    ">Prefixes": "prefixes",
    ">Own": "own",
    ">Redistributed": "redistributed",
    ">Paths received": "received",
    ">Groups": "groups",
}
_AREAS: Columns = {
    "Area": "area",
    "Type": "type",
    ">Interfaces": "interfaces",
    ">Neighbors": "neighbors",
    ">Full": lambda a: judged(str(a.full), good=a.full == a.neighbors, bad="yellow"),
    ">LSAs": "lsas",
    "Checksum": "checksum",
}
_LEVELS: Columns = {
    ">Interfaces": "interfaces",
    ">Adjacencies": "neighbors",
    ">Up": lambda a: judged(str(a.up), good=a.up == a.neighbors, bad="yellow"),
    ">LSPs": "lsps",
    "Checksum": "checksum",
}


def _show_links(protocol: OspfStatus | IsisStatus, paper: Paper) -> None:
    """Print on how many interfaces any host can become a neighbor, and flooding if reduced."""
    if number := protocol.unauthenticated:
        verb = "accepts" if number == 1 else "accept"
        text = f"{count(number, 'interface')} {verb} neighbors without authentication"
        paper.line(dim(text))
    for topology in protocol.flooding.topologies:
        paper.line(f"{topology.scope}: floods to {_receivers(topology)}")
    if protocol.flooding.reduction == "leaf":
        delay = human.duration(protocol.flooding.delay)
        paper.line(f"floods as a leaf: what one neighbor sent, to others within {delay}")


def _receivers(topology: FloodingTopologyStatus) -> str:
    if not topology.routers:
        return "all neighbors: no flooding topology"
    parents, children = (", ".join(x) or "none" for x in (topology.parents, topology.children))
    return (
        f"parents {parents}, children {children}; not to {len(topology.others)} others. "
        f"Topology of {count(topology.routers, 'router')}, leader {topology.leader}"
    )
