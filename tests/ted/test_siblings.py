"""Links that the siblings of a router have are missed without any memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.paths.ted.siblings import lacking
from fared.paths.ted.tiers import places
from tests.ted.test_tiers import clos3, clos5, graph, heights_of, hosts, plane, pod


def missed(links, gone=()):
    """What a fabric lacks once some of its links are gone: pairs, and how many siblings have it."""
    left = set(links) - set(gone)
    neighbors = graph(left)
    return {
        frozenset((each.node, each.end)): (each.have, each.siblings)
        for each in lacking(neighbors, places(neighbors, hosts(left)))
    }


@pytest.mark.parametrize("links", [clos3(2, 2), clos3(4, 8), clos5(2, 2, 2, 2), clos5(4, 4, 4, 2)])
def test_a_whole_fabric_lacks_nothing(links):
    assert missed(links) == {}


@pytest.mark.parametrize("size", [(2, 4, 4, 2), (8, 4, 4, 2), (3, 2, 2, 2), (8, 4, 1, 2)])
def test_what_a_router_sees_of_areas_lacks_nothing(size):
    """A spine does not see the super-spines of the others of its pod, nor the leaves of others."""
    whole = clos5(*size)
    for links in (pod(0, whole), plane(0, whole), pod(0, whole) | plane(0, whole)):
        neighbors = graph(links)
        found = places(neighbors, hosts(links), heights_of(links))
        assert lacking(neighbors, found) == []


def test_a_lost_link_is_missed_as_the_larger_group_of_siblings_has_it():
    assert missed(clos3(4, 8), [("S3", "L5")]) == {frozenset(("S3", "L5")): (7, 7)}


def test_of_two_leaves_the_other_one_is_sibling_enough():
    assert missed(clos3(2, 2), [("S1", "L1")]) == {frozenset(("S1", "L1")): (1, 1)}


@pytest.mark.parametrize("gone", [("p0-S1", "p0-L2"), ("p1-S2", "SS2-1")])
def test_pods_and_planes_have_siblings_of_their_own(gone):
    (found,) = missed(clos5(3, 4, 4, 3), [gone])
    assert found == frozenset(gone)


def test_a_leaf_with_one_link_left_lacks_all_others():
    gone = [(f"S{n}", "L3") for n in range(3)]
    assert missed(clos3(4, 8), gone).keys() == {frozenset(each) for each in gone}


def test_a_spine_with_few_links_lacks_those_of_other_spines_although_most_leaves_have_none():
    gone = [("S3", f"L{n}") for n in range(2, 8)]
    assert set(missed(clos3(4, 8), gone).values()) == {(3, 3)}


def test_an_additional_router_is_missed_by_nobody():
    links = clos3(4, 8) | {("L0", "outside")}
    assert missed(links) == {}


@given(st.sets(st.sampled_from(sorted(clos3(6, 9))), max_size=5))
def test_few_lost_links_are_all_missed_and_nothing_else(gone):
    links = clos3(6, 9)
    found = missed(links, gone)
    assert found.keys() == {frozenset(each) for each in gone}
