"""Few elephants: completion times of 1 to 128 TCP connections, by what takes one path.

The fabric of ``dataplane`` (4 spines, 8 leaves, 100 Mbit/s, jumbo frames), healthy or with one of
the four downlinks to leaf L2 at a fifth. The same 256 MB, from the same source ports, cross it over
FRR (plain ECMP) and over fared with ``adaptive: granularity: flow``, ``flowlet`` and ``packet``,
beside the max-flow bound. Over ``packet`` also run UDP at a fixed rate just below the bound, and
UDP at half of it while the slow link becomes faster. ``collectives`` has a ring all-reduce and an
all-to-all.

All hosts are set as docs/hosts.md advises for hosts whose packets may be reordered, whatever the
routing: ``HOSTS``. ``python -m bench elephants --all`` runs what ``make bench`` leaves out;
``--hosts default`` leaves the hosts as the kernel sets them. Results are kept in
build/bench/elephants, and the table shows those of former calls too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import OUTPUT
from bench.lab.fabrics import clos, configure
from bench.report import show
from bench.traffic.dataplane import Rate, await_weights, state
from bench.traffic.dataplane_runs import CAPACITY, HEALTHY, LEAF, MTU, OFF, READY, SLOW
from bench.traffic.elephants_report import rows_of
from bench.traffic.elephants_runs import (
    CHANGE,
    FLOW,
    FRR,
    HOSTS,
    PACKET,
    ROUTINGS,
    SIZE,
    UDP,
    Found,
    Run,
    everything,
    short,
)
from bench.traffic.elephants_udp import changed, just_below, prefix, sprayed
from fared.extensions.lab import sandbox
from fared.extensions.lab.expected import expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths, wait_until
from fared.extensions.lab.workloads.bounds import bound
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

RESULTS = OUTPUT / "elephants"
_NEAR = 0.01


# -- measuring ---------------------------------------------------------------------------------


def measure(runs: Sequence[Run], hosts: str, draws: int) -> None:
    """Do all runs, in two fabrics; add the results to those in the file."""
    file = RESULTS / f"{hosts}.json"
    found: Found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for kind in ("frr", "fared"):
        here = [run for run in runs if (run.routing == FRR) == (kind == "frr")]
        if not here:
            continue
        topology = clos(mtu=MTU, hosts=HOSTS[hosts])
        with Fabric.from_topology(topology, as_kind=kind) as fabric:
            if await_paths(fabric, READY) is None:
                raise SystemExit(f"{kind}: not every router has all paths")
            for scenario in dict.fromkeys(run.scenario for run in here):
                with state(fabric, scenario) as rates:
                    for routing in dict.fromkeys(run.routing for run in here):
                        if routing != FRR:
                            configure(fabric, {"metric": "capacity", "granularity": routing})
                        chosen = [r for r in here if (r.scenario, r.routing) == (scenario, routing)]
                        if chosen:
                            await_routing(fabric, routing, rates)
                        for run in chosen:
                            one = _measure(fabric, run, rates, draws)
                            found[run.key] = one
                            print(f"{run.key}: {one}", file=sys.stderr, flush=True)
                            file.write_text(json.dumps(found), "utf-8")


def _measure(fabric: Fabric, run: Run, rates: Rate, draws: int) -> dict[str, Any]:
    if run.workload == UDP:
        return just_below(fabric, rates)
    if run.workload == CHANGE:
        found = changed(fabric, rates)
        await_routing(fabric, PACKET, rates)
        return found
    return _times(fabric, int(run.workload), rates, draws)


def _times(fabric: Fabric, connections: int, rates: Rate, draws: int) -> dict[str, Any]:
    hosts = tuple(node.name for node in fabric.plan.hosts[:2])
    job = Job("broadcast", hosts, SIZE, elephants=connections, iterations=1)
    reports = [run(fabric, [job], seed=seed).jobs[0] for seed in range(draws)]
    return {
        "bound": bound(job, fabric.plan, rates),
        "seconds": [report.median for report in reports],
        "order": [asdict(report.order) for report in reports],
    }


def await_routing(fabric: Fabric, routing: str, rates: Rate, *, ipv6: bool = False) -> None:
    """Wait until the kernels have the weights, and nftables the same shares if it sprays."""
    await_weights(fabric, OFF if routing == FRR else CAPACITY, rates)
    if routing == FRR:
        return
    leaves = [leaf for leaf in fabric.plan.leaves if leaf.name != LEAF]

    def accepts(name: str, _: object) -> bool:
        parts = sprayed(fabric.node(name).netns, prefix(fabric, ipv6=ipv6))
        if routing == FLOW:
            return not parts
        wanted = expected_shares(path_capacities(fabric.plan, rates, name, LEAF))
        return len(parts) == len(wanted) and all(
            abs(a - b) < _NEAR for a, b in zip(parts, sorted(wanted.values()), strict=True)
        )

    if wait_until(fabric.views(leaves), accepts, READY, quiet=1.0) is None:
        raise SystemExit(f"{routing}: nftables does not have the expected shares")


# -- reporting ---------------------------------------------------------------------------------


def rows(
    runs: Sequence[Run] | None = None, hosts: str = "advised", draws: int = 1
) -> list[dict[str, Any]]:
    """Run the selection of ``make bench``, or other runs."""
    if sandbox.problem() is not None or not Path("/usr/lib/frr/zebra").exists():
        return []
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / f"{hosts}.json"
    if runs is None:
        file.unlink(missing_ok=True)

    def play() -> int:
        measure(short() if runs is None else runs, hosts, draws)
        return 0

    if sandbox.run(play):
        return []
    return list(rows_of(json.loads(file.read_text("utf-8"))))


def main() -> None:
    """Run the selected workloads and print the table."""
    parser = argparse.ArgumentParser(description="Few elephants: completion times by granularity.")
    parser.add_argument("--all", action="store_true", help="all connections over every routing")
    parser.add_argument("--draws", type=int, default=1, help="draws of ports")
    parser.add_argument(
        "--hosts", choices=tuple(HOSTS), default="advised", help="how hosts are set"
    )
    parser.add_argument("--scenario", action="append", choices=(HEALTHY, SLOW))
    parser.add_argument("--routing", action="append", choices=ROUTINGS)
    parser.add_argument("--workload", action="append")
    given = parser.parse_args()
    runs = [
        run
        for run in (everything() if given.all else short())
        if (not given.scenario or run.scenario in given.scenario)
        and (not given.routing or run.routing in given.routing)
        and (not given.workload or str(run.workload) in given.workload)
    ]
    begun = time.monotonic()
    show(rows(runs, given.hosts, given.draws))
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
