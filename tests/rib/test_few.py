"""A few prefixes are selected one advertisement at a time, with the same outcome as by arrays."""

from __future__ import annotations

from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from fared.core.ids import NodeId, parse_prefix
from fared.paths.rib.distances import NO_ROUTE, AdvertiserDistances
from fared.paths.rib.few import take_few
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.rib.selection import Selection, choose
from fared.paths.ted.model import EXTERNAL_TYPES, PathType, PrefixReachability


def told(fields: tuple) -> PrefixReachability:
    """An advertisement; only externals tell of an AS boundary router and the distance to it."""
    prefix, metric, kind, capacity, asbr, distance = fields
    if kind not in EXTERNAL_TYPES:
        asbr, distance = None, 0
    return PrefixReachability(prefix, metric, kind, capacity, asbr=asbr, distance=distance)


_PREFIXES = [parse_prefix(f"10.88.{n}.0/24") for n in range(4)]
_NODES = 5
_PLACES = st.fixed_dictionaries(
    {
        "distance": st.sampled_from([10, 10, 20, NO_ROUTE]),
        "own": st.booleans(),
        "direct": st.booleans(),
        "beyond": st.sampled_from([True, True, False]),
    }
)
_TOLD = st.tuples(
    st.sampled_from(_PREFIXES),
    st.sampled_from([10, 10, 20]),
    st.sampled_from(list(PathType)),
    st.sampled_from([None, None, 1e9, 2e9]),
    st.sampled_from([None, None, NodeId(2)]),
    st.sampled_from([0, 5]),
).map(told)
_ADVERTISED = st.lists(
    st.tuples(st.integers(1, _NODES), st.integers(0, 3), st.none() | _TOLD), max_size=12
)


def distances(places: list[dict]) -> AdvertiserDistances:
    """The routes to the advertisers; one of this router itself is direct, and reached."""
    own = np.array([place["own"] for place in places])
    direct = own | np.array([place["direct"] for place in places])
    distance = np.array([place["distance"] for place in places])
    distance[own] = 0
    distance[direct & (distance == NO_ROUTE)] = 10
    beyond = np.array([place["beyond"] for place in places])
    none = np.zeros(len(places), bool)
    return AdvertiserDistances(distance, own, direct, np.arange(len(places)), beyond, none, none)


@given(
    st.lists(_PLACES, min_size=_NODES + 1, max_size=_NODES + 1),
    st.lists(_ADVERTISED, min_size=1, max_size=4),
)
def test_few_prefixes_are_selected_as_by_arrays(places, batches):
    table, one_by_one, by_arrays = PrefixTable(), Selection(), Selection()
    for number in range(1, _NODES + 1):
        table.advertiser(0, NodeId(number))
    there = distances(places)
    for batch in batches:
        for node, source, item in batch:
            table.put(0, NodeId(node), {source: item})
        changed, size = sorted(table.changed), len(table.prefixes)
        table.changed.clear()
        if not changed:
            continue
        few = take_few(one_by_one, table, there, changed)
        numbers = np.array(changed, np.int64)
        assert few == by_arrays.take(numbers, choose(table, there, numbers), size).tolist()
        found, expected = asdict(one_by_one), asdict(by_arrays)
        for key in ("egress", "crossing"):
            assert found.pop(key) == expected.pop(key)
        assert {k: v.tolist() for k, v in found.items()} == {
            k: v.tolist() for k, v in expected.items()
        }


def test_many_prefixes_or_advertisements_are_selected_by_arrays():
    table = PrefixTable()
    items = [PrefixReachability(parse_prefix(f"10.{n}.0.0/16"), 10) for n in range(40)]
    table.put(0, NodeId(1), dict(enumerate(items)))
    for node in range(2, 40):
        table.put(0, NodeId(node), {0: items[0]})
    there = distances([{"distance": 10, "own": False, "direct": False, "beyond": True}] * 40)
    selection = Selection()
    assert take_few(selection, table, there, list(range(40))) is None
    assert take_few(selection, table, there, [0]) is None
    assert take_few(selection, table, there, [3]) == [3]
    assert selection.egress == {}
    assert selection.key[3] < inf
