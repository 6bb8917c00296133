"""Ring all-reduce and all-to-all of eight hosts, by what takes one path and by length of queues.

The fabric of ``elephants``, damaged: one of four downlinks to leaf L2 at a fifth. The collectives
of ``dataplane`` cross it over FRR (plain ECMP) and over fared with ``adaptive: granularity: flow``,
``flowlet`` and ``packet``, beside the max-flow bound; by packets also over IPv6, where IS-IS routes
it. All links have a quarter of their rate, since one process drives all hosts, and it could not
fill all links. Their queues are those of the lab's jumbo frames, 300 ms, or 80 ms long. A step of a
collective ends with its last segment; if bursts overflow queues that are long beside a step, it
waits for retransmissions through these queues. So the send buffers of hosts are limited, as
docs/hosts.md advises; one variant shows what happens otherwise.

Besides, links at their rate: UDP at half the bound while a link fails, by packets and by flows; the
packets lost are counted. Hosts are set as docs/hosts.md advises. ``python -m bench collectives
--all`` adds collectives with one connection for a pair of hosts, and FRR with short queues.
Results are kept in build/bench/collectives.json, and the table shows those of former calls too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench import OUTPUT
from bench.lab.fabrics import TOPOLOGY, TOPOLOGY_ISIS, clos, configure
from bench.report import show
from bench.traffic.collectives_report import rows_of
from bench.traffic.collectives_runs import (
    ALL_ONE,
    COLLECTIVES,
    FAILURES,
    IPV4,
    IPV6,
    LIMITED_BUFFERS,
    MANY,
    QUEUES,
    RING_ONE,
    SLOWER,
    UNLIMITED,
    USUAL_BUFFERS,
    Run,
    everything,
    short,
)
from bench.traffic.dataplane import Rate, jobs, state
from bench.traffic.dataplane_runs import ALL, MTU, READY, RING, SLOW
from bench.traffic.elephants import await_routing
from bench.traffic.elephants_runs import FRR, HOSTS, PACKET, ROUTINGS, Found
from bench.traffic.elephants_udp import failed
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.bounds import bound, kernel_rates
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run as play

RESULTS = OUTPUT / "collectives.json"


# -- measuring ---------------------------------------------------------------------------------


def measure(runs: Sequence[Run], hosts: str) -> None:
    """Do all runs, in three fabrics; add the results to those in the file."""
    found: Found = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for kind in dict.fromkeys(run.kind for run in runs):
        here = [run for run in runs if run.kind == kind]
        file = TOPOLOGY_ISIS if kind == IPV6 else TOPOLOGY
        topology = clos(mtu=MTU, hosts=HOSTS[hosts], file=file)
        with Fabric.from_topology(topology, as_kind="frr" if kind == FRR else "fared") as fabric:
            if await_paths(fabric, READY) is None:
                raise SystemExit(f"{kind}: not every router has all paths")
            with state(fabric, SLOW) as rates:
                for run, one in _results(fabric, here, rates):
                    found[run.key] = one
                    print(f"{run.key}: {one}", file=sys.stderr, flush=True)
                    RESULTS.write_text(json.dumps(found), "utf-8")


def _results(
    fabric: Fabric, runs: Sequence[Run], rates: Rate
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Yield the result of each run: failures, then collectives over slower links."""
    for routing in _routings(runs, FAILURES):
        _settle(fabric, routing, rates, runs[0].family)
        for run in (r for r in runs if r.routing == routing and r.workload in FAILURES):
            flows = 1 if routing == PACKET else MANY
            yield run, failed(fabric, rates, FAILURES[run.workload], flows)
            _settle(fabric, routing, rates, run.family)
    with slower(fabric) as (slow_rates, lengthen):
        for routing in _routings(runs, COLLECTIVES):
            _settle(fabric, routing, slow_rates, runs[0].family)
            chosen = [r for r in runs if r.routing == routing and r.workload in COLLECTIVES]
            for queue in dict.fromkeys(run.queue for run in chosen):
                lengthen(QUEUES[queue])
                _limit(fabric, USUAL_BUFFERS if queue == UNLIMITED else LIMITED_BUFFERS)
                for run in (r for r in chosen if r.queue == queue):
                    yield run, _time(fabric, run, slow_rates)


def _routings(runs: Sequence[Run], workloads: Collection[str]) -> list[str]:
    return list(dict.fromkeys(run.routing for run in runs if run.workload in workloads))


def _settle(fabric: Fabric, routing: str, rates: Rate, family: str) -> None:
    if routing != FRR:
        configure(fabric, {"metric": "capacity", "granularity": routing})
    await_routing(fabric, routing, rates, ipv6=family == IPV6)


def _limit(fabric: Fabric, buffers: str) -> None:
    for host in fabric.plan.hosts:
        fabric.node(host.name).netns.sysctl("ipv4.tcp_wmem", buffers)


@contextmanager
def slower(fabric: Fabric) -> Iterator[tuple[Rate, Callable[[float | None], None]]]:
    """Reduce the rate of all links between routers; yield the rates, and what sets the queues."""
    ports = [port for router in fabric.plan.routers for port in router.fabric_ports]
    former = {(port.node, port.peer): fabric.rate(port) for port in ports}

    def shape(part: float, queue: float | None) -> None:
        for (near, far), rate in former.items():
            fabric.shape(near, far, None if rate is None else part * rate, queue)

    try:
        shape(SLOWER, None)
        yield kernel_rates(fabric), lambda queue: shape(SLOWER, queue)
    finally:
        shape(1, None)


def _job(fabric: Fabric, workload: str) -> Job:
    every = jobs(tuple(node.name for node in fabric.plan.hosts))
    every[RING_ONE] = replace(every[RING], elephants=1)
    every[ALL_ONE] = replace(every[ALL], elephants=1)
    return every[workload]


def _time(fabric: Fabric, run: Run, rates: Rate) -> dict[str, Any]:
    job = _job(fabric, run.workload)
    report = play(fabric, [job], ipv6=run.family == IPV6).jobs[0]
    return {
        "bound": bound(job, fabric.plan, rates),
        "seconds": report.median,
        "steps": report.steps,
        "order": asdict(report.order),
    }


# -- reporting ---------------------------------------------------------------------------------


def rows(runs: Sequence[Run] | None = None, hosts: str = "advised") -> list[dict[str, Any]]:
    """Run the selection of ``make bench``, or other runs."""
    if sandbox.problem() is not None or not Path("/usr/lib/frr/zebra").exists():
        return []
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    if runs is None:
        RESULTS.unlink(missing_ok=True)

    def play() -> int:
        measure(short() if runs is None else runs, hosts)
        return 0

    if sandbox.run(play):
        return []
    return list(rows_of(json.loads(RESULTS.read_text("utf-8"))))


def main() -> None:
    """Run the selected workloads and print the table."""
    parser = argparse.ArgumentParser(description="Collectives by granularity and queue.")
    parser.add_argument("--all", action="store_true", help="all collectives and queues")
    parser.add_argument(
        "--hosts", choices=tuple(HOSTS), default="advised", help="how hosts are set"
    )
    parser.add_argument("--routing", action="append", choices=ROUTINGS)
    parser.add_argument("--workload", action="append", choices=(*COLLECTIVES, *FAILURES))
    parser.add_argument("--queue", action="append", choices=tuple(QUEUES))
    parser.add_argument("--family", action="append", choices=(IPV4, IPV6))
    given = parser.parse_args()
    runs = [
        run
        for run in (everything() if given.all else short())
        if (not given.routing or run.routing in given.routing)
        and (not given.workload or run.workload in given.workload)
        and (not given.queue or run.queue in given.queue)
        and (not given.family or run.family in given.family)
    ]
    begun = time.monotonic()
    show(rows(runs, given.hosts))
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
