"""One tree under ``bench/compare.py``: its compute section, measured when the parent says so.

The tree's own ``bench/compute.py`` runs, but its timing functions are replaced: each measurement
waits for orders on standard input, and runs one burst for each. What a process does only once
("the first time") is repeated, in a fork for each run; the fork collects garbage first, so that
most pages are its own before the clock starts.

The clock is CPU time or, under callgrind, the count of instructions (``Instructions``).
"""

from __future__ import annotations

# ruff: noqa: E402 - threads are limited before NumPy is loaded
import os
import sys

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import gc
import importlib
import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DUMP = "getpgid"
"""The libc function before whose calls callgrind dumps its counters; nothing else here calls it."""
FILLERS, FILLER = 64, 300_000
"""Number and greatest size of the fillers in the heap."""
Clock = Callable[[], float]
Samples = dict[str, list[float]]


class Instructions:
    """A clock of instructions: callgrind dumps its counters at each reading."""

    def __init__(self, dumps: str) -> None:
        self._dumps, self._number, self._total, self._reading = dumps, 0, 0.0, 0.0
        self()
        self._reading = min(self._dump() for _ in range(9))

    def __call__(self) -> float:
        """Millions of instructions so far, without those of the readings."""
        self._total += self._dump() - self._reading
        return self._total

    def _dump(self) -> float:
        os.getpgid(0)
        self._number += 1
        name = f"{self._dumps}.{self._number}"
        with open(name, "rb") as file:  # noqa: PTH123 - its instructions count
            file.seek(-64, os.SEEK_END)
            said = file.read()
        os.unlink(name)  # noqa: PTH108
        return int(said[said.rindex(b":") + 1 :]) / 1e6


class Timed(float):
    """Stands for the result of a measurement, so that the rows of the section name it."""

    key: tuple[int, str]

    @classmethod
    def of(cls, number: int, step: str) -> Timed:
        """Return the result of a step of a measurement; its value means nothing."""
        made = cls(1.0)
        made.key = number, step
        return made


class Worker:
    """The section of one tree, and its exchange with the parent."""

    def __init__(self, tree: str, part: str, dumps: str) -> None:
        sys.path[:0] = [tree]
        self.compute: Any = importlib.import_module("bench.compute")
        self.part = part
        self.clock: Clock = Instructions(dumps) if dumps else time.process_time
        self.forks = not dumps
        self.count = 0
        self.names: list[tuple[int, str, str]] = []
        self.fillers: list[bytearray] = []
        """Memory of random sizes: the layout of the heap differs from measurement to measurement.
        Where arrays lie relative to one another makes a copy a fifth slower, or not."""

    def run(self) -> None:
        """Run the section; at the end, report the row that each measurement belongs to."""
        compute = self.compute
        shape_rows, reaction_rows = compute.shape_rows, compute.reaction_rows

        def of_shape(shape: Any) -> list[Any]:  # noqa: ANN401 - a type of the tree
            self.graph_once(shape)
            return list(shape_rows(shape))

        def of_reaction(name: str, blocks: Callable[[], Any], ends: Any) -> list[Any]:  # noqa: ANN401
            if not re.search(self.part, f"reaction {name}"):
                return []
            self.routes_once(name, blocks())
            return list(reaction_rows(name, blocks(), ends))

        # Fabrics that no measurement uses are not built.
        compute.fabric = partial(partial, compute.fabric)
        compute.pods = partial(partial, compute.pods)
        compute.SHAPES = tuple(
            replace(shape, make=lambda make=shape.make: make()())
            for shape in compute.SHAPES
            if re.search(self.part, shape.name)
        )
        compute.best, compute.in_turn = self.best, self.in_turn
        compute.networkx_ms = lambda *_: 1.0
        compute.compute_lsas = SimpleNamespace(rows=list)  # measures by itself
        compute.shape_rows, compute.reaction_rows = of_shape, of_reaction
        for row in compute.rows():
            for value, suffix in ((row.ours_ms, ""), (row.other_ms, ": the other")):
                if isinstance(value, Timed):
                    self.names.append((*value.key, row.name + suffix))
        answer({"names": self.names})

    def best(self, run: Callable[[int], object], repeat: int = 15) -> Timed | float:
        """Stand in for the section's ``best``; what can run only once is ``routes_once``."""
        clock, number = self.clock, 0
        if repeat == 1:
            run(0)
            return 0.0

        def burst(times: int) -> Samples:
            nonlocal number
            found = []
            for _ in range(times):
                start = clock()
                run(number)
                found.append(clock() - start)
                number = (number + 1) % repeat
            return {"": found}

        return Timed.of(self.measure(burst), "")

    def in_turn(self, runs: dict[str, Callable[[], object]], _: int) -> dict[str, Timed]:
        """Stand in for the section's ``in_turn``."""
        clock = self.clock

        def burst(times: int) -> Samples:
            found: Samples = {what: [] for what in runs}
            for _ in range(times):
                for what, run in runs.items():
                    start = clock()
                    run()
                    found[what].append(clock() - start)
            return found

        number = self.measure(burst)
        return {what: Timed.of(number, what) for what in runs}

    def graph_once(self, shape: Any) -> None:  # noqa: ANN401 - a type of the tree
        """Measure blocks into an empty database, and its first graph."""
        blocks, clock = shape.make(), self.clock

        def once() -> tuple[float, float]:
            start = clock()
            ted = self.compute.database(blocks)
            taken = clock()
            ted.graph()
            return taken - start, clock() - taken

        self.once(once, f"{shape.name} blocks taken in", f"{shape.name} blocks to graph, first")

    def routes_once(self, name: str, blocks: Any) -> None:  # noqa: ANN401 - a type of the tree
        """Measure blocks into an empty solver, and its first routes."""
        compute, clock = self.compute, self.clock
        root = compute.leaf(0)
        links = compute.local_links(blocks[root])

        def once() -> tuple[float, float]:
            start = clock()
            solver = compute.RouteSolver(root, compute.SolverSettings(max_paths=128))
            for node, block in blocks.items():
                solver.put_block(compute.AREA, node, block)
            solver.set_local_links(compute.AREA, links)
            put = clock()
            solver.solve()
            return put - start, clock() - put

        self.once(once, f"reaction {name}: blocks taken in", f"reaction {name}: first routes")

    def once(self, once: Callable[[], tuple[float, float]], *names: str) -> None:
        """Measure two steps that a process takes once, and their sum."""

        def burst(times: int) -> Samples:
            rounds = [forked(once) if self.forks else once() for _ in range(times)]
            first, second = zip(*rounds, strict=True)
            return {"1": first, "2": second, "sum": [sum(both) for both in rounds]}

        number = self.measure(burst, collect=True)
        steps = zip(("1", "2", "sum"), (*names, f"{names[1]}, blocks taken in too"), strict=True)
        self.names += [(number, step, name) for step, name in steps]

    def measure(self, burst: Callable[[int], Samples], *, collect: bool = False) -> int:
        """Run bursts as ordered, until ordered to go on; ``collect``: with the collector on."""
        gc.collect()
        if not collect:
            gc.disable()
        fillers = [bytearray(random.randrange(64, FILLER)) for _ in range(FILLERS)]
        self.fillers = fillers[::2]  # the others leave gaps
        del fillers
        answer({"measure": self.count})
        for order in iter(sys.stdin.readline, "next\n"):
            if not order:
                sys.exit(1)  # the parent is gone
            answer(burst(int(order)))
        gc.enable()
        self.count += 1
        return self.count - 1


def forked(once: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    """Run ``once`` in a fork of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        gc.collect()
        os.write(writer, json.dumps(once()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    first, second = json.loads(said)
    return first, second


def answer(what: object) -> None:
    """Send one line to the parent."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    Worker(str(Path(sys.argv[1]).resolve()), *sys.argv[2:4]).run()
