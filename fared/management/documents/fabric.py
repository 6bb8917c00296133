"""``show fabric``: routers by tier, and unusual links; and the events that keep it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, Shown, Styled, count, dim
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import (
    BytesPerSecond,
    Facts,
    LinkDelay,
    Seconds,
    UnixTime,
)
from fared.management.documents.lost import MissingLink, show_lost
from fared.management.documents.path import NamedLink

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_STYLES = {"sick": "red", "one-way": "red", "drained": "yellow", "reduced": "yellow"}
_PLURALS = {"leaf": "leaves", "spine": "spines", "super-spine": "super-spines", None: "routers"}


class LinkMark(Facts):
    """What is unusual about the links to one neighbor.

    ``state``: ``one-way`` (the other end does not confirm it), ``drained``, ``sick`` (its errors),
    ``reduced`` (less capacity than its siblings). ``reason`` is for people.
    """

    to: str
    state: str
    reason: str


class LinkColumns(Facts):
    """The links of a router to each of its neighbors, as columns: one entry for each of ``to``.

    Parallel links are one entry, ``count`` links with the sum of their capacities; ``metric`` is
    the least, and ``delay`` the longest: left out if the router floods none, None for unknown ones.
    ``marks`` has only the unusual ones.
    """

    to: list[str]
    count: list[int]
    metric: list[int]
    capacity: list[BytesPerSecond]
    available: list[BytesPerSecond]
    marks: list[LinkMark]
    delay: list[Seconds | None] | UnsetType = UNSET


class FabricNode(Facts):
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

    @property
    def name(self) -> str:
        """The hostname, or the id."""
        return human.router(self.id, self.hostname)


class DrawnBranch(Facts):
    """A router of a tree, and the next one toward the root; None: it is the root."""

    router: str
    parent: str | None


class DrawnTree(Facts):
    """A tree of in-network aggregation: routers that sum; weight among the trees of the job."""

    root: str
    weight: int
    branches: list[DrawnBranch]


class DrawnJob(Facts):
    """A job of in-network aggregation: the leaves of its workers, and its trees."""

    name: str
    leaves: list[str]
    trees: list[DrawnTree]


class WeakestPair(NamedLink):
    """The two leaves (in a plane alone: spines; without places: routers) with the least capacity.

    ``capacity`` is that of all paths between them together. Each direction is a pair: ``alike`` of
    ``pairs`` have this capacity; ``usual``: what most of them have, None if no value is so
    common. Of ``unknown`` more the capacity is not known.
    """

    capacity: BytesPerSecond
    usual: BytesPerSecond
    alike: int
    pairs: int
    unknown: int


class LongestPath(NamedLink):
    """The two routers with the longest delay of shortest paths between them, in this direction.

    They are leaves if their area has any. Links that flood none count for nothing.
    """

    delay: Seconds


class Oversubscription(Facts):
    """Capacity of the links of this router to hosts and to routers that are up, and their ratio."""

    hosts: BytesPerSecond
    routers: BytesPerSecond
    ratio: float


class FabricDocument(Answer, tag="fared-fabric/1"):
    """``show fabric``: all routers and links in the areas of this router, and their places.

    ``clos``: whether places were found. ``missing``: the links that should be there. ``weakest``:
    of all pairs within an area; None if it is not known, or the fabric too large to compare them.
    ``longest`` is left out where no router floods a delay, or the fabric is too large.
    ``oversubscription`` is that of this router: databases have no links to hosts. None: not known.
    """

    router_id: str
    hostname: str
    at: UnixTime
    clos: bool
    nodes: Sequence[FabricNode]
    missing: list[MissingLink]
    jobs: list[DrawnJob]
    weakest: WeakestPair | None
    oversubscription: Oversubscription | None
    longest: LongestPath | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the routers of each tier, then the unusual links."""
        if not self.nodes:
            paper.line(dim("no router is known yet"))
            return
        tiers = groupby(sorted(self.nodes, key=_place), key=lambda node: node.role)
        for index, (role, group) in enumerate(tiers):
            routers = list(group)
            paper.heading(f"{len(routers)} {_PLURALS[role]}", first=index == 0)
            paper.table(routers, _columns(routers))
        show_lost(paper, self.missing)
        paper.line()
        _show_marks(self, paper)
        if self.weakest is not None:
            paper.line(_weakest_of(self.nodes, self.weakest))
        if self.longest is not UNSET:
            ends = f"{self.longest.tail} > {self.longest.head}"
            paper.line(f"longest delay: {ends}, {human.delay(self.longest.delay)}")
        if self.oversubscription is not None:
            paper.line(_oversubscribed(self.oversubscription))


class FabricLink(Facts):
    """One direction between two routers, as ``LinkColumns`` has it; ``state`` None: usual."""

    from_: str = msgspec.field(name="from")
    to: str
    count: int
    metric: int
    capacity: BytesPerSecond
    available: BytesPerSecond
    state: str | None
    reason: str | None
    delay: LinkDelay = UNSET


class FabricDelta(Facts):
    """The data of an event ``delta``: only what changed.

    ``lost``: pairs of routers without a link in this direction any more.
    """

    at: UnixTime
    links: list[FabricLink]
    lost: list[tuple[str, str]]


class FabricMissing(Facts):
    """The data of an event ``missing``: all links that are missing now, as in the document."""

    missing: list[MissingLink]


class FabricWeakest(Facts):
    """The data of an event ``weakest``: the weakest pair now, as in the document."""

    weakest: WeakestPair | None


def _place(node: FabricNode) -> tuple[list[tuple[bool, int]], list[tuple[bool, int, str]]]:
    """Return the order of routers: upper tiers first; those without a number after the others."""
    tier = None if node.tier is None else -node.tier
    numbers = [(number is None, number or 0) for number in (tier, node.pod, node.plane)]
    return numbers, human.ordering(node.name)


def _columns(routers: list[FabricNode]) -> Columns:
    """Return the columns of a tier: pods and planes where there are any."""
    numbers: dict[str, Shown] = {
        ">Pod": lambda node: "" if node.pod is None else str(node.pod),
        ">Plane": lambda node: "" if node.plane is None else str(node.plane),
    }
    return {
        "Router": "name",
        "Id": "id",
        **{head: n for head, n in numbers.items() if any(map(n, routers))},  # type: ignore[arg-type]
        ">Neighbors": lambda node: str(len(node.links.to)),
        ">Prefixes": "prefixes",
        "": _remark,
    }


def _remark(node: FabricNode) -> str:
    kind = human.kind(network=node.network, transit=node.transit, last_resort=node.last_resort)
    return ", ".join(filter(None, ("this router" if node.here else "", kind)))


def _oversubscribed(found: Oversubscription) -> str:
    hosts, routers = human.bandwidth(found.hosts), human.bandwidth(found.routers)
    return f"oversubscription here: {found.ratio:.3g} (hosts {hosts}, links to routers {routers})"


def _show_marks(fabric: FabricDocument, paper: Paper) -> None:
    """Print the links that are unusual."""
    nodes = fabric.nodes
    names = {node.id: node.name for node in nodes}
    found = [(node.name, mark) for node in nodes for mark in node.links.marks]
    if not found:
        links = sum(len(node.links.to) for node in nodes)
        other = "other " if fabric.missing else ""
        none = f"no {other}link is down, drained, or slower than its siblings"
        paper.line(f"{none} ({count(links, 'direction')})")
        return
    rows = (
        (tail, names.get(m.to, m.to), Styled(m.state, _STYLES.get(m.state, "")), m.reason)
        for tail, m in found
    )
    paper.grid(("From", "To", "State", "Reason"), rows)


def _weakest_of(nodes: Sequence[FabricNode], pair: WeakestPair) -> str:
    """Return one sentence: "weakest pair: L3 > L5, 225M; most have 400M"."""
    if pair.alike == pair.pairs:
        role = next((node.role for node in nodes if node.id == pair.from_), None)
        return f"any two {_PLURALS[role]} have {human.bandwidth(pair.capacity)}"
    least = f"weakest pair: {pair.tail} > {pair.head}, {human.bandwidth(pair.capacity)}"
    if pair.usual is None:
        return least
    if pair.usual == pair.capacity:
        return f"{least}, as most have"
    return f"{least}; most have {human.bandwidth(pair.usual)}"


DOCUMENT = Document(
    FabricDocument,
    "fabric:fabric",
    "All known routers by tier, pod and plane, and links that are unusual.",
    narrowed=True,
    rare=True,
)
