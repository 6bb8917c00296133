"""BIRT, BIFT and forwarding: the example of RFC 8279, ECMP by capacity, random graphs."""

from __future__ import annotations

import random
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import ipv4_prefix
from fared.paths.bier.bift import TABLES, assign, make_bifts, share_tables
from fared.paths.bier.birt import BfrNeighbor, BirtEntry, entry_of, make_birt
from fared.paths.bier.forwarding import forward
from tests.bier.networks import Bfrs
from tests.ted.fabrics import Fabric, five_stage, three_stage

RFC_8279 = {"D": 1, "F": 2, "E": 3, "A": 4}


def rfc_8279_example() -> Fabric:
    """RFC 8279 §6.3, figures 1 and 3."""
    fabric = Fabric()
    fabric.node(*"ABCDEF")
    for a, b in ("AB", "BC", "CD", "BE", "CF"):
        fabric.connect(a, b)
    return fabric


@pytest.mark.rfc("RFC 8279 §6.4")
def test_the_tables_of_rfc_8279_e10():
    bfrs = Bfrs(rfc_8279_example(), RFC_8279)
    assert bfrs.masks("A") == {"B": 0b0111}
    assert bfrs.masks("B") == {"C": 0b0011, "E": 0b0100, "A": 0b1000}
    assert bfrs.masks("C") == {"D": 0b0001, "F": 0b0010, "B": 0b1100}
    table = bfrs.bifts["B"][0].table(0)
    sent = {bfrs.fabric.name(n.node): bits for n, bits in forward(table, 0b0111).copies}
    assert sent == {"C": 0b0011, "E": 0b0100}
    assert bfrs.bifts["A"][0].table(0).local == 0b1000
    assert bfrs.deliver("A", "DFE") == Counter({"A>B", "B>C", "B>E", "C>D", "C>F"} | {*"DFE"})


def test_with_two_ways_to_f_tables_differ_in_its_neighbor_e10():
    fabric = rfc_8279_example()
    fabric.connect("E", "F")
    bfrs = Bfrs(fabric, RFC_8279)
    found = [bfrs.masks("B", entropy) for entropy in range(TABLES)]
    over_c = {"C": 0b0011, "E": 0b0100, "A": 0b1000}
    over_e = {"C": 0b0001, "E": 0b0110, "A": 0b1000}
    assert [found.count(over_c), found.count(over_e)] == [8, 8]


@pytest.mark.rfc("RFC 8279 §6.7.2")
def test_ecmp_tables_follow_path_capacity_and_bfers_share_copies_e11():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    bfrs = Bfrs(fabric, {f"L{n}": n for n in range(1, 9)})
    spines: dict[int, Counter[str]] = {n: Counter() for n in range(2, 9)}
    copies = Counter()
    for entropy in range(TABLES):
        masks = bfrs.masks("L1", entropy)
        copies[len(masks)] += 1
        for n, tables in spines.items():
            tables.update(s for s, mask in masks.items() if mask >> n - 1 & 1)
    assert spines[2] == Counter(S1=1, S2=5, S3=5, S4=5)
    assert all(spines[n] == Counter(S1=4, S2=4, S3=4, S4=4) for n in range(3, 9))
    assert copies == Counter({1: 13, 2: 3})


def test_a_root_at_a_spine_has_one_table():
    bfrs = Bfrs(three_stage(), {f"L{n}": n for n in range(1, 9)})
    assert len({id(table) for table in bfrs.bifts["S1"][0].tables}) == 1
    assert bfrs.deliver("S1", [f"L{n}" for n in range(1, 9)]).total() == 16


def test_in_five_stages_every_set_arrives_once_at_each_bfer_with_every_entropy():
    fabric = five_stage()
    leaves = [name for name in fabric.names if ".L" in name]
    bfrs = Bfrs(fabric, {name: at for at, name in enumerate(leaves, 1)})
    for entropy in range(TABLES):
        seen = bfrs.deliver("p1.L1", leaves[1:], entropy)
        assert all(seen[leaf] == 1 for leaf in leaves[1:])
        # one copy on each link of one tree: to a spine, 3 leaves, a super-spine, 3 PoDs of 4
        assert sum(n for at, n in seen.items() if ">" in at) == 1 + 3 + 1 + 3 * (1 + 4)


@pytest.mark.rfc("RFC 8279 §5")
def test_a_bfr_id_of_two_prefixes_is_programmed_for_neither():
    hop = BfrNeighbor(1, 2, "eth1")
    entries = [BirtEntry(5, ipv4_prefix(n, 32), ((hop, 1),)) for n in (9, 7)]
    birt = make_birt([*entries, BirtEntry(6, ipv4_prefix(8, 32), ((hop, 1),))])
    assert [entry.problem for entry in birt[5]] == [
        "BFR-id also of 0.0.0.9/32",
        "BFR-id also of 0.0.0.7/32",
    ]
    assert make_bifts(birt, 64)[0].table(0).masks == ((hop, 0b100000),)


def test_a_bfer_without_route_or_behind_routers_without_bier_is_kept_with_the_reason():
    fabric = rfc_8279_example()
    solver = fabric.solver("B")
    solver.solve()
    d = fabric.prefix("D")
    without_c = entry_of(1, d, solver.routes[d], {fabric.id("A"), fabric.id("E")})
    nowhere = entry_of(2, ipv4_prefix(1, 32), None, ())
    assert (without_c.problem, nowhere.problem) == ("no next hop has BIER", "no route")
    assert make_bifts(make_birt([without_c, nowhere]), 64) == {}


def test_bfr_ids_beyond_the_length_have_tables_of_their_own_set():
    bfrs = Bfrs(rfc_8279_example(), {"D": 1, "F": 64, "E": 65, "A": 200})
    assert {s: [*bift.tables[0].masks] != [] for s, bift in bfrs.bifts["B"].items()} == {
        0: True,
        1: True,
        3: True,
    }
    assert bfrs.deliver("C", "DFEA") == Counter(
        ["C>D", "D", "C>F", "F", "C>B", "B>E", "E", "C>B", "B>A", "A"]
    )


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.integers(1, 64))
def test_tables_of_a_neighbor_follow_its_weight_to_less_than_one(weights, tables):
    found = share_tables(tuple(enumerate(weights)), tables)
    assert sum(found.values()) == tables
    total = sum(weights)
    assert all(abs(found[n] - tables * w / total) < 1 for n, w in enumerate(weights))


@given(
    st.dictionaries(
        st.integers(1, 60),
        st.dictionaries(st.integers(0, 5), st.integers(1, 9), min_size=1).map(
            lambda ways: (*sorted(ways.items()),)
        ),
        max_size=20,
    )
)
def test_every_bfer_has_its_share_of_tables_whatever_the_others_have(ways):
    found = assign(ways)
    assert found.keys() == ways.keys()
    for bfer, neighbors in found.items():
        wanted = {n: k for n, k in share_tables(ways[bfer]).items() if k}
        assert Counter(neighbors) == wanted


def random_fabric(seed: int) -> Fabric:
    draw = random.Random(seed)
    size = draw.randint(4, 24)
    fabric = Fabric()
    fabric.node(*(f"N{n}" for n in range(size)))
    graph = nx.gnp_random_graph(size, draw.uniform(1.5, 5) / size, seed=seed)
    for a, b in graph.edges:
        metric, capacity = draw.choice([5, 10, 10, 20]), draw.choice([25.0, 100.0, 400.0])
        fabric.connect(f"N{a}", f"N{b}", capacity, metric)
        fabric.limit(f"N{b}", f"N{a}", draw.choice([25.0, 400.0]))
    return fabric


@pytest.mark.parametrize("tens", range(10))
def test_tables_equal_brute_force_on_random_graphs(tens):
    """200 graphs: masks as networkx's shortest paths say, each BFER once, no loop, all bits."""
    for seed in range(20 * tens, 20 * tens + 20):
        fabric = random_fabric(seed)
        draw = random.Random(-seed)
        chosen = draw.sample(fabric.names, draw.randint(2, len(fabric.names)))
        ids = dict(zip(chosen, draw.sample(range(1, 150), len(chosen)), strict=True))
        bfrs = Bfrs(fabric, ids)
        graph = nx.DiGraph()
        graph.add_nodes_from(fabric.names)
        graph.add_weighted_edges_from((k.tail, k.head, k.metric) for k in fabric.links)
        distance = dict(nx.all_pairs_dijkstra_path_length(graph))
        for name in fabric.names:
            check_tables(bfrs, graph, distance, name)
        for _ in range(10):
            root = draw.choice(fabric.names)
            reached = [bfer for bfer in ids if bfer in distance[root]]
            bfers = draw.sample(reached, draw.randint(0, len(reached)))
            seen = bfrs.deliver(root, bfers, draw.randrange(TABLES))
            assert {at: n for at, n in seen.items() if ">" not in at} == dict.fromkeys(bfers, 1)


def check_tables(bfrs: Bfrs, graph: nx.DiGraph, distance: dict, name: str) -> None:
    """In each table a BFER is behind one neighbor, which is on a shortest path."""
    begun = {bfer: Counter() for bfer in bfrs.ids}
    for bfer, bfr_id in bfrs.ids.items():
        set_id, bit = divmod(bfr_id - 1, bfrs.length)
        for entropy in range(TABLES):
            bift = bfrs.bifts[name].get(set_id)
            if bift is None:
                continue
            table = bift.table(entropy)
            behind = [n for n, mask in table.masks if mask >> bit & 1]
            local = table.local >> bit & 1
            assert local == (bfer == name)
            assert len(behind) == (bfer != name and bfer in distance[name])
            begun[bfer].update(bfrs.fabric.name(n.node) for n in behind)
    for bfer, tables in begun.items():
        shortest = {
            n
            for n in graph[name]
            if bfer in distance[n]
            and bfer != name
            and graph[name][n]["weight"] + distance[n][bfer] == distance[name][bfer]
        }
        assert tables.keys() <= shortest
        assert tables.total() == (TABLES if shortest else 0)
