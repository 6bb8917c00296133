"""The collectives of AI training as schedules of sends between ranks, step by step.

A collective runs over ranks 0 to N-1, each with a buffer of N blocks. A schedule is a sequence of
steps; all sends of a step start together, and a step begins when the previous one has been received
everywhere. Blocks are named, not only counted, so that a test can execute a schedule and check the
data of every rank. This module is pure: the workload assigns hosts to ranks.

Message sizes are those of the usual benchmarks: of the buffer each rank holds at the end of an
all-reduce, a broadcast or an all-gather, and at its start in a reduce, a reduce-scatter, a scatter
(at the root) or an all-to-all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

ROOT = 0
"""The rank that broadcasts and scatters, and that receives the result of a reduce."""


@dataclass(frozen=True)
class Send:
    """One rank sends blocks to another, which adds them to its own or replaces its own.

    A block is named by its place in the receiver's buffer. In an all-to-all and a scatter it is the
    sender's block for the receiver; everywhere else both sides use the same name.
    """

    source: int
    target: int
    blocks: tuple[int, ...]
    adds: bool = False

    def size(self, ranks: int, message: int) -> int:
        """Return its size in bytes, for a message size and a number of ranks."""
        return sum(block_size(block, ranks, message) for block in self.blocks)


Step = tuple[Send, ...]
Schedule = tuple[Step, ...]


def block_size(block: int, ranks: int, message: int) -> int:
    """Return the bytes of one of N blocks; the first ones take the remainder."""
    return message // ranks + (block < message % ranks)


def all_reduce_ring(ranks: int) -> Schedule:
    """Return 2(N-1) steps of one block to the next rank: first sums travel, then results."""
    return reduce_scatter(ranks) + all_gather(ranks)


def reduce_scatter(ranks: int) -> Schedule:
    """Return N-1 steps round the ring, after which rank r holds the sum of block r."""
    return tuple(
        tuple(
            Send(rank, (rank + 1) % ranks, ((rank - step - 1) % ranks,), adds=True)
            for rank in range(ranks)
        )
        for step in range(ranks - 1)
    )


def all_gather(ranks: int) -> Schedule:
    """Return N-1 steps round the ring: block r of rank r reaches all."""
    return tuple(
        tuple(Send(rank, (rank + 1) % ranks, ((rank - step) % ranks,)) for rank in range(ranks))
        for step in range(ranks - 1)
    )


def all_reduce_tree(ranks: int) -> Schedule:
    """Return a reduce to the root and a broadcast from it."""
    return reduce(ranks) + broadcast(ranks)


def all_reduce_server(ranks: int) -> Schedule:
    """Return two steps: all send their arrays to the root, which sends all of them the sum."""
    whole = tuple(range(ranks))
    others = [rank for rank in range(ranks) if rank != ROOT]
    return (
        tuple(Send(rank, ROOT, whole, adds=True) for rank in others),
        tuple(Send(ROOT, rank, whole) for rank in others),
    )


def broadcast(ranks: int) -> Schedule:
    """Return a binomial tree from the root: after each step twice as many ranks have it."""
    return tuple(
        tuple(
            Send(rank, rank + distance, tuple(range(ranks)))
            for rank in range(distance)
            if rank + distance < ranks
        )
        for distance in _doublings(ranks)
    )


def reduce(ranks: int) -> Schedule:
    """Return the tree of the broadcast, run backwards and adding."""
    return tuple(
        tuple(Send(send.target, send.source, send.blocks, adds=True) for send in step)
        for step in reversed(broadcast(ranks))
    )


def scatter(ranks: int) -> Schedule:
    """Return one step: the root sends each rank its block."""
    return (tuple(Send(ROOT, rank, (rank,)) for rank in range(ranks) if rank != ROOT),)


def all_to_all(ranks: int) -> Schedule:
    """Return one step: every rank sends a block to every other."""
    return (
        tuple(
            Send(rank, (rank + shift) % ranks, ((rank + shift) % ranks,))
            for shift in range(1, ranks)
            for rank in range(ranks)
        ),
    )


def _doublings(ranks: int) -> Iterator[int]:
    distance = 1
    while distance < ranks:
        yield distance
        distance *= 2


COLLECTIVES: Mapping[str, Callable[[int], Schedule]] = MappingProxyType(
    {
        "all-reduce-ring": all_reduce_ring,
        "all-reduce-tree": all_reduce_tree,
        "all-reduce-ps": all_reduce_server,
        "all-gather": all_gather,
        "reduce-scatter": reduce_scatter,
        "broadcast": broadcast,
        "reduce": reduce,
        "scatter": scatter,
        "all-to-all": all_to_all,
    }
)
"""By name: the function that makes the schedule for a number of ranks, at least two."""
