"""Two trees compared row by row: what counts as slower, and that a tree equals itself."""

from __future__ import annotations

import random

import pytest

from bench import compare
from bench.rows import compared


def rounds(ratio: float, count: int = 3, size: int = 40) -> list[list[compare.Pair]]:
    """Pairs of a row that takes ``ratio`` times as long, on a machine whose speed varies."""
    chance = random.Random(1)
    found = []
    for _ in range(count):
        speeds = [chance.uniform(1, 5) for _ in range(size)]
        found.append([(s, s * ratio * chance.uniform(0.9, 1.1)) for s in speeds])
    return found


def test_a_row_is_slower_only_beyond_the_limit_and_in_every_round():
    """A machine that varies fivefold hides neither; one fast round is a doubt."""
    assert compare.summary("row", rounds(1.3))["verdict"] == "slower"
    assert compare.summary("row", rounds(1.05))["verdict"] == ""
    assert compare.summary("row", [*rounds(1.3), *rounds(1.0, 1)])["verdict"] == ""


def test_the_interval_contains_the_median_of_95_in_100_samples():
    """Samples of a known median."""
    chance = random.Random(2)
    hits = 0
    for _ in range(1000):
        low, high = compare.interval([chance.gauss(1.0, 0.2) for _ in range(40)])
        hits += low <= 1.0 <= high
    assert 940 <= hits <= 995


def test_a_tree_compared_with_itself_has_the_same_rows_and_none_is_slower():
    """The smallest fabric, in a few bursts: each row of the section is there once."""
    found = compare.one_round(compare.ROOT, "^4x8", 0.001, counted=False)
    assert {"4x8 blocks taken in", "4x8 leaf: FULL", "4x8 leaf: capacity change"} <= found.keys()
    assert all(old > 0 and new > 0 for pairs in found.values() for old, new in pairs)


def test_rates_of_a_section_are_compared_by_the_time_of_one():
    """More groups a second is faster, more milliseconds is slower; empty rows are left out."""
    rates = [{"name": unit, "ours": 4.0, "unit": unit} for unit in compare.RATES]
    found = compare.figures(
        [*rates, compared("time", 4.0, 2.0, "ms"), compared("none", None, 2.0, "ms")]
    )
    assert found == {**dict.fromkeys(compare.RATES, 0.25), "time": 4.0}
    assert found.keys() >= {"groups/s", "/s"}


@pytest.mark.parametrize("ours", [4.0, 1.0])
@pytest.mark.parametrize("more_is_better", [True, False])
def test_the_ratio_of_a_row_says_which_way_is_better(ours: float, more_is_better: bool):
    row = compared("part, processes", ours, 2.0, "", more_is_better=more_is_better)
    assert compare.more_is_better(row) == more_is_better
    row = {"name": "by packets, part of the bound of 3 s", "ours": ours, "unit": ""}
    assert compare.more_is_better(row)
