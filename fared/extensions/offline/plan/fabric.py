"""The network of a plan: the graph of a whole database, link by link, and the ends of its pairs.

Areas and levels are one graph here: with the path capacity sub-TLV, routers weigh paths of other
areas as if they saw them. Parallel links of equal metric can fail one by one; of unequal metrics,
those with the least count as one link, since the graph merges them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.core.ids import NodeId, Prefix, format_node, parse_prefix
from fared.extensions.offline.world import World
from fared.paths.ted.database import Ted
from fared.paths.ted.graph import Graph
from fared.paths.ted.links import Blocks
from fared.paths.ted.model import HIGHEST_ISIS_METRIC, NodeBlock, PathType
from fared.paths.ted.rows import LinkRows
from fared.paths.weights.longest import LongestPair, longest_of

_LINK_NETWORK = {4: 30, 6: 126}
"""The shortest prefix that only a link between two routers has, by family."""


class PlanError(ValueError):
    """The database does not suffice for a plan."""


class PlanFabric(msgspec.Struct, frozen=True, eq=False):
    """N nodes, E edges and L links; a link has an edge in each direction.

    ``capacity`` (E,) is bytes/s and finite. ``link_edges`` (L, 2) are the edges of each link,
    ``link_parts`` (L, 2) its capacities there: those of the edge unless links are parallel.
    ``members`` (E,) counts the links of an edge. ``ends`` (P,) are the nodes between which capacity
    counts, ascending; ``pods`` (P,) numbers the part of the fabric of each.
    """

    graph: Graph
    names: tuple[str, ...]
    capacity: NDArray[np.float64]
    link_edges: NDArray[np.int64]
    link_parts: NDArray[np.float64]
    link_names: tuple[str, ...]
    members: NDArray[np.int64]
    ends: NDArray[np.int64]
    pods: NDArray[np.int64]
    longest: LongestPair | None = None
    """The ends with the longest delay between them; None: no link has one, or there are too many
    ends."""

    def links_of(self, node: int) -> NDArray[np.int64]:
        """Return the links of one node."""
        edges = self.link_edges
        graph = self.graph
        at = (graph.src[edges[:, 0]] == node) | (graph.dst[edges[:, 0]] == node)
        return np.flatnonzero(at)


def read_fabric(
    world: World, *, bandwidth: float | None = None, ends: Iterable[str] = ()
) -> PlanFabric:
    """Make the network of a plan. Links of unknown capacity have ``bandwidth`` (bytes/s).

    Without ``bandwidth`` they have the median of the others. ``ends`` are patterns of names, and
    prefixes; without them, the ends are the routers that advertise networks of hosts. Raises
    PlanError.
    """
    blocks = _merged(world.blocks.values())
    ted = Ted()
    for block in blocks.values():
        ted.put(block)
    graph = ted.graph()
    hostnames = world.hostnames
    names = tuple(hostnames.get(NodeId(n), format_node(n)) for n in graph.nodes.tolist())
    capacity = _known(graph, bandwidth)
    links = _links(graph, {node: LinkRows.of(block) for node, block in blocks.items()}, capacity)
    if not links:
        raise PlanError("the database has no link that both ends advertise")
    chosen = _ends(graph, names, blocks, tuple(ends))
    edges = np.array([edges for edges, _, _ in links], np.int64).reshape(-1, 2)
    return PlanFabric(
        graph=graph,
        names=names,
        capacity=capacity,
        link_edges=edges,
        link_parts=np.array([parts for _, parts, _ in links]).reshape(-1, 2),
        link_names=tuple(_link_name(names, graph, edge, at) for (edge, _), _, at in links),
        members=np.bincount(edges.ravel(), minlength=len(graph.dst)),
        ends=chosen,
        pods=_pods(graph, chosen),
        longest=_longest(ted, chosen),
    )


def _longest(ted: Ted, ends: NDArray[np.int64]) -> LongestPair | None:
    delay, found = ted.delays(), LongestPair()
    if delay is None:
        return None
    steps = longest_of(ted.graph(), delay, ends, found)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return found if done.value and found.delay else None


def named(fabric: PlanFabric, pattern: str) -> tuple[list[int], list[int]]:
    """Return the nodes and the links that a pattern names: ``S1``, ``p1-*``, ``L1,S*``."""
    if "," not in pattern:
        nodes = [n for n, name in enumerate(fabric.names) if fnmatchcase(name, pattern)]
        links = [] if nodes else _matching(fabric, pattern, pattern)
        exact = [at for at in links if fnmatchcase(fabric.link_names[at], pattern)]
        return nodes, exact
    one, other = (part.strip() for part in pattern.split(",", 1))
    return [], _matching(fabric, one, other)


def _matching(fabric: PlanFabric, one: str, other: str) -> list[int]:
    graph, names = fabric.graph, fabric.names
    found = []
    for at, edge in enumerate(fabric.link_edges[:, 0].tolist()):
        a, b = names[int(graph.src[edge])], names[int(graph.dst[edge])]
        ways = ((a, b), (b, a))
        if one == other or any(fnmatchcase(x, one) and fnmatchcase(y, other) for x, y in ways):
            found.append(at)
    return found


def _merged(areas: Iterable[Blocks]) -> dict[NodeId, NodeBlock]:
    """One block for each node: a link that is in several areas or levels counts once."""
    found: dict[NodeId, NodeBlock] = {}
    for blocks in areas:
        for node, block in blocks.items():
            known = found.get(node)
            found[node] = block if known is None else _joined(known, block)
    return {node: _used_last(block) for node, block in found.items()}


def _used_last(block: NodeBlock) -> NodeBlock:
    """What lies behind an overloaded router that leads out of level 1 is used last: so its links.

    It leaks prefixes into level 1, or others have a default route to it by its attached bit.
    """
    if block.transit or all(p.path_type is not PathType.LEVEL_1_DOWN for p in block.prefixes):
        return block
    metrics = np.maximum(block.metrics, HIGHEST_ISIS_METRIC)
    return msgspec.structs.replace(block, metrics=metrics, transit=True)


def _joined(block: NodeBlock, more: NodeBlock) -> NodeBlock:
    fresh = ~np.isin(more.neighbors, block.neighbors)
    arrays = ("neighbors", "metrics", "capacities", "availables", "local_ids", "remote_ids")
    changes = {
        name: np.concatenate((getattr(block, name), getattr(more, name)[fresh])) for name in arrays
    }
    if block.delays is not None or more.delays is not None:
        delays = np.concatenate((block.each_delay(), more.each_delay()[fresh]))
        block = msgspec.structs.replace(block, delays=delays)
    return msgspec.structs.replace(
        block,
        **changes,
        prefixes=block.prefixes + more.prefixes,
        transit=block.transit or more.transit,
        hostname=block.hostname or more.hostname,
    )


def _known(graph: Graph, bandwidth: float | None) -> NDArray[np.float64]:
    """Replace unknown capacities, and those out of a transit network by more than all others."""
    capacity = graph.capacity.copy()
    known = capacity[np.isfinite(capacity)]
    unknown = np.isnan(capacity)
    if unknown.any():
        if bandwidth is None and not len(known):
            raise PlanError("the database has no bandwidth of the links; use --bandwidth")
        capacity[unknown] = np.median(known) if bandwidth is None else bandwidth
    endless = np.isinf(capacity)
    capacity[endless] = capacity[~endless].sum() + 1.0
    return capacity


_Link = tuple[tuple[int, int], tuple[float, float], int]
"""The edges of a link, its capacities there, and its number among parallel ones (0: alone)."""


def _links(
    graph: Graph, rows: Mapping[NodeId, LinkRows], capacity: NDArray[np.float64]
) -> list[_Link]:
    """Return every link as its two edges, their capacities, and its number among parallel ones."""
    found: list[_Link] = []
    forward = (graph.src < graph.dst).nonzero()[0]
    degree = (graph.indptr[1:] - graph.indptr[:-1]).tolist()
    plain = [
        len(rows[NodeId(node)].neighbors) == links
        for node, links in zip(graph.nodes.tolist(), degree, strict=True)
    ]
    tails, values = graph.src[forward].tolist(), capacity.tolist()
    for edge, back, tail in zip(
        forward.tolist(), graph.reverse[forward].tolist(), tails, strict=True
    ):
        if plain[tail]:
            found.append(((edge, back), (values[edge], values[back]), 0))
            continue
        there = _parallel(graph, rows, edge, capacity)
        here = _parallel(graph, rows, back, capacity)
        if len(there) != len(here) or len(there) == 1:
            found.append(((edge, back), (float(capacity[edge]), float(capacity[back])), 0))
            continue
        places = _partners(graph, rows, edge, back)
        found += [
            ((edge, back), (there[at], here[place]), at + 1) for at, place in enumerate(places)
        ]
    return found


def _own(graph: Graph, rows: Mapping[NodeId, LinkRows], edge: int) -> tuple[LinkRows, slice]:
    of = rows[NodeId(int(graph.nodes[graph.src[edge]]))]
    far = int(graph.nodes[graph.dst[edge]])
    low, high = of.neighbors.searchsorted(far), of.neighbors.searchsorted(far, "right")
    return of, slice(int(low), int(high))


def _parallel(
    graph: Graph, rows: Mapping[NodeId, LinkRows], edge: int, capacity: NDArray[np.float64]
) -> list[float]:
    """The capacities of the links of one edge; one entry if they cannot fail one by one."""
    of, part = _own(graph, rows, edge)
    metrics, parts = of.metrics[part], of.capacities[part]
    whole = float(capacity[edge])
    if len(metrics) < 2 or (metrics != metrics[0]).any() or np.isnan(parts).any():
        return [whole]
    return parts.tolist() if float(parts.sum()) == whole else [whole]


def _partners(graph: Graph, rows: Mapping[NodeId, LinkRows], edge: int, back: int) -> list[int]:
    """Match the links of an edge with those of the opposite one, by ids where they are known."""
    near, there = _own(graph, rows, edge)
    far, here = _own(graph, rows, back)
    remotes, locals_ = near.remote_ids[there].tolist(), far.local_ids[here].tolist()
    if sorted(remotes) == sorted(locals_) and len(set(remotes)) == len(remotes):
        return [locals_.index(remote) for remote in remotes]
    return list(range(len(remotes)))


def _link_name(names: tuple[str, ...], graph: Graph, edge: int, number: int) -> str:
    ends = sorted((names[int(graph.src[edge])], names[int(graph.dst[edge])]))
    return "-".join(ends) + (f"#{number}" if number else "")


def _ends(
    graph: Graph, names: tuple[str, ...], blocks: Mapping[NodeId, NodeBlock], given: tuple[str, ...]
) -> NDArray[np.int64]:
    if given:
        chosen = {node for pattern in given for node in _chosen(graph, names, blocks, pattern)}
        found = sorted(chosen)
    else:
        owners = _owners_of_hosts(blocks)
        found = [n for n, node in enumerate(graph.nodes.tolist()) if node in owners]
        if len(found) < 2:
            found = [n for n, network in enumerate(graph.network.tolist()) if not network]
    if len(found) < 2:
        raise PlanError("a plan needs two routers or more between which capacity counts")
    return np.array(found, np.int64)


def _chosen(
    graph: Graph, names: tuple[str, ...], blocks: Mapping[NodeId, NodeBlock], pattern: str
) -> list[int]:
    """Return the nodes that a pattern names, or that advertise a prefix. Raises PlanError."""
    found = [n for n, name in enumerate(names) if fnmatchcase(name, pattern)]
    if found or "/" not in pattern:
        if not found:
            raise PlanError(f"no router is named {pattern!r}")
        return found
    try:
        prefix = parse_prefix(pattern)
    except ValueError as error:
        raise PlanError(str(error)) from error
    for number, node in enumerate(graph.nodes.tolist()):
        listed = blocks[NodeId(node)].prefixes
        if any(reachable.prefix == prefix for reachable in listed) and not graph.network[number]:
            found.append(number)
    if not found:
        raise PlanError(f"no router advertises {pattern}")
    return found


def _owners_of_hosts(blocks: Mapping[NodeId, NodeBlock]) -> set[NodeId]:
    """The routers next to networks that are neither one address nor a link between routers."""
    least: dict[Prefix, int] = {}
    owners: defaultdict[Prefix, set[NodeId]] = defaultdict(set)
    for node, block in blocks.items():
        for reachable in block.prefixes:
            prefix, metric = reachable.prefix, reachable.metric
            if not 0 < prefix.length < _LINK_NETWORK[prefix.family]:
                continue
            if metric < least.get(prefix, metric + 1):
                least[prefix] = metric
                owners[prefix] = set()
            if metric == least[prefix]:
                owners[prefix].add(node)
    found: set[NodeId] = set()
    for nodes in owners.values():
        between = any(NodeId(far) in nodes for node in nodes for far in blocks[node].neighbors)
        found |= set() if between else {node for node in nodes if not blocks[node].network}
    return found


def _pods(graph: Graph, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the parts of the fabric that remain if only ends and their neighbors are kept."""
    part = np.arange(len(graph.nodes))
    of_end = np.zeros(len(graph.nodes), bool)
    of_end[ends] = True
    used = of_end[graph.src] | of_end[graph.dst]
    tail, head = graph.src[used], graph.dst[used]
    while True:
        before = part.copy()
        np.minimum.at(part, head, before[tail])
        part = part[part]
        if np.array_equal(part, before):
            break
    numbers: NDArray[np.int64] = np.unique(part[ends], return_inverse=True)[1]
    return numbers
