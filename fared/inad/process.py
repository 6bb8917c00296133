"""The loop of ``fared-ina``: packets, operators, workers."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from fared.core.log_limit import LogRateLimiter, Verdict
from fared.ina.lines import LineConnection
from fared.ina.messages import (
    Answer,
    Done,
    InaState,
    Install,
    Remove,
    Request,
    RequestRefused,
    ShowJobs,
    WatchWorkers,
    WorkerGone,
)
from fared.ina.trains import TrainSocket
from fared.inad.guests import Guest, Guests
from fared.inad.jobs import JobError, Jobs, state_of
from fared.inad.results import (
    BierReplication,
    Dissemination,
    UnicastReplication,
)

_AT_ONCE = 64
"""Packets, or trains of them, read before anything else has its turn."""
_MOST_OPERATORS = 32
_BUFFER = 8 << 20
_MODE = 0o660
_LONGEST_WAIT = 60.0
_RCVBUFFORCE, _SNDBUFFORCE = 33, 32
"""Above the limit of ``net.core.rmem_max``; with CAP_NET_ADMIN only."""


class Settings(msgspec.Struct, frozen=True):
    """What the command line gives: address and port of packets, limits, and the unix socket."""

    address: str
    port: int
    socket: Path
    memory: int
    jobs: int
    bier: bool = False
    """Send results of jobs that have BFR-ids by BIER."""


def open_udp(address: str, port: int, buffer: int = _BUFFER) -> socket.socket:
    """Open the socket of packets, with buffers as large as permitted. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for force, plain in ((_RCVBUFFORCE, socket.SO_RCVBUF), (_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, buffer)
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, plain, buffer)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def listen_unix(path: Path) -> socket.socket:
    """Listen for members of the process's group; a socket that nobody serves is replaced.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                except OSError:
                    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o777 & ~_MODE)
    try:
        listener.bind(str(path))
        listener.listen()  # at once: whoever sees the path may connect
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(umask)
    listener.setblocking(False)
    return listener


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
        self.jobs = Jobs(settings.memory, settings.jobs, self._trains, self._results)
        self.guests = Guests(self.jobs, self.counters, self._instance)
        self.guests.gone = self._gone
        self._tcp = socket.create_server(("", settings.port))
        self._tcp.setblocking(False)
        self._unix = listen_unix(settings.socket)
        self._operators: set[LineConnection] = set()
        self._watcher: LineConnection | None = None
        self._now = 0.0
        """When the packets that are processed were received."""
        self._patience = 0.0
        """Seconds that the next ones may wait, to be processed together."""
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Request).decode
        self._selector = selectors.DefaultSelector()
        for sock, action in (
            (self._udp, self._packets),
            (self._tcp, self._accept_guest),
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
            now = self._clock()
            due = self.guests.deadline()
            wait = _LONGEST_WAIT if due is None else max(0.0, min(_LONGEST_WAIT, due - now))
            for ready, mask in self._selector.select(wait):
                ready.data(mask)
            if due is not None and self._clock() >= due:
                self.guests.tick(self._clock())
                self._tidy()
            self._trains.flush()
            if self._patience:
                time.sleep(self._patience)
                self._patience = 0.0
        self.close()

    def close(self) -> None:
        """Close all sockets; connections of workers just end."""
        for connection in (*self._operators, *(guest.line for guest in self.guests.all)):
            connection.close()
        for sock in (self._udp, self._tcp, self._unix):
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

    def _accept_guest(self, _: int) -> None:
        try:
            sock, address = self._tcp.accept()
        except OSError:
            return
        guest = self.guests.accept(sock, address[0], self._clock())
        if guest is not None:
            self._selector.register(
                sock, selectors.EVENT_READ, lambda mask: self._serve_guest(guest, mask)
            )

    def _serve_guest(self, guest: Guest, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            guest.line.flush()
        if mask & selectors.EVENT_READ:
            self.guests.readable(guest)
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
        line = LineConnection(sock)
        self._operators.add(line)
        self._selector.register(
            sock, selectors.EVENT_READ, lambda mask: self._serve_operator(line, mask)
        )

    def _serve_operator(self, line: LineConnection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            line.flush()
        if mask & selectors.EVENT_READ:
            for text in line.lines():
                line.send(self._encode(self._answer(text, line)))
        self._tidy()

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
            jobs=[
                msgspec.structs.replace(
                    state_of(run, self._clock()), workers=self.guests.states(run)
                )
                for run in self.jobs.all.values()
            ],
        )

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
