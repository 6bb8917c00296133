"""Two versions of fared, row by row: which rows of the compute section take longer in this one.

Times on a shared machine differ by more than a row may change. So both trees run at once, a
process each, on one core and in turn: a short burst of runs of one tree, then of the other, up to
hundreds of times for each row. A sample is the least CPU time of a burst; a pair of samples gives
a ratio. What slows the machine slows both halves of a pair. Reported are the medians of the
samples, the median of the ratios (above 1: this tree is slower) with its 95 % confidence
interval, and the range of that median over several rounds, each with new processes and other
fillers in the heap: where arrays lie relative to one another alone changes a copy by a fifth. A row
is ``slower`` only if the interval and every round exceed the limit of 10 %.

``--instructions`` counts instructions under callgrind instead. The counts repeat to a fraction of
a percent on any machine, but say nothing about caches and page faults.

``python bench/compare.py OLD_TREE [--part REGEX]``, in a tree with its own ``.venv``; so must
OLD_TREE be, where ``make install`` has run. ``--section NAME`` runs another section of the
benchmarks in turn, whole.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import ROOT
from bench.compare_worker import DUMP, Samples
from bench.report import layout
from bench.run import ROWS_MARK

ROUNDS, SECONDS = 3, 0.4
"""Rounds, and CPU time that a measurement gets in each round and tree."""
BURST = 0.004
"""CPU time of a burst, if one run takes less."""
PAIRS = (5, 150)
"""Least and most pairs of a measurement in a round."""
COUNTED = 2
"""Runs whose instructions are counted, after one that is not."""
LIMIT = 1.10
RATES = ("/s", "routes/s", "groups/s", "Mbit/s", "Gbit/s")
PART = "part of the bound"
Pair = tuple[float, float]
Pairs = dict[str, list[Pair]]
"""The samples of each row: the old tree's and this one's."""


class Tree:
    """One tree and its worker process."""

    def __init__(self, path: Path, part: str, dumps: str) -> None:
        command = [python(path), str(ROOT / "bench" / "compare_worker.py"), str(path), part, dumps]
        if dumps:
            tool = ["--tool=callgrind", f"--callgrind-out-file={dumps}", f"--dump-before={DUMP}"]
            command = ["valgrind", "-q", *tool, *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=path,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )

    def order(self, what: object) -> None:
        """Send an order."""
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)

    def answer(self) -> Any:  # noqa: ANN401 - JSON
        """Wait for an answer. Raises RuntimeError if the worker has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with code {self.process.wait()}")
        return json.loads(line)

    def burst(self, times: int) -> Samples:
        """Run a burst."""
        self.order(times)
        found: Samples = self.answer()
        return found


def python(tree: Path) -> str:
    """Return the interpreter of a tree."""
    own = tree / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


@contextmanager
def workers(old: Path, part: str, *, counted: bool) -> Iterator[tuple[Tree, Tree]]:
    """Start the workers of both trees, on one core unless instructions are counted."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        trees = []
        for name, path in (("old", old), ("new", ROOT)):
            tree = Tree(path, part, f"{directory}/{name}" if counted else "")
            stack.callback(tree.process.wait)
            stack.callback(tree.process.kill)
            if not counted:
                os.sched_setaffinity(tree.process.pid, {max(os.sched_getaffinity(0))})
            trees.append(tree)
        yield trees[0], trees[1]


def one_round(old: Path, part: str, seconds: float, *, counted: bool) -> Pairs:
    """Take all measurements once, with new processes."""
    with workers(old, part, counted=counted) as trees:
        found: dict[tuple[int, str], list[Pair]] = {}
        while "names" not in (said := [tree.answer() for tree in trees])[0]:
            if said[0] != said[1]:
                raise RuntimeError(f"the trees take different measurements: {said}")
            pairs = count(trees) if counted else paired(trees, seconds)
            for step, values in pairs.items():
                found[said[0]["measure"], step] = values
            for tree in trees:
                tree.order("next")
        rows: Pairs = {}
        for number, step, name in said[1]["names"]:
            values = found.pop((number, step), None)  # the first row that it appears in
            if values is not None:
                rows[name] = values
        return rows


def paired(trees: tuple[Tree, Tree], seconds: float) -> Pairs:
    """Run bursts of both trees in turn."""
    for tree in trees:
        tree.burst(1)
    cost = max(1e-6, *(sum(map(sum, tree.burst(1).values())) for tree in trees))
    times = max(1, int(BURST / cost))
    pairs = min(max(int(seconds / (cost * times)), PAIRS[0]), PAIRS[1])
    found: Pairs = {}
    for turn in range(pairs):
        order = (0, 1) if turn % 2 else (1, 0)
        samples = {which: trees[which].burst(times) for which in order}
        for step in samples[0]:
            pair = min(samples[0][step]) * 1e3, min(samples[1][step]) * 1e3
            found.setdefault(step, []).append(pair)
    return found


def count(trees: tuple[Tree, Tree]) -> Pairs:
    """Count the instructions of a few runs; both trees at once."""
    samples = []
    for times in (1, COUNTED):
        for tree in trees:
            tree.order(times)
        samples = [tree.answer() for tree in trees]
    return {step: [(min(samples[0][step]), min(samples[1][step]))] for step in samples[0]}


# -- whole sections ------------------------------------------------------------------------------


def whole_sections(old: Path, section: str, rounds: int) -> Pairs:
    """Run a section of both trees in turn; rows are matched by name."""
    found: Pairs = {}
    for turn in range(rounds):
        order = (old, ROOT) if turn % 2 else (ROOT, old)
        both = {tree: section_rows(tree, section) for tree in order}
        for name, before in both[old].items():
            if name in both[ROOT]:
                found.setdefault(name, []).append((before, both[ROOT][name]))
    return found


def section_rows(tree: Path, section: str) -> dict[str, float]:
    """The figures of one run of a section."""
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory) / "rows.json"
        command = [python(tree), "bench/run.py", ROWS_MARK, section, str(answer)]
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        return figures(json.loads(answer.read_text())["rows"])


def figures(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of rows by name, the lower the better."""
    return {
        row["name"]: 1 / row["ours"] if more_is_better(row) else row["ours"]
        for row in rows
        if row.get("ours")
    }


def more_is_better(row: dict[str, Any]) -> bool:
    """Whether a greater figure of a row is better: as its ratio says, else its unit or name.

    A ratio above 1 means that fared is ahead of the other figure.
    """
    ours, other, ratio = row["ours"], row.get("other"), row.get("ratio")
    if other and ratio and ours != other:
        return bool((ratio > 1) == (ours > other))
    return row.get("unit") in RATES or PART in row["name"]


# -- results -------------------------------------------------------------------------------------


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median, by order statistics (sign test)."""
    ordered, size = sorted(values), len(values)
    reach = math.ceil(0.98 * math.sqrt(size) + 0.5)
    low, high = math.floor((size - 1) / 2 - reach), math.ceil((size - 1) / 2 + reach)
    return ordered[max(0, low)], ordered[min(size - 1, high)]


def summary(name: str, rounds: list[list[Pair]]) -> dict[str, Any]:
    """Summarize a row's pairs."""
    pairs = [pair for values in rounds for pair in values]
    ratios = [new / old for old, new in pairs]
    middles = [statistics.median(new / old for old, new in values) for values in rounds]
    low, high = interval(ratios) if len(ratios) > 1 else (ratios[0], ratios[0])
    slower = min(low, *middles, math.inf) > LIMIT
    return {
        "name": name,
        "old": statistics.median(old for old, _ in pairs),
        "new": statistics.median(new for _, new in pairs),
        "ratio": statistics.median(ratios),
        "interval": [low, high],
        "rounds": [min(middles), max(middles)],
        "pairs": len(pairs),
        "verdict": "slower" if slower else "",
    }


def table(rows: list[dict[str, Any]], unit: str) -> list[str]:
    """Lay out the rows as a markdown table."""
    headings = ["row", f"old, {unit}", f"new, {unit}", "new / old", "95 %", "rounds", "pairs", ""]
    lines = [
        [
            row["name"],
            f"{row['old']:.4g}",
            f"{row['new']:.4g}",
            f"{row['ratio']:.3f}",
            "{:.3f}..{:.3f}".format(*row["interval"]),
            "{:.3f}..{:.3f}".format(*row["rounds"]),
            str(row["pairs"]),
            row["verdict"],
        ]
        for row in rows
    ]
    return layout(headings, lines, (1, 2, 3, 6))


def main() -> int:
    """Compare the trees, and print a table."""
    parser = argparse.ArgumentParser(description="Compare the speed of two trees, row by row.")
    parser.add_argument("old", type=Path, help="a tree of another commit")
    parser.add_argument("--part", default="", help="fabrics: a regular expression")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a row, in each round")
    parser.add_argument("--instructions", action="store_true", help="count instructions")
    parser.add_argument("--section", help="run another section in turn, whole")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    given = parser.parse_args()
    old, began = given.old.resolve(), time.perf_counter()
    rounds: list[Pairs] = []
    if given.section:
        rounds = [whole_sections(old, given.section, given.rounds)]
    else:
        for _ in range(1 if given.instructions else given.rounds):
            rounds.append(one_round(old, given.part, given.seconds, counted=given.instructions))
    rows = [summary(name, [found[name] for found in rounds]) for name in rounds[0]]
    unit = "as reported" if given.section else "M instructions" if given.instructions else "ms"
    print("\n".join(table(rows, unit)))
    slower = sum(row["verdict"] != "" for row in rows)
    print(f"\n{len(rows)} rows, {slower} slower; {time.perf_counter() - began:.0f} s")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
