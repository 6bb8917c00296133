"""The routes that each router of an IS-IS fabric should have, by RFC 5302, with networkx.

The oracle differs from fared by design: a library computes the distances, and next hops follow from
distances. It supports point-to-point links, both families and both levels; level-1-2 routers
advertise prefixes between levels if they are fared, not if they are FRR 8.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import networkx as nx

from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.port import PortAddresses
from tests.peers.isis_peers import LEVELS, link_levels, runs
from tests.peers.oracle import Link
from tests.peers.peers import vtysh_json
from tests.peers.routes import own_prefixes
from tests.waiting import wait_for

_FRR_LOOPBACK = 10
"""FRR announces a passive loopback at the metric every interface has, fared at none."""

Gateways = frozenset[tuple[str, str]]
LinkLocals = Mapping[tuple[str, str], str]
"""The IPv6 link-local address of each port, by node and port."""


class Route(NamedTuple):
    """The expected route of any implementation; the router's own prefixes have no gateways."""

    metric: int
    gateways: Gateways


Tables = dict[str, dict[str, Route]]


def link_locals(fabric: Fabric) -> LinkLocals:
    """Read the link-local addresses of all ports from the kernels."""
    found = {}
    for router in fabric.plan.routers:
        text = fabric.node(router.name).netns.ip("-6", "-o", "addr", "show", "scope", "link")
        for line in text.splitlines():
            words = line.split()
            found[router.name, words[1]] = words[3].partition("/")[0]
    return found


def routes(plan: AddressPlan, links: LinkLocals, down: Collection[Link] = ()) -> Tables:
    """Every router's routes of both families, its own prefixes included, while links are down."""
    return _Oracle(plan, links, down).tables()


class _Oracle:
    def __init__(self, plan: AddressPlan, links: LinkLocals, down: Collection[Link]) -> None:
        self.plan, self.links = plan, links
        self.live = {
            router.name: [
                port
                for port in router.fabric_ports
                if frozenset((port.node, port.peer)) not in down
            ]
            for router in plan.routers
        }
        self.graphs = {level: self._graph(level) for level in LEVELS}

    def _graph(self, level: int) -> nx.DiGraph[str]:
        graph: nx.DiGraph[str] = nx.DiGraph()
        for router in self.plan.routers:
            if runs(router.node.isis_level, level):
                graph.add_node(router.name)
            for port in self._ports(router.name, level):
                graph.add_edge(router.name, port.peer, weight=port.cost)
        return graph

    def _ports(self, name: str, level: int) -> Iterator[PortAddresses]:
        return (port for port in self.live[name] if level in link_levels(self.plan, port))

    def tables(self) -> Tables:
        result: Tables = {name: {} for name in self.live}
        for prefix, costs in self._announced().items():
            for name, route in self._spread(prefix, costs).items():
                result[name][prefix] = route
        return result

    def _announced(self) -> dict[str, dict[int, dict[str, int]]]:
        """The prefixes that each router advertises, by level, with metrics."""
        found: dict[str, dict[int, dict[str, int]]] = {}
        for router in self.plan.routers:
            loopback = _FRR_LOOPBACK if router.node.kind == "frr" else 0
            levels = router.node.isis_level
            own = {f"{router.router_id}/32": (loopback, levels)}
            own[f"{router.loopback6}/128"] = (loopback, levels)
            for port in (*self.live[router.name], *(p for p in router.ports if p.to_host)):
                own[str(port.address.network)] = (port.cost, port.level)
                if port.address6 is not None:
                    own[str(port.address6.network)] = (port.cost, port.level)
            for prefix, (cost, wanted) in own.items():
                for level in LEVELS:
                    if runs(wanted, level) and runs(levels, level):
                        by_level = found.setdefault(prefix, {1: {}, 2: {}})
                        by_level[level][router.name] = cost
        return found

    def _spread(self, prefix: str, costs: Mapping[int, Mapping[str, int]]) -> dict[str, Route]:
        """Each router's best route to one prefix: level 1, level 2, leaked (RFC 5302 §3.2)."""
        six = ":" in prefix
        borders = {
            router.name
            for router in self.plan.routers
            if router.node.kind == "fared" and router.name in {*self.graphs[1]} & {*self.graphs[2]}
        }
        first = self._toward(1, costs[1], six=six)
        carried = {
            name: route.metric
            for name, route in first.items()
            if name in borders and name not in costs[2]
        }
        second = self._toward(2, {**carried, **costs[2]}, six=six)
        fallen = {n: r.metric for n, r in second.items() if n in borders and n not in first}
        third = self._toward(1, fallen, six=six)
        own = {n: Route(cost, frozenset()) for level in LEVELS for n, cost in costs[level].items()}
        return {**third, **second, **first, **own}

    def _toward(self, level: int, costs: Mapping[str, int], *, six: bool) -> dict[str, Route]:
        """The route of every router of a level to a prefix that some of them advertise."""
        goal = ""  # no router's name
        aimed = self.graphs[level].copy()
        aimed.add_weighted_edges_from((name, goal, cost) for name, cost in costs.items())
        aimed.add_node(goal)
        far = nx.single_source_dijkstra_path_length(aimed.reverse(copy=False), goal)
        found = {}
        for name, metric in far.items():
            hops = frozenset(
                (port.name, self._gateway(port, six=six))
                for port in (self._ports(name, level) if name else ())
                if port.cost + far.get(port.peer, metric) == metric
            )
            if hops or name in costs:
                found[name] = Route(int(metric), hops)
        return found

    def _gateway(self, port: PortAddresses, *, six: bool) -> str:
        return self.links[port.peer, port.peer_port] if six else str(port.peer_address)


def await_metrics(fabric: Fabric, wanted: Tables, seconds: float = 10.0) -> None:
    """Wait until FRR's routers have the metrics wanted, in both families."""
    for router in fabric.plan.routers:
        if router.node.kind != "frr":
            continue
        table = {
            prefix: route.metric
            for prefix, route in wanted[router.name].items()
            if prefix not in own_prefixes(router)
        }

        def metrics(name: str = router.name) -> dict[str, int]:
            node = fabric.node(name)
            shown = {
                **vtysh_json(node, "show ip route isis"),
                **vtysh_json(node, "show ipv6 route isis"),
            }
            own = own_prefixes(fabric.plan.node(name))
            return {p: rows[0]["metric"] for p, rows in shown.items() if p not in own}

        def agrees(metrics=metrics, table=table) -> bool:
            found = metrics()
            return {p: found.get(p) for p in table} == table

        def what(metrics=metrics, table=table, name=router.name) -> str:
            found = metrics()
            return (
                f"{name}: {[(p, found.get(p), m) for p, m in table.items() if found.get(p) != m]}"
            )

        wait_for(agrees, seconds, what, pause=0.2)
