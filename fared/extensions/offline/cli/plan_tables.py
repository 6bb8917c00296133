"""Reports of plans as tables of 80 columns."""

from __future__ import annotations

import math
import sys
from typing import Any

from fared.extensions.offline.plan.document import part
from fared.management.documents import human
from fared.management.documents.cells import Cell, count, dim, judged, plural_list, red, yellow
from fared.management.documents.paper import Paper, console

Json = dict[str, Any]
_WIDTH = 80
_SHOWN = 8
_CHANGED = 10
_SIDES = ("before", "after")
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
    paper = Paper(target, 0.0)
    with target.capture() as captured:
        if document["format"] == "fared-plan-compare/1":
            _comparison(document, paper)
        else:
            _failures(document, paper)
        _required(document, paper)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _failures(document: Json, paper: Paper) -> None:
    if document["changes"]:
        paper.line(dim(f"What if: {', '.join(document['changes'])}\n"))
    paper.heading(_title(document), first=True)
    paper.pairs(_facts(document))
    paper.heading("What remains between the worst pair")
    _sets(document, paper)
    if document["traffic"]:
        paper.heading("Traffic")
        _traffic(document, paper)
    paper.heading("Worst failures")
    _worst(document, paper)
    for one in document["sets"]:
        if one["pairs"]:
            paper.heading(f"Worst pairs after {_ONE[one['set']]}")
            _pairs(one["pairs"], paper)
    paper.heading("Single points of failure")
    _listed(document["single_points"], paper)
    if any(one["set"] == "links" for one in document["sets"]):
        paper.heading("Links whose failure takes no capacity from any pair")
        _listed(document["never_matter"], paper)


def _title(document: Json) -> str:
    ends, pods = document["ends"], {end["pod"] for end in document["ends"]}
    where = f" in {len(pods)} pods" if len(pods) > 1 else ""
    return (
        f"{count(document['routers'], 'router')}, {count(document['links'], 'link')}; "
        f"capacity between {count(len(ends), 'router')}{where}"
    )


def _facts(document: Json) -> list[tuple[str, Cell]]:
    healthy = document["healthy"]
    least, most = human.bandwidth(healthy["least"]), human.bandwidth(healthy["most"])
    between = least if least == most else f"{least} to {most}"
    found: list[tuple[str, Cell]] = [("Capacity of a pair", f"{between} bit/s")]
    if longest := healthy.get("longest"):
        ends = f"{longest['from']} > {longest['to']}"
        found.append(("Longest delay", f"{human.duration(longest['delay'])}, {ends}"))
    if healthy["cut"]:
        found.append(("Pairs without a path", red(f"{healthy['cut']:,}")))
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


def _sets(document: Json, paper: Paper) -> None:
    columns = (
        "Set",
        ">Failures",
        ">At worst",
        ">On average",
        ">All pairs",
        ">Cut a pair",
        ">No effect",
    )
    rows = (
        (
            f"{one['set']} ({one['alias']})" if one["alias"] else one["set"],
            f"{one['failures']:,}",
            _left(one["left"]),
            part(one["mean_left"]),
            part(one["mean"]),
            f"{one['cut']:,}",
            f"{one['harmless']:,}",
        )
        for one in document["sets"]
    )
    paper.grid(columns, rows)


def _traffic(document: Json, paper: Paper) -> None:
    """The busiest links, and the failure of each set that hurts traffic most."""
    traffic = document["traffic"]
    busiest = [link for link in traffic["links"] if link["utilization"] > 0.0][:_SHOWN]
    names = plural_list([f"{one['link']} {part(one['utilization'])}" for one in busiest], 3)
    found: list[tuple[str, Cell]] = [
        ("Rates", f"{traffic['demands']:,}, {human.bandwidth(traffic['rate'])} together"),
        ("Busiest links", names or "none"),
    ]
    if traffic["unserved"]:
        lost = human.bandwidth(traffic["unserved"])
        found.append(("Without a path", red(lost)))
    paper.pairs(found)
    paper.line()
    rows = (_traffic_row(one["set"], one["traffic"]) for one in document["sets"])
    paper.grid(("Set", "~Worst failure", "~Busiest link", ">Load", ">Time", ">Lost"), rows)


def _traffic_row(name: str, row: Json) -> tuple[Cell, ...]:
    slower = row["slowdown"]
    return (
        name,
        row["failure"],
        row["busiest"] or "none",
        _load(row["utilization"]),
        "never ends" if slower is None else f"{slower:.2f}x",
        human.bandwidth(row["unserved"]) if row["unserved"] else "none",
    )


def _load(value: float) -> Cell:
    text = f"{value:.0%}"
    return red(text) if value > 1.0 else text


def _worst(document: Json, paper: Paper) -> None:
    columns = ("~Failure", "~Worst pair", ">Left", ">Capacity", ">Max flow", ">Pairs", ">Cut")
    rows = (
        (
            row["failure"] + (f" and {row['alike']:,} more" if row["alike"] else ""),
            " > ".join(row["pair"]),
            _left(row["left"]),
            human.bandwidth(row["capacity"]),
            human.bandwidth(row["max_flow"]),
            f"{row['reduced']:,}",
            f"{row['cut']:,}",
        )
        for row in document["worst"]
    )
    paper.grid(columns, rows)


def _pairs(pairs: list[Json], paper: Paper) -> None:
    """One line for all pairs that the same failure reduces to the same part."""
    groups: dict[tuple[str, float, float], list[str]] = {}
    for row in pairs:
        key = (row["cause"], row["left"], row["capacity"])
        groups.setdefault(key, []).append(" > ".join(row["pair"]))
    rows = (
        (cause, plural_list(names, 2), _left(left), human.bandwidth(capacity))
        for (cause, left, capacity), names in groups.items()
    )
    paper.grid(("~Cause", "~Pairs", ">Left", ">Capacity"), rows)


def _listed(entries: list[Json], paper: Paper) -> None:
    names = [entry["failure"] for entry in entries]
    paper.line(plural_list(names, _SHOWN) if names else dim("none"))


def _left(value: float) -> Cell:
    text = part(value)
    return red(text) if value <= 0 else yellow(text) if value < 0.5 else text


def _comparison(document: Json, paper: Paper) -> None:
    paper.heading("What remains between the worst pair", first=True)
    rows = (
        (
            one["set"],
            *(part(one[when][name]) for name in ("left", "mean_left") for when in _SIDES),
            *(f"{one[when]['cut']:,}" for when in _SIDES),
        )
        for one in document["sets"]
    )
    paper.grid(("Set", ">Before", ">After", ">Average", ">After", ">Cut", ">After"), rows)
    for word in ("worse", "better"):
        found = document[word]
        paper.heading(f"{count(len(found), 'failure')} {'is' if len(found) == 1 else 'are'} {word}")
        _changed(found[:_CHANGED], paper)
    paper.heading("Others")
    paper.pairs(
        [("Same", f"{document['same']:,}")]
        + [(word.capitalize(), f"{len(document[word]):,}") for word in ("new", "gone")],
    )


def _changed(changes: list[Json], paper: Paper) -> None:
    rows = (
        (
            row["failure"],
            *(part(row[when]["left"]) for when in _SIDES),
            *(_fine(row[when]["mean"]) for when in _SIDES),
            " > ".join(row["after"]["pair"] or ()),
        )
        for row in changes
    )
    paper.grid(("~Failure", ">Left", ">After", ">All pairs", ">After", "~Worst pair"), rows)


def _fine(value: float) -> str:
    return f"{math.floor(value * 1e4) / 1e2:.2f}%"


def _required(document: Json, paper: Paper) -> None:
    for bound in document["required"]:
        paper.line()
        words = "holds" if bound["met"] else "is broken"
        text = f"{bound['bound']} {words}: {bound['found']}"
        paper.line(judged(text, good=bound["met"]))
