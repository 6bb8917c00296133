"""Invariants of a quiet fabric of several areas.

As in ``invariants``, the checks read databases and simulated kernels, never the state of a router.
"""

from __future__ import annotations

import networkx as nx

from fared.core.ids import AreaId, Prefix, dotted
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.invariants import forwarding
from fared.extensions.sim.network import Node
from fared.router.protocols import OSPF

Lsas = set[tuple[int, int, int, int, int]]


def area_wires(fabric: Fabric) -> dict[AreaId, nx.Graph[str]]:
    """Return the links that are up, by area; an area may be partitioned."""
    graphs: dict[AreaId, nx.Graph[str]] = {}
    for node in fabric.network.nodes.values():
        for port in node.ports.values():
            settings = port.settings.get(OSPF)
            if port.peer is not None and port.up and settings is not None:
                graph = graphs.setdefault(settings.area, nx.Graph())
                graph.add_edge(node.name, port.peer.node)
    return graphs


def same_area_databases(fabric: Fabric) -> list[str]:
    """Check that all routers of one partition of an area hold the same LSAs of its routers."""
    problems = []
    for area, graph in area_wires(fabric).items():
        for component in nx.connected_components(graph):
            names = sorted(component)
            ids = {fabric.router_ids[name] for name in names}
            tables = {name: _database(fabric.network.nodes[name], area, ids) for name in names}
            for name in names[1:]:
                different = tables[names[0]] ^ tables[name]
                problems += [
                    f"area {dotted(area)}: {names[0]} and {name} differ in {entry}"
                    for entry in sorted(different)[:3]
                ]
    return problems


def _database(node: Node, area: AreaId, advertisers: set[int]) -> Lsas:
    """Return type, link state id, advertising router, sequence number, checksum of each LSA.

    LSAs of disconnected routers may remain until they age out.
    """
    databases = node.running.instances[OSPF].engine.instance.databases()
    headers = [e.lsa.header for lsdb in databases if lsdb.area == area for e in lsdb]
    return {
        (
            header.ls_type,
            header.link_state_id,
            header.advertising_router,
            header.ls_sequence_number,
            header.ls_checksum,
        )
        for header in headers
        if header.advertising_router in advertisers
    }


def delivered(fabric: Fabric, *, without_route: tuple[str, ...] = ()) -> list[str]:
    """Check that every node has a route to every leaf's hosts, and that every path ends there.

    ``without_route``: nodes that need none, such as a disconnected super-spine.
    """
    problems = []
    for leaf, prefix in fabric.leaf_prefixes.items():
        table = forwarding(fabric, prefix)
        hops: nx.DiGraph[str] = nx.DiGraph()
        hops.add_nodes_from(fabric.network.nodes)
        default = forwarding(fabric, Prefix(4, 0, 0))
        for name in fabric.network.nodes:
            ways = table.get(name) or default.get(name) or {}
            if not ways and name not in (leaf, *without_route):
                problems.append(f"{name} has no route to {leaf}")
            if name != leaf:
                hops.add_edges_from((name, way) for way in ways)
        problems += [f"{leaf}: loop {cycle}" for cycle in nx.simple_cycles(hops)]
        reaching = nx.ancestors(hops, leaf) | {leaf}
        problems += [
            f"{name} -> {leaf}: {way} leads nowhere"
            for name, way in hops.edges
            if way not in reaching
        ]
    return problems
