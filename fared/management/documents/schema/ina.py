"""The document of ``show ina``."""

from __future__ import annotations

from typing import TypedDict

from fared.management.documents.schema.common import JsonDocument


class InaProcessFacts(TypedDict):
    """``fared-ina`` of this router: where it sums, and its limits in bytes and jobs."""

    address: str
    port: int
    memory: int
    memory_limit: int
    job_limit: int
    counters: dict[str, int]


class SummingRouter(TypedDict):
    """A router that sums, as it floods it."""

    router: str
    hostname: str | None
    address: str
    memory: int


class InaWorker(TypedDict):
    """A worker. ``state`` and ``repeated`` (packets) are known at its own router only."""

    rank: int
    address: str
    port: int
    router: str
    hostname: str | None
    state: str | None
    repeated: int | None


class InaNode(TypedDict):
    """A VAT node, the ranks whose sum it makes (its A-BM), and to whom it sends it.

    ``parent`` None: it is the root.
    """

    router: str
    hostname: str | None
    parent: str | None
    ranks: list[int]
    bits: str


class InaDirection(TypedDict):
    """One direction of a link."""

    tail: str
    tail_hostname: str | None
    head: str
    head_hostname: str | None


class InaTreeSlots(TypedDict):
    """The slots of a tree in this router; ``repeated`` counts sums that were sent again."""

    slots: int
    open: int
    waits_for: list[int]
    sums: int
    repeated: int


class InaTree(TypedDict):
    """A tree: rates are bytes/s of the array; ``seen`` is that of the last seconds, here.

    ``planned`` None: by the present capacities it is not planned, so another epoch follows.
    ``limits``: the directions of links that allow no more; ``limited_at``: routers that do not.
    """

    tree: int
    root: str
    hostname: str | None
    kind: str | None
    weight: int
    window: int
    planned: float | None
    seen: float | None
    limits: list[InaDirection]
    limited_at: list[str]
    nodes: list[InaNode]
    here: InaTreeSlots | None


class InaNoRoot(TypedDict):
    """A router beside the job's leaves without a part in it, and why."""

    router: str
    hostname: str | None
    reason: str


class InaHere(TypedDict):
    """What ``fared-ina`` of this router tells of a job; ``workers`` has the state of each rank.

    ``wait``: seconds for which the oldest open slot has waited for ``waits_for``.
    """

    epoch: int
    trees: int
    memory: int
    slots: int
    open_slots: int
    waits_for: list[int]
    wait: float
    counters: dict[str, int]
    workers: dict[str, str]


class InaJob(TypedDict):
    """A job. ``reason``: why its epoch began. ``waits_for``: ranks that routers wait for, as known.

    ``repeated``: packets that workers of this router sent again. ``wrong``: results with a wrong
    control sum that they got, and refused. ``lost``: ranks without which an ``elastic`` job goes
    on. ``share``: its part of links that several jobs use. ``problem``: why this router does not
    sum for it though it has a part in it; None: nothing is wrong.
    """

    name: str
    job_id: int
    epoch: int
    reason: str
    head: str
    head_hostname: str | None
    payload: int
    elastic: bool
    lost: list[int]
    share: float
    planned: float
    seen: float | None
    waits_for: list[int]
    repeated: int
    wrong: int
    workers: list[InaWorker]
    trees: list[InaTree]
    others: list[InaNoRoot]
    problem: str | None
    here: InaHere | None


class InaJobs(JsonDocument):
    """``what`` is for the table: the document has all jobs, or the one of that ``name``.

    ``process`` None: ``fared-ina`` does not answer.
    """

    enabled: bool
    what: str
    name: str
    process: InaProcessFacts | None
    routers: list[SummingRouter]
    jobs: list[InaJob]
