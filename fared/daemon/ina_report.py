"""Commands about jobs of in-network aggregation, and their documents."""

from __future__ import annotations

import re
from typing import Any

from fared.api.errors import CommandError
from fared.api.respond import Json
from fared.core.ids import NodeId, format_node
from fared.daemon.ina import InaService
from fared.ina.control.advert import JobAdvert
from fared.ina.control.manager import ManagerError
from fared.ina.messages import JobState

FORMAT = "fared-ina/1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LEAST_MTU, _MOST_MTU = 576, 65535


def aggregation(service: InaService, command: str, args: Json) -> Json:
    """Answer ``ina-show``, ``ina-create`` or ``ina-delete``. Raises CommandError."""
    try:
        if command == "ina-create":
            service.create(_name(args), _workers(args), _mtu(args))
        elif command == "ina-delete":
            service.delete(_name(args))
        elif command != "ina-show":
            raise CommandError("unknown-command", f"no such command: {command}")
    except ManagerError as error:
        raise CommandError("bad-argument", str(error)) from error
    return document(service)


def document(service: InaService) -> Json:
    """Return the jobs that this router knows, and what its ``fared-ina`` tells of them."""
    state = service.state
    told = {} if state is None else {job.job_id: job for job in state.jobs}
    process = None
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
        "process": process,
        "routers": [
            {"router": format_node(node), "address": found.address, "memory": found.memory}
            for node, found in sorted(service.manager.capabilities.items())
        ],
        "jobs": [
            _job(head, advert, told.get(job_id))
            for job_id, (head, advert) in service.manager.jobs.items()
        ],
    }


def _job(head: NodeId, advert: JobAdvert, told: JobState | None) -> Json:
    job, setup = advert.job, advert.job.setup
    ranks = job.ranks
    here: Json | None = None
    if told is not None:
        here = {
            "epoch": told.epoch,
            "trees": told.trees,
            "memory": told.memory,
            "slots": told.slots,
            "open_slots": told.open_slots,
            "waits_for": [ranks[b] for b in told.waited_for if b in ranks],
            "counters": told.counters,
            "workers": {str(worker.rank): worker.state for worker in told.workers},
        }
    return {
        "name": job.name,
        "job_id": setup.job_id,
        "epoch": setup.epoch,
        "reason": job.reason,
        "head": format_node(head),
        "payload": setup.payload,
        "workers": [_worker(advert, bfr_id, rank) for bfr_id, rank in ranks.items()],
        "trees": [
            {
                "root": format_node(NodeId(tree.root)),
                "weight": tree.weight,
                "window": tree.window,
                "nodes": [
                    format_node(NodeId(node))
                    for node in sorted({tree.root, *tree.parents.values()})
                ],
            }
            for tree in setup.trees
        ],
        "here": here,
    }


def _worker(advert: JobAdvert, bfr_id: int, rank: int) -> Json:
    endpoint = advert.job.members[-bfr_id]
    return {
        "rank": rank,
        "address": endpoint.address,
        "port": endpoint.port,
        "router": format_node(NodeId(advert.leaves[bfr_id])),
    }


def _name(args: Json) -> str:
    name = args.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
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
