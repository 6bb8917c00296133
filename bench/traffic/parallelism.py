"""Every parallelism of a training step by what weighs its paths, beside the max-flow bound.

Four spines, eight leaves and a host at each (``containerlab/ina.clab.yml``), one of four downlinks
to leaf L2 at a fifth. Data, tensor, pipeline and expert parallelism over all hosts, and a hybrid
step of the model that comes with fared, cross it by plain ECMP, by capacity, by available
bandwidth, and by packets; what is an all-reduce is also summed by routers (in-network aggregation),
whose bound is the least cut. Hosts are set as docs/hosts.md advises, and links have 10 Mbit/s: one
process drives all hosts, and packets should wait for links and not for it.

``python -m bench parallelism`` prints the rows, and the table of docs/workloads.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from bench import ROOT
from bench.lab.fabrics import configure
from bench.lab.sandboxed import measured_rows
from bench.report import show
from bench.traffic.collectives_runs import LIMITED_BUFFERS
from bench.traffic.dataplane_runs import AVAILABLE, CAPACITY, LEAF, OFF, SETTLED, SPINE
from bench.traffic.elephants_runs import HOSTS, PACKET
from bench.traffic.elephants_udp import prefix
from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_workload import run_ina
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.sprayed import sprayed
from fared.extensions.lab.waiting import await_paths, wait_until
from fared.extensions.lab.workloads import model, patterns
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run
from fared.extensions.lab.workloads.step import TENSOR, TrainingStep

TOPOLOGY = ROOT / "containerlab" / "ina.clab.yml"
MODEL = ROOT / "containerlab" / "gpt-3b.model.yml"
READY = 120.0
ITERATIONS, ELEPHANTS = 2, 8
DATA_SIZE, TENSOR_SIZE, TENSOR_REDUCES = 3_200_000, 400_000, 8
STAGE_SIZE, MICRO_BATCHES = 400_000, 4
TOKENS, SKEW, EXPERTS = 1_600_000, 1.5, 4
RATE, SLOW = 10e6, 0.2
SCALE = 0.0004
PATHS, UNEVEN = 4, 0.15
"""Paths of a leaf, and a part below which the slow one's is."""
DATA, HYBRID = "data", "hybrid step"
AGGREGATED = "aggregation"
ROUTINGS: Mapping[str, dict[str, Any]] = {
    OFF: {"enabled": False},
    CAPACITY: {"metric": "capacity"},
    AVAILABLE: {"metric": "available"},
    PACKET: {"metric": "capacity", "granularity": "packet"},
}
HEADINGS = {OFF: "ECMP", CAPACITY: "capacity", AVAILABLE: "available", PACKET: "packets"}


def jobs(hosts: tuple[str, ...]) -> dict[str, Job]:
    """Return a job for each parallelism, over these hosts."""
    ranks = len(hosts)
    plain = Job("all-reduce-ring", hosts, DATA_SIZE, ELEPHANTS, ITERATIONS)
    layers = TENSOR_REDUCES // 4
    moved = 2 * (ranks - 1) * TENSOR_SIZE * TENSOR_REDUCES
    tensor = TrainingStep(tensor=ranks, layers=layers, traffic={TENSOR: moved})
    fields = {"layers": 2, "experts": EXPERTS, "skew": SKEW, "scale": SCALE}
    hybrid = model.changed(model.load(MODEL), {}, fields)
    graphs = {
        TENSOR: tensor.graph(),
        "pipeline": patterns.pipeline(ranks, STAGE_SIZE, MICRO_BATCHES, "1f1b", 0.0),
        "expert": patterns.experts(ranks, TOKENS, SKEW, 0.0),
        HYBRID: hybrid.step().graph(),
    }
    given = {name: replace(plain, collective=name, tasks=graph) for name, graph in graphs.items()}
    return {DATA: plain, **given}


def rows() -> list[dict[str, Any]]:
    """Measure in a sandbox; return the rows. Without namespaces there are none."""
    return [_row(found) for found in measured_rows("parallelism", measure)]


def measure() -> list[dict[str, Any]]:
    """Return, for each parallelism, its bound and the seconds by each routing."""
    document = yaml.safe_load(TOPOLOGY.read_text("utf-8"))
    document["topology"]["groups"]["host"] |= HOSTS["advised"]
    document["topology"]["groups"]["router"]["labels"]["fared-lab.rate"] = f"{RATE:.0f}"
    with Fabric.from_topology(topology.from_document(document, TOPOLOGY)) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError("not all routes in time")
        for host in fabric.plan.hosts:
            fabric.node(host.name).netns.sysctl("ipv4.tcp_wmem", LIMITED_BUFFERS)
        fabric.shape(SPINE, LEAF, SLOW * RATE / 8)
        wanted = jobs(tuple(host.name for host in fabric.plan.hosts))
        found = {name: dict[str, Any](name=name, seconds={}) for name in wanted}
        for routing in ROUTINGS:
            _settle(fabric, routing)
            for name, job in wanted.items():
                report = run(fabric, [job]).jobs[0]
                found[name]["bound"] = report.bound
                found[name]["seconds"][routing] = report.median
                print(f"{name}, {routing}: {report.median:.2f} s", file=sys.stderr, flush=True)
        for name, size, times in (
            (DATA, DATA_SIZE, 1),
            (TENSOR, TENSOR_SIZE, TENSOR_REDUCES),
        ):
            report = run_ina(fabric, wanted[name].hosts, size, ITERATIONS * times).jobs[0]
            found[name]["seconds"][AGGREGATED] = times * report.median
            found[name]["least cut"] = times * (report.bound or 0.0)
    return list(found.values())


def _settle(fabric: Fabric, routing: str) -> None:
    """Wait until all other leaves use all paths to the slow leaf, equally or not.

    Shares are not compared with capacities: by available bandwidth they follow the load before.
    """
    configure(fabric, dict(ROUTINGS[routing]))
    target = prefix(fabric)

    def accepts(name: str, view: KernelView) -> bool:
        if routing == PACKET:
            held = sprayed(fabric.node(name).netns, target)
        else:
            held = list(shares(view.hops(target)).values())
        even = len(held) == PATHS and min(held) == max(held)
        return even if routing == OFF else len(held) == PATHS and min(held) < UNEVEN

    others = [leaf for leaf in fabric.plan.leaves if leaf.name != LEAF]
    if wait_until(fabric.views(others), accepts, READY, quiet=SETTLED) is None:
        raise SystemExit(f"{routing}: not every leaf has the expected paths")


# -- reporting ---------------------------------------------------------------------------------


def _row(found: dict[str, Any]) -> dict[str, Any]:
    seconds = found["seconds"]
    return {
        "name": f"{found['name']}: packets / ECMP",
        "ours": seconds[PACKET],
        "other": seconds[OFF],
        "unit": "s",
        "ratio": seconds[OFF] / seconds[PACKET],
        "found": found,
    }


def markdown(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table: seconds, and in brackets the part of the bound."""
    names = (*HEADINGS.values(), AGGREGATED)
    yield f"| parallelism | bound | {' | '.join(names)} |"
    yield "|---" + "|---:" * (len(names) + 1) + "|"
    for one in found:
        cells = [f"{one['bound']:.2f} s"]
        for routing in (*HEADINGS, AGGREGATED):
            seconds = one["seconds"].get(routing)
            part = "" if seconds is None else f" ({one['bound'] / seconds:.0%})"
            cells.append("" if seconds is None else f"{seconds:.2f} s{part}")
        yield f"| {one['name']} | {' | '.join(cells)} |"


def main() -> None:
    """Print the rows and the table."""
    measured = rows()
    show(measured)
    print()
    print("\n".join(markdown([row["found"] for row in measured])))
