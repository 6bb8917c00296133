"""The demonstration of in-network aggregation: beside others, over a slow link, and a lost spine.

Every sum is verified by every worker; a claim that fails ends the demonstration with exit code 1.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from fared.core.units import format_bandwidth
from fared.extensions.lab.addressing import NodePlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_workload import Workers, run_ina
from fared.extensions.lab.processes import send_signal
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.topology import LabTopology
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import INA, Job
from fared.extensions.lab.workloads.report import WorkloadReport
from fared.extensions.lab.workloads.run import run
from fared.extensions.lab.workloads.tables import format_bytes

SIZE = 2_000_000
ITERATIONS = 3
ELEPHANTS = 8
_LONG = 40
_READY = 120.0
_PATIENCE = 120.0
_SLOWED_TO = 4
_BAR = 24
_WIDTH = 80
_JOB = "demo"


def run_ina_demo(topology: LabTopology) -> int:
    """Run the demonstration inside a sandbox; return 0, or 1 after reporting what failed."""
    console = Console(width=min(_WIDTH, Console().width), highlight=False)
    fabric = Fabric.from_topology(topology)
    try:
        _InaDemo(fabric, console).run()
    except LabError as error:
        console.print(f"[bold red]failed[/]: {error}", soft_wrap=True)
        return 1
    finally:
        fabric.stop()
    return 0


class _InaDemo:
    def __init__(self, fabric: Fabric, console: Console) -> None:
        self.fabric, self.console = fabric, console
        plan = fabric.plan
        self.hosts = tuple(host.name for host in plan.hosts)
        self.leaf = plan.leaves[min(1, len(plan.leaves) - 1)]
        self.spine = plan.node(self.leaf.fabric_ports[0].peer)

    def run(self) -> None:
        """Run all acts."""
        self._headline(f"{len(self.hosts)} workers, {len(self.fabric.plan.routers)} routers")
        self.fabric.build()
        self.fabric.start()
        if await_paths(self.fabric, _READY) is None:
            raise LabError("not every router has all routes")
        self._headline(f"All-reduce of {format_bytes(SIZE)}B: all links work")
        self._compare()
        self._slow()
        self._lost()

    def _compare(self) -> None:
        """Show aggregation beside the others, and bytes on the uplinks of one leaf."""
        before = self._sent()
        reports = [run_ina(self.fabric, self.hosts, SIZE, ITERATIONS, timeout=_PATIENCE)]
        after = self._sent()
        for name in ("all-reduce-ring", "all-reduce-ps"):
            job = Job(name, self.hosts, SIZE, ELEPHANTS, ITERATIONS)
            reports.append(run(self.fabric, [job], timeout=_PATIENCE))
        self.console.print(_times(reports))
        self.console.print(_bytes(self.leaf, {port: after[port] - before[port] for port in after}))

    def _slow(self) -> None:
        port = next(iter(self.fabric.plan.ports_between(self.leaf.name, self.spine.name)))
        rate = self.fabric.rate(port)
        if rate is None:
            raise LabError(f"the link {self.leaf.name}-{self.spine.name} has no rate to reduce")
        slow = rate / _SLOWED_TO
        link = f"{self.leaf.name} - {self.spine.name}"
        self._headline(f"{link} drops to {format_bandwidth(slow)} bit/s, a quarter")
        for a, b in ((self.leaf.name, self.spine.name), (self.spine.name, self.leaf.name)):
            self.fabric.shape(a, b, slow)
        self._compare()

    def _lost(self) -> None:
        """Kill a spine in the middle of a job that the daemons lead."""
        ranks = [rank_of(self.fabric.plan, host) for host in self.hosts]
        head = ranks[0].leaf
        addresses = ",".join(str(rank.address()) for rank in ranks)
        self._await(lambda: len(self._shown(head)["routers"]) == len(self.fabric.plan.routers))
        self.fabric.node(head).cli("ina", "create", _JOB, "--workers", addresses)
        self._headline(f"{self.spine.name} is lost in the middle of {_LONG} all-reduces")
        workers = Workers(self.fabric, _JOB, self.hosts, SIZE, _LONG, timeout=_PATIENCE)
        begun = time.monotonic()
        try:
            workers.start()
            self._await(lambda: all(len(lines) > 1 for lines in workers.lines()))
            self._kill()
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
        trees = len(job["trees"])
        self.console.print(
            f"  epoch {job['epoch']} over {trees} spines ({job['reason']}):\n"
            f"  all {_LONG} sums are right at all workers; the longest call took {longest:.2f} s"
        )

    def _kill(self) -> None:
        """Cut the spine off, then end it: so nobody learns which of its processes ended first."""
        for port in self.spine.fabric_ports:
            self.fabric.fail(self.spine.name, port.peer)
        for process in self.fabric.node(self.spine.name).processes:
            send_signal(process, signal.SIGKILL)

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

    def _sent(self) -> dict[str, int]:
        counters = self.fabric.view(self.leaf.name).counters()
        return {port.name: counters[port.name].sent_bytes for port in self.leaf.fabric_ports}

    def _headline(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")


def _times(reports: list[WorkloadReport]) -> Table:
    table = Table("collective", "bound", "median", "of bound", box=None, pad_edge=False)
    first = reports[0].jobs[0].median
    table.add_column("beside aggregation")
    for report in reports:
        job = report.jobs[0]
        part = "" if job.efficiency is None else f"{job.efficiency:.0%}"
        bound = "" if job.bound is None else f"{job.bound:.2f} s"
        beside = "" if job.job.collective == INA else f"{job.median / first:.2f} times as long"
        table.add_row(job.job.collective, bound, f"{job.median:.2f} s", part, beside)
    return table


def _bytes(leaf: NodePlan, sent: Mapping[str, int]) -> Table:
    table = Table(f"{leaf.name} to", "sent by aggregation", "", box=None, pad_edge=False)
    most = max(sent.values())
    for port in leaf.fabric_ports:
        found = sent[port.name] / ITERATIONS
        bar = "█" * round(_BAR * sent[port.name] / most) if most else ""
        table.add_row(port.peer, f"{format_bytes(found)}B a call", bar)
    return table
