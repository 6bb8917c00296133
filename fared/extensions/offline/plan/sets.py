"""Sets of failures to try: links, routers, groups that share a risk, pairs of links, lost capacity.

A failure takes away links, or a part of their capacity, and routers with all of their links. A set
lists its failures in arrays, so that a hundred thousand of them are small.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanError, PlanFabric, named

LINKS, NODES, GROUPS, DOUBLES, DEGRADE = "links", "nodes", "groups", "doubles", "degrade"


class Failures(msgspec.Struct, frozen=True, eq=False):
    """K failures of one kind.

    Failure k takes ``links[link_start[k]:link_start[k + 1]]`` (no link twice) and
    ``nodes[node_start[k]:...]``, whose links are among them. ``left`` is the part of a link's
    capacity that remains. ``labels`` (K,) are names of groups, else empty. ``population`` is the
    number of failures from which these were drawn with ``seed``; K if these are all. If each stands
    for a class of equal failures, ``numbers`` (K,) are the sizes of these classes, and ``routers``
    (N,) the classes of equal nodes (``equal``).
    """

    kind: str
    link_start: NDArray[np.int64]
    links: NDArray[np.int64]
    node_start: NDArray[np.int64]
    nodes: NDArray[np.int64]
    left: float = 0.0
    labels: tuple[str, ...] = ()
    population: int = 0
    seed: int | None = None
    numbers: NDArray[np.int64] | None = None
    routers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.link_start) - 1

    @property
    def sampled(self) -> bool:
        """Whether there are more failures of this kind."""
        return self.numbers is None and self.population > len(self)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """For how many failures each of them stands (K,)."""
        return np.ones(len(self), np.int64) if self.numbers is None else self.numbers

    def count(self, some: NDArray[np.int64] | slice = slice(None)) -> int:
        """Return for how many failures some of them stand."""
        return int(self.sizes[some].sum())

    def links_at(self, at: int) -> list[int]:
        """Return the links of one failure."""
        found: list[int] = self.links[self.link_start[at] : self.link_start[at + 1]].tolist()
        return found

    def name(self, fabric: PlanFabric, at: int) -> str:
        """Return what fails: ``L1-S1``, ``S1``, ``L1-S1 + L2-S3``, the name of a group.

        A link that keeps a part of its capacity is ``L1-S1 at 75%``.
        """
        if self.labels:
            return self.labels[at]
        nodes = self.nodes[self.node_start[at] : self.node_start[at + 1]].tolist()
        if nodes:
            return " + ".join(fabric.names[node] for node in nodes)
        links = " + ".join(fabric.link_names[link] for link in self.links_at(at))
        return f"{links} at {self.left * 100:.4g}%" if self.left > 0.0 else links


def single_links(fabric: PlanFabric) -> Failures:
    """Each link by itself."""
    count = len(fabric.link_names)
    return of_links(LINKS, np.arange(count + 1), np.arange(count))


def degraded_links(fabric: PlanFabric, lost: float) -> Failures:
    """Each link by itself, which loses a part of its capacity (0..1)."""
    return msgspec.structs.replace(single_links(fabric), kind=DEGRADE, left=1.0 - lost)


def single_nodes(fabric: PlanFabric) -> Failures:
    """Each router by itself."""
    routers = [n for n, network in enumerate(fabric.graph.network.tolist()) if not network]
    return _listed(NODES, fabric, [([router], ()) for router in routers])


def double_links(fabric: PlanFabric, most: int | None, seed: int) -> Failures:
    """All pairs of links; if there are more than ``most``, so many of them, drawn at random."""
    count = len(fabric.link_names)
    population = math.comb(count, 2)
    if most is None or population <= most:
        pairs = np.array(list(itertools.combinations(range(count), 2)), np.int64)
        drawn = False
    else:
        chosen = sorted(random.Random(seed).sample(range(population), most))
        pairs = np.array([_pair(number) for number in chosen], np.int64)
        drawn = True
    found = of_links(DOUBLES, np.arange(len(pairs) + 1) * 2, pairs.reshape(-1))
    return msgspec.structs.replace(found, population=population, seed=seed if drawn else None)


def groups(fabric: PlanFabric, members: Mapping[str, Sequence[str]]) -> Failures:
    """Links and routers that fail together, by name of the group: patterns as of ``named``.

    Raises PlanError for a pattern without a match.
    """
    listed = []
    for name, patterns in members.items():
        nodes: set[int] = set()
        links: set[int] = set()
        for pattern in patterns:
            some_nodes, some_links = named(fabric, pattern)
            if not some_nodes and not some_links:
                raise PlanError(f"group {name}: no router and no link is named {pattern!r}")
            nodes.update(some_nodes)
            links.update(some_links)
        listed.append((sorted(nodes), sorted(links)))
    found = _listed(GROUPS, fabric, listed)
    return msgspec.structs.replace(found, labels=tuple(members))


def _pair(number: int) -> tuple[int, int]:
    """Return pair ``number`` of (0, 1), (0, 2), (1, 2), (0, 3) and so on."""
    high = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - math.comb(high, 2), high


def _listed(
    kind: str, fabric: PlanFabric, listed: Iterable[tuple[Sequence[int], Sequence[int]]]
) -> Failures:
    graph, edges = fabric.graph, fabric.link_edges
    at_node: list[list[int]] = [[] for _ in fabric.names]
    for link, edge in enumerate(edges[:, 0].tolist()):
        at_node[int(graph.src[edge])].append(link)
        at_node[int(graph.dst[edge])].append(link)
    all_links = [
        sorted({*links, *(link for node in nodes for link in at_node[node])})
        for nodes, links in listed
    ]
    all_nodes = [list(nodes) for nodes, _ in listed]
    found = of_links(kind, _starts(all_links), _joined(all_links))
    return msgspec.structs.replace(found, node_start=_starts(all_nodes), nodes=_joined(all_nodes))


def _starts(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum([len(one) for one in lists], dtype=np.int64)))


def _joined(lists: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    return np.array(list(itertools.chain.from_iterable(lists)), np.int64)


def of_links(kind: str, starts: NDArray[np.int64], links: NDArray[np.int64]) -> Failures:
    """Failures of links alone: failure k takes ``links[starts[k]:starts[k + 1]]``."""
    count = len(starts) - 1
    none = np.zeros(0, np.int64)
    return Failures(kind, starts, links, np.zeros(count + 1, np.int64), none, population=count)
