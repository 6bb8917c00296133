"""The TED for other tools: a networkx graph, GraphML, and JSON for browsers and scripts.

networkx is loaded inside the functions: only the offline tool pays for it.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from fared.core.ids import format_node

if TYPE_CHECKING:
    import networkx as nx

    from fared.core.ids import NodeId
    from fared.ted.database import Ted
    from fared.ted.model import NodeBlock

FORMAT = "fared-topology/1"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def to_networkx(ted: Ted, *, parallel: bool = True) -> nx.MultiDiGraph[NodeId] | nx.DiGraph[NodeId]:
    """Export as a directed graph; node keys are ids.

    ``parallel`` True: a MultiDiGraph of all links as flooded, one-way ones included. False: a
    DiGraph of the merged, two-way checked edges that routes are computed on. Attributes:
    ``name``, ``hostname``, ``transit``, ``network`` of nodes; ``metric``, ``capacity``,
    ``available`` (bytes/s, left out where unknown or unlimited), with ``parallel`` also
    ``local_id`` and ``remote_id`` of links.
    """
    import networkx  # noqa: ICN001, PLC0415

    found: Any = networkx.MultiDiGraph() if parallel else networkx.DiGraph()
    for node, block in ted.blocks.items():
        found.add_node(
            node,
            name=format_node(node),
            hostname=block.hostname or "",
            transit=block.transit,
            network=block.network,
        )
    if parallel:
        for node, block in ted.blocks.items():
            for link in _links(block):
                neighbor = link.pop("neighbor")
                found.add_edge(node, neighbor, **{k: v for k, v in link.items() if v is not None})
        return found  # type: ignore[no-any-return]
    graph = ted.graph()
    for tail, head, metric, capacity, available in zip(
        graph.nodes[graph.src].tolist(),
        graph.nodes[graph.dst].tolist(),
        graph.metric.tolist(),
        graph.capacity.tolist(),
        graph.available.tolist(),
        strict=True,
    ):
        values = {"capacity": _finite(capacity), "available": _finite(available)}
        known = {name: value for name, value in values.items() if value is not None}
        found.add_edge(tail, head, metric=metric, **known)
    return found  # type: ignore[no-any-return]


def _links(block: NodeBlock) -> list[dict[str, Any]]:
    return [
        {
            "neighbor": neighbor,
            "metric": metric,
            "capacity": _finite(capacity),
            "available": _finite(available),
            "local_id": local_id,
            "remote_id": remote_id,
        }
        for neighbor, metric, capacity, available, local_id, remote_id in zip(
            block.neighbors.tolist(),
            block.metrics.tolist(),
            block.capacities.tolist(),
            block.availables.tolist(),
            block.local_ids.tolist(),
            block.remote_ids.tolist(),
            strict=True,
        )
    ]


def to_graphml(ted: Ted) -> str:
    """Export all links as GraphML text, node ids written dotted."""
    import networkx  # noqa: ICN001, PLC0415

    graph = networkx.relabel_nodes(to_networkx(ted), format_node)
    buffer = io.BytesIO()
    networkx.write_graphml(graph, buffer)
    return buffer.getvalue().decode()


def to_json(ted: Ted) -> dict[str, Any]:
    """Export as plain values (format ``fared-topology/1``).

    ``nodes`` with their prefixes, ``links`` as flooded, each with ``two_way``: whether the
    other end lists this one back. Capacities are bytes/s, None where unknown.
    """
    graph = ted.graph()
    nodes, links = [], []
    for node, block in ted.blocks.items():
        tail = graph.index(node)
        assert tail is not None
        nodes.append(
            {
                "id": format_node(node),
                "hostname": block.hostname,
                "transit": block.transit,
                "network": block.network,
                "prefixes": [
                    {
                        "prefix": str(item.prefix),
                        "metric": item.metric,
                        "type": item.path_type.label,
                        "capacity": item.capacity,
                    }
                    for item in block.prefixes
                ],
            }
        )
        for link in _links(block):
            head = graph.index(link["neighbor"])
            two_way = head is not None and graph.edge(tail, head) is not None
            target = format_node(link.pop("neighbor"))
            links.append(
                {"source": format_node(node), "target": target, **link, "two_way": two_way}
            )
    return {"format": FORMAT, "nodes": nodes, "links": links}
