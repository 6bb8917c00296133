"""``show ina``: the process and the routers that sum, jobs in a line each, one job, slots.

The document plugs into those of the router (``management.documents.registry``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from fared.management.documents import human
from fared.management.documents.cells import (
    Cell,
    Columns,
    Fields,
    count,
    dim,
    plural_list,
    red,
    yellow,
)
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import BytesPerSecond, Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.context import PluggedIn, ViewContext
    from fared.management.documents.paper import Paper

SECTION: Final = "ina"
BIER: Final = "bier"
UNICAST: Final = "unicast"
_WHAT: Final = ("job", "jobs", "slots")
_SHOWN: Final = 4
_MOST_LIMITS: Final = 2


def _thousands(number: int) -> str:
    return f"{number:,}"


Number = Annotated[int, _thousands]


class InaProcessFacts(Facts):
    """``fared-ina`` of this router: where it sums, and its limits in bytes and jobs."""

    address: str
    port: int
    memory: Number
    memory_limit: Number
    job_limit: int
    counters: dict[str, int]


class SummingRouter(Facts):
    """A router that sums, as it floods it."""

    router: str
    hostname: str | None
    address: str
    memory: Number


class InaWorker(Facts):
    """A worker. ``state`` and ``repeated`` (packets) are known at its own router only."""

    rank: int
    address: str
    port: int
    router: str
    hostname: str | None
    state: str | None
    repeated: int | None


class InaNode(Facts):
    """A VAT node, the ranks whose sum it makes (its A-BM), and to whom it sends it.

    ``parent`` None: it is the root.
    """

    router: str
    hostname: str | None
    parent: str | None
    ranks: list[int]
    bits: str


class InaDirection(Facts):
    """One direction of a link."""

    tail: str
    tail_hostname: str | None
    head: str
    head_hostname: str | None


class InaTreeSlots(Facts):
    """The slots of a tree in this router; ``repeated`` counts sums that were sent again."""

    slots: int
    open: int
    waits_for: list[int]
    sums: int
    repeated: int


class InaTree(Facts):
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
    planned: BytesPerSecond
    seen: BytesPerSecond
    limits: list[InaDirection]
    limited_at: list[str]
    nodes: list[InaNode]
    here: InaTreeSlots | None


class InaNoRoot(Facts):
    """A router beside the job's leaves without a part in it, and why."""

    router: str
    hostname: str | None
    reason: str


class InaHere(Facts):
    """What ``fared-ina`` of this router tells of a job; ``workers`` has the state of each rank.

    ``wait``: seconds for which the oldest open slot has waited for ``waits_for``.
    """

    epoch: int
    trees: int
    memory: int
    slots: int
    open_slots: int
    waits_for: list[int]
    wait: Seconds
    counters: dict[str, int]
    workers: dict[str, str]


class InaJob(Facts):
    """A job. ``reason``: why its epoch began. ``waits_for``: ranks that routers wait for, as known.

    ``repeated``: packets that workers of this router sent again. ``wrong``: results with a wrong
    control sum that they got, and refused. ``lost``: ranks without which an ``elastic`` job goes
    on. ``share``: its part of links that several jobs use. ``wide``: its workers are in several
    areas or levels. ``results``: ``bier`` or ``unicast``, and ``unicast`` why not by BIER.
    ``problem``: why this router does not sum for it though it has a part in it; None: nothing is
    wrong.
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
    results: str
    unicast: str
    planned: float
    seen: BytesPerSecond
    waits_for: list[int]
    repeated: int
    wrong: int
    wide: bool
    workers: list[InaWorker]
    trees: list[InaTree]
    others: list[InaNoRoot]
    problem: str | None
    here: InaHere | None


class InaJobs(Answer, tag="fared-ina/1"):
    """``what`` is for the table: the document has all jobs, or the one of that ``name``.

    ``process`` None: ``fared-ina`` does not answer.
    """

    enabled: bool
    what: str = ""
    name: str = ""
    process: InaProcessFacts | None = None
    routers: list[SummingRouter] = msgspec.field(default_factory=list)
    jobs: list[InaJob] = msgspec.field(default_factory=list)

    def show(self, paper: Paper) -> None:
        """Print the process, routers that sum and jobs, or what was asked for."""
        if not self.enabled:
            paper.line("In-network aggregation does not run here (ina: enabled)")
            return
        match self.what:
            case "job":
                for job in self.jobs:
                    _show_job(job, paper)
            case "jobs":
                paper.table(self.jobs, _JOBS)
                paper.rates()
            case "slots":
                paper.pairs([("fared-ina", _process(self.process))])
                paper.line()
                paper.grid(_SLOTS, _slots(self.jobs))
            case _:
                paper.pairs([("fared-ina", _process(self.process))])
                paper.heading("Routers that sum")
                paper.table(self.routers, _ROUTERS)
                paper.heading("Jobs")
                paper.table(self.jobs, _JOBS)
                paper.rates()


def _process(process: InaProcessFacts | None) -> Cell:
    if process is None:
        return red("does not answer")
    text = Fields(process)
    used = f"slots {text['memory']} of {text['memory_limit']} bytes"
    return f"{process.address}:{process.port}, {used}"


def _show_job(job: InaJob, paper: Paper) -> None:
    paper.heading(f"Job {job.name}, epoch {job.epoch}: {job.reason}", first=True)
    paper.pairs(_facts(job))
    paper.heading("Trees")
    if job.trees:
        paper.table(job.trees, _trees(job))
    else:
        paper.line("none: workers form a ring over TCP")
    # Why each tree has its rate, and why other routers have none.
    reasons = [(_router(tree), _why(tree, job)) for tree in job.trees]
    reasons += [(_router(other), f"no tree: {other.reason}") for other in job.others]
    if reasons:
        paper.heading("Reasons")
        paper.pairs(reasons)
    paper.heading("Workers")
    paper.table(job.workers, _WORKERS)


def _trees(job: InaJob) -> Columns:
    total = sum(tree.weight for tree in job.trees)
    return {
        ">Tree": "tree",
        "~Root": _router,
        ">Weight": "weight",
        ">Share": lambda tree: human.share(tree.weight / total),
        ">Window": "window",
        ">Planned": "planned",
        ">Seen": "seen",
        "~Sums of ranks": _sums,
    }


def _facts(job: InaJob) -> Iterator[tuple[str, Cell]]:
    yield "Head", _head(job)
    yield "Rate", f"{_planned(job)} bit/s planned, {Fields(job)['seen']} seen"
    yield "Results", _results(job)
    yield "Waits for", _waits(job.waits_for)
    if job.problem:
        yield "Problem", red(job.problem)
    if job.wrong:
        yield "Wrong sums", red(f"{count(job.wrong, 'result')} refused: the control sum was wrong")
    if job.elastic:
        left = f"{_present(job)} of {len(job.workers)} workers"
        yield "Elastic", red(f"{left}, without {_ranks(job.lost)}") if job.lost else left
    if job.share != 1:
        yield "Share", f"{job.share:g}"
    if (here := job.here) is None:
        return
    if here.trees:
        oldest = f", the oldest for {Fields(here)['wait']}" if here.open_slots else ""
        slots = f"{here.open_slots} of {here.slots} open, in {count(here.trees, 'tree')}"
        yield "Slots here", slots + oldest
    if here.counters:
        told = (f"{name} {number}" for name, number in sorted(here.counters.items()))
        yield "Packets here", ", ".join(told)


def _results(job: InaJob) -> Cell:
    """Return by which way results go, and why not by BIER."""
    if not job.trees:
        return "around the ring"
    if job.results != BIER:
        return f"by unicast: {job.unicast}" if job.unicast else "by unicast"
    lost = job.here is not None and "bier-given-up" in job.here.counters
    return yellow("by BIER; given up here, too many were lost") if lost else "by BIER"


def _slots(jobs: list[InaJob]) -> Iterator[list[Cell]]:
    """Yield the trees with slots in this router."""
    for job in jobs:
        for tree in job.trees:
            if (here := tree.here) is not None:
                numbers = (here.open, here.slots, here.sums, here.repeated)
                whose = (job.name, str(tree.tree), _router(tree))
                yield [*whose, *map(str, numbers), _waits(here.waits_for)]


def _present(job: InaJob) -> int:
    return len(job.workers) - len(job.lost)


def _head(job: InaJob) -> str:
    return human.router(job.head, job.head_hostname)


def _planned(job: InaJob) -> str:
    return human.bandwidth(job.planned) if job.planned else human.DASH


def _router(row: SummingRouter | InaWorker | InaNode | InaTree | InaNoRoot) -> str:
    """Return the hostname of a router, or its id."""
    return human.router(row.root if isinstance(row, InaTree) else row.router, row.hostname)


def _sums(tree: InaTree) -> str:
    nodes = [f"{_router(node)} {_ranges(node.ranks)}" for node in tree.nodes]
    return plural_list(nodes, _SHOWN)


def _why(tree: InaTree, job: InaJob) -> str:
    if tree.planned is None and job.wide:
        return "see the head: not all of its links are known here"
    if tree.planned is None:
        return "not planned by the present capacities: another epoch follows"
    kind = "" if tree.kind in ("star", "wide") else f"{tree.kind}, "
    if tree.limited_at:
        return f"{kind}limited by the memory or CPU of {', '.join(tree.limited_at)}"
    ways = [
        f"{human.router(way.tail, way.tail_hostname)} > {human.router(way.head, way.head_hostname)}"
        for way in tree.limits
    ]
    return f"{kind}limited by {plural_list(ways, _MOST_LIMITS) or 'what other trees leave'}"


def _state(worker: InaWorker) -> Cell:
    """Return what this router knows of a worker, or which one does."""
    if worker.state is None:
        return dim(f"see {_router(worker)}")
    return red(worker.state) if worker.state == "lost" else worker.state


def _waits(ranks: list[int]) -> Cell:
    return yellow(_ranks(ranks)) if ranks else "nobody"


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {_ranges(ranks)}"


def _ranges(ranks: Iterable[int]) -> str:
    """Return ``0-3, 7``."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


_ROUTERS: Final[Columns] = {
    "Router": "router",
    "Name": lambda row: row.hostname,
    "Address": "address",
    ">Memory": "memory",
}
_JOBS: Final[Columns] = {
    "~Job": "name",
    ">Epoch": "epoch",
    "~Head": _head,
    ">Ranks": lambda job: str(_present(job)),
    ">Trees": lambda job: str(len(job.trees) or "ring"),
    ">Planned": _planned,
    ">Seen": "seen",
    ">Repeated": "repeated",
    "~Waits for": lambda job: _waits(job.waits_for),
}
_WORKERS: Final[Columns] = {
    ">Rank": "rank",
    "Address": "{address}:{port}",
    "~Router": _router,
    "State": _state,
    ">Repeated": lambda worker: None if worker.repeated is None else str(worker.repeated),
}
_SLOTS: Final = ["~Job", ">Tree", "~Root", ">Open", ">Slots", ">Sums", ">Repeated", "~Waits for"]


def ina(
    context: ViewContext, *, what: str | None = None, name: str | None = None
) -> InaJobs | Awaitable[InaJobs]:
    """``show ina [jobs | job NAME | slots]``. Raises CommandError.

    ``what`` is for the table; with ``job NAME`` the document has that job only.
    """
    chosen = next((word for word in _WHAT if what and word.startswith(what)), what or "")
    if chosen and chosen not in _WHAT:
        raise CommandError("bad-argument", f"no {chosen!r}: {', '.join(_WHAT)}")
    if (chosen == "job") != (name is not None):
        raise CommandError("bad-argument", "a name follows 'job', and nothing else")
    if SECTION in context.plugged:
        return _shown(context.plugged[SECTION], chosen, name)
    if name is not None:
        raise CommandError("not-found", f"no job {name}")
    return InaJobs(enabled=False, what=chosen)


async def _shown(source: PluggedIn, what: str, name: str | None) -> InaJobs:
    found = await source.show(name)
    assert isinstance(found, InaJobs)
    found.what, found.name = what, name or ""
    return found


DOCUMENT: Final = Document(
    InaJobs,
    ina,
    "In-network aggregation: process and jobs, or jobs | job NAME | slots.",
    (
        Argument("what", word="jobs|job|slots"),
        Argument("name", word="NAME"),
    ),
)
