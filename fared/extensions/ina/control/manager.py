"""The jobs as one router sees them: which it is to install, and those that it leads.

A job lives as long as its head, or workers of it that have joined. A head that is not reachable, or
withdraws a job that has not ended, is replaced: routers to which workers of the job are connected
wait in turn, and the first one begins an epoch. If there are none, the job is left.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.control.advert import (
    CAPABILITY_KEY,
    JobAdvert,
    SumCapability,
    decode_capability,
    encode_capability,
    encode_job,
    leaves_in_order,
)
from fared.extensions.ina.control.adverts import JobAdverts
from fared.extensions.ina.control.creation import NewJob
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.leading import JobLeader, JobWorld
from fared.extensions.ina.control.membership import (
    LEAST_WORKERS,
    WORKERS_KEY,
    WorkerReport,
    decode_report,
    encode_report,
    with_changed_workers,
)
from fared.extensions.ina.control.network import JobNetwork
from fared.extensions.ina.control.places import Demand, admitted
from fared.extensions.ina.control.planning import JobPlanner, KnownJob, demands, summing_job
from fared.extensions.ina.control.reasons import JobReasons, reasons_of
from fared.extensions.ina.messages import JobEpoch

_TURN = 1.0
"""Seconds that a router waits before the next one in turn takes over."""
_GRACE = 0.1
"""The same for the first one, if the head withdrew a job: its next epoch has another key, and may
arrive after the withdrawal of the former one."""
_MOST_TURNS = 8
_LEFT_AFTER = 10.0
"""Seconds after which nobody leads a job any more: all turns are over."""
_ENDED_FOR = 30.0
"""Seconds for which the end of a job is flooded."""


class JobManager:
    """All jobs. ``limit`` is the most bytes of an advert."""

    def __init__(self, node: NodeId, limit: int) -> None:
        self._node = node
        self._network = JobNetwork({}, frozenset({node}))
        self._capability: SumCapability | None = None
        self._peers: dict[NodeId, SumCapability] = {}
        self._beyond: Mapping[NodeId, SumCapability] = {}
        """Routers of other areas, as border routers tell."""
        self._adverts = JobAdverts()
        self._leader = JobLeader(node, limit, self._adverts)
        self._planner = JobPlanner()
        self._reports: dict[int, dict[NodeId, WorkerReport]] = {}
        """By job and router, our own included."""
        self._joined: frozenset[int] = frozenset()
        """Jobs of which workers are connected to this router."""
        self._failures: list[tuple[int, str]] = []
        self._headless: dict[int, float] = {}
        """From when on others may lead a job that has no head."""
        self._ended: dict[int, float] = {}
        """Until when the end of a job that we led is flooded."""

    # -- what is known --------------------------------------------------------------------------

    @property
    def jobs(self) -> dict[int, tuple[NodeId, JobAdvert]]:
        """The jobs that run, by id, each with its head."""
        return self._adverts.running

    @property
    def network(self) -> JobNetwork:
        """The network as it was last told."""
        return self._network

    @property
    def capabilities(self) -> dict[NodeId, SumCapability]:
        """The reachable routers that sum."""
        known = {**self._beyond, **self._peers}
        found = {n: c for n, c in known.items() if n in self._network.reachable}
        if self._capability is not None:
            found[self._node] = self._capability
        return found

    @property
    def crossing(self) -> list[tuple[NodeId, JobAdvert]]:
        """The jobs of several areas that are flooded, each with who floods it."""
        return self._adverts.crossing()

    @property
    def offered(self) -> dict[NodeId, SumCapability]:
        """The routers of our areas that sum, with what their other jobs leave for wide ones."""
        own = {} if self._capability is None else {self._node: self._capability}
        found = {n: c for n, c in (self._peers | own).items() if n in self._network.reachable}
        local = [KnownJob(*job) for job in self.jobs.values() if not job[1].wide]
        for node, taken in demands(local).items():
            if (told := found.get(NodeId(node))) is not None:
                jobs = max(0, told.jobs - len(taken))
                memory = max(0, told.memory - sum(one.memory for one in taken.values()))
                found[NodeId(node)] = replace(told, jobs=jobs, memory=memory)
        return found

    def _world(self) -> JobWorld:
        return JobWorld(self._network, self.capabilities, self._planner)

    def items(self) -> dict[int, bytes]:
        """Return what this router floods."""
        found: dict[int, bytes] = {}
        if self._capability is not None:
            found[CAPABILITY_KEY] = encode_capability(self._capability)
        for mine in self._adverts.of(self._node):
            found[mine.key] = encode_job(mine)
        running = self.jobs
        for job_id, reports in self._reports.items():
            if self._node in reports and job_id in running:
                found[WORKERS_KEY + job_id] = encode_report(reports[self._node])
        return found

    def parts(self) -> dict[int, JobAdvert]:
        """Return the jobs in which this router has a part."""
        return {
            job_id: advert
            for job_id, (_, advert) in self.jobs.items()
            if self._node in {*advert.job.members, *advert.leaves.values()}
        }

    def wanted(self) -> dict[int, JobAdvert]:
        """Return those of them that have a place in its ``fared-ina``."""
        parts, jobs = self.parts(), self.jobs
        if self._capability is None:
            return parts
        taken = [
            Demand(jobs[job_id][0], job_id, advert.job.setup.taken(self._node))
            for job_id, advert in parts.items()
        ]
        placed = admitted(taken, self._capability.places)
        return {job_id: advert for job_id, advert in parts.items() if job_id in placed}

    def why_ended(self, job_id: int) -> str:
        """Return why a job has ended here."""
        best = self._adverts.best(job_id)
        if best is None:
            return "nobody leads it any more"
        head, advert = best
        if advert.ended:
            return advert.job.reason
        if job_id not in self.parts():
            return "this router has no part in it any more"
        return f"no place at this router: {format_node(head)} has its share of jobs or memory"

    def reasons(self, job_id: int) -> JobReasons:
        """Explain the trees of a job by the present capacities."""
        best = self._adverts.best(job_id)
        if best is None:
            return JobReasons()
        world, one = self._world(), KnownJob(*best)
        network = world.capacities(one, self._adverts)
        plans = world.plans(one, self._adverts)
        mine = plans.pop(job_id)
        return reasons_of(network, summing_job(one.advert), mine, list(plans.values()))

    # -- inputs ---------------------------------------------------------------------------------

    def process_found(self, capability: SumCapability | None) -> None:
        """``fared-ina`` of this router answers, with another instance perhaps, or (None) ended."""
        self._capability = capability

    def workers_found(self, reports: Mapping[int, WorkerReport], joined: frozenset[int]) -> None:
        """Take how the workers of this router are, by job; of elastic jobs others learn it.

        ``joined`` are the jobs of which some are connected.
        """
        self._joined = joined
        elastic = {i for i, (_, advert) in self.jobs.items() if advert.job.setup.elastic}
        for job_id in {*self._reports, *elastic}:
            report = reports.get(job_id) if job_id in elastic else None
            self._put_report(job_id, self._node, report if report != WorkerReport() else None)

    def network_changed(self, network: JobNetwork) -> None:
        """Links or reachable routers may have changed."""
        if network != self._network:
            self._network = network

    def told_of_beyond(self, routers: Mapping[NodeId, SumCapability]) -> None:
        """Border routers tell who sums in other areas."""
        self._beyond = routers

    def learned(self, node: NodeId, key: int, value: bytes | None) -> None:
        """Take what a router floods; None: it withdrew that. Raises DecodeError."""
        if key == CAPABILITY_KEY:
            self._peers.pop(node, None)
            if value is not None:
                self._peers[node] = decode_capability(value)
        elif key >= WORKERS_KEY:
            report = None if value is None else decode_report(value)
            self._put_report(key - WORKERS_KEY, node, report)
        else:
            self._adverts.learned(node, key, value)

    def _put_report(self, job_id: int, node: NodeId, report: WorkerReport | None) -> None:
        found = self._reports.setdefault(job_id, {})
        found.pop(node, None)
        if report is not None:
            found[node] = report
        if not found:
            del self._reports[job_id]

    # -- operators ------------------------------------------------------------------------------

    def create(self, new: NewJob, now: float) -> JobEpoch:
        """Begin a job that this router leads. Raises ManagerError."""
        names = {advert.job.name for _, advert in self.jobs.values()}
        new.check(self._node, names, self.capabilities)
        first = new.advert(self._adverts)
        self._find_places(first)
        self._leader.begin(first, "created", self._world(), now, forced=new.forced)
        return self.jobs[first.job.setup.job_id][1].job

    def _find_places(self, new: JobAdvert) -> None:
        """Raise ManagerError if a router of a worker has no place, or another job would lose it."""
        one = KnownJob(self._node, new)
        taken = demands((one, *(KnownJob(*job) for job in self.jobs.values())))
        mine = {job_id for job_id, (head, _) in self.jobs.items() if head == self._node}
        for leaf in leaves_in_order(new):
            found = taken[leaf]
            placed = admitted(found.values(), self.capabilities[leaf].places)
            if one.job_id not in placed or not mine & found.keys() <= placed:
                raise ManagerError(f"{format_node(leaf)} has no place for a further job")

    def delete(self, name: str, now: float) -> None:
        """End a job. Raises ManagerError."""
        for head, advert in self.jobs.values():
            if advert.job.name == name:
                if head != self._node:
                    raise ManagerError(f"delete it at {format_node(head)}, its head")
                self._end(advert, "deleted", now)
                return
        raise ManagerError(f"no job {name}")

    def _end(self, advert: JobAdvert, reason: str, now: float) -> None:
        self._leader.end(advert, reason)
        self._ended[advert.job.setup.job_id] = now + _ENDED_FOR

    # -- decisions ------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Return when to call ``consider``."""
        dues: list[float | None] = [*self._ended.values()]
        for job_id, (head, advert) in self.jobs.items():
            if head == self._node:
                dues.append(self._leader.due(job_id))
            elif job_id in self._headless:
                turn = self._turn(advert, head)
                wait = _LEFT_AFTER if turn is None else turn * _TURN
                dues.append(self._headless[job_id] + wait)
        return min((due for due in dues if due is not None), default=None)

    def consider(self, now: float) -> None:
        """Do what is due: give up jobs that another leads, replace lost heads, and plan anew.

        What was taken since the last time is considered together. A job whose code raises is
        forgotten, or ends: see ``take_failures``.
        """
        for job_id, when in list(self._ended.items()):
            if now >= when:
                del self._ended[job_id]
                self._adverts.drop(job_id, self._node)
        for job_id, head in self._adverts.silent:
            if head in self._network.reachable:
                self._adverts.hear(job_id, head)
        for job_id, (head, advert) in self.jobs.items():
            try:
                self._consider_one(job_id, head, advert, now)
            except Exception as error:  # noqa: BLE001 - anybody may have flooded it
                self._failures.append((job_id, f"{type(error).__name__}: {error}"))
                self._leader.forget(job_id)
                self._adverts.drop(job_id, head)

    def take_failures(self) -> list[tuple[int, str]]:
        """Return the jobs that raised, with the errors, once."""
        found, self._failures = self._failures, []
        return found

    def _consider_one(self, job_id: int, head: NodeId, advert: JobAdvert, now: float) -> None:
        if head == self._node:
            self._headless.pop(job_id, None)
            self._lead(advert, now)
        else:
            self._adverts.drop(job_id, self._node)
            self._leader.forget(job_id)
            self._replace_head(job_id, head, advert, now)

    def _lead(self, advert: JobAdvert, now: float) -> None:
        """Begin an epoch if workers changed, or trees are to."""
        reports = self._reports.get(advert.job.setup.job_id, {})
        changed = with_changed_workers(advert, reports)
        if changed is None:
            self._leader.renew(advert, self._world(), now)
        elif len(changed[0].job.setup.workers) < LEAST_WORKERS:
            self._end(advert, f"{changed[1]}: {LEAST_WORKERS} workers are needed", now)
        else:
            self._leader.begin(*changed, self._world(), now)

    def _replace_head(self, job_id: int, head: NodeId, advert: JobAdvert, now: float) -> None:
        withdrawn = self._adverts.is_withdrawn(job_id, head)
        if head in self._network.reachable and not withdrawn:
            self._headless.pop(job_id, None)
            return
        since = self._headless.setdefault(job_id, now + (_GRACE if withdrawn else 0.0))
        turn = self._turn(advert, head)
        if turn is None and now >= since + _LEFT_AFTER:
            del self._headless[job_id]
            self._adverts.leave(job_id, head)
        elif turn is not None and now >= since + turn * _TURN:
            del self._headless[job_id]
            why = f"{format_node(head)} does not lead it any more"
            self._leader.begin(advert, why, self._world(), now)

    def _turn(self, advert: JobAdvert, head: NodeId) -> int | None:
        """Return our place among those that may replace a head; None: we may not."""
        if advert.job.setup.job_id not in self._joined:
            return None
        able = self.capabilities
        order = [leaf for leaf in leaves_in_order(advert) if leaf in able and leaf != head]
        return min(order.index(self._node), _MOST_TURNS) if self._node in order else None
