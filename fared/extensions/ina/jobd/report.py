"""The document of ``show ina``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.control.advert import JobAdvert
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.manager import JobManager
from fared.extensions.ina.control.reasons import JobReasons, NoRoot
from fared.extensions.ina.document import (
    BIER,
    UNICAST,
    InaDirection,
    InaHere,
    InaJob,
    InaJobs,
    InaNode,
    InaNoRoot,
    InaProcessFacts,
    InaTree,
    InaTreeSlots,
    InaWorker,
    SummingRouter,
)
from fared.extensions.ina.jobd.rates import TreeRates
from fared.extensions.ina.messages import InaState, JobState, TreeState
from fared.extensions.ina.plan.model import Direction, Vertex, members
from fared.extensions.ina.slots.setup import TreeRole, TreeSetup, tree_roles
from fared.management.api.encode import encode

_MOST_DRAWN = 8192
"""Workers and edges of trees."""


class JobFacts(Protocol):
    """What is known of the jobs of a router."""

    @property
    def state(self) -> InaState | None:
        """What ``fared-ina`` told last; None: it does not answer."""

    @property
    def manager(self) -> JobManager:
        """The jobs as they are flooded."""

    @property
    def rates(self) -> TreeRates:
        """Rates of trees as seen here."""

    @property
    def problems(self) -> Mapping[int, str]:
        """Why jobs with a part for this router are not in its ``fared-ina``."""

    @property
    def hostnames(self) -> Mapping[NodeId, str]:
        """The hostnames that routers advertise."""


def documents(service: JobFacts, name: str | None) -> tuple[bytes, bytes]:
    """Return the document without its jobs, and these, or the one of a name, as JSON.

    With planned rates and reasons, which take a plan of each job. Raises ManagerError if there is
    no such job.
    """
    found = [
        _AggregationReport(service, head, advert, explain=True).document()
        for head, advert in service.manager.jobs.values()
        if name in (None, advert.job.name)
    ]
    if name is not None and not found:
        raise ManagerError(f"no job {name}")
    return encode(_without_jobs(service)), encode(found)


def brief(service: JobFacts) -> bytes:
    """Return the document for metrics and the page as JSON.

    Trees and workers of the first jobs, as far as ``_MOST_DRAWN`` of them reach.
    """
    found = []
    room = _MOST_DRAWN
    for head, advert in service.manager.jobs.values():
        setup = advert.job.setup
        room -= len(setup.workers) + sum(len(tree.parents) for tree in setup.trees)
        report = _AggregationReport(service, head, advert, explain=False)
        found.append(report.document() if room >= 0 else report.outline())
    return encode(InaJobs(enabled=True, process=_process(service), jobs=found))


def _state_of(service: JobFacts, job_id: int) -> JobState | None:
    jobs = [] if service.state is None else service.state.jobs
    return next((job for job in jobs if job.job_id == job_id), None)


def _process(service: JobFacts) -> InaProcessFacts | None:
    return None if service.state is None else InaProcessFacts.of(service.state)


def _without_jobs(service: JobFacts) -> InaJobs:
    """Return what ``fared-ina`` of this router tells, and who sums."""
    routers = [
        SummingRouter.of(found, router=format_node(node), hostname=service.hostnames.get(node))
        for node, found in sorted(service.manager.capabilities.items())
    ]
    return InaJobs(enabled=True, process=_process(service), routers=routers)


class _AggregationReport:
    """One job: what is flooded, planned, and seen here."""

    def __init__(
        self,
        service: JobFacts,
        head: NodeId,
        advert: JobAdvert,
        *,
        explain: bool,
    ) -> None:
        self._service, self._head, self._advert = service, head, advert
        self._job, self._setup = advert.job, advert.job.setup
        self._ranks = advert.job.ranks
        self._reasons = service.manager.reasons(self._setup.job_id) if explain else JobReasons()
        told = self._told = _state_of(service, self._setup.job_id)
        self._here = {} if told is None else {tree.tree_id: tree for tree in told.per_tree}
        self._workers = {} if told is None else {one.bfr_id: one for one in told.workers}

    def outline(self) -> InaJob:
        """Return the document without trees and workers."""
        return self._document([], [])

    def document(self) -> InaJob:
        """Return the document of the job."""
        workers = [self._worker(bfr_id, rank) for bfr_id, rank in self._ranks.items()]
        return self._document([self._tree(tree) for tree in self._setup.trees], workers)

    def _document(self, trees: list[InaTree], workers: list[InaWorker]) -> InaJob:
        rates = [tree.seen for tree in trees if tree.seen is not None]
        progress = [one.progress for one in self._workers.values() if one.progress is not None]
        waits = {bfr_id for told in progress for bfr_id in told.waits_for}
        waits |= set() if self._told is None else set(self._told.waited_for)
        return InaJob(
            name=self._job.name,
            job_id=self._setup.job_id,
            epoch=self._setup.epoch,
            reason=self._job.reason,
            head=format_node(self._head),
            head_hostname=self._service.hostnames.get(self._head),
            payload=self._setup.payload,
            elastic=self._setup.elastic,
            lost=self._job.lost_ranks,
            share=self._advert.share,
            results=UNICAST if self._job.bier is None else BIER,
            unicast=self._job.unicast,
            planned=sum(tree.planned or 0.0 for tree in trees),
            seen=sum(rates) if rates else None,
            waits_for=self._ranks_of(waits),
            repeated=sum(told.repeated for told in progress),
            wrong=sum(told.wrong for told in progress),
            wide=self._advert.wide,
            workers=workers,
            trees=trees,
            others=[self._no_root(other) for other in self._reasons.others],
            problem=self._service.problems.get(self._setup.job_id),
            here=self._local(),
        )

    def _ranks_of(self, bfr_ids: Iterable[int]) -> list[int]:
        return sorted(self._ranks[bfr_id] for bfr_id in bfr_ids if bfr_id in self._ranks)

    def _local(self) -> InaHere | None:
        told = self._told
        if told is None:
            return None
        return InaHere.of(
            told,
            waits_for=self._ranks_of(told.waited_for),
            workers={str(worker.rank): worker.state for worker in told.workers},
        )

    def _worker(self, bfr_id: int, rank: int) -> InaWorker:
        endpoint = self._job.members[-bfr_id]
        leaf = NodeId(self._advert.leaves[bfr_id])
        seen = self._workers.get(bfr_id)
        known = seen is not None and seen.state != "absent"
        told = None if seen is None else seen.progress
        return InaWorker.of(
            endpoint,
            rank=rank,
            router=format_node(leaf),
            hostname=self._service.hostnames.get(leaf),
            state=seen.state if seen is not None and known else None,
            repeated=None if told is None else told.repeated,
        )

    def _tree(self, tree: TreeSetup) -> InaTree:
        reason = self._reasons.of(tree.root, tree.parents)
        same = self._told is not None and self._told.epoch == self._setup.epoch
        rate = self._service.rates.rate(self._setup.job_id, tree.tree_id) if same else None
        found = self._here.get(tree.tree_id) if same else None
        root = NodeId(tree.root)
        return InaTree.of(
            tree,
            tree=tree.tree_id,
            root=format_node(root),
            hostname=self._service.hostnames.get(root),
            kind=None if reason is None else reason.kind,
            planned=None if reason is None else reason.rate,
            seen=rate,
            limits=[] if reason is None else [self._direction(link) for link in reason.links],
            limited_at=[] if reason is None else [format_node(NodeId(v)) for v in reason.routers],
            nodes=[self._node(node, role) for node, role in tree_roles(tree).items()],
            here=None if found is None else self._slots(found),
        )

    def _slots(self, found: TreeState) -> InaTreeSlots:
        return InaTreeSlots.of(
            found, open=found.open_slots, waits_for=self._ranks_of(found.waited_for)
        )

    def _node(self, node: Vertex, role: TreeRole) -> InaNode:
        bits, parent = role.bits, role.parent
        return InaNode(
            router=format_node(NodeId(node)),
            hostname=self._service.hostnames.get(NodeId(node)),
            parent=None if parent is None else format_node(NodeId(parent)),
            ranks=self._ranks_of(members(bits)),
            bits=f"{bits:0{self._setup.length // 4}x}",
        )

    def _direction(self, link: Direction) -> InaDirection:
        tail, head = (NodeId(node) for node in link)
        return InaDirection(
            tail=self._vertex(tail),
            tail_hostname=self._service.hostnames.get(tail),
            head=self._vertex(head),
            head_hostname=self._service.hostnames.get(head),
        )

    def _vertex(self, vertex: NodeId) -> str:
        """Return the id of a router, or the address of a worker."""
        return self._job.members[vertex].address if vertex < 0 else format_node(vertex)

    def _no_root(self, found: NoRoot) -> InaNoRoot:
        reason = found.reason
        if found.lacks is not None:
            leaf = NodeId(found.lacks)
            reason = f"{reason} {self._service.hostnames.get(leaf) or format_node(leaf)}"
        router = NodeId(found.router)
        return InaNoRoot(
            router=format_node(router),
            hostname=self._service.hostnames.get(router),
            reason=reason,
        )
