"""Failures of one class do the same: plans by classes equal plans of all failures."""

import math
import random
from collections import Counter

import pytest

from fared.extensions.offline.plan import equal, sets
from fared.extensions.offline.plan.document import Planned, Shown, plan_document
from fared.extensions.offline.plan.fabric import PlanError
from fared.extensions.offline.plan.rows import merged
from fared.extensions.offline.plan.sweep import capacities, sweep
from tests.plan.networks import anything, clos, network, pods

NUMBERS = ("left", "reduced", "cut", "mean")


def damaged():
    """A Clos of 3 spines and 5 leaves; one link is slower, one pair of routers has three links."""
    links = [(f"L{leaf}", f"S{spine}", 10, 100.0, 100.0) for leaf in range(5) for spine in range(3)]
    links[4] = ("L1", "S1", 10, 40.0, 100.0)
    return network([*links, *[("L4", "S2", 10, 100.0, 100.0)] * 2], ends=("L*",))


def leaves_with_two_links():
    """Two links from each leaf to each spine, one of them slower."""
    links = [
        (f"L{leaf}", f"S{spine}", 10, rate, rate)
        for leaf in range(4)
        for spine in range(2)
        for rate in (100.0, 40.0)
    ]
    return network(links, ends=("L*",))


def directed():
    """Down is slower than up, at two of four leaves; names are not in the order of the tiers."""
    links = [
        (f"{'az'[leaf % 2]}{leaf}", f"m{spine}", 10, 100.0, 50.0 if leaf > 1 else 100.0)
        for leaf in range(4)
        for spine in range(3)
    ]
    return network(links, ends=("a*", "z*"))


FABRICS = {
    "clos": lambda: clos(3, 5),
    "pods": lambda: pods(3, 2, 2, 2),
    "damaged": damaged,
    "parallel": leaves_with_two_links,
    "directed": directed,
    **{f"graph {seed}": lambda seed=seed: anything(random.Random(seed)) for seed in range(20)},
}


def planned(fabric, failures):
    healthy = capacities(fabric)
    outcome = sweep(fabric, failures, 0, len(failures), healthy)
    return Planned(fabric, healthy, healthy, (merged(failures, [outcome], fabric),))


def classes(fabric, apart=()):
    return equal.classes_of_doubles(fabric, equal.equal_routers(fabric, apart))


def counted(plan):
    """How many failures have which effect."""
    (result,) = plan.results
    found = Counter()
    rows = zip(*(getattr(result, name).tolist() for name in NUMBERS), strict=True)
    for row, size in zip(rows, result.failures.sizes.tolist(), strict=True):
        found[tuple(round(value, 6) for value in row)] += size
    return found


@pytest.mark.parametrize("name", FABRICS)
def test_classes_give_the_rows_of_all_pairs_of_links(name):
    fabric = FABRICS[name]()
    every = planned(fabric, sets.double_links(fabric, None, 0))
    some = planned(fabric, classes(fabric))
    assert some.results[0].failures.count() == len(every.results[0].failures)
    assert counted(some) == counted(every)
    assert some.results[0].pair_least == pytest.approx(every.results[0].pair_least)


@pytest.mark.parametrize("name", FABRICS)
def test_the_report_of_classes_is_that_of_all_pairs(name):
    """Each cause is a pair of links that leaves that pair of ends so much."""
    fabric = FABRICS[name]()
    every, some = (
        plan_document(planned(fabric, of), (), (), Shown(pairs=None))
        for of in (sets.double_links(fabric, None, 0), classes(fabric))
    )
    same = ("failures", "population", "left", "mean_left", "mean", "cut", "harmless", "histogram")
    for key in same:
        assert some["sets"][0][key] == pytest.approx(every["sets"][0][key]), key
    assert [row["alike"] for row in some["worst"]] == [row["alike"] for row in every["worst"]]
    assert [row["left"] for row in some["worst"]] == pytest.approx(
        [row["left"] for row in every["worst"]]
    )
    known = {tuple(row["failure"].split(" + ")) for row in every["rows"]}
    healthy = capacities(fabric)
    number = {fabric.names[node]: at for at, node in enumerate(fabric.ends.tolist())}
    every_pair = sets.double_links(fabric, None, 0)
    place = {every_pair.name(fabric, at): at for at in range(len(every_pair))}
    for pair in some["sets"][0]["pairs"]:
        assert tuple(pair["cause"].split(" + ")) in known
        at = place[pair["cause"]]
        outcome = sweep(fabric, every_pair, at, at + 1, healthy)
        row, end = (number[name] for name in pair["pair"])
        assert outcome.pair_least[row, end] == pytest.approx(pair["capacity"])


def test_all_pairs_of_links_of_a_healthy_clos_are_three_classes():
    """They share a leaf, a spine or nothing."""
    fabric = clos(64, 512)
    found = classes(fabric)
    assert sorted(found.sizes.tolist()) == [
        512 * math.comb(64, 2),
        64 * math.comb(512, 2),
        math.comb(64 * 512, 2) - 512 * math.comb(64, 2) - 64 * math.comb(512, 2),
    ]
    assert {len(set(pair.split("-"))) for pair in found.name(fabric, 0).split(" + ")} == {2}


def test_equal_routers_have_the_same_neighbors_over_the_same_links():
    fabric = damaged()
    found = equal.equal_routers(fabric)
    by_class: dict[int, set[str]] = {}
    for name, of in zip(fabric.names, found.tolist(), strict=True):
        by_class.setdefault(of, set()).add(name)
    assert sorted(map(sorted, by_class.values())) == [
        ["L0", "L2", "L3"],
        ["L1"],
        ["L4"],
        ["S0"],
        ["S1"],
        ["S2"],
    ]


def test_a_router_kept_apart_is_equal_to_no_other_one():
    fabric = clos(3, 4)
    apart = [fabric.names.index(name) for name in ("L2", "S1")]
    found = equal.equal_routers(fabric, apart).tolist()
    assert [found.count(found[node]) for node in apart] == [1, 1]
    assert len(set(found)) == 4
    every = planned(fabric, sets.double_links(fabric, None, 0))
    assert counted(planned(fabric, classes(fabric, apart))) == counted(every)


def test_too_many_classes_are_refused(monkeypatch):
    monkeypatch.setattr(equal, "_MOST_CLASSES", 10)
    with pytest.raises(PlanError, match="--doubles N"):
        classes(damaged())
