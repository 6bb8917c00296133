"""Results of ``beside``, as printed lines and as rows of the benchmark report."""

from __future__ import annotations

import statistics
from typing import Any

from bench.rows import compared

MOST_MIB = 300
Found = dict[str, dict[str, Any]]


def report(found: Found) -> None:
    """Print all measurements."""
    for name, result in found.items():
        print(
            f"{name}: sync {result['sync']:.2f} s ({result['sync_cpu']:.2f} s CPU,"
            f" {result['all_cpu']:.2f} s with all neighbors), {result['resident']:.0f} MiB"
        )
        for kind, events in result["events"].items():
            line = f"  {kind:13}"
            for what in ("first", "last", "reaction", "cpu", "spf"):
                values = [event[what] for event in events if event[what] is not None]
                if values:
                    line += f" {what} {statistics.median(values):7.2f}"
                    line += f" [{min(values):.2f}-{max(values):.2f}]"
            print(line)
            details = [event["detail"] for event in events if event["detail"]]
            if details:
                parts = ("waited", "computed", "planned", "programmed", "total")
                medians = {p: statistics.median(d[p] for d in details) * 1e3 for p in parts}
                print("      " + " ".join(f"{p} {v:.2f}" for p, v in medians.items()))


def missing_row() -> dict[str, Any]:
    """Return the row of a run without measurements."""
    return compared("did not run: see what it printed", None, None, "") | {
        "goal": "runs",
        "met": False,
    }


def rows_of(found: Found, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Compare the devices. Goals: ratios within this run, and the memory of fared."""
    table: list[dict[str, Any]] = []
    for ours, title in (("fared-ospf", "OSPF"), ("fared-isis", "IS-IS")):
        if ours not in found:
            continue
        protocol = ours.removeprefix("fared-")
        for name in found:
            if name.startswith("frr-" + protocol):
                table += _beside_frr(found, ours, name, f"{title}, FRR{name[8:]}")
            elif name.startswith("bird-" + protocol):
                table += _beside_bird(found, ours, name, f"{title}, BIRD")
        table.append(
            _row(f"{title}: capacity, LSA to kernel", _of(found, ours, "capacity", "last"))
        )
        resident = found[ours]["resident"]
        row = _row(f"{title}: resident with TE on every link", resident, unit="MiB")
        table.append(row | {"goal": f"< {MOST_MIB} MiB", "met": resident < MOST_MIB})
    for row in table:
        row["name"] = f"{size[0]}x{size[1]}, {row['name']}"
    return table


def _beside_frr(found: Found, ours: str, name: str, to: str) -> list[dict[str, Any]]:
    def of(words: str, kind: str, what: str, least: float | None = None) -> dict[str, Any]:
        return _row(
            f"{to}: {words}", _of(found, ours, kind, what), _of(found, name, kind, what), least
        )

    return [
        of("SPF after a cut, ours with weights", "cut", "spf", 50),
        of("cut, LSA to kernel", "cut", "last", 5),
        of("restored, LSA to kernel", "restore", "last"),
        of("metric, LSA to kernel", "metric", "last"),
        of("cut, CPU of everything", "cut", "cpu"),
        *_totals(found, ours, name, to),
    ]


def _beside_bird(found: Found, ours: str, name: str, to: str) -> list[dict[str, Any]]:
    """Compare CPU times: BIRD does not report its SPF duration, and its tick delays the SPF."""
    event, cpu = _of(found, ours, "cut", "last"), _of(found, name, "cut", "cpu")
    return [
        _row(f"{to}: SPF with weights; its CPU for a cut", _of(found, ours, "cut", "spf"), cpu, 5),
        _row(f"{to}: cut, LSA to kernel; its CPU", event, cpu, 1),
        _row(
            f"{to}: cut, CPU until the kernel has it; all of its CPU",
            _of(found, ours, "cut", "reaction"),
            cpu,
        ),
        _row(f"{to}: cut, LSA to kernel", event, _of(found, name, "cut", "last")),
        _row(f"{to}: cut, CPU of everything", _of(found, ours, "cut", "cpu"), cpu),
        *_totals(found, ours, name, to),
    ]


def _totals(found: Found, ours: str, name: str, to: str) -> list[dict[str, Any]]:
    return [
        _row(f"{to}: {words}", found[ours][key], found[name][key], unit=unit)
        for key, words, unit in (
            ("sync", "learning the database, ours with TE", "s"),
            ("sync_cpu", "learning the database, ours with TE, CPU", "s"),
            ("all_cpu", "the same, and all other adjacencies, CPU", "s"),
            ("resident", "resident, ours with TE", "MiB"),
        )
    ]


def _of(found: Found, name: str, kind: str, what: str) -> float | None:
    events = found[name]["events"].get(kind, ())
    values = [event[what] for event in events if event[what] is not None]
    return statistics.median(values) if values else None


def _row(
    name: str,
    ours: float | None,
    other: float | None = None,
    least: float | None = None,
    unit: str = "ms",
) -> dict[str, Any]:
    return compared(name, ours, other, unit, least)
