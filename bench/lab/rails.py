"""Weights at the leaves of rails, everywhere and nowhere: FARE's sentence as figures.

draft-xu-lsr-fare: "enabling adaptive routing only in PoD networks is sufficient", as the planes
between rails carry less. Four servers with two GPUs in two rails (``fared-lab generate rails``) run
a ring in each rail at once, and an all-to-all over all GPUs, while all links work, while a link
of a rail has a quarter of its rate, and while a link of a plane has.

``python -m bench rails`` prints a table of all; the rows are those in which something is damaged.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.lab.sandboxed import measured_rows
from bench.rows import compared
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.generate.rails import Rails
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.ranks import all_ranks
from fared.extensions.lab.reload import adapt
from fared.extensions.lab.waiting import await_paths, wait_until
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

MBITS = 40
FABRIC = Rails(gpus=2, rails=2, rate=f"{MBITS}M")
SIZE, ITERATIONS = 8_000_000, 3
NOWHERE, LEAVES, EVERYWHERE = "nowhere", "leaves", "everywhere"
WEIGHTS: Mapping[str, Callable[[str], bool]] = {
    NOWHERE: lambda _: False,
    LEAVES: lambda name: "-L" in name,
    EVERYWHERE: lambda _: True,
}
"""The routers that weight paths, by their names."""
RINGS, ALL = "rings in the rails", "all-to-all"
WHOLE, RAIL, PLANE = (
    "all links work",
    "a link of rail 1 at a quarter",
    "a link of a plane at a quarter",
)
DAMAGES = {WHOLE: (), RAIL: ("r1-S1", "r1-L2"), PLANE: ("plane1-SS1", "r1-S1")}
RUNS = ((WHOLE, RINGS), (WHOLE, ALL), (RAIL, RINGS), (RAIL, ALL), (PLANE, ALL))
_READY, _CHANGED, _QUIET = 120.0, 60.0, 1.0
_TOLERANCE = 0.01


def rows() -> list[dict[str, Any]]:
    """Measure in a sandbox; return the rows. Without namespaces there are none."""
    found = measured_rows("rails", measured)
    return [row for one in found if one["damage"] != WHOLE for row in _compared(one)]


def main() -> None:
    """Print the table of all runs."""
    print("| workload | damage | bound, s |", " | ".join(WEIGHTS), "|\n|---|---|---|---|---|---|")
    for one in measured_rows("rails", measured):
        cells = (f"{one[at]:.2f} ({one['bound'] / one[at]:.0%})" for at in WEIGHTS)
        print("|", " | ".join((one["workload"], one["damage"], f"{one['bound']:.2f}", *cells)), "|")


def _compared(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    what = f"{one['workload']}, {one['damage']}: weights"
    parts = ", ".join(f"{at} {one['bound'] / one[at]:.0%}" for at in WEIGHTS)
    note = f"{SIZE / 1e6:g} MB, links of {MBITS} Mbit/s; parts of the max-flow bound: {parts}"
    made = [
        compared(f"{what} at leaves / nowhere", one[LEAVES], one[NOWHERE], "s"),
        compared(f"{what} everywhere / at leaves", one[EVERYWHERE], one[LEAVES], "s"),
    ]
    return [{**row, "note": f"{what}: {note}"} for row in made]


def measured() -> list[dict[str, Any]]:
    found = [{"damage": damage, "workload": workload} for damage, workload in RUNS]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "rails.clab.yml")
        file.write_text(text(FABRIC))
        with Fabric.from_file(file, directory=Path(directory, "lab")) as fabric:
            if await_paths(fabric, _READY) is None:
                raise LabError("not every router has all routes")
            for where in WEIGHTS:
                _measure_with(fabric, where, found)
    return found


def _measure_with(fabric: Fabric, where: str, found: Sequence[dict[str, Any]]) -> None:
    """Run everything with weights there; put the seconds into ``found``."""
    weighing = {r.name for r in fabric.plan.routers if WEIGHTS[where](r.name)}
    even = {r.name for r in fabric.plan.routers} - weighing
    adapt(fabric, weighing, {"enabled": True})
    adapt(fabric, even, {"enabled": False})
    damaged: tuple[str, ...] | None = None
    for one in found:
        if DAMAGES[one["damage"]] != damaged:
            damaged = DAMAGES[one["damage"]]
            _damage(fabric, damaged)
            _await_weights(fabric, weighing)
        report = run(fabric, jobs(fabric.plan, one["workload"]), timeout=300.0)
        one["bound"] = max(job.bound or math.inf for job in report.jobs)
        one[where] = max(job.median for job in report.jobs)
        told = f"{one['workload']}, {one['damage']}, weights {where}: {one[where]:.2f} s"
        print(f"{told}, bound {one['bound']:.2f} s", file=sys.stderr, flush=True)


def _damage(fabric: Fabric, ends: tuple[str, ...]) -> None:
    """Reduce the rate of one link; all others have the whole."""
    for other in DAMAGES.values():
        if other:
            fabric.shape(other[0], other[1], MBITS * 1e6 / 8 / (4 if other == ends else 1))


def jobs(plan: AddressPlan, workload: str) -> list[Job]:
    """Return the jobs of a workload: a ring for each rail, or one all-to-all."""
    names = [rank.name for rank in all_ranks(plan)]
    if workload == ALL:
        return [Job("all-to-all", tuple(names), SIZE, elephants=4, iterations=ITERATIONS)]
    rails = dict.fromkeys(name.rpartition(".")[2] for name in names)
    return [
        Job(
            "all-reduce-ring",
            tuple(name for name in names if name.endswith(f".{rail}")),
            SIZE,
            elephants=16,
            iterations=ITERATIONS,
        )
        for rail in rails
    ]


def _await_weights(fabric: Fabric, weighing: set[str]) -> None:
    """Wait until every kernel splits traffic to each leaf by capacity, or evenly. Raises LabError.

    Border routers advertise path capacities whether or not they weight paths themselves.
    """
    plan = fabric.plan
    wanted: dict[tuple[str, str], dict[str, float]] = {}
    for router in plan.routers:
        for leaf in plan.leaves:
            if leaf.name != router.name:
                capacities = path_capacities(plan, fabric.rate, router.name, leaf.name)
                if router.name not in weighing:
                    capacities = dict.fromkeys(capacities, 1.0)
                wanted[router.name, leaf.name] = expected_shares(capacities)

    def accepts(name: str, view: KernelView) -> bool:
        return all(
            _near(shares(view.hops(str(leaf.host_prefixes[0]))), wanted[name, leaf.name])
            for leaf in plan.leaves
            if leaf.name != name
        )

    if wait_until(fabric.views(plan.routers), accepts, _CHANGED, quiet=_QUIET) is None:
        raise LabError("not every kernel has the expected weights")


def _near(held: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return held.keys() == wanted.keys() and all(
        abs(held[port] - share) <= _TOLERANCE for port, share in wanted.items()
    )
