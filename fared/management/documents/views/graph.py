"""Views of the graph: topology, shortest paths, the path between two routers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import UNSET

from fared.core.ids import NodeId
from fared.management.documents import human
from fared.management.documents.context import ViewContext, family_name, finite, link_delays
from fared.management.documents.errors import CommandError, not_found
from fared.management.documents.facts import LinkDelay
from fared.management.documents.happened import told
from fared.management.documents.sliced import PORTION, Sliced, Work, each
from fared.management.documents.spf import Spf, SpfNode, SpfRun
from fared.management.documents.topology import (
    TopologyArea,
    TopologyDocument,
    TopologyLink,
    TopologyNode,
    TopologyPrefix,
)
from fared.management.documents.views.lost import in_area, lost_links
from fared.management.documents.views.routers import router_blocks, routers
from fared.management.documents.views.spf_paths import paths_to
from fared.paths.ted.graph import Graph
from fared.paths.ted.model import NodeBlock
from fared.router.convergence import SpfRecord
from fared.router.instance import ProtocolInstance

_NODES = 32
"""Nodes of a shortest-path tree between two pauses: each may have as many first hops as links."""
Row = tuple[int, int, float | None, float | None, bool, LinkDelay, int, int]
"""Neighbor, metric, capacity, available, whether it is two-way, delay, ids at both ends."""


@Sliced
def topology(context: ViewContext, node: str | None = None) -> Work[TopologyDocument]:
    """``show topology [NODE]``: the flooded links, one-way ones included. Raises CommandError."""
    areas: list[TopologyArea] = []
    chosen = None if node is None else chosen_nodes(context, node)
    for instance in context.instances:
        for area in areas_of(instance):
            found = yield from _area(context, instance, area, chosen)
            if chosen is None or any(each.id in chosen.values() for each in found.nodes):
                areas.append(found)
    document = TopologyDocument(router_id=context.root, areas=areas)
    if chosen is not None:
        document.nodes = list(chosen.values())
    return document


def chosen_nodes(context: ViewContext, name: str) -> dict[NodeId, str]:
    """Return the nodes with a name or id, one for each protocol. Raises CommandError."""
    known = (context.find_node(name, instance) for instance in context.instances)
    found = {NodeId(node): context.node(node) for node in known if node is not None}
    if not found:
        names = sorted(context.hostnames.values(), key=human.ordering)
        raise not_found("router", name, names)
    return found


def areas_of(instance: ProtocolInstance) -> list[int]:
    """Return the areas of a protocol, of all families, ascending."""
    return sorted({area for solver in instance.solvers.values() for area in solver.areas})


def _area(
    context: ViewContext, instance: ProtocolInstance, area: int, chosen: Mapping[NodeId, str] | None
) -> Work[TopologyArea]:
    """Merge the graphs of all families: common links are listed once.

    ``chosen``: only these nodes, the far ends of their links, and their prefixes.
    """
    teds = {
        family_name(family): (
            solver.ted(area).graph(),
            router_blocks(context, instance, solver.ted(area).blocks),
        )
        for family, solver in instance.solvers.items()
        if area in solver.areas
    }
    nodes = dict.fromkeys(node for _, blocks in teds.values() for node in blocks)
    if chosen is not None:
        nodes = yield from _around(nodes, [blocks for _, blocks in teds.values()], chosen)
    names = {node: context.node(node) for node in nodes}
    solvers = list(instance.solvers.values())

    def entry(node: NodeId) -> TopologyNode:
        known = [blocks.get(node) for _, blocks in teds.values()]
        prefixes = sum(solver.prefix_count(area, node) for solver in solvers)
        return _node(context, node, known, prefixes)

    links = yield from _links(context, teds, names, chosen)
    lost = yield from lost_links(context)
    return TopologyArea(
        proto=instance.name,
        area=context.area_name(instance.name, area),
        nodes=(yield from each(nodes, entry)),
        links=links,
        lost=[
            each
            for each in in_area(context, lost, instance.name, area)
            if chosen is None or not {each.from_, each.to}.isdisjoint(chosen.values())
        ],
        prefixes=UNSET if chosen is None else _prefixes(instance, area, chosen),
    )


def _links(
    context: ViewContext,
    teds: Mapping[str, tuple[Graph, Mapping[NodeId, NodeBlock]]],
    names: Mapping[NodeId, str],
    chosen: Mapping[NodeId, str] | None,
) -> Work[list[TopologyLink]]:
    """Return the links of the named nodes, of ``chosen`` ones those that touch these."""
    links: list[TopologyLink] = []
    for node in names:
        yield
        found = {
            family: _rows(graph, blocks[node])
            for family, (graph, blocks) in teds.items()
            if node in blocks
        }
        for row, families in _shared(found):
            far, metric, capacity, available, two_way, delay, *_ = row
            if chosen is not None and node not in chosen and far not in chosen:
                continue
            links.append(
                TopologyLink(
                    from_=names[node],
                    to=names.get(NodeId(far)) or context.node(far),
                    metric=metric,
                    capacity=capacity,
                    available=available,
                    two_way=two_way,
                    families=families,
                    delay=delay,
                )
            )
    return links


def _around(
    nodes: Mapping[NodeId, None],
    teds: list[Mapping[NodeId, NodeBlock]],
    chosen: Mapping[NodeId, str],
) -> Work[dict[NodeId, None]]:
    """Return the chosen nodes, those that they list, and those that list them."""
    found = {node: None for node in chosen if node in nodes}
    for blocks in teds:
        for node in chosen.keys() & blocks.keys():
            found |= dict.fromkeys(map(NodeId, blocks[node].neighbors.tolist()))
        for number, (node, block) in enumerate([*blocks.items()]):
            if number % PORTION == 0:
                yield
            if any(block.lists(each) for each in chosen):
                found[node] = None
    return {node: None for node in nodes if node in found}


def _prefixes(
    instance: ProtocolInstance, area: int, chosen: Mapping[NodeId, str]
) -> list[TopologyPrefix]:
    return [
        TopologyPrefix(prefix=str(found.prefix), metric=found.metric, type=found.path_type.label)
        for solver in instance.solvers.values()
        for node in chosen
        for found in sorted(solver.advertised_by(area, node), key=lambda found: found.prefix)
    ]


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
        link_delays(block),
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
def spf(context: ViewContext, node: str | None = None, *, log: bool = False) -> Work[Spf]:
    """``show spf [NODE]`` or ``show spf log``. Raises CommandError."""
    router = context.router
    found = Spf(root=context.root, backoff=router.schedule.backoff.state.value)
    if log:
        changes_at = yield from told(context)
        found.log = [_run(context, run, changes_at(run.at)) for run in router.journal.spf_runs]
        return found
    found.nodes = []
    chosen = None if node is None else chosen_nodes(context, node)
    for instance in context.instances:
        for area in areas_of(instance):
            found.nodes += yield from _spf_nodes(context, instance, area)
    if chosen is not None:
        found.nodes = [each for each in found.nodes if each.id in chosen.values()]
        found.paths = [
            path
            for instance in context.instances
            for area in areas_of(instance)
            for wanted in chosen
            for path in paths_to(context, instance, area, wanted)
        ]
        if not found.nodes:
            raise CommandError("not-found", f"no path to {node}")
    return found


def _run(context: ViewContext, run: SpfRecord, changes: list[str]) -> SpfRun:
    at, causes = context.unix(run.at), list(run.causes)
    return SpfRun.of(run, at=at, causes=causes, changes=changes, duration=run.computed)


def _spf_nodes(context: ViewContext, instance: ProtocolInstance, area: int) -> Work[list[SpfNode]]:
    found: dict[tuple[NodeId, int, tuple[NodeId, ...]], SpfNode] = {}
    for family, solver in instance.solvers.items():
        view = solver.spf_view(area)
        for number, node in enumerate(routers(instance, view)):
            seen = view[node]
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
