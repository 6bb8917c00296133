"""The table of the whole fabric: its routers by tier, and links that are unusual."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import Json, Renderer, count, emit, heading, table

_STYLES = {"sick": "red", "one-way": "red", "drained": "yellow", "reduced": "yellow"}
_PLURALS = {"leaf": "leaves", "spine": "spines", "super-spine": "super-spines", None: "routers"}


def _fabric(document: Json, out: Console, _now: float) -> None:
    nodes = document["nodes"]
    if not nodes:
        out.print(Text("no router is known yet", style="dim"))
        return
    names = {node["id"]: human.router(node["id"], node["hostname"]) for node in nodes}
    ordered = sorted(nodes, key=_place)
    for index, (role, group) in enumerate(groupby(ordered, key=lambda node: node["role"])):
        routers = list(group)
        heading(out, f"{len(routers)} {_PLURALS[role]}", first=index == 0)
        places = [key for key in ("pod", "plane") if any(node[key] is not None for node in routers)]
        heads = [f">{key.capitalize()}" for key in places]
        grid = table("Router", "Id", *heads, ">Neighbors", ">Prefixes", "")
        for node in routers:
            grid.add_row(
                names[node["id"]],
                node["id"],
                *(_number(node[key]) for key in places),
                str(len(node["links"]["to"])),
                str(node["prefixes"]),
                _remark(node),
            )
        emit(out, grid)
    out.print()
    _marks(document, names, out)


def _place(node: Json) -> tuple[bool, int, int, int, list[tuple[bool, int, str]]]:
    tier = node["tier"]
    named = human.ordering(human.router(node["id"], node["hostname"]))
    return tier is None, -(tier or 0), node["pod"] or 0, node["plane"] or 0, named


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _remark(node: Json) -> str:
    here = "this router" if node["here"] else ""
    return ", ".join(filter(None, (here, human.kind(node))))


def _marks(document: Json, names: dict[str, str], out: Console) -> None:
    """Print the links that are unusual."""
    found = [
        (names[node["id"]], names.get(mark["to"], mark["to"]), mark)
        for node in document["nodes"]
        for mark in node["links"]["marks"]
    ]
    links = sum(len(node["links"]["to"]) for node in document["nodes"])
    if not found:
        out.print(f"{count(links, 'direction')} of links, all as usual")
        return
    grid = table("From", "To", "State", "Reason")
    for tail, head, mark in found:
        state = mark["state"]
        grid.add_row(tail, head, Text(state, style=_STYLES.get(state, "")), mark["reason"])
    emit(out, grid)


RENDERERS: dict[str, Renderer] = {"fared-fabric/1": _fabric}
