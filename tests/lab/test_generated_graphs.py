"""The graphs of generated topologies, as networkx sees them: degree, diameter, equal seeds."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
import yaml
from click.testing import CliRunner

from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.generate.clustered import Clustered
from fared.extensions.lab.generate.dragonfly import Dragonfly
from fared.extensions.lab.generate.fat_tree import FatTree
from fared.extensions.lab.generate.full_mesh import FullMesh
from fared.extensions.lab.generate.hypercube import Hypercube
from fared.extensions.lab.generate.model import Generator
from fared.extensions.lab.generate.random import RandomRegular
from fared.extensions.lab.generate.star import Star
from fared.extensions.lab.generate.torus import Torus
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.main import main
from fared.extensions.lab.topology import from_document

DIRECT = [
    (Torus(dimensions="4x4"), {4: 16}, 4),
    (Torus(dimensions="2x3x5"), {5: 30}, 4),
    (Torus(dimensions="7"), {2: 7}, 3),
    (Hypercube(dimensions=4), {4: 16}, 4),
    (FullMesh(nodes=6), {5: 6}, 1),
    (Star(nodes=6), {1: 5, 5: 1}, 2),
    (Clustered(clusters=4, members=3), {2: 4, 3: 8}, 5),
    (RandomRegular(nodes=16, degree=4, seed=3), {4: 16}, 3),
]
"""Topologies, how many nodes have each number of links, and the diameter."""


def planned(generator: Generator) -> AddressPlan:
    """Return the plan of the file, as the lab reads it."""
    return make_plan(from_document(yaml.safe_load(text(generator)), Path(generator.file)))


def graph(plan: AddressPlan) -> nx.MultiGraph[str]:
    """Return the routers and the links between them, parallel ones too."""
    found: nx.MultiGraph[str] = nx.MultiGraph()
    for router in plan.routers:
        found.add_edges_from((router.name, p.peer) for p in router.fabric_ports if p.index % 2)
    return found


@pytest.mark.parametrize(("generator", "degrees", "diameter"), DIRECT, ids=repr)
def test_degree_and_diameter_are_those_of_the_topology(
    generator: Generator, degrees: dict[int, int], diameter: int
):
    plan = planned(generator)
    found = graph(plan)
    assert Counter(degree for _, degree in found.degree) == degrees
    assert nx.diameter(nx.Graph(found)) == diameter
    assert f"diameter {diameter}" in generator.size()
    assert all(len(router.host_prefixes) == 1 for router in plan.routers)


def test_corners_of_a_hypercube_are_linked_where_one_bit_differs():
    for one, other in graph(planned(Hypercube(dimensions=4))).edges():
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_clusters_are_full_meshes_joined_to_a_ring_by_one_link_each():
    found = graph(planned(Clustered(clusters=5, members=4)))
    between = [edge for edge in found.edges() if edge[0][:2] != edge[1][:2]]
    assert len(between) == 5
    found.remove_edges_from(between)
    parts = [nx.Graph(found.subgraph(part)) for part in nx.connected_components(found)]
    assert [(len(part), nx.density(part)) for part in parts] == [(4, 1.0)] * 5


def test_equal_seeds_draw_equal_graphs_and_others_do_not():
    drawn = [text(RandomRegular(nodes=12, seed=seed)) for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1]
    assert drawn[0].partition("  links:")[2] != drawn[2].partition("  links:")[2]


@pytest.mark.parametrize("generator", [Dragonfly(), Dragonfly(9, 4, 2), Dragonfly(3, 4, 2)])
def test_groups_of_a_dragonfly_have_as_many_links_to_each_other(generator: Dragonfly):
    """And no two routers are more than three links apart."""
    found = graph(planned(generator))
    between = Counter(
        frozenset((one[:2], other[:2])) for one, other in found.edges() if one[:2] != other[:2]
    )
    pairs = {frozenset(p) for p in itertools.combinations({name[:2] for name in found}, 2)}
    ports = generator.routers * generator.global_links
    assert between == dict.fromkeys(pairs, ports // (generator.groups - 1))
    assert nx.diameter(nx.Graph(found)) <= 3
    inside = generator.routers - 1
    assert max(degree for _, degree in found.degree) <= inside + generator.global_links


@pytest.mark.parametrize("ports", [4, 6])
def test_a_fat_tree_of_k_ports_has_k_ports_everywhere_and_a_path_for_each_host(ports: int):
    plan = planned(FatTree(ports))
    assert {len(router.ports) for router in plan.routers} == {ports}
    assert len(plan.hosts) == ports**3 // 4
    first, last = plan.leaves[0].name, plan.leaves[-1].name
    unit = nx.Graph(graph(plan))
    nx.set_edge_attributes(unit, 1, "capacity")
    assert nx.maximum_flow_value(unit, first, last) == ports // 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("random --nodes 5 --degree 3", "no graph has 5 nodes with 3 links each"),
        ("dragonfly --groups 9", "4 global links of a group reach 4 others, not 8"),
        ("fat-tree --ports 5", "an even number of ports, not 5"),
        ("torus --dimensions 4y", "'4y' is not a size such as 4x4"),
        ("torus --dimensions 1x4", "'1x4' is not a size such as 4x4"),
        ("permutation --nodes 6 --degree 2", "6 nodes have 1 different rings"),
        ("torus --dimensions 3 --name a/b", "name"),
    ],
)
def test_what_makes_no_graph_is_refused(words: str, told: str):
    done = CliRunner().invoke(main, ["generate", *words.split()])
    assert done.exit_code == 2
    assert told in done.output
