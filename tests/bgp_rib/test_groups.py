"""Adj-RIBs-In: prefixes with equal paths are a group, whatever happened before."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_in import AdjRibIn
from tests.bgp_rib.routers import GBPS, attributes, nets, peer

HOP = BgpNextHop(4, 1)
PREFIXES = nets(6)


def table(*numbers: int) -> AdjRibIn:
    found = AdjRibIn()
    for number in numbers:
        found.add(peer(number))
    return found


def learn(rib: AdjRibIn, number: int, prefixes, gbps: float | None = 100) -> None:
    rib.announce(number, prefixes, attributes(65000 + 100 * number, gbps=gbps), HOP)


def regroup(rib: AdjRibIn, limit: int = 1000):
    done = rib.regroup(limit)
    while not rib.settled:
        rib.regroup(limit)
    return done


def groups(rib: AdjRibIn) -> set[frozenset]:
    return {frozenset(rib.prefixes[n] for n in some) for some in rib.members.values()}


_prefixes = st.lists(st.sampled_from(PREFIXES), min_size=1, unique=True)
_actions = st.one_of(
    st.tuples(st.just("announce"), st.integers(1, 5), _prefixes, st.sampled_from([1, 2, None])),
    st.tuples(st.just("withdraw"), st.integers(1, 5), _prefixes),
    st.tuples(st.just("lose"), st.integers(1, 5)),
    st.tuples(st.just("mark"), st.integers(1, 5)),
    st.tuples(st.just("end"), st.integers(1, 5)),
    st.tuples(st.just("regroup"), st.integers(1, 4)),
    st.tuples(st.just("sweep")),
)


class Model:
    """The same as a dictionary of paths, by neighbor and prefix."""

    def __init__(self) -> None:
        self.rib = AdjRibIn()
        self.known: set[int] = set()
        self.paths: dict = {}
        self.stale: set = set()

    def announce(self, number, prefixes, gbps) -> None:
        if number not in self.known:
            self.known.add(number)
            self.rib.add(peer(number))
        learn(self.rib, number, prefixes, gbps)
        keys = {(number, prefix) for prefix in prefixes}
        self.paths.update(dict.fromkeys(keys, gbps))
        self.stale -= keys

    def withdraw(self, number, prefixes) -> None:
        self.rib.withdraw(number, prefixes)
        self._drop({(number, prefix) for prefix in prefixes})

    def lose(self, number) -> None:
        self.known.discard(number)
        self.rib.lose(number)
        self._drop({key for key in self.paths if key[0] == number})

    def mark(self, number) -> None:
        self.rib.mark_stale(number)
        self.stale |= {key for key in self.paths if key[0] == number}

    def end(self, number) -> None:
        old = {key for key in self.stale if key[0] == number}
        assert self.rib.end_of_rib(number) == len(old)
        self._drop(old)

    def _drop(self, keys) -> None:
        self.stale -= keys
        self.paths = {key: gbps for key, gbps in self.paths.items() if key not in keys}

    def row(self, prefix) -> frozenset:
        return frozenset((n, gbps) for (n, p), gbps in self.paths.items() if p == prefix)


@settings(max_examples=60, deadline=None)
@given(st.lists(_actions, max_size=40))
def test_groups_are_those_of_a_table_made_anew(actions):
    model = Model()
    rib = model.rib
    for name, *values in actions:
        if name in ("regroup", "sweep"):
            getattr(rib, name)(*values)
        elif name == "announce" or values[0] in model.known:
            getattr(model, name)(*values)
    regroup(rib, 2)
    rows: dict = {}
    for prefix in PREFIXES:
        rows.setdefault(model.row(prefix), set()).add(prefix)
    rows.pop(frozenset(), None)
    assert groups(rib) == {frozenset(some) for some in rows.values()}
    for group, some in rib.members.items():
        paths = [(one.peer.number, one.path.bandwidth) for one in rib.candidates(group)]
        row = {(number, value and round(value / GBPS)) for number, value in paths}
        assert row == model.row(rib.prefixes[min(some)])


def test_a_group_that_changes_as_a_whole_remains_the_same_group():
    rib = table(1, 2)
    learn(rib, 1, PREFIXES)
    learn(rib, 2, PREFIXES)
    first = regroup(rib)
    learn(rib, 1, PREFIXES, 50)
    done = regroup(rib)
    assert (done.changed, done.gone, done.moved) == (first.changed, set(), [])
    learn(rib, 1, PREFIXES[:2], 25)
    done = regroup(rib)
    ((before, after, numbers),) = done.moved
    assert ({before}, {after}, len(numbers)) == (first.changed, done.changed, 2)


def test_what_is_announced_again_without_change_costs_nothing():
    rib = table(1)
    learn(rib, 1, PREFIXES)
    regroup(rib)
    learn(rib, 1, PREFIXES)
    rib.withdraw(1, nets(1, 0x0B000000))
    assert rib.settled


@pytest.mark.rfc("RFC 4724 §4.2")
def test_stale_paths_go_at_the_end_of_rib_unless_they_came_again():
    rib = table(1)
    learn(rib, 1, PREFIXES)
    rib.mark_stale(1)
    learn(rib, 1, PREFIXES[:4])
    assert (rib.end_of_rib(1), rib.count(1)) == (2, 4)
    assert rib.end_of_rib(1) == 0


def test_prefixes_and_paths_are_forgotten_only_when_no_neighbor_knows_them():
    rib = table(1)
    learn(rib, 1, PREFIXES)
    regroup(rib)
    rib.withdraw(1, PREFIXES)
    regroup(rib)
    sent = np.zeros(8, np.int32)
    sent[0] = 1
    rib.sweep([sent])
    assert (len(rib), len(rib.paths)) == (1, 0)
    learn(rib, 1, nets(9, 0x0B000000))
    regroup(rib)
    assert groups(rib) == {frozenset(nets(9, 0x0B000000))}
    assert rib.prefixes[0] == PREFIXES[0]


def test_a_path_and_a_prefix_of_many_neighbors_take_four_bytes():
    """Rows of numbers: 64 neighbors with 2,000 prefixes are 128,000 paths."""
    prefixes = nets(2000)
    tracemalloc.start()
    try:
        rib = table(*range(1, 65))
        for number in range(1, 65):
            for group in range(0, 2000, 200):
                own = attributes(65000 + 100 * number, gbps=1 + group)
                rib.announce(number, prefixes[group : group + 200], own, HOP)
        regroup(rib, 5000)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < 2e6


def test_neighbors_that_come_and_go_without_a_path_take_no_memory():
    rib = table(1)
    learn(rib, 1, PREFIXES)
    regroup(rib)
    before = rib._table.shape
    for _ in range(100):
        rib.add(peer(2))
        rib.lose(2)
    assert rib._table.shape == before
