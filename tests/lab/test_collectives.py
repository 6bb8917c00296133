"""Collectives, simulated step by step: every rank ends with the right data, and sends the right
number of bytes."""

from __future__ import annotations

import math

import pytest

from fared.extensions.lab.workloads.collectives import COLLECTIVES, ROOT, Schedule, Send, block_size

State = list[list[frozenset[int]]]
"""For each rank and block, whose contributions are summed in it."""

RANKS = (2, 3, 4, 5, 8, 13)


def execute(schedule: Schedule, ranks: int, state: State) -> State:
    """Run the steps; a send takes what its source had before the step began."""
    for step in schedule:
        before = [list(blocks) for blocks in state]
        for send in step:
            assert send.source != send.target
            for block in send.blocks:
                sent = before[send.source][block]
                if send.adds:
                    assert not state[send.target][block] & sent, "nothing is added twice"
                    sent |= state[send.target][block]
                state[send.target][block] = sent
    return state


def own(ranks: int) -> State:
    """Everybody holds a contribution of its own to every block."""
    return [[frozenset({rank})] * ranks for rank in range(ranks)]


def sent_by(schedule: Schedule, ranks: int, message: int) -> list[int]:
    """How many bytes each rank sends in all."""
    total = [0] * ranks
    for send in sends(schedule):
        total[send.source] += send.size(ranks, message)
    return total


def sends(schedule: Schedule) -> list[Send]:
    return [send for step in schedule for send in step]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ["all-reduce-ring", "all-reduce-tree", "all-reduce-ps"])
def test_after_an_all_reduce_everybody_has_the_sum_of_everything(name: str, ranks: int):
    """Each contribution is in each block of each rank, once."""
    state = execute(COLLECTIVES[name](ranks), ranks, own(ranks))
    assert state == [[frozenset(range(ranks))] * ranks] * ranks


@pytest.mark.parametrize("ranks", RANKS)
def test_after_a_reduce_scatter_each_rank_has_the_sum_of_its_block(ranks: int):
    """Block r is summed at rank r."""
    state = execute(COLLECTIVES["reduce-scatter"](ranks), ranks, own(ranks))
    assert all(state[rank][rank] == frozenset(range(ranks)) for rank in range(ranks))


@pytest.mark.parametrize("ranks", RANKS)
def test_after_an_all_gather_everybody_has_every_block(ranks: int):
    """Block r starts at rank r alone."""
    nothing: frozenset[int] = frozenset()
    start = [[frozenset({r}) if b == r else nothing for b in range(ranks)] for r in range(ranks)]
    state = execute(COLLECTIVES["all-gather"](ranks), ranks, start)
    assert state == [[frozenset({block}) for block in range(ranks)]] * ranks


@pytest.mark.parametrize("ranks", RANKS)
def test_a_broadcast_and_a_scatter_bring_the_roots_data_a_reduce_brings_all_to_the_root(ranks: int):
    """Whole to everybody, a block each, and the sum of all."""
    state = execute(COLLECTIVES["broadcast"](ranks), ranks, own(ranks))
    assert state == [[frozenset({ROOT})] * ranks] * ranks
    state = execute(COLLECTIVES["scatter"](ranks), ranks, own(ranks))
    assert all(state[rank][rank] == frozenset({ROOT}) for rank in range(ranks))
    state = execute(COLLECTIVES["reduce"](ranks), ranks, own(ranks))
    assert state[ROOT] == [frozenset(range(ranks))] * ranks


@pytest.mark.parametrize("ranks", RANKS)
def test_in_each_step_of_an_all_to_all_each_pair_exchanges_one_block(ranks: int):
    """One step, every ordered pair once."""
    (step,) = COLLECTIVES["all-to-all"](ranks)
    pairs = {(send.source, send.target) for send in step}
    assert len(step) == len(pairs) == ranks * (ranks - 1)
    assert all(send.blocks == (send.target,) for send in step)


@pytest.mark.parametrize("ranks", RANKS)
def test_collectives_take_the_steps_and_bytes_of_the_textbook(ranks: int):
    """A ring sends 2(N-1)/N of the message from each rank, in 2(N-1) steps; a tree log2 N deep."""
    message = 1000 * ranks
    ring = COLLECTIVES["all-reduce-ring"](ranks)
    assert len(ring) == 2 * (ranks - 1)
    assert sent_by(ring, ranks, message) == [2 * (ranks - 1) * 1000] * ranks
    for name in ("reduce-scatter", "all-gather", "all-to-all"):
        assert sent_by(COLLECTIVES[name](ranks), ranks, message) == [(ranks - 1) * 1000] * ranks
    depth = math.ceil(math.log2(ranks))
    assert len(COLLECTIVES["broadcast"](ranks)) == len(COLLECTIVES["reduce"](ranks)) == depth
    assert len(COLLECTIVES["all-reduce-tree"](ranks)) == 2 * depth
    for name in ("broadcast", "reduce"):
        assert sum(sent_by(COLLECTIVES[name](ranks), ranks, message)) == (ranks - 1) * message
    scatter = sent_by(COLLECTIVES["scatter"](ranks), ranks, message)
    assert scatter == [(ranks - 1) * 1000] + [0] * (ranks - 1)


def test_a_message_that_does_not_divide_evenly_loses_no_byte():
    """The first blocks are a byte larger."""
    assert [block_size(block, 4, 10) for block in range(4)] == [3, 3, 2, 2]
    assert sum(block_size(block, 7, 1_000_003) for block in range(7)) == 1_000_003
