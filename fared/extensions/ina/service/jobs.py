"""In-network aggregation in the daemon: between the router and ``fared-jobs``, which decides.

Loaded where the configuration has ``ina``. What routers flood is passed on undecoded, and what is
shown comes as text: only what this router floods itself, and metrics of bounded size, are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from fared.config.model import Ina
from fared.core.ids import BACKBONE, NodeId
from fared.core.information import MAX_SIZE, MAX_SIZE_ISIS
from fared.core.links import Link
from fared.daemon.loop.runner import Runner
from fared.extensions.ina.control.creation import WorkerPlace
from fared.extensions.ina.control.errors import ManagerError
from fared.extensions.ina.control.exchange import (
    AddressAt,
    Begin,
    Brief,
    CheckAddresses,
    Checked,
    CreateJob,
    DeleteJob,
    FabricNow,
    FindHosts,
    Flood,
    FromJobs,
    HostsFound,
    Information,
    JobLog,
    JobsShown,
    RequestFailed,
    Show,
    ToJobs,
)
from fared.extensions.ina.document import InaJob, InaJobs
from fared.extensions.ina.service.by_bier import results_way
from fared.extensions.ina.service.network import inside, is_behind, leaf_of, network_of
from fared.extensions.ina.service.process import JobsProcess
from fared.management.documents.errors import CommandError
from fared.management.documents.fabric import DrawnBranch, DrawnJob, DrawnTree
from fared.paths.rib.solver import RouteSolver
from fared.protocols.igp import events as igp
from fared.protocols.isis.ids import Level
from fared.router import events
from fared.router.protocols import ISIS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_USUAL_MTU: Final = 1500
_ANSWER_WITHIN: Final = 30.0
_AT_ONCE: Final = 64
"""Addresses that are looked up in one turn of the loop."""
_LEVELS: Final = ("info", "warning", "error")


class InaService(JobsProcess):
    """The jobs of this router."""

    def __init__(
        self,
        section: Ina,
        runner: Runner,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        links: Callable[[], Iterable[Link]],
    ) -> None:
        """``links`` are those of the kernel, whose least MTU limits packets."""
        super().__init__(log)
        self._runner, self._links = runner, links
        self._path = section.socket
        """The unix socket of ``fared-ina``."""
        self._known: dict[tuple[int, NodeId, int], bytes] = {}
        """What routers flood, as the process is told when it starts."""
        self._network: FabricNow | None = None
        self._brief: bytes | InaJobs | None = None
        self._numbers = count(1)
        self._requests: dict[int, asyncio.Future[JobsShown]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        runner.observers.append(self._observe)

    def stop(self) -> None:
        """Stop; ``fared-ina`` keeps its jobs."""
        super().stop()
        for task in self._tasks:
            task.cancel()

    def _solvers(self) -> Iterator[RouteSolver]:
        for instance in self._runner.router.instances.values():
            yield from instance.solvers.values()

    # -- the router -----------------------------------------------------------------------------

    def _observe(self, output: events.Output) -> None:
        match output:
            case events.From(_, igp.InformationUpdated(area, node, key, value)):
                if value is None:
                    self._known.pop((area, node, key), None)
                else:
                    self._known[area, node, key] = value
                self._tell_information(area, node, key)
            case events.Computed():
                self.tell("network", self._changed_network)

    def _tell_information(self, *at: *tuple[int, NodeId, int]) -> None:
        self.tell(at, partial(self._information, *at))

    def _information(self, area: int, node: NodeId, key: int) -> Information:
        return Information(node, key, self._known.get((area, node, key)), area)

    def _changed_network(self) -> FabricNow | None:
        routing = self._runner.router.multicast.bier
        bfrs = () if routing is None else routing.bfrs
        fresh = network_of(self._solvers(), bfrs, self._backbone())
        before, self._network = self._network, fresh
        return self._network if self._network != before else None

    def _backbone(self) -> int | None:
        """Return the area or level that joins all others; None where two protocols run."""
        protocols = self._runner.router.instances
        if len(protocols) > 1:
            return None
        return int(Level.TWO) if ISIS in protocols else BACKBONE

    def _began(self) -> None:
        router = self._runner.router
        limit = MAX_SIZE_ISIS if ISIS in router.instances else MAX_SIZE
        self.tell("begin", lambda: Begin(router.solver.root, limit, self._path))
        self._network = None
        self.tell("network", self._changed_network)
        for at in self._known:
            self._tell_information(*at)

    # -- fared-jobs -----------------------------------------------------------------------------

    def _took(self, answer: FromJobs) -> None:
        match answer:
            case Flood(items, only):
                self._runner.feed(igp.InformationOffered(items, only))
            case JobLog(level, event, fields) if level in _LEVELS:
                getattr(self._log, level)(event, **fields)
            case Brief(text):
                self._brief = text
            case CheckAddresses(wanted):
                self._later(self._check(wanted))
            case FindHosts(addresses):
                self._later(self._find(addresses))
            case JobsShown(number):
                self._answer(number, answer)
            case RequestFailed(number, code, text):
                self._answer(number, CommandError(code, text))

    def _answer(self, number: int, answer: JobsShown | CommandError) -> None:
        waiting = self._requests.pop(number, None)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, JobsShown):
            waiting.set_result(answer)
        else:
            waiting.set_exception(answer)

    async def _check(self, wanted: Sequence[AddressAt]) -> None:
        """Look up addresses, some at a time."""
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            found = [(one, is_behind(self._solvers(), one)) for one in some]
            self.tell(("checked", next(self._numbers)), partial(Checked, found))
            await asyncio.sleep(0)

    async def _find(self, addresses: Sequence[str]) -> None:
        """Look up who has hosts, some at a time."""
        for at in range(0, len(addresses), _AT_ONCE):
            some = addresses[at : at + _AT_ONCE]
            found = {address: inside(self._solvers(), address) for address in some}
            self.tell(("found", next(self._numbers)), partial(HostsFound, found))
            await asyncio.sleep(0)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, request: Callable[[int], ToJobs]) -> InaJobs:
        """Return the document after a request. Raises CommandError."""
        number = next(self._numbers)
        waiting = self._requests[number] = asyncio.get_running_loop().create_future()
        self.tell(("request", number), partial(request, number))
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                found = await waiting
        except TimeoutError:
            raise CommandError("busy", "fared-jobs does not answer") from None
        finally:
            self._requests.pop(number, None)
        document = msgspec.json.decode(found.document, type=InaJobs)
        document.jobs = cast("list[InaJob]", msgspec.Raw(found.jobs))
        return document

    # -- operators ------------------------------------------------------------------------------

    def brief(self) -> InaJobs | None:
        """Return the document without reasons, of bounded size, as it was last told."""
        if isinstance(self._brief, bytes):
            self._brief = msgspec.json.decode(self._brief, type=InaJobs)
        return self._brief

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics of all jobs."""
        from fared.extensions.ina.service.metrics import aggregation  # noqa: PLC0415 - not before it is scraped

        if (known := self.brief()) is not None:
            yield from aggregation(known)

    def drawn(self) -> list[DrawnJob]:
        """Return the jobs for the page."""
        known = self.brief()
        return [] if known is None else [drawn(job) for job in known.jobs]

    async def show(self, name: str | None) -> InaJobs:
        """Return the document of all jobs, or of one. Raises CommandError."""
        return await self._ask(lambda number: Show(number, name))

    async def create(
        self,
        name: str,
        workers: Sequence[str],
        mtu: int | None,
        *,
        bier: bool | None = None,
        elastic: bool = False,
        share: float = 1.0,
        tree: str | None = None,
    ) -> InaJobs:
        """Begin a job of these hosts, by address.

        ``bier``: whether results go by BIER; None: if all routers of the trees and the workers have
        it. An ``elastic`` job goes on without workers that are lost. ``mtu`` None: the least one of
        this router's links. ``share``: its part of links that other jobs use, too. ``tree``: the
        routers that sum, the root last, instead of planned ones. Raises CommandError.
        """
        try:
            places = [place async for place in self._places(workers)]
            results = results_way(self._runner.router.multicast.bier, workers, wish=bier)
        except ManagerError as error:
            raise CommandError("bad-argument", str(error)) from error
        used = [link.mtu for link in self._links() if link.up and not link.loopback]
        least = mtu or min(used, default=_USUAL_MTU)
        return await self._ask(
            lambda number: CreateJob(
                number, name, places, least, results, bool(bier), elastic, share, tree
            )
        )

    async def _places(self, workers: Sequence[str]) -> AsyncIterator[WorkerPlace]:
        """Yield the router of each worker, some in each turn. Raises ManagerError."""
        for at, address in enumerate(workers, 1):
            yield WorkerPlace(address, leaf_of(self._solvers(), address))
            if not at % _AT_ONCE:
                await asyncio.sleep(0)

    async def delete(self, name: str) -> InaJobs:
        """End a job. Raises CommandError."""
        return await self._ask(lambda number: DeleteJob(number, name))


def drawn(job: InaJob) -> DrawnJob:
    """Return the leaves and trees of a job."""
    trees = [
        DrawnTree.of(tree, branches=[DrawnBranch.of(node) for node in tree.nodes])
        for tree in job.trees
    ]
    leaves = sorted({worker.router for worker in job.workers})
    return DrawnJob(name=job.name, leaves=leaves, trees=trees)
