"""Reports of plans as tables of 80 columns."""

from __future__ import annotations

import math
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.cells import count, plural_list
from fared.management.documents.paper import (
    console,
    emit,
    facts,
    heading,
    styled,
    table,
)

Json = dict[str, Any]
_WIDTH = 80
_SHOWN = 8
_CHANGED = 10
_ONE = {
    "links": "one link",
    "nodes": "one router",
    "groups": "one group",
    "doubles": "two links",
    "degrade": "less of one link",
}


def render_plan(document: Json) -> str:
    """Format a report or a comparison, with colours only on a terminal."""
    target = console(None if sys.stdout.isatty() else _WIDTH)
    with target.capture() as captured:
        if document["format"] == "fared-plan-compare/1":
            _comparison(document, target)
        else:
            _failures(document, target)
        _required(document, target)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def part(value: float) -> str:
    """Format a part as a percentage that never rounds up to 100, nor a rest down to 0."""
    percent = value * 100
    if 0 < percent < 0.05 or 99.95 <= percent < 100:
        return "<0.1%" if percent < 1 else ">99.9%"
    return human.share(value)


def _failures(document: Json, out: Console) -> None:
    if document["changes"]:
        out.print(Text(f"What if: {', '.join(document['changes'])}\n", style="dim"))
    heading(out, _title(document), first=True)
    facts(out, _facts(document))
    heading(out, "What remains between the worst pair")
    _sets(document, out)
    if document["traffic"]:
        heading(out, "Traffic")
        _traffic(document, out)
    heading(out, "Worst failures")
    _worst(document, out)
    for one in document["sets"]:
        if one["pairs"]:
            heading(out, f"Worst pairs after {_ONE[one['set']]}")
            _pairs(one["pairs"], out)
    heading(out, "Single points of failure")
    _listed(document["single_points"], out)
    if any(one["set"] == "links" for one in document["sets"]):
        heading(out, "Links whose failure takes no capacity from any pair")
        _listed(document["never_matter"], out)


def _title(document: Json) -> str:
    ends, pods = document["ends"], {end["pod"] for end in document["ends"]}
    where = f" in {len(pods)} pods" if len(pods) > 1 else ""
    return (
        f"{count(document['routers'], 'router')}, {count(document['links'], 'link')}; "
        f"capacity between {count(len(ends), 'router')}{where}"
    )


def _facts(document: Json) -> list[tuple[str, Text | str]]:
    healthy = document["healthy"]
    least, most = human.bandwidth(healthy["least"]), human.bandwidth(healthy["most"])
    between = least if least == most else f"{least} to {most}"
    found: list[tuple[str, Text | str]] = [("Capacity of a pair", between)]
    if healthy["cut"]:
        found.append(("Pairs without a path", styled(f"{healthy['cut']:,}", good=False)))
    if document["drained"]:
        names = plural_list(document["drained"], _SHOWN)
        found.append(("Drained", f"{names}: the worst pair keeps {part(healthy['left'])}"))
    for one in document["sets"]:
        if one["interval"]:
            bounds = one["interval"]
            words = (
                f"{one['failures']:,} of {one['population']:,} pairs of links, seed "
                f"{one['seed']}; the worst pair keeps {part(bounds['low'])} to "
                f"{part(bounds['high'])} in the mean, with confidence {bounds['confidence']:.0%}"
            )
            found.append(("Sample", words))
        if one["classes"] is not None:
            words = f"{one['classes']:,} pairs of links, which stand for {one['failures']:,}"
            found.append(("Classes", words))
    return found


def _sets(document: Json, out: Console) -> None:
    grid = table(
        "Set", ">Failures", ">At worst", ">On average", ">All pairs", ">Cut a pair", ">No effect"
    )
    for one in document["sets"]:
        name = one["alias"] and f"{one['set']} ({one['alias']})"
        grid.add_row(
            name or one["set"],
            f"{one['failures']:,}",
            _left(one["left"]),
            part(one["mean_left"]),
            part(one["mean"]),
            f"{one['cut']:,}",
            f"{one['harmless']:,}",
        )
    emit(out, grid)


def _traffic(document: Json, out: Console) -> None:
    """The busiest links, and the failure of each set that hurts traffic most."""
    traffic = document["traffic"]
    busiest = [link for link in traffic["links"] if link["utilization"] > 0.0][:_SHOWN]
    names = plural_list([f"{one['link']} {part(one['utilization'])}" for one in busiest], 3)
    found: list[tuple[str, Text | str]] = [
        ("Rates", f"{traffic['demands']:,}, {human.bandwidth(traffic['rate'])} together"),
        ("Busiest links", names or "none"),
    ]
    if traffic["unserved"]:
        lost = human.bandwidth(traffic["unserved"])
        found.append(("Without a path", styled(lost, good=False)))
    facts(out, found)
    out.print()
    grid = table("Set", "~Worst failure", "~Busiest link", ">Load", ">Time", ">Lost")
    for one in document["sets"]:
        row = one["traffic"]
        slower = row["slowdown"]
        grid.add_row(
            one["set"],
            row["failure"],
            row["busiest"] or "none",
            _load(row["utilization"]),
            "never ends" if slower is None else f"{slower:.2f}x",
            human.bandwidth(row["unserved"]) if row["unserved"] else "none",
        )
    emit(out, grid)


def _load(value: float) -> Text:
    return Text(f"{value:.0%}", style="red" if value > 1.0 else "")


def _worst(document: Json, out: Console) -> None:
    grid = table("~Failure", "~Worst pair", ">Left", ">Capacity", ">Max flow", ">Pairs", ">Cut")
    for row in document["worst"]:
        alike = f" and {row['alike']:,} more" if row["alike"] else ""
        grid.add_row(
            row["failure"] + alike,
            " > ".join(row["pair"]),
            _left(row["left"]),
            human.bandwidth(row["capacity"]),
            human.bandwidth(row["max_flow"]),
            f"{row['reduced']:,}",
            f"{row['cut']:,}",
        )
    emit(out, grid)


def _pairs(pairs: list[Json], out: Console) -> None:
    """One line for all pairs that the same failure reduces to the same part."""
    groups: dict[tuple[str, float, float], list[str]] = {}
    for row in pairs:
        key = (row["cause"], row["left"], row["capacity"])
        groups.setdefault(key, []).append(" > ".join(row["pair"]))
    grid = table("~Cause", "~Pairs", ">Left", ">Capacity")
    for (cause, left, capacity), names in groups.items():
        grid.add_row(cause, plural_list(names, 2), _left(left), human.bandwidth(capacity))
    emit(out, grid)


def _listed(entries: list[Json], out: Console) -> None:
    names = [entry["failure"] for entry in entries]
    out.print(Text(plural_list(names, _SHOWN)) if names else Text("none", style="dim"))


def _left(value: float) -> Text:
    return Text(part(value), style="red" if value <= 0 else "yellow" if value < 0.5 else "")


def _comparison(document: Json, out: Console) -> None:
    heading(out, "What remains between the worst pair", first=True)
    grid = table("Set", ">Before", ">After", ">Average", ">After", ">Cut", ">After")
    for one in document["sets"]:
        before, after = one["before"], one["after"]
        values = []
        for name in ("left", "mean_left"):
            values += [part(before[name]), part(after[name])]
        grid.add_row(one["set"], *values, f"{before['cut']:,}", f"{after['cut']:,}")
    emit(out, grid)
    for word in ("worse", "better"):
        rows = document[word]
        heading(out, f"{count(len(rows), 'failure')} {'is' if len(rows) == 1 else 'are'} {word}")
        _changed(rows[:_CHANGED], out)
    heading(out, "Others")
    facts(
        out,
        [("Same", f"{document['same']:,}")]
        + [(word.capitalize(), f"{len(document[word]):,}") for word in ("new", "gone")],
    )


def _changed(rows: list[Json], out: Console) -> None:
    grid = table("~Failure", ">Left", ">After", ">All pairs", ">After", "~Worst pair")
    for row in rows:
        before, after = row["before"], row["after"]
        grid.add_row(
            row["failure"],
            part(before["left"]),
            part(after["left"]),
            _fine(before["mean"]),
            _fine(after["mean"]),
            " > ".join(after["pair"] or ()),
        )
    emit(out, grid)


def _fine(value: float) -> str:
    return f"{math.floor(value * 1e4) / 1e2:.2f}%"


def _required(document: Json, out: Console) -> None:
    for bound in document["required"]:
        out.print()
        words = "holds" if bound["met"] else "is broken"
        out.print(
            styled(f"{bound['bound']} {words}: {part(bound['left'])} is left", good=bound["met"])
        )
