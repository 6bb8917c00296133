"""The network as jobs see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from fared.core.ids import NodeId
from fared.extensions.ina.control.exchange import GraphArrays
from fared.extensions.ina.plan.model import Direction


class JobNetwork(msgspec.Struct, frozen=True):
    """The network: capacities of links (bytes/s), and the routers that are reachable.

    ``bfrs`` are those that run BIER.
    """

    links: Mapping[Direction, float]
    reachable: frozenset[NodeId]
    bfrs: frozenset[int] = frozenset()


def job_network(
    graphs: Iterable[GraphArrays], root: NodeId, bfrs: Iterable[int] = ()
) -> JobNetwork:
    """Return links that both ends describe; of two databases the larger capacity counts.

    The capacity of unknown ones is unlimited.
    """
    links: dict[Direction, float] = {}
    for graph in graphs:
        nodes = np.frombuffer(graph.nodes, np.int64)
        indptr = np.frombuffer(graph.indptr, np.int64)
        heads = nodes[np.frombuffer(graph.dst, np.int64)].tolist()
        rates = np.nan_to_num(np.frombuffer(graph.capacity), nan=math.inf, posinf=math.inf).tolist()
        tails = nodes.repeat(indptr[1:] - indptr[:-1]).tolist()
        for tail, head, rate in zip(tails, heads, rates, strict=True):
            links[tail, head] = max(links.get((tail, head), 0.0), rate)
    return JobNetwork(links, reachable_from(links, root), frozenset(map(int, bfrs)))


def reachable_from(links: Mapping[Direction, float], start: NodeId) -> frozenset[NodeId]:
    """Return the vertices that links connect with one."""
    neighbors: dict[int, list[int]] = {}
    for (near, far), rate in links.items():
        if rate > 0 and links.get((far, near), 0.0) > 0:
            neighbors.setdefault(near, []).append(far)
    found, queue = {int(start)}, [int(start)]
    while queue:
        for far in neighbors.get(queue.pop(), ()):
            if far not in found:
                found.add(far)
                queue.append(far)
    return frozenset(map(NodeId, found))
