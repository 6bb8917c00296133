"""Views of the graph: topology, shortest paths, the path between two routers."""

from __future__ import annotations

from fared.api.schema import graph as schema
from fared.api.views.context import ViewContext, area_name, family_name, finite
from fared.core.ids import NodeId
from fared.router.speaker import Speaker
from fared.ted.database import Ted
from fared.ted.graph import Graph
from fared.ted.model import NodeBlock

LinkKey = tuple[NodeId, tuple[object, ...]]
"""Where a link begins, and all else that is the same for families that share it."""


def topology(context: ViewContext) -> schema.Topology:
    """``show topology``: what was flooded, one-way links included."""
    return {
        "format": "fared-topology/1",
        "router_id": context.root,
        "areas": [
            _area(context, speaker, area)
            for speaker in context.speakers
            for area in areas_of(speaker)
        ],
    }


def areas_of(speaker: Speaker) -> list[int]:
    """The areas of a protocol, of whatever families, ascending."""
    return sorted({area for solver in speaker.solvers.values() for area in solver.areas})


def _area(context: ViewContext, speaker: Speaker, area: int) -> schema.TopologyArea:
    """One graph of all families: what they have in common is listed once."""
    nodes: dict[NodeId, schema.TopologyNode] = {}
    links: dict[LinkKey, schema.TopologyLink] = {}
    for family, solver in speaker.solvers.items():
        if area not in solver.areas:
            continue
        ted = solver.ted(area)
        for node, block in ted.blocks.items():
            _add_node(context, nodes, block)
            _add_links(context, links, ted, node, family_name(family))
    places = {node: place for place, node in enumerate(nodes)}
    return {
        "proto": speaker.name,
        "area": area_name(speaker.name, area),
        "nodes": list(nodes.values()),
        "links": [links[key] for key in sorted(links, key=lambda key: places[key[0]])],
    }


def _add_node(
    context: ViewContext, nodes: dict[NodeId, schema.TopologyNode], block: NodeBlock
) -> None:
    entry: schema.TopologyNode = {
        "id": context.node(block.node),
        "hostname": block.hostname,
        "network": block.network,
        "transit": block.transit,
        "prefixes": 0,
    }
    nodes.setdefault(block.node, entry)["prefixes"] += len(block.prefixes)


def _add_links(
    context: ViewContext,
    links: dict[LinkKey, schema.TopologyLink],
    ted: Ted,
    node: NodeId,
    family: str,
) -> None:
    block, graph = ted.blocks[node], ted.graph()
    columns = (
        block.neighbors,
        block.metrics,
        block.capacities,
        block.availables,
        block.local_ids,
        block.remote_ids,
    )
    for far, metric, capacity, available, *ids in zip(*(c.tolist() for c in columns), strict=True):
        entry: schema.TopologyLink = {
            "from": context.node(node),
            "to": context.node(far),
            "metric": metric,
            "capacity": finite(capacity),
            "available": finite(available),
            "two_way": _two_way(graph, node, far),
            "families": [],
        }
        facts = (far, metric, entry["capacity"], entry["available"], entry["two_way"], *ids)
        key: LinkKey = (node, facts)
        while family in links.setdefault(key, entry)["families"]:
            key = (node, (*key[1], "parallel"))
        links[key]["families"].append(family)


def _two_way(graph: Graph, tail: int, head: int) -> bool:
    at, to = graph.index(tail), graph.index(head)
    return at is not None and to is not None and graph.edge(at, to) is not None


def spf(context: ViewContext, *, log: bool = False) -> schema.Spf:
    """``show spf`` or ``show spf log``."""
    router = context.router
    document: schema.Spf = {
        "format": "fared-spf/1",
        "root": context.root,
        "backoff": router.backoff.state.value,
    }
    if log:
        document["log"] = [
            {
                "at": context.unix(run.at),
                "causes": list(run.causes),
                "spf_ran": run.spf_ran,
                "nodes": run.nodes,
                "edges": run.edges,
                "routes": run.routes,
                "duration": run.computed,
                "backoff": run.backoff,
            }
            for run in router.journal.spf_runs
        ]
        return document
    document["nodes"] = [
        entry
        for speaker in context.speakers
        for area in areas_of(speaker)
        for entry in _spf_nodes(context, speaker, area)
    ]
    return document


def _spf_nodes(context: ViewContext, speaker: Speaker, area: int) -> list[schema.SpfNode]:
    found: dict[tuple[NodeId, int, tuple[NodeId, ...]], schema.SpfNode] = {}
    for family, solver in speaker.solvers.items():
        for node, seen in solver.spf_view(area).items():
            entry: schema.SpfNode = {
                "id": context.node(node),
                "hostname": context.hostnames.get(node),
                "proto": speaker.name,
                "families": [],
                "area": area_name(speaker.name, area),
                "metric": seen.metric,
                "first_hops": [context.node(hop) for hop in seen.first_hops],
            }
            key = (node, seen.metric, seen.first_hops)
            found.setdefault(key, entry)["families"].append(family_name(family))
    return [found[key] for key in sorted(found)]
