"""The worker processes of jobs of in-network aggregation in a lab, one a host."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_worker import Task
from fared.extensions.lab.processes import NodeProcess, end
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.workloads.report import Iteration

_LOG = "ina-worker.log"


class Workers:
    """The worker processes of a job, one a host."""

    def __init__(
        self,
        fabric: Fabric,
        name: str,
        hosts: Sequence[str],
        size: int,
        iterations: int,
        *,
        timeout: float,
        number: int = 0,
        root: int | None = None,
    ) -> None:
        """``number``: of the job, if several run at a time; ``root``: of reduces."""
        self._log = f"ina-worker-{number}.log" if number else _LOG
        self._fabric, self._name, self._hosts = fabric, name, tuple(hosts)
        self.size, self.calls, self._timeout = size, iterations, timeout
        self.root = root
        self._processes: list[NodeProcess] = []

    def start(self) -> None:
        """Start all workers."""
        for rank, host in enumerate(self._hosts):
            place = rank_of(self._fabric.plan, host)
            node = self._fabric.node(place.host)
            node.directory.mkdir(parents=True, exist_ok=True)
            task = Task(
                self._name,
                rank,
                len(self._hosts),
                self.size,
                self.calls,
                min(self._timeout, 30.0),
                str(place.gateway),
                self.root,
            )
            log = node.directory / self._log
            log.unlink(missing_ok=True)
            text = msgspec.json.encode(task).decode()
            handle = node.netns.start(
                [sys.executable, "-m", "fared.extensions.lab.ina_worker", text], log
            )
            self._processes.append(NodeProcess("ina-worker", handle.pid, log, handle))

    def running(self, now: float) -> bool:
        """Whether any worker still runs. Raises LabError if one failed or time is over."""
        alive = False
        for host, process in zip(self._hosts, self._processes, strict=True):
            assert process.handle is not None
            code = process.handle.poll()
            if code is None:
                alive = True
            elif code != 0:
                raise LabError(f"{host}: {process.last_words() or f'ended with {code}'}")
        if alive and now > self._timeout:
            raise LabError(f"no end within {self._timeout:g} s")
        return alive

    def stop(self) -> None:
        """End what still runs."""
        for process in self._processes:
            if process.alive():
                assert process.handle is not None
                process.handle.send_signal(signal.SIGKILL)
        end(self._processes)

    @property
    def epoch(self) -> int:
        """The least epoch that a worker told at its end; 0: one told none."""
        found = (process.last_words(1) for process in self._processes)
        told = [json.loads(line) for line in found if line.startswith("{")]
        return min((line.get("epoch", 0) for line in told), default=0)

    def lines(self) -> list[list[dict[str, float]]]:
        """Return what each worker told of its all-reduces."""
        return [_lines(process.log) for process in self._processes]

    def iterations(self) -> Iterator[Iteration]:
        """Yield each all-reduce: an array is reduced when the last worker has the sum."""
        begun = None
        for told in zip(*self.lines(), strict=False):
            seconds = max(line["seconds"] for line in told)
            ended = max(line["ended"] for line in told)
            begun = ended - seconds if begun is None else begun
            yield Iteration(ended - seconds - begun, seconds)


def repeated(fabric: Fabric, hosts: Sequence[str]) -> int:
    """Return how many packets the workers of the last job in these hosts sent again."""
    last = [(fabric.node(host).directory / _LOG).read_text("utf-8") for host in hosts]
    told = (json.loads(text.splitlines()[-1]) for text in last)
    return sum(line["counters"].get("repeated", 0) for line in told)


def _lines(log: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines() if line[:1] == "{"]
    return [line for line in lines if "seconds" in line]
