"""Forged topologies that no fabric has: a chain of 10,000 routers, a router with 5,400 links."""

import time
from collections.abc import Callable
from itertools import repeat

import numpy as np
import pytest

from fared.core.ids import NodeId, Prefix, ipv4_prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.model import LocalLink, NodeBlock, PrefixReachability
from tests.ted.fabrics import AREA
from tests.work import grows_in_proportion

CHAIN, STAR = 10_000, 5_400
METRIC = 10
PART = 8
"""A topology of an eighth of the size is the measure of the time that a whole one may take."""


def node(number: int) -> NodeId:
    return NodeId(0x0A00_0000 + number)


def prefix(number: int) -> Prefix:
    return ipv4_prefix(0x0B00_0000 + number, 32)


def put(solver: RouteSolver, number: int, neighbors: list[int]) -> None:
    """A router with a link of 400 Gb/s to each neighbor; parallel links are told apart by order."""
    ints, rates = np.zeros(len(neighbors), np.int64), np.full(len(neighbors), 50e9)
    block = NodeBlock(
        node=node(number),
        neighbors=np.array([node(far) for far in neighbors], np.int64),
        metrics=ints + METRIC,
        capacities=rates,
        availables=rates * np.nan,
        local_ids=ints,
        remote_ids=ints,
        prefixes=(PrefixReachability(prefix(number), 0),),
        transit=True,
        hostname=f"r{number}",
    )
    solver.put_block(AREA, node(number), block)


def unsolved(neighbors: list[list[int]], root: int = 0) -> RouteSolver:
    """One router of a topology, given by the neighbors of each, before it computes routes."""
    solver = RouteSolver(node(root), SolverSettings())
    for number, far in enumerate(neighbors):
        put(solver, number, far)
    solver.set_local_links(
        AREA,
        tuple(
            LocalLink(at, f"swp{at}", node(far), 0x0C00_0000 + at, 0, METRIC, 50e9)
            for at, far in enumerate(neighbors[root], 1)
        ),
    )
    return solver


def solved(topology: Callable[[int], list[list[int]]], size: int, root: int = 0) -> RouteSolver:
    """The routes of one router; they take time in proportion to the size of the topology."""
    made: dict[int, RouteSolver] = {}

    def seconds(count: int) -> float:
        made[count] = solver = unsolved(topology(count), root)
        begun = time.process_time()
        solver.solve()
        return time.process_time() - begun

    assert grows_in_proportion(seconds, size // PART, size)
    return made[size]


def chain(length: int) -> list[list[int]]:
    return [[1], *([at - 1, at + 1] for at in range(1, length - 1)), [length - 2]]


def star(links: int) -> list[list[int]]:
    return [list(range(1, links + 1)), *repeat([0], links)]


def parallel(links: int) -> list[list[int]]:
    return [[1] * links, [0] * links]


@pytest.mark.slow
def test_a_chain_of_ten_thousand_routers_is_routed_to_its_end():
    """No recursion along paths, and none of their lengths overflows."""
    solver = solved(chain, CHAIN)
    metrics = [solver.routes[prefix(at)].metric for at in range(CHAIN)]
    assert metrics == [METRIC * at for at in range(CHAIN)]
    put(solver, 5000, [4999])
    put(solver, 5001, [5002])
    solver.solve()
    assert len(solver.routes) == 5001


def test_routes_lead_through_a_router_with_5400_links():
    solver = solved(star, STAR, root=1)
    assert len(solver.routes) == STAR + 1
    assert {solver.routes[prefix(at)].metric for at in range(2, STAR + 1)} == {2 * METRIC}


def test_5400_parallel_links_make_a_route_of_as_many_next_hops_as_are_allowed():
    route = solved(parallel, STAR).routes[prefix(1)]
    assert route.nexthops is not None
    assert len(route.nexthops.hops) == SolverSettings().max_paths
