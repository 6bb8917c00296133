"""Training jobs that share a leaf's uplinks in the lab, beginning together and as planned.

Two and three rings of two hosts, all with one at leaf L1 of ``containerlab/clos3.clab.yml`` (4
spines, 8 leaves, links of 100 Mbit/s), communicate and compute in turn. ``fared-cli plan jobs``
(CASSINI) gets the routes from the LSDB of L1 and the times from a run of one job alone, and says
when each job should begin. All begin together (the worst phase: TCP shares the links equally, so
that it lasts), then as planned; the mean iterations are compared.

``python -m bench plan_jobs`` prints the rows.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.lab.sandboxed import measured_rows
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
HOSTS = (("h1", "h2"), ("h1", "h3"), ("h1", "h4"))
SIZE, ELEPHANTS = 30_000_000, 64
ALONE, ITERATIONS, AFTER = 4, 9, 2
"""Iterations of a job alone, of jobs together, and those before which the mean does not begin."""
SLACK = 1.4
"""Jobs compute so much longer than the others communicate."""
UPLINKS = 400e6
TICK = 0.01
GAIN = 1.2
READY = 120.0


def rows() -> list[dict[str, Any]]:
    """Measure in a sandbox; return the rows. Without namespaces there are none."""
    return measured_rows("plan_jobs", lambda: list(_rows()))


def _rows() -> Iterator[dict[str, Any]]:
    with Fabric.from_file(TOPOLOGY) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError("not all routes in time")
        plain = Job("all-reduce-ring", HOSTS[0], SIZE, ELEPHANTS, ALONE, compute=0.2)
        busy = run(fabric, [plain]).jobs[0].median
        for count in (2, 3):
            compute = SLACK * busy * (count - 1)
            jobs = [
                replace(plain, hosts=hosts, iterations=ITERATIONS, compute=compute)
                for hosts in HOSTS[:count]
            ]
            shifts, score = _planned(fabric, jobs, busy)
            together = _cycle(fabric, jobs)
            shifted = [replace(job, shift=at) for job, at in zip(jobs, shifts, strict=True)]
            planned = _cycle(fabric, shifted)
            yield {
                "name": f"{count} jobs on four uplinks, mean iteration as planned / at once",
                "ours": planned,
                "other": together,
                "unit": "s",
                "ratio": together / planned,
                "goal": f">= {GAIN:g}x",
                "met": together / planned >= GAIN,
                "note": f"{count} jobs: alone {busy:.2f} s of communication and {compute:.2f} s of "
                f"computing, {busy + compute:.2f} s together; score {score:.3f}, begun at "
                + ", ".join(f"{at:.2f}" for at in shifts)
                + " s.",
            }


def _planned(fabric: Fabric, jobs: Sequence[Job], busy: float) -> tuple[list[float], float]:
    """Return the shifts and the score that ``fared-cli plan jobs`` gives."""
    period = _ticks(busy + jobs[0].compute)
    listed = [
        {
            "name": str(number),
            "period": f"{period:g}s",
            "busy": f"{min(_ticks(busy), period):g}s",
            "bandwidth": UPLINKS,
            "hosts": [f"L{host[1:]}" for host in job.hosts],
        }
        for number, job in enumerate(jobs)
    ]
    with tempfile.TemporaryDirectory() as directory:
        database, file = Path(directory, "db.json"), Path(directory, "jobs.yaml")
        database.write_text(fabric.node("L1").cli("show", "lsdb", "--json"))
        file.write_text(json.dumps({"jobs": listed}))
        command = [Path(sys.executable).with_name("fared-cli"), "plan", "jobs", file]
        command += ["--lsdb", database, "--tick", f"{TICK:g}s", "--json"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return [job["shift"] for job in found["jobs"]], found["score"]


def _ticks(seconds: float) -> float:
    return round(seconds / TICK) * TICK


def _cycle(fabric: Fabric, jobs: Sequence[Job]) -> float:
    """Return the mean time from one iteration to the next, of all jobs, once they have settled."""
    found = []
    for report in run(fabric, jobs).jobs:
        begun = [one.begun for one in report.iterations[AFTER:]]
        found.append((begun[-1] - begun[0]) / (len(begun) - 1))
    return statistics.fmean(found)
