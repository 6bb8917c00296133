"""Invariants of a quiet fabric over IS-IS, in both families.

As in ``invariants``, the checks read databases and simulated kernels, never the state of a router,
and compare with networkx on the present wires.
"""

from __future__ import annotations

import networkx as nx

from fared.core.ids import format_system_id
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.invariants import proportional_weights, shortest_path_forwarding
from fared.extensions.sim.network import Node
from fared.protocols.isis.ids import Level, format_lsp_id, system_of
from fared.router.protocols import ISIS

Lsps = set[tuple[int, int, int]]


def level_wires(fabric: Fabric, level: Level) -> nx.Graph[str]:
    """Return the links that are up and run a level at both ends; it may be partitioned."""
    graph: nx.Graph[str] = nx.Graph()
    for node in fabric.network.nodes.values():
        for port in node.ports.values():
            if port.peer is None or not port.up:
                continue
            here, there = (end.settings.get(ISIS) for end in (port, port.peer))
            if here is not None and there is not None and here.levels & there.levels & level:
                graph.add_edge(node.name, port.peer.node)
    return graph


def same_databases(fabric: Fabric) -> list[str]:
    """Check that all routers of one partition of a level hold the same LSPs of its routers."""
    problems = []
    for level in Level:
        for component in nx.connected_components(level_wires(fabric, level)):
            names = sorted(component)
            systems = {fabric.router_ids[name] for name in names}
            tables = {name: lsps(fabric.network.nodes[name], level, systems) for name in names}
            for name in names[1:]:
                problems += [
                    f"{level.label}: {names[0]} and {name} differ in {format_lsp_id(entry[0])}"
                    for entry in sorted(tables[names[0]] ^ tables[name])[:3]
                ]
            missing = systems - {system_of(entry[0]) for entry in tables[names[0]]}
            problems += [
                f"{level.label}: no LSP of {format_system_id(system)}" for system in missing
            ]
    return problems


def lsps(node: Node, level: Level, systems: set[int]) -> Lsps:
    """Return id, sequence number and checksum of these systems' LSPs; others may be outdated."""
    database = node.running.instances[ISIS].engine.instance.databases.get(level)
    return {
        (entry.lsp_id, entry.sequence_number, entry.checksum)
        for entry in (() if database is None else database.ordered())
        if system_of(entry.lsp_id) in systems and not entry.purged
    }


def violations(fabric: Fabric) -> list[str]:
    """Check databases, next hops and weights of a fabric of one level, IPv4 and IPv6."""
    return [
        *same_databases(fabric),
        *shortest_path_forwarding(fabric),
        *shortest_path_forwarding(fabric, fabric.leaf_prefixes6),
        *proportional_weights(fabric),
        *proportional_weights(fabric, prefixes=fabric.leaf_prefixes6),
    ]
