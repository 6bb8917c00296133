"""The last records as bytes."""

from __future__ import annotations

import tracemalloc

import cloudpickle
import msgspec

from fared.router.convergence import PackedRing


class Run(msgspec.Struct, frozen=True, array_like=True):
    """A record of numbers and names."""

    at: float
    causes: tuple[str, ...]
    values: tuple[float, ...] = ()


def test_a_ring_is_a_sequence_of_the_last_records():
    ring, given = PackedRing(Run, 3), [Run(number / 7, (f"lsp {number}",)) for number in range(5)]
    assert not ring
    for run in given:
        ring.append(run)
    assert [*ring] == given[2:]
    assert [*reversed(ring)] == given[:1:-1]
    assert (ring[0], ring[-1], ring[1:], len(ring)) == (given[2], given[4], given[3:], 3)


def test_records_take_little_memory():
    ring = PackedRing(Run, 256)
    tracemalloc.start()
    for number in range(256):
        ring.append(Run(number / 7, (f"lsp {number}",), tuple([number / n for n in range(1, 13)])))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 256 * 240  # as objects 780


def test_a_ring_can_be_part_of_a_state_of_a_recording():
    ring = PackedRing(Run, 3)
    ring.append(Run(0.5, ("link lost",)))
    assert [*cloudpickle.loads(cloudpickle.dumps(ring))] == [*ring]
