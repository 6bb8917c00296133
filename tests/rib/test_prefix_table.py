"""The table of advertised prefixes: at any time its rows are the advertised prefixes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fared.core.ids import NodeId, ipv4_prefix
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.rib.rows import NONE, AdvertisementRows, metrics, path_types
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.model import PathType, PrefixReachability

NODES = [NodeId(n) for n in (1, 2, 3)]
PREFIXES = [ipv4_prefix((10 << 24) + (n << 8), 24) for n in range(3)]
_TYPES = [PathType.INTRA_AREA, PathType.INTER_AREA, PathType.EXTERNAL_1, PathType.EXTERNAL_2]
_ITEMS = [
    PrefixReachability(
        prefix,
        metric,
        kind,
        capacity,
        asbr=asbr,
        distance=7 if metric == 4 and asbr else 0,
        tag=tag,
    )
    for prefix in PREFIXES
    for metric, kind in zip((1, 2, 3, 4), _TYPES, strict=True)
    for capacity in (None, 1e9)
    for tag in ((0, 77, 0xFFFFFFFF) if metric == 2 else (0,))
    for asbr in ((None, NodeId(9)) if kind >= PathType.EXTERNAL_1 else (None,))
]
_OF_AN_ASBR = next(item for item in _ITEMS if item.asbr is not None)
_CHANGES = st.dictionaries(st.integers(0, 3), st.none() | st.sampled_from(_ITEMS), max_size=4)


def rows(table: PrefixTable, at: np.ndarray) -> list[tuple]:
    """Rows of the arrays in words, in an order of their own."""
    read = table.read(at)
    return sorted(
        (
            table.prefixes[number],
            table.advertisers[advertiser],
            metric,
            kind,
            capacity,
            str(None if asbr == NONE else table.advertisers[asbr]),
        )
        for number, advertiser, metric, kind, capacity, asbr in zip(
            read.number.tolist(),
            read.advertiser.tolist(),
            metrics(read.key).tolist(),
            path_types(read.key).tolist(),
            read.capacity.tolist(),
            read.asbr.tolist(),
            strict=True,
        )
    )


def said(advertised: dict) -> list[tuple]:
    """The same of what was put."""
    return sorted(
        (
            item.prefix,
            (0, node),
            item.metric,
            int(item.path_type),
            float("inf") if item.capacity is None else item.capacity,
            str(None if item.asbr is None else (0, item.asbr)),
        )
        for (node, _), item in advertised.items()
    )


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(NODES), _CHANGES, st.booleans(), st.booleans()), max_size=12)
)
@example(  # the first advertiser leaves, and the numbers of the others change
    [
        (NODES[0], {0: _ITEMS[0]}, False, False),
        (NODES[1], {0: _OF_AN_ASBR}, False, False),
        (NODES[0], {0: None}, False, False),
        (NODES[2], {}, False, True),
    ]
)
def test_rows_are_what_is_advertised_however_often_they_are_read(steps):
    """Sources come, change their prefix and go; rows are freed and taken again before any look.

    They may be numbered anew in between.
    """
    table, advertised = PrefixTable(), {}
    for node, changes, look, anew in steps:
        if anew and advertised:
            table = table.renumbered()
            assert table.size == len(advertised)
            assert len(table.prefixes) == len({item.prefix for item in advertised.values()})
        table.put(0, node, changes)
        for source, item in changes.items():
            advertised.pop((node, source), None)
            if item is not None:
                advertised[node, source] = item
        if look:
            assert len(table.read(np.arange(table.size)).key) == table.size
    everything = table.rows_of(list(range(len(table.prefixes))))
    assert rows(table, everything) == said(advertised)
    used = table.read(np.arange(table.size)).advertiser.nonzero()[0]
    assert sorted(used.tolist()) == sorted(everything.tolist())
    told = {(node, source): item for (_, node), source, item in table.advertised()}
    assert told == advertised


@pytest.mark.parametrize("held", [10, 5000])
def test_one_changed_capacity_writes_one_row_whatever_is_held(held, monkeypatch):
    written: list[int] = []
    real = AdvertisementRows.write

    def counted(self, again, advertiser, numbers, new):
        written.append(len(numbers))
        real(self, again, advertiser, numbers, new)

    table = PrefixTable()
    items = {n: PrefixReachability(ipv4_prefix((20 << 24) + (n << 8), 24), 5) for n in range(held)}
    monkeypatch.setattr(AdvertisementRows, "write", counted)
    assert table.put(0, NODES[0], items) is ChangeKind.PREFIX
    assert table.size == held
    changed = PrefixReachability(items[3].prefix, 5, capacity=1e9)
    assert table.put(0, NODES[0], {3: changed}) is ChangeKind.ADVERTISED
    rows = table.rows_of([table.number(changed.prefix)])
    assert table.read(rows).capacity.tolist() == [1e9]
    assert written == [held, 1]
    assert table.size == held


def test_withdrawing_all_prefixes_renumbers_the_rest_a_few_times_only():
    """Each time costs as much as all that are left."""
    table, held = PrefixTable(), 40_000
    items = {n: PrefixReachability(ipv4_prefix((10 << 24) + (n << 8), 24), 10) for n in range(held)}
    table.put(0, NODES[0], items)
    renumbered = []
    for first in range(0, held, 500):
        table.put(0, NODES[0], dict.fromkeys(range(first, first + 500)))
        compact = table.compacted()
        if compact is not None:
            table = compact
            renumbered.append(len(table.prefixes))
    assert renumbered == sorted(renumbered, reverse=True)
    assert 0 < len(renumbered) <= 4
    assert len(table.prefixes) <= 4096 + 500


def test_a_node_that_only_withdraws_is_no_advertiser():
    """An LSA that comes and goes between two computations ended the daemon otherwise."""
    table = PrefixTable()
    table.put(0, NODES[0], {"a": _ITEMS[0]})
    known = list(table.advertisers)
    assert table.put(0, NODES[1], {"b": None}) is ChangeKind.NONE
    assert table.advertisers == known
