"""Groups of prefixes as a graph for the route solver: this router, its neighbors, the groups.

The link to a neighbor carries C(n), the one from there to a group what it announces, B(n). A
neighbor with several sessions is a node for each set of them by which it reaches groups: links of
one node share its bandwidth. Neighbors that share a limit lead to a node for it, which leads to the
group. Prefixes belong to the group's node, which forwards to none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from fared.core.ids import (
    FAMILY_IPV4,
    GROUP_NODE,
    SESSIONS_NODE,
    SHARED_NODE,
    SHARED_SHIFT,
    NodeId,
    Prefix,
)
from fared.paths.ted.events import LocalLinksChanged, PrefixesUpdated, TedUpdated
from fared.paths.ted.model import LocalLink, NodeBlock, PrefixReachability
from fared.protocols.bgp.rib.bandwidth import Shares
from fared.protocols.bgp.rib.lans import lans_of
from fared.protocols.bgp.rib.shared import SharedPart

_METRIC: Final = 1
_MOST_NAMED: Final = 1 << 23
GraphOutput = TedUpdated | PrefixesUpdated | LocalLinksChanged
_Row = tuple[NodeId, float, int, int]
"""Of a block: node, capacity, local and remote id, metric."""
_Edge = tuple[NodeId, float, int, float | None]
"""To a group: the next node, what is carried there, metric, what load leaves (None: all)."""


def group_node(group: int) -> NodeId:
    """Return the node of a group."""
    return NodeId(GROUP_NODE | group)


class _Reach(NamedTuple):
    """How a group is reached: by sessions with one router, and the limits that some share."""

    edges: dict[tuple[int, ...], _Edge]
    shared: dict[NodeId, SharedPart]

    @property
    def heads(self) -> dict[tuple[int, ...], NodeId]:
        """The next nodes."""
        return {sessions: edge[0] for sessions, edge in self.edges.items()}


def _reach(
    group: int, shares: Shares, parts: tuple[SharedPart, ...], free: Mapping[tuple[int, ...], float]
) -> _Reach:
    if not parts:
        node = group_node(group)
        edges = {one: (node, most, _METRIC, free.get(one)) for one, most in shares.items()}
        return _Reach(edges, {})
    shared: dict[NodeId, SharedPart] = {}
    by_sessions: dict[tuple[int, ...], _Edge] = {}
    for part in parts:
        node = NodeId(SHARED_NODE | group << SHARED_SHIFT | part.identifier)
        if node not in shared:
            shared[node] = part
            for sessions, reach in zip(part.members, part.reaches, strict=True):
                left = free.get(sessions)
                less = None if left is None else min(left, reach)
                by_sessions[sessions] = node, reach, _METRIC, less
    alone = group_node(group)
    edges = {
        # all paths are equally long
        sessions: by_sessions.get(sessions, (alone, limit, 2 * _METRIC, free.get(sessions)))
        for sessions, limit in shares.items()
    }
    return _Reach(edges, shared)


_ALL_FREE: Final[Mapping[tuple[int, ...], float]] = MappingProxyType({})
_NOWHERE: Final = _Reach({}, {})


class GroupGraph:
    """The graph of one family, and what of it changed since ``take``."""

    def __init__(self, root: NodeId, family: int = FAMILY_IPV4, area: int = 0) -> None:
        self.root = root
        self.family = family
        self.area = area
        self.capacities: dict[int, float] = {}
        """C of each session whose link has a known capacity, bytes/s."""
        self.lans: dict[int, int] = {}
        """The interface of each session on a link that others share."""
        self._links: dict[int, LocalLink] = {}
        self.availables: dict[int, float] = {}
        """What load leaves of them, where that is known."""
        self._identifiers: dict[int, int] = {}
        self._nodes: dict[tuple[int, ...], NodeId] = {}
        self._groups: dict[int, _Reach] = {}
        self._tags: dict[int, int] = {}
        self._beyond: dict[tuple[int, ...], dict[int, _Edge]] = {}
        self._shared: dict[int, dict[NodeId, SharedPart]] = {}
        """By group, the nodes of limits that the graph has."""
        self._changed: set[int] = set()
        self._touched: dict[tuple[int, ...], None] = {}
        self._prefixes: dict[int, dict[Hashable, PrefixReachability | None]] = {}
        self._links_changed = True
        self._last = 0

    def set_link(self, peer: int, identifier: int, link: LocalLink | None) -> None:
        """Set the link of a session with the router of an identifier; None: there is none.

        Links to others that it names have numbers of their own (``exits``).
        """
        self._links.pop(peer, None)
        self.capacities.pop(peer, None)
        self.availables.pop(peer, None)
        if link is not None:
            self._links[peer] = link
            if link.bandwidth is not None:
                self.capacities[peer] = link.bandwidth
        self.lans = lans_of({number: one.ifindex for number, one in self._links.items()})
        self._identifiers[peer] = identifier
        self._links_changed = True
        self._touched.update((sessions, None) for sessions in self._beyond if peer in sessions)

    def link(self, peer: int) -> LocalLink | None:
        """Return the link of a session, or of another exit; None: there is none."""
        return self._links.get(peer)

    def interface(self, peer: int) -> int:
        """Return the ifindex of the link of a session, 0 if there is none."""
        link = self._links.get(peer)
        return 0 if link is None else link.ifindex

    def set_available(self, peer: int, available: float | None) -> None:
        """Set what the load leaves of the link of a session, bytes/s; None: unknown."""
        self.availables.pop(peer, None)
        if available is not None:
            self.availables[peer] = available
        self._links_changed = True

    def set_shares(
        self,
        group: int,
        shares: Shares,
        parts: tuple[SharedPart, ...] = (),
        free: Mapping[tuple[int, ...], float] = _ALL_FREE,
    ) -> None:
        """Set by whom a group is reached; by none: it is no part of the graph."""
        before, reach = self._groups.pop(group, _NOWHERE), _reach(group, shares, parts, free)
        if shares:
            self._groups[group] = reach
        if before.heads != reach.heads or before.shared != reach.shared:
            self._changed.add(group)
        for sessions in before.edges.keys() - reach.edges.keys():
            del self._beyond[sessions][group]
            self._touched[sessions] = None
        for sessions, edge in reach.edges.items():
            if before.edges.get(sessions) != edge:
                self._beyond.setdefault(sessions, {})[group] = edge
                self._touched[sessions] = None

    def tag(self, group: int) -> int:
        """Return the tag of a group."""
        return self._tags.get(group, 0)

    def set_tag(self, group: int, tag: int, prefixes: Iterable[Prefix]) -> None:
        """Set the tag of a group and its prefixes: where it was redistributed from, 0: nowhere."""
        self._tags.pop(group, None)
        if tag:
            self._tags[group] = tag
        self.move(prefixes, 0, group)

    def move(self, prefixes: Iterable[Prefix], before: int, after: int) -> None:
        """Pass prefixes from one group to another, 0 for none."""
        if before:
            self._prefixes.setdefault(before, {}).update(dict.fromkeys(prefixes))
        if after:
            found = self._prefixes.setdefault(after, {})
            for prefix in prefixes:
                found[prefix] = PrefixReachability(prefix, 0, tag=self._tags.get(after, 0))

    def take(self, cause: str, since: float) -> Iterator[GraphOutput]:
        """Yield what changed, each node once; the root first, if it has other neighbors."""
        for sessions in self._touched:
            if sessions not in self._nodes or not self._beyond[sessions]:
                self._links_changed = True
        gone = [sessions for sessions in self._touched if not self._beyond[sessions]]
        for sessions in gone:
            del self._beyond[sessions], self._touched[sessions]
        lost = [self._nodes.pop(sessions) for sessions in gone if sessions in self._nodes]
        for sessions in self._touched:
            self._name(sessions)
        if self._links_changed:
            yield from self._own_links(cause, since)
        for node in lost:
            yield TedUpdated(self.area, node, None, cause, since, self.family)
        for sessions in self._touched:
            block = self._neighbor(sessions)
            yield TedUpdated(self.area, block.node, block, cause, since, self.family)
        yield from self._changed_groups(cause, since)
        self._touched, self._links_changed = {}, False

    def _name(self, sessions: tuple[int, ...]) -> None:
        """Name the node of a router by its identifier, unless another one has that."""
        if sessions in self._nodes:
            return
        node = NodeId(self._identifiers[sessions[0]])
        if node == self.root or node in self._nodes.values():
            self._last = self._last % _MOST_NAMED + 1
            node = NodeId(SESSIONS_NODE | self._last << SHARED_SHIFT | node)
        self._nodes[sessions] = node

    def _own_links(self, cause: str, since: float) -> Iterator[GraphOutput]:
        rows: list[_Row] = []
        links, free = [], dict[int, float]()
        for sessions, node in self._nodes.items():
            for peer in sessions:
                link = self._links.get(peer)
                if link is not None:
                    known = math.nan if link.bandwidth is None else link.bandwidth
                    rows.append((node, known, peer, _METRIC))
                    free[peer] = self.availables.get(peer, math.nan)
                    links.append(replace(link, neighbor=node, local_id=peer, metric=_METRIC))
        block = _block(self.root, rows)
        block = replace(block, availables=np.array([free[peer] for _, _, peer, _ in rows]))
        yield TedUpdated(self.area, self.root, block, cause, since, self.family)
        links.sort(key=lambda link: (link.ifindex, link.local_id))
        yield LocalLinksChanged(self.area, tuple(links), cause, since, self.family)

    def _neighbor(self, sessions: tuple[int, ...]) -> NodeBlock:
        rows = [(self.root, math.nan, peer, _METRIC) for peer in sessions if peer in self._links]
        beyond = self._beyond[sessions].values()
        rows += [(node, limit, 0, metric) for node, limit, metric, _ in beyond]
        block = _block(self._nodes[sessions], rows)
        free = {node: left for node, _, _, left in beyond if left is not None}
        if not free:
            return block
        left = [free.get(NodeId(node), math.nan) for node in block.neighbors.tolist()]
        return replace(block, availables=np.array(left))

    def _changed_groups(self, cause: str, since: float) -> Iterator[GraphOutput]:
        for group in self._changed:
            reach, node = self._groups.get(group, _NOWHERE), group_node(group)
            block = None
            if reach.edges:
                rows = [
                    (self._nodes[sessions], math.nan, 0, metric)
                    for sessions, (head, _, metric, _) in reach.edges.items()
                    if head == node
                ]
                rows += [(one, math.nan, 0, _METRIC) for one in reach.shared]
                block = _block(node, rows, transit=False)
            for one, limit in self._limits(group, reach.shared).items():
                yield TedUpdated(self.area, one, limit, cause, since, self.family)
            prefixes = self._prefixes.pop(group, {})
            yield TedUpdated(self.area, node, block, cause, since, self.family, prefixes)
        for group, prefixes in self._prefixes.items():
            node = group_node(group)
            yield PrefixesUpdated(self.area, node, prefixes, cause, since, self.family)
        self._changed, self._prefixes = set(), {}

    def _limits(
        self, group: int, shared: dict[NodeId, SharedPart]
    ) -> dict[NodeId, NodeBlock | None]:
        """Return the nodes of limits of a group that are others, None for those that are gone."""
        before = self._shared.pop(group, {})
        if shared:
            self._shared[group] = shared
        found: dict[NodeId, NodeBlock | None] = dict.fromkeys(before.keys() - shared.keys())
        for node, part in shared.items():
            if before.get(node) != part:
                rows = [(self._nodes[one], math.nan, 0, _METRIC) for one in part.members]
                rows.append((group_node(group), part.total, 0, _METRIC))
                found[node] = _block(node, rows)
        return found


def _block(node: NodeId, rows: list[_Row], *, transit: bool = True) -> NodeBlock:
    rows.sort()
    count = len(rows)
    ids = np.array([row[2] for row in rows], np.int64)
    return NodeBlock(
        node=node,
        neighbors=np.array([row[0] for row in rows], np.int64),
        metrics=np.array([row[3] for row in rows], np.int64),
        capacities=np.array([row[1] for row in rows], np.float64),
        availables=np.full(count, math.nan),
        local_ids=ids,
        remote_ids=ids,
        transit=transit,
    )
