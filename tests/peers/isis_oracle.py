"""What every router of an IS-IS fabric should compute, by RFC 5302's rules over networkx.

An oracle on purpose unlike the daemon's way: distances come from a library, and next hops from
comparing distances. It knows point-to-point links, both families, both levels, and that a fared
router of both levels carries prefixes from one to the other while FRR 8.4 does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import networkx as nx

from fared.lab.addressing import NodePlan, Plan, Port
from fared.lab.fabric import Fabric
from fared.lab.kernel_view import KernelView
from fared.lab.waiting import wait_until
from tests.peers.isis_peers import LEVELS, link_levels, runs
from tests.peers.oracle import Link
from tests.peers.peers import gateways, until, vtysh_json

_FRR_LOOPBACK = 10
"""FRR announces a passive loopback at the metric every interface has, fared at none."""

Gateways = frozenset[tuple[str, str]]
LinkLocals = Mapping[tuple[str, str], str]
"""The IPv6 link-local address of each port, by node and port."""


class Route(NamedTuple):
    """A route as every make should have it; no gateways where the prefix is the router's own."""

    metric: int
    gateways: Gateways


Tables = dict[str, dict[str, Route]]


def link_locals(fabric: Fabric) -> LinkLocals:
    """Ask all kernels for the link-local addresses of all ports."""
    found = {}
    for router in fabric.plan.routers:
        text = fabric.node(router.name).netns.ip("-6", "-o", "addr", "show", "scope", "link")
        for line in text.splitlines():
            words = line.split()
            found[router.name, words[1]] = words[3].partition("/")[0]
    return found


def routes(plan: Plan, links: LinkLocals, down: Collection[Link] = ()) -> Tables:
    """Every router's routes of both families, its own prefixes included, while links are down."""
    return _Oracle(plan, links, down).tables()


class _Oracle:
    def __init__(self, plan: Plan, links: LinkLocals, down: Collection[Link]) -> None:
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

    def _ports(self, name: str, level: int) -> Iterator[Port]:
        return (port for port in self.live[name] if level in link_levels(self.plan, port))

    def tables(self) -> Tables:
        result: Tables = {name: {} for name in self.live}
        for prefix, costs in self._announced().items():
            for name, route in self._spread(prefix, costs).items():
                result[name][prefix] = route
        return result

    def _announced(self) -> dict[str, dict[int, dict[str, int]]]:
        """Who announces which prefix of its own in which level at which metric."""
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
        """Each router's best route to one prefix: level 1, level 2, what came down (RFC 5302 §3.2)."""
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
        """The route of every router of a level to something some of them announce."""
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

    def _gateway(self, port: Port, *, six: bool) -> str:
        return self.links[port.peer, port.peer_port] if six else str(port.peer_address)


def await_kernels(fabric: Fabric, wanted: Tables, seconds: float) -> float:
    """Wait until every kernel has exactly the next hops wanted to all prefixes of the fabric.

    Prefixes a router has of its own are left to its kernel, and those it should not reach must
    not be there. Returns when the last kernel had them, by ``time.monotonic()``.
    """
    routers = fabric.plan.routers
    networks = {str(port.address.network) for router in routers for port in router.ports}
    everywhere = networks.union(*wanted.values())  # networks of links that are down too
    expected = {
        router.name: {
            prefix: route.gateways if (route := wanted[router.name].get(prefix)) else frozenset()
            for prefix in everywhere - _own(router)
        }
        for router in routers
    }

    def differing(name: str, view: KernelView) -> dict[str, tuple[object, object]]:
        held = {**view.routes(), **view.routes6()}
        return {
            prefix: (hops, should)
            for prefix, should in expected[name].items()
            if (hops := gateways(held.get(prefix, ()))) != should
        }

    views = fabric.views(routers)
    done = wait_until(views, lambda name, view: not differing(name, view), seconds)
    assert done is not None, {
        name: found for name, view in views.items() if (found := differing(name, view))
    }
    return done


def await_metrics(fabric: Fabric, wanted: Tables, seconds: float = 10.0) -> None:
    """Wait until FRR's routers have the metrics wanted, in both families."""
    for router in fabric.plan.routers:
        if router.node.kind != "frr":
            continue
        table = {
            prefix: route.metric
            for prefix, route in wanted[router.name].items()
            if prefix not in _own(router)
        }

        def metrics(name: str = router.name) -> dict[str, int]:
            node = fabric.node(name)
            shown = {
                **vtysh_json(node, "show ip route isis"),
                **vtysh_json(node, "show ipv6 route isis"),
            }
            own = _own(fabric.plan.node(name))
            return {p: rows[0]["metric"] for p, rows in shown.items() if p not in own}

        def agrees(metrics=metrics, table=table) -> bool:
            found = metrics()
            return {p: found.get(p) for p in table} == table

        def what(metrics=metrics, table=table, name=router.name) -> str:
            found = metrics()
            return (
                f"{name}: {[(p, found.get(p), m) for p, m in table.items() if found.get(p) != m]}"
            )

        until(agrees, seconds, what, pause=0.2)


def _own(router: NodePlan) -> set[str]:
    networks = {str(port.address.network) for port in router.ports}
    networks |= {str(port.address6.network) for port in router.ports if port.address6}
    addresses = {f"{port.address.ip}/32" for port in router.ports}
    return networks | addresses | {f"{router.router_id}/32", f"{router.loopback6}/128"}
