"""The jobs that are flooded, and which advert of a job counts: the highest epoch, then router."""

from __future__ import annotations

from collections import Counter

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.extensions.ina.control.advert import JobAdvert, decode_job, leaves_in_order
from fared.extensions.ina.slots.packet import newer

MOST_JOBS = 1024
"""Jobs whose adverts are kept, and ended jobs that are remembered."""


def epoch_of(advert: JobAdvert) -> int:
    """Return the epoch of an advert."""
    return advert.job.setup.epoch


class JobAdverts:
    """All adverts, our own included. Of equal epochs the one of the lowest router counts."""

    def __init__(self) -> None:
        self._adverts: dict[int, dict[NodeId, JobAdvert]] = {}
        """By job and head."""
        self._withdrawn: set[tuple[int, NodeId]] = set()
        """Adverts that a head withdrew before the job ended: after it restarted, for example."""
        self._silent: set[tuple[int, NodeId]] = set()
        """Adverts of heads that have not been reachable for long: nobody leads these jobs."""
        self._tombs: dict[int, int] = {}
        """The last epoch of each ended job, since adverts of former heads may live on."""

    # -- what is known --------------------------------------------------------------------------

    def best(self, job_id: int) -> tuple[NodeId, JobAdvert] | None:
        """Return the advert of a job that counts, and its head."""
        found: tuple[NodeId, JobAdvert] | None = None
        for head, advert in sorted(self._adverts.get(job_id, {}).items()):
            if (job_id, head) in self._silent:
                continue
            if found is None or newer(epoch_of(advert), epoch_of(found[1]), 16):
                found = head, advert
        return found

    @property
    def running(self) -> dict[int, tuple[NodeId, JobAdvert]]:
        """The jobs that run, by id, each with its head."""
        known = ((job_id, self.best(job_id)) for job_id in sorted(self._adverts))
        return {job_id: best for job_id, best in known if best is not None and not best[1].ended}

    def crossing(self) -> list[tuple[NodeId, JobAdvert]]:
        """Return the jobs of several areas, by head: also ended ones, and those without a head."""
        return [
            (head, advert)
            for job_id, found in sorted(self._adverts.items())
            for head, advert in sorted(found.items())
            if advert.wide and (job_id, head) not in self._silent
        ]

    def of(self, node: NodeId) -> list[JobAdvert]:
        """Return the adverts of a router."""
        return [found[node] for found in self._adverts.values() if node in found]

    def is_withdrawn(self, job_id: int, head: NodeId) -> bool:
        """Whether a head gave up a job that goes on."""
        return (job_id, head) in self._withdrawn

    @property
    def silent(self) -> frozenset[tuple[int, NodeId]]:
        """Jobs and heads that count again when the head is reachable."""
        return frozenset(self._silent)

    def is_known(self, job_id: int) -> bool:
        """Whether there is an advert of a job, also of one that has ended."""
        return job_id in self._adverts

    def is_free(self, job_id: int) -> bool:
        """Whether no job has, or lately had, an id."""
        return job_id not in self._adverts and job_id not in self._tombs

    def leave(self, job_id: int, head: NodeId) -> None:
        """Nobody leads a job any more: forget what was withdrawn; the rest may count again."""
        if (job_id, head) in self._withdrawn:
            self.drop(job_id, head)
        else:
            self._silent.add((job_id, head))

    def hear(self, job_id: int, head: NodeId) -> None:
        """The head of a job that nobody led is reachable again."""
        self._silent.discard((job_id, head))

    # -- changes --------------------------------------------------------------------------------

    def learned(self, node: NodeId, key: int, value: bytes | None) -> None:
        """Take an advert of a router; None: it withdrew that. Raises DecodeError."""
        job_id = key // 2
        known = self._adverts.get(job_id, {}).get(node)
        if value is not None:
            self._take(node, job_id, decode_job(value))
        elif known is not None and known.key == key:
            if known.ended:
                self.drop(job_id, node)
            else:
                self._withdrawn.add((job_id, node))

    def _take(self, node: NodeId, job_id: int, advert: JobAdvert) -> None:
        """Take an advert of a job, unless a newer one of the same head is known."""
        if advert.job.setup.job_id != job_id:
            raise DecodeError("tlv", 1, "job of aggregation: another id")
        if node not in leaves_in_order(advert):
            raise DecodeError("tlv", 1, "job of aggregation: its head has no worker")
        tomb = self._tombs.get(job_id)
        if tomb is not None and not newer(epoch_of(advert), tomb, 16):
            return
        known = self._adverts.get(job_id, {}).get(node)
        if known is not None and newer(epoch_of(known), epoch_of(advert), 16):
            return
        if job_id not in self._adverts and not self._has_room(node):
            return
        self.put(node, advert)
        self._withdrawn.discard((job_id, node))
        if advert.ended:
            self.bury(advert)

    def _has_room(self, node: NodeId) -> bool:
        """Whether there is room for one more job of a head: one of the head of most gives way."""
        if len(self._adverts) < MOST_JOBS:
            return True
        heads = Counter(head for found in self._adverts.values() for head in found)
        most, count = max(heads.items(), key=lambda item: item[::-1])
        if count <= heads[node] + 1:
            return False
        self.drop(max(job_id for job_id, found in self._adverts.items() if most in found), most)
        return True

    def put(self, node: NodeId, advert: JobAdvert) -> None:
        """Have an advert of a router."""
        self._adverts.setdefault(advert.job.setup.job_id, {})[node] = advert

    def drop(self, job_id: int, node: NodeId) -> None:
        """Forget the advert of a router."""
        self._withdrawn.discard((job_id, node))
        self._silent.discard((job_id, node))
        found = self._adverts.get(job_id, {})
        found.pop(node, None)
        if not found:
            self._adverts.pop(job_id, None)

    def bury(self, advert: JobAdvert) -> None:
        """Note that a job has ended: what is older does not come back.

        That is forgotten with the end: a former head's advert, withdrawn or not, would count again.
        """
        job_id, last = advert.job.setup.job_id, epoch_of(advert)
        while len(self._tombs) >= MOST_JOBS:
            del self._tombs[next(iter(self._tombs))]
        self._tombs[job_id] = last
        for head, known in list(self._adverts[job_id].items()):
            if known is not advert and not newer(epoch_of(known), last, 16):
                self.drop(job_id, head)
