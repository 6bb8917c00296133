"""Fabrics on the virtual clock whose routers have the settings that the daemon makes of a file.

The simulator gives routers the defaults of the engines' classes, a daemon those of the
configuration; a rule must hold for the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import yaml
from msgspec.structs import replace

from fared.config import Config, load_text
from fared.core.ids import Prefix, ipv4_prefix
from fared.core.links import InterfaceAddress
from fared.daemon.change.settings import LINK_SETTINGS, router_settings
from fared.extensions.lab.addressing import AddressPlan, NodePlan, make_plan
from fared.extensions.lab.kinds.fared import configuration
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.topology import from_document
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import GIGABIT, Fabric
from fared.extensions.sim.network import Network

DEFAULTS = """
ospf: {areas: {0: {interfaces: {"*": {}}}}}
isis: {net: 49.0000.0000.0000.0001.00, interfaces: {"*": {}}}
"""
THRESHOLD = 0.031
"""An advertised path capacity may be 3 % old."""
RATE = 0.1 * GIGABIT
"""Of links whose file says no rate: that of the lab's files."""
IDENTITY = {
    "ospf": ("router_id", "hostname", "areas"),
    "isis": ("system_id", "router_id", "hostname", "areas", "levels", "level2_to_level1"),
}
"""What each router of a fabric has of its own."""


def with_defaults(fabric: Fabric) -> Fabric:
    """Give the routers of a fabric the configuration's defaults for all but who they are."""
    made = router_settings(load_text(DEFAULTS), 1, "")
    for node in fabric.network.nodes.values():
        protocols = {
            name: replace(made.protocols[name], **{f: getattr(own, f) for f in IDENTITY[name]})
            for name, own in node.settings.protocols.items()
        }
        node.settings = replace(made, protocols=protocols, start_deadline=5.0)
    return fabric


def planned(path: Path) -> AddressPlan:
    """Return the plan of a lab's file, with all its routers as ours."""
    return make_plan(from_document(yaml.safe_load(path.read_text("utf-8")), path, "fared"))


def lab_fabric(plan: AddressPlan) -> Fabric:
    """Build a lab's fabric with the configuration that the lab writes for each router."""
    fabric = Fabric(Network(seed=5))
    ports = {}
    for router in plan.routers:
        config = load_text(yaml.safe_dump(configuration(router, Path("/run/fared.sock"))))
        made = router_settings(config, int(router.router_id), router.name)
        fabric.network.add_node(router.name, replace(made, bier=None))
        fabric.router_ids[router.name] = int(router.router_id)
        _add_loopback(fabric.network, router, config)
        for port in router.ports:
            ports[port.node, port.name] = _add_port(fabric.network, port, config)
        if router.host_prefixes:
            net = router.host_prefixes[0]
            fabric.leaf_prefixes[router.name] = ipv4_prefix(int(net.network_address), net.prefixlen)
    for router in plan.routers:
        for port in router.fabric_ports:
            if (port.node, port.name) < (port.peer, port.peer_port):
                fabric.network.connect(
                    ports[port.node, port.name], ports[port.peer, port.peer_port]
                )
                fabric.links.append((port.node, port.peer))
    return fabric


def _add_loopback(network: Network, router: NodePlan, config: Config) -> None:
    six = router.loopback6
    network.add_port(
        router.name,
        int(router.router_id),
        32,
        {},
        interface="lo",
        loopback=True,
        global6=None if six is None else InterfaceAddress(6, int(six), 128),
    )
    _configure(network, router.name, config)


def _add_port(network: Network, port: PortAddresses, config: Config):
    six = port.address6
    made = network.add_port(
        port.node,
        int(port.address.ip),
        port.address.network.prefixlen,
        {},
        interface=port.name,
        capacity=port.rate or RATE,
        global6=None if six is None else InterfaceAddress(6, int(six.ip), six.network.prefixlen),
    )
    made.delay = port.delay or None
    _configure(network, port.node, config)
    return made


def _configure(network: Network, name: str, config: Config) -> None:
    """Give the last port of a router the settings of its interface, by protocol."""
    port = list(network.nodes[name].ports.values())[-1]
    made = {proto: LINK_SETTINGS[proto](config, port.link(), 1.0) for proto in config.protocols}
    port.settings = {proto: settings for proto, settings in made.items() if settings is not None}


def capacities(fabric: Fabric, source: str, target: str) -> dict[str, float | None]:
    """Return the path capacity of each next hop of a router toward another, bytes/s."""
    node = fabric.network.nodes[source]
    hops = node.running.solver.routes[fabric.leaf_prefixes[target]].nexthops.hops
    return {node.ports[hop.ifindex].name: hop.capacity for hop in hops}


def bounds(fabric: Fabric, source: str, target: str) -> dict[str, float]:
    """Return what each first hop can carry toward a router, bytes/s, by maximum flow.

    Over shortest paths, at most what the own link carries.
    """
    graph = invariants.wires(fabric)
    far = nx.single_source_dijkstra_path_length(graph.reverse(), target, weight="cost")
    shortest: nx.DiGraph[str] = nx.DiGraph()
    for tail, head, link in graph.edges(data=True):
        if tail in far and head in far and far[tail] == far[head] + link["cost"]:
            shortest.add_edge(tail, head, capacity=link["capacity"])
    found = {}
    for hop in shortest.successors(source) if source in shortest else ():
        own = shortest[source][hop]["capacity"]
        beyond = own if hop == target else nx.maximum_flow_value(shortest, hop, target)
        found[hop] = min(own, beyond)
    return found


def wrong_shares(
    fabric: Fabric, tolerance: float, sources: Callable[[str], bool] = bool
) -> Iterator[str]:
    """Yield where a kernel's shares differ from the bounds by more than this part of a share."""
    for target, prefix in fabric.leaf_prefixes.items():
        yield from _wrong_toward(fabric, target, prefix, tolerance, sources)


def _wrong_toward(
    fabric: Fabric, target: str, prefix: Prefix, tolerance: float, sources: Callable[[str], bool]
) -> Iterator[str]:
    held = invariants.forwarding(fabric, prefix)
    for source in fabric.leaf_prefixes:
        if source == target or not sources(source):
            continue
        wanted = bounds(fabric, source, target)
        total, has = sum(wanted.values()), held.get(source, {})
        shares = {hop: float(has.get(hop, 0)) for hop in wanted}
        right = {hop: bound / total for hop, bound in wanted.items()}
        if any(abs(shares[hop] - right[hop]) > tolerance * right[hop] for hop in wanted):
            yield f"{source} to {target}: {shares}, not {right}"
