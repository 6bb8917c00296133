"""An elastic job on the virtual clock: workers end, are taken for lost, and come back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np
from msgspec.structs import replace

from fared.extensions.ina.plan.model import Capacities, SummingJob
from fared.extensions.ina.slots.setup import JobSetup
from fared.extensions.ina.slots.worker import WorkerMachine
from tests.ina.fabrics import clos, leaf
from tests.ina.network import VALUES, InvariantError, VirtualJob, _WorkerPort, setup_for

WORKERS = (1, 2, 3, 4)
Life = tuple[int, int]
"""A process: BFR-id, and how many of its rank were before it."""


class Caller:
    """A process that makes its calls one after the other."""

    def __init__(self, job: ElasticJob, life: Life, machine: WorkerMachine) -> None:
        self.life, self.machine = life, machine
        self.returning = life[1] > 0
        self._job, self._call, self._target = job, 0, 0
        self._phase = self._restarts = 0
        self.results: dict[int, bytes] = {}
        """Of the present call, by chunk."""
        self.ended: dict[int, tuple[int, bytes]] = {}
        """By call: the workers that it tells, and the sums."""

    @property
    def done(self) -> bool:
        return not self._target and self._call == len(self._job.sizes)

    def go_on(self) -> None:
        machine, job = self.machine, self._job
        if self.returning and machine.running:
            self._call, self.returning = job.starts.index(machine.end), False
        if self._target and machine.next >= self._target:
            self._target, self._phase = 0, self._phase + 1
            if self._phase == len(job.phases(self._call)):
                chunks = range(job.starts[self._call], machine.end - 1)
                sums = b"".join(self.results[chunk] for chunk in chunks)
                self.ended[self._call] = machine.summed_over, sums
                self._phase, self._call = 0, self._call + 1
        if self._restarts != machine.restarts:
            self._restarts = machine.restarts
            self._target = self._phase = 0
        if not self._target and not self.done and not self.returning:
            self._begin_phase()

    def _begin_phase(self) -> None:
        machine, job = self.machine, self._job
        if self._phase == 0:
            assert machine.end == job.starts[self._call]
            self.results.clear()
        phases = job.phases(self._call)
        for values in job.inputs(self.life, self._call)[phases[self._phase]]:
            machine.put(values)
        if self._phase == len(phases) - 1:
            machine.close_call()
        self._target = machine.end
        machine.pump(job.now)


class ElasticJob(VirtualJob):
    """``sizes``: the chunks of each call, the same at all workers."""

    def __init__(self, sizes: list[int], seed: int, *, window: int = 3, **network) -> None:
        self.sizes, self._window = sizes, window
        self.starts = [*accumulate((size + 1 for size in sizes), initial=0)]
        self._present, self._since = set(WORKERS), 1
        self._lives = dict.fromkeys(WORKERS, 0)
        self.callers: dict[int, Caller] = {}
        self.former: list[Caller] = []
        first = self._setup(1, clos(2, 4))
        self.times: dict[int, dict[int, Life]] = {1: self._living()}
        """The workers of each time at which they changed, by its epoch."""
        super().__init__(first, seed, **network)
        for bfr_id, machine in self.workers.items():
            self.callers[bfr_id] = Caller(self, (bfr_id, 0), machine)

    def _setup(self, epoch: int, network: Capacities) -> JobSetup:
        job = SummingJob("job", {bfr_id: leaf(bfr_id) for bfr_id in sorted(self._present)})
        made = setup_for(network, job, epoch=epoch, window=self._window)
        return replace(made, elastic=True, since=self._since)

    def _living(self) -> dict[int, Life]:
        return {bfr_id: (bfr_id, self._lives[bfr_id]) for bfr_id in self._present}

    def phases(self, call: int) -> list[slice]:
        """A call of floats has its exponents first: chunks that are done before others are put."""
        size = self.sizes[call]
        return [slice(0, size)] if call % 2 or size == 1 else [slice(0, 1), slice(1, size)]

    def inputs(self, life: Life, call: int) -> list[np.ndarray]:
        rng = np.random.default_rng([*life, call])
        return [
            rng.integers(-(1 << 20), 1 << 20, VALUES, np.int32) for _ in range(self.sizes[call])
        ]

    # -- what happens -------------------------------------------------------------------------

    def kill(self, bfr_id: int) -> None:
        """A process ends."""
        self.dead.add(-bfr_id)

    def lose(self, bfr_id: int) -> bool:
        """Go on without a worker, dead or not, if two are left; whether that is so."""
        if bfr_id not in self._present or len(self._present) == 2:
            return False
        self._present.discard(bfr_id)
        return True

    def revive(self, bfr_id: int) -> bool:
        """Another process of a lost rank joins; whether there is one."""
        if bfr_id in self._present:
            return False
        self.former.append(self.callers[bfr_id])
        self._present.add(bfr_id)
        self._lives[bfr_id] += 1
        machine = WorkerMachine(bfr_id, _WorkerPort(self, bfr_id), returning=True)
        self.workers[bfr_id] = machine
        self.callers[bfr_id] = Caller(self, (bfr_id, self._lives[bfr_id]), machine)
        self.dead.discard(-bfr_id)
        return True

    def renew(self, network: Capacities, *, changed: bool, spread: float) -> None:
        """Begin an epoch with the workers that there are: others do not learn of it."""
        epoch = self.setup.epoch + 1
        if changed:
            self._since = epoch
            self.times[epoch] = self._living()
        setup = self._setup(epoch, network)
        lost = {b: self.workers.pop(b) for b in tuple(self.workers) if b not in self._present}
        self.begin(setup, spread)
        self.workers |= lost

    # -- the machines -------------------------------------------------------------------------

    def machines(self) -> dict[int, WorkerMachine]:
        return {b: machine for b, machine in self.workers.items() if -b not in self.dead}

    def _arrive(self, source: int, target: int, data: bytes) -> None:
        if target not in self.dead:
            super()._arrive(source, target, data)

    def check(self, bfr_id: int, chunk: int, values: np.ndarray, *, again: bool) -> None:
        known = self.callers[bfr_id].results
        if again and known.get(chunk, values.tobytes()) != values.tobytes():
            raise InvariantError(f"worker {bfr_id}, chunk {chunk}: two results")
        known[chunk] = values.tobytes()

    def step(self, end: float) -> bool:
        found = super().step(end)
        for bfr_id in self.machines():
            self.callers[bfr_id].go_on()
        return found

    @property
    def finished(self) -> bool:
        return all(self.callers[bfr_id].done for bfr_id in self._present)

    def verify(self) -> None:
        """All processes have the same sums of a call, over the workers of one time."""
        for call in range(len(self.sizes)):
            ended = [one.ended[call] for one in self._processes() if call in one.ended]
            if len(set(ended)) > 1:
                raise InvariantError(f"call {call}: {len(set(ended))} results")
            if ended and ended[0] not in self._possible(call):
                raise InvariantError(f"call {call}: not a sum over the workers of one time")

    def _processes(self) -> Iterable[Caller]:
        return (*self.former, *self.callers.values())

    def _possible(self, call: int) -> set[tuple[int, bytes]]:
        found = set()
        for living in self.times.values():
            bits = sum(1 << (bfr_id - 1) for bfr_id in living)
            parts = [self.inputs(life, call) for life in living.values()]
            sums = [np.sum(chunk, axis=0, dtype=np.int32) for chunk in zip(*parts, strict=True)]
            found.add((bits, b"".join(one.tobytes() for one in sums)))
        return found
