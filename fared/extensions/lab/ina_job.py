"""In-network aggregation in a lab: a job's trees from the rates of the kernels, its installation.

The lab plans with the same code as ``fared-cli ina plan``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.messages import Install, JobEpoch, MemberAddress, Remove
from fared.extensions.ina.operator import OperatorError, ask
from fared.extensions.ina.plan.dissemination import AS_ASKED, lacks_bier, plan_results
from fared.extensions.ina.plan.given import TreeError, check_given, parse_tree
from fared.extensions.ina.plan.model import (
    Capacities,
    Direction,
    GivenTree,
    SummingJob,
    TreePlan,
)
from fared.extensions.ina.plan.planner import plan_jobs
from fared.extensions.ina.slots.packet import DEFAULT_PORT, largest_payload
from fared.extensions.ina.slots.setup import setup_of
from fared.extensions.lab.addressing import SUB_DOMAIN, AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import VETH_RATE, Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_server import address_of, names_of, vertex_of, with_server
from fared.extensions.lab.kinds.fared import INA_SOCKET
from fared.extensions.lab.ranks import rank_of

WINDOW = 24
WORKER_PORT = DEFAULT_PORT + 1
_LENGTH = 64


def capacities(plan: AddressPlan, rate: Rate) -> Capacities:
    """Return the links between routers as the kernels shape them; vertices are node numbers."""
    links: dict[Direction, float] = {}
    for router in plan.routers:
        for port in router.fabric_ports:
            own = rate(port)
            link = router.number, plan.node(port.peer).number
            links[link] = links.get(link, 0.0) + (VETH_RATE if own is None else own)
    adders = frozenset(router.number for router in plan.routers if router.node.ina)
    return Capacities(links, adders)


def summing_job(plan: AddressPlan, name: str, hosts: Sequence[str]) -> SummingJob:
    """Return the job of some hosts, BFR-ids in their order. Raises LabError."""
    if len(hosts) > _LENGTH:
        raise LabError(f"{len(hosts)} workers: at most {_LENGTH}")
    leaves = {
        number: plan.node(rank_of(plan, host).leaf).number for number, host in enumerate(hosts, 1)
    }
    return SummingJob(name, leaves, math.inf)


def lab_tree(plan: AddressPlan, text: str) -> GivenTree:
    """Read a tree of router names, ``s1,s7,s6``, the root last, which may be a host.

    Raises LabError.
    """
    root = text.rpartition(",")[2].strip()

    def number(name: str) -> int:
        found = plan.nodes.get(name)
        if found is not None and not found.node.is_router and name == root:
            return vertex_of(plan, name)
        if found is None or not found.node.is_router:
            raise LabError(f"no router {name!r}: {', '.join(node.name for node in plan.routers)}")
        return found.number

    try:
        return parse_tree(text, number)
    except TreeError as error:
        raise LabError(f"no tree: {error}") from error


def plan_together(
    jobs: Sequence[LabJob],
    rate: Rate,
    *,
    relays: bool = True,
    bier: bool | None = None,
    tree: GivenTree | None = None,
) -> list[TreePlan]:
    """Return the trees of jobs that share the links of a lab, or the one of ``tree``.

    ``bier``: whether results go by BIER; None: if all routers of the trees and the hosts have it.
    Raises LabError if there is no tree, or no BIER that is wished.
    """
    plan = jobs[0].fabric.plan
    network = with_server(plan, capacities(plan, rate), tree)
    names = names_of(plan)
    bfrs = {router.number for router in plan.routers if router.bfr is not None}
    wanted = [job.wanted(bier=bier, tree=tree) for job in jobs]
    for one in wanted:
        try:
            if one.given is not None:
                check_given(network, one, one.given, names.__getitem__)
        except TreeError as error:
            raise LabError(f"no such tree: {error}") from error
    plans = plan_results(
        lambda some: plan_jobs(network, some, relays=relays),
        wanted,
        lambda planned: lacks_bier(planned, bfrs, bfrs, names.__getitem__),
    )
    for found in plans:
        if bier and found.job.unicast:
            raise LabError(f"results cannot go by BIER: {found.job.unicast}")
        if not found.trees:
            raise LabError("no aggregation tree: a leaf cannot reach the others over INA routers")
    return plans


class LabJob:
    """A job in the processes of a lab, from ``install`` to ``remove``."""

    def __init__(
        self,
        fabric: Fabric,
        name: str,
        job_id: int,
        hosts: Sequence[str],
        port: int = WORKER_PORT,
    ) -> None:
        """``port`` is that of its workers, which other jobs over the same hosts do not have."""
        self.fabric, self.hosts, self.job_id, self.port = fabric, tuple(hosts), job_id, port
        self.job = summing_job(fabric.plan, name, hosts)
        self.epoch = 0

    def plan(
        self,
        rate: Rate,
        *,
        relays: bool = True,
        bier: bool | None = None,
        tree: GivenTree | None = None,
    ) -> TreePlan:
        """Return the trees of this job alone, as ``plan_together`` does. Raises LabError."""
        (found,) = plan_together([self], rate, relays=relays, bier=bier, tree=tree)
        return found

    def wanted(self, *, bier: bool | None, tree: GivenTree | None) -> SummingJob:
        """Return the job as it is to be planned."""
        way = AS_ASKED if bier is False else self.way_by_bier()
        unicast = way if isinstance(way, str) else ""
        return replace(self.job, unicast=unicast, given=tree, wide=self._crosses())

    def install(self, found: TreePlan, reason: str = "created") -> None:
        """Begin an epoch with the trees of a plan. Raises LabError."""
        plan = self.fabric.plan
        self.epoch += 1
        mtu = min(port.mtu for node in plan.nodes.values() for port in node.ports)
        setup = setup_of(
            found,
            job_id=self.job_id,
            epoch=self.epoch,
            length=_LENGTH,
            payload=largest_payload(mtu, _LENGTH),
            window=WINDOW,
        )
        routers = sorted({node for tree in setup.trees for node in tree.nodes} | {*self.job.leaves})
        way, unicast = self.way_by_bier(), found.job.unicast
        message = JobEpoch(
            self.job.name,
            setup,
            self._members(routers),
            reason,
            None if unicast or isinstance(way, str) else way,
            unicast,
        )
        for number in routers:
            self._ask(number, Install(message, number))

    def _crosses(self) -> bool:
        """Whether workers are in several areas or levels."""
        leaves = [self.fabric.plan.node(rank_of(self.fabric.plan, at).leaf) for at in self.hosts]
        return len({(leaf.home_area, leaf.node.isis_area) for leaf in leaves}) > 1

    def way_by_bier(self) -> BierWay | str:
        """Return the BFR-ids of the workers, or whose leaf runs no BIER."""
        ids: dict[int, int] = {}
        lengths: set[int] = set()
        for number, host in enumerate(self.hosts, 1):
            rank = rank_of(self.fabric.plan, host)
            leaf, address = self.fabric.plan.node(rank.leaf), rank.nic.address.ip
            if leaf.bfr is None or address not in leaf.bfr.hosts:
                return f"{host} has no BFR-id: {leaf.name} needs the label fared-lab.bier: on"
            ids[number] = leaf.bfr.hosts[address]
            lengths.add(leaf.bfr.length)
        (length,) = lengths
        return BierWay(SUB_DOMAIN, length, ids)

    def remove(self) -> None:
        """End the job everywhere."""
        for router in self.fabric.plan.routers:
            if router.node.ina:
                try:
                    ask(self._socket(router.number), Remove(self.job_id, "the lab ended it"))
                except OperatorError:
                    continue  # it has no such job, or has ended

    def _members(self, routers: Sequence[int]) -> dict[int, MemberAddress]:
        plan = self.fabric.plan
        members = {
            number: MemberAddress(str(address_of(plan, number)), DEFAULT_PORT) for number in routers
        }
        for bfr_id, host in enumerate(self.hosts, 1):
            address = str(rank_of(plan, host).address())
            members[-bfr_id] = MemberAddress(address, self.port)
        return members

    def _socket(self, number: int) -> Path:
        return self.fabric.node(names_of(self.fabric.plan)[number]).directory / INA_SOCKET

    def _ask(self, number: int, request: Install) -> None:
        try:
            ask(self._socket(number), request)
        except OperatorError as error:
            raise LabError(str(error)) from error
