"""``show topology``: the graph that the shortest paths are computed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, delay_column, dim, yellow
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import BytesPerSecond, Facts, LinkDelay, NamedNode
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

    ``families`` (ipv4, ipv6) are those that may take it. ``delay`` is left out where it is not
    flooded.
    """

    from_: str = msgspec.field(name="from")
    to: str
    metric: int
    capacity: BytesPerSecond
    available: BytesPerSecond
    two_way: bool
    families: list[str]
    delay: LinkDelay = UNSET


class TopologyPrefix(Facts):
    """A prefix that a node advertises, with its own metric; ``type`` as in ``show routes``."""

    prefix: str
    metric: int
    type: str


class TopologyArea(Facts):
    """The graph of one area of OSPF, or of one level of IS-IS (``level-2``).

    ``lost``: links that it had in the last day. ``prefixes``: those of the node that is asked for.
    """

    proto: str
    area: str
    nodes: list[TopologyNode]
    links: list[TopologyLink]
    lost: list[MissingLink]
    prefixes: list[TopologyPrefix] | UnsetType = UNSET


class TopologyDocument(Answer, tag="fared-topology/1"):
    """``show topology``: the traffic engineering database; argument ``proto`` optional.

    Argument ``node``: only that one, whose ids are ``nodes``, with its ``prefixes``; its links in
    both directions, and the nodes at their far ends.
    """

    router_id: str
    areas: list[TopologyArea]
    nodes: list[str] | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the nodes and links of each area or level, or one node."""
        if self.nodes is not UNSET:
            for index, area in enumerate(self.areas):
                _show_node(paper, area, self.nodes, first=index == 0)
            return
        for index, area in enumerate(self.areas):
            nodes, links = count(len(area.nodes), "node"), count(len(area.links), "link")
            title = f"{human.area_title(area.area)}, {nodes}, {links}"
            paper.heading(title, first=index == 0)
            paper.table(area.nodes, _NODES)
            paper.line()
            paper.table(area.links, _links(area))
            paper.rates()
            show_lost(paper, area.lost)


def _show_node(paper: Paper, area: TopologyArea, ids: list[str], *, first: bool) -> None:
    """Print one node: its links with both directions, the prefixes that it advertises."""
    node = next(each for each in area.nodes if each.id in ids)
    remark = human.kind(network=node.network, transit=node.transit, last_resort=node.last_resort)
    where = human.area_title(area.area)
    title = ", ".join(filter(None, (f"{where}: {node.name} ({node.id})", remark)))
    paper.heading(title, first=first)
    names = {each.id: each.name for each in area.nodes}
    out = _OUT if all(each.delay is UNSET for each in area.links) else (*_OUT, ">Delay")
    width = len(out) - 1
    back: dict[str, list[TopologyLink]] = {}
    for link in area.links:
        if link.from_ != node.id:
            back.setdefault(link.from_, []).append(link)
    rows = [_both_ways(link, back, names, width) for link in area.links if link.from_ == node.id]
    rows += [
        (names.get(far, far), *_way(None, width), *_way(link, width), yellow("one way"))
        for far, links in back.items()
        for link in links
    ]
    paper.grid((*out, ">Back", *out[2:], ""), rows)
    paper.rates()
    if area.prefixes:
        paper.more(area.prefixes, _PREFIXES)
    show_lost(paper, area.lost)


def _both_ways(
    link: TopologyLink, back: dict[str, list[TopologyLink]], names: dict[str, str], width: int
) -> tuple[Cell, ...]:
    """Return the row of a link; ``back`` loses the opposite direction."""
    opposite = back.get(link.to) or []
    other = opposite.pop(0) if opposite else None
    way = yellow("" if link.two_way else "one way")
    return names.get(link.to, link.to), *_way(link, width), *_way(other, width), way


def _way(link: TopologyLink | None, width: int) -> tuple[str, ...]:
    """Return the columns of one direction, as many as are shown; None: it is not there."""
    if link is None:
        return (human.DASH,) * width
    rates = human.bandwidth(link.capacity), human.bandwidth(link.available)
    return (str(link.metric), *rates, human.delay(link.delay))[:width]


_OUT = ("To", ">Metric", ">Capacity", ">Free")
_PREFIXES: Columns = {"Prefix": "prefix", "Type": "type", ">Metric": "metric"}
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
        **delay_column(area.links),
        "": remark,
    }


DOCUMENT = Document(
    TopologyDocument,
    "graph:topology",
    "The graph: nodes, links, metrics, capacities.\n\n"
    "With NODE (a router's name or id) its links in both directions, and its prefixes.",
    (Argument("node", word="NODE"),),
    narrowed=True,
)
