"""A job on the virtual clock: machines of workers and routers, a network that loses packets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from fared.extensions.ina.plan.model import Capacities, SummingJob, members
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.ina.slots.aggregator import Aggregator
from fared.extensions.ina.slots.packet import decode_header
from fared.extensions.ina.slots.setup import JobSetup, setup_of
from fared.extensions.ina.slots.worker import WorkerMachine
from fared.extensions.ina.trains import trains_of
from tests.ina.clock import VirtualClock

LENGTH = 64
PAYLOAD = 64
VALUES = PAYLOAD // 4


class InvariantError(AssertionError):
    """A worker got a sum that is not the sum, or none in time."""


class _RouterPort:
    def __init__(self, network: VirtualJob, node: int) -> None:
        self._network, self._node = network, node

    def up(self, parent, data) -> None:
        self._network.send(self._node, parent, bytes(data))

    def down(self, router, data) -> None:
        self._network.send(self._node, router, bytes(data))

    def disseminate(self, bits, data) -> None:
        for bfr_id in members(bits):
            self._network.send(self._node, -bfr_id, bytes(data))

    def nack(self, sender, data) -> None:
        self._network.send(self._node, sender, data)


class _WorkerPort:
    def __init__(self, network: VirtualJob, bfr_id: int) -> None:
        self._network, self._bfr_id = network, bfr_id

    def send(self, parent, header, values) -> None:
        self._network.send(-self._bfr_id, parent, header + values.tobytes())

    def result(self, chunk, values, *, again) -> None:
        self._network.check(self._bfr_id, chunk, values, again=again)

    def outdated(self, epoch) -> None:
        pass  # the network installs epochs by its own schedule

    def lacking(self, bits, *, silent) -> None:
        del silent
        self._network.told.append((self._bfr_id, bits))


class VirtualJob(VirtualClock):
    """All machines of a job. ``truth`` are the exact sums; every result is compared with them."""

    def __init__(
        self,
        setup: JobSetup,
        seed: int,
        *,
        loss: float = 0.0,
        double: float = 0.0,
        delay: tuple[float, float] = (1e-3, 1e-3),
        router: Callable[..., Aggregator] = Aggregator,
        worker: Callable[..., WorkerMachine] = WorkerMachine,
    ) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.setup, self.loss, self.double, self.delay = setup, loss, double, delay
        self.packets = 0
        self._router = router
        self.routers: dict[int, Aggregator] = {}
        self.dead: set[int] = set()
        self.workers = {
            bfr_id: worker(bfr_id, _WorkerPort(self, bfr_id)) for bfr_id in setup.workers
        }
        self._put_at = dict.fromkeys(setup.workers, 0.0)
        self.truth: list[np.ndarray] = []
        self.receivers: list[int] = []
        """Who gets the sum of each chunk, by BFR-id; 0: all."""
        self.got: dict[int, dict[int, bytes]] = {bfr_id: {} for bfr_id in setup.workers}
        self.kinds: Counter[int] = Counter()
        self.told: list[tuple[int, int]] = []
        """Which worker was told for whom the job waits, as bits."""
        self.begin(setup, spread=0.0)

    # -- the network --------------------------------------------------------------------------

    def machines(self) -> dict[int, WorkerMachine]:
        return self.workers

    def send(self, source: int, target: int, data: bytes) -> None:
        if source in self.dead:
            return
        self.packets += 1
        self.kinds[decode_header(data).kind] += 1
        copies = 2 if self.rng.random() < self.double else 1
        for _ in range(copies):
            if self.rng.random() >= self.loss:
                later = self.now + self.rng.uniform(*self.delay)
                self.at(later, lambda: self._arrive(source, target, data))

    def _arrive(self, source: int, target: int, data: bytes) -> None:
        if target < 0:
            self.workers[-target].receive(data, self.now)
        elif target in self.routers and target not in self.dead:
            self.routers[target].receive(source, data, self.now)

    # -- the job ------------------------------------------------------------------------------

    def begin(self, setup: JobSetup, spread: float = 0.02) -> None:
        """Start an epoch: each member learns of it at another time."""
        self.setup = setup
        nodes = {node for tree in setup.trees for node in tree.nodes}
        for node in sorted(nodes):
            if node not in self.routers:
                self.routers[node] = self._router(node, _RouterPort(self, node))
        for router in self.routers.values():
            self._later(spread, lambda router=router: router.install(setup))
        for machine in self.workers.values():
            self._later(spread, lambda m=machine: m.install(setup, self.now))

    def _later(self, spread: float, run: Callable[[], object]) -> None:
        if spread:
            self.at(self.now + self.rng.uniform(0, spread), run)
        else:
            run()

    def call(self, chunks: int, slack: float = 0.0, to: int = 0) -> None:
        """Every worker begins an all-reduce of that many chunks, some later than others.

        ``to``: a reduce, to that BFR-id.
        """
        first = len(self.truth)
        parts = {
            bfr_id: [
                np.array([self.rng.randrange(-(1 << 20), 1 << 20) for _ in range(VALUES)], "<i4")
                for _ in range(chunks)
            ]
            for bfr_id in self.workers
        }
        self.receivers += [to] * chunks
        for at in range(chunks):
            self.truth.append(sum(parts[bfr_id][at] for bfr_id in self.workers))
        assert len(self.truth) == first + chunks
        for bfr_id, machine in self.workers.items():

            def put(machine=machine, mine=parts[bfr_id]):
                for values in mine:
                    machine.put(values, receiver=to)
                machine.pump(self.now)

            # A worker's second call follows its first.
            when = max(self._put_at[bfr_id], self.now + self.rng.uniform(0, slack))
            self._put_at[bfr_id] = when
            if slack:
                self.at(when, put)
            else:
                put()

    def check(self, bfr_id: int, chunk: int, values: np.ndarray | None, *, again: bool) -> None:
        receiver = self.receivers[chunk] if chunk < len(self.receivers) else 0
        if (values is None) != (receiver not in {0, bfr_id}):
            raise InvariantError(f"worker {bfr_id}, chunk {chunk}: the sum is for {receiver}")
        if values is None:
            values = np.zeros(0, "<i4")
        elif not np.array_equal(values, self.truth[chunk]):
            raise InvariantError(f"worker {bfr_id}, chunk {chunk}: not the sum")
        known = self.got[bfr_id].setdefault(chunk, values.tobytes())
        if known != values.tobytes():
            raise InvariantError(f"worker {bfr_id}, chunk {chunk}: two results")
        assert again == (chunk in self.got[bfr_id]) or not again

    def run(self, seconds: float = 60.0) -> None:
        """Run until all workers have all results. Raises InvariantError if that takes longer."""
        if not self.run_for(seconds, lambda: self.finished):
            behind = {b: m.next for b, m in self.workers.items()}
            raise InvariantError(f"no end after {seconds} s: {behind} of {len(self.truth)}")

    @property
    def finished(self) -> bool:
        wanted = len(self.truth)
        return all(machine.next == wanted for machine in self.workers.values())


class TrainJob(VirtualJob):
    """What arrives from one sender within 2 ms is taken together, in trains."""

    def __init__(self, *args, **kwargs) -> None:
        self._waiting: dict[tuple[int, int], list[bytes]] = {}
        super().__init__(*args, **kwargs)

    def _arrive(self, source: int, target: int, data: bytes) -> None:
        waiting = self._waiting.setdefault((source, target), [])
        if not waiting:
            self.at(self.now + 0.002, lambda: self._take(source, target))
        waiting.append(data)

    def _take(self, source: int, target: int) -> None:
        for train, step in joined(self._waiting.pop((source, target))):
            if target < 0:
                self.workers[-target].take_train(train, step, self.now)
            elif target in self.routers and target not in self.dead:
                self.routers[target].receive_train(source, train, step, self.now)
        if target < 0:
            self.workers[-target].pump(self.now)


def joined(packets: Iterable[bytes]) -> list[tuple[memoryview, int]]:
    """Packets as the trains in which they come, with the bytes of their packets."""
    trains = trains_of([(len(data), (data,)) for data in packets])
    return [(memoryview(b"".join(data for _, (data,) in train)), train[0][0]) for train in trains]


def setup_for(
    network: Capacities,
    job: SummingJob,
    *,
    epoch: int = 1,
    window: int = 4,
) -> JobSetup:
    """The setup of the planner's trees."""
    found = plan_job(network, job)
    return setup_of(found, job_id=7, epoch=epoch, length=LENGTH, payload=PAYLOAD, window=window)
