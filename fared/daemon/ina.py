"""In-network aggregation in the daemon: jobs between what is flooded and ``fared-ina``.

Loaded where the configuration has ``ina``. ``JobManager`` decides; this module connects it to the
router, to time, and to the unix socket of ``fared-ina``, which may end and start again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from fared.core import igp
from fared.core.ids import NodeId, format_node
from fared.core.information import MAX_SIZE, MAX_SIZE_ISIS
from fared.core.links import Link
from fared.core.wire import DecodeError
from fared.daemon.ina_bier import way_by_bier
from fared.daemon.ina_network import hostname, job_network, leaf_of
from fared.daemon.ina_rates import TreeRates
from fared.daemon.rate_limited import RateLimitedLog
from fared.daemon.runner import Runner
from fared.ina.control.advert import SumCapability
from fared.ina.control.creation import NewJob, WorkerPlace, length_of
from fared.ina.control.errors import ManagerError
from fared.ina.control.manager import JobManager
from fared.ina.control.membership import report_of
from fared.ina.messages import (
    Answer,
    InaState,
    Install,
    JobEpoch,
    Remove,
    Request,
    RequestRefused,
    ShowJobs,
    WatchWorkers,
    WorkerGone,
)
from fared.ina.slots.packet import largest_payload
from fared.rib.solver import RouteSolver
from fared.router import events
from fared.router.protocols import ISIS

_ASK_EVERY: Final = 1.0
_RETRY: Final = 0.5
_SILENT: Final = 5.0
_WINDOW: Final = 24
_MOST_LINE: Final = 8 << 20
_KEPT_EVENTS: Final = 100
_SOONEST: Final = 0.01
_PAUSE: Final = 9.0
"""Pause after considering everything, in times of what that took: a tenth of the CPU at most."""
_USUAL_MTU: Final = 1500


class InaService:
    """The jobs of this router. ``path`` is the unix socket of ``fared-ina``."""

    def __init__(
        self,
        runner: Runner,
        path: str,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        links: Callable[[], Iterable[Link]],
    ) -> None:
        """``links`` are those of the kernel, whose least MTU limits packets."""
        self.state: InaState | None = None
        """What ``fared-ina`` told last; None: it does not answer."""
        self.gone: deque[WorkerGone] = deque(maxlen=_KEPT_EVENTS)
        self._runner, self._path, self._log, self._links = runner, path, log, links
        self._loop = asyncio.get_running_loop()
        limit = MAX_SIZE_ISIS if ISIS in runner.router.instances else MAX_SIZE
        self.manager = JobManager(self._root, limit)
        self.rates = TreeRates()
        self._flooded: dict[int, bytes] = {}
        self._installed: dict[int, int] = {}
        """Epochs of jobs that ``fared-ina`` has, by id."""
        self._writer: asyncio.StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stale = False
        self._not_before = 0.0
        self._unreadable = RateLimitedLog(log.warning, "ina-information-refused")
        self._refused = RateLimitedLog(log.warning, "ina-job-refused")
        self._decode = msgspec.json.Decoder(Answer).decode
        runner.observers.append(self._observe)
        self._task = asyncio.create_task(self._connect_again())

    def stop(self) -> None:
        """Stop; ``fared-ina`` keeps its jobs."""
        self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _root(self) -> NodeId:
        return self._runner.router.solver.root

    # -- the router -----------------------------------------------------------------------------

    def _observe(self, output: events.Output) -> None:
        match output:
            case events.From(_, igp.InformationUpdated(_, node, key, value)):
                try:
                    self.manager.learned(node, key, value, self._loop.time())
                except DecodeError as error:
                    self._unreadable(router=format_node(node), reason=str(error))
                self._soon()
            case events.Computed():
                self._soon()

    def _soon(self) -> None:
        """Consider everything once, soon; in large fabrics after a pause for other work."""
        if not self._stale:
            self._stale = True
            self._loop.call_at(max(self._loop.time(), self._not_before), self._consider)

    def _consider(self) -> None:
        self._stale = False
        now = self._loop.time()
        self.manager.network_changed(job_network(self._solvers(), self._root), now)
        self.manager.tick(now)
        self._apply()
        after = self._loop.time()
        self._not_before = after + _PAUSE * (after - now)

    def _solvers(self) -> Iterator[RouteSolver]:
        for instance in self._runner.router.instances.values():
            yield from instance.solvers.values()

    def _apply(self) -> None:
        """Flood and install what the manager wants, and wake up when it is due."""
        items = self.manager.items()
        if items != self._flooded:
            self._flooded = items
            self._runner.feed(igp.InformationOffered(items))
        wanted = self.manager.wanted()
        for job_id, job in wanted.items():
            self._install(job_id, job)
        for job_id in [job_id for job_id in self._installed if job_id not in wanted]:
            if self._send(Remove(job_id, self.manager.why_ended(job_id))):
                del self._installed[job_id]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.manager.next_deadline()
        if due is not None:
            self._timer = self._loop.call_at(max(due, self._loop.time() + _SOONEST), self._consider)

    def _install(self, job_id: int, job: JobEpoch) -> None:
        epoch = job.setup.epoch
        if self._installed.get(job_id) != epoch and self._send(Install(job, int(self._root))):
            self._installed[job_id] = epoch
            left = {"workers": len(job.setup.workers), "lost": job.lost_ranks}
            told = left if job.setup.elastic else {}
            self._log.info("ina-epoch", job=job.name, epoch=epoch, reason=job.reason, **told)

    # -- fared-ina ------------------------------------------------------------------------------

    async def _connect_again(self) -> None:
        """Keep a connection, and ask for the state every second."""
        while True:
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                await self._talk()
            self._lost()
            await asyncio.sleep(_RETRY)

    async def _talk(self) -> None:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=_MOST_LINE)
        self._writer, self._installed = writer, {}
        asking = asyncio.create_task(self._ask())
        try:
            self._send(WatchWorkers())
            while line := await asyncio.wait_for(reader.readline(), _SILENT):
                self._take(line)
        finally:
            asking.cancel()
            writer.close()

    async def _ask(self) -> None:
        while self._send(ShowJobs()):  # noqa: ASYNC110 - it waits for time alone
            await asyncio.sleep(_ASK_EVERY)

    def _take(self, line: bytes) -> None:
        """Process an answer. Raises msgspec.MsgspecError, a ValueError, for another version's."""
        match self._decode(line):
            case InaState() as state:
                if self.state is None:
                    self._log.info("ina-process-found", address=state.address)
                self.state = state
                self.rates.observe(state, self._loop.time())
                found = SumCapability(state.address, state.port, state.instance, state.memory_limit)
                self.manager.process_found(found, self._loop.time())
                reports = {job.job_id: report_of(job.workers) for job in state.jobs}
                self.manager.workers_found(reports, self._loop.time())
                self._apply()
            case WorkerGone() as event:
                self.gone.append(event)
                self._send(ShowJobs())
                if event.lost:
                    self._log.warning("ina-worker-lost", job=event.job_id, bfr_id=event.bfr_id)
            case RequestRefused(reason):
                self._refused(reason=reason)

    def _lost(self) -> None:
        if self.state is not None:
            self._log.warning("ina-process-lost", socket=self._path)
        self.state, self._writer = None, None
        self.manager.process_found(None, self._loop.time())
        self.manager.workers_found({}, self._loop.time())
        self._apply()

    def _send(self, request: Request) -> bool:
        if self._writer is None or self._writer.is_closing():
            return False
        self._writer.write(msgspec.json.encode(request) + b"\n")
        return True

    # -- operators ------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        workers: Sequence[str],
        mtu: int | None,
        *,
        bier: bool = False,
        elastic: bool = False,
        share: float = 1.0,
    ) -> JobEpoch:
        """Begin a job of these hosts, by address; with ``bier`` results go by BIER.

        An ``elastic`` one goes on without workers that are lost. ``mtu`` None: the least one of
        this router's links. ``share``: its part of links that other jobs use, too. Raises
        ManagerError.
        """
        self._consider()
        routing = self._runner.router.multicast.bier if bier else None
        if bier and routing is None:
            raise ManagerError("BIER does not run here (bier)")
        way = None if routing is None else way_by_bier(routing, workers)
        length = length_of(len(workers), way)
        used = [link.mtu for link in self._links() if link.up and not link.loopback]
        payload = largest_payload(mtu or min(used, default=_USUAL_MTU), length)
        places = [WorkerPlace(address, leaf_of(self._solvers(), address)) for address in workers]
        new = NewJob(name, places, payload, _WINDOW, way, elastic, share)
        job = self.manager.create(new, self._loop.time())
        self._apply()
        return job

    def delete(self, name: str) -> None:
        """End a job. Raises ManagerError."""
        self.manager.delete(name, self._loop.time())
        self._apply()

    def hostname(self, node: NodeId) -> str | None:
        """Return the hostname that a router advertises."""
        return hostname(self._solvers(), node)
