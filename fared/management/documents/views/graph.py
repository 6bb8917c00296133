"""Views of the graph: topology, shortest paths, the path between two routers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from fared.core.ids import NodeId
from fared.management.documents.context import ViewContext, family_name, finite
from fared.management.documents.happened import told
from fared.management.documents.sliced import Sliced, Work, each
from fared.management.documents.spf import Spf, SpfNode, SpfRun
from fared.management.documents.topology import (
    TopologyArea,
    TopologyDocument,
    TopologyLink,
    TopologyNode,
)
from fared.management.documents.views.lost import in_area, lost_links
from fared.paths.ted.graph import Graph
from fared.paths.ted.model import NodeBlock
from fared.router.convergence import SpfRecord
from fared.router.instance import ProtocolInstance

_NODES = 32
"""Nodes of a shortest-path tree between two pauses: each may have as many first hops as links."""
Row = tuple[int, int, float | None, float | None, bool, int, int]
"""Neighbor, metric, capacity, available, whether it is two-way, ids at both ends."""


@Sliced
def topology(context: ViewContext) -> Work[TopologyDocument]:
    """``show topology``: the flooded links, one-way ones included."""
    areas: list[TopologyArea] = []
    for instance in context.instances:
        for area in areas_of(instance):
            areas.append((yield from _area(context, instance, area)))  # noqa: PERF401 - it pauses
    return TopologyDocument(router_id=context.root, areas=areas)


def areas_of(instance: ProtocolInstance) -> list[int]:
    """Return the areas of a protocol, of all families, ascending."""
    return sorted({area for solver in instance.solvers.values() for area in solver.areas})


def _area(context: ViewContext, instance: ProtocolInstance, area: int) -> Work[TopologyArea]:
    """Merge the graphs of all families: common links are listed once."""
    teds = {
        family_name(family): (solver.ted(area).graph(), solver.ted(area).blocks)
        for family, solver in instance.solvers.items()
        if area in solver.areas
    }
    nodes = dict.fromkeys(node for _, blocks in teds.values() for node in blocks)
    names = {node: context.node(node) for node in nodes}
    solvers = list(instance.solvers.values())

    def entry(node: NodeId) -> TopologyNode:
        known = [blocks.get(node) for _, blocks in teds.values()]
        prefixes = sum(solver.prefix_count(area, node) for solver in solvers)
        return _node(context, node, known, prefixes)

    links: list[TopologyLink] = []
    for node in nodes:
        yield
        found = {
            family: _rows(graph, blocks[node])
            for family, (graph, blocks) in teds.items()
            if node in blocks
        }
        for row, families in _shared(found):
            far, metric, capacity, available, two_way, *_ = row
            links.append(
                TopologyLink(
                    from_=names[node],
                    to=names.get(NodeId(far)) or context.node(far),
                    metric=metric,
                    capacity=capacity,
                    available=available,
                    two_way=two_way,
                    families=families,
                )
            )
    return TopologyArea(
        proto=instance.name,
        area=context.area_name(instance.name, area),
        nodes=(yield from each(nodes, entry)),
        links=links,
        lost=in_area(context, lost_links(context), instance.name, area),
    )


def _node(
    context: ViewContext, node: NodeId, blocks: list[NodeBlock | None], prefixes: int
) -> TopologyNode:
    known = [block for block in blocks if block is not None]
    return TopologyNode.of(known[0], id=context.node(node), prefixes=prefixes)


def _rows(graph: Graph, block: NodeBlock) -> list[Row]:
    """Return the links of a node as in its block."""
    here = graph.index(block.node)
    confirmed = np.zeros(len(block.neighbors), bool)
    if here is not None:
        ends = graph.dst[graph.indptr[here] : graph.indptr[here + 1]]
        confirmed = np.isin(block.neighbors, graph.nodes[ends])
    columns = (
        block.neighbors.tolist(),
        block.metrics.tolist(),
        map(finite, block.capacities.tolist()),
        map(finite, block.availables.tolist()),
        confirmed.tolist(),
        block.local_ids.tolist(),
        block.remote_ids.tolist(),
    )
    return list(zip(*columns, strict=True))


def _shared(found: dict[str, list[Row]]) -> Iterator[tuple[Row, list[str]]]:
    """Yield each link of a node once, with its families."""
    first, *others = found.values()
    if all(rows == first for rows in others):
        yield from ((row, list(found)) for row in first)
        return
    counts = {family: Counter(rows) for family, rows in found.items()}
    for row in dict.fromkeys(row for rows in found.values() for row in rows):
        for number in range(max(count[row] for count in counts.values())):
            yield row, [family for family, count in counts.items() if number < count[row]]


@Sliced
def spf(context: ViewContext, *, log: bool = False) -> Work[Spf]:
    """``show spf`` or ``show spf log``."""
    router = context.router
    found = Spf(root=context.root, backoff=router.schedule.backoff.state.value)
    if log:
        changes_at = told(context)
        found.log = [_run(context, run, changes_at(run.at)) for run in router.journal.spf_runs]
        return found
    found.nodes = []
    for instance in context.instances:
        for area in areas_of(instance):
            found.nodes += yield from _spf_nodes(context, instance, area)
    return found


def _run(context: ViewContext, run: SpfRecord, changes: list[str]) -> SpfRun:
    at, causes = context.unix(run.at), list(run.causes)
    return SpfRun.of(run, at=at, causes=causes, changes=changes, duration=run.computed)


def _spf_nodes(context: ViewContext, instance: ProtocolInstance, area: int) -> Work[list[SpfNode]]:
    found: dict[tuple[NodeId, int, tuple[NodeId, ...]], SpfNode] = {}
    for family, solver in instance.solvers.items():
        for number, (node, seen) in enumerate(solver.spf_view(area).items()):
            if number % _NODES == 0:
                yield
            entry = SpfNode(
                id=context.node(node),
                hostname=context.hostnames.get(node),
                proto=instance.name,
                families=[],
                area=context.area_name(instance.name, area),
                metric=seen.metric,
                first_hops=[context.node(hop) for hop in seen.first_hops],
            )
            key = (node, seen.metric, seen.first_hops)
            found.setdefault(key, entry).families.append(family_name(family))
    return [found[key] for key in sorted(found)]
