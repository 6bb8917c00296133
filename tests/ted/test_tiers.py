"""Tiers, pods and planes are recognized by links alone."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.paths.ted.tiers import TierPlace, places


def graph(links):
    found = {}
    for a, b in links:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return {node: frozenset(ends) for node, ends in found.items()}


def clos3(spines, leaves):
    return {(f"S{s}", f"L{n}") for s, n in product(range(spines), range(leaves))}


def clos5(pods, leaves, spines, supers, planes=True):
    links = {
        (f"p{p}-S{s}", f"p{p}-L{n}")
        for p, s, n in product(range(pods), range(spines), range(leaves))
    }
    if planes:
        ends = product(range(pods), range(spines), range(supers))
        return links | {(f"p{p}-S{s}", f"SS{s}-{t}") for p, s, t in ends}
    return links | {
        (f"p{p}-S{s}", f"SS-{t}") for p, s, t in product(range(pods), range(spines), range(supers))
    }


def hosts(links):
    """Leaves advertise the prefix of their hosts besides their loopback."""
    return {node: 2 if "L" in node else 1 for link in links for node in link}


def expected(name):
    if name.startswith("SS"):
        return 2
    return 0 if "L" in name else 1


@pytest.mark.parametrize(("spines", "leaves"), [(1, 2), (2, 2), (4, 8), (8, 4), (64, 512)])
def test_a_fabric_of_three_stages_has_leaves_and_spines(spines, leaves):
    links = clos3(spines, leaves)
    found = places(graph(links), hosts(links))
    assert found == {name: TierPlace(expected(name)) for link in links for name in link}


def test_without_prefixes_of_hosts_the_more_numerous_side_is_leaves():
    found = places(graph(clos3(4, 8)), {})
    assert {name for name, place in found.items() if place.tier == 0} == {f"L{n}" for n in range(8)}


@pytest.mark.parametrize("size", [(2, 4, 4, 2), (2, 2, 2, 1), (4, 8, 2, 2), (32, 16, 8, 4)])
def test_a_fabric_of_five_stages_has_pods_and_planes(size):
    links = clos5(*size)
    found = places(graph(links), hosts(links))
    assert {name: place.tier for name, place in found.items()} == {
        name: expected(name) for link in links for name in link
    }
    pods = {name: place.pod for name, place in found.items() if place.tier < 2}
    planes = {name: place.plane for name, place in found.items() if place.tier > 0}
    for name, number in pods.items():
        assert number == pods[name.partition("-")[0] + "-L0"]
    assert len(set(pods.values())) == size[0]
    for name, number in planes.items():
        plane = name.partition("-S")[2] if name.startswith("p") else name[2:].partition("-")[0]
        assert number == planes[f"SS{plane}-0"]
    assert len(set(planes.values())) == size[2]


def test_super_spines_that_meet_all_spines_are_no_planes():
    links = clos5(3, 4, 2, 4, planes=False)
    found = places(graph(links), hosts(links))
    assert {place.plane for place in found.values()} == {None}
    assert found["SS-0"] == TierPlace(2)
    assert found["p1-S0"].pod == found["p1-L3"].pod == 2


@given(st.integers(0, 2**32))
def test_failed_links_leave_routers_in_their_tiers(seed):
    links = clos5(4, 6, 4, 3)
    whole = places(graph(links), hosts(links))
    left = sorted(links)
    random.Random(seed).shuffle(left)
    found = places(graph(left[: len(left) - 4]), hosts(links))
    assert {name: place.tier for name, place in found.items()} == {
        name: whole[name].tier for name in found
    }


@pytest.mark.parametrize(("spines", "leaves"), [(2, 2), (2, 3), (3, 3), (4, 4)])
def test_any_link_of_a_small_fabric_may_fail(spines, leaves):
    links = clos3(spines, leaves)
    for failed in links:
        found = places(graph(links - {failed}), hosts(links))
        assert found == {name: TierPlace(expected(name)) for link in links for name in link}


def test_a_leaf_without_links_has_no_place():
    links = clos3(2, 4)
    found = places({**graph(links), "L9": frozenset()}, hosts(links))
    assert "L9" not in found
    assert len(found) == 6


@pytest.mark.parametrize(
    "links",
    [
        [(a, b) for a, b in product(range(5), repeat=2) if a < b],
        [(n, (n + 1) % 6) for n in range(6)],
        [(n, (n + 1) % 9) for n in range(9)],
        [((x, y), ((x + dx) % 4, (y + dy) % 4)) for x in range(4) for y in range(4)
         for dx, dy in ((0, 1), (1, 0))],
        [],
    ],
    ids=["mesh", "ring of six", "ring of nine", "torus", "nothing"],
)  # fmt: skip
def test_other_graphs_have_no_places(links):
    assert places(graph(links), {}) == {}
