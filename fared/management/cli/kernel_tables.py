"""Tables of the kernel's objects, and of the durations of changes."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fared.management.cli.path_tables import because
from fared.management.documents import human
from fared.management.documents.paper import (
    Json,
    Renderer,
    count,
    emit,
    facts,
    gateway,
    styled,
    table,
)

_MAIN_TABLES = {254: "main", 253: "default"}


def _fib(document: Json, out: Console, _now: float) -> None:
    if "diff" in document:
        _fib_diff(document, out)
        return
    number = document["table"]
    facts(
        out,
        [
            ("Table", _MAIN_TABLES.get(number, str(number))),
            ("Protocol", str(document["protocol"])),
            ("Metric", str(document["metric"])),
        ],
    )
    out.print()
    hops = {
        hop["id"]: "discard" if hop.get("discard") else f"{gateway(hop)} {hop['interface']}"
        for hop in document["nexthops"]
    }
    grid = table(">Object", "Type", ">Routes", "~Members (weight)")
    users: dict[int, int] = {}
    for route in document["routes"]:
        users[route["nexthop_id"]] = users.get(route["nexthop_id"], 0) + 1
    for group in document["groups"]:
        members = ", ".join(f"{m['interface']} ({m['weight']})" for m in group["members"])
        grid.add_row(str(group["id"]), group["type"], str(group["routes"]), members)
    for object_id, hop in hops.items():
        grid.add_row(str(object_id), "next hop", str(users.get(object_id, 0)), hop)
    emit(out, grid)
    out.print()
    grid = table("Prefix", ">Object")
    for route in document["routes"]:
        grid.add_row(route["prefix"], str(route["nexthop_id"]))
    emit(out, grid)


def _fib_diff(document: Json, out: Console) -> None:
    if not document["diff"]:
        out.print(styled("the kernel holds exactly the programmed state", good=True))
        return
    grid = table("Object", "Key", "~Wanted", "~Found")
    for entry in document["diff"]:
        grid.add_row(
            entry["object"],
            entry["key"],
            entry["wanted"] or Text("nothing", style="dim"),
            Text(entry["found"] or "nothing", style="red"),
        )
    emit(out, grid)


def _convergence(document: Json, out: Console, now: float) -> None:
    stages = [f"{s['stage']} {human.duration(s['seconds'])}" for s in document["stages"]]
    out.print(Text(f"start-up: {', '.join(stages) or 'not begun'}\n", style="dim"))
    grid = table(
        *(">Ago", ">Total", ">Detect", ">Originate", ">Flood", ">Wait", ">SPF", ">Weights", ">FIB")
    )
    why = table(">Ago", ">Routes", ">Ops", "~Because")
    for change in document["changes"]:
        ago = human.duration(now - change["at"])
        parts = ("detected", "originated", "flooded", "waited", "spf", "weighed")
        grid.add_row(
            ago,
            Text(human.duration(change["total"]), style="bold"),
            *(human.duration(change[part]) for part in parts),
            human.duration(change["planned"] + change["programmed"]),
        )
        why.add_row(
            ago, str(change["routes"]), str(change["operations"]), because(change["causes"])
        )
    emit(out, grid)
    out.print()
    emit(out, why)


def _changed(document: Json, out: Console, now: float) -> None:
    later = f", {document['later']} of them again since" if document["later"] else ""
    ago = human.duration(now - document["at"])
    out.print(f"{count(document['changed'], 'route')} changed {ago} ago{later}")
    out.print(Text(because(document["causes"]) + "\n", style="dim"))
    grid = table("Route", "")
    for route in document["routes"]:
        grid.add_row(route["prefix"], "" if route["present"] else "gone")
    emit(out, grid)


RENDERERS: dict[str, Renderer] = {
    "fared-changed/1": _changed,
    "fared-fib/1": _fib,
    "fared-convergence/1": _convergence,
}
