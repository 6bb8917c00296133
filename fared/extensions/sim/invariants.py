"""Invariants of any quiet fabric. Each check returns the violations as text.

The checks read the simulated kernels and the databases, never the state of a router, and compare
with networkx on the present wires: an oracle that shares no code with the daemon.
"""

from __future__ import annotations

from fractions import Fraction

import networkx as nx

from fared.core.ids import Prefix, dotted
from fared.extensions.sim.fabric import Fabric
from fared.extensions.sim.network import Node
from fared.protocols.ospf.packet.lsa import LsaHeader
from fared.router.protocols import OSPF

Shares = dict[str, Fraction]


def wires(fabric: Fabric) -> nx.DiGraph[str]:
    """Return the graph of links that are up, with costs, and capacities by direction."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(fabric.network.nodes)
    for node in fabric.network.nodes.values():
        for port in node.ports.values():
            cost = fabric.network.cost(port)
            if not port.up or cost is None:
                continue
            capacity = port.capacity or 0.0
            for far in port.far:
                if not far.up:
                    continue
                if graph.has_edge(node.name, far.node):
                    graph[node.name][far.node]["capacity"] += capacity
                else:
                    graph.add_edge(node.name, far.node, cost=cost, capacity=capacity)
    return graph


def same_databases(fabric: Fabric) -> list[str]:
    """Check that connected routers hold the same LSAs: keys, sequence numbers and checksums."""
    problems = []
    for component in nx.connected_components(wires(fabric).to_undirected()):
        names = sorted(component)
        tables = {name: _database(fabric.network.nodes[name]) for name in names}
        reference = tables[names[0]]
        for name in names[1:]:
            different = reference.symmetric_difference(tables[name])
            own = [entry for entry in different if _concerns(entry, fabric, component)]
            problems += [f"{names[0]} and {name} differ in {entry}" for entry in sorted(own)[:3]]
    return problems


def _database(node: Node) -> set[tuple[str, int, int]]:
    headers = [
        (lsdb.scope.value if lsdb.area is None else dotted(lsdb.area), entry.lsa.header)
        for lsdb in node.running.instances[OSPF].engine.instance.databases()
        for entry in lsdb
    ]
    return {
        (
            _describe(area, header),
            header.ls_sequence_number,
            header.ls_checksum,
        )
        for area, header in headers
    }


def _describe(area: str, header: LsaHeader) -> str:
    identity = f"{dotted(header.link_state_id)} {dotted(header.advertising_router)}"
    return f"{area} type {header.ls_type} {identity}"


def _concerns(entry: tuple[str, int, int], fabric: Fabric, component: set[str]) -> bool:
    """Whether an LSA is from a connected router: those of others may remain until they age out."""
    return any(entry[0].endswith(f" {dotted(fabric.router_ids[name])}") for name in component)


def forwarding(fabric: Fabric, prefix: Prefix) -> dict[str, Shares]:
    """Return each kernel's next hops toward a prefix: neighbor name to share of the traffic."""
    table: dict[str, Shares] = {}
    for node in fabric.network.nodes.values():
        target = node.kernel.state.routes.get(prefix)
        if target is None:
            continue
        members = node.kernel.state.groups.get(target)
        weights = [(target, 1)] if members is None else [tuple(member) for member in members]
        total = sum(weight for _, weight in weights)
        shares: Shares = {}
        for nexthop_id, weight in weights:
            ifindex, _, gateway, _ = node.kernel.state.nexthops[nexthop_id]
            if not ifindex:
                shares["discard"] = Fraction(1)
                continue
            port = node.ports[ifindex]
            ends = {a: end.node for end in port.far for a in (end.address, end.link_local)}
            name = ends.get(gateway, "?") if port.up else "?"
            shares[name] = shares.get(name, Fraction(0)) + Fraction(weight, total)
        table[node.name] = shares
    return table


def shortest_path_forwarding(
    fabric: Fabric, prefixes: dict[str, Prefix] | None = None
) -> list[str]:
    """Check next hops against Dijkstra of networkx: no black hole, no loop, all equal-cost paths.

    ``prefixes`` by leaf; default: the IPv4 ones.
    """
    graph = wires(fabric)
    problems = []
    for leaf, prefix in (prefixes or fabric.leaf_prefixes).items():
        distance = nx.single_source_dijkstra_path_length(graph.reverse(), leaf, weight="cost")
        table = forwarding(fabric, prefix)
        for name in fabric.network.nodes:
            if name == leaf:
                continue
            expected = {
                neighbor
                for neighbor, edge in graph[name].items()
                if neighbor in distance
                and name in distance
                and edge["cost"] + distance[neighbor] == distance[name]
            }
            found = set(table.get(name, {}))
            if not found <= expected or (expected and not found):
                problems.append(f"{name} -> {prefix}: {sorted(found)} not {sorted(expected)}")
            elif expected - found and not _starved(graph, name, expected - found):
                problems.append(f"{name} -> {prefix}: {sorted(expected - found)} unused")
    return problems


def _starved(graph: nx.DiGraph[str], name: str, missing: set[str]) -> bool:
    """Whether the unused next hops have too little capacity for a share of 1/256."""
    best = max(edge["capacity"] for edge in graph[name].values())
    return all(graph[name][neighbor]["capacity"] * 256 < best for neighbor in missing)


def proportional_weights(
    fabric: Fabric, *, tolerance: float = 0.01, prefixes: dict[str, Prefix] | None = None
) -> list[str]:
    """Check a leaf's shares in a three-stage fabric: min(uplink, downlink) over their sum."""
    graph = wires(fabric)
    problems = []
    for leaf, prefix in (prefixes or fabric.leaf_prefixes).items():
        for name, shares in forwarding(fabric, prefix).items():
            two_hops = all(n in graph[name] and graph.has_edge(n, leaf) for n in shares)
            if name not in fabric.leaf_prefixes or not two_hops:
                continue
            carried = {
                spine: min(
                    graph[name][spine]["capacity"],
                    graph[spine][leaf]["capacity"],
                )
                for spine in shares
            }
            total = sum(carried.values())
            for spine, share in shares.items():
                if total and abs(float(share) - carried[spine] / total) > tolerance:
                    problems.append(
                        f"{name} -> {prefix} via {spine}: share {float(share):.4f}, "
                        f"should be {carried[spine] / total:.4f}"
                    )
    return problems
