"""Expected results, computed from the topology and the links' rates alone.

This is an oracle for the demo and the tests, by another algorithm than the daemon's: networkx's
maximum flow over the shortest-path DAG, next hop by next hop.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

import networkx as nx

from fared.core.units import BytesPerSecond
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.labels import BGP
from fared.extensions.lab.port import PortAddresses

VETH_RATE: BytesPerSecond = 10e9 / 8
"""The speed that an unshaped veth reports: 10 Gbit/s."""
_HALVINGS = 60


Rate = Callable[[PortAddresses], BytesPerSecond | None]
"""Returns the rate of a port, bytes/s: None is unlimited, 0 a failed link."""


def known_rates(plan: AddressPlan, rate: Rate) -> Rate:
    """Return the rates that fared knows, where other daemons run too.

    fared measures its own ports; FRR advertises what it was configured with, whatever a shaper does
    later, and by BGP nothing; BIRD advertises nothing. Where one end tells nothing, the capacity of
    the other counts in both directions.
    """

    def silent(name: str) -> bool:
        node = plan.nodes[name].node
        return node.kind == "bird" or (node.kind == "frr" and node.protocol == BGP)

    def known(port: PortAddresses) -> BytesPerSecond | None:
        if silent(port.node) and not silent(port.peer):
            far = plan.ports_between(port.peer, port.node)
            return known(next(end for end in far if end.name == port.peer_port))
        return port.rate if plan.nodes[port.node].node.kind == "frr" else rate(port)

    return known


def path_capacities(
    plan: AddressPlan,
    rate: Rate,
    source: str,
    target: str,
) -> dict[str, BytesPerSecond]:
    """Return the capacity of each next hop of ``source`` toward ``target``: port name to bytes/s.

    Each next hop counts min(own link, maximum flow from there over shortest paths); parallel links
    share in proportion to their own rate. ``rate`` returns a port's egress rate.
    """
    far = plan.distances(target)
    if source not in far:
        return {}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name in far:
        for port in plan.onward(name, far):
            known = graph.get_edge_data(name, port.peer, {"capacity": 0.0})["capacity"]
            graph.add_edge(name, port.peer, capacity=known + (rate(port) or VETH_RATE))
    result = {}
    for port in plan.equal_cost_ports(source, target):
        bundle = graph.edges[source, port.peer]["capacity"]
        beyond = bundle
        if port.peer != target:
            beyond = nx.maximum_flow_value(graph, port.peer, target)
        result[port.name] = min(bundle, beyond) * (rate(port) or VETH_RATE) / bundle
    return result


def known_capacities(
    plan: AddressPlan, rate: Rate, source: str, target: str
) -> dict[str, BytesPerSecond]:
    """Return what the next hops of ``source`` carry to its knowledge: port name to bytes/s.

    In a link-state protocol that is ``path_capacities``, and by BGP between routers of fared, which
    name the limits that paths share. Otherwise a router is told a number by each neighbor, which
    has added up what its own neighbors told it: links beyond them that their paths share count
    several times.
    """
    far = plan.distances(target)
    on_paths = _on_paths(plan, source, far)
    if plan.nodes[source].system is None or all(
        plan.nodes[name].node.kind == "fared" for name in on_paths
    ):
        return path_capacities(plan, rate, source, target)

    def link(name: str, peer: str) -> BytesPerSecond:
        return sum(rate(port) or VETH_RATE for port in plan.ports_between(name, peer))

    @functools.cache
    def through(name: str, peer: str) -> BytesPerSecond:
        """What ``peer`` tells ``name``, at most the link between them.

        Of other makes, ``peer`` takes the minimum with its own direction of that link, too.
        """
        whole = math.inf if peer == target else sum(through(peer, far) for far in onward(peer))
        kinds = {plan.nodes[one].node.kind for one in (name, peer)}
        back = math.inf if kinds == {"fared"} else link(peer, name)
        return min(link(name, peer), back, whole)

    def onward(name: str) -> set[str]:
        return {port.peer for port in plan.onward(name, far)}

    return {
        port.name: through(source, port.peer) * (rate(port) or VETH_RATE) / link(source, port.peer)
        for port in plan.equal_cost_ports(source, target)
    }


def _on_paths(plan: AddressPlan, source: str, far: Mapping[str, int]) -> set[str]:
    """Return the routers of all shortest paths, by their distances to the target."""
    found, queue = {source}, [source]
    while queue:
        beyond = {port.peer for port in plan.onward(queue.pop(), far)} - found
        found |= beyond
        queue += beyond
    return found


def expected_shares(
    capacities: dict[str, BytesPerSecond], flows: int | None = None
) -> dict[str, float]:
    """Return each port's share of the flows; they add up to 1.

    With ``flows`` the shares are skewed away from small ports: each gets n of them so that
    n + 2 sqrt(n) is the same multiple of the capacity everywhere, found by bisection.
    """
    total = sum(capacities.values())
    if not total or flows is None:
        return {name: value / total for name, value in capacities.items()} if total else {}

    def counts(multiple: float) -> dict[str, float]:
        return {
            name: (math.sqrt(1 + multiple * value / total) - 1) ** 2
            for name, value in capacities.items()
        }

    low, high = 0.0, flows + 2 * math.sqrt(flows * len(capacities))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(counts(middle).values()) > flows else (middle, high)
    found = counts(high)
    return {name: count / sum(found.values()) for name, count in found.items()}
