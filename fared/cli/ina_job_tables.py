"""Jobs of in-network aggregation as tables."""

from __future__ import annotations

from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from fared.api import human
from fared.cli.render import Json, Renderer, count, emit, facts, heading, plural_list, table

_SHOWN = 4


def _ina(document: Json, out: Console, _now: float) -> None:
    process = document["process"]
    heading(out, "In-network aggregation", first=True)
    known: list[tuple[str, Text | str]] = [
        ("Routers", f"{len(document['routers'])} that sum"),
    ]
    if process is None:
        known.append(("fared-ina", Text("does not answer", style="red")))
    else:
        used, most = process["memory"], process["memory_limit"]
        words = f"{process['address']}:{process['port']}, slots {used:,} of {most:,} bytes"
        known.append(("fared-ina", words))
    facts(out, known)
    for job in document["jobs"]:
        _job(job, out)


def _job(job: Json, out: Console) -> None:
    heading(out, f"Job {job['name']}, epoch {job['epoch']}: {job['reason']}")
    addresses = [f"{worker['rank']} {worker['address']}" for worker in job["workers"]]
    found: list[tuple[str, Text | str]] = [
        ("Head", job["head"]),
        (count(len(addresses), "worker").capitalize(), plural_list(addresses, _SHOWN)),
    ]
    here = job["here"]
    if here is not None:
        states = [f"{rank} {state}" for rank, state in here["workers"].items() if state != "absent"]
        if states:
            found.append(("Joined here", ", ".join(states)))
        if here["trees"]:
            slots = (
                f"{here['open_slots']} of {here['slots']} open, in {count(here['trees'], 'tree')}"
            )
            found.append(("Slots", slots))
        if here["waits_for"]:
            ranks = ", ".join(map(str, here["waits_for"]))
            found.append(("Waits for", Text(f"rank {ranks}", style="yellow")))
        told = [f"{name} {number}" for name, number in sorted(here["counters"].items())]
        if told:
            found.append(("Packets", ", ".join(told)))
    facts(out, found)
    grid = table("Root", ">Weight", ">Share", ">Window", "~Sums at")
    total = sum(tree["weight"] for tree in job["trees"])
    for tree in job["trees"]:
        share = human.share(tree["weight"] / total)
        sums = plural_list(tree["nodes"], _SHOWN)
        grid.add_row(tree["root"], str(tree["weight"]), share, str(tree["window"]), sums)
    emit(out, grid)


RENDERERS: MappingProxyType[str, Renderer] = MappingProxyType({"fared-ina/1": _ina})
