"""What is joined toward several nodes stays where nothing but lost edges differs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fared.core.ids import parse_prefix
from fared.paths.rib import area
from fared.paths.rib.contracted import equal_without
from fared.paths.ted.model import PrefixReachability
from tests.ted.fabrics import AREA, three_stage

_SHARED = parse_prefix("10.99.0.0/24")


@pytest.mark.parametrize("size", [9, 5000])
@pytest.mark.parametrize("cut", [(), (0,), (3,), (0, 8), (3, 4, 7), (1, -1)])
def test_values_are_equal_if_only_the_cut_edges_are_gone(size, cut):
    before = np.arange(1.0, size + 1)
    before[5] = np.nan
    edges = tuple(edge % size for edge in cut)
    after = np.delete(before, edges)
    assert equal_without(before, after, edges)
    assert not equal_without(before, after[1:], edges)
    for place in (0, len(after) // 2, len(after) - 1):
        other = after.copy()
        other[place] = 0.5
        assert not equal_without(before, other, edges)


def test_values_of_many_edges_are_compared_without_copies_of_them():
    before = np.ones(100_000)
    after = np.delete(before, (7, 70_000))
    tracemalloc.start()
    try:
        assert equal_without(before, after, (7, 70_000))
        assert tracemalloc.get_traced_memory()[1] < before.nbytes / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("slower", [False, True])
def test_capacities_are_compared_only_where_several_nodes_are_joined_and_one_changed(
    monkeypatch, shared, slower
):
    compared: list[int] = []

    def counted(before, after, cut):
        compared.append(len(before))
        return equal_without(before, after, cut)

    monkeypatch.setattr(area, "equal_without", counted)
    fabric = three_stage(2, 4)
    for leaf in ("L2", "L3") if shared else ():
        fabric.prefixes[leaf].append(PrefixReachability(_SHARED, 10, capacity=4e9))
    solver = fabric.solver("L1")
    solver.solve()
    fabric.cut("L4", "S1")
    if slower:
        fabric.limit("L4", "S2", 100.0)
    solver.put_block(AREA, fabric.id("L4"), fabric.block("L4"))
    assert solver.solve().spf_ran
    assert len(compared) == (shared and slower)
