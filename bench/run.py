"""All benchmarks as one page of ratios: ``make bench`` writes build/bench/report.md.

Every row stands beside a peer or the older method *in the same run*: absolute times on shared
machines are noise, ratios are not. A row is met or missed against its goal; the last line of
the report counts both.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "bench" / "report.md"
SECTIONS = (
    ("compute", "Compute: SPF, weights and groups of one leaf, beside networkx Dijkstra alone"),
    ("fib", "FIB: what the kernel takes, beside `ip -batch`"),
    ("isis_sync", "IS-IS: a whole level-2 database learnt from one neighbor"),
    ("adaptation", "Weights that follow load: whole fabrics on the virtual clock"),
    ("beside", "Beside C: one large database, the same events: FRR, BIRD and fared as leaf 0"),
    ("dataplane", "Data plane: real TCP over a 4x8 fabric with a slow link and more, beside FRR"),
    ("adaptive_kernel", "Weights under load that does not yield, in the kernel"),
    (
        "convergence",
        "Convergence: a link fails and heals, until the last kernel, beside FRR and BIRD",
    ),
    ("measuring", "Measuring: CPU of a daemon that measures the load of 64 links"),
    ("flooding", "Flooding: packets and CPU for a link that fails and heals, beside FRR"),
    ("footprint", "Footprint: memory of a leaf daemon in a running 4x8 fabric"),
)

Row = dict[str, Any]


def machine() -> str:
    """Say on what this ran."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}, Python {platform.python_version()}"


def as_row(row: Any) -> Row:  # noqa: ANN401 - a mapping or a dataclass
    """Bring rows of any section into one shape; a row without a goal is neither met nor missed."""
    if isinstance(row, dict):
        return row
    return {
        "name": row.name,
        "ours": row.ours_ms,
        "other": row.other_ms,
        "ratio": row.ratio,
        "goal": row.goal.strip("-"),
        "met": row.met if row.goal.strip("-") else None,
    }


def table(rows: list[Row]) -> list[str]:
    """Format rows as a markdown table."""
    lines = [
        "| what | fared | other | unit | ratio | goal | |",
        "|---|--:|--:|---|--:|--:|---|",
    ]
    for row in rows:
        goal = row.get("goal")
        met = row.get("met")
        lines.append(
            f"| {row['name']} | {number(row.get('ours'))} | {number(row.get('other'))} "
            f"| {row.get('unit', 'ms')} | {number(row.get('ratio'))} "
            f"| {goal if goal is not None else ''} | {mark(met)} |"
        )
    return lines


def number(value: float | None) -> str:
    """Three significant digits, or nothing."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def mark(met: object) -> str:
    """Say whether a goal was met, where there is one."""
    return "" if met is None else ("met" if met else "**missed**")


def main() -> int:
    """Run every section and write the report. A section that cannot run says why."""
    sys.path.insert(0, str(ROOT))
    report = ["# fared benchmarks", "", machine(), ""]
    verdicts: list[bool] = []
    for name, title in SECTIONS:
        module = importlib.import_module(f"bench.{name}")
        rows = [as_row(row) for row in module.rows()]
        report += [f"## {title}", "", f"`python bench/{name}.py`", "", *table(rows), ""]
        verdicts += [row["met"] for row in rows if row.get("met") is not None]
        print(f"{title}: {len(rows)} rows", flush=True)
    met = sum(verdicts)
    report.append(f"{met} goals met, {len(verdicts) - met} missed")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(report) + "\n")
    print("\n".join(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
