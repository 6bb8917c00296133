"""Real TCP over a real fabric: how soon the same transfers are over, by the way it is routed.

4 spines and 8 leaves with links of 100 Mbit/s, in one of several states: by default one of the four
downlinks to L2 carries a fifth. The same workloads, from the same source ports, run over FRR (plain ECMP), over fared with
``adaptive: enabled: false`` (plain ECMP too) and over fared as it is, which weighs paths by
capacity. ECMP places flows by chance: each workload runs with several draws of ports, and medians
are compared. Beside each stands what the maximum-flow bound allows; host links have no limit.

``python bench/dataplane.py [DRAWS [SCENARIO]]`` runs another state: healthy, slow-downlink,
slow-uplink-and-dead-link.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from fared.lab.addressing import Port
    from fared.lab.fabric import Fabric
    from fared.lab.jobs import Job

TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
RESULTS = ROOT / "build" / "bench" / "dataplane.json"
FRR, OFF, CAPACITY = "FRR", "adaptive off", "capacity"
ROUTINGS: dict[str, dict[str, Any] | None] = {FRR: None, OFF: {"enabled": False}, CAPACITY: {}}
"""What ``adaptive`` says in the daemons' configuration; FRR has none."""
LEAF = "L2"
SCENARIO = "slow-downlink"
DRAWS = 3
READY = 120.0
SETTLED = 2.0
TOLERANCE = 0.01
NOTHING = 0.001
PAIR = "one leaf to another, 128 flows of 2 MB"
RING = "all-reduce ring of 8, 16 flows a pair"
ALL = "all-to-all of 8, 8 flows a pair"
GOAL_SOONER = 3.2
GOAL_BOUND = 0.84

Results = dict[str, dict[str, dict[str, Any]]]
"""Routing to workload to its bound and the seconds of every draw."""


def jobs(hosts: tuple[str, ...]) -> dict[str, Job]:
    """Each workload with the draws it gets."""
    from fared.lab.jobs import Job

    return {
        PAIR: Job("broadcast", hosts[:2], 256_000_000, elephants=128, iterations=1),
        RING: Job("all-reduce-ring", hosts, 64_000_000, elephants=16, iterations=1),
        ALL: Job("all-to-all", hosts, 128_000_000, elephants=8, iterations=1),
    }


def apply(fabric: Fabric, scenario: str) -> None:
    """Bring the fabric's links into the state to measure in."""
    if scenario == SCENARIO:
        fabric.shape("S1", LEAF, 20e6 / 8)
    elif scenario == "slow-uplink-and-dead-link":
        fabric.shape("L1", "S1", 50e6 / 8)
        fabric.fail("S2", LEAF)
    elif scenario != "healthy":
        raise SystemExit(f"no scenario {scenario!r}")


def measure(routing: str, draws: int, scenario: str) -> dict[str, dict[str, Any]]:
    """Build the fabric, slow the link down, run every workload with every draw of ports."""
    from fared.lab.fabric import Fabric
    from fared.lab.waiting import await_paths
    from fared.lab.workload import run

    adaptive = ROUTINGS[routing]
    results: dict[str, dict[str, Any]] = {}
    with Fabric.from_file(TOPOLOGY, as_kind="frr" if adaptive is None else "fared") as fabric:
        if adaptive:
            _configure(fabric, adaptive)
        if await_paths(fabric, READY) is None:
            raise SystemExit(f"{routing}: not every router has all paths")
        apply(fabric, scenario)
        _await_paths(fabric, weighted=routing == CAPACITY)
        for name, job in jobs(tuple(node.name for node in fabric.plan.hosts)).items():
            reports = [run(fabric, [job], seed=seed).jobs[0] for seed in range(draws)]
            seconds = [report.median for report in reports]
            results[name] = {"bound": reports[0].bound, "seconds": seconds}
            print(f"{routing}, {name}: {seconds}", file=sys.stderr, flush=True)
    return results


def _configure(fabric: Fabric, adaptive: dict[str, Any]) -> None:
    """Restart every daemon with other settings of ``adaptive``."""
    for router in fabric.plan.routers:
        file = fabric.node(router.name).directory / "fared.yaml"
        config = yaml.safe_load(file.read_text("utf-8")) | {"adaptive": adaptive}
        fabric.stop_node(router.name)
        file.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
        fabric.start_node(router.name)


def _await_paths(fabric: Fabric, *, weighted: bool) -> None:
    """Wait until the leaves' kernels use the live paths to the leaf, weighed by capacity or not."""
    from fared.lab.bounds import kernel_rates
    from fared.lab.expected import expected_shares, path_capacities
    from fared.lab.kernel_view import KernelView, shares
    from fared.lab.waiting import wait_until

    plan = fabric.plan
    prefix = str(plan.node(LEAF).host_prefixes[0])
    now = kernel_rates(fabric)

    def rate(port: Port) -> float | None:
        return 1.0 if now(port) == 0.0 else now(port)  # a dead link: as good as nothing

    def accepts(name: str, view: KernelView) -> bool:
        expected = expected_shares(path_capacities(plan, rate, name, LEAF))
        wanted = {port: share for port, share in expected.items() if share > NOTHING}
        held = shares(view.hops(prefix))
        return wanted.keys() == held.keys() and all(
            abs(held[port] - (share if weighted else 1 / len(wanted))) < TOLERANCE
            for port, share in wanted.items()
        )

    others = [leaf for leaf in plan.leaves if leaf.name != LEAF]
    if wait_until(fabric.views(others), accepts, READY, quiet=SETTLED) is None:
        raise SystemExit("the routes do not become what they should")


def rows(draws: int = DRAWS, scenario: str = SCENARIO) -> list[dict[str, Any]]:
    """For each workload: how many times sooner than FRR, and what part of the bound."""
    from fared.lab import sandbox

    if sandbox.problem() is not None or not Path("/usr/lib/frr/zebra").exists():
        return []
    RESULTS.unlink(missing_ok=True)

    def play() -> int:
        results = {routing: measure(routing, draws, scenario) for routing in ROUTINGS}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(results), "utf-8")
        return 0

    if sandbox.run(play):
        return []
    results: Results = json.loads(RESULTS.read_text("utf-8"))
    return [
        row
        for workload in results[CAPACITY]
        for row in _rows(results, workload, judged=(workload, scenario) == (PAIR, SCENARIO))
    ]


def _rows(results: Results, workload: str, *, judged: bool) -> Iterator[dict[str, Any]]:
    medians = {
        routing: statistics.median(found[workload]["seconds"]) for routing, found in results.items()
    }
    bound = results[CAPACITY][workload]["bound"]
    ours = medians[CAPACITY]
    for other in (FRR, OFF):
        ratio = medians[other] / ours
        goal = f">= {GOAL_SOONER}" if judged and other == FRR else None
        yield {
            "name": f"{workload}: beside {other}, times sooner",
            "ours": ours,
            "other": medians[other],
            "unit": "s",
            "ratio": ratio,
            "goal": goal,
            "met": ratio >= GOAL_SOONER if goal else None,
        }
    yield {
        "name": f"{workload}: part of the bound of {bound:.3g} s (other: FRR)",
        "ours": bound / ours,
        "other": bound / medians[FRR],
        "unit": "",
        "ratio": None,
        "goal": f">= {GOAL_BOUND}" if judged else None,
        "met": bound / ours >= GOAL_BOUND if judged else None,
    }


if __name__ == "__main__":
    from bench.run import table

    print(
        "\n".join(
            table(
                rows(
                    int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS,
                    sys.argv[2] if len(sys.argv) > 2 else SCENARIO,
                )
            )
        )
    )
