"""Writes ``docs/fast-paths.md`` from the ledger (``bench/fast_paths``) and its last measurement.

``make fast-paths`` writes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.fast_paths.fast_paths import LEAST, LEDGER, RECORDED, FastPath

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fast-paths.md"
HEAD = """\
# Fast paths

A fast path is code that gives the result of a plain rule which is in use beside it: two functions
for one rule of a protocol. Each is in this table, with a test that proves both equal, and work on
which the plain rule takes at least {least:g} times the CPU time; one that gains less is removed. A
function that is called for what changed only is no fast path, nor is a cache, or an index: there is
one function.

To add one, write its test and its row in `bench/fast_paths`, and name both in the docstring of
its module. `python -m bench fast_paths NAME` measures it. `make fast-paths` generates this page.

Gains are those of {at}, `python -m bench fast_paths --record`: CPU time of the same work without
the fast path, divided by that with it; the median of pairs of runs. Names are below `fared/` and
`tests/`.

| fast path | code | plain rule | of | test | work | gain |
|---|---|---|---|---|---|---|
"""


def recorded() -> Any:
    """The last measurement: ``at``, a date, and ``gains`` by name."""
    return json.loads(RECORDED.read_text("utf-8"))


def page() -> str:
    """The whole page."""
    found = recorded()
    rows = [_row(path, found["gains"][path.name]) for path in LEDGER]
    return HEAD.format(least=LEAST, at=found["at"]) + "".join(rows)


def _row(path: FastPath, gain: float) -> str:
    file, _, test = path.test.removeprefix("tests/").partition("::")
    done = (path.work.__doc__ or "").strip().splitlines()[0].rstrip(".")
    cells = (
        path.name,
        f"`{path.fast}`",
        f"`{path.plain}`",
        path.rule,
        f"{file}: `{test}`",
        done,
        f"{gain:.2f}x",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
