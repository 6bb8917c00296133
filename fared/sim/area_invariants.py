"""What must hold in a fabric of several areas once it is quiet.

As in ``invariants``, the checks read databases and simulated kernels, never a router's mind.
"""

from __future__ import annotations

import networkx as nx

from fared.core.ids import AreaId, Prefix, dotted
from fared.sim.fabric import Fabric
from fared.sim.invariants import forwarding
from fared.sim.network import Node

Lsas = set[tuple[int, int, int, int, int]]


def area_wires(fabric: Fabric) -> dict[AreaId, nx.Graph[str]]:
    """The links that are up, by area; an area may be in several pieces."""
    graphs: dict[AreaId, nx.Graph[str]] = {}
    for node in fabric.network.nodes.values():
        for port in node.ports.values():
            if port.peer is not None and port.up and port.settings is not None:
                graph = graphs.setdefault(port.settings.area, nx.Graph())
                graph.add_edge(node.name, port.peer.node)
    return graphs


def same_area_databases(fabric: Fabric) -> list[str]:
    """All routers of one piece of an area hold the same LSAs of routers of that piece."""
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
    """Type, link state id, advertising router, sequence number, checksum of each LSA.

    Those of routers that were cut off may linger until they age out.
    """
    snapshot = node.running.engine.snapshot(0.0)
    return {
        (
            view.lsa.header.ls_type,
            view.lsa.header.link_state_id,
            view.lsa.header.advertising_router,
            view.lsa.header.ls_sequence_number,
            view.lsa.header.ls_checksum,
        )
        for database in snapshot.databases
        if database.area == area
        for view in database.lsas
        if view.lsa.header.advertising_router in advertisers
    }


def delivered(fabric: Fabric, *, without_route: tuple[str, ...] = ()) -> list[str]:
    """Every node has a route to every leaf's hosts, and every way it may take ends there.

    ``without_route``: nodes that need not have one, such as a super-spine that was cut off.
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
