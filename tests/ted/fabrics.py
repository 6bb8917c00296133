"""Fabrics as dictionaries of links, converted to TED blocks: Figures 1 and 2, and others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fared.core.ids import NodeId, Prefix, ipv4_prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import LocalLink, NodeBlock, PathType, PrefixReachability

GBPS = 1e9 / 8
AREA = 0


@dataclass
class Link:
    """One direction of one link, capacity in Gb/s, delay in microseconds (None unknown)."""

    tail: str
    head: str
    local_id: int
    remote_id: int
    capacity: float | None = 400.0
    available: float | None = None
    metric: int = 10
    delay: int | None = None


@dataclass
class Fabric:
    """Named nodes, directed links and prefixes; makes blocks, local links and solvers."""

    links: list[Link] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    prefixes: dict[str, list[PrefixReachability]] = field(default_factory=dict)
    stubs: set[str] = field(default_factory=set)
    lans: set[str] = field(default_factory=set)

    def id(self, name: str) -> NodeId:
        base = (1 << 32) if name in self.lans else 0
        return NodeId(base + (10 << 24) + self.names.index(name) + 1)

    def name(self, node: int) -> str:
        return self.names[(node & 0xFFFFFF) - 1]

    def node(self, *names: str) -> None:
        for name in names:
            if name not in self.names:
                self.names.append(name)
                self.prefixes[name] = [PrefixReachability(self.prefix(name), 0)]

    def prefix(self, name: str) -> Prefix:
        return ipv4_prefix((10 << 24) + (1 << 20) + self.names.index(name), 32)

    def anycast(self, prefix: Prefix, *names: str, metric: int = 0, capacity=None) -> Prefix:
        for name in names:
            self.prefixes[name].append(
                PrefixReachability(prefix, metric, PathType.INTRA_AREA, capacity)
            )
        return prefix

    def connect(self, a: str, b: str, capacity: float | None = 400.0, metric: int = 10) -> None:
        self.node(a, b)
        number = len(self.links) + 1
        self.links.append(Link(a, b, number, number + 1, capacity, None, metric))
        self.links.append(Link(b, a, number + 1, number, capacity, None, metric))

    def cut(self, a: str, b: str) -> None:
        self.links = [link for link in self.links if {link.tail, link.head} != {a, b}]

    def limit(self, a: str, b: str, capacity: float | None, nth: int | None = None) -> None:
        """Set the capacity from a to b only (of all parallel links, or of the nth)."""
        found = [link for link in self.links if (link.tail, link.head) == (a, b)]
        for link in found if nth is None else [found[nth]]:
            link.capacity = capacity

    def capacity(self, a: str, b: str) -> float:
        return sum(k.capacity or 0 for k in self.links if (k.tail, k.head) == (a, b))

    def block(self, name: str) -> NodeBlock:
        mine = [link for link in self.links if link.tail == name]

        def ints(values):
            return np.array(list(values), np.int64)

        def rates(values):
            return np.array([np.nan if v is None else v * GBPS for v in values], np.float64)

        return NodeBlock(
            node=self.id(name),
            neighbors=ints(self.id(link.head) for link in mine),
            metrics=ints(link.metric for link in mine),
            capacities=rates(link.capacity for link in mine),
            availables=rates(link.available for link in mine),
            local_ids=ints(link.local_id for link in mine),
            remote_ids=ints(link.remote_id for link in mine),
            prefixes=tuple(self.prefixes[name]),
            transit=name not in self.stubs,
            hostname=name,
            network=name in self.lans,
            delays=self._delays(mine),
        )

    def _delays(self, links: list[Link]) -> np.ndarray | None:
        if all(link.delay is None for link in links):
            return None
        return np.array([np.nan if k.delay is None else k.delay for k in links], np.float64)

    def slow(self, a: str, b: str, delay: int | None, nth: int | None = None) -> None:
        """Set the delay from a to b, microseconds (of all parallel links, or of the nth)."""
        found = [link for link in self.links if (link.tail, link.head) == (a, b)]
        for link in found if nth is None else [found[nth]]:
            link.delay = delay

    def local_links(self, name: str) -> tuple[LocalLink, ...]:
        return tuple(
            LocalLink(
                ifindex=link.local_id,
                interface=f"{link.head}-{link.local_id}",
                neighbor=self.id(link.head),
                gateway=(10 << 24) + (2 << 20) + link.remote_id,
                local_id=link.local_id,
                metric=link.metric,
                bandwidth=None if link.capacity is None else link.capacity * GBPS,
            )
            for link in self.links
            if link.tail == name and link.head not in self.lans
        )

    def solver(self, root: str, settings: SolverSettings | None = None) -> RouteSolver:
        solver = RouteSolver(self.id(root), settings or SolverSettings())
        for name in self.names:
            solver.put_block(AREA, self.id(name), self.block(name))
        solver.set_local_links(AREA, self.local_links(root))
        return solver


def three_stage(spines: int = 4, leaves: int = 8, parallel: int = 1) -> Fabric:
    """Figure 1: every leaf connected to every spine."""
    fabric = Fabric()
    fabric.node(*(f"S{s}" for s in range(1, spines + 1)))
    fabric.node(*(f"L{leaf}" for leaf in range(1, leaves + 1)))
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            for _ in range(parallel):
                fabric.connect(f"L{leaf}", f"S{spine}")
    return fabric


def five_stage(pods: int = 4, leaves: int = 4, spines: int = 4, supers: int = 4) -> Fabric:
    """Figure 2: planar, spine k of every pod connected to the superspines of plane k."""
    fabric = Fabric()
    for plane in range(1, spines + 1):
        fabric.node(*(f"SS{plane}.{k}" for k in range(1, supers + 1)))
    for pod in range(1, pods + 1):
        fabric.node(*(f"p{pod}.S{s}" for s in range(1, spines + 1)))
        fabric.node(*(f"p{pod}.L{leaf}" for leaf in range(1, leaves + 1)))
        for spine in range(1, spines + 1):
            for leaf in range(1, leaves + 1):
                fabric.connect(f"p{pod}.L{leaf}", f"p{pod}.S{spine}")
            for k in range(1, supers + 1):
                fabric.connect(f"p{pod}.S{spine}", f"SS{spine}.{k}")
    return fabric
