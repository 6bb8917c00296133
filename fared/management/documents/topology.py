"""``show topology``: the graph that the shortest paths are computed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, dim, yellow
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import BytesPerSecond, Facts, NamedNode
from fared.management.documents.lost import MissingLink, show_lost

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class TopologyNode(NamedNode):
    """``transit`` False: paths may end here but not pass (overload bit).

    ``last_resort``: paths pass where there is no other way (stub router, RFC 6987). ``prefixes``
    counts those of all families.
    """

    network: bool
    transit: bool
    last_resort: bool
    prefixes: int


class TopologyLink(Facts):
    """One direction of one link. ``two_way`` False: the other end does not confirm it.

    ``families`` (ipv4, ipv6) are those that may take it.
    """

    from_: str = msgspec.field(name="from")
    to: str
    metric: int
    capacity: BytesPerSecond
    available: BytesPerSecond
    two_way: bool
    families: list[str]


class TopologyArea(Facts):
    """The graph of one area of OSPF, or of one level of IS-IS (``level-2``).

    ``lost``: links that it had in the last day.
    """

    proto: str
    area: str
    nodes: list[TopologyNode]
    links: list[TopologyLink]
    lost: list[MissingLink]


class TopologyDocument(Answer, tag="fared-topology/1"):
    """``show topology``: the traffic engineering database; argument ``proto`` optional."""

    router_id: str
    areas: list[TopologyArea]

    def show(self, paper: Paper) -> None:
        """Print the nodes and links of each area or level."""
        for index, area in enumerate(self.areas):
            nodes, links = count(len(area.nodes), "node"), count(len(area.links), "link")
            title = f"{human.area_title(area.area)}, {nodes}, {links}"
            paper.heading(title, first=index == 0)
            paper.table(area.nodes, _NODES)
            paper.line()
            paper.table(area.links, _links(area))
            show_lost(paper, area.lost)


_NODES: Columns = {
    "Node": "name",
    "Id": "id",
    ">Prefixes": "prefixes",
    "": lambda node: human.kind(
        network=node.network, transit=node.transit, last_resort=node.last_resort
    ),
}


def _links(area: TopologyArea) -> Columns:
    names = {node.id: node.name for node in area.nodes}
    families = {family for link in area.links for family in link.families}

    def remark(link: TopologyLink) -> Cell:
        """Return exceptional properties: one-way, or not for every family."""
        only = f"{link.families[0]} only" if len(link.families) < len(families) else ""
        way = "" if link.two_way else "one way"
        return yellow(way), " " * bool(way and only), dim(only)

    return {
        "From": lambda link: names.get(link.from_, link.from_),
        "To": lambda link: names.get(link.to, link.to),
        ">Metric": "metric",
        ">Capacity": "capacity",
        ">Available": "available",
        "": remark,
    }


DOCUMENT = Document(
    TopologyDocument,
    "graph:topology",
    "The graph: nodes, links, metrics, capacities.",
    narrowed=True,
)
