"""The jobs that this router leads: when an epoch begins, and with which trees.

At once where a tree cannot work any more or workers of an elastic job are lost or come back; else,
if other trees are better, when the last epoch is some seconds old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.extensions.ina.control.advert import JobAdvert, SumCapability, encode_job
from fared.extensions.ina.control.adverts import JobAdverts, epoch_of
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.network import JobNetwork
from fared.extensions.ina.control.planning import (
    JobPlanner,
    KnownJob,
    able_routers,
    demands,
    setup_of_plan,
    summing_job,
    without_broken,
)
from fared.extensions.ina.messages import MemberAddress
from fared.extensions.ina.plan.given import TreeError, check_given
from fared.extensions.ina.plan.model import (
    Capacities,
    Direction,
    GivenTree,
    TreePlan,
    Vertex,
)
from fared.extensions.ina.slots.setup import JobSetup, SetupError, TreeSetup

Shape = tuple[Vertex, frozenset[Direction], frozenset[Vertex]]
"""Root, all edges toward it, and the routers past which packets come."""


def shapes_of(trees: Iterable[TreeSetup]) -> dict[Shape, int]:
    """Return the weight of each tree by its shape."""
    return {
        (
            tree.root,
            frozenset({*tree.parents.items(), *tree.above.items()}),
            frozenset(tree.sums),
        ): tree.weight
        for tree in trees
    }


def hops_of(
    trees: Iterable[TreeSetup], leaves: Mapping[int, Vertex], links: Mapping[Direction, float]
) -> frozenset[Direction]:
    """Return the links that packets of the trees take for certain, in the direction of each.

    ``leaves``: the routers of workers. Edges over several routers follow routes, and need no
    certain link.
    """
    found: set[Direction] = set()
    for tree in trees:
        straight = {child: tree.root for child in tree.parents if child < 0}
        for ways, upward in ((tree.parents, True), ({**straight, **tree.above}, False)):
            for child, parent in ways.items():
                near = leaves[-child] if child < 0 else child
                found.add((near, parent) if upward else (parent, near))
    return frozenset(found & links.keys())


STEADY = 2.0
"""Seconds between epochs that only improve the trees."""
EPOCHS = 1 << 16
_RING = "no aggregation tree, workers form a ring"


class JobWorld(msgspec.Struct, frozen=True):
    """What trees are planned from: the network, and the routers that sum."""

    network: JobNetwork
    able: Mapping[NodeId, SumCapability]
    planner: JobPlanner

    def capacities(self, one: KnownJob, adverts: JobAdverts) -> Capacities:
        """Return links, and the routers that have a place for a job beside all others."""
        taken = demands((one, *_others(one, adverts)))
        return Capacities(self.network.links, able_routers(one, self.able, taken))

    def plans(self, one: KnownJob, adverts: JobAdverts) -> dict[int, TreePlan]:
        """Return the best trees of a job, and of those that it shares links with, by id."""
        return self.planner.plans(self.network, self.able, one, _others(one, adverts))

    def connects(self, advert: JobAdvert) -> bool:
        """Whether the routers of all workers are reachable."""
        leaves = (advert.leaves[bfr_id] for bfr_id in advert.job.setup.workers)
        return all(NodeId(leaf) in self.network.reachable for leaf in leaves)


def _others(one: KnownJob, adverts: JobAdverts) -> list[KnownJob]:
    return [KnownJob(*other) for job_id, other in adverts.running.items() if job_id != one.job_id]


class _Led(msgspec.Struct):
    """What the present epoch of a job needs."""

    instances: dict[NodeId, int]
    """Of the routers that sum, when it began."""
    hops: frozenset[Direction]
    began: float = -math.inf
    settled: bool = False
    """Whether the trees are the best ones, so that nothing is due."""


class JobLeader:
    """The jobs that ``node`` leads. ``limit`` is the most bytes of an advert."""

    def __init__(self, node: NodeId, limit: int, adverts: JobAdverts) -> None:
        self._node, self._limit, self._adverts = node, limit, adverts
        self._led: dict[int, _Led] = {}

    def forget(self, job_id: int) -> None:
        """Another router leads a job."""
        self._led.pop(job_id, None)

    def due(self, job_id: int) -> float | None:
        """Return when other trees may replace those of a job, if that may be wanted."""
        led = self._led.get(job_id)
        return None if led is None or led.settled else led.began + STEADY

    # -- when an epoch begins -------------------------------------------------------------------

    def renew(self, advert: JobAdvert, world: JobWorld, now: float) -> None:
        """Begin an epoch if other trees are better, or the present ones cannot work."""
        job_id = advert.job.setup.job_id
        led = self._led.setdefault(job_id, _Led({}, frozenset()))
        plan = self._plan(advert, world)
        why = _broken(led, world)
        if not plan.trees:
            self._renew_as_ring(advert, led, why, world, now)
            return
        if why is None and not advert.job.setup.trees:
            led.settled = False
            if now < led.began + STEADY:
                return
            why = "there is an aggregation tree again"
        if why is None:
            why = _better(led, advert, plan, world, now)
        if why is not None:
            self.begin(advert, why, world, now)

    def _renew_as_ring(
        self, advert: JobAdvert, led: _Led, why: str | None, world: JobWorld, now: float
    ) -> None:
        """Begin a ring, unless it is one, or a leaf is cut off.

        Then nothing helps: workers wait, or give up by their timeout.
        """
        if advert.job.setup.trees and world.connects(advert):
            self.begin(advert, why or "capacities changed", world, now)
        elif now >= led.began + STEADY:
            led.settled = True

    # -- a new epoch ----------------------------------------------------------------------------

    def begin(
        self,
        advert: JobAdvert,
        reason: str,
        world: JobWorld,
        now: float,
        *,
        forced: bool = False,
    ) -> None:
        """Plan a job and lead it in a new epoch. Raises ManagerError if it is a new one.

        ``forced``: if results cannot go by BIER, it is an error.
        """
        job_id = advert.job.setup.job_id
        created = not self._adverts.is_known(job_id)
        if created and advert.tree is not None:
            self._check_tree(advert, advert.tree, world)
        plan = self._plan(advert, world)
        if not plan.trees and not world.connects(advert):
            if created:
                raise ManagerError("no way between all workers")
            return
        setup = setup_of_plan(advert, plan, (epoch_of(advert) + 1) % EPOCHS)
        if not plan.trees:
            reason = f"{reason}: {_RING}"
        unicast, members = plan.job.unicast, _members(advert, setup, world.able)
        if forced and unicast:
            raise ManagerError(f"results cannot go by BIER: {unicast}")
        way = None if unicast or isinstance(advert.way, str) else advert.way
        job = replace(
            advert.job, setup=setup, members=members, reason=reason, bier=way, unicast=unicast
        )
        if created:
            leaves = set(map(NodeId, advert.leaves.values())) & world.able.keys()
            job = replace(job, doors={leaf: world.able[leaf].instance for leaf in sorted(leaves)})
        led = replace(advert, job=job)
        if len(encode_job(led)) > self._limit:
            if created:
                raise ManagerError(f"the job takes more than {self._limit} bytes of advertisement")
            return
        self._adverts.put(self._node, led)
        sums = (NodeId(node) for tree in setup.trees for node in tree.nodes)
        self._led[job_id] = _Led(
            {node: world.able[node].instance for node in sums if node in world.able},
            hops_of(setup.trees, advert.leaves, world.network.links),
            now,
        )

    def _check_tree(self, advert: JobAdvert, given: GivenTree, world: JobWorld) -> None:
        """Raise ManagerError if a new job cannot have its tree."""
        network = world.capacities(KnownJob(self._node, advert), self._adverts)
        job = summing_job(advert)
        try:
            check_given(network, job, given, lambda node: format_node(NodeId(node)))
        except TreeError as error:
            raise ManagerError(f"no such tree: {error}") from error
        if without_broken(network, job).given is None:
            raise ManagerError("no such tree: the capacity of its links is not known")

    def _plan(self, advert: JobAdvert, world: JobWorld) -> TreePlan:
        """Return the best trees of a job of ours."""
        mine = KnownJob(self._node, advert)
        return world.plans(mine, self._adverts)[mine.job_id]

    def end(self, advert: JobAdvert, reason: str) -> None:
        """End a job."""
        setup = replace(advert.job.setup, epoch=(epoch_of(advert) + 1) % EPOCHS)
        job = replace(advert.job, setup=setup, reason=reason)
        last = replace(advert, job=job, ended=True)
        self._adverts.put(self._node, last)
        self._adverts.bury(last)
        self.forget(setup.job_id)


def _members(
    advert: JobAdvert, setup: JobSetup, able: Mapping[NodeId, SumCapability]
) -> dict[Vertex, MemberAddress]:
    """Return the addresses of workers, and of routers with a part in an epoch."""
    # A router of workers whose daemon starts again at present is known from before.
    leaves = set(advert.leaves.values())
    found = {v: e for v, e in advert.job.members.items() if v < 0 or v in leaves}
    for node in sorted({node for tree in setup.trees for node in tree.nodes} | leaves):
        capability = able.get(NodeId(node))
        if capability is not None:
            found[node] = MemberAddress(capability.address, capability.port)
    return found


def _broken(led: _Led, world: JobWorld) -> str | None:
    """Return why slots of the present epoch are lost, None if they are not."""
    for node, instance in led.instances.items():
        found = world.able.get(node)
        if found is None and node not in world.network.reachable:
            return _no_link(node)
        if found is None:
            return f"{format_node(node)} does not sum any more"
        if found.instance != instance:
            return f"fared-ina of {format_node(node)} has started again"
    return None


def _better(
    led: _Led, advert: JobAdvert, plan: TreePlan, world: JobWorld, now: float
) -> str | None:
    """Return why the planned trees are to replace those of the epoch, None if they are not."""
    try:
        after = shapes_of(setup_of_plan(advert, plan, 0).trees)
    except SetupError:
        return None
    same = shapes_of(advert.job.setup.trees) == after
    unicast = plan.job.unicast
    led.settled = same and bool(unicast) == bool(advert.job.unicast)
    if led.settled:
        return None
    why = None if same else _cut(led, advert, after, world.network)
    if why is not None:
        return why
    why = f"results by unicast: {unicast}" if unicast else "results by BIER"
    return (why if same else "capacities changed") if now >= led.began + STEADY else None


def _cut(
    led: _Led, advert: JobAdvert, after: Mapping[Shape, int], network: JobNetwork
) -> str | None:
    """Return which link the present trees lack, None if they can go on."""
    lost = {tree.root for tree in advert.job.setup.trees} - {root for root, _, _ in after}
    if lost:
        return _no_link(NodeId(min(lost)))
    cut = min((hop for hop in led.hops if not network.links.get(hop)), default=None)
    if cut is None:
        return None
    tail, head = (format_node(NodeId(node)) for node in cut)
    return f"no link from {tail} to {head}"


def _no_link(node: NodeId) -> str:
    return f"no link to {format_node(node)}"
