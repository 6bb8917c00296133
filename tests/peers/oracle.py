"""The routes that each router of a fabric should have, by RFC 2328, with networkx.

The oracle differs from fared by design: a library computes the distances of an area, and next hops
follow from distances, not from the tree. It supports point-to-point links of equal or different
costs, areas, and ABRs that consider summaries of the backbone only (RFC 3509 §2.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Network
from typing import NamedTuple

import networkx as nx

from fared.core.ids import BACKBONE, AreaId
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.port import PortAddresses

Gateways = frozenset[tuple[str, str]]
"""The (interface, gateway) pairs of a route; none where the prefix is the router's own."""

Distances = Mapping[str, Mapping[str, int]]
"""From each router of an area to each it reaches there."""

Link = frozenset[str]
"""The names of the two routers of a link."""


class Route(NamedTuple):
    """The expected route of any implementation."""

    kind: str
    metric: int
    gateways: Gateways


class _Found(NamedTuple):
    route: Route
    area: AreaId


class _Prefix(NamedTuple):
    text: str
    area: AreaId
    costs: Mapping[str, int]  # of the routers that announce it


def routes(
    plan: AddressPlan, down: Collection[Link] = (), hosts: Collection[PortAddresses] = ()
) -> dict[str, dict[str, Route]]:
    """Return every router's routes, its own prefixes included, while some links are down.

    ``hosts`` are ports without carrier whose router still advertises their address, as a host
    route, as if the interface were in state Loopback (§12.4.1).
    """
    live = {
        router.name: [port for port in router.fabric_ports if _link(port) not in down]
        for router in plan.routers
    }
    areas = {port.area for ports in live.values() for port in ports} | {BACKBONE}
    far = {area: _distances(_graph(live, area)) for area in areas}
    result: dict[str, dict[str, Route]] = {name: {} for name in live}
    silent = [_Prefix(f"{port.address.ip}/32", port.area, {port.node: 0}) for port in hosts]
    for prefix in (*_prefixes(plan, live), *silent):
        for name, found in _spread(far, live, prefix).items():
            result[name][prefix.text] = found.route
    return result


def pieces(plan: AddressPlan) -> Iterator[tuple[AreaId, set[str]]]:
    """Yield the routers of each partition of each area."""
    live = {router.name: router.fabric_ports for router in plan.routers}
    for area in sorted({port.area for ports in live.values() for port in ports}):
        for members in nx.weakly_connected_components(_graph(live, area)):
            yield area, members


def _link(port: PortAddresses) -> Link:
    return frozenset((port.node, port.peer))


def _graph(live: Mapping[str, Collection[PortAddresses]], area: AreaId) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, ports in live.items():
        for port in ports:
            if port.area == area:
                known = graph.get_edge_data(name, port.peer, {"weight": port.cost})["weight"]
                graph.add_edge(name, port.peer, weight=min(known, port.cost))
    return graph


def _prefixes(
    plan: AddressPlan, live: Mapping[str, Collection[PortAddresses]]
) -> Iterator[_Prefix]:
    """Yield loopbacks, the subnets of hosts, and those of links that are up."""
    links: dict[tuple[IPv4Network, AreaId], dict[str, int]] = {}
    for router in plan.routers:
        yield _Prefix(f"{router.router_id}/32", router.home_area, {router.name: 0})
        for port in (*live[router.name], *_host_ports(router)):
            links.setdefault((port.address.network, port.area), {})[router.name] = port.cost
    for (network, area), costs in links.items():
        yield _Prefix(str(network), area, costs)


def _host_ports(router: NodePlan) -> Iterator[PortAddresses]:
    return (port for port in router.ports if port.to_host)


def _distances(graph: nx.DiGraph[str]) -> Distances:
    return dict(nx.all_pairs_dijkstra_path_length(graph))


def _spread(
    far: Mapping[AreaId, Distances], live: Mapping[str, Collection[PortAddresses]], prefix: _Prefix
) -> dict[str, _Found]:
    """Each router's best route to one prefix: intra-area, or else inter-area (§16.1, §16.2)."""

    def inside(area: AreaId) -> set[str]:
        return set(far[area])

    def reach(area: AreaId, costs: Mapping[str, int], kind: str) -> Iterator[tuple[str, _Found]]:
        for name, route in _toward(far[area], area, live, costs, kind):
            yield name, _Found(route, area)

    found = dict(reach(prefix.area, prefix.costs, "intra-area"))
    others = set(far) - {BACKBONE}
    borders = {name for area in others for name in inside(area) & inside(BACKBONE)}

    def summaries(area: AreaId) -> dict[str, int]:
        """The summaries that ABRs originate into an area: never of routes learned from it."""
        return {
            name: found[name].route.metric
            for name in borders & inside(area) & found.keys()
            if found[name].area != area
        }

    for name, inter in reach(BACKBONE, summaries(BACKBONE), "inter-area"):
        found.setdefault(name, inter)
    for area in sorted(others):
        for name, inter in reach(area, summaries(area), "inter-area"):
            if name not in borders:
                found.setdefault(name, inter)
    return found


def _toward(
    far: Distances,
    area: AreaId,
    live: Mapping[str, Collection[PortAddresses]],
    costs: Mapping[str, int],
    kind: str,
) -> Iterator[tuple[str, Route]]:
    """Yield the route of every router of an area to a prefix that some of them advertise."""
    metrics = {
        name: min(costs[owner] + there[owner] for owner in costs if owner in there)
        for name, there in far.items()
        if costs.keys() & there.keys()
    }
    for name, metric in metrics.items():
        own = costs.get(name) == metric
        hops = frozenset(
            (port.name, str(port.peer_address))
            for port in live[name]
            if port.area == area and port.cost + metrics.get(port.peer, metric) == metric
        )
        yield name, Route(kind, metric, frozenset() if own else hops)
