"""A server as the root of a tree, as draft-song-ina-00 §2.1 permits: ``fared-ina`` in a host.

It has a vertex of its own, beside those of the routers, and sends results by unicast: BIER packets
of a host would need a raw socket on its link.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address

from msgspec.structs import replace

from fared.extensions.ina.plan.model import Capacities, GivenTree, Vertex
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.expected import VETH_RATE
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds.fared import summing
from fared.extensions.lab.processes import end, start_in_turn
from fared.extensions.lab.ranks import Rank, rank_of

_FIRST = 1 << 16
"""Routers have lower numbers."""
_READY = 30.0


def vertex_of(plan: AddressPlan, host: str) -> Vertex:
    """Return the vertex of a host. Raises LabError."""
    place = rank_of(plan, host)
    return _FIRST + [one.name for one in plan.hosts].index(place.host)


def server_of(plan: AddressPlan, vertex: Vertex) -> Rank | None:
    """Return the host of a vertex; None: it is a router."""
    return rank_of(plan, plan.hosts[vertex - _FIRST].name) if vertex >= _FIRST else None


def names_of(plan: AddressPlan) -> dict[Vertex, str]:
    """Return the names of routers, and of hosts as servers."""
    names = {router.number: router.name for router in plan.routers}
    return names | {_FIRST + at: host.name for at, host in enumerate(plan.hosts)}


def with_server(plan: AddressPlan, network: Capacities, tree: GivenTree | None) -> Capacities:
    """Return a network with the server that is the root of a tree, if one is."""
    server = None if tree is None else server_of(plan, tree.root)
    if tree is None or server is None:
        return network
    leaf = plan.node(server.leaf).number
    links = {(leaf, tree.root): VETH_RATE, (tree.root, leaf): VETH_RATE}
    return replace(network, links={**network.links, **links}, adders=network.adders | {tree.root})


def address_of(plan: AddressPlan, vertex: Vertex) -> IPv4Address:
    """Return the address at which a vertex sums: the router id, or that of a host."""
    server = server_of(plan, vertex)
    if server is not None:
        return server.nic.address.ip
    return next(router.router_id for router in plan.routers if router.number == vertex)


@contextmanager
def serving(fabric: Fabric, tree: GivenTree | None) -> Iterator[None]:
    """Run ``fared-ina`` in the host that is the root of a tree, if one is. Raises LabError."""
    server = None if tree is None else server_of(fabric.plan, tree.root)
    if server is None:
        yield
        return
    node = fabric.node(server.host)
    node.directory.mkdir(parents=True, exist_ok=True)
    before = list(node.processes)
    try:
        command = summing(server.nic.address.ip, node.directory, bier=False)
        start_in_turn([(node, command)], time.monotonic() + _READY)
        yield
    finally:
        started = [process for process in node.processes if process not in before]
        end(started)
        node.processes[:] = before
