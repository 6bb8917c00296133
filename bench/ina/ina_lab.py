"""All-reduce over real packets: in-network aggregation beside a TCP ring and a parameter server.

4 spines, 8 leaves, a worker each, links of 50 Mbit/s, jumbo frames (``containerlab/ina.clab.yml``),
healthy and with the link S1-L2 at a quarter; bytes on the uplinks beside theory. Medians of a few
all-reduces of a usual bucket of gradients, and of a small array, of which the first and last
packets are a larger part. The machine must be quiet: eight workers, four summing processes and the
fabric share its cores; how much the CPU limits is seen at links of 25 and 10 Mbit/s.

``python -m bench ina_lab`` prints the rows; ``--sizes`` compares aggregation and ring, in turns,
from 64 KiB to 64 MiB at 50 Mbit/s and 1 Gbit/s, which the README sums up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from bench import ROOT
from bench.lab.sandboxed import measured_rows
from bench.report import show
from fared.extensions.lab import sandbox
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_workload import run_ina
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import WorkloadReport
from fared.extensions.lab.workloads.run import run

TOPOLOGY = ROOT / "containerlab" / "ina.clab.yml"
MBIT = 1e6 / 8
RATE = 50 * MBIT
SLOWER = (25, 10)
"""Mbit/s: rates at which CPU limits less."""
BUCKET, BUCKETS = 25 << 20, 5
"""Bytes: the usual bucket of gradients of PyTorch's DistributedDataParallel; and how many."""
SMALL, ITERATIONS = 4_000_000, 7
SERVER_SIZE = 1_000_000
ELEPHANTS = 16
OF_BOUND, GAIN, BYTES, RELAYED = 0.95, 1.65, 0.03, 1.15
FRAME = 8896
HEADERS = (14 + 28 + 40) / FRAME
READY = 120.0
SIZES = [1 << bits for bits in (16, 18, 20, 22, 24, 26)]
RATES = (RATE, 20 * RATE)


def rows() -> list[dict[str, Any]]:
    """Measure in a sandbox; return the rows. Without namespaces there are none."""
    return measured_rows("ina_lab", lambda: list(_rows()))


def _rows() -> Iterator[dict[str, Any]]:
    with Fabric.from_file(TOPOLOGY) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError("not all routes in time")
        yield from _state(fabric, "healthy", dict.fromkeys(("S1", "S2", "S3", "S4"), 1 / 4))
        _shape(fabric, "S1", "L2", RATE / 4)
        slow = {"S1": 1 / 13, "S2": 4 / 13, "S3": 4 / 13, "S4": 4 / 13}
        yield from _state(fabric, "S1-L2 at a quarter", slow)
        for rate in SLOWER:
            yield _slower(fabric, rate)
        yield _relayed(fabric, SLOWER[-1])


def _relayed(fabric: Fabric, rate: float) -> dict[str, Any]:
    """Two leaves that are weak at different spines."""
    for spine, leaf in (("S1", "L2"), ("S2", "L3")):
        _shape(fabric, spine, leaf, rate * MBIT / 4)
    stars = _aggregated(fabric, relays=False).jobs[0].median
    relays = _aggregated(fabric).jobs[0].median
    return {
        "name": f"S1-L2 and S2-L3 at a quarter of {rate} Mbit/s: with a relay, beside stars alone",
        "ours": relays,
        "other": stars,
        "unit": "s",
        "ratio": stars / relays,
        "goal": f">= {RELAYED:g} times",
        "met": stars / relays >= RELAYED,
    }


def _slower(fabric: Fabric, rate: float) -> dict[str, Any]:
    for router in fabric.plan.routers:
        for port in router.fabric_ports:
            fabric.shape(router.name, port.peer, rate * MBIT)
    return _part("4 MB", f"links of {rate} Mbit/s", _aggregated(fabric))


def _part(size: str, name: str, report: WorkloadReport) -> dict[str, Any]:
    reached = report.jobs[0].efficiency or 0.0
    return {
        "name": f"all-reduce of {size}, 8 workers, {name}: part of the bound",
        "ours": reached,
        "goal": f">= {OF_BOUND:g}",
        "met": reached >= OF_BOUND,
    }


def _state(fabric: Fabric, name: str, parts: dict[str, float]) -> Iterator[dict[str, Any]]:
    before = _sent(fabric)
    ours = _aggregated(fabric, BUCKET, BUCKETS)
    after = _sent(fabric)
    ring = _collective(fabric, "all-reduce-ring", BUCKET)
    server = _collective(fabric, "all-reduce-ps", SERVER_SIZE)
    job = ours.jobs[0]
    gain = ring.jobs[0].median / job.median
    yield _part("25 MiB", name, ours)
    yield {
        "name": f"the same beside a ring over TCP, {name}",
        "ours": job.median,
        "other": ring.jobs[0].median,
        "unit": "s",
        "ratio": gain,
        "goal": f">= {GAIN:g} times",
        "met": gain >= GAIN,
    }
    whole = server.jobs[0].median * BUCKET / SERVER_SIZE
    yield {
        "name": f"the same beside a parameter server at one host, {name}",
        "ours": job.median,
        "other": whole,
        "unit": "s",
        "ratio": whole / job.median,
    }
    wanted = {spine: BUCKET * BUCKETS * part * (1 + HEADERS) for spine, part in parts.items()}
    off = max(
        abs((after[link] - before[link]) / wanted[spine] - 1)
        for link in after
        for spine in link
        if spine in wanted
    )
    yield {
        "name": f"bytes on uplinks and downlinks, {name}: largest difference from theory",
        "ours": 100 * off,
        "unit": "%",
        "goal": f"<= {100 * BYTES:g} %",
        "met": off <= BYTES,
    }
    yield _part("4 MB", name, _aggregated(fabric))


def _aggregated(
    fabric: Fabric, size: int = SMALL, iterations: int = ITERATIONS, *, relays: bool = True
) -> WorkloadReport:
    hosts = [host.name for host in fabric.plan.hosts]
    return run_ina(fabric, hosts, size, iterations, timeout=120, relays=relays)


def _collective(fabric: Fabric, name: str, size: int) -> WorkloadReport:
    hosts = tuple(host.name for host in fabric.plan.hosts)
    return run(fabric, [Job(name, hosts, size, ELEPHANTS, 3)], timeout=120)


def _shape(fabric: Fabric, spine: str, leaf: str, rate: float) -> None:
    fabric.shape(spine, leaf, rate)
    fabric.shape(leaf, spine, rate)


def _sent(fabric: Fabric) -> dict[tuple[str, str], int]:
    return {
        (port.node, port.peer): fabric.view(router.name).counters()[port.name].sent_bytes
        for router in fabric.plan.routers
        for port in router.fabric_ports
    }


def _sizes() -> int:
    """Print seconds of aggregation and ring, by rate of the links and size of the array."""
    with Fabric.from_file(TOPOLOGY) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError("not all routes in time")
        for rate in RATES:
            for router in fabric.plan.routers:
                for port in router.fabric_ports:
                    fabric.shape(port.node, port.peer, rate)
            for size in SIZES:
                _compare_size(fabric, rate, size)
    return 0


def _compare_size(fabric: Fabric, rate: float, size: int) -> None:
    hosts = [host.name for host in fabric.plan.hosts]
    try:
        ours = run_ina(fabric, hosts, size, 3, timeout=240).jobs[0].median
        ring = _collective(fabric, "all-reduce-ring", size).jobs[0].median
    except LabError as error:
        print(f"{rate * 8 / 1e6:5.0f} Mbit/s {size >> 10:6} KiB: {error}", flush=True)
        return
    print(
        f"{rate * 8 / 1e6:5.0f} Mbit/s {size >> 10:6} KiB: aggregation {ours:.4f} s,"
        f" ring {ring:.4f} s, ring / aggregation {ring / ours:.2f}",
        flush=True,
    )


def _print_sizes() -> None:
    problem = sandbox.problem()
    if problem is not None:
        raise SystemExit(problem)
    raise SystemExit(sandbox.run(_sizes))


def main() -> None:
    """Print the rows, or the table of sizes."""
    if "--sizes" in sys.argv:
        _print_sizes()
    show(rows())
