"""Tiers, pods and planes are recognized by links; by prefixes and areas, which side is above."""

import random
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.paths.ted.stages import BORDER, CORE, INNER
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


def tiers(links, beside=(), heights=None):
    """The tiers of all routers by name; ``beside`` are links of routers that are no part of it."""
    found = places(graph([*links, *beside]), hosts([*links, *beside]), heights or {})
    return {name: place.tier for name, place in found.items()}


def expected_of(links):
    return {name: expected(name) for link in links for name in link}


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


# What a router sees of five stages if PoDs are areas and planes the backbone.


def heights_of(links):
    """Spines are border routers of pods and the backbone."""
    by_tier = (INNER, BORDER, CORE)
    return {name: by_tier[expected(name)] for link in links for name in link}


def pod(number, links):
    return {link for link in links if all(name.startswith(f"p{number}-") for name in link)}


def plane(number, links):
    return {link for link in links if any(name.startswith(f"SS{number}-") for name in link)}


@pytest.mark.parametrize("size", [(2, 4, 4, 2), (2, 2, 2, 1), (3, 4, 2, 2), (8, 16, 8, 4)])
def test_a_leaf_sees_its_pod_below_border_routers(size):
    links = pod(0, clos5(*size))
    found = places(graph(links), {}, heights_of(links))
    assert found == {name: TierPlace(expected(name)) for link in links for name in link}


@pytest.mark.parametrize("size", [(2, 4, 4, 2), (2, 2, 2, 1), (3, 4, 2, 2), (8, 16, 8, 4)])
def test_a_super_spine_sees_its_plane_above_border_routers(size):
    links = plane(1, clos5(*size))
    found = places(graph(links), hosts(links), heights_of(links))
    assert found == {name: TierPlace(expected(name)) for link in links for name in link}


@pytest.mark.parametrize(
    "size", [(2, 4, 4, 2), (2, 2, 2, 1), (2, 4, 1, 2), (3, 4, 2, 2), (8, 16, 8, 4)]
)
def test_a_border_router_sees_its_pod_and_its_plane(size):
    whole = clos5(*size)
    links = pod(0, whole) | plane(0, whole)
    found = places(graph(links), hosts(links), heights_of(links))
    assert {name: place.tier for name, place in found.items()} == expected_of(links)
    assert {name: place.pod for name, place in found.items()} == {
        name: 1 if name.startswith("p0-") else None for link in links for name in link
    }
    assert {name for name, place in found.items() if place.plane == 1} == {
        name for link in plane(0, whole) for name in link if size[2] > 1
    }


def test_a_border_router_of_two_planes_numbers_them():
    whole = clos5(3, 4, 4, 2)
    links = pod(0, whole) | plane(0, whole) | plane(1, whole)
    found = places(graph(links), hosts(links), heights_of(links))
    assert {found[f"SS{n}-0"].plane for n in range(2)} == {1, 2}
    assert found["p0-S1"] == TierPlace(1, 1, found["SS1-1"].plane)
    assert found["p0-S2"] == TierPlace(1, 1, None)
    assert found["p2-S1"] == TierPlace(1, None, found["SS1-1"].plane)


def test_a_border_router_without_links_to_its_leaves_sees_two_parts():
    """The LSAs of the pod stay in its database for an hour."""
    whole = clos5(2, 4, 4, 2)
    links = {link for link in pod(0, whole) if "p0-S0" not in link} | plane(0, whole)
    assert tiers(links, heights=heights_of(links)) == expected_of(links)


def test_pods_may_reach_up_to_super_spines_that_are_border_routers():
    whole = clos5(3, 4, 2, 2)
    high = {name: BORDER if name.startswith("SS") else INNER for link in whole for name in link}
    assert tiers(whole, heights=high) == expected_of(whole)
    links = {link for link in whole if any(name.startswith("p1-") for name in link)}
    found = places(graph(links), {}, high)
    assert {name: place.tier for name, place in found.items()} == expected_of(links)


def test_half_of_the_border_routers_need_not_say_so():
    """One that has lost its pod has nothing to readvertise."""
    links = plane(1, clos5(2, 4, 4, 2))
    heights = heights_of(links) | {"p0-S1": CORE}
    found = places(graph(links), dict.fromkeys(heights, 1), heights)
    assert {name: place.tier for name, place in found.items()} == expected_of(links)


def test_one_border_router_among_spines_or_leaves_turns_nothing_upside_down():
    links = clos3(4, 8)
    for border, others in product(("S1", "L1"), (INNER, CORE)):
        high = dict.fromkeys(expected_of(links), others) | {border: BORDER}
        assert tiers(links, heights=high) == expected_of(links)


# What failures leave.


SIZES = st.tuples(*(st.integers(2, most) for most in (4, 6, 4, 3)))
"""Of what routers of areas see. Of five stages without areas it takes more to be certain."""
LARGER = st.tuples(*(st.integers(*sizes) for sizes in ((4, 6), (3, 6), (3, 4), (2, 4))))


@st.composite
def fabrics(draw):
    """Links, the heights of routers, and which part of the links may fail."""
    shape = draw(st.sampled_from(["three", "five", "pod", "plane", "border"]))
    if shape == "three":
        return clos3(draw(st.integers(2, 8)), draw(st.integers(2, 12))), {}, 0.15
    if shape == "five":
        return clos5(*draw(LARGER)), {}, 0.05
    whole = clos5(*draw(SIZES))
    low, high = pod(0, whole), plane(0, whole)
    links = {"pod": low, "plane": high, "border": low | high}[shape]
    return links, heights_of(links), 0.15


def without(links, part, seed):
    """What is left when this part of all links has failed."""
    left = sorted(links)
    random.Random(seed).shuffle(left)
    return left[: len(left) - int(part * len(left))]


def well_connected(links, left):
    """Routers with more than half of their links, in the part that has most of them."""
    whole, now = graph(links), graph(left)
    good = {name for name in now if 2 * len(now[name]) > len(whole[name])}
    start = max(sorted(good), key=lambda name: len(now[name]), default=None)
    seen, queue = {start}, [start] if start else []
    for name in queue:
        for far in sorted((now[name] & good) - seen):
            seen.add(far)
            queue.append(far)
    return set(queue)


@given(fabrics(), st.floats(0, 1), st.integers(0, 2**32))
def test_well_connected_routers_keep_their_tiers_while_links_fail(fabric, part, seed):
    links, heights, most = fabric
    left = without(links, part * most, seed)
    kept = well_connected(links, left)
    if any(2 * len(kept & side) <= len(side) for side in by_tier(links)):
        return  # most of a tier is gone
    found = places(graph(left), hosts(links), heights)
    assert {name: found[name].tier for name in kept} == {name: expected(name) for name in kept}


def by_tier(links):
    names = expected_of(links)
    return [{n for n, tier in names.items() if tier == wanted} for wanted in set(names.values())]


@given(fabrics(), st.integers(0, 2), st.integers(0, 2**32))
def test_the_others_keep_their_tiers_while_routers_fail(fabric, count, seed):
    links, heights, _ = fabric
    gone = set(random.Random(seed).sample(sorted(expected_of(links)), count))
    left = {link for link in links if not gone & set(link)}
    names = set(graph(left))
    if any(2 * len(side & names) <= len(side) for side in by_tier(links)):
        return
    found = places(graph(left), hosts(links), heights)
    assert {name: place.tier for name, place in found.items()} == {
        name: expected(name) for name in found
    }
    assert well_connected(links, left) <= found.keys()


@given(fabrics(), st.floats(0, 1), st.integers(0, 2**32))
def test_names_do_not_matter(fabric, part, seed):
    links, heights, most = fabric
    left = without(links, part * most, seed)
    names = sorted(graph(left))
    others = random.Random(seed).sample(range(1000), len(names))
    new = dict(zip(names, others, strict=True))
    found = places(graph(left), hosts(links), heights)
    renamed = places(
        graph((new[a], new[b]) for a, b in left),
        {new[name]: count for name, count in hosts(links).items() if name in new},
        {new[name]: height for name, height in heights.items() if name in new},
    )
    for name in well_connected(links, left):
        assert found.get(name, TierPlace(-1)).tier == renamed.get(new[name], TierPlace(-1)).tier


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


def test_a_part_that_is_cut_off_is_placed_if_prefixes_tell_which_side_is_above():
    whole = clos3(2, 4)
    links, island = whole, {("S9", "L9")}
    assert tiers(links | island) == expected_of(links | island)
    found = places(graph(links | island), {})
    assert found.keys() == expected_of(links).keys()


# Fabrics that are not as in the book.


@pytest.mark.parametrize("sizes", [(1, 6), (8, 2), (3, 3, 9)])
def test_pods_may_differ_in_size(sizes):
    links = set()
    for number, leaves in enumerate(sizes):
        links |= {
            (f"p{number}-S{s}", f"p{number}-L{n}") for s, n in product(range(4), range(leaves))
        }
        links |= {(f"p{number}-S{s}", f"SS{s}-{t}") for s, t in product(range(4), range(2))}
    found = places(graph(links), hosts(links))
    assert {name: place.tier for name, place in found.items()} == expected_of(links)
    assert {found[f"p{n}-L0"].pod for n in range(len(sizes))} == {*range(1, len(sizes) + 1)}


@pytest.mark.parametrize("pods", [2, 3, 5])
def test_pods_may_have_a_single_spine(pods):
    links = clos5(pods, 4, 1, 2)
    assert tiers(links) == expected_of(links)


@pytest.mark.parametrize("uplinks", [1, 2, 3])
@pytest.mark.parametrize("links", [clos3(4, 8), clos3(8, 16), clos5(2, 4, 4, 2), clos5(3, 8, 8, 2)])
def test_a_leaf_may_have_fewer_links_than_others(links, uplinks):
    spines = sorted(name for name in expected_of(links) if expected(name) == 1)
    some = [(spine, "L99") for spine in spines[:uplinks]]
    found = tiers(links, some)
    assert found == expected_of(links) | {"L99": 0}


@pytest.mark.parametrize("links", [clos3(2, 4), clos3(4, 8), clos5(2, 4, 4, 2)])
def test_a_host_router_behind_a_leaf_has_no_place(links):
    leaf = min(name for name in expected_of(links) if expected(name) == 0)
    assert tiers(links, [(leaf, "host")]) == expected_of(links)


def test_a_router_behind_every_leaf_makes_five_stages():
    """Racks whose servers are routers: they are the leaves."""
    links = {(f"L{n}", f"S{s}") for n, s in product(range(4), range(2))}
    racks = {(f"L{n}", f"server{n}-{m}") for n, m in product(range(4), range(8))}
    found = places(graph(links | racks), {f"server{n}-0": 1 for n in range(4)})
    assert {found[f"server{n}-3"].tier for n in range(4)} == {0}
    assert {found["L1"].tier, found["S1"].tier} == {1, 2}


@pytest.mark.parametrize(
    ("ends", "tier"),
    [
        (["S0"], 0),
        (["S0", "S1"], 0),
        (["S0", "S1", "S2", "S3"], 0),
        (["L0"], None),
        (["S0", "L0"], None),
        (["S0", "S1", "L0", "L1"], None),
    ],
)
def test_a_route_reflector_leaves_the_others_in_their_tiers(ends, tier):
    """Wherever it is linked to, the fabric stays one."""
    links = clos3(4, 8)
    found = places(graph([*links, *((end, "RR") for end in ends)]), hosts(links) | {"RR": 1})
    got = {name: place.tier for name, place in found.items()}
    assert got.pop("RR", None) == tier
    assert got == expected_of(links)


@pytest.mark.parametrize("links", [clos3(2, 4), clos3(4, 8), clos5(2, 4, 4, 2)])
def test_pairs_of_leaves_may_have_a_link_between_them(links):
    leaves = sorted(name for name in expected_of(links) if expected(name) == 0)
    assert tiers(links, zip(leaves[::2], leaves[1::2], strict=True)) == expected_of(links)


def test_routers_above_all_planes_have_no_place():
    links = clos5(2, 4, 4, 2)
    edge = product(("edge1", "edge2"), {name for name in expected_of(links) if expected(name) == 2})
    assert tiers(links, edge) == expected_of(links)


@pytest.mark.parametrize(
    "links",
    [
        [(a, b) for a, b in product(range(5), repeat=2) if a < b],
        [(n, (n + 1) % 6) for n in range(6)],
        [(n, (n + 1) % 9) for n in range(9)],
        [((x, y), ((x + dx) % 4, (y + dy) % 4)) for x in range(4) for y in range(4)
         for dx, dy in ((0, 1), (1, 0))],
        [*combinations(range(12), 2)],
        [(n, (n + step) % 12) for n in range(12) for step in (1, 5)],
        [(a, a ^ 1 << bit) for a in range(16) for bit in range(4) if not a & 1 << bit],
        [],
    ],
    ids=["mesh", "ring of six", "ring of nine", "torus", "large mesh", "circulant", "cube",
         "nothing"],
)  # fmt: skip
def test_other_graphs_have_no_places(links):
    assert places(graph(links), {}) == {}
