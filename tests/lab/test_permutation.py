"""Direct-connect topologies: rings of coprime steps, their diameter, and traffic over them."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import networkx as nx
import pytest
from click.testing import CliRunner

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.generate.permutation import (
    best_steps,
    candidates,
    diameter,
    ring_all_reduce_seconds,
)
from fared.extensions.lab.main import main
from fared.extensions.offline.plan.paths import RootPaths
from fared.extensions.offline.plan.routes import WeightedRoutes
from tests.plan.networks import max_flow, network

TABLE = [
    (n, d)
    for n in (8, 13, 16, 27, 32, 64, 100, 128)
    for d in (1, 2, 3, 4)
    if d <= len(candidates(n))
]


def generated(*options: str) -> str:
    done = CliRunner().invoke(main, ["generate", "permutation", *options])
    assert done.exit_code == 0, done.output
    return done.output


def rings(nodes, steps, rate=lambda: 100.0):
    return network(
        [
            (f"n{i}", f"n{(i + step) % nodes}", 1, rate(), rate())
            for step in steps
            for i in range(nodes)
        ]
    )


def graph(nodes, steps):
    return nx.circulant_graph(nodes, list(steps))


def test_the_file_has_every_ring_and_a_host_for_each_node(tmp_path: Path):
    file = tmp_path / "permutation.clab.yml"
    file.write_text(generated("--nodes", "9", "--degree", "2", "--rate", "1G"))
    plan = make_plan(topology.load(file))
    assert len(plan.routers) == len(plan.hosts) == 9
    steps = best_steps(9, 2)
    for at, router in enumerate(plan.routers):
        far = {f"n{(at + s * sign) % 9 + 1}" for s in steps for sign in (1, -1)}
        assert {port.peer for port in router.fabric_ports} == far
        assert {port.rate for port in router.fabric_ports} == {1e9 / 8}


@pytest.mark.parametrize(("nodes", "degree"), TABLE)
def test_every_step_is_a_ring_over_all_nodes_and_the_diameter_is_bounded(nodes, degree):
    steps = best_steps(nodes, degree)
    assert len(set(steps)) == degree
    for step in steps:
        assert len({step * i % nodes for i in range(nodes)}) == nodes
    assert diameter(nodes, steps) == nx.diameter(graph(nodes, steps))
    # O(D N^(1/D)); links work in both directions, hence half
    assert diameter(nodes, steps) <= math.ceil(degree * nodes ** (1 / degree) / 2)


@pytest.mark.parametrize("nodes", [9, 13, 16, 21])
def test_no_other_set_of_steps_has_a_smaller_diameter(nodes):
    every = itertools.combinations(candidates(nodes), 2)
    least = min(nx.diameter(graph(nodes, steps)) for steps in every)
    assert diameter(nodes, best_steps(nodes, 2)) == least


def test_more_rings_than_coprime_steps_are_refused():
    done = CliRunner().invoke(main, ["generate", "permutation", "--nodes", "6", "--degree", "2"])
    assert done.exit_code != 0
    assert "6 nodes have 1 different rings" in done.output


@pytest.mark.parametrize(("nodes", "degree"), [(8, 2), (13, 2), (16, 3), (25, 2)])
def test_path_capacity_of_whole_rings_is_the_maximum_flow_over_shortest_paths(nodes, degree):
    fabric = rings(nodes, best_steps(nodes, degree))
    flow = RootPaths(fabric.graph, fabric.capacity, 0).flow
    for target in range(1, nodes):
        found = max_flow(fabric.graph, fabric.capacity.tolist(), 0, target)
        assert flow[target] == pytest.approx(found)


@pytest.mark.parametrize("seed", range(5))
def test_path_capacity_is_never_below_the_maximum_flow_in_damaged_rings(seed):
    rng = random.Random(seed)
    fabric = rings(16, best_steps(16, 3), lambda: rng.choice((25.0, 50.0, 100.0)))
    flow = RootPaths(fabric.graph, fabric.capacity, 0).flow
    for target in range(1, 16):
        found = max_flow(fabric.graph, fabric.capacity.tolist(), 0, target)
        assert flow[target] >= found - 1e-9
        assert flow[target] <= 2 * found


def test_an_all_reduce_takes_a_quarter_of_the_time_of_a_fat_tree_with_as_many_ports():
    """All loads by fared's weights: four ports for each NIC port in two tiers, 2 D ports here."""
    nodes, degree, rate, size = 16, 2, 100.0, 1600.0
    steps = best_steps(nodes, degree)
    direct = rings(nodes, steps)
    at = [direct.names.index(f"n{i}") for i in range(nodes)]
    part = 2 * (nodes - 1) / nodes * size / (2 * degree)
    demands = {
        (at[i], at[(i + sign * step) % nodes]): part
        for step in steps
        for i in range(nodes)
        for sign in (1, -1)
    }
    seconds = (WeightedRoutes(direct).loads(demands) / direct.capacity).max()
    assert seconds == pytest.approx(ring_all_reduce_seconds(nodes, degree, size, rate))
    nics = 2 * degree // 4
    tree = network(
        [(f"L{i // 4}", f"h{i:02d}", 1, nics * rate, nics * rate) for i in range(nodes)]
        + [(f"L{a}", f"S{b}", 1, nics * rate, nics * rate) for a in range(4) for b in range(4)]
    )
    hosts = [tree.names.index(f"h{i:02d}") for i in range(nodes)]
    ring = {
        (hosts[i], hosts[(i + 1) % nodes]): 2 * (nodes - 1) / nodes * size for i in range(nodes)
    }
    slower = (WeightedRoutes(tree).loads(ring) / tree.capacity).max()
    assert slower / seconds == pytest.approx(4.0)
