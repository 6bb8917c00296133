"""A new job as an operator describes it: what is checked, and its first advert."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

import msgspec

from fared.core.bier import LENGTHS
from fared.core.ids import NodeId, format_node
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.control.advert import JobAdvert
from fared.extensions.ina.control.adverts import JobAdverts
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.fields import LEAST_SHARE, MOST_JOB_ID, MOST_SHARE, MOST_WORKERS
from fared.extensions.ina.messages import JobEpoch, MemberAddress
from fared.extensions.ina.plan.model import GivenTree
from fared.extensions.ina.slots.setup import JobSetup

WORKER_PORT = 54201
"""The first port of workers; each further worker of a host has the next free one."""


class WorkerPlace(msgspec.Struct, frozen=True):
    """A worker of a new job: its address, and its router; None: it is in another area."""

    address: str
    leaf: NodeId | None


class NewJob(msgspec.Struct, frozen=True):
    """A job to be created. ``payload``: bytes of values in a packet, ``window``: in packets.

    ``results`` are the BFR-ids of workers, or why results go by unicast; ``forced``: only by BIER.
    An ``elastic`` job goes on without workers that are lost. Where jobs share links, rates are in
    proportion to ``share``. It has the given ``tree`` while that works. The workers of a ``wide``
    job are in several areas.
    """

    name: str
    places: Sequence[WorkerPlace]
    payload: int
    window: int
    results: BierWay | str = ""
    forced: bool = False
    elastic: bool = False
    share: float = 1.0
    tree: GivenTree | None = None
    wide: bool = False

    def check(self, node: NodeId, names: Container[str], able: Collection[NodeId]) -> None:
        """Raise ManagerError if ``node`` cannot lead it; ``able`` are the routers that sum."""
        if self.name in names:
            raise ManagerError(f"job {self.name} exists")
        if not 2 <= len(self.places) <= MOST_WORKERS:
            raise ManagerError(f"{len(self.places)} workers: 2 to {MOST_WORKERS}")
        if not LEAST_SHARE <= self.share <= MOST_SHARE:
            raise ManagerError(f"a share of {self.share:g}: {LEAST_SHARE:g} to {MOST_SHARE:g}")
        leaves = self.leaves
        if leaves[0] != node:
            text = f"create it at {format_node(leaves[0])}, the router of the first worker"
            raise ManagerError(text)
        for place, leaf in zip(self.places, leaves, strict=True):
            if leaf not in able:
                raise ManagerError(f"{format_node(leaf)}, of {place.address}, does not sum")

    @property
    def leaves(self) -> list[NodeId]:
        """The router of each worker. Raises ManagerError if one is not known."""
        unknown = next((place for place in self.places if place.leaf is None), None)
        if unknown is not None:
            raise ManagerError(
                f"{unknown.address} is in another area or level, and no border router that sums "
                "tells which router has it"
            )
        return [place.leaf for place in self.places if place.leaf is not None]

    def advert(self, known: JobAdverts) -> JobAdvert:
        """Return the advert of its epoch 0, which has no trees and is never flooded."""
        ids = tuple(range(1, len(self.places) + 1))
        length = length_of(len(ids), self.results)
        members = {
            -bfr_id: MemberAddress(place.address, port)
            for bfr_id, place, port in zip(ids, self.places, self._ports(known), strict=True)
        }
        setup = JobSetup(
            _free_id(self.name, known), 0, length, self.payload, ids, (), elastic=self.elastic
        )
        leaves = {bfr_id: int(leaf) for bfr_id, leaf in enumerate(self.leaves, 1)}
        job = JobEpoch(self.name, setup, members)
        return JobAdvert(
            job,
            leaves,
            self.payload,
            self.window,
            share=self.share,
            results=self.results,
            tree=self.tree,
            wide=self.wide,
        )

    def _ports(self, known: JobAdverts) -> list[int]:
        """Return a port of each worker that no other worker of its host has."""
        used = {
            endpoint.pair
            for _, advert in known.running.values()
            for vertex, endpoint in advert.job.members.items()
            if vertex < 0
        }
        found: list[int] = []
        for place in self.places:
            port = WORKER_PORT
            while (place.address, port) in used:
                port += 1
            used.add((place.address, port))
            found.append(port)
        return found


def _free_id(name: str, known: JobAdverts) -> int:
    wanted = int.from_bytes(name.encode()[:16], "big") % MOST_JOB_ID + 1
    while not known.is_free(wanted):
        wanted = wanted % MOST_JOB_ID + 1
    return wanted


def length_of(workers: int, results: BierWay | str) -> int:
    """Return the bits of the job's strings: no less than those of BIER, which packets have too."""
    least = max(workers, results.length) if isinstance(results, BierWay) else workers
    return next((size for size in LENGTHS if least <= size), LENGTHS[-1])
