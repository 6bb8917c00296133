"""``show ina``: the process and the routers that sum, jobs in a line each, one job, slots."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    Cell,
    Json,
    Renderer,
    count,
    emit,
    facts,
    heading,
    plural_list,
    table,
)

_SHOWN = 4
_MOST_LIMITS = 2


def _ina(document: Json, out: Console, _now: float) -> None:
    if not document["enabled"]:
        out.print("In-network aggregation does not run here (ina: enabled)")
        return
    match document["what"]:
        case "job":
            for job in document["jobs"]:
                _job(job, out)
        case "jobs":
            _jobs(document["jobs"], out)
        case "slots":
            _slots(document, out)
        case _:
            _overview(document, out)


def _overview(document: Json, out: Console) -> None:
    facts(out, [("fared-ina", _process(document["process"]))])
    heading(out, "Routers that sum")
    grid = table("Router", "Name", "Address", ">Memory")
    for entry in document["routers"]:
        grid.add_row(
            entry["router"], entry["hostname"] or "", entry["address"], f"{entry['memory']:,}"
        )
    emit(out, grid)
    heading(out, "Jobs")
    _jobs(document["jobs"], out)


def _process(process: Json | None) -> Cell:
    if process is None:
        return Text("does not answer", style="red")
    used, most = process["memory"], process["memory_limit"]
    return f"{process['address']}:{process['port']}, slots {used:,} of {most:,} bytes"


def _jobs(jobs: list[Json], out: Console) -> None:
    grid = table(
        "~Job", ">Epoch", "~Head", ">Ranks", ">Trees", ">Planned", ">Seen", ">Repeated",
        "~Waits for",
    )  # fmt: skip
    for job in jobs:
        grid.add_row(
            job["name"],
            str(job["epoch"]),
            _name(job, "head"),
            str(len(job["workers"]) - len(job["lost"])),
            str(len(job["trees"]) or "ring"),
            _rate(job["planned"] or None),
            _rate(job["seen"]),
            str(job["repeated"]),
            _waits(job["waits_for"]),
        )
    emit(out, grid)


def _job(job: Json, out: Console) -> None:
    heading(out, f"Job {job['name']}, epoch {job['epoch']}: {job['reason']}", first=True)
    facts(
        out,
        [
            ("Head", _name(job, "head")),
            ("Rate", f"{_rate(job['planned'] or None)} planned, {_rate(job['seen'])} seen"),
            ("Waits for", _waits(job["waits_for"])),
            *([("Problem", Text(job["problem"], style="red"))] if job["problem"] else []),
            *_wrong(job),
            *_elastic(job),
            *([("Share", f"{job['share']:g}")] if job["share"] != 1 else []),
            *_local(job["here"]),
        ],
    )
    heading(out, "Trees")
    if job["trees"]:
        _trees(job, out)
    else:
        out.print("none: workers form a ring over TCP")
    _reasons(job, out)
    heading(out, "Workers")
    grid = table(">Rank", "Address", "~Router", "State", ">Repeated")
    for worker in job["workers"]:
        repeated = worker["repeated"]
        grid.add_row(
            str(worker["rank"]),
            f"{worker['address']}:{worker['port']}",
            _name(worker, "router"),
            _state(worker),
            "" if repeated is None else str(repeated),
        )
    emit(out, grid)


def _wrong(job: Json) -> list[tuple[str, Cell]]:
    told = f"{count(job['wrong'], 'result')} refused: the control sum was wrong"
    return [("Wrong sums", Text(told, style="red"))] if job["wrong"] else []


def _elastic(job: Json) -> list[tuple[str, Cell]]:
    if not job["elastic"]:
        return []
    left = f"{len(job['workers']) - len(job['lost'])} of {len(job['workers'])} workers"
    without = f", without rank{'s' if len(job['lost']) > 1 else ''} {_ranges(job['lost'])}"
    return [("Elastic", Text(left + without, style="red") if job["lost"] else left)]


def _local(here: Json | None) -> list[tuple[str, Cell]]:
    if here is None:
        return []
    rows: list[tuple[str, Cell]] = []
    if here["trees"]:
        slots = f"{here['open_slots']} of {here['slots']} open, in {count(here['trees'], 'tree')}"
        if here["open_slots"]:
            slots += f", the oldest for {human.duration(here['wait'])}"
        rows.append(("Slots here", slots))
    told = [f"{name} {number}" for name, number in sorted(here["counters"].items())]
    if told:
        rows.append(("Packets here", ", ".join(told)))
    return rows


def _trees(job: Json, out: Console) -> None:
    grid = table(
        ">Tree", "~Root", ">Weight", ">Share", ">Window", ">Planned", ">Seen", "~Sums of ranks"
    )
    total = sum(tree["weight"] for tree in job["trees"])
    for tree in job["trees"]:
        nodes = [f"{_name(node, 'router')} {_ranges(node['ranks'])}" for node in tree["nodes"]]
        grid.add_row(
            str(tree["tree"]),
            _name(tree, "root"),
            str(tree["weight"]),
            human.share(tree["weight"] / total),
            str(tree["window"]),
            _rate(tree["planned"]),
            _rate(tree["seen"]),
            plural_list(nodes, _SHOWN),
        )
    emit(out, grid)


def _reasons(job: Json, out: Console) -> None:
    """Print why each tree has its rate, and why other routers have none."""
    rows = [(f"{_name(tree, 'root')}", _why(tree)) for tree in job["trees"]]
    rows += [(_name(other, "router"), f"no tree: {other['reason']}") for other in job["others"]]
    if rows:
        heading(out, "Reasons")
        facts(out, rows)


def _why(tree: Json) -> str:
    if tree["planned"] is None:
        return "not planned by the present capacities: another epoch follows"
    kind = "" if tree["kind"] == "star" else f"{tree['kind']}, "
    if tree["limited_at"]:
        return f"{kind}limited by the memory or CPU of {', '.join(tree['limited_at'])}"
    ways = [f"{_name(way, 'tail')} > {_name(way, 'head')}" for way in tree["limits"]]
    if not ways:
        return f"{kind}limited by what other trees leave"
    return f"{kind}limited by {plural_list(ways, _MOST_LIMITS)}"


def _slots(document: Json, out: Console) -> None:
    facts(out, [("fared-ina", _process(document["process"]))])
    out.print()
    grid = table("~Job", ">Tree", "~Root", ">Open", ">Slots", ">Sums", ">Repeated", "~Waits for")
    for job in document["jobs"]:
        for tree in job["trees"]:
            here = tree["here"]
            if here is not None:
                grid.add_row(
                    job["name"],
                    str(tree["tree"]),
                    _name(tree, "root"),
                    str(here["open"]),
                    str(here["slots"]),
                    str(here["sums"]),
                    str(here["repeated"]),
                    _waits(here["waits_for"]),
                )
    emit(out, grid)


def _name(entry: Json, key: str) -> str:
    """Return the hostname of a router, or its id."""
    hostname = entry.get("hostname" if key in {"root", "router"} else f"{key}_hostname")
    return str(hostname or entry[key])


def _rate(rate: float | None) -> str:
    """Return a rate as bit/s."""
    return "-" if rate is None else human.bandwidth(rate)


def _state(worker: Json) -> Cell:
    """Return what this router knows of a worker, or which one does."""
    state = worker["state"]
    if state is None:
        return Text(f"see {_name(worker, 'router')}", style="dim")
    return Text(state, style="red") if state == "lost" else str(state)


def _waits(ranks: list[int]) -> Cell:
    if not ranks:
        return "nobody"
    return Text(f"rank{'s' if len(ranks) > 1 else ''} {_ranges(ranks)}", style="yellow")


def _ranges(ranks: Iterable[int]) -> str:
    """Return ``0-3, 7``."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and rank == found[-1][1] + 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


RENDERERS: MappingProxyType[str, Renderer] = MappingProxyType({"fared-ina/1": _ina})
