"""The jobs of one router: their slots within a limit of memory, and who may contribute.

A packet belongs to the job whose id it has; it is summed only if address and port are those of a
member, and the slot machine takes from that member only its own bits.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from fared.extensions.ina.inad.results import Data, Dissemination
from fared.extensions.ina.messages import Install, JobEpoch, JobState, TreeState
from fared.extensions.ina.plan.model import BitString, Vertex, members
from fared.extensions.ina.slots.aggregator import Aggregator
from fared.extensions.ina.slots.packet import Flag, PacketKind, newer
from fared.extensions.ina.slots.setup import SetupError
from fared.extensions.ina.slots.slot import TreeSlots
from fared.extensions.ina.trains import TrainSocket

_JOB_ID, _JOB_ID_AT = struct.Struct("!I"), 4
_KIND, _RESULT = 15, PacketKind.RESULT
_MOST_REPEATED = 64


class JobError(ValueError):
    """A job that cannot be installed: the text tells why."""


class RunningJob:
    """One job: slots, and the addresses of its members. It is the port of its aggregator."""

    def __init__(self, node: Vertex, trains: TrainSocket, results: Dissemination) -> None:
        self.node = node
        self.aggregator = Aggregator(node, self)
        self.job: JobEpoch | None = None
        self.reserved = 0
        """Bytes of its slots, as far as other jobs cannot have them."""
        self.hosts: Counter[str] = Counter()
        """The workers that may join here, by address."""
        self._vertices: dict[tuple[str, int], Vertex] = {}
        self._addresses: dict[Vertex, tuple[str, int]] = {}
        self._trains, self._results = trains, results
        self._by_bier = self._repeated = 0
        """Results of this epoch by BIER, and repeated ones by unicast."""
        self._given_up = False
        """Whether BIER loses too many results: workers may have no way to receive them."""

    @property
    def current(self) -> JobEpoch:
        """The job in its present epoch."""
        assert self.job is not None
        return self.job

    def install(self, job: JobEpoch, own: Iterable[int] | None) -> None:
        """Begin an epoch; ``own`` are the workers that may join here, None: all."""
        self.job = job
        joining = job.ranks if own is None else job.ranks.keys() & set(own)
        self.hosts = Counter(job.members[-bfr_id].address for bfr_id in joining)
        self._by_bier = self._repeated = 0
        self._given_up = False
        self._addresses = {vertex: endpoint.pair for vertex, endpoint in job.members.items()}
        self._vertices = {pair: vertex for vertex, pair in self._addresses.items()}
        self.aggregator.install(job.setup)

    def receive(self, source: tuple[str, int], train: memoryview, step: int, now: float) -> None:
        """Take packets, if they come from a member."""
        vertex = self._vertices.get(source)
        if vertex is None:
            self.aggregator.counters["address"] += -(-len(train) // step)
        else:
            self.aggregator.receive_train(vertex, train, step, now)

    # -- AggregatorPort -------------------------------------------------------------------------

    def up(self, parent: Vertex, data: Data) -> None:
        """Send a packet to a parent."""
        self._send(data, self._addresses[parent])

    def down(self, router: Vertex, data: Data) -> None:
        """Send a result to a router that passes it on."""
        self._send(data, self._addresses[router])

    def disseminate(self, bits: BitString, data: Data) -> None:
        """Send a packet to workers, a result for all of them by BIER if the job has that way."""
        way = self.current.bier
        if way is None or self._given_up or data[0] & _KIND != _RESULT:
            self._results.send(bits, data, self._addresses, None)
        elif data[1] & Flag.AGAIN:
            self._results.send(bits, data, self._addresses, None)
            self._repeated += 1
            self._given_up = self._repeated >= max(_MOST_REPEATED, self._by_bier // 2)
            if self._given_up:
                self.aggregator.counters["bier-given-up"] += 1
        else:
            self._by_bier += self._results.send(bits, data, self._addresses, way)

    def nack(self, sender: Vertex, data: bytes) -> None:
        """Tell a member that its epoch is over."""
        address = self._addresses.get(sender)
        if address is not None:
            self._send(data, address)

    def _send(self, data: Data, address: tuple[str, int]) -> None:
        packet = bytes(data)  # the slot may be used again before it is sent
        self._trains.put((address,), len(packet), packet)


class Jobs:
    """All jobs of the process. ``memory`` is the most bytes of their slots together.

    A job whose code raises ends, and is given to ``failed``: the others go on.
    """

    def __init__(
        self,
        memory: int,
        most: int,
        trains: TrainSocket,
        results: Dissemination,
        failed: Callable[[JobEpoch, Exception], None] = lambda _job, _error: None,
    ) -> None:
        self.limit, self.most = memory, most
        self.counters: Counter[str] = Counter()
        self._trains, self._results = trains, results
        self._running: dict[int, RunningJob] = {}
        self._failed = failed

    @property
    def all(self) -> Mapping[int, RunningJob]:
        """The jobs by id."""
        return self._running

    def named(self, name: str) -> RunningJob | None:
        """Return the job of a name."""
        return next((run for run in self._running.values() if run.current.name == name), None)

    def memory(self) -> int:
        """Return the bytes of all slots."""
        return sum(run.reserved for run in self._running.values())

    def install(self, request: Install) -> bool:
        """Begin a job, or a newer epoch of one; False if that epoch, or a newer one, runs already.

        Raises JobError if it is wrong, or does not fit the limits; the former epoch then goes on.
        """
        try:
            job = request.job.checked()
        except SetupError as error:
            raise JobError(str(error)) from error
        running = self._running.get(job.setup.job_id)
        same = self.named(job.name)
        if same is not None and same is not running:
            raise JobError(f"job {job.name} has the id {same.current.setup.job_id}")
        if running is not None and running.node != request.node:
            raise JobError(f"this router is {running.node} in job {job.name}")
        if running is not None and not newer(job.setup.epoch, running.current.setup.epoch, 16):
            return False
        if running is None and len(self._running) >= self.most:
            raise JobError(f"{self.most} jobs run already (max-jobs)")
        needed = job.setup.taken(request.node)
        others = self.memory() - (running.reserved if running is not None else 0)
        if others + needed > self.limit:
            raise JobError(
                f"its slots take {needed} bytes, and {self.limit - others} of {self.limit} are free"
            )
        if running is None:
            running = RunningJob(request.node, self._trains, self._results)
            self._running[job.setup.job_id] = running
        running.reserved = needed
        try:
            running.install(job, request.own)
        except Exception as error:  # whatever it is, it ends this job only
            self.fail(job, error)
            raise JobError(f"{type(error).__name__}: see the log") from error
        return True

    def remove(self, job_id: int) -> RunningJob | None:
        """Forget a job; return it if there was one."""
        return self._running.pop(job_id, None)

    def fail(self, job: JobEpoch, error: Exception) -> None:
        """End a job whose code raised."""
        self.remove(job.setup.job_id)
        self._failed(job, error)

    def hosts(self) -> Counter[str]:
        """Return how many workers may join here from each address."""
        found: Counter[str] = Counter()
        for running in self._running.values():
            found.update(running.hosts)
        return found

    def patience(self) -> float:
        """Return for how many seconds packets may wait, to be processed with others."""
        found = (run.aggregator.patience() for run in self._running.values())
        return min((seconds for seconds in found if seconds), default=0.0)

    def receive(self, source: tuple[str, int], train: memoryview, step: int, now: float) -> None:
        """Pass packets of ``step`` bytes to their jobs; the last may be shorter."""
        at, whole = 0, len(train)
        while at < whole:
            job_id, end = _job_id(train, at), at + step
            while end < whole and _job_id(train, end) == job_id:
                end += step
            running = None if job_id is None else self._running.get(job_id)
            if running is None:
                self.counters["no-job"] += -(-(min(end, whole) - at) // step)
            else:
                try:
                    running.receive(source, train[at:end], step, now)
                except Exception as error:  # noqa: BLE001 - as in ``install``
                    self.fail(running.current, error)
            at = end


def _job_id(train: memoryview, at: int) -> int | None:
    """Return the id in the packet that begins at a place of a train; None if it has none."""
    if len(train) - at < _JOB_ID_AT + _JOB_ID.size:
        return None
    found: int = _JOB_ID.unpack_from(train, at + _JOB_ID_AT)[0]
    return found


def state_of(running: RunningJob, now: float) -> JobState:
    """Return what operators see of a job, without its workers."""
    job, machine = running.current, running.aggregator
    return JobState(
        name=job.name,
        job_id=job.setup.job_id,
        epoch=job.setup.epoch,
        reason=job.reason,
        trees=len(machine.trees),
        memory=running.reserved,
        slots=sum(len(tree.entries) + 1 for tree in machine.trees),
        open_slots=machine.open_slots(),
        waited_for=machine.waited_for(),
        wait=machine.wait(now),
        counters=dict(machine.counters),
        workers=[],
        per_tree=[_tree_state(tree) for tree in machine.trees],
    )


def _tree_state(tree: TreeSlots) -> TreeState:
    return TreeState(
        tree_id=tree.role.tree_id,
        slots=len(tree.entries) + 1,
        open_slots=len(tree.open_slots()),
        waited_for=members(tree.waited_for()),
        sums=tree.sums,
        size=tree.size,
        repeated=tree.repeated,
    )
