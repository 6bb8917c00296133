"""A lab whose routers sum, with jobs that its daemons flood and workers as processes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.processes import send_signal, start_in_turn
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.waiting import await_paths
from tests.waiting import wait_for

PROGRAM = Path(__file__).parents[1] / "ina" / "worker_program.py"
SHORT = 10.0
WITHIN = 1.0
"""Seconds of the longest call when something fails; undisturbed ones take less than a tenth."""
OVERLOADED = 3.0
"""The same while others have the cores: some calls then wait that long for a turn of a process."""
FAILURES = 20 if os.environ.get("FARED_TEST_SOAK") else 2


class Jobs:
    """A fabric whose routers sum, and workers as processes in its hosts."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.hosts = tuple(host.name for host in fabric.plan.hosts)
        self._summing = sum(router.node.ina for router in fabric.plan.routers)
        self._workers: list[subprocess.Popen[bytes]] = []

    def shown(self, router: str) -> dict[str, Any]:
        return json.loads(self.fabric.node(router).cli("--json", "ina", "jobs"))

    def job(self, name: str, router: str = "L1") -> dict[str, Any]:
        return next(job for job in self.shown(router)["jobs"] if job["name"] == name)

    def create(
        self, name: str, *options: str, head: str = "L1", routers: int | None = None
    ) -> None:
        """Create a job of all hosts at the first one's router, which knows ``routers`` that sum."""
        plan, known = self.fabric.plan, routers or self._summing
        wait_for(lambda: len(self.shown(head)["routers"]) >= known, 20, "all routers sum")
        addresses = [str(rank_of(plan, host).address()) for host in self.hosts]
        self.fabric.node(head).cli(
            "ina", "create", name, "--workers", ",".join(addresses), *options
        )

    def start(self, name: str, **given: object) -> list[subprocess.Popen[bytes]]:
        """Start all workers; they make calls until ``calls`` are done."""
        for rank in range(len(self.hosts)):
            self.start_one(name, rank, **given)
        wait_for(lambda: all(self.lines(name)), 20, lambda: self.told(name))
        return self._workers[-len(self.hosts) :]

    def start_one(self, name: str, rank: int, **given: object) -> subprocess.Popen[bytes]:
        task = {"job": name, "rank": rank, "size": len(self.hosts), "calls": 40}
        task |= {"elements": 200_000, "kind": "int", "timeout": 20.0}
        node = self.fabric.node(self.hosts[rank])
        node.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(PROGRAM), json.dumps(task | given)]
        self._workers.append(node.netns.start(command, self.log(name, self.hosts[rank])))
        return self._workers[-1]

    def log(self, name: str, host: str) -> Path:
        return self.fabric.node(host).directory / f"{name}.log"

    def lines(self, name: str) -> list[list[dict[str, Any]]]:
        texts = [self.log(name, host).read_text().splitlines() for host in self.hosts]
        return [[json.loads(line) for line in text if line[:1] == "{"] for text in texts]

    def told(self, name: str) -> str:
        return "\n".join(self.log(name, host).read_text() for host in self.hosts)

    def results(self, name: str, seconds: float = 60.0) -> list[dict[str, Any]]:
        wait_for(
            lambda: all(len(one) == 2 for one in self.lines(name)), seconds, lambda: self.told(name)
        )
        return [one[1] for one in self.lines(name)]

    def kill(self, router: str, program: str) -> None:
        node = self.fabric.node(router)
        for process in [process for process in node.processes if process.name == program]:
            send_signal(process, signal.SIGKILL)
            assert process.handle is not None
            process.handle.wait()
            node.processes.remove(process)

    def restart(self, router: str) -> None:
        """Start the daemon again; ``fared-ina`` runs on."""
        node = self.fabric.node(router)
        command = node.kind.commands(node.plan, node.directory)[-1]
        start_in_turn([(node, command)], time.monotonic() + 60)

    def head(self, name: str, router: str) -> str | None:
        heads = [job["head"] for job in self.shown(router)["jobs"] if job["name"] == name]
        return heads[0] if heads else None

    def end(self, name: str) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._workers.clear()
        for leaf in self.fabric.plan.leaves:
            with contextlib.suppress(LabError):  # only the head may
                self.fabric.node(leaf.name).cli("ina", "delete", name)


def same(results: list[dict[str, Any]]) -> bool:
    assert all("digest" in result for result in results), results
    return len({result["digest"] for result in results}) == 1


def hardly_late(results: list[dict[str, Any]]) -> bool:
    """Whether no call took longer than a failure may delay it."""
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    return max(result["longest"] for result in results) < (OVERLOADED if busy else WITHIN)


def survive_failures(jobs: Jobs, name: str) -> None:
    """Let links fail, one at a time, in the middle of calls: sums are right, and hardly late."""
    draw, fabric = random.Random(22), jobs.fabric
    plan = fabric.plan
    links = [(port.node, port.peer) for leaf in plan.leaves for port in leaf.fabric_ports]
    for number in range(FAILURES):
        link, one = draw.choice(links), f"{name}{number}"
        jobs.create(one)
        enough = _sent(jobs, link) + draw.randrange(1, 4_000_000)
        jobs.start(one, calls=60)
        wait_for(lambda k=link, n=enough: _sent(jobs, k) > n, SHORT, "calls are under way")
        fabric.fail(*link)
        wait_for(lambda j=one: jobs.job(j)["epoch"] > 1, SHORT, lambda: str(jobs.shown("L1")))
        results = jobs.results(one)
        assert same(results)
        assert hardly_late(results), (link, results)
        jobs.end(one)
        fabric.heal(*link)
        assert await_paths(fabric, 60.0) is not None


def lose_a_worker_and_take_it_back(jobs: Jobs, name: str, stop: Path) -> None:
    """Kill the worker of L2, and start it again: the daemons do the rest."""
    every, given = [0, 1, 2], {"stop": str(stop), "elements": 50_000}

    def over(rank: int) -> list[list[int]]:
        """The sets of ranks over which a worker got sums, as they followed each other."""
        return [line["over"] for line in jobs.lines(name)[rank] if "over" in line]

    def told() -> str:
        return f"{jobs.shown('L1')}\n{jobs.told(name)}"

    jobs.create(name, "--elastic")
    workers = jobs.start(name, **given)
    wait_for(lambda: all(over(rank) == [every] for rank in every), 20, told)
    workers[1].kill()
    wait_for(lambda: all([0, 2] in over(rank) for rank in (0, 2)), SHORT, told)
    shown = jobs.job(name, "S2")
    assert (shown["epoch"], shown["reason"]) == (2, "rank 1 is lost")
    assert (shown["elastic"], shown["lost"]) == (True, [1])
    text = jobs.fabric.node("L1").cli("show", "ina", "job", name)
    assert "2 of 3 workers, without rank 1" in text, text
    jobs.start_one(name, 1, **given)
    wait_for(lambda: all(over(rank)[-1:] == [every] for rank in every), SHORT, told)
    assert jobs.job(name)["reason"] == "rank 1 is back"
    stop.touch()
    wait_for(lambda: all("ranks" in lines[-1] for lines in jobs.lines(name)), 20, told)
    results = [lines[-1] for lines in jobs.lines(name)][::2]
    assert [one["sets"] for one in results] == [[every, [0, 2], every]] * 2
    assert hardly_late(results), results
    jobs.end(name)


def _sent(jobs: Jobs, link: tuple[str, str]) -> int:
    near, far = link
    return jobs.fabric.view(near).counters()[far].sent_bytes
