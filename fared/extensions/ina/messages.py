"""Messages of ``fared-ina``: JSON lines, to operators over a unix socket, to workers over TCP.

A ``JobEpoch`` is all that a member needs: the trees of an epoch, and the addresses from which its
members send. Whoever moves packets admits those addresses only.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from fared.core.text import printable
from fared.extensions.ina.by_bier import BierWay
from fared.extensions.ina.fields import (
    MOST_TREES,
    MOST_WORKERS,
    Address,
    BfrId,
    Count,
    EpochNumber,
    Instance,
    JobId,
    JobName,
    Port,
    Rank,
    Reason,
    Router,
    WorkerOrRouter,
)
from fared.extensions.ina.slots.setup import JobSetup, SetupError

MAX_LINE = 4 << 20
"""Bytes; the trees of the largest job take less than half."""


class MemberAddress(msgspec.Struct, frozen=True, array_like=True):
    """Where a member receives, and from where it sends: IPv4 address and UDP port."""

    address: Address
    port: Port

    @property
    def pair(self) -> tuple[str, int]:
        """The address as sockets take it."""
        return self.address, self.port


class JobEpoch(msgspec.Struct, frozen=True):
    """A job in one epoch. ``members`` has its workers, VAT nodes, and routers with workers.

    Without trees workers form a ring (``fared.extensions.ina.slots.ring``).
    """

    name: JobName
    setup: JobSetup
    members: dict[WorkerOrRouter, MemberAddress]
    reason: Reason = "created"
    """Why this epoch began."""
    bier: BierWay | None = None
    """How results go to workers by BIER; None: a copy for each worker."""
    unicast: Reason = ""
    """Why not by BIER."""
    lost: Annotated[tuple[BfrId, ...], Meta(max_length=MOST_WORKERS)] = ()
    """BFR-ids of an elastic job that are no workers of this epoch, but may come back."""
    doors: dict[Router, Instance] = {}
    """The instance of ``fared-ina`` in each router of a worker, when the job was created: a later
    one does not know who has been a worker before it began."""

    @property
    def ranks(self) -> dict[int, int]:
        """The rank of each BFR-id: their order. Lost workers keep theirs."""
        every = {*self.setup.workers, *self.lost}
        return {bfr_id: rank for rank, bfr_id in enumerate(sorted(every))}

    @property
    def lost_ranks(self) -> list[int]:
        """The ranks that are no workers of this epoch."""
        ranks = self.ranks
        return sorted(ranks[bfr_id] for bfr_id in self.lost)

    def bfr_id(self, rank: int) -> int:
        """Return the BFR-id of a rank. Raises IndexError."""
        return sorted({*self.setup.workers, *self.lost})[rank]

    def checked(self) -> JobEpoch:
        """Return itself, as whoever decodes it takes it: the reason may be shown.

        Raises SetupError if the setup is wrong or an address is missing.
        """
        self.setup.checked()
        needed = {-bfr_id for bfr_id in (*self.setup.workers, *self.lost)}
        for tree in self.setup.trees:
            needed |= tree.nodes
        lacking = sorted(needed - self.members.keys())
        if lacking:
            raise SetupError(f"no address of {lacking}")
        if self.bier is not None and not set(self.setup.workers) <= set(self.bier.bfr_ids):
            raise SetupError("workers without a BFR-id")
        lost = set(self.lost)
        if lost and (not self.setup.elastic or lost & set(self.setup.workers)):
            raise SetupError("workers that are lost")
        if max(lost, default=0) > self.setup.length:
            raise SetupError("a BFR-id does not fit the bit string")
        pairs = {endpoint.pair for endpoint in self.members.values()}
        if len(pairs) < len(self.members):
            raise SetupError("two members have one address and port")
        return replace(self, reason=printable(self.reason), unicast=printable(self.unicast))


# -- the unix socket ---------------------------------------------------------------------------


class Install(msgspec.Struct, frozen=True, tag="install"):
    """Begin a job, or a new epoch of one, as the router ``node``.

    ``own`` are the BFR-ids of the workers behind it, which may join there; None: all may.
    """

    job: JobEpoch
    node: Router
    own: tuple[BfrId, ...] | None = None


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    """End a job: its workers get ``reason``."""

    job_id: JobId
    reason: Reason = "removed"


class ShowJobs(msgspec.Struct, frozen=True, tag="show"):
    """Ask for the state of all jobs."""


class WatchWorkers(msgspec.Struct, frozen=True, tag="watch"):
    """Ask for events, which follow on this connection; only the last watcher gets them."""


Request = Install | Remove | ShowJobs | WatchWorkers


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The request took effect."""


class RequestRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The request had no effect."""

    reason: str


class WorkerProgress(msgspec.Struct, frozen=True, tag="progress"):
    """What a worker tells its router about once a second, while something changes.

    ``sizes`` are bytes of results by tree, in this epoch; ``repeated`` counts packets that it sent
    again, since it joined; ``waits_for`` are BFR-ids that routers lately told it; ``wrong`` counts
    results whose control sum was not that of their values.
    """

    epoch: EpochNumber
    sizes: Annotated[list[Count], Meta(max_length=MOST_TREES)]
    repeated: Count
    waits_for: Annotated[list[BfrId], Meta(max_length=MOST_WORKERS)]
    wrong: Count = 0


class WorkerState(msgspec.Struct, frozen=True):
    """A worker of a job, as its router sees it."""

    rank: Rank
    bfr_id: BfrId
    address: Address
    state: str
    """``absent``: not joined here; ``joined``; ``left``: it ended the job; ``lost``;
    ``returning``: it has joined an elastic job again, and waits for an epoch."""
    progress: WorkerProgress | None = None
    """None: it has told nothing."""


class TreeState(msgspec.Struct, frozen=True):
    """One tree in a VAT node: its slots, and the sums that it completed in this epoch.

    ``size``: bytes of their values; ``repeated``: how often a sum was sent again.
    """

    tree_id: int
    slots: int
    open_slots: int
    waited_for: list[int]
    sums: int
    size: int
    repeated: int


class JobState(msgspec.Struct, frozen=True):
    """What ``fared-ina`` knows of a job. ``waited_for`` are BFR-ids that slots lack.

    ``wait``: seconds for which the oldest of these slots has waited.
    """

    name: JobName
    job_id: JobId
    epoch: EpochNumber
    reason: Reason
    trees: int
    """In which this router sums."""
    memory: int
    slots: int
    open_slots: int
    waited_for: list[int]
    counters: dict[str, int]
    workers: list[WorkerState]
    per_tree: list[TreeState] = []
    wait: float = 0.0


class InaState(msgspec.Struct, frozen=True, tag="state"):
    """All jobs, and what the process may use."""

    address: Address
    port: Port
    instance: Instance
    """Another number after each start."""
    memory: int
    memory_limit: int
    job_limit: int
    counters: dict[str, int]
    jobs: list[JobState]
    bier: bool = False
    """Whether it sends results by BIER."""


class WorkerGone(msgspec.Struct, frozen=True, tag="gone"):
    """An event: a worker's connection ended; ``lost`` if it did not leave."""

    job_id: JobId
    bfr_id: BfrId
    lost: bool


Answer = Done | RequestRefused | InaState | WorkerGone

# -- workers over TCP --------------------------------------------------------------------------


class Join(msgspec.Struct, frozen=True, tag="join"):
    """A worker announces itself; ``size`` is the number of ranks it expects.

    ``instance`` differs for each process; ``epoch`` is the last one it knows, None at first.
    """

    job: JobName
    rank: Rank
    size: Annotated[int, Meta(ge=1, le=MOST_WORKERS)]
    instance: Instance = 0
    epoch: EpochNumber | None = None


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """A worker has all its results and ends."""


class Current(msgspec.Struct, frozen=True, tag="current"):
    """Ask for the present epoch once more."""


WorkerRequest = Join | Leave | Current | WorkerProgress


class Epoch(msgspec.Struct, frozen=True, tag="epoch"):
    """The answer to ``Join``, and each new epoch.

    ``returning``: the worker comes back to an elastic job, in which others have made calls.
    """

    job: JobEpoch
    returning: bool = False


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """These ranks are lost; the job has failed."""

    ranks: list[Rank]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The job is over."""

    reason: str


WorkerAnswer = Epoch | Lost | Ended | RequestRefused


def checked_answer(answer: WorkerAnswer) -> WorkerAnswer:
    """Return an answer as a worker takes it: text may be shown. Raises SetupError."""
    match answer:
        case Epoch(job):
            return replace(answer, job=job.checked())
        case Ended(reason) | RequestRefused(reason):
            return replace(answer, reason=printable(reason))
    return answer
