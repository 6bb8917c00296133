"""The ring of workers for jobs without a tree: on the virtual clock, connections that break."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from fared.extensions.ina.client.waits import RingWaits
from fared.extensions.ina.plan.model import bits_of
from fared.extensions.ina.slots.packet import Header, PacketKind, encode_header
from fared.extensions.ina.slots.ring import (
    HELLO_INTERVAL,
    HOSTS,
    RingPlace,
    next_in_ring,
    previous_in_ring,
    ring_of,
)
from fared.extensions.ina.slots.setup import JobSetup
from fared.extensions.ina.slots.worker import WorkerMachine
from tests.ina.clock import VirtualClock
from tests.ina.fabrics import clos, workers
from tests.ina.network import LENGTH, PAYLOAD, VALUES, VirtualJob, setup_for

LINK = 1e-3
BROKEN = 0.3


def job(count: int, epoch: int = 1) -> JobSetup:
    return JobSetup(7, epoch, LENGTH, PAYLOAD, tuple(range(1, count + 1)), ())


class _Host:
    """A worker and its place in the ring."""

    def __init__(self, ring: Ring, bfr_id: int) -> None:
        self._ring, self.bfr_id = ring, bfr_id
        self.place = RingPlace(bfr_id, self)
        self.machine = WorkerMachine(bfr_id, self)
        self.results: dict[int, bytes] = {}
        self.told: list[int] = []
        self.waits = RingWaits()

    def forward(self, frame: bytes) -> None:
        self._ring.forward(self.bfr_id, frame)

    def backward(self, frame: bytes) -> None:
        self._ring.backward(self.bfr_id, frame)

    def deliver(self, packet: bytes) -> None:
        self._ring.soon(0.0, lambda: self.machine.receive(packet, self._ring.now))

    def send(self, parent, header, values) -> None:
        assert parent == HOSTS + self.bfr_id
        self.place.put(header + values.tobytes(), self._ring.now)

    def result(self, chunk, values, *, again) -> None:
        values = np.zeros(0) if values is None else values
        assert self.results.setdefault(chunk, values.tobytes()) == values.tobytes()

    def outdated(self, epoch) -> None:
        raise AssertionError("workers learn of epochs from their routers")

    def lacking(self, bits, *, silent) -> None:
        self.told.append(bits)
        self.waits.told(bits, self._ring.now, silent=silent)


class Ring(VirtualClock):
    """All hosts; frames of a link arrive in order, and what is on its way is lost if it breaks."""

    def __init__(self, count: int, seed: int = 1) -> None:
        super().__init__()
        self.frames = 0
        self._rng = random.Random(seed)
        self._last: dict[int, float] = {}
        self._unbroken: dict[int, int] = {}
        self.hosts = {bfr_id: _Host(self, bfr_id) for bfr_id in range(1, count + 1)}
        self.frozen: set[int] = set()
        self.setup = job(count)
        self.begin(ring_of(self.setup))

    def begin(self, setup: JobSetup) -> None:
        for host in self.hosts.values():
            host.place.install(setup)
        for host in self.hosts.values():
            host.machine.install(setup, self.now)

    def machines(self) -> dict[int, WorkerMachine]:
        return {at: host.machine for at, host in self.hosts.items() if at not in self.frozen}

    def soon(self, seconds: float, run: Callable[[], object]) -> None:
        self.at(self.now + seconds, run)

    def forward(self, source: int, frame: bytes) -> None:
        self.frames += 1
        target = next_in_ring(self.setup, source)
        connection = self._unbroken.get(source, 0)
        at = max(self._last.get(source, 0.0), self.now + self._rng.uniform(LINK, 2 * LINK))
        self._last[source] = at

        def arrive() -> None:
            if self._unbroken.get(source, 0) == connection and target not in self.frozen:
                self.hosts[target].place.take(memoryview(frame), self.now)

        self.soon(at - self.now, arrive)

    def backward(self, source: int, frame: bytes) -> None:
        target = previous_in_ring(self.setup, source)
        if target not in self.frozen:
            self.soon(LINK, lambda: self.hosts[target].place.take_back(memoryview(frame)))

    def say_hello(self) -> None:
        """All that are not frozen, now and every interval."""
        for at, host in self.hosts.items():
            if at not in self.frozen:
                host.place.tick(self.now)
        self.soon(HELLO_INTERVAL, self.say_hello)

    def break_link(self, source: int) -> None:
        self._unbroken[source] = self._unbroken.get(source, 0) + 1

    def put(self, values: dict[int, list[np.ndarray]], to: int = 0) -> None:
        for bfr_id, chunks in values.items():
            for chunk in chunks:
                self.hosts[bfr_id].machine.put(chunk, receiver=to)
            self.hosts[bfr_id].machine.pump(self.now)

    def done(self, chunks: int) -> Callable[[], bool]:
        return lambda: all(host.machine.next == chunks for host in self.hosts.values())


def numbers(count: int, chunks: int, seed: int = 5) -> dict[int, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return {
        bfr_id: [rng.integers(-(1 << 20), 1 << 20, VALUES, np.int32) for _ in range(chunks)]
        for bfr_id in range(1, count + 1)
    }


def sums(values: dict[int, list[np.ndarray]]) -> dict[int, bytes]:
    return {at: sum(parts).tobytes() for at, parts in enumerate(zip(*values.values(), strict=True))}


@pytest.mark.parametrize("count", [2, 3, 8, 40])
def test_all_workers_get_all_sums_over_a_ring(count):
    ring, values = Ring(count), numbers(count, 30)
    ring.put(values)
    assert ring.run_for(60, ring.done(30))
    assert all(host.results == sums(values) for host in ring.hosts.values())


def test_each_chunk_takes_two_passes_around_the_ring_and_no_more():
    """A partial sum over n - 1 links, the sum over n - 1 links; beside them the SYNC of 8 bytes."""
    ring = Ring(8)
    ring.run_for(1)
    before = ring.frames
    ring.put(numbers(8, 100))
    assert ring.run_for(60, ring.done(100))
    repeated = sum(host.machine.counters["repeated"] for host in ring.hosts.values())
    assert repeated == 0
    assert ring.frames - before == 100 * 2 * 7


@pytest.mark.parametrize("seed", range(4))
def test_what_is_lost_with_a_connection_is_repeated(seed):
    """Of all-reduces, and of reduces to one of the workers."""
    ring, values = Ring(5, seed), numbers(5, 60)
    ring.put(values, to=seed)
    rng = random.Random(seed)
    for _ in range(6):
        ring.run_for(0.02, ring.done(60))
        ring.break_link(rng.randrange(1, 6))
    assert ring.run_for(60, ring.done(60))
    nothing = dict.fromkeys(range(60), b"")
    for bfr_id, host in ring.hosts.items():
        assert host.results == (sums(values) if seed in {0, bfr_id} else nothing)


@pytest.mark.parametrize("chunks", [1, 3, 20])
def test_a_worker_that_is_frozen_is_known_to_all_others(chunks):
    """Each place tells whose values it has not seen; the frozen worker is in all of them."""
    ring = Ring(6)
    ring.run_for(1)
    ring.frozen.add(4)
    values = numbers(6, chunks)
    del values[4]
    ring.put(values)
    assert not ring.run_for(5)
    for bfr_id in (1, 2, 3, 5, 6):
        told = ring.hosts[bfr_id].told
        common = (1 << 6) - 1
        for bits in told:
            common &= bits
        assert told, bfr_id
        assert common == bits_of([4])


@pytest.mark.parametrize("frozen", [1, 2, 4])
def test_a_worker_that_is_frozen_at_any_moment_of_a_call_is_named_by_all_others(frozen):
    """Perhaps only results were to pass it: those behind it do not begin the next call."""
    for milliseconds in range(1, 60, 2):
        ring = Ring(4, milliseconds)
        ring.say_hello()
        ring.run_for(1)
        ring.put(numbers(4, 6))
        ring.run_for(milliseconds / 1e3)
        ring.frozen.add(frozen)
        for bfr_id, host in ring.hosts.items():  # who has all results begins the next call
            if bfr_id != frozen and host.machine.next == 6:
                ring.put({bfr_id: numbers(4, 6)[bfr_id]})
        assert not ring.run_for(4, ring.done(12))
        named = {at: h.waits.lately(ring.now) for at, h in ring.hosts.items() if at != frozen}
        assert set(map(tuple, named.values())) == {(frozen,)}, (milliseconds, named)


def test_a_worker_that_was_away_itself_tells_of_nobody():
    ring = Ring(3)
    ring.say_hello()
    ring.run_for(1)
    host = ring.hosts[2]
    before = len(host.told)
    host.place.tick(ring.now + 30)
    assert host.place.aggregator.counters["silent"] == 0
    assert len(host.told) == before


def test_a_worker_that_computes_is_told_by_its_own_place():
    ring = Ring(4)
    values = numbers(4, 5)
    del values[2]
    ring.put(values)
    assert not ring.run_for(3)
    assert all(bits_of([2]) in ring.hosts[bfr_id].told for bfr_id in (1, 3, 4))


def test_a_tree_gives_the_bits_of_a_ring_that_goes_on_where_it_ended():
    """Workers have different chunks when the epoch begins: the least one is summed again."""
    network = VirtualJob(setup_for(clos(spines=2, leaves=4), workers(4)), 3, loss=0.2)
    network.call(50)
    network.run_for(0.05)
    behind = {bfr_id: machine.next for bfr_id, machine in network.workers.items()}
    assert max(behind.values()) < 50
    ring = Ring(4)
    for bfr_id, machine in network.workers.items():
        host = ring.hosts[bfr_id]
        host.machine, machine._port = machine, host
    ring.begin(ring_of(job(4, epoch=2)))
    assert ring.run_for(60, ring.done(50))
    assert {len(host.results) + behind[bfr_id] for bfr_id, host in ring.hosts.items()} >= {50}
    for host in ring.hosts.values():
        assert all(network.truth[at].tobytes() == found for at, found in host.results.items())


def test_malformed_frames_and_bits_of_nobody_change_nothing():
    ring = Ring(3)
    host = ring.hosts[2]
    before = dict(host.place.aggregator.counters)
    result = encode_header(Header(PacketKind.RESULT, 7, 0, 1, 0, 7, 0, length=LENGTH))
    for frame in (b"", b"\1", b"\1\0\1x", b"\2\0\0" + result, b"\1\0\10" + b"\xff" * 8 + result):
        host.place.take(memoryview(frame), 0.0)
    for frame in (b"", b"\0\0\0" + result, b"\1\0\10"):
        host.place.take_back(memoryview(frame))
    counters = host.place.aggregator.counters
    assert counters["malformed-frame"] - before.get("malformed-frame", 0) == 7
