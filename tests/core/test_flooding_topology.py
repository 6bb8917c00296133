"""The flooding topology: as connected as the network, and independent of most other links."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.flooding.model import five_stages, three_stages
from fared.protocols.igp.dynamic_flooding import ALGORITHM, Capability, DynamicFlooding
from fared.protocols.igp.flooding_topology import FloodingTopology, flooding_topology


def as_graph(topology: FloodingTopology) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(topology.places)
    graph.add_edges_from((a, b) for a, place in topology.places.items() for b in place.parents)
    return graph


def claims(graph: nx.Graph) -> dict[int, set[int]]:
    return {node: set(graph[node]) for node in graph}


@st.composite
def networks(draw: st.DrawFn) -> nx.Graph:
    size = draw(st.integers(1, 20))
    graph = nx.gnm_random_graph(size, draw(st.integers(0, 3 * size)), draw(st.integers(0, 9999)))
    names = draw(st.permutations(range(size)))
    return nx.relabel_nodes(graph, dict(enumerate(names)))


@given(networks())
def test_it_has_the_components_bridges_and_articulation_points_of_the_network(network: nx.Graph):
    topology = as_graph(flooding_topology(claims(network)))
    assert all(network.has_edge(*link) for link in topology.edges)
    for of in (nx.connected_components, nx.biconnected_components):
        assert {frozenset(c) for c in of(topology)} == {frozenset(c) for c in of(network)}


@given(networks())
def test_a_router_has_two_parents_at_most_and_primary_parents_form_a_tree(network: nx.Graph):
    places = flooding_topology(claims(network)).places
    assert all(len(place.parents) <= 2 for place in places.values())
    tree = nx.Graph((node, place.parents[0]) for node, place in places.items() if place.parents)
    tree.add_nodes_from(places)
    assert nx.is_forest(tree)
    assert nx.number_connected_components(tree) == nx.number_connected_components(network)
    for node, place in places.items():
        assert all(node in places[parent].children for parent in place.parents)


@given(networks())
@settings(max_examples=60)
def test_a_loss_that_is_said_not_to_matter_leaves_it_as_it_is(network: nx.Graph):
    topology = flooding_topology(claims(network))
    for a, b in list(network.edges):
        if topology.is_without(a, b):
            network.remove_edge(a, b)
            without = flooding_topology(claims(network))
            assert (without.places, without.compared) == (topology.places, topology.compared)
            network.add_edge(a, b)


@pytest.mark.parametrize(
    ("fabric", "links"),
    [(three_stages(4, 8), 20), (three_stages(16, 64), 156), (five_stages(8, 4, 4, 4), 152)],
    ids=["4x8", "16x64", "five stages"],
)
def test_in_a_clos_fabric_all_but_the_first_have_two_parents_and_no_router_is_needed(fabric, links):
    topology = flooding_topology(fabric[0])
    fewer = [node for node, place in topology.places.items() if len(place.parents) < 2]
    assert fewer == [min(fabric[0])]
    assert nx.is_biconnected(as_graph(topology))
    assert as_graph(topology).number_of_edges() == links


def test_in_a_leaf_spine_fabric_three_in_four_losses_do_not_matter():
    graph, _ = three_stages(16, 64)
    topology = flooding_topology(graph)
    links = [(a, b) for a in graph for b in graph[a] if a < b]
    assert sum(topology.is_without(*link) for link in links) >= 0.75 * len(links)


def test_a_link_of_a_router_to_itself_is_no_link():
    """Only a forged LSA or LSP has one; its end ended the daemon."""
    flooding = DynamicFlooding(1)
    for node in (1, 2):
        flooding.capability(node, Capability(priority=node, algorithms=(ALGORITHM,)), 0.0)
    flooding.links(2, {2}, 0.0)
    assert flooding.leader == 1
    flooding.links(2, (), 0.0)
    assert flooding.leader == 1


@pytest.mark.parametrize("fabric", [(4, 8), (8, 16), (6, 6)])
def test_no_two_routers_of_a_clos_fabric_that_hide_all_part_the_others(fabric: tuple[int, int]):
    """The topology with the links whose ends compare what they have."""
    network = nx.complete_bipartite_graph(*fabric)
    graph = {node: set(network[node]) for node in network}
    topology = flooding_topology(graph)
    together = nx.Graph((node, other) for node in graph for other in topology.neighbors(node))
    parted = [pair for pair in combinations(network, 2) if not connected_without(together, pair)]
    assert parted  # two spines, two leaves
    together.add_edges_from((a, b) for a in graph for b in topology.companions(a))
    assert all(connected_without(together, pair) for pair in combinations(network, 2))


def connected_without(network: nx.Graph, nodes: tuple[int, ...]) -> bool:
    """Whether the rest of a network is connected."""
    return nx.is_connected(network.subgraph(set(network) - set(nodes)))
