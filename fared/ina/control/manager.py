"""The jobs as one router sees them: which it is to install, and those that it leads.

Of several adverts of a job the highest epoch counts, then the lowest router. A head that is not
reachable, or withdraws a job that has not ended, is replaced: the routers of the job's workers wait
in turn, and the first one begins an epoch. The head begins one too if trees change: at once where
one of them cannot work any more, else when the last one is some seconds old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.core.wire import DecodeError
from fared.ina.by_bier import BierWay
from fared.ina.control.advert import (
    CAPABILITY_KEY,
    MOST_JOB_ID,
    JobAdvert,
    SumCapability,
    decode_capability,
    decode_job,
    encode_capability,
    encode_job,
    leaves_in_order,
)
from fared.ina.control.hops import Shape, hops_of, shapes_of
from fared.ina.control.planning import able_routers, plan_trees, setup_of_plan, summing_job
from fared.ina.control.reasons import JobReasons, reasons_of
from fared.ina.messages import JobEpoch, MemberAddress
from fared.ina.plan.model import Capacities, Direction, TreePlan, Vertex
from fared.ina.slots.packet import newer
from fared.ina.slots.setup import JobSetup, SetupError

WORKER_PORT = 54201
"""The first port of workers; each further worker of a host has the next free one."""
LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
_STEADY = 2.0
"""Seconds between epochs that only improve the trees."""
_TURN = 1.0
"""Seconds that a router waits before the next one in turn takes over."""
_ENDED_FOR = 30.0
"""Seconds for which the end of a job is flooded."""
_EPOCHS = 1 << 16
_RING = "no aggregation tree, workers form a ring"
MOST_JOBS = 4096


class ManagerError(ValueError):
    """A request that cannot be fulfilled; the text tells why."""


class WorkerPlace(msgspec.Struct, frozen=True):
    """A worker of a new job: its address, and its router."""

    address: str
    leaf: NodeId


class JobNetwork(msgspec.Struct, frozen=True):
    """The network: capacities of links (bytes/s), and the routers that are reachable."""

    links: Mapping[tuple[Vertex, Vertex], float]
    reachable: frozenset[NodeId]


class JobManager:
    """All jobs. ``limit`` is the most bytes of an advert."""

    def __init__(self, node: NodeId, limit: int) -> None:
        self._node, self._limit = node, limit
        self._network = JobNetwork({}, frozenset({node}))
        self._capability: SumCapability | None = None
        self._peers: dict[NodeId, SumCapability] = {}
        self._adverts: dict[int, dict[NodeId, JobAdvert]] = {}
        """By job and head, our own included."""
        self._instances: dict[int, dict[NodeId, int]] = {}
        """Of jobs that we lead: the instances of routers when the epoch began."""
        self._hops: dict[int, frozenset[Direction]] = {}
        """Of jobs that we lead: the links of the trees."""
        self._began: dict[int, float] = {}
        self._headless: dict[int, float] = {}
        """Since when a job has no head."""
        self._withdrawn: set[tuple[int, NodeId]] = set()
        """Adverts that a head withdrew before the job ended: after it restarted, for example."""
        self._tombs: dict[int, int] = {}
        """The last epoch of each ended job, since adverts of former heads may live on."""
        self._ended: dict[int, float] = {}

    # -- what is known --------------------------------------------------------------------------

    def best(self, job_id: int) -> tuple[NodeId, JobAdvert] | None:
        """Return the advert of a job that counts, and its head."""
        found: tuple[NodeId, JobAdvert] | None = None
        for head, advert in sorted(self._adverts.get(job_id, {}).items()):
            if found is None or newer(_epoch(advert), _epoch(found[1]), 16):
                found = head, advert
        return found

    @property
    def jobs(self) -> dict[int, tuple[NodeId, JobAdvert]]:
        """The jobs that run, by id, each with its head."""
        known = ((job_id, self.best(job_id)) for job_id in sorted(self._adverts))
        return {job_id: best for job_id, best in known if best is not None and not best[1].ended}

    @property
    def capabilities(self) -> dict[NodeId, SumCapability]:
        """The reachable routers that sum."""
        found = {n: c for n, c in self._peers.items() if n in self._network.reachable}
        if self._capability is not None:
            found[self._node] = self._capability
        return found

    def items(self) -> dict[int, bytes]:
        """Return what this router floods."""
        found: dict[int, bytes] = {}
        if self._capability is not None:
            found[CAPABILITY_KEY] = encode_capability(self._capability)
        for adverts in self._adverts.values():
            mine = adverts.get(self._node)
            if mine is not None:
                found[mine.key] = encode_job(mine)
        return found

    def wanted(self) -> dict[int, JobEpoch]:
        """Return the jobs that ``fared-ina`` of this router is to have."""
        return {
            job_id: advert.job
            for job_id, (_, advert) in self.jobs.items()
            if self._node in {*advert.job.members, *advert.leaves.values()}
        }

    def reasons(self, job_id: int) -> JobReasons:
        """Explain the trees of a job by the present capacities."""
        best = self.best(job_id)
        if best is None:
            return JobReasons()
        advert = best[1]
        return reasons_of(self._capacities(advert), summing_job(advert), self._plan(advert))

    @property
    def network(self) -> JobNetwork:
        """The network as it was last told."""
        return self._network

    # -- inputs ---------------------------------------------------------------------------------

    def process_found(self, capability: SumCapability | None, now: float) -> None:
        """``fared-ina`` of this router answers, with another instance perhaps, or (None) ended."""
        self._capability = capability
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
        else:
            self._learned_job(node, key, value)
        self._consider(now)

    def _learned_job(self, node: NodeId, key: int, value: bytes | None) -> None:
        job_id = key // 2
        adverts = self._adverts.setdefault(job_id, {})
        known = adverts.get(node)
        if value is None:
            if known is not None and known.key == key:
                if known.ended:
                    del adverts[node]
                else:
                    self._withdrawn.add((job_id, node))
        else:
            self._take(node, job_id, decode_job(value))
        if not adverts:
            del self._adverts[job_id]

    def _take(self, node: NodeId, job_id: int, advert: JobAdvert) -> None:
        """Take an advert of a job, unless a newer one of the same head is known."""
        if advert.job.setup.job_id != job_id:
            raise DecodeError("tlv", 1, "job of aggregation: another id")
        tomb = self._tombs.get(job_id)
        if tomb is not None and not newer(_epoch(advert), tomb, 16):
            return
        known = self._adverts[job_id].get(node)
        if known is not None and newer(_epoch(known), _epoch(advert), 16):
            return
        if known is None and len(self._adverts) > MOST_JOBS:
            return
        self._adverts[job_id][node] = advert
        self._withdrawn.discard((job_id, node))
        if advert.ended:
            self._bury(job_id, advert)

    def _bury(self, job_id: int, advert: JobAdvert) -> None:
        while len(self._tombs) >= MOST_JOBS:
            del self._tombs[next(iter(self._tombs))]
        self._tombs[job_id] = _epoch(advert)

    # -- operators ------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        workers: Iterable[WorkerPlace],
        payload: int,
        window: int,
        now: float,
        *,
        bier: BierWay | None = None,
    ) -> JobEpoch:
        """Begin a job that this router leads, whose results go by ``bier``. Raises ManagerError."""
        places = list(workers)
        if any(advert.job.name == name for _, advert in self.jobs.values()):
            raise ManagerError(f"job {name} exists")
        if not 2 <= len(places) <= LENGTHS[-1]:
            raise ManagerError(f"{len(places)} workers: 2 to {LENGTHS[-1]}")
        if places[0].leaf != self._node:
            raise ManagerError(
                f"create it at {format_node(places[0].leaf)}, the router of the first worker"
            )
        for place in places:
            if place.leaf not in self.capabilities:
                raise ManagerError(f"{format_node(place.leaf)}, of {place.address}, does not sum")
        length = length_of(len(places), bier)
        members = {
            -bfr_id: MemberAddress(place.address, port)
            for bfr_id, (place, port) in enumerate(zip(places, self._ports(places), strict=True), 1)
        }
        ids = tuple(range(1, len(places) + 1))
        setup = JobSetup(self._free_id(name), 0, length, payload, ids, ())
        leaves = {bfr_id: int(place.leaf) for bfr_id, place in enumerate(places, 1)}
        first = JobAdvert(JobEpoch(name, setup, members, bier=bier), leaves, payload, window)
        self._begin(first, "created", now)
        return self._adverts[setup.job_id][self._node].job

    def _ports(self, places: list[WorkerPlace]) -> list[int]:
        used = {
            endpoint.pair
            for _, advert in self.jobs.values()
            for vertex, endpoint in advert.job.members.items()
            if vertex < 0
        }
        found: list[int] = []
        for place in places:
            port = WORKER_PORT
            while (place.address, port) in used:
                port += 1
            used.add((place.address, port))
            found.append(port)
        return found

    def _free_id(self, name: str) -> int:
        wanted = int.from_bytes(name.encode()[:16], "big") % MOST_JOB_ID + 1
        while wanted in self._adverts or wanted in self._tombs:
            wanted = wanted % MOST_JOB_ID + 1
        return wanted

    def delete(self, name: str, now: float) -> None:
        """End a job. Raises ManagerError."""
        for job_id, (head, advert) in self.jobs.items():
            if advert.job.name == name:
                if head != self._node:
                    raise ManagerError(f"delete it at {format_node(head)}, its head")
                epoch = (_epoch(advert) + 1) % _EPOCHS
                last = _with_epoch(replace(advert, ended=True), epoch, "deleted")
                self._lead(last)
                self._bury(job_id, last)
                self._ended[job_id] = now + _ENDED_FOR
                return
        raise ManagerError(f"no job {name}")

    # -- decisions ------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Return when to call ``tick``."""
        dues = [*self._ended.values()]
        for job_id, (head, advert) in self.jobs.items():
            if head == self._node and job_id in self._began:
                dues.append(self._began[job_id] + _STEADY)
            elif job_id in self._headless:
                turn = self._turn(advert, head)
                if turn is not None:
                    dues.append(self._headless[job_id] + turn * _TURN)
        return min(dues, default=None)

    def tick(self, now: float) -> None:
        """Do what is due."""
        for job_id, when in list(self._ended.items()):
            if now >= when:
                del self._ended[job_id]
                self._adverts.get(job_id, {}).pop(self._node, None)
                if not self._adverts.get(job_id, True):
                    del self._adverts[job_id]
        self._consider(now)

    def _consider(self, now: float) -> None:
        """Give up jobs that another leads, replace lost heads, and plan anew."""
        for job_id, (head, advert) in self.jobs.items():
            if head != self._node:
                self._adverts[job_id].pop(self._node, None)
                self._began.pop(job_id, None)
                self._replace_head(job_id, head, advert, now)
            else:
                self._headless.pop(job_id, None)
                self._renew(job_id, advert, now)

    def _replace_head(self, job_id: int, head: NodeId, advert: JobAdvert, now: float) -> None:
        if head in self._network.reachable and (job_id, head) not in self._withdrawn:
            self._headless.pop(job_id, None)
            return
        since = self._headless.setdefault(job_id, now)
        turn = self._turn(advert, head)
        if turn is not None and now >= since + turn * _TURN:
            del self._headless[job_id]
            self._begin(advert, f"{format_node(head)} does not lead it any more", now)

    def _turn(self, advert: JobAdvert, head: NodeId) -> int | None:
        """Return our place among those that may replace a head; None: we may not."""
        able = self.capabilities
        order = [leaf for leaf in leaves_in_order(advert) if leaf in able and leaf != head]
        return order.index(self._node) if self._node in order else None

    def _renew(self, job_id: int, advert: JobAdvert, now: float) -> None:
        """Begin an epoch if other trees are better, or the present ones cannot work."""
        plan = self._plan(advert)
        why = self._broken(job_id)
        if not plan.trees:
            self._renew_as_ring(job_id, advert, why, now)
            return
        if why is None and not advert.job.setup.trees:
            if now < self._began.get(job_id, -math.inf) + _STEADY:
                return
            why = "there is an aggregation tree again"
        if why is None:
            why = self._better(job_id, advert, plan, now)
        if why is not None:
            self._begin(advert, why, now)

    def _renew_as_ring(self, job_id: int, advert: JobAdvert, why: str | None, now: float) -> None:
        """Begin a ring, unless it is one, or a leaf is cut off.

        Then nothing helps: workers wait, or give up by their timeout.
        """
        if advert.job.setup.trees and self._connected(advert):
            self._begin(advert, why or "capacities changed", now)
        elif now >= self._began.get(job_id, now) + _STEADY:
            del self._began[job_id]  # nothing is due

    def _better(self, job_id: int, advert: JobAdvert, plan: TreePlan, now: float) -> str | None:
        """Return why the planned trees are to replace those of the epoch, None if they are not."""
        try:
            after = shapes_of(setup_of_plan(advert, plan, 0).trees)
        except SetupError:
            return None
        if shapes_of(advert.job.setup.trees) == after:
            self._began.pop(job_id, None)
            return None
        why = self._cut(job_id, advert, after)
        if why is None and now >= self._began.setdefault(job_id, -math.inf) + _STEADY:
            why = "capacities changed"
        return why

    def _cut(self, job_id: int, advert: JobAdvert, after: Mapping[Shape, int]) -> str | None:
        """Return which link the present trees lack, None if they can go on."""
        lost = {tree.root for tree in advert.job.setup.trees} - {root for root, _ in after}
        if lost:
            return f"no link to {format_node(NodeId(min(lost)))}"
        links = self._network.links
        cut = min((hop for hop in self._hops.get(job_id, ()) if not links.get(hop)), default=None)
        if cut is None:
            return None
        tail, head = (format_node(NodeId(node)) for node in cut)
        return f"no link from {tail} to {head}"

    def _broken(self, job_id: int) -> str | None:
        """Return why slots of the present epoch are lost, None if they are not."""
        able = self.capabilities
        for node, instance in self._instances.get(job_id, {}).items():
            if node not in able:
                return f"{format_node(node)} does not sum any more"
            if able[node].instance != instance:
                return f"fared-ina of {format_node(node)} has started again"
        return None

    def _plan(self, advert: JobAdvert) -> TreePlan:
        return plan_trees(self._capacities(advert), advert)

    def _capacities(self, advert: JobAdvert) -> Capacities:
        mine = advert.job.setup.job_id
        others = (other for job_id, (_, other) in self.jobs.items() if job_id != mine)
        return Capacities(self._network.links, able_routers(advert, self.capabilities, others))

    def _connected(self, advert: JobAdvert) -> bool:
        """Whether all workers' routers are reachable."""
        return all(NodeId(leaf) in self._network.reachable for leaf in advert.leaves.values())

    def _begin(self, advert: JobAdvert, reason: str, now: float) -> None:
        """Plan a job and lead it in a new epoch. Raises ManagerError if it is a new one."""
        job_id, plan = advert.job.setup.job_id, self._plan(advert)
        created = job_id not in self._adverts
        if not plan.trees and not self._connected(advert):
            if created:
                raise ManagerError("no way between all workers")
            return
        setup = setup_of_plan(advert, plan, (_epoch(advert) + 1) % _EPOCHS)
        if not plan.trees:
            reason = f"{reason}: {_RING}"
        nodes = {node for tree in setup.trees for node in tree.nodes}
        able = self.capabilities
        # A router of workers whose daemon starts again at present is known from before.
        leaves = set(advert.leaves.values())
        members = {v: e for v, e in advert.job.members.items() if v < 0 or v in leaves}
        for node in sorted(nodes | leaves):
            capability = able.get(NodeId(node))
            if capability is not None:
                members[node] = MemberAddress(capability.address, capability.port)
        job = JobEpoch(advert.job.name, setup, members, reason, advert.job.bier)
        led = replace(advert, job=job)
        if len(encode_job(led)) > self._limit:
            if created:
                raise ManagerError(f"the job takes more than {self._limit} bytes of advertisement")
            return
        self._lead(led)
        self._began[job_id] = now
        self._hops[job_id] = hops_of(setup.trees, advert.leaves, self._network.links)
        self._instances[job_id] = {
            NodeId(node): able[NodeId(node)].instance for node in nodes if NodeId(node) in able
        }

    def _lead(self, advert: JobAdvert) -> None:
        self._adverts.setdefault(advert.job.setup.job_id, {})[self._node] = advert


def length_of(workers: int, bier: BierWay | None) -> int:
    """Return the bits of the job's strings: no less than those of BIER, which packets have too."""
    least = workers if bier is None else max(workers, bier.length)
    return next((size for size in LENGTHS if least <= size), LENGTHS[-1])


def _epoch(advert: JobAdvert) -> int:
    return advert.job.setup.epoch


def _with_epoch(advert: JobAdvert, epoch: int, reason: str) -> JobAdvert:
    setup = replace(advert.job.setup, epoch=epoch)
    return replace(advert, job=replace(advert.job, setup=setup, reason=reason))
