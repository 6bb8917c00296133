"""Collectives over topologies of as many hosts: the exact optimum, and what TCP takes in the lab.

The optimum of a step is a linear program: each destination's traffic, divided over shortest paths
in any proportion, with no link longer in use than necessary. It is exact for the paths that an
IGP uses; ``workloads.bounds``, which needs no solver, is at most that. One unit of time is the
message divided by the rate of a link; hosts' own links are no limit, as in the lab.

``python -m bench topologies`` prints the Markdown tables of ``docs/topologies.md``: the optimum for
16 hosts, and for 8 hosts the measured median beside it. ``--optima`` needs no namespaces.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import yaml
from scipy.optimize import linprog
from scipy.sparse import coo_array

from bench.lab.sandboxed import measured_rows, required
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.generate.clos3 import Clos3
from fared.extensions.lab.generate.clustered import Clustered
from fared.extensions.lab.generate.dragonfly import Dragonfly
from fared.extensions.lab.generate.fat_tree import FatTree
from fared.extensions.lab.generate.full_mesh import FullMesh
from fared.extensions.lab.generate.hypercube import Hypercube
from fared.extensions.lab.generate.model import Generator
from fared.extensions.lab.generate.permutation import Permutation
from fared.extensions.lab.generate.random import RandomRegular
from fared.extensions.lab.generate.star import Star
from fared.extensions.lab.generate.torus import Torus
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.ranks import Pair, rank_of
from fared.extensions.lab.topology import from_document
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

MBITS = 20
SIZE, ITERATIONS = 2_000_000, 3
READY = 120.0
COLLECTIVES = ("all-reduce-ring", "all-reduce-tree", "all-reduce-ps", "all-to-all", "broadcast")
MEASURED = ("all-reduce-ring", "all-to-all")
RATE = f"{MBITS}M"
SIXTEEN: Sequence[Generator] = (
    Clos3(4, 16, rate=RATE),
    FatTree(4, rate=RATE),
    Dragonfly(4, 4, rate=RATE),
    Torus("4x4", rate=RATE),
    Hypercube(4, rate=RATE),
    Permutation(16, 2, rate=RATE),
    RandomRegular(16, 4, rate=RATE),
    Clustered(4, 4, rate=RATE),
    Star(16, rate=RATE),
    FullMesh(16, rate=RATE),
)
EIGHT: Sequence[Generator] = (
    Clos3(2, 8, rate=RATE),
    Dragonfly(4, 2, 2, rate=RATE),
    Torus("2x4", rate=RATE),
    Hypercube(3, rate=RATE),
    Permutation(8, 2, rate=RATE),
    RandomRegular(8, 3, rate=RATE),
    Clustered(4, 2, rate=RATE),
    Star(8, rate=RATE),
    FullMesh(8, rate=RATE),
)
Measured = dict[str, dict[str, list[float]]]
"""By topology and collective: median of the measured time and the optimum, seconds."""


def planned(generator: Generator) -> AddressPlan:
    """Return the plan of the file."""
    return make_plan(from_document(yaml.safe_load(text(generator)), Path(generator.file)))


def job(plan: AddressPlan, collective: str) -> Job:
    """Return a collective over all hosts, in the order of the file."""
    hosts = tuple(host.name for host in plan.hosts)
    return Job(collective, hosts, SIZE, iterations=ITERATIONS)


# -- the optimum -----------------------------------------------------------------------------------


def optimum(plan: AddressPlan, one: Job) -> float:
    """Return the least seconds of an iteration, if traffic takes shortest paths only."""
    known: dict[tuple[tuple[Pair, float], ...], float] = {}

    def seconds(transfers: Mapping[tuple[int, int], int]) -> float:
        demands: dict[Pair, float] = {}
        for (source, target), size in one.crossing(plan, transfers).items():
            ends = rank_of(plan, source).leaf, rank_of(plan, target).leaf
            demands[ends] = demands.get(ends, 0.0) + size
        key = tuple(sorted(demands.items()))
        if key not in known:
            known[key] = step_seconds(plan, demands) if demands else 0.0
        return known[key]

    return one.graph.longest(tuple(seconds(task.transfers()) for task in one.graph.tasks), None)


def step_seconds(plan: AddressPlan, demands: Mapping[Pair, float]) -> float:
    """Return the least time in which the links carry all demands, bytes from router to router.

    Variables are the bytes of each destination on each link that leads toward it, and the time.
    """
    links = sorted({(p.node, p.peer) for router in plan.routers for p in router.fabric_ports})
    number = {link: at for at, link in enumerate(links)}
    rates = np.zeros(len(links))
    for router in plan.routers:
        for port in router.fabric_ports:
            rates[number[port.node, port.peer]] += port.rate or 0.0
    balance, loads = _Rows(), _Rows()
    bytes_in: list[float] = []
    variables = 1  # the first one is the time
    for target in sorted({target for _, target in demands}):
        far = plan.distances(target)
        rows = {name: len(bytes_in) + at for at, name in enumerate(sorted(far.keys() - {target}))}
        bytes_in += [demands.get((name, target), 0.0) for name in sorted(rows)]
        for tail, head in links:
            if far[tail] == far[head] + 1:
                balance.add(rows[tail], variables, 1.0)
                if head != target:
                    balance.add(rows[head], variables, -1.0)
                loads.add(number[tail, head], variables, 1.0)
                variables += 1
    for at, rate in enumerate(rates):
        loads.add(at, 0, -float(rate))
    goal = np.zeros(variables)
    goal[0] = 1.0
    found = linprog(
        goal,
        A_ub=loads.array(len(links), variables),
        b_ub=np.zeros(len(links)),
        A_eq=balance.array(len(bytes_in), variables),
        b_eq=bytes_in,
        method="highs",
    )
    if found.x is None:
        raise RuntimeError(found.message)
    return float(found.x[0])


class _Rows:
    """A sparse matrix, entry by entry."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, float]] = []

    def add(self, row: int, column: int, value: float) -> None:
        self._entries.append((row, column, value))

    def array(self, rows: int, columns: int) -> Any:  # noqa: ANN401 - scipy's
        at, to, values = zip(*self._entries, strict=True)
        return coo_array((values, (at, to)), shape=(rows, columns)).tocsr()


# -- in the lab ------------------------------------------------------------------------------------


def measured() -> Measured:
    """Run the collectives over 8 hosts, on one fabric after the other."""
    return {generator.command(): dict(_collectives(generator)) for generator in EIGHT}


def _collectives(generator: Generator) -> Iterator[tuple[str, list[float]]]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, generator.file)
        file.write_text(text(generator))
        with Fabric.from_file(file) as fabric:
            if await_paths(fabric, READY) is None:
                raise RuntimeError(f"{generator.lab}: routes are missing")
            for collective in MEASURED:
                one = job(fabric.plan, collective)
                median = run(fabric, [one]).jobs[0].median
                least = optimum(fabric.plan, one)
                told = f"{median:.2f} s, optimum {least:.2f} s"
                print(f"{generator.command()}, {collective}: {told}", flush=True)
                yield collective, [median, least]


def rows() -> list[dict[str, Any]]:
    """The rows of ``make bench``: the optimum as part of what was measured, without a goal."""
    return measured_rows(
        "topologies",
        lambda: [
            {
                "name": f"{name}, 8 hosts, {collective}: optimum / measured",
                "ours": median,
                "other": least,
                "unit": "s",
                "ratio": least / median,
            }
            for name, found in measured().items()
            for collective, (median, least) in found.items()
        ],
    )


# -- the table -------------------------------------------------------------------------------------


def optima() -> Iterator[str]:
    """Yield the lines of the table of optima, in messages over rate, for 16 hosts."""
    yield from _heads("16 hosts", "links", "diameter", *(f"`{name}`" for name in COLLECTIVES))
    unit = SIZE / (MBITS * 1e6 / 8)
    for generator in SIXTEEN:
        plan = planned(generator)
        graph = nx.Graph((p.node, p.peer) for r in plan.routers for p in r.fabric_ports)
        size = str(graph.number_of_edges()), str(nx.diameter(graph))
        times = (f"{optimum(plan, job(plan, name)) / unit:.3g}" for name in COLLECTIVES)
        yield _line(f"`{generator.command()}`", *size, *times)


def measurements(found: Measured) -> Iterator[str]:
    """Yield the lines of the table of measured times, for 8 hosts."""
    yield from _heads("8 hosts", *(f"`{name}`, optimum, part" for name in MEASURED))
    for name, times in found.items():
        cells = (f"{m:.2f} s, {least:.2f} s, {least / m:.0%}" for m, least in times.values())
        yield _line(f"`{name}`", *cells)


def _heads(first: str, *others: str) -> Iterator[str]:
    yield _line(first, *others)
    yield "|---|" + "---:|" * len(others)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Collectives over topologies.")
    parser.add_argument("--optima", action="store_true", help="Measure nothing.")
    lines = [*optima()]
    if not parser.parse_args().optima:
        lines += ["", *measurements(required("topologies", measured))]
    print("\n".join(lines))
    return 0
