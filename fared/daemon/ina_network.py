"""The network as jobs of in-network aggregation see it: links, and the router of a host.

A job stays within one area of OSPF or one level of IS-IS: it is flooded there only, and a summary
hides which router has a host. So a host that only a border router advertises is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address
from types import MappingProxyType
from typing import Final

from fared.core.ids import NodeId, format_node
from fared.ina.control.errors import ManagerError
from fared.ina.control.network import JobNetwork
from fared.rib.solver import RouteSolver
from fared.ted.model import PathType

_RANKS: Final = MappingProxyType({PathType.INTRA_AREA: 2, PathType.LEVEL_1: 2, PathType.LEVEL_2: 1})
"""Who has a host: a router of the area or level 1, one of level 2 perhaps. Others lead there."""


def job_network(solvers: Iterable[RouteSolver], root: NodeId) -> JobNetwork:
    """Return links that both ends describe; of two databases the larger capacity counts."""
    links: dict[tuple[int, int], float] = {}
    for solver in solvers:
        for area in solver.areas:
            for pair, rate in _links(solver, area).items():
                links[pair] = max(links.get(pair, 0.0), rate)
    return JobNetwork(links, _reachable(links, root))


def _links(solver: RouteSolver, area: int) -> dict[tuple[int, int], float]:
    """Return the capacity of the links of an area, bytes/s; unknown ones are unlimited."""
    found: dict[tuple[int, int], float] = {}
    for node, block in solver.ted(area).blocks.items():
        for far, rate in zip(block.neighbors.tolist(), block.capacities.tolist(), strict=True):
            found[node, far] = found.get((node, far), 0.0) + (
                math.inf if math.isnan(rate) else rate
            )
    return {pair: rate for pair, rate in found.items() if pair[::-1] in found}


def _reachable(links: Mapping[tuple[int, int], float], start: NodeId) -> frozenset[NodeId]:
    """Return the vertices that links connect with one."""
    neighbors: dict[int, list[int]] = {}
    for (near, far), rate in links.items():
        if rate > 0 and links[far, near] > 0:
            neighbors.setdefault(near, []).append(far)
    found, queue = {int(start)}, [int(start)]
    while queue:
        for far in neighbors.get(queue.pop(), ()):
            if far not in found:
                found.add(far)
                queue.append(far)
    return frozenset(map(NodeId, found))


def hostname(solvers: Iterable[RouteSolver], node: NodeId) -> str | None:
    """Return the hostname that a router advertises."""
    for solver in solvers:
        for area in solver.areas:
            block = solver.ted(area).blocks.get(node)
            if block is not None and block.hostname:
                return block.hostname
    return None


def leaf_of(solvers: Iterable[RouteSolver], text: str) -> NodeId:
    """Return the router that advertises the longest prefix of a host. Raises ManagerError."""
    try:
        address = int(IPv4Address(text))
    except AddressValueError as error:
        raise ManagerError(f"{text} is not an IPv4 address") from error
    found = max(_advertisers(solvers, address), default=None)
    if found is None:
        raise ManagerError(f"no router of this area or level advertises a prefix of {text}")
    _, rank, node = found
    if not rank:
        raise ManagerError(
            f"{text} is in another area or level, behind {format_node(node)}: a job stays in one"
        )
    return node


def _advertisers(solvers: Iterable[RouteSolver], address: int) -> Iterator[tuple[int, int, NodeId]]:
    """Yield length, rank and router of all prefixes of a host but defaults."""
    for solver in solvers:
        for area in solver.areas:
            for node in solver.ted(area).blocks:
                for reachable in solver.advertised_by(area, node):
                    prefix = reachable.prefix
                    if not prefix.length or prefix.family != 4:
                        continue
                    shift = 32 - prefix.length
                    if address >> shift == prefix.network >> shift:
                        yield prefix.length, _RANKS.get(reachable.path_type, 0), node
