"""One worker's part of a job: the slot machine, its socket, and the thread that serves both.

The thread runs from ``join`` to ``close``, so that a new epoch finds every worker, also one that
computes. Calls put their chunks under the lock and wait; whatever fails is kept as ``failure``.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections import Counter

from fared.ina.client.arrays import ArrayPart, Call
from fared.ina.client.bier_sockets import BierSockets
from fared.ina.client.control import Control
from fared.ina.client.errors import (
    CallTimeout,
    InaError,
    JobEnded,
    JoinError,
    WorkerLost,
)
from fared.ina.client.ring import WorkerRing
from fared.ina.messages import (
    Ended,
    Epoch,
    JobEpoch,
    Join,
    Lost,
    RequestRefused,
    WorkerAnswer,
    WorkerProgress,
)
from fared.ina.plan.model import BitString, Vertex, members
from fared.ina.slots.packet import Header, PacketKind, Values
from fared.ina.slots.setup import JobSetup
from fared.ina.slots.worker import WorkerMachine
from fared.ina.trains import Addresses, TrainSocket

_AT_ONCE = 64
_BUFFER = 4 << 20
_TOLD_FOR = 2.0
"""Seconds for which it is believed for whom a router waits."""
_LONGEST_WAIT = 1.0
_TELL_EVERY = 1.0
_KIND, _LOST = 15, PacketKind.LOST


class CallTakenBack(Exception):  # noqa: N818 - not an error: who catches it calls again
    """Workers of an elastic job have changed in the middle of a call."""


class WorkerMember:
    """A worker that joined. ``timeout``: seconds without any result after which a call fails."""

    def __init__(self, join: Join, router: tuple[str, int], timeout: float) -> None:
        """Join. Raises InaError."""
        self.join, self.timeout = join, timeout
        self.counters: Counter[str] = Counter()
        self.failure: InaError | None = None
        self._job: JobEpoch | None = None
        self._control = Control(router, join)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._calls: dict[int, tuple[int, ArrayPart]] = {}
        """By chunk without a result: its part of a call, and the number of the part's first."""
        self._heard_at = time.monotonic()
        self._missing: dict[int, float] = {}
        """By BFR-id: when a router last waited for it."""
        self._machine: WorkerMachine | None = None
        self._ring: WorkerRing | None = None
        """From the first epoch without trees on."""
        self._udp: socket.socket | None = None
        self._trains: TrainSocket | None = None
        self._by_bier: BierSockets | None = None
        self._senders: set[tuple[str, int]] = set()
        self._parents: dict[Vertex, Addresses] = {}
        """The routers to which packets go; none in an epoch without trees."""
        self._now = 0.0
        """When the packets that are processed were received."""
        self._patience = 0.0
        """Seconds that the next ones may wait, to be processed together."""
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._tell_at = 0.0
        self._restarts = 0
        """Those of the machine that the caller was woken for."""
        self._target = 0
        """The chunk whose result, with all before it, a call waits for."""
        self._watched: tuple[socket.socket, int] | None = None
        """The connection that the selector knows, and its events."""
        self._running = True
        self._thread = threading.Thread(target=self._serve, name="fared-ina", daemon=True)
        self._thread.start()
        self._await_first()

    def _await_first(self) -> None:
        end = time.monotonic() + self.timeout
        with self._lock:
            while not self._joined and self.failure is None and time.monotonic() < end:
                self._changed.wait(0.1)
            failure = self.failure
            if not self._joined and failure is None:
                failure = JoinError(f"job {self.join.job}: {self._control.error}")
        if failure is not None:
            self.close(leave=False)
            raise failure

    @property
    def _joined(self) -> bool:
        """Whether calls can be made: who comes back learns from the others from which chunk on."""
        machine = self._machine
        return machine is not None and not machine.calls.returning

    @property
    def job(self) -> JobEpoch:
        """The job in its present epoch."""
        assert self._job is not None
        return self._job

    # -- calls, in the caller's thread ------------------------------------------------------------

    @property
    def restarts(self) -> int:
        """How often a call was taken back, since workers of an elastic job changed."""
        with self._lock:
            return 0 if self._machine is None else self._machine.restarts

    def run(self, call: Call, begun: int, *, last: bool) -> BitString:
        """Run a part of a call to its end; return the workers whose values are in it.

        ``begun``: ``restarts`` when the call began; ``last``: it has no other part. Raises
        InaError, and CallTakenBack if the call is to be made again, over other workers.
        """
        with self._lock:
            machine = self._machine
            if self.failure is not None:
                raise self.failure
            assert machine is not None
            if machine.restarts != begun:
                raise CallTakenBack
            for part in call.parts:
                first = machine.put_part(part, part.count)
                chunks = range(first, first + part.count)
                self._calls.update(dict.fromkeys(chunks, (first, part)))
            if last:
                machine.close_call()
            self._target = machine.end
            self._heard_at = time.monotonic()
            machine.pump(self._heard_at)
            self._flush()
            os.eventfd_write(self._wake, 1)
            try:
                self._await_results(machine, begun)
            except CallTakenBack:
                raise
            except BaseException:
                machine.stop()  # the caller has its arrays back, and may change them
                raise
            return machine.summed_over

    def _await_results(self, machine: WorkerMachine, begun: int) -> None:
        while machine.next < self._target:
            if machine.restarts != begun:
                raise CallTakenBack
            if self.failure is not None:
                raise self.failure
            now = time.monotonic()
            if now - self._heard_at >= self.timeout:
                self.failure = CallTimeout(self.timeout, self._ranks(self._waited_for(now)))
                raise self.failure
            self._changed.wait(min(_LONGEST_WAIT, self.timeout))

    def _waited_for(self, now: float) -> list[int]:
        return [bfr_id for bfr_id, when in self._missing.items() if now - when < _TOLD_FOR]

    def _ranks(self, bfr_ids: list[int]) -> list[int]:
        ranks = self.job.ranks
        return [ranks[bfr_id] for bfr_id in bfr_ids if bfr_id in ranks]

    def packet_counters(self) -> Counter[str]:
        """Return the counters of packets."""
        with self._lock:
            found = self.counters + (self._machine.counters if self._machine else Counter())
            return found + (self._ring.counters if self._ring else Counter())

    def close(self, *, leave: bool) -> None:
        """End the thread; without ``leave`` the others learn that this worker is lost.

        A worker that ends because another was lost is not lost itself: the first loss is named.
        """
        leave = leave or isinstance(self.failure, WorkerLost | JobEnded)
        self._running = False
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake, 1)
        self._thread.join()
        if leave:
            self._control.leave()
        else:
            self._control.close()
        if self._udp is not None:
            self._udp.close()
        if self._by_bier is not None:
            self._by_bier.close()
        if self._ring is not None:
            self._ring.close()
        os.close(self._wake)

    # -- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake, selectors.EVENT_READ, self._woken)
                while self._running:
                    self._turn(selector)
        except Exception as error:  # noqa: BLE001 - the caller's thread must not wait for ever
            self._fail(InaError(f"{type(error).__name__}: {error}"))

    def _turn(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        ring = self._ring
        with self._lock:
            self._control.tick(now)
            self._tell(now)
            machine_due = None if self._machine is None else self._machine.deadline()
            if ring is not None:
                ring.tick(now)
                ring.watch(selector, self._ring_ready)
        self._watch_control(selector)
        ring_due = None if ring is None else ring.deadline()
        dues = [due for due in (self._control.deadline(), machine_due, ring_due) if due is not None]
        wait = min([_LONGEST_WAIT, *(max(0.0, due - now) for due in dues)])
        ready = selector.select(wait)
        with self._lock:
            for key, _ in ready:
                key.data(selector)
            now = time.monotonic()
            if machine_due is not None and now >= machine_due and self._machine is not None:
                self._machine.tick(now)
            self._take_from_ring(now)
            self._flush()
            patience = self._patience
            self._patience = 0.0
        if patience:
            time.sleep(patience)

    def _tell(self, now: float) -> None:
        """Tell the router once a second how far this worker is."""
        machine = self._machine
        if machine is None or now < self._tell_at:
            return
        self._tell_at = now + _TELL_EVERY
        self._control.tell(
            WorkerProgress(
                epoch=self.job.setup.epoch,
                sizes=machine.sizes(),
                repeated=machine.counters["repeated"],
                wrong=machine.counters["control-sum"],
                waits_for=sorted(self._waited_for(now)) if machine.next < self._target else [],
            )
        )

    def _watch_control(self, selector: selectors.BaseSelector) -> None:
        """Let the selector know the connection to the router, which may be a new one."""
        sock = self._control.sock
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._control.writes else 0)
        wanted = None if sock is None else (sock, events)
        if wanted == self._watched:
            return
        if self._watched is not None:
            selector.unregister(self._watched[0])
        self._watched = wanted
        if sock is not None:
            selector.register(sock, events, self._control_ready)

    def _ring_ready(self, _: selectors.BaseSelector) -> None:
        if self._ring is not None:
            self._ring.serve(time.monotonic())

    def _take_from_ring(self, now: float) -> None:
        """Process what the ring has for this worker, whose answers may be for itself again."""
        machine, ring = self._machine, self._ring
        if machine is None or ring is None:
            return
        before, waiting = machine.next, ring.received()
        self._now = now
        while waiting:
            machine.receive(waiting.popleft(), now)
        self._notify(before)

    def _woken(self, _: selectors.BaseSelector) -> None:
        os.eventfd_read(self._wake)

    def _control_ready(self, selector: selectors.BaseSelector) -> None:
        self._control.ready(self._take)
        if self._udp is not None and self._udp not in selector.get_map():
            selector.register(self._udp, selectors.EVENT_READ, self._packets)
        for sock in self._by_bier.all if self._by_bier is not None else ():
            if sock not in selector.get_map():
                selector.register(sock, selectors.EVENT_READ, self._bier_packets)

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
                self._control.error = reason

    def _install(self, job: JobEpoch, *, returning: bool) -> None:
        bfr_id = job.bfr_id(self.join.rank)
        if bfr_id in job.lost:
            self._set_failure(WorkerLost([self.join.rank]))
            return
        if self._machine is None:
            try:
                self._udp = _open_udp(job.members[-bfr_id].pair)
            except OSError as error:
                where = ":".join(map(str, job.members[-bfr_id].pair))
                self._set_failure(JoinError(f"{where}: {error.strerror or error}"))
                return
            self._trains = TrainSocket(self._udp, self.counters)
            self._machine = WorkerMachine(bfr_id, self, returning=returning)
        self._open_bier(job, bfr_id)
        self._job = job
        self._control.installed(job.setup.epoch)
        routers = {vertex: member.pair for vertex, member in job.members.items() if vertex >= 0}
        self._senders = set(routers.values())
        self._parents = {vertex: (pair,) for vertex, pair in routers.items()}
        try:
            setup = job.setup if job.setup.trees else self._begin_ring(job, bfr_id)
        except OSError as error:
            self._set_failure(InaError(f"the ring: {error.strerror or error}"))
            return
        self._machine.install(setup, time.monotonic())
        self._changed.notify_all()

    def _begin_ring(self, job: JobEpoch, bfr_id: int) -> JobSetup:
        """Return the chains of an epoch without trees. Raises OSError."""
        if self._ring is None:
            self._ring = WorkerRing(job, bfr_id, self.counters)
        return self._ring.begin(job)

    def _fail(self, failure: InaError) -> None:
        with self._lock:
            self._set_failure(failure)

    def _set_failure(self, failure: InaError) -> None:
        self.failure = self.failure or failure
        self._changed.notify_all()

    # -- packets ----------------------------------------------------------------------------------

    def _packets(self, _: selectors.BaseSelector) -> None:
        machine = self._machine
        assert machine is not None
        assert self._trains is not None
        before, self._now = machine.next, time.monotonic()
        self._trains.receive(self._train, _AT_ONCE)
        machine.pump(self._now)
        self._notify(before)
        self._patience = machine.patience()

    def _train(self, source: tuple[str, int], train: memoryview, step: int) -> None:
        if source not in self._senders:
            self.counters["address"] += 1
            return
        for at in range(0, len(train), step):
            self._take_packet(train[at : at + step])

    def _take_packet(self, data: memoryview) -> None:
        assert self._machine is not None
        if data[0] & _KIND == _LOST:
            self._lost(data)
        else:
            self._machine.take(data, self._now)

    def _flush(self) -> None:
        if self._trains is not None:
            self._trains.flush()

    def _notify(self, before: int) -> None:
        """Wake the caller if its last result has come, or its call is taken back."""
        machine = self._machine
        if machine is None:
            return
        if before < self._target <= machine.next or machine.restarts != self._restarts:
            self._restarts = machine.restarts
            self._changed.notify_all()

    def _bier_packets(self, _: selectors.BaseSelector) -> None:
        machine, sockets = self._machine, self._by_bier
        assert machine is not None
        assert sockets is not None
        before, self._now = machine.next, time.monotonic()
        for source, data in sockets.arrived():
            if source in self._senders:
                self.counters["bier"] += 1
                machine.take(data, self._now)
            else:
                self.counters["address"] += 1
        machine.pump(self._now)
        self._notify(before)

    def _open_bier(self, job: JobEpoch, bfr_id: int) -> None:
        """Open the sockets of results by BIER once; without them results are repeated."""
        if job.bier is None or self._by_bier is not None:
            return
        try:
            self._by_bier = BierSockets(job.members[-bfr_id].address, job.bier.bfr_ids[bfr_id])
        except OSError:
            self.counters["bier-not-received"] += 1

    def _lost(self, data: memoryview) -> None:
        setup = self.job.setup
        size = setup.length // 8
        if len(data) >= size and int.from_bytes(data[4:8], "big") == setup.job_id:
            ranks = self._ranks(members(int.from_bytes(data[-size:], "big")))
            if ranks:
                self._set_failure(WorkerLost(ranks))

    # -- WorkerPort -------------------------------------------------------------------------------

    def send(self, parent: Vertex, header: bytes, values: Values) -> None:
        """Send a packet; what cannot be sent is repeated."""
        address = self._parents.get(parent)
        if address is None:
            assert self._ring is not None
            self._ring.put(header + values.tobytes(), time.monotonic())
            return
        assert self._trains is not None
        self._trains.put(address, len(header) + values.nbytes, header, values.data)

    def result(self, chunk: int, values: Values, header: Header, *, again: bool) -> None:
        """Store the result of a chunk."""
        del header
        self._heard_at = self._now
        if not again and chunk in self._calls:  # a closing chunk has no values
            first, part = self._calls.pop(chunk)
            part.store(chunk - first, values)

    def outdated(self, epoch: int) -> None:
        """Ask for the epoch that a router has."""
        del epoch
        self.counters["outdated"] += 1
        self._control.refresh()

    def lacking(self, bits: BitString) -> None:
        """Note for whom a router waits, or a worker in the ring.

        In a ring each place tells whose values it has not seen: whom all lack is missing.
        """
        now, told = time.monotonic(), set(members(bits))
        if not self.job.setup.trees:
            told = told & set(self._waited_for(now)) or told
            self._missing.clear()
        self._missing |= dict.fromkeys(told, now)


def _open_udp(pair: tuple[str, int]) -> socket.socket:
    """Open the socket of packets. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        sock.bind(pair)
    except OSError:
        sock.close()
        raise
    return sock
