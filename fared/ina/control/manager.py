"""The jobs as one router sees them: which it is to install, and those that it leads.

A head that is not reachable, or withdraws a job that has not ended, is replaced: the routers of the
job's workers wait in turn, and the first one begins an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

from fared.core.ids import NodeId, format_node
from fared.ina.control.advert import (
    CAPABILITY_KEY,
    JobAdvert,
    SumCapability,
    decode_capability,
    encode_capability,
    encode_job,
    leaves_in_order,
)
from fared.ina.control.adverts import JobAdverts
from fared.ina.control.creation import NewJob
from fared.ina.control.errors import ManagerError
from fared.ina.control.leading import JobLeader, JobWorld
from fared.ina.control.membership import (
    LEAST_WORKERS,
    WORKERS_KEY,
    WorkerReport,
    decode_report,
    encode_report,
    with_changed_workers,
)
from fared.ina.control.network import JobNetwork
from fared.ina.control.planning import JobPlanner, summing_job
from fared.ina.control.reasons import JobReasons, reasons_of
from fared.ina.messages import JobEpoch

_TURN = 1.0
"""Seconds that a router waits before the next one in turn takes over."""
_GRACE = 0.1
"""The same for the first one, if the head withdrew a job: its next epoch has another key, and may
arrive after the withdrawal of the former one."""
_ENDED_FOR = 30.0
"""Seconds for which the end of a job is flooded."""


class JobManager:
    """All jobs. ``limit`` is the most bytes of an advert."""

    def __init__(self, node: NodeId, limit: int) -> None:
        self._node = node
        self._network = JobNetwork({}, frozenset({node}))
        self._capability: SumCapability | None = None
        self._peers: dict[NodeId, SumCapability] = {}
        self._adverts = JobAdverts()
        self._leader = JobLeader(node, limit, self._adverts)
        self._planner = JobPlanner()
        self._reports: dict[int, dict[NodeId, WorkerReport]] = {}
        """By job and router, our own included."""
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
        found = {n: c for n, c in self._peers.items() if n in self._network.reachable}
        if self._capability is not None:
            found[self._node] = self._capability
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

    def wanted(self) -> dict[int, JobEpoch]:
        """Return the jobs that ``fared-ina`` of this router is to have."""
        return {
            job_id: advert.job
            for job_id, (_, advert) in self.jobs.items()
            if self._node in {*advert.job.members, *advert.leaves.values()}
        }

    def why_ended(self, job_id: int) -> str:
        """Return why a job has ended."""
        best = self._adverts.best(job_id)
        return "deleted" if best is None or not best[1].ended else best[1].job.reason

    def reasons(self, job_id: int) -> JobReasons:
        """Explain the trees of a job by the present capacities."""
        best = self._adverts.best(job_id)
        if best is None:
            return JobReasons()
        world, advert = self._world(), best[1]
        network = world.capacities(advert, self._adverts)
        plans = world.plans(advert, self._adverts)
        mine = plans.pop(job_id)
        return reasons_of(network, summing_job(advert), mine, list(plans.values()))

    # -- inputs ---------------------------------------------------------------------------------

    def process_found(self, capability: SumCapability | None, now: float) -> None:
        """``fared-ina`` of this router answers, with another instance perhaps, or (None) ended."""
        self._capability = capability
        self._consider(now)

    def workers_found(self, reports: Mapping[int, WorkerReport], now: float) -> None:
        """Take how the workers of this router are, by job; of elastic jobs others learn it."""
        elastic = {i for i, (_, advert) in self.jobs.items() if advert.job.setup.elastic}
        for job_id in {*self._reports, *elastic}:
            report = reports.get(job_id) if job_id in elastic else None
            self._put_report(job_id, self._node, report if report != WorkerReport() else None)
        self._consider(now)

    def network_changed(self, network: JobNetwork, now: float) -> None:
        """Links or reachable routers may have changed."""
        if network != self._network:
            self._network = network
            self._consider(now)

    def learned(self, node: NodeId, key: int, value: bytes | None, now: float) -> None:
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
        self._consider(now)

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
        self._leader.begin(first, "created", self._world(), now)
        return self.jobs[first.job.setup.job_id][1].job

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
        """Return when to call ``tick``."""
        dues: list[float | None] = [*self._ended.values()]
        for job_id, (head, advert) in self.jobs.items():
            if head == self._node:
                dues.append(self._leader.due(job_id))
            elif job_id in self._headless:
                turn = self._turn(advert, head)
                if turn is not None:
                    dues.append(self._headless[job_id] + turn * _TURN)
        return min((due for due in dues if due is not None), default=None)

    def tick(self, now: float) -> None:
        """Do what is due."""
        for job_id, when in list(self._ended.items()):
            if now >= when:
                del self._ended[job_id]
                self._adverts.drop(job_id, self._node)
        self._consider(now)

    def _consider(self, now: float) -> None:
        """Give up jobs that another leads, replace lost heads, and plan anew."""
        for job_id, (head, advert) in self.jobs.items():
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
        if turn is not None and now >= since + turn * _TURN:
            del self._headless[job_id]
            why = f"{format_node(head)} does not lead it any more"
            self._leader.begin(advert, why, self._world(), now)

    def _turn(self, advert: JobAdvert, head: NodeId) -> int | None:
        """Return our place among those that may replace a head; None: we may not."""
        able = self.capabilities
        order = [leaf for leaf in leaves_in_order(advert) if leaf in able and leaf != head]
        return order.index(self._node) if self._node in order else None
