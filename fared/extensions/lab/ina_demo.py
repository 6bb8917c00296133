"""The demonstration of in-network aggregation: beside others, over a slow link, and a lost router.

Where a router has the label ``fared-lab.tree``, that tree is shown beside the planned ones. Every
sum is verified by every worker, and bytes on links are compared with the plan; a claim that fails
ends the demonstration with exit code 1.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from fared.core.units import format_bandwidth
from fared.extensions.ina.plan.model import Capacities
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.lab.acts import panels
from fared.extensions.lab.acts.panels import Panel
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_demo_tables import (
    Measured,
    links_table,
    times_panel,
    times_table,
    uplinks_table,
)
from fared.extensions.lab.ina_job import LabJob, capacities, lab_tree, summing_job
from fared.extensions.lab.ina_workers import Workers, repeated
from fared.extensions.lab.ina_workload import run_ina
from fared.extensions.lab.processes import send_signal
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.bounds import kernel_rates
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import WorkloadReport
from fared.extensions.lab.workloads.run import run
from fared.extensions.lab.workloads.sizes import format_bytes

SIZE = 2_000_000
ITERATIONS = 3
ELEPHANTS = 8
BYTES = 0.03
"""How far bytes on a link may be from the plan; headers are 1 % of jumbo frames."""
_LONG = 20
_READY = 120.0
_PATIENCE = 120.0
_SLOWED_TO = 4
_WIDTH = 80
_JOB = "demo"
_RING, _SERVER = "all-reduce-ring", "all-reduce-ps"


def run_ina_demo(topology: LabTopology, picture: Path | None = None) -> int:
    """Run the demonstration inside a sandbox; return 0, or 1 after reporting what failed."""
    console = Console(width=min(_WIDTH, Console().width), highlight=False)
    fabric = Fabric.from_topology(topology)
    demo = _InaDemo(fabric, console)
    try:
        demo.run()
        if picture is not None:
            panels.draw(topology.name, demo.panels, picture)
    except LabError as error:
        console.print(f"[bold red]failed[/]: {error}", soft_wrap=True)
        return 1
    finally:
        fabric.stop()
    return 0


class _InaDemo:
    def __init__(self, fabric: Fabric, console: Console) -> None:
        self.fabric, self.console = fabric, console
        self.panels: list[Panel] = []
        self.title = ""
        plan = fabric.plan
        chosen = [host.name for host in plan.hosts if host.node.worker]
        self.hosts = tuple(chosen or [host.name for host in plan.hosts])
        leaves = list(dict.fromkeys(rank_of(plan, host).leaf for host in self.hosts))
        self.leaf = plan.node(leaves[min(1, len(leaves) - 1)])
        self.spine = plan.node(self.leaf.fabric_ports[0].peer)
        self.tree = next((node.node.tree for node in plan.routers if node.node.tree), None)

    def run(self) -> None:
        """Run all acts."""
        self._headline(f"{len(self.hosts)} workers, {len(self.fabric.plan.routers)} routers")
        self.fabric.build()
        self.fabric.start()
        if await_paths(self.fabric, _READY) is None:
            raise LabError("not every router has all routes")
        self._await_bier()
        self._headline(f"All-reduce of {format_bytes(SIZE)}B: all links work")
        self._compare(self.tree, (_RING, _SERVER))
        self._slow()
        self._lost()

    def _await_bier(self) -> None:
        """Wait until results by BIER reach all hosts."""
        bfrs = [node for node in self.fabric.plan.routers if node.bfr is not None]
        wanted = len(bfrs) + sum(len(node.bfr.hosts) for node in bfrs if node.bfr is not None)

        def reached(router: NodePlan) -> bool:
            shown = json.loads(self.fabric.node(router.name).cli("show", "bier", "--json"))
            return sum(not bfer["problem"] for bfer in shown["bfers"]) == wanted

        self._await(lambda: all(map(reached, bfrs)))

    # -- the acts -------------------------------------------------------------------------------

    def _compare(self, tree: str | None, others: Sequence[str]) -> None:
        """Show aggregation beside others, and bytes on links."""
        measured = [self._measured(None)]
        if tree is not None:
            measured.append(self._measured(tree))
        beside = [self._collective(name) for name in others]
        self.console.print(times_table(measured, beside))
        self.panels.append(times_panel(self.title, measured, beside))
        self.console.print()
        if tree is None:
            self.console.print(uplinks_table(measured[0], self.leaf))
        else:
            self.console.print(links_table(measured, self.fabric.plan))
        for one in measured:
            self._check_bytes(one)

    def _measured(self, tree: str | None) -> Measured:
        plan, rate = self.fabric.plan, kernel_rates(self.fabric)
        given = None if tree is None else lab_tree(plan, tree)
        planned = LabJob(self.fabric, "plan", 1, self.hosts).plan(rate, tree=given)
        before = self._sent()
        report = run_ina(self.fabric, self.hosts, SIZE, ITERATIONS, timeout=_PATIENCE, tree=tree)
        after = self._sent()
        carried = {link: (after[link] - before[link]) / ITERATIONS for link in after}
        numbers = {router.number: router.name for router in plan.routers}
        wanted = {
            (numbers[tail], numbers[head]): load / planned.rate * SIZE
            for (tail, head), load in planned.loads().items()
            if min(tail, head) >= 0
        }
        again = repeated(self.fabric, self.hosts)
        return Measured(tree, report.jobs[0], planned, wanted, carried, again)

    def _collective(self, name: str) -> WorkloadReport:
        job = Job(name, self.hosts, SIZE, ELEPHANTS, ITERATIONS)
        return run(self.fabric, [job], timeout=_PATIENCE)

    def _check_bytes(self, one: Measured) -> None:
        """Compare bytes on links with the plan, but for packets that were sent again.

        The chunks of a call may be one more or less than the part of a tree.
        """
        packet = self.leaf.ports[0].mtu
        again = 2 * one.repeated * packet / ITERATIONS
        for link, wanted in one.wanted.items():
            more, within = one.carried[link] - wanted, BYTES * wanted + packet
            if not -within <= more <= within + again:
                carried = format_bytes(one.carried[link])
                raise LabError(
                    f"{' > '.join(link)} carried {carried}B a call, planned {format_bytes(wanted)}B"
                )

    def _slow(self) -> None:
        port = next(iter(self.fabric.plan.ports_between(self.leaf.name, self.spine.name)))
        rate = self.fabric.rate(port)
        if rate is None:
            raise LabError(f"the link {self.leaf.name}-{self.spine.name} has no rate to reduce")
        slow = rate / _SLOWED_TO
        link = f"{self.leaf.name} - {self.spine.name}"
        self._headline(f"{link} drops to {format_bandwidth(slow)} bit/s, a quarter")
        ways = (self.leaf.name, self.spine.name), (self.spine.name, self.leaf.name)
        for a, b in ways:
            self.fabric.shape(a, b, slow)
        self._compare(None, (_RING,))
        for a, b in ways:
            self.fabric.shape(a, b, rate)

    def _lost(self) -> None:
        """Kill a router of a tree in the middle of a job that the daemons lead."""
        lost = next(self._can_be_lost(), None)
        if lost is None:
            self._headline("No router is lost")
            self.console.print("  Each router of the tree is the only way between two workers.")
            return
        ranks = [rank_of(self.fabric.plan, host) for host in self.hosts]
        head = ranks[0].leaf
        addresses = ",".join(str(rank.address()) for rank in ranks)
        self._await(lambda: len(self._shown(head)["routers"]) == len(self.fabric.plan.routers))
        given = () if self.tree is None else ("--tree", self.tree)
        self.fabric.node(head).cli("ina", "create", _JOB, "--workers", addresses, *given)
        over = "" if self.tree is None else f" over {self.tree}"
        self._headline(f"{lost.name} is lost in the middle of {_LONG} all-reduces{over}")
        workers = Workers(self.fabric, _JOB, self.hosts, SIZE, _LONG, timeout=_PATIENCE)
        begun = time.monotonic()
        try:
            workers.start()
            self._await(lambda: all(len(lines) > 1 for lines in workers.lines()))
            self._kill(lost)
            while workers.running(time.monotonic() - begun):
                time.sleep(0.05)
        finally:
            workers.stop()
        # Its links go down one by one, and each may begin an epoch.
        self._await(lambda: all(tree["planned"] for tree in self._job(head)["trees"]))
        job = self._job(head)
        if workers.epoch < 2:
            raise LabError("the job has no second epoch")
        longest = max(one.seconds for one in workers.iterations())
        roots = ", ".join(tree["hostname"] or tree["root"] for tree in job["trees"])
        self.console.print(
            f"  epoch {job['epoch']}, root {roots} ({job['reason']}):\n"
            f"  all {_LONG} sums are right at all workers; the longest call took {longest:.2f} s"
        )

    def _can_be_lost(self) -> Iterator[NodePlan]:
        """Yield routers of the job's trees, without which there still is a tree."""
        plan, rate = self.fabric.plan, kernel_rates(self.fabric)
        network, job = capacities(plan, rate), summing_job(plan, _JOB, self.hosts)
        given = None if self.tree is None else lab_tree(plan, self.tree)
        planned = plan_job(network, replace(job, given=given))
        used = {node for rated in planned.trees for node in rated.tree.nodes}
        roots = {rated.tree.root for rated in planned.trees}
        order = [self.spine.number, *sorted(roots), *sorted(used)]
        for number in dict.fromkeys(order):
            if number not in used or number in job.leaves:
                continue
            links = {link: rate for link, rate in network.links.items() if number not in link}
            rest = Capacities(links, network.adders - {number})
            if plan_job(rest, job).trees:
                yield next(router for router in plan.routers if router.number == number)

    def _kill(self, lost: NodePlan) -> None:
        """Cut the router off, then end it: so nobody learns which of its processes ended first."""
        for port in lost.fabric_ports:
            self.fabric.fail(lost.name, port.peer)
        for process in self.fabric.node(lost.name).processes:
            send_signal(process, signal.SIGKILL)

    # -- looks ----------------------------------------------------------------------------------

    def _job(self, head: str) -> dict[str, Any]:
        (job,) = self._shown(head)["jobs"]
        found: dict[str, Any] = job
        return found

    def _shown(self, router: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.fabric.node(router).cli("--json", "ina", "jobs"))
        return found

    def _await(self, condition: Any) -> None:  # noqa: ANN401 - a function without arguments
        deadline = time.monotonic() + _READY
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"not within {_READY:g} s")
            time.sleep(0.1)

    def _sent(self) -> dict[tuple[str, str], int]:
        """Return the bytes that routers have sent to each other."""
        found: dict[tuple[str, str], int] = {}
        for router in self.fabric.plan.routers:
            counters = self.fabric.view(router.name).counters()
            for port in router.fabric_ports:
                link = router.name, port.peer
                found[link] = found.get(link, 0) + counters[port.name].sent_bytes
        return found

    def _headline(self, text: str) -> None:
        self.title = text
        self.console.print(f"\n[bold]{text}[/]")
