"""The loop of ``fared-ina``: packets, operators, workers."""

from __future__ import annotations

import math
import os
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from fared.core.log_limit import LogRateLimiter, Verdict
from fared.extensions.ina.inad.guests import Guest, Guests
from fared.extensions.ina.inad.jobs import JobError, Jobs, RunningJob, state_of
from fared.extensions.ina.inad.listening import WorkerListeners, listen_unix, open_udp
from fared.extensions.ina.inad.results import (
    BierReplication,
    Dissemination,
    UnicastReplication,
)
from fared.extensions.ina.messages import (
    MAX_LINE,
    Answer,
    Done,
    InaState,
    Install,
    JobEpoch,
    JobState,
    Remove,
    Request,
    RequestRefused,
    ShowJobs,
    WatchWorkers,
    WorkerGone,
)
from fared.extensions.ina.trains import TrainSocket
from fared.runtime.connection import LineConnection

_AT_ONCE = 64
"""Packets, or trains of them, read before anything else has its turn."""
_MOST_OPERATORS = 32
_LONGEST_WAIT = 60.0
_FOLLOW_EVERY = 5.0
"""Seconds between looks at the addresses from which packets to workers leave."""


class Settings(msgspec.Struct, frozen=True):
    """What the command line gives: address and port of packets, limits, and the unix socket."""

    address: str
    port: int
    socket: Path
    memory: int
    jobs: int
    bier: bool = False
    """Send results of jobs that have BFR-ids by BIER."""


class InaProcess:
    """Sockets and jobs. ``clock`` is monotonic."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """Open all sockets. Raises OSError."""
        self.settings, self._clock = settings, clock
        self.counters: Counter[str] = Counter()
        self._running = True
        self._instance = int.from_bytes(os.urandom(4), "big")
        self._log = structlog.get_logger("fared-ina")
        self._limit = LogRateLimiter()
        self._udp = open_udp(settings.address, settings.port)
        self._trains = TrainSocket(self._udp, self.counters)
        self._results = self._dissemination(self._trains)
        self.jobs = Jobs(
            settings.memory, settings.jobs, self._trains, self._results, self._job_failed
        )
        self.guests = Guests(self.jobs, self.counters, self._instance, self._gone)
        self._selector = selectors.DefaultSelector()
        self._listeners = WorkerListeners(
            self._selector, settings.address, settings.port, self._accept_guest
        )
        self._followed_at = 0.0
        self._unix = listen_unix(settings.socket)
        self._operators: set[LineConnection] = set()
        self._watcher: LineConnection | None = None
        self._now = 0.0
        """When the packets that are processed were received."""
        self._patience = 0.0
        """Seconds that the next ones may wait, to be processed together."""
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Request).decode
        for sock, action in (
            (self._udp, self._packets),
            (self._unix, self._accept_operator),
        ):
            self._selector.register(sock, selectors.EVENT_READ, action)

    def _dissemination(self, trains: TrainSocket) -> Dissemination:
        """Return the way of results. Raises OSError."""
        unicast = UnicastReplication(trains)
        if not self.settings.bier:
            return unicast
        source = (self.settings.address, self.settings.port)
        return BierReplication(unicast, source, self.counters)

    def stop(self) -> None:
        """End the loop: from a signal."""
        self._running = False

    def run(self) -> None:
        """Run until ``stop``."""
        while self._running:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - no job and no stranger ends the process
                self._contain(error)
        self.close()

    def _turn(self) -> None:
        now = self._clock()
        due = self.guests.deadline()
        again = self._followed_at + _FOLLOW_EVERY if self.jobs.all else math.inf
        wait = max(
            0.0, min(_LONGEST_WAIT, again - now, _LONGEST_WAIT if due is None else due - now)
        )
        for ready, mask in self._selector.select(wait):
            try:
                ready.data(mask)
            except Exception as error:  # noqa: BLE001 - as in ``run``
                self._contain(error)
        if due is not None and self._clock() >= due:
            self.guests.tick(self._clock())
            self._tidy()
        if self._clock() >= again:
            self._follow()
        self._trains.flush()
        if self._patience:
            time.sleep(self._patience)
            self._patience = 0.0

    def _contain(self, error: Exception, **what: object) -> None:
        """Count and log an exception that nobody expected; each kind is logged once a minute."""
        self.counters["internal-error"] += 1
        kind = type(error).__name__
        if self._limit.judge(0, kind, self._clock()) is not Verdict.SUPPRESS:
            self._log.error("internal-error", exc_info=error, **what)

    def _job_failed(self, job: JobEpoch, error: Exception) -> None:
        """A job has ended since its code raised."""
        self._contain(error, job=job.name)
        self.guests.removed(job.setup.job_id, "fared-ina of this router failed")
        self._follow()

    def _follow(self) -> None:
        """Listen where workers of the present jobs look for this router."""
        self._followed_at = self._clock()
        self.guests.hosts = self.jobs.hosts()
        self._listeners.follow(self.guests.hosts)

    def close(self) -> None:
        """Close all sockets; connections of workers just end."""
        for connection in (*self._operators, *(guest.line for guest in self.guests.all)):
            connection.close()
        self._listeners.close()
        for sock in (self._udp, self._unix):
            sock.close()
        if isinstance(self._results, BierReplication):
            self._results.close()
        self.settings.socket.unlink(missing_ok=True)

    # -- packets --------------------------------------------------------------------------------

    def _packets(self, _: int) -> None:
        self._now = self._clock()
        self._trains.receive(self._train, _AT_ONCE)
        self._patience = self.jobs.patience()

    def _train(self, source: tuple[str, int], train: memoryview, step: int) -> None:
        self.jobs.receive(source, train, step, self._now)

    # -- workers --------------------------------------------------------------------------------

    def _accept_guest(self, sock: socket.socket, address: str) -> None:
        guest = self.guests.accept(sock, address, self._clock())
        if guest is not None:
            self._selector.register(
                sock, selectors.EVENT_READ, lambda mask: self._serve_guest(guest, mask)
            )
            self._tidy()  # it may have come in place of another

    def _serve_guest(self, guest: Guest, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            guest.line.flush()
        if mask & selectors.EVENT_READ:
            try:
                self.guests.readable(guest)
            except Exception as error:  # noqa: BLE001 - as in ``run``
                self._contain(error)
                guest.line.closed = True
        self._tidy()

    def _gone(self, event: WorkerGone) -> None:
        if event.lost:
            self._log.warning("worker-lost", job=event.job_id, bfr_id=event.bfr_id)
        if self._watcher is not None:
            self._watcher.send(self._encode(event))

    # -- operators ------------------------------------------------------------------------------

    def _accept_operator(self, _: int) -> None:
        try:
            sock, _address = self._unix.accept()
        except OSError:
            return
        if len(self._operators) >= _MOST_OPERATORS:
            sock.close()
            return
        line = LineConnection(sock, MAX_LINE)
        self._operators.add(line)
        self._selector.register(
            sock, selectors.EVENT_READ, lambda mask: self._serve_operator(line, mask)
        )

    def _serve_operator(self, line: LineConnection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            line.flush()
        if mask & selectors.EVENT_READ:
            for text in line.messages():
                line.send(self._encode(self._answered(text, line)))
        self._tidy()

    def _answered(self, text: bytes, line: LineConnection) -> Answer:
        try:
            return self._answer(text, line)
        except Exception as error:  # noqa: BLE001 - as in ``run``
            self._contain(error)
            return RequestRefused(f"{type(error).__name__}: see the log")

    def _answer(self, text: bytes, line: LineConnection) -> Answer:
        try:
            request = self._decode(text)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            return RequestRefused(f"not a request of this version: {error}")
        match request:
            case Install():
                return self._install(request)
            case Remove(job_id, reason):
                return self._remove(job_id, reason)
            case ShowJobs():
                return self.state()
            case WatchWorkers():
                self._watcher = line
        return Done()

    def _install(self, request: Install) -> Answer:
        setup = request.job.setup
        try:
            begun = self.jobs.install(request)
        except JobError as error:
            self._log_refusal(setup.job_id, str(error))
            return RequestRefused(str(error))
        if begun:
            running = self.jobs.all[setup.job_id]
            self._follow()
            self.guests.began(running)
            self._log.info(
                "job-epoch", job=request.job.name, epoch=setup.epoch, reason=request.job.reason
            )
        return Done()

    def _remove(self, job_id: int, reason: str) -> Answer:
        removed = self.jobs.remove(job_id)
        if removed is None:
            return RequestRefused(f"no job {job_id}")
        self.guests.removed(job_id, reason)
        self._follow()
        self._log.info("job-removed", job=removed.current.name, reason=reason)
        return Done()

    def _log_refusal(self, job_id: int, reason: str) -> None:
        if self._limit.judge(job_id, reason, self._clock()) is not Verdict.SUPPRESS:
            self._log.warning("job-refused", job=job_id, reason=reason)

    def state(self) -> InaState:
        """Return the state of all jobs."""
        settings = self.settings
        return InaState(
            address=settings.address,
            port=settings.port,
            instance=self._instance,
            memory=self.jobs.memory(),
            memory_limit=settings.memory,
            job_limit=settings.jobs,
            counters=dict(self.counters + self.jobs.counters),
            jobs=[state for run in list(self.jobs.all.values()) for state in self._states(run)],
            bier=settings.bier,
        )

    def _states(self, running: RunningJob) -> list[JobState]:
        """Return the state of a job; it ends if that raises."""
        try:
            workers = self.guests.states(running)
            return [msgspec.structs.replace(state_of(running, self._clock()), workers=workers)]
        except Exception as error:  # noqa: BLE001 - as in ``run``
            self.jobs.fail(running.current, error)
            return []

    # -- connections ----------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Close connections that ended; wait for those to become writable that have to send."""
        for line in [line for line in self._operators if line.closed]:
            self._operators.discard(line)
            self._watcher = None if line is self._watcher else self._watcher
            self._selector.unregister(line.sock)
            line.close()
        for guest in [guest for guest in self.guests.all if guest.line.closed]:
            self._selector.unregister(guest.line.sock)
            guest.line.close()
            self.guests.ended(guest, self._clock())
        for line in (*self._operators, *(guest.line for guest in self.guests.all)):
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.blocked else 0)
            key = self._selector.get_key(line.sock)
            if key.events != wanted:
                self._selector.modify(line.sock, wanted, key.data)
