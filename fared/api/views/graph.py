"""Views of the graph: topology, shortest paths, the path between two routers."""

from __future__ import annotations

from fared.api.schema import graph as schema
from fared.api.views.context import ViewContext, finite
from fared.core.ids import dotted
from fared.ted.graph import Graph


def topology(context: ViewContext) -> schema.Topology:
    """``show topology``: what was flooded, one-way links included."""
    solver = context.router.solver
    return {
        "format": "fared-topology/1",
        "router_id": context.root,
        "areas": [_area(context, area) for area in solver.areas],
    }


def _area(context: ViewContext, area: int) -> schema.TopologyArea:
    ted = context.router.solver.ted(area)
    graph = ted.graph()
    nodes: list[schema.TopologyNode] = []
    links: list[schema.TopologyLink] = []
    for node, block in ted.blocks.items():
        nodes.append(
            {
                "id": context.node(node),
                "hostname": block.hostname,
                "network": block.network,
                "transit": block.transit,
                "prefixes": len(block.prefixes),
            }
        )
        columns = (block.neighbors, block.metrics, block.capacities, block.availables)
        for far, metric, capacity, available in zip(*(c.tolist() for c in columns), strict=True):
            links.append(
                {
                    "from": context.node(node),
                    "to": context.node(far),
                    "metric": metric,
                    "capacity": finite(capacity),
                    "available": finite(available),
                    "two_way": _two_way(graph, node, far),
                }
            )
    return {"area": dotted(area), "nodes": nodes, "links": links}


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
        {
            "id": context.node(node),
            "hostname": context.hostnames.get(node),
            "area": dotted(area),
            "metric": found.metric,
            "first_hops": [context.node(hop) for hop in found.first_hops],
        }
        for area in router.solver.areas
        for node, found in router.solver.spf_view(area).items()
    ]
    return document
