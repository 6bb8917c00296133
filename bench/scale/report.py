"""Results of ``scale`` as rows of the benchmark report, and as one table."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from bench.rows import compared

JOIN_SECONDS = MappingProxyType({"64x512 with TE": 8.0, "256x256": 6.0})
LOST_MS = MappingProxyType({"64x512": 15.0, "64x512 with TE": 15.0, "256x256": 30.0})
"""Goals, by fabric."""
CPU_PERCENT = 50.0
ACKNOWLEDGED = 99.9
LAG_MS = 50.0
READ_LAG_MS = 20.0
"""More than without readers: a turn of an answer, which a request has to wait for."""
RATE_OF_GOALS = "1000"
"""Changed LSAs a second, or fragments: an LSP is a packet, an update holds thirty TE LSAs."""
OVERLOAD = "4000"
"""More than any router can process: nothing may be lost for good, and nothing may grow."""
GROWTH_MIB = 8.0
LARGE = "64x512"
Json = dict[str, Any]


def title(case: Json) -> str:
    """Name a case, whatever the daemon."""
    te = " with TE" if case["te"] else ""
    name = "OSPF" if case["protocol"] == "ospf" else "IS-IS"
    return f"{name} {case['spines']}x{case['leaves']}{te}"


def rows_of(results: list[Json]) -> list[Json]:
    """Compare fared with FRR, case by case."""
    pairs: dict[str, dict[str, Json]] = {}
    for found in results:
        pairs.setdefault(title(found["case"]), {})[found["case"]["daemon"]] = found
    return [row for name, pair in pairs.items() for row in _case(name, pair)]


def _case(name: str, pair: dict[str, Json]) -> list[Json]:
    ours, other = pair.get("fared", {}), pair.get("frr", {})
    fabric = name.partition(" ")[2]
    joined = compared(f"{name}: joined", ours.get("joined"), other.get("joined"), "s")
    if most := JOIN_SECONDS.get(fabric):
        joined |= _goal(f"<= {most:g} s", ours.get("joined"), most)
    rows = [joined]
    rows.append(compared(f"{name}: memory", ours.get("memory"), other.get("memory"), "MiB"))
    if ours.get("lost") or other.get("lost"):
        lost, theirs = ours.get("lost") or {}, other.get("lost") or {}
        last = compared(
            f"{name}: link lost, last route", lost.get("last"), theirs.get("last"), "ms"
        )
        if most := LOST_MS.get(fabric):
            last |= _goal(f"<= {most:g} ms", lost.get("last"), most)
        rows.append(last)
        rows.append(compared(f"{name}: link lost, CPU", lost.get("cpu"), theirs.get("cpu"), "ms"))
    for rate in {**ours.get("rates", {}), **other.get("rates", {})}:
        mine = ours.get("rates", {}).get(rate)
        rows += _rate(f"{name}: {rate}/s", rate, mine, other.get("rates", {}).get(rate))
    if "read" in ours:
        rows += _read(f"{name}: {ours['case']['read']:g}/s, read all the time", ours["read"])
    return rows


def _read(name: str, found: Json) -> list[Json]:
    """What a client costs that scrapes and reads large documents, beside the same without it."""
    mine, alone = found["with"], found["without"]
    held = compared(f"{name}, loop held", mine["lag"], alone["lag"], "ms")
    acked = compared(
        f"{name}, acknowledged within 1 s",
        mine["acknowledged"],
        alone["acknowledged"],
        "%",
        more_is_better=True,
    )
    acked["note"] = f"{name}: hellos at most {mine['lapse']:.2f} s apart, {mine['lost']} lost"
    good = mine["acknowledged"] >= ACKNOWLEDGED and not mine["lost"]
    acked |= {"goal": "all, no adjacency lost", "met": good}
    most = (alone["lag"] or 0.0) + READ_LAG_MS
    return [held | _goal(f"<= {most:.1f} ms", mine["lag"], most), acked]


def _rate(name: str, rate: str, ours: Json | None, other: Json | None) -> list[Json]:
    """CPU at a rate of changed bandwidths, and what was acknowledged within a second."""
    mine, theirs = ours or {}, other or {}
    cpu = compared(f"{name}, CPU", mine.get("cpu"), theirs.get("cpu"), "% of a core")
    acked = compared(
        f"{name}, acknowledged within 1 s",
        mine.get("acknowledged"),
        theirs.get("acknowledged"),
        "%",
        more_is_better=True,
    )
    if mine:
        parts = f"loop held {mine['lag']:.0f} ms at most, " if mine["lag"] is not None else ""
        acked["note"] = (
            f"{name}: fared: {parts}hellos at most {mine['lapse']:.2f} s apart, {mine['lost']}"
            f" adjacencies lost, memory {mine['growth']:+.1f} MiB; the script took"
            f" {mine['script']:.0f} % of its core"
        )
    if rate == RATE_OF_GOALS and LARGE in name:
        cpu |= _goal(f"<= {CPU_PERCENT:g} %", mine.get("cpu"), CPU_PERCENT)
        good = bool(mine) and mine["acknowledged"] >= ACKNOWLEDGED and not mine["lost"]
        acked |= {"goal": "all, no adjacency lost", "met": good}
        held = compared(f"{name}, loop held", mine.get("lag"), None, "ms")
        return [cpu, acked, held | _goal(f"<= {LAG_MS:g} ms", mine.get("lag"), LAG_MS)]
    if rate == OVERLOAD and LARGE in name:
        return [cpu, acked, *_overload(name, mine, theirs)]
    return [cpu, acked]


def _overload(name: str, mine: Json, theirs: Json) -> list[Json]:
    """What must not happen at a rate that no router can process."""

    def row(what: str, key: str, unit: str, most: float) -> Json:
        both = compared(f"{name}, {what}", mine.get(key), theirs.get(key), unit)
        return both | _goal(f"<= {most:g}", mine.get(key), most)

    return [
        row("LSAs never acknowledged", "open", "LSAs", 0.0),
        row("adjacencies lost", "lost", "adjacencies", 0.0),
        row("growth of memory when it comes again", "growth", "MiB", GROWTH_MIB),
    ]


def _goal(text: str, value: float | None, most: float) -> Json:
    return {"goal": text, "met": value is not None and value <= most}


def table(results: list[Json]) -> list[str]:
    """One line for each figure, fared beside FRR."""
    lines = ["| what | fared | FRR | unit |", "|---|---|---|---|"]
    for row in rows_of(results):
        cells = (_number(row.get(key)) for key in ("ours", "other"))
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {row['unit']} |")
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
