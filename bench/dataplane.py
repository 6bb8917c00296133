"""Real TCP over a real fabric: how soon the same transfers are over, by the way it is routed.

4 spines and 8 leaves with links of 100 Mbit/s, in one of several states. The same workloads, from
the same source ports, run over FRR (plain ECMP), over fared with ``adaptive: enabled: false``
(plain ECMP too), weighing paths by capacity, and by available capacity. ECMP places flows by
chance: what has a goal runs with several draws of ports, and medians are compared. Beside each
stands the maximum-flow bound; the part of it that is reached is the same for completion time and
for goodput. Host links have no limit.

Scenarios, all about what leads to leaf L2:

- ``healthy``
- ``slow-downlink``: one of its four downlinks at a fifth; ``quarter-downlink``: at a quarter
- ``slow-uplink-and-dead-link``: an uplink of L1 at half, and another spine's link to L2 down
- ``background``: half of what spine S1's links can carry is taken by UDP that cannot go elsewhere
- ``lag-member-lost``: S1 and L2 are joined by two links of half the rate, and one is down

``python bench/dataplane.py`` runs what ``make bench`` does, ``--all`` every workload in every
scenario three times; ``--help`` tells how to run some of it. Results are kept in
build/bench/dataplane, one file for a scenario and a routing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from fared.lab.addressing import Port
    from fared.lab.bounds import Rate
    from fared.lab.fabric import Fabric
    from fared.lab.jobs import Job
    from fared.lab.kernel_view import KernelView

RESULTS = ROOT / "build" / "bench" / "dataplane"
FRR, OFF, CAPACITY, AVAILABLE = "FRR", "adaptive-off", "capacity", "available"
ROUTINGS: dict[str, dict[str, Any] | None] = {
    FRR: None,
    OFF: {"enabled": False},
    CAPACITY: {"metric": "capacity"},
    AVAILABLE: {"metric": "available"},
}
"""What ``adaptive`` says in the daemons' configuration; FRR has none."""
WEIGHTED = (CAPACITY, AVAILABLE)
LEAF, SPINE = "L2", "S1"
MBIT = 1e6 / 8
RATE = 100 * MBIT
BACKGROUND = 0.5
MEMBERS = 2
READY = 120.0
SETTLED = 1.0
TOLERANCE = {CAPACITY: 0.01, AVAILABLE: 0.02}
NOTHING = 0.001
DRAWS = 3
PAIR, RING, ALL = "pair", "ring", "all-to-all"
WORKLOADS = {
    PAIR: "one leaf to another, 128 flows of 2 MB",
    RING: "all-reduce ring of 8, 16 flows a pair",
    ALL: "all-to-all of 8, 8 flows a pair",
}
HEALTHY, SLOW, QUARTER = "healthy", "slow-downlink", "quarter-downlink"
UP_AND_DEAD, LOADED, LAG = "slow-uplink-and-dead-link", "background", "lag-member-lost"
SCENARIOS = (HEALTHY, SLOW, QUARTER, UP_AND_DEAD, LOADED, LAG)
GOAL_SOONER = 3.2
GOAL_BOUND = 0.84


@dataclass(frozen=True)
class Run:
    """A workload to run in a scenario over one routing: with so many draws of ports."""

    scenario: str
    routing: str
    workload: str
    draws: int


Found = dict[tuple[str, str, str], dict[str, Any]]
"""Scenario, routing and workload to its ``bound`` and the ``seconds`` of every draw."""


def short() -> list[Run]:
    """What ``make bench`` has time for: most where the goal is, and the pair under other load.

    FRR has one draw: whatever the ports, a quarter of the flows wait for the one slow link.
    Weights that follow load need a while to settle between scenarios.
    """
    runs = []
    for routing in ROUTINGS:
        runs.append(Run(SLOW, routing, PAIR, DRAWS if routing == CAPACITY else 1))
        if routing in (FRR, CAPACITY):
            runs += [Run(SLOW, routing, workload, 1) for workload in (RING, ALL)]
        if routing != OFF:
            runs.append(Run(LOADED, routing, PAIR, 1))
    return runs


def everything(draws: int = DRAWS) -> list[Run]:
    """Every workload in every scenario over every routing."""
    return [
        Run(scenario, routing, workload, draws)
        for scenario in SCENARIOS
        for routing in ROUTINGS
        for workload in WORKLOADS
    ]


def jobs(hosts: tuple[str, ...]) -> dict[str, Job]:
    """The workloads."""
    from fared.lab.jobs import Job

    return {
        PAIR: Job("broadcast", hosts[:2], 256_000_000, elephants=128, iterations=1),
        RING: Job("all-reduce-ring", hosts, 64_000_000, elephants=16, iterations=1),
        ALL: Job("all-to-all", hosts, 128_000_000, elephants=8, iterations=1),
    }


# -- scenarios ---------------------------------------------------------------------------------


@contextmanager
def state(fabric: Fabric, scenario: str) -> Iterator[Rate]:
    """Bring the links into the state to measure in; what of them workloads can have.

    Everything is as before when the context ends.
    """
    from fared.lab.bounds import kernel_rates

    undo: list[Callable[[], None]] = []

    def shape(a: str, b: str, part: float) -> None:
        fabric.shape(a, b, part * RATE)
        undo.append(lambda: fabric.shape(a, b, RATE))

    try:
        match scenario:
            case "slow-downlink":
                shape(SPINE, LEAF, 1 / 5)
            case "quarter-downlink":
                shape(SPINE, LEAF, 1 / 4)
            case "slow-uplink-and-dead-link":
                shape("L1", SPINE, 1 / 2)
                fabric.fail("S2", LEAF)
                undo.append(lambda: fabric.heal("S2", LEAF))
            case "lag-member-lost":
                member = fabric.plan.ports_between(SPINE, LEAF)[0].name
                links = fabric.node(SPINE).netns
                links.ip("link", "set", "dev", member, "down")
                undo.append(lambda: fabric.heal(SPINE, LEAF))
        rates = kernel_rates(fabric)
        if scenario != LOADED:
            yield rates
            return
        with background(fabric):
            yield lambda port: _left(rates, port)
    finally:
        for step in undo:
            step()


def _left(rates: Rate, port: Port) -> float | None:
    rate = rates(port)
    loaded = SPINE in (port.node, port.peer) and not port.to_host
    return rate * (1 - BACKGROUND) if loaded and rate is not None else rate


@contextmanager
def background(fabric: Fabric) -> Iterator[None]:
    """Take half of every link of one spine, both ways, by load that has no other way."""
    from fared.lab.steady import steady, through

    leaves = [leaf.name for leaf in fabric.plan.leaves]
    hosts = [host.name for host in fabric.plan.hosts]
    streams = [
        replace(through(fabric, host, SPINE, leaf, BACKGROUND * RATE), segments=8)
        for host, leaf in zip(hosts, [*leaves[1:], leaves[0]], strict=True)
    ]
    with steady(fabric, streams):
        yield


# -- measuring ---------------------------------------------------------------------------------


def measure(runs: Sequence[Run]) -> None:
    """Do all runs, in as few fabrics as they need; leave the results in files."""
    from bench.labs import clos, configure, doubled
    from fared.lab.fabric import Fabric
    from fared.lab.waiting import await_paths

    for kind in ("frr", "fared"):
        for split in (False, True):
            here = [
                run
                for run in runs
                if (run.routing == FRR) == (kind == "frr") and (run.scenario == LAG) == split
            ]
            if not here:
                continue
            topology = (
                doubled(clos(), SPINE, LEAF, f"{RATE * 8 / MEMBERS:.0f}") if split else clos()
            )
            with Fabric.from_topology(topology, as_kind=kind) as fabric:
                if await_paths(fabric, READY) is None:
                    raise SystemExit(f"{kind}: not every router has all paths")
                for routing in dict.fromkeys(run.routing for run in here):
                    adaptive = ROUTINGS[routing]
                    if adaptive is not None:
                        configure(fabric, adaptive)
                    for scenario in dict.fromkeys(run.scenario for run in here):
                        _measure(
                            fabric,
                            [r for r in here if (r.scenario, r.routing) == (scenario, routing)],
                        )


def _measure(fabric: Fabric, runs: Sequence[Run]) -> None:
    """Run workloads in one scenario over one routing."""
    from fared.lab.workload import bound, run

    if not runs:
        return
    scenario, routing = runs[0].scenario, runs[0].routing
    file = RESULTS / f"{scenario}-{routing}.json"
    results = json.loads(file.read_text("utf-8")) if file.exists() else {}
    every = jobs(tuple(node.name for node in fabric.plan.hosts))
    with state(fabric, scenario) as rates:
        for one in runs:
            _await_paths(fabric, routing, rates)
            job = every[one.workload]
            seconds = [run(fabric, [job], seed=n).jobs[0].median for n in range(one.draws)]
            least = bound(job, fabric.plan, rates)
            results[one.workload] = {"bound": least, "seconds": seconds}
            said = ", ".join(f"{value:.2f}" for value in seconds)
            print(
                f"{scenario}, {routing}, {one.workload}: {said} s of {least:.2f} s",
                file=sys.stderr,
                flush=True,
            )
            file.write_text(json.dumps(results), "utf-8")


def _await_paths(fabric: Fabric, routing: str, rates: Rate) -> None:
    """Wait until the leaves' kernels use the live paths to the leaf, weighed as they should be."""
    from fared.lab.bounds import kernel_rates
    from fared.lab.expected import expected_shares, path_capacities
    from fared.lab.kernel_view import shares
    from fared.lab.waiting import wait_until

    plan = fabric.plan
    prefix = str(plan.node(LEAF).host_prefixes[0])
    now = rates if routing == AVAILABLE else kernel_rates(fabric)

    def rate(port: Port) -> float | None:
        return 1.0 if now(port) == 0.0 else now(port)  # a dead link: as good as nothing

    def accepts(name: str, view: KernelView) -> bool:
        expected = expected_shares(path_capacities(plan, rate, name, LEAF))
        wanted = {port: share for port, share in expected.items() if share > NOTHING}
        held = shares(view.hops(prefix))
        return wanted.keys() == held.keys() and all(
            abs(held[port] - (share if routing in WEIGHTED else 1 / len(wanted)))
            < TOLERANCE.get(routing, TOLERANCE[CAPACITY])
            for port, share in wanted.items()
        )

    others = [leaf for leaf in plan.leaves if leaf.name != LEAF]
    if wait_until(fabric.views(others), accepts, READY, quiet=SETTLED) is None:
        raise SystemExit(f"{routing}: the routes do not become what they should")


# -- reporting ---------------------------------------------------------------------------------


def rows(runs: Sequence[Run] | None = None) -> list[dict[str, Any]]:
    """Run what ``make bench`` has time for, or other runs; how they compare with FRR."""
    from fared.lab import sandbox

    if sandbox.problem() is not None or not Path("/usr/lib/frr/zebra").exists():
        return []
    chosen = short() if runs is None else runs
    RESULTS.mkdir(parents=True, exist_ok=True)
    if runs is None:
        for file in RESULTS.glob("*.json"):
            file.unlink()

    def play() -> int:
        measure(chosen)
        return 0

    if sandbox.run(play):
        return []
    return kept_rows()


def kept_rows() -> list[dict[str, Any]]:
    """The rows of all results that lie in files."""
    found: Found = {}
    for scenario in SCENARIOS:
        for routing in ROUTINGS:
            file = RESULTS / f"{scenario}-{routing}.json"
            results = json.loads(file.read_text("utf-8")) if file.exists() else {}
            found |= {(scenario, routing, workload): one for workload, one in results.items()}
    return [
        row
        for scenario in SCENARIOS
        for workload in WORKLOADS
        for routing in ROUTINGS
        if routing != FRR
        and {(scenario, FRR, workload), (scenario, routing, workload)} <= found.keys()
        for row in _rows(found, scenario, workload, routing)
    ]


def _rows(found: Found, scenario: str, workload: str, routing: str) -> Iterator[dict[str, Any]]:
    """How many times sooner than FRR, and what part of the bound."""
    ours, other = (
        statistics.median(found[scenario, who, workload]["seconds"]) for who in (routing, FRR)
    )
    judged = (scenario, workload, routing) == (SLOW, PAIR, CAPACITY)
    name = f"{scenario}, {WORKLOADS[workload]}: {routing}"
    yield {
        "name": f"{name}, beside FRR, times sooner",
        "ours": ours,
        "other": other,
        "unit": "s",
        "ratio": other / ours,
        "goal": f">= {GOAL_SOONER}" if judged else None,
        "met": other / ours >= GOAL_SOONER if judged else None,
    }
    if routing in WEIGHTED:
        bound = found[scenario, routing, workload]["bound"]
        yield {
            "name": f"{name}, part of the bound of {bound:.3g} s (other: FRR)",
            "ours": bound / ours,
            "other": bound / other,
            "unit": "",
            "ratio": None,
            "goal": f">= {GOAL_BOUND}" if judged else None,
            "met": bound / ours >= GOAL_BOUND if judged else None,
        }


def main() -> None:
    """Run what the arguments choose and print the table."""
    from bench.run import table

    parser = argparse.ArgumentParser(description="Completion times by routing.")
    parser.add_argument("--all", action="store_true", help="all workloads in all scenarios")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--routing", action="append", choices=tuple(ROUTINGS))
    parser.add_argument("--workload", action="append", choices=tuple(WORKLOADS))
    parser.add_argument("--kept", action="store_true", help="only show what lies there")
    given = parser.parse_args()
    runs = [
        run
        for run in (everything(given.draws) if given.all else short())
        if (not given.scenario or run.scenario in given.scenario)
        and (not given.routing or run.routing in given.routing)
        and (not given.workload or run.workload in given.workload)
    ]
    print("\n".join(table(kept_rows() if given.kept else rows(runs))))


if __name__ == "__main__":
    main()
