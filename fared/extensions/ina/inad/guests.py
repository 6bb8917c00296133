"""Workers that joined over TCP: they get the trees, new epochs, and the names of lost workers.

A connection that ends without ``Leave`` is a lost worker: an all-reduce without its values would be
no sum. All workers of the job are told, those at other routers by packets (``LOST``), repeated,
since nothing acknowledges them. Whoever misses them all still has its own timeout.

Those of an elastic job are not told: the daemon floods the loss, and an epoch without the worker
follows. Then the rank may join again, as another process, and is a worker of a later epoch.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable

import msgspec

from fared.extensions.ina.inad.jobs import Jobs, RunningJob
from fared.extensions.ina.messages import (
    Current,
    Ended,
    Epoch,
    JobEpoch,
    Join,
    Leave,
    Lost,
    RequestRefused,
    WorkerAnswer,
    WorkerGone,
    WorkerProgress,
    WorkerRequest,
    WorkerState,
)
from fared.extensions.ina.plan.model import BitString, members
from fared.extensions.ina.slots.packet import Header, PacketKind, encode_header
from fared.runtime.connection import LineConnection

MOST_GUESTS = 1024
_MOST_STRANGERS = 64
"""Connections from where no worker is: they may only be told why they cannot join."""
_SPARE = 4
"""Connections of a host beside two for each worker, one of which may have broken unnoticed."""
_JOIN_WITHIN = 5.0
_MOST_LINE = 1 << 16
_TELLINGS, _TELL_EVERY = 8, 0.1
"""How often a loss is told, and the seconds between."""
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""A host that vanishes without a word is found in four seconds; its kernel answers, not the worker,
which may be busy for longer."""


class Guest:
    """One connection: nobody yet, or the worker ``bfr_id`` of a job."""

    def __init__(self, sock: socket.socket, address: str, place: str, now: float) -> None:
        self.line = LineConnection(sock, _MOST_LINE)
        self.place = place
        """Among whose connections it counts: of its address, or (empty) of strangers."""
        self.address, self.since = address, now
        self.job_id: int | None = None
        self.bfr_id = self.instance = 0
        self.left = self.returning = False
        self.progress: WorkerProgress | None = None


class Guests:
    """All connections of workers. ``instance`` is that of this process.

    ``gone`` is called for each worker whose connection ended.
    """

    def __init__(
        self,
        jobs: Jobs,
        counters: Counter[str],
        instance: int,
        gone: Callable[[WorkerGone], None],
    ) -> None:
        self._instance, self._gone = instance, gone
        self.hosts: Counter[str] = Counter()
        """How many workers may join here from each address."""
        self.all: set[Guest] = set()
        self._places: dict[str, list[Guest]] = {}
        self._jobs, self._counters = jobs, counters
        self._states: dict[int, dict[int, str]] = {}
        """By job and BFR-id, of workers that once joined here."""
        self._tellings: dict[int, tuple[int, float]] = {}
        """By job: how often a loss is still to be told, and when next."""
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(WorkerRequest).decode

    # -- connections ----------------------------------------------------------------------------

    def accept(self, sock: socket.socket, address: str, now: float) -> Guest | None:
        """Take a new connection; None if there are too many.

        Each host has places of its own. In place of the oldest one that says nothing comes a newer
        one: who only connects keeps nobody out, whoever shares its place least of all.
        """
        workers = self.hosts[address]
        place = address if workers else ""
        most = 2 * workers + _SPARE if workers else _MOST_STRANGERS
        beside = self._places.setdefault(place, [])
        silent = next((guest for guest in beside if guest.job_id is None), None)
        if len(self.all) >= MOST_GUESTS or (len(beside) >= most and silent is None):
            sock.close()
            self._counters["guest-refused"] += 1
            return None
        if len(beside) >= most and silent is not None:
            beside.remove(silent)
            silent.line.closed = True
        for option in _KEEPALIVE:
            sock.setsockopt(*option)
        guest = Guest(sock, address, place, now)
        self.all.add(guest)
        beside.append(guest)
        return guest

    def readable(self, guest: Guest) -> None:
        """Process requests; a connection that is ``closed`` then has ended."""
        for line in guest.line.messages():
            try:
                request = self._decode(line)
            except (msgspec.DecodeError, msgspec.ValidationError):
                self._refuse(guest, "not a request of this version")
                break
            self._process(guest, request)

    def _process(self, guest: Guest, request: WorkerRequest) -> None:
        match request:
            case Join():
                self._join(guest, request)
            case Leave():
                guest.left = True
            case WorkerProgress():
                guest.progress = request
            case Current():
                running = self._jobs.all.get(-1 if guest.job_id is None else guest.job_id)
                if running is not None:
                    self._send(guest, Epoch(running.current))

    def _join(self, guest: Guest, request: Join) -> None:
        running = self._jobs.named(request.job)
        if running is None:
            self._refuse(guest, f"no job {request.job} at this router")
            return
        job = running.current
        problem = _problem(job, guest.address, request)
        if problem is not None:
            self._refuse(guest, problem)
            return
        states = self._states.setdefault(job.setup.job_id, {})
        problem = self._unknown(running, request, states)
        problem = problem or self._ended_or_present(job, request, states)
        if problem is not None:
            self._refuse(guest, problem)
            return
        self._admit(guest, job, request, states)

    def _unknown(self, running: RunningJob, request: Join, states: dict[int, str]) -> str | None:
        """Return why a worker that is new here may not be the first of its rank, None if it is.

        Chunks of the former one may be in sums that the others have, and that slots still have.
        """
        job = running.current
        bfr_id, door = job.bfr_id(request.rank), job.doors.get(running.node, self._instance)
        if bfr_id in states or request.epoch is not None or door == self._instance:
            return None
        if job.setup.elastic:
            states[bfr_id] = "lost"  # an epoch without it begins, and then one with it
            return None
        return (
            f"rank {request.rank} of job {job.name} may have begun before fared-ina of its router"
            " started again: create it again"
        )

    def _ended_or_present(self, job: JobEpoch, request: Join, states: dict[int, str]) -> str | None:
        """Return why a rank cannot join now, None if it can."""
        bfr_id, name = job.bfr_id(request.rank), f"rank {request.rank} of job {job.name}"
        state = states.get(bfr_id)
        if state == "left" or (state == "lost" and not job.setup.elastic):
            # Chunks are numbered through the life of a job: who begins again at 0 needs a new job.
            return f"{name} has ended: create it again"
        if state == "lost" and bfr_id not in job.lost:
            return f"{name} is lost, and no epoch without it has begun yet"
        for other in self._of(job.setup.job_id):
            if other.bfr_id == bfr_id and other.instance != request.instance:
                return f"{name} is present"
        return None

    def _admit(self, guest: Guest, job: JobEpoch, request: Join, states: dict[int, str]) -> None:
        bfr_id = job.bfr_id(request.rank)
        if bfr_id in job.lost and request.epoch is not None:
            self._send(guest, Lost([request.rank]))  # its connection broke: others go on without it
            return
        for other in self._of(job.setup.job_id):
            if other.bfr_id == bfr_id:
                other.job_id = None  # a connection that broke unnoticed
                other.line.closed = True
        guest.job_id, guest.bfr_id = job.setup.job_id, bfr_id
        guest.instance, guest.returning = request.instance, bfr_id in job.lost
        states[bfr_id] = "returning" if guest.returning else "joined"
        if not guest.returning:
            self._send(guest, Epoch(job))
            lost = self._lost(job)
            if lost:
                self._send(guest, Lost(_ranks(job, lost)))

    def _refuse(self, guest: Guest, reason: str) -> None:
        self._counters["guest-refused"] += 1
        self._send(guest, RequestRefused(reason))
        guest.line.closed = True

    def _send(self, guest: Guest, answer: WorkerAnswer) -> None:
        guest.line.send(self._encode(answer))

    def _of(self, job_id: int) -> list[Guest]:
        return [guest for guest in self.all if guest.job_id == job_id]

    def ended(self, guest: Guest, now: float) -> None:
        """Forget a connection that has been closed; a worker that did not leave is lost."""
        self.all.discard(guest)
        beside = self._places.get(guest.place, [])
        if guest in beside:
            beside.remove(guest)
        if not beside:
            self._places.pop(guest.place, None)
        if guest.job_id is None or guest.job_id not in self._jobs.all:
            return
        self._states[guest.job_id][guest.bfr_id] = "left" if guest.left else "lost"
        self._gone(WorkerGone(guest.job_id, guest.bfr_id, not guest.left))
        job = self._jobs.all[guest.job_id].current
        if not guest.left and not job.setup.elastic:
            self._tellings[guest.job_id] = (_TELLINGS, now)
            for other in self._of(guest.job_id):
                self._send(other, Lost(_ranks(job, self._lost(job))))

    # -- jobs -----------------------------------------------------------------------------------

    def began(self, running: RunningJob) -> None:
        """Tell the workers of a new epoch; those who are not in it are told that they are lost."""
        job = running.current
        for guest in self._of(job.setup.job_id):
            if guest.bfr_id in job.setup.workers:
                self._send(guest, Epoch(job, guest.returning))
                guest.returning = False
                self._states[job.setup.job_id][guest.bfr_id] = "joined"
            elif not guest.returning:
                self._send(guest, Lost([job.ranks[guest.bfr_id]]))

    def removed(self, job_id: int, reason: str) -> None:
        """Tell the workers that the job is over."""
        for guest in self._of(job_id):
            self._send(guest, Ended(reason))
            guest.job_id = None
        self._states.pop(job_id, None)
        self._tellings.pop(job_id, None)

    def states(self, running: RunningJob) -> list[WorkerState]:
        """Return the workers of a job as seen here."""
        job = running.current
        known = self._states.get(job.setup.job_id, {})
        told = {guest.bfr_id: guest.progress for guest in self._of(job.setup.job_id)}
        return [
            WorkerState(
                rank,
                bfr_id,
                job.members[-bfr_id].address,
                known.get(bfr_id, "absent"),
                told.get(bfr_id),
            )
            for bfr_id, rank in job.ranks.items()
        ]

    def _lost(self, job: JobEpoch) -> BitString:
        """Return the lost workers because of which a job fails."""
        if job.setup.elastic:
            return 0
        states = self._states.get(job.setup.job_id, {})
        return sum(1 << (bfr_id - 1) for bfr_id, state in states.items() if state == "lost")

    # -- time -----------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """Return when ``tick`` has something to do."""
        dues = [when for _, when in self._tellings.values()]
        dues += [guest.since + _JOIN_WITHIN for guest in self.all if guest.job_id is None]
        return min(dues, default=None)

    def tick(self, now: float) -> None:
        """Repeat what is told; close connections of nobody, and those that failed."""
        for job_id, (left, when) in list(self._tellings.items()):
            if now >= when:
                running = self._jobs.all[job_id]
                try:
                    self._tell(running)
                except Exception as error:  # noqa: BLE001 - it ends this job only
                    self._jobs.fail(running.current, error)
                    continue
                if left == 1:
                    del self._tellings[job_id]
                else:
                    self._tellings[job_id] = (left - 1, now + _TELL_EVERY)
        for guest in list(self.all):
            if guest.job_id is None and now >= guest.since + _JOIN_WITHIN:
                guest.line.closed = True

    def _tell(self, running: RunningJob) -> None:
        """Send all workers a packet that names the lost ones."""
        setup = running.current.setup
        lost = self._lost(running.current)
        header = Header(
            PacketKind.LOST, setup.job_id, 0, setup.epoch, 0, lost, 0, length=setup.length
        )
        running.disseminate(setup.bits & ~lost, encode_header(header))


def _problem(job: JobEpoch, address: str, request: Join) -> str | None:
    if request.size != len(job.ranks):
        return f"job {job.name} has {len(job.ranks)} workers, not {request.size}"
    if not 0 <= request.rank < request.size:
        return f"no rank {request.rank} of {request.size}"
    known = job.members[-job.bfr_id(request.rank)].address
    return None if known == address else f"rank {request.rank} is {known}, not {address}"


def _ranks(job: JobEpoch, bits: BitString) -> list[int]:
    ranks = job.ranks
    return [ranks[bfr_id] for bfr_id in members(bits) if bfr_id in ranks]
