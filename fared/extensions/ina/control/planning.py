"""The trees of jobs that are flooded: which routers are able, how jobs share, what is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.control.advert import JobAdvert, SumCapability
from fared.extensions.ina.control.network import JobNetwork
from fared.extensions.ina.control.places import Demand, RouterPlaces, admitted
from fared.extensions.ina.plan.dissemination import lacks_bier, plan_results
from fared.extensions.ina.plan.given import TreeError, given_tree
from fared.extensions.ina.plan.model import (
    AggregationTree,
    Capacities,
    SummingJob,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.plan.planner import plan_jobs
from fared.extensions.ina.plan.trees import routers_below
from fared.extensions.ina.slots.setup import JobSetup, setup_of, tree_size

_BESIDE = 2
"""Vertices on the way of a worker to its own router."""
_MOST_STREAMS = 2
_MOST_KEPT = 64
_MOST_TOGETHER = 64
"""Jobs that are planned together: that takes some seconds at most."""


def summing_job(advert: JobAdvert, able: frozenset[Vertex] | None = None) -> SummingJob:
    """Return the job as it is planned; ``able`` are the routers with memory for it."""
    workers = {bfr_id: advert.leaves[bfr_id] for bfr_id in advert.job.setup.workers}
    way = advert.way
    unicast = way if isinstance(way, str) else ""
    return SummingJob(
        advert.job.name, workers, math.inf, advert.share, able, unicast, advert.tree, advert.wide
    )


def without_broken(network: Capacities, job: SummingJob) -> SummingJob:
    """Return the job, without its given tree if that cannot work at present."""
    if job.given is None:
        return job
    try:
        tree = given_tree(network, job, job.given)
    except TreeError:
        return replace(job, given=None)
    limits = (network.links.get(link, math.inf) for link in tree.loads())
    return job if 0 < min(limits) < math.inf else replace(job, given=None)


class KnownJob(NamedTuple):
    """A job that runs, and its head."""

    head: NodeId
    advert: JobAdvert

    @property
    def job_id(self) -> int:
        """The id of the job."""
        return self.advert.job.setup.job_id


def demands_of(one: KnownJob) -> dict[Vertex, int]:
    """Return the bytes that a job takes in each router that has a part in it."""
    setup = one.advert.job.setup
    return dict.fromkeys(one.advert.leaves.values(), setup.size) | setup.memory


def demands(running: Iterable[KnownJob]) -> dict[Vertex, dict[int, Demand]]:
    """Return what jobs take of each router, by job id."""
    found: dict[Vertex, dict[int, Demand]] = {}
    for one in running:
        for node, size in demands_of(one).items():
            found.setdefault(node, {})[one.job_id] = Demand(one.head, one.job_id, size)
    return found


def able_routers(
    one: KnownJob,
    capabilities: Mapping[NodeId, SumCapability],
    known: Mapping[Vertex, Mapping[int, Demand]],
) -> frozenset[Vertex]:
    """Return the routers that have a place for a tree of a job beside the ``known`` jobs."""
    setup, advert = one.advert.job.setup, one.advert
    needed = setup.size + tree_size(setup.length, advert.payload, advert.window, len(setup.workers))
    mine = {one.job_id: Demand(one.head, one.job_id, needed)}
    return frozenset(
        int(node)
        for node, found in capabilities.items()
        if one.job_id in admitted({**known.get(node, {}), **mine}.values(), found.places)
    )


class JobPlanner:
    """The trees of a job, planned together with those of all jobs that it may share links with.

    So every head gets the same plans from the same database, and rates are max-min fair. They
    depend on jobs and capacities, not on present trees, else jobs would avoid each other for ever.
    Plans are kept while links and jobs are the same.
    """

    def __init__(self) -> None:
        self._network = JobNetwork({}, frozenset())
        self._senders: frozenset[Vertex] = frozenset()
        """The routers that send results by BIER."""
        self._plans: dict[tuple[int, ...], tuple[tuple[SummingJob, ...], list[TreePlan]]] = {}
        self._below: dict[int, tuple[SummingJob, frozenset[Vertex]]] = {}
        """By job id: the routers whose links it uses."""
        self._placed: tuple[list[KnownJob], dict[NodeId, SumCapability]] = [], {}
        self._able: dict[int, frozenset[Vertex]] = {}
        """By job id: the routers that have a place for it, beside the jobs of ``_placed``."""
        self._taken: dict[Vertex, dict[int, Demand]] = {}

    def plans(
        self,
        known_network: JobNetwork,
        able: Mapping[NodeId, SumCapability],
        one: KnownJob,
        others: Iterable[KnownJob],
    ) -> dict[int, TreePlan]:
        """Return the plans of a job and of those that it shares links with, by job id.

        A plan without trees: a ring of the workers is better.
        """
        known = {each.job_id: each for each in (one, *others)}
        network = Capacities(known_network.links, frozenset(map(int, able)))
        senders = frozenset(int(node) for node, found in able.items() if found.bier)
        same = self._network is known_network and self._senders == senders
        if not same or len(self._plans) > _MOST_KEPT:
            self._network, self._senders = known_network, senders
            self._plans.clear()
            self._below.clear()
        meeting = self._meeting(network, one, known)
        self._place(known, able)
        jobs = tuple(
            without_broken(
                network, summing_job(known[job_id].advert, self._able_for(known[job_id]))
            )
            for job_id in meeting
        )
        return dict(zip(meeting, self._planned(network, meeting, jobs), strict=True))

    def _place(self, known: Mapping[int, KnownJob], able: Mapping[NodeId, SumCapability]) -> None:
        """Forget which routers have places, if jobs or routers have changed."""
        given = [known[job_id] for job_id in sorted(known)], dict(able)
        if given != self._placed:
            self._placed, self._able = given, {}
            self._taken = demands(given[0])

    def _able_for(self, one: KnownJob) -> frozenset[Vertex]:
        if one.job_id not in self._able:
            self._able[one.job_id] = able_routers(one, self._placed[1], self._taken)
        return self._able[one.job_id]

    def _planned(
        self, network: Capacities, job_ids: tuple[int, ...], jobs: tuple[SummingJob, ...]
    ) -> list[TreePlan]:
        kept = self._plans.get(job_ids)
        if kept is None or kept[0] != jobs:
            found = plan_results(
                lambda jobs: [_or_ring(plan) for plan in plan_jobs(network, jobs)],
                jobs,
                lambda plan: lacks_bier(
                    plan, self._network.bfrs, self._senders, lambda node: format_node(NodeId(node))
                ),
            )
            kept = self._plans[job_ids] = jobs, found
        return kept[1]

    def _meeting(
        self, network: Capacities, one: KnownJob, known: Mapping[int, KnownJob]
    ) -> tuple[int, ...]:
        """Return the ids of the jobs that a job shares links with, its own included, ascending.

        Of very many it is those that have a place among ``_MOST_TOGETHER``.
        """
        found = {one.job_id}
        if len(known) == 1:
            return tuple(found)
        everybody = [Demand(each.head, each.job_id, 0) for each in known.values()]
        chosen = admitted(everybody, RouterPlaces(_MOST_TOGETHER, 0)) | found
        below = {job_id: self._routers_below(network, known[job_id].advert) for job_id in chosen}
        while True:
            routers = frozenset[Vertex]().union(*(below[job_id] for job_id in found))
            more = {job_id for job_id, own in below.items() if own & routers}
            if more <= found:
                return tuple(sorted(found))
            found |= more

    def _routers_below(self, network: Capacities, advert: JobAdvert) -> frozenset[Vertex]:
        job_id, job = advert.job.setup.job_id, summing_job(advert, network.adders)
        job = without_broken(network, job)
        kept = self._below.get(job_id)
        if kept is None or kept[0] != job:
            below = routers_below(network, job)
            if job.given is not None:
                loads = given_tree(network, job, job.given).loads()
                below |= {vertex for link in loads for vertex in link if vertex >= 0}
            kept = self._below[job_id] = job, below
        return kept[1]


def _or_ring(plan: TreePlan) -> TreePlan:
    """Return a plan, without trees where a ring of the workers is better."""
    if plan.job.given is None and all(_serves(rated.tree) for rated in plan.trees):
        return TreePlan(plan.job, ())
    return plan


def _serves(tree: AggregationTree) -> bool:
    """Whether the root is a leaf with the streams of three others: a parameter server.

    Its links carry each of them, those of a ring 2(n-1)/n of the array.
    """
    children = [child for child, parent in tree.parents.items() if parent == tree.root]
    own = [child for child in children if child < 0 and len(tree.routes[child]) == _BESIDE]
    return bool(own) and len(children) - len(own) > _MOST_STREAMS


def setup_of_plan(advert: JobAdvert, plan: TreePlan, epoch: int) -> JobSetup:
    """Return the setup of a job in an epoch, a ring if nothing is planned. Raises SetupError."""
    setup = advert.job.setup
    if not plan.trees:
        return replace(setup, epoch=epoch, trees=())
    found = setup_of(
        plan,
        job_id=setup.job_id,
        epoch=epoch,
        length=setup.length,
        payload=advert.payload,
        window=advert.window,
    )
    return replace(found, elastic=setup.elastic, since=setup.since)
