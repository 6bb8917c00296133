"""The network for jobs of in-network aggregation, and the router of a host.

A summary hides which router has a host: of a host in another area of OSPF or level of IS-IS, which
only border routers advertise, one of these has to tell that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address
from types import MappingProxyType
from typing import Final

from fared.core.ids import NodeId, Prefix, ipv4_prefix
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.exchange import AddressAt, FabricNow, GraphArrays
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import PathType

_INSIDE: Final = 2
_RANKS: Final = MappingProxyType(
    {PathType.INTRA_AREA: _INSIDE, PathType.LEVEL_1: _INSIDE, PathType.LEVEL_2: 1}
)
"""Who has a host: a router of the area or level 1, one of level 2 perhaps. Others lead there."""
_BITS: Final = 32
_HOST_ONLY: Final = 31
"""From this length on all addresses of a prefix are hosts (RFC 3021)."""


def network_of(
    solvers: Iterable[RouteSolver], bfrs: Iterable[NodeId] = (), backbone: int | None = None
) -> FabricNow:
    """Return the links and hostnames of all areas or levels, and the routers that run BIER.

    ``backbone`` is the number of that area or level; None: jobs cross no border.
    """
    graphs: list[GraphArrays] = []
    hostnames: dict[NodeId, str] = {}
    for solver in solvers:
        for area in solver.areas:
            ted = solver.ted(area)
            graph = ted.graph()
            nodes, indptr, dst, capacity = (
                array.tobytes() for array in (graph.nodes, graph.indptr, graph.dst, graph.capacity)
            )
            graphs.append(GraphArrays(nodes, indptr, dst, capacity, area, area == backbone))
            named = ((node, block.hostname) for node, block in ted.blocks.items())
            hostnames |= {node: name for node, name in named if name}
    return FabricNow(graphs, hostnames, sorted(bfrs))


def leaf_of(solvers: Iterable[RouteSolver], text: str) -> NodeId | None:
    """Return the router that advertises the longest prefix of a host; None: border routers do.

    Raises ManagerError if nobody does.
    """
    try:
        address = int(IPv4Address(text))
    except AddressValueError as error:
        raise ManagerError(f"{text} is not an IPv4 address") from error
    solvers = list(solvers)
    for prefix in _prefixes_of(address):
        found = max(_advertisers(solvers, prefix), default=None)
        if found is not None:
            rank, node = found
            return node if rank else None
    raise ManagerError(f"no router of this area or level advertises a prefix of {text}")


def inside(solvers: Iterable[RouteSolver], text: str) -> NodeId | None:
    """Return the router of a host in an area, or level 1, of ours; None: nobody there has it."""
    address, solvers = int(IPv4Address(text)), list(solvers)
    for prefix in _prefixes_of(address):
        found = max(_advertisers(solvers, prefix), default=None)
        if found is not None:
            rank, node = found
            return node if rank == _INSIDE else None
    return None


def is_behind(solvers: Iterable[RouteSolver], wanted: AddressAt) -> bool:
    """Whether a router advertises an address itself, or the subnet of a host that has it.

    If it may be in another area, the router may have a summary of that.
    """
    text, router, anywhere = wanted
    address, solvers = int(IPv4Address(text)), list(solvers)
    return any(
        (rank or anywhere) and node == router and not _names_subnet(prefix, address)
        for prefix in _prefixes_of(address)
        for rank, node in _advertisers(solvers, prefix)
    )


def _names_subnet(prefix: Prefix, address: int) -> bool:
    """Whether an address is that of a subnet, or its broadcast address: no host has it."""
    hosts = (1 << (_BITS - prefix.length)) - 1
    return prefix.length < _HOST_ONLY and address & hosts in (0, hosts)


def _prefixes_of(address: int) -> Iterator[Prefix]:
    """Yield all prefixes of an address but the default, the longest first."""
    for length in range(_BITS, 0, -1):
        shift = _BITS - length
        yield ipv4_prefix(address >> shift << shift, length)


def _advertisers(solvers: Iterable[RouteSolver], prefix: Prefix) -> Iterator[tuple[int, NodeId]]:
    """Yield rank and router of all advertisements of a prefix."""
    for solver in solvers:
        for (_, node), path_type in solver.advertisers_of(prefix):
            yield _RANKS.get(path_type, 0), node
