"""Jobs between what is flooded, the daemon, and ``fared-ina``, which may end and start again.

``JobManager`` decides. What comes is only noted, and all of it is considered together, soon.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable
from typing import Final

import msgspec

from fared.core.ids import NodeId, format_node
from fared.core.log_limit import LogRateLimiter, Verdict
from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import JobAdvert, SumCapability
from fared.extensions.ina.control.areas import JobArea
from fared.extensions.ina.control.creation import NewJob, length_of
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.exchange import (
    AddressAt,
    Begin,
    Brief,
    CheckAddresses,
    Checked,
    CreateJob,
    DeleteJob,
    FabricNow,
    FindHosts,
    Flood,
    FromJobs,
    HostsFound,
    Information,
    JobLog,
    JobsShown,
    RequestFailed,
    Show,
    ToJobs,
)
from fared.extensions.ina.control.manager import JobManager
from fared.extensions.ina.control.membership import report_of
from fared.extensions.ina.control.network import job_network
from fared.extensions.ina.control.wide import WideJobs
from fared.extensions.ina.jobd.addresses import addresses_of
from fared.extensions.ina.jobd.asking import AskedJobs
from fared.extensions.ina.jobd.rates import TreeRates
from fared.extensions.ina.jobd.report import brief, documents
from fared.extensions.ina.messages import (
    Answer,
    InaState,
    Install,
    Remove,
    Request,
    RequestRefused,
    ShowJobs,
    WatchWorkers,
    WorkerGone,
)
from fared.extensions.ina.plan.given import TreeError, parse_tree
from fared.extensions.ina.plan.model import GivenTree
from fared.extensions.ina.slots.packet import largest_payload

_ASK_EVERY: Final = 1.0
_RETRY: Final = 0.5
_SILENT: Final = 5.0
_WINDOW: Final = 24
_MOST_LINE: Final = 8 << 20
_SOONEST: Final = 0.01
_PAUSE: Final = 1.0
"""Pause after considering everything, in times of what that took: half of a core at most."""
_CHECK_AGAIN: Final = 5.0
"""Seconds after which an address that was not behind its router is looked at again."""
_MOST_CHECKED: Final = 1 << 16
_ORPHAN_FOR: Final = 60.0
"""Seconds for which ``fared-ina`` keeps a job that nobody floods: the daemon may just begin."""


class JobService:
    """The jobs of one router. ``tell`` sends a message to the daemon."""

    def __init__(self, begin: Begin, tell: Callable[[FromJobs], None]) -> None:
        self.node = begin.node
        self.state: InaState | None = None
        """What ``fared-ina`` told last; None: it does not answer."""
        self.manager = JobManager(begin.node, begin.limit)
        self.wide = WideJobs(begin.node, begin.limit, self.manager)
        self._asked_jobs = AskedJobs(self.wide, self._answer, self._soon, self._knows_tree)
        self.rates = TreeRates()
        self.hostnames: dict[NodeId, str] = {}
        """Also those of other areas' routers with a part in jobs."""
        self.problems: dict[int, str] = {}
        """Why jobs with a part for this router are not in its ``fared-ina``."""
        self._path, self._tell = begin.socket, tell
        self._loop = asyncio.get_running_loop()
        self._flooded: Flood | None = None
        self._brief = b""
        self._installed: dict[int, int] = {}
        """Epochs of jobs that ``fared-ina`` has, by id."""
        self._checked: dict[AddressAt, bool] = {}
        self._asked: set[AddressAt] = set()
        self._orphans: dict[int, float] = {}
        """Since when ``fared-ina`` has a job that nobody floods."""
        self._writer: asyncio.StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stale = False
        self._not_before = 0.0
        self._limit = LogRateLimiter()
        self._decode = msgspec.json.Decoder(Answer).decode
        self._task = asyncio.create_task(self._connect_again())

    # -- the daemon -----------------------------------------------------------------------------

    def take(self, message: ToJobs) -> None:
        """Process a message of the daemon. Whatever a stranger floods, nothing is raised."""
        try:
            self._process(message)
        except Exception as error:  # noqa: BLE001 - one message costs no other
            self._unexpected(error)

    def _process(self, message: ToJobs) -> None:
        match message:
            case Information(node, key, value, area):
                try:
                    self.wide.learned(area, node, key, value)
                except DecodeError as error:
                    self._refused(node, error)
                self._soon()
            case FabricNow(graphs, hostnames, bfrs):
                self.wide.hostnames = hostnames
                areas = [
                    JobArea(graph.area, graph.backbone, job_network([graph], self.node))
                    for graph in graphs
                ]
                self.wide.network_changed(areas, job_network(graphs, self.node, bfrs))
                self._soon()
            case Checked(found):
                self._note_addresses(found)
            case HostsFound(hosts):
                self.wide.found(hosts)
                if None in hosts.values():
                    self._loop.call_later(_CHECK_AGAIN, self._find_again)
                self._soon()
            case CreateJob() if any(place.leaf is None for place in message.places):
                self._asked_jobs.ask(message)
            case CreateJob() | DeleteJob() | Show():
                self._answer(message)

    def _refused(self, node: NodeId, error: DecodeError) -> None:
        self._log_once("ina-information-refused", node, error, router=format_node(node))

    def _find_again(self) -> None:
        self.wide.forget_unknown()
        self._soon()

    def _log(self, level: str, event: str, **fields: str | int | list[int]) -> None:
        self._tell(JobLog(level, event, fields))

    def _log_once(self, event: str, source: int, reason: object, **fields: str) -> None:
        """Log what somebody may cause without end: once a minute."""
        if self._limit.judge(source, str(reason), self._loop.time()) is not Verdict.SUPPRESS:
            self._log("warning", event, reason=str(reason), **fields)

    def _unexpected(self, error: Exception) -> None:
        self._log_once("ina-internal-error", 0, "".join(traceback.format_exception(error)))

    def _answer(self, message: CreateJob | DeleteJob | Show) -> None:
        now = self._loop.time()
        self._tell_manager()
        try:
            match message:
                case CreateJob():
                    self.manager.consider(now)
                    self.manager.create(self._new_job(message), now)
                    self._apply()
                case DeleteJob(_, name):
                    self.manager.delete(name, now)
                    self._apply()
            asked = message.name if isinstance(message, Show) else None
            whole, jobs = documents(self, asked)
        except ManagerError as error:
            code = "not-found" if isinstance(message, Show) else "bad-argument"
            self._tell(RequestFailed(message.number, code, str(error)))
        else:
            self._tell(JobsShown(message.number, whole, jobs))

    def _new_job(self, asked: CreateJob) -> NewJob:
        """Return the job that is asked for. Raises ManagerError."""
        tree = self._tree(asked)
        length = length_of(len(asked.places), asked.results)
        return NewJob(
            asked.name,
            asked.places,
            largest_payload(asked.mtu, length),
            _WINDOW,
            asked.results,
            asked.forced,
            asked.elastic,
            asked.share,
            tree,
            self.wide.is_wide(place.leaf for place in asked.places),
        )

    def _tree(self, asked: CreateJob) -> GivenTree | None:
        """Return the tree that is asked for. Raises ManagerError."""
        try:
            return None if asked.tree is None else parse_tree(asked.tree, self._router)
        except TreeError as error:
            raise ManagerError(f"no tree: {error}") from error

    def _knows_tree(self, asked: CreateJob) -> bool:
        try:
            self._tree(asked)
        except ManagerError:
            return False
        return True

    def _router(self, name: str) -> int:
        """Return the router of a hostname or id that sums. Raises ManagerError."""
        for node in self.manager.capabilities:
            if name in (format_node(node), self.hostnames.get(node)):
                return node
        told = "" if self.wide.areas.alone else ", nor tells a border router of it"
        raise ManagerError(f"no router {name} sums{told}")

    # -- decisions ------------------------------------------------------------------------------

    def _soon(self) -> None:
        """Consider everything once, soon, after a pause for what else comes."""
        if not self._stale:
            self._stale = True
            self._loop.call_at(max(self._loop.time(), self._not_before), self._consider)

    def _consider(self) -> None:
        self._stale = False
        now = self._loop.time()
        try:
            self._tell_manager()
            self.manager.consider(now)
            self._apply()
        except Exception as error:  # noqa: BLE001 - as in ``take``
            self._unexpected(error)
        after = self._loop.time()
        self._not_before = after + _PAUSE * (after - now)

    def _tell_manager(self) -> None:
        self.wide.tell_manager(self._refused)
        self.hostnames = self.wide.areas.names() | self.wide.hostnames

    def _apply(self) -> None:
        """Flood and install what the manager wants, and wake up when it is due."""
        for job_id, error in self.manager.take_failures():
            self._log("error", "ina-job-failed", job=job_id, error=error)
        flood = Flood(*self.wide.flooded())
        if flood != self._flooded:
            self._flooded = flood
            self._tell(flood)
        if unknown := self.wide.to_find():
            self._tell(FindHosts(unknown))
        wanted, parts = self.manager.wanted(), self.manager.parts()
        for job_id in [job_id for job_id in self._installed if job_id not in wanted]:
            if self._send(Remove(job_id, self.manager.why_ended(job_id))):
                del self._installed[job_id]
        self.problems = {
            job_id: self.manager.why_ended(job_id) for job_id in parts if job_id not in wanted
        }
        for job_id, advert in wanted.items():
            self._install(job_id, advert)
        for job_id, problem in self.problems.items():
            self._log_once("ina-job-refused", job_id, problem, job=parts[job_id].job.name)
        self._wake_up()

    def _wake_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.manager.next_deadline()
        if due is not None:
            soonest = max(self._loop.time() + _SOONEST, self._not_before)
            self._timer = self._loop.call_at(max(due, soonest), self._consider)

    def _install(self, job_id: int, advert: JobAdvert) -> None:
        job, epoch = advert.job, advert.job.setup.epoch
        if self._installed.get(job_id) == epoch:
            return
        members = {at: self._ways_to_check(*at) for at in addresses_of(advert, self.node)}
        if not self._look_up({way for ways in members.values() for way in ways}):
            return  # considered again when they are known
        behind = [at for at, ways in members.items() if any(self._checked[way] for way in ways)]
        wrong = min(members.keys() - behind, default=None)
        if wrong is not None:
            address, router = wrong
            self.problems[job_id] = f"{address} is not behind {format_node(NodeId(router))}"
            return
        own = tuple(bfr_id for bfr_id, leaf in advert.leaves.items() if leaf == self.node)
        if self._send(Install(job, self.node, own)):
            self._installed[job_id] = epoch
            told: dict[str, int | list[int]] = {}
            if job.setup.elastic:
                told = {"workers": len(job.setup.workers), "lost": job.lost_ranks}
            self._log("info", "ina-epoch", job=job.name, epoch=epoch, reason=job.reason, **told)

    # -- addresses ------------------------------------------------------------------------------

    def _ways_to_check(self, address: str, router: int) -> list[AddressAt]:
        """Return who may have an address behind it: its router, or who tells of it elsewhere."""
        others = sorted(self.wide.areas.tellers(address, router))
        return [(address, router, False), *((address, teller, True) for teller in others)]

    def _look_up(self, members: set[AddressAt]) -> bool:
        """Whether it is known where addresses are; else ask."""
        unknown = members - self._checked.keys()
        if fresh := unknown - self._asked:
            self._asked |= fresh
            self._tell(CheckAddresses(sorted(fresh)))
        return not unknown

    def _note_addresses(self, found: list[tuple[AddressAt, bool]]) -> None:
        if len(self._checked) > _MOST_CHECKED:
            self._checked.clear()
        self._checked.update(found)
        self._asked -= {at for at, _ in found}
        wrong = [at for at, behind in found if not behind]
        if wrong:
            self._loop.call_later(_CHECK_AGAIN, self._forget_addresses, wrong)
        self._soon()

    def _forget_addresses(self, wrong: list[AddressAt]) -> None:
        for at in wrong:
            self._checked.pop(at, None)
        self._soon()

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
                    self._log("info", "ina-process-found", address=state.address)
                self._found(state)
            case WorkerGone() as event:
                self._send(ShowJobs())
                if event.lost:
                    self._log("warning", "ina-worker-lost", job=event.job_id, bfr_id=event.bfr_id)
            case RequestRefused(reason):
                self._log_once("ina-job-refused", 0, reason)

    def _found(self, state: InaState) -> None:
        self.state = state
        now = self._loop.time()
        self.rates.observe(state, now)
        found = SumCapability(
            state.address,
            state.port,
            state.instance,
            state.memory_limit,
            state.job_limit,
            state.bier,
        )
        self.manager.process_found(found)
        reports = {job.job_id: report_of(job.workers) for job in state.jobs}
        joined = frozenset(
            job.job_id for job in state.jobs if any(w.state == "joined" for w in job.workers)
        )
        self.manager.workers_found(reports, joined)
        self._remove_orphans(state, now)
        self._soon()
        self._tell_brief()

    def _remove_orphans(self, state: InaState, now: float) -> None:
        """End jobs that nobody has flooded for long: the daemon ended when they did."""
        known = self.manager.parts()
        alone = {job.job_id for job in state.jobs if job.job_id not in known}
        self._orphans = {job_id: self._orphans.get(job_id, now) for job_id in alone}
        for job_id, since in self._orphans.items():
            if now - since >= _ORPHAN_FOR and job_id not in self._installed:
                self._send(Remove(job_id, self.manager.why_ended(job_id)))

    def _tell_brief(self) -> None:
        text = brief(self)
        if text != self._brief:
            self._brief = text
            self._tell(Brief(text))

    def _lost(self) -> None:
        if self.state is not None:
            self._log("warning", "ina-process-lost", socket=self._path)
        self.state, self._writer = None, None
        self.manager.process_found(None)
        self.manager.workers_found({}, frozenset())
        self._soon()
        self._tell_brief()

    def _send(self, request: Request) -> bool:
        if self._writer is None or self._writer.is_closing():
            return False
        self._writer.write(msgspec.json.encode(request) + b"\n")
        return True
