"""The tables of README.md and docs/scale.md, from the recorded results of ``scale --table``.

``scale --table`` records its results in ``bench/results/scale.json`` and rewrites both tables, so
fared and FRR stand beside each other as one run has measured them; ``tests/bench/test_scale.py``
holds the pages to the file.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.report import layout, machine, number
from bench.scale.report import rows_of

RECORDED = ROOT / "bench" / "results" / "scale.json"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- recorded by bench/scale/scale.py --table -->\n", "<!-- end -->"
_PART = re.compile(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", re.DOTALL)
OF_README = {
    "OSPF 64x512 with TE: joined": "OSPF with TE, 66,047 LSAs: joined",
    "OSPF 64x512 with TE: memory": "OSPF with TE: memory",
    "OSPF 64x512 with TE: 1000/s, CPU": "OSPF, 1,000 changed bandwidths a second: CPU",
    "OSPF 256x256: joined": "OSPF, 256 spines, 256 leaves: joined",
    "OSPF 64x512: link lost, last route": "OSPF, one link lost: last route in the kernel",
    "IS-IS 64x512 with TE: joined": "IS-IS with TE: joined",
    "IS-IS 64x512 with TE: 1000/s, CPU": "IS-IS, 1,000 changed fragments a second: CPU",
}
AT_FIRST = {
    "OSPF 64x512: joined": 1.8,
    "OSPF 64x512: link lost, last route": 42.0,
    "OSPF 64x512: link lost, CPU": 109.0,
    "OSPF 256x256: joined": 6.3,
    "OSPF 256x256: link lost, last route": 79.0,
    "OSPF 64x512 with TE: joined": 49.5,
    "OSPF 64x512 with TE: 50/s, CPU": 87.0,
    "OSPF 64x512 with TE: 200/s, CPU": 99.0,
    "OSPF 64x512 with TE: 1000/s, acknowledged within 1 s": 57.0,
    "OSPF 64x512 with TE: 4000/s, acknowledged within 1 s": 19.0,
    "OSPF 16x64 with TE: joined": 1.4,
    "OSPF 16x64 with TE: 50/s, CPU": 29.0,
    "OSPF 16x64 with TE: 200/s, CPU": 51.0,
    "OSPF 16x64 with TE: 1000/s, CPU": 100.0,
}
"""What fared took before it was made for this size; of an earlier run."""
Json = dict[str, Any]


def begin() -> Json:
    """When and where a run begins."""
    return {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "machine": machine()}


def record(began: Json, results: list[Json]) -> None:
    """Record the results of a run, and rewrite both tables."""
    found = {**began, "results": results}
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    for path, part in tables(found).items():
        path.write_text(_PART.sub(lambda _, part=part: part, path.read_text()))


def recorded() -> Json:
    """The recorded results."""
    found: Json = json.loads(RECORDED.read_text())
    return found


def tables(found: Json) -> dict[Path, str]:
    """The part of each page that the results determine."""
    rows = {row["name"]: row for row in rows_of(found["results"])}
    short = [
        [label, *(_figure(rows[name], key) for key in ("ours", "other"))]
        for name, label in OF_README.items()
        if name in rows
    ]
    every = [
        [name, _first(name), _figure(row, "ours"), _figure(row, "other"), row.get("goal") or ""]
        for name, row in rows.items()
    ]
    headings = ["fabric: figure", "fared at first", "fared", "FRR", "goal"]
    return {
        README: _text(layout(["64 spines, 512 leaves", "fared", "FRR"], short, (1, 2))),
        PAGE: _text([f"- {found['at']}", *found["machine"], ""])
        + _text(layout(headings, every, (1, 2, 3))),
    }


def written(path: Path) -> str:
    """The part of a page that stands there."""
    (part,) = _PART.findall(path.read_text())
    return str(part)


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _figure(row: Json, key: str) -> str:
    value = row.get(key)
    unit = "%" if row["unit"] == "% of a core" else row["unit"]
    return "-" if value is None else f"{number(value)} {unit}"


def _first(name: str) -> str:
    return number(AT_FIRST.get(name))
