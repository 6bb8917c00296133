"""The thread of a worker that joined: it serves the slot machine, its sockets, and the router.

It runs from ``join`` to ``close``, so that a new epoch finds every worker, also one that computes.
Calls put their chunks under ``lock`` and wait for ``changed``; whatever fails is kept as
``failure``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections import Counter

from fared.extensions.ina.client.arrays import ArrayPart, Call
from fared.extensions.ina.client.control import Control
from fared.extensions.ina.client.errors import InaError, JobEnded, JoinError, WorkerLost
from fared.extensions.ina.client.waits import TreeWaits, Waits, renewed
from fared.extensions.ina.client.ways import PacketWays
from fared.extensions.ina.messages import (
    Ended,
    Epoch,
    JobEpoch,
    Join,
    Lost,
    RequestRefused,
    WorkerAnswer,
    WorkerProgress,
)
from fared.extensions.ina.plan.model import BitString, Vertex, members
from fared.extensions.ina.slots.packet import Values
from fared.extensions.ina.slots.worker import WorkerMachine

_LONGEST_WAIT = 1.0
_TELL_EVERY = 1.0


class WorkerSession:
    """A worker's part of a job. All attributes without an underscore are used under ``lock``."""

    def __init__(self, join: Join, router: tuple[str, int]) -> None:
        """Begin to join; ``changed`` tells when that has succeeded or failed."""
        self.join = join
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.failure: InaError | None = None
        self.machine: WorkerMachine | None = None
        self.target = 0
        """The chunk whose result, with all before it, a call waits for."""
        self.heard_at = time.monotonic()
        """When the last result came, or a call began."""
        self.control = Control(router, join)
        self._counters: Counter[str] = Counter()
        self._ways = PacketWays(self._counters)
        self._job: JobEpoch | None = None
        self._calls: dict[int, tuple[int, ArrayPart]] = {}
        """By chunk without a result: its part of a call, and the number of the part's first."""
        self._waits: Waits = TreeWaits()
        self._now = 0.0
        """When the packets that are processed were received."""
        self._patience = 0.0
        """Seconds that the next ones may wait, to be processed together."""
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._tell_at = 0.0
        self._restarts = 0
        """Those of the machine that the caller was woken for."""
        self._watched: tuple[socket.socket, int] | None = None
        """The connection that the selector knows, and its events."""
        self._running = True
        self._thread = threading.Thread(target=self._serve, name="fared-ina", daemon=True)
        self._thread.start()

    @property
    def job(self) -> JobEpoch:
        """The job in its present epoch."""
        assert self._job is not None
        return self._job

    @property
    def joined(self) -> bool:
        """Whether calls can be made: who comes back learns from the others from which chunk on."""
        return self.machine is not None and not self.machine.calls.returning

    @property
    def counters(self) -> Counter[str]:
        """The counters of packets."""
        found = self._counters + (self.machine.counters if self.machine else Counter())
        return found + (self._ways.ring.counters if self._ways.ring else Counter())

    def begin(self, machine: WorkerMachine, call: Call, *, last: bool) -> None:
        """Send a part of a call, and expect its results."""
        for part in call.parts:
            first = machine.put_part(part, part.count)
            chunks = range(first, first + part.count)
            self._calls.update(dict.fromkeys(chunks, (first, part)))
        if last:
            machine.close_call()
        self.target = machine.end
        self.heard_at = time.monotonic()
        machine.begin(self.heard_at)
        self._ways.flush()
        os.eventfd_write(self._wake, 1)

    def missing_ranks(self, now: float) -> list[int]:
        """Return the ranks for which a router or a place of the ring has waited lately."""
        return self._ranks(self._waits.lately(now))

    def _ranks(self, bfr_ids: list[int]) -> list[int]:
        ranks = self.job.ranks
        return [ranks[bfr_id] for bfr_id in bfr_ids if bfr_id in ranks]

    def close(self, *, leave: bool) -> None:
        """End the thread, leave in good order or not, and close all sockets."""
        self._running = False
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake, 1)
        self._thread.join()
        if leave:
            self.control.leave()
        else:
            self.control.close()
        self._ways.close()
        os.close(self._wake)

    # -- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake, selectors.EVENT_READ, self._woken)
                while self._running:
                    self._turn(selector)
        except Exception as error:  # noqa: BLE001 - the caller's thread must not wait for ever
            with self.lock:
                self._set_failure(InaError(f"{type(error).__name__}: {error}"))

    def _turn(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        ring = self._ways.ring
        with self.lock:
            self.control.tick(now)
            self._tell(now)
            machine_due = None if self.machine is None else self.machine.deadline()
            if ring is not None:
                ring.tick(now)
                ring.watch(selector, self._ring_ready)
        self._watch_control(selector)
        ring_due = None if ring is None else ring.deadline()
        dues = [due for due in (self.control.deadline(), machine_due, ring_due) if due is not None]
        wait = min([_LONGEST_WAIT, *(max(0.0, due - now) for due in dues)])
        ready = selector.select(wait)
        with self.lock:
            for key, _ in ready:
                key.data(selector)
            now = time.monotonic()
            if machine_due is not None and now >= machine_due and self.machine is not None:
                self.machine.tick(now)
            self._take_from_ring(now)
            self._ways.flush()
            patience = self._patience
            self._patience = 0.0
        if patience:
            time.sleep(patience)

    def _tell(self, now: float) -> None:
        """Tell the router once a second how far this worker is."""
        machine = self.machine
        if machine is None or now < self._tell_at:
            return
        self._tell_at = now + _TELL_EVERY
        self.control.tell(
            WorkerProgress(
                epoch=self.job.setup.epoch,
                sizes=machine.sizes(),
                repeated=machine.counters["repeated"],
                wrong=machine.counters["control-sum"],
                waits_for=sorted(self._waits.lately(now)) if machine.next < self.target else [],
            )
        )

    def _watch_control(self, selector: selectors.BaseSelector) -> None:
        """Let the selector know the connection to the router, which may be a new one."""
        sock = self.control.sock
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.control.writes else 0)
        wanted = None if sock is None else (sock, events)
        if wanted == self._watched:
            return
        if self._watched is not None:
            selector.unregister(self._watched[0])
        self._watched = wanted
        if sock is not None:
            selector.register(sock, events, self._control_ready)

    def _woken(self, _: selectors.BaseSelector) -> None:
        os.eventfd_read(self._wake)  # the machine may have another deadline

    def _control_ready(self, selector: selectors.BaseSelector) -> None:
        self.control.ready(self._take)
        self._ways.watch(selector, self._packets, self._bier_packets)

    def _take(self, answer: WorkerAnswer) -> None:
        match answer:
            case Epoch(job, returning):
                self._install(job, returning=returning)
            case Lost(ranks):
                self._set_failure(WorkerLost(ranks))
            case Ended(reason):
                self._set_failure(JobEnded(f"job {self.join.job}: {reason}"))
            case RequestRefused(reason):
                # The job may be on its way to this router: ``_await_first`` gives it some time.
                self.control.error = reason

    def _install(self, job: JobEpoch, *, returning: bool) -> None:
        bfr_id = job.bfr_id(self.join.rank)
        if bfr_id in job.lost:
            self._set_failure(WorkerLost([self.join.rank]))
            return
        if self.machine is None:
            try:
                self._ways.open(job.members[-bfr_id].pair)
            except OSError as error:
                where = ":".join(map(str, job.members[-bfr_id].pair))
                self._set_failure(JoinError(f"{where}: {error.strerror or error}"))
                return
            self.machine = WorkerMachine(bfr_id, self, returning=returning)
        self._job = job
        self._waits = renewed(self._waits, job.setup)
        self.control.installed(job.setup.epoch)
        try:
            setup = self._ways.begin(job, bfr_id)
        except OSError as error:
            self._set_failure(InaError(f"the ring: {error.strerror or error}"))
            return
        self.machine.install(setup, time.monotonic())
        self.changed.notify_all()

    def _set_failure(self, failure: InaError) -> None:
        self.failure = self.failure or failure
        self.changed.notify_all()

    # -- packets ----------------------------------------------------------------------------------

    def _packets(self, _: selectors.BaseSelector) -> None:
        machine = self.machine
        assert machine is not None
        before, self._now = machine.next, time.monotonic()
        self._ways.receive(self._take_train)
        machine.pump(self._now)
        self._notify(before)
        self._patience = machine.patience()

    def _bier_packets(self, _: selectors.BaseSelector) -> None:
        machine = self.machine
        assert machine is not None
        before, self._now = machine.next, time.monotonic()
        self._ways.receive_by_bier(lambda data: machine.take(data, self._now))
        machine.pump(self._now)
        self._notify(before)

    def _ring_ready(self, _: selectors.BaseSelector) -> None:
        if self._ways.ring is not None:
            self._ways.ring.serve(time.monotonic())

    def _take_from_ring(self, now: float) -> None:
        """Process what the ring has for this worker, whose answers may be for itself again."""
        machine, ring = self.machine, self._ways.ring
        if machine is None or ring is None:
            return
        before, waiting = machine.next, ring.received()
        self._now = now
        while waiting:
            machine.receive(waiting.popleft(), now)
        self._notify(before)

    def _take_train(self, train: memoryview, step: int) -> None:
        assert self.machine is not None
        self.machine.take_train(train, step, self._now)

    def _notify(self, before: int) -> None:
        """Wake the caller if its last result has come, or its call is taken back."""
        machine = self.machine
        if machine is None:
            return
        if before < self.target <= machine.next or machine.restarts != self._restarts:
            self._restarts = machine.restarts
            self.changed.notify_all()

    # -- WorkerPort -------------------------------------------------------------------------------

    def send(self, parent: Vertex, header: bytes, values: Values) -> None:
        """Send a packet; what cannot be sent is repeated."""
        self._ways.send(parent, header, values)

    def result(self, chunk: int, values: Values | None, *, again: bool) -> None:
        """Store the result of a chunk."""
        self.heard_at = self._now
        if again:
            return
        found = self._calls.pop(chunk, None)
        if found is not None and values is not None:  # a closing chunk has no part
            first, part = found
            part.store(chunk - first, values)

    def outdated(self, epoch: int) -> None:
        """Ask for the epoch that a router has."""
        del epoch
        self._counters["outdated"] += 1
        self.control.refresh()

    def lacking(self, bits: BitString, *, silent: bool) -> None:
        """Note for whom a router waits, or a place of the ring."""
        self._waits.told(bits, time.monotonic(), silent=silent)

    def lost(self, bits: BitString) -> None:
        """End with the names of workers whose connection broke."""
        ranks = self._ranks(members(bits))
        if ranks:
            self._set_failure(WorkerLost(ranks))
