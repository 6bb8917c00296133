"""Commands about jobs of in-network aggregation, and their documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fared.api.errors import CommandError
from fared.api.respond import Json
from fared.core.ids import NodeId, format_node
from fared.daemon.ina import InaService
from fared.ina.control.advert import JobAdvert
from fared.ina.control.errors import ManagerError
from fared.ina.control.reasons import JobReasons, NoRoot
from fared.ina.fields import NAME
from fared.ina.messages import JobState, TreeState
from fared.ina.plan.model import Direction, Vertex, members
from fared.ina.slots.setup import TreeRole, TreeSetup, tree_roles

if TYPE_CHECKING:
    from fared.api.schema.ina import (
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
    )

FORMAT: Final = "fared-ina/1"
_LEAST_MTU, _MOST_MTU = 576, 65535


def aggregation(service: InaService, command: str, args: Json) -> Mapping[str, Any]:
    """Answer ``ina-create`` or ``ina-delete``. Raises CommandError."""
    try:
        if command == "ina-create":
            service.create(
                _name(args),
                _workers(args),
                _mtu(args),
                bier=args.get("bier") is True,
                elastic=args.get("elastic") is True,
                share=_share(args),
            )
        elif command == "ina-delete":
            service.delete(_name(args))
        else:
            raise CommandError("unknown-command", f"no such command: {command}")
    except ManagerError as error:
        raise CommandError("bad-argument", str(error)) from error
    return document(service)


def _share(args: Json) -> float:
    share = args.get("share", 1.0)
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise CommandError("bad-argument", f"a share of {share!r}: a number")
    return float(share)


def document(service: InaService, *, explain: bool = True) -> InaJobs:
    """Return the jobs that this router knows, and what its ``fared-ina`` tells of them.

    ``explain``: with planned rates and reasons, which take a plan of each job.
    """
    state = service.state
    told = {} if state is None else {job.job_id: job for job in state.jobs}
    process: InaProcessFacts | None = None
    if state is not None:
        process = {
            "address": state.address,
            "port": state.port,
            "memory": state.memory,
            "memory_limit": state.memory_limit,
            "job_limit": state.job_limit,
            "counters": state.counters,
        }
    return {
        "format": FORMAT,
        "enabled": True,
        "what": "",
        "name": "",
        "process": process,
        "routers": [
            {
                "router": format_node(node),
                "hostname": service.hostname(node),
                "address": found.address,
                "memory": found.memory,
            }
            for node, found in sorted(service.manager.capabilities.items())
        ],
        "jobs": [
            _AggregationReport(service, head, advert, told.get(job_id), explain=explain).document()
            for job_id, (head, advert) in service.manager.jobs.items()
        ],
    }


class _AggregationReport:
    """One job: what is flooded, planned, and seen here."""

    def __init__(
        self,
        service: InaService,
        head: NodeId,
        advert: JobAdvert,
        told: JobState | None,
        *,
        explain: bool,
    ) -> None:
        self._service, self._head, self._advert, self._told = service, head, advert, told
        self._job, self._setup = advert.job, advert.job.setup
        self._ranks = advert.job.ranks
        self._reasons = service.manager.reasons(self._setup.job_id) if explain else JobReasons()
        self._here = {} if told is None else {tree.tree_id: tree for tree in told.per_tree}
        self._workers = {} if told is None else {one.bfr_id: one for one in told.workers}

    def document(self) -> InaJob:
        """Return the document of the job."""
        trees = [self._tree(tree) for tree in self._setup.trees]
        rates = [tree["seen"] for tree in trees if tree["seen"] is not None]
        progress = [one.progress for one in self._workers.values() if one.progress is not None]
        waits = {bfr_id for told in progress for bfr_id in told.waits_for}
        waits |= set() if self._told is None else set(self._told.waited_for)
        return {
            "name": self._job.name,
            "job_id": self._setup.job_id,
            "epoch": self._setup.epoch,
            "reason": self._job.reason,
            "head": format_node(self._head),
            "head_hostname": self._service.hostname(self._head),
            "payload": self._setup.payload,
            "elastic": self._setup.elastic,
            "lost": self._job.lost_ranks,
            "share": self._advert.share,
            "planned": sum(tree["planned"] or 0.0 for tree in trees),
            "seen": sum(rates) if rates else None,
            "waits_for": self._ranks_of(waits),
            "repeated": sum(told.repeated for told in progress),
            "wrong": sum(told.wrong for told in progress),
            "workers": [self._worker(bfr_id, rank) for bfr_id, rank in self._ranks.items()],
            "trees": trees,
            "others": [self._no_root(other) for other in self._reasons.others],
            "here": self._local(),
        }

    def _ranks_of(self, bfr_ids: Iterable[int]) -> list[int]:
        return sorted(self._ranks[bfr_id] for bfr_id in bfr_ids if bfr_id in self._ranks)

    def _local(self) -> InaHere | None:
        told = self._told
        if told is None:
            return None
        return {
            "epoch": told.epoch,
            "trees": told.trees,
            "memory": told.memory,
            "slots": told.slots,
            "open_slots": told.open_slots,
            "waits_for": self._ranks_of(told.waited_for),
            "wait": told.wait,
            "counters": told.counters,
            "workers": {str(worker.rank): worker.state for worker in told.workers},
        }

    def _worker(self, bfr_id: int, rank: int) -> InaWorker:
        endpoint = self._job.members[-bfr_id]
        leaf = NodeId(self._advert.leaves[bfr_id])
        seen = self._workers.get(bfr_id)
        known = seen is not None and seen.state != "absent"
        told = None if seen is None else seen.progress
        return {
            "rank": rank,
            "address": endpoint.address,
            "port": endpoint.port,
            "router": format_node(leaf),
            "hostname": self._service.hostname(leaf),
            "state": seen.state if seen is not None and known else None,
            "repeated": None if told is None else told.repeated,
        }

    def _tree(self, tree: TreeSetup) -> InaTree:
        reason = self._reasons.of(tree.root, tree.parents)
        same = self._told is not None and self._told.epoch == self._setup.epoch
        rate = self._service.rates.rate(self._setup.job_id, tree.tree_id) if same else None
        found = self._here.get(tree.tree_id) if same else None
        root = NodeId(tree.root)
        return {
            "tree": tree.tree_id,
            "root": format_node(root),
            "hostname": self._service.hostname(root),
            "kind": None if reason is None else reason.kind,
            "weight": tree.weight,
            "window": tree.window,
            "planned": None if reason is None else reason.rate,
            "seen": rate,
            "limits": [] if reason is None else [self._direction(link) for link in reason.links],
            "limited_at": []
            if reason is None
            else [format_node(NodeId(v)) for v in reason.routers],
            "nodes": [self._node(node, role) for node, role in tree_roles(tree).items()],
            "here": None if found is None else self._slots(found),
        }

    def _slots(self, found: TreeState) -> InaTreeSlots:
        return {
            "slots": found.slots,
            "open": found.open_slots,
            "waits_for": self._ranks_of(found.waited_for),
            "sums": found.sums,
            "repeated": found.repeated,
        }

    def _node(self, node: Vertex, role: TreeRole) -> InaNode:
        bits, parent = role.bits, role.parent
        return {
            "router": format_node(NodeId(node)),
            "hostname": self._service.hostname(NodeId(node)),
            "parent": None if parent is None else format_node(NodeId(parent)),
            "ranks": self._ranks_of(members(bits)),
            "bits": f"{bits:0{self._setup.length // 4}x}",
        }

    def _direction(self, link: Direction) -> InaDirection:
        tail, head = (NodeId(node) for node in link)
        return {
            "tail": self._vertex(tail),
            "tail_hostname": self._service.hostname(tail),
            "head": self._vertex(head),
            "head_hostname": self._service.hostname(head),
        }

    def _vertex(self, vertex: NodeId) -> str:
        """Return the id of a router, or the address of a worker."""
        return self._job.members[vertex].address if vertex < 0 else format_node(vertex)

    def _no_root(self, found: NoRoot) -> InaNoRoot:
        reason = found.reason
        if found.lacks is not None:
            leaf = NodeId(found.lacks)
            reason = f"{reason} {self._service.hostname(leaf) or format_node(leaf)}"
        router = NodeId(found.router)
        return {
            "router": format_node(router),
            "hostname": self._service.hostname(router),
            "reason": reason,
        }


def _name(args: Json) -> str:
    name = args.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CommandError("bad-argument", "name: letters, digits, '-', '_', '.', at most 64")
    return name


def _workers(args: Json) -> list[str]:
    workers: Any = args.get("workers")
    if not isinstance(workers, list) or not all(isinstance(one, str) for one in workers):
        raise CommandError("bad-argument", "workers must be a list of addresses")
    return workers


def _mtu(args: Json) -> int | None:
    mtu = args.get("mtu")
    if mtu is None:
        return None
    if not isinstance(mtu, int) or not _LEAST_MTU <= mtu <= _MOST_MTU:
        raise CommandError("bad-argument", f"mtu must be {_LEAST_MTU} to {_MOST_MTU}")
    return mtu
