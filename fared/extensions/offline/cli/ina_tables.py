"""The plan of aggregation trees as tables of 80 columns."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    console,
    count,
    emit,
    facts,
    heading,
    plural_list,
    styled,
    table,
)

Json = dict[str, Any]
_WIDTH = 80
_SHOWN = 4
_CHUNKS = 26


def render_plan(document: Json) -> str:
    """Format ``fared-ina-plan/1``, with colours only on a terminal."""
    target = console(None if sys.stdout.isatty() else _WIDTH)
    with target.capture() as captured:
        _plan(document, target)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _plan(document: Json, out: Console) -> None:
    if document["changes"]:
        out.print(Text(f"What if: {', '.join(document['changes'])}\n", style="dim"))
    workers = document["workers"]
    leaves = list(dict.fromkeys(_name(worker) for worker in workers))
    heading(
        out,
        f"{count(len(workers), 'worker')} on {plural_list(leaves, _SHOWN)}",
        first=True,
    )
    facts(out, _rates(document))
    heading(out, "Trees")
    _trees(document, out)
    heading(out, "Links")
    _links(document, out)


def _rates(document: Json) -> list[tuple[str, Text | str]]:
    rate, bound, ring = document["rate"], document["bound"], document["ring_rate"]
    n = len(document["workers"])
    found: list[tuple[str, Text | str]] = [("Rate", human.bandwidth(rate))]
    if bound:
        part = rate / bound
        words = f"{human.bandwidth(bound)}: the plan has {human.share(part)} of it"
        found.append(("Bound", styled(words, good=part > 0.995, bad="yellow")))
    if ring:
        whole = ring / (2 * (n - 1) / n)
        words = f"{human.bandwidth(whole)}: takes {rate / whole:.2f} times as long"
        found.append(("Ring", words))
    order = " ".join(str(tree + 1) for tree in document["round"][:_CHUNKS])
    more = " ..." if len(document["round"]) > _CHUNKS else ""
    found.append(("Chunks", f"to trees {order}{more}, and again"))
    return found


def _trees(document: Json, out: Console) -> None:
    grid = table(">Tree", "Root", "Kind", ">Rate", ">Share", ">Weight", "~Limited by")
    for number, tree in enumerate(document["trees"], 1):
        limits = [f"{_name(link['from'])} > {_name(link['to'])}" for link in tree["limits"]]
        grid.add_row(
            str(number),
            _name(tree["root"]),
            tree["kind"],
            human.bandwidth(tree["rate"]),
            human.share(tree["share"]),
            str(tree["weight"]),
            plural_list(limits, 1) or "worker",
        )
    emit(out, grid)
    for number, tree in enumerate(document["trees"], 1):
        for way in tree["relays"]:
            names = " > ".join(_name(router) for router in way)
            out.print(Text(f"Tree {number} relays: {names}", style="dim"))


def _links(document: Json, out: Console) -> None:
    """One line for all links of a router that carry the same of the same, both ways."""
    loads = {
        (_name(link["from"]), _name(link["to"])): (link["load"], link["capacity"])
        for link in document["links"]
    }
    roots = {_name(tree["root"]) for tree in document["trees"]}
    groups: dict[tuple[Any, ...], list[str]] = {}
    for (near, far), up in loads.items():
        alike = (near in roots) == (far in roots)
        if near < far if alike else far in roots:
            groups.setdefault((far, up, loads.get((far, near))), []).append(near)
    grid = table("Router", "~Links from", ">Up", ">Used", ">Down", ">Used")
    for (far, up, down), names in sorted(groups.items(), key=lambda item: (item[0][0], item[1])):
        grid.add_row(far, plural_list(names, _SHOWN), *_load(up), *_load(down))
    emit(out, grid)


def _load(link: tuple[float, float | None] | None) -> tuple[str, Text]:
    if link is None:
        return human.DASH, Text(human.DASH)
    load, capacity = link
    used = load / capacity if capacity else 0.0
    return human.bandwidth(load), Text(human.share(used), style="yellow" if used > 0.999 else "")


def _name(router: Json) -> str:
    return human.router(router["router"], router["hostname"])
