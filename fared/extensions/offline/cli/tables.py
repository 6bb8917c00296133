"""Output of ``spf`` as tables: those of ``show routes`` and ``explain``, and of differences."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from fared.management.cli.tables import write
from fared.management.documents import human
from fared.management.documents.paper import console, count, emit, heading, table

Json = dict[str, Any]
_PREFIXES_SHOWN = 4
_ARROW = " -> "
_PIPE_WIDTH = 160


def write_offline(document: Json, out: Console) -> None:
    """Print a document of ``spf``."""
    kind = document["format"]
    if kind == "fared-routes-all/1":
        _all(document, out)
    elif kind == "fared-routes-diff/1":
        _assumed(document, out)
        _difference(document, out)
        _ignored(document, out)
    else:
        write(_named(document), out, 0.0)
        _ignored(document, out)


def _all(document: Json, out: Console) -> None:
    entries = document["roots"]
    differences = [entry for entry in entries if entry["format"] == "fared-routes-diff/1"]
    if differences:
        _assumed(differences[0], out)
    shown = [entry for entry in entries if entry["routes"] or not differences]
    for index, entry in enumerate(shown):
        if differences:
            _difference(entry, out, first=index == 0)
        else:
            heading(out, f"From {_root(entry)}", first=index == 0)
            write(_named(entry), out, 0.0)
    if len(shown) < len(entries):
        others = count(len(entries) - len(shown), "other router" if shown else "router")
        heading(out, f"Nothing changes on {others}", first=not shown)
    everywhere: dict[tuple[str, str], int] = {}
    for entry in entries:
        for item in entry["ignored"]:
            key = (item["key"], item["reason"])
            everywhere[key] = everywhere.get(key, 0) + 1
    rows = [
        (key, reason if seen == len(entries) else f"{reason} from {count(seen, 'root')}")
        for (key, reason), seen in everywhere.items()
    ]
    _ignored_rows(rows, out)


def _assumed(document: Json, out: Console) -> None:
    out.print(Text(f"What if: {', '.join(document['changes'])}\n", style="dim"))


def _root(document: Json) -> str:
    root: str = document["root"]
    name = next((n["hostname"] for n in document["nodes"] if n["id"] == root), None)
    return f"{name} ({root})" if name else root


def _named(document: Json) -> Json:
    """Return a document in which next hops without an interface have the neighbor's name."""
    shown = dict(document)
    if "routes" in shown:
        shown["routes"] = [_named(route) for route in shown["routes"]]
    for parts in ("bfers", "bifts"):
        if parts in shown:
            shown[parts] = [_named(part) for part in shown[parts]]
    if "masks" in shown:
        shown["masks"] = [{**mask, "interface": _via(mask)} for mask in shown["masks"]]
    if "nexthops" in shown:
        shown["nexthops"] = [{**hop, "interface": _via(hop)} for hop in shown["nexthops"]]
    return shown


def _via(hop: Json) -> str:
    via: str = hop["interface"] or human.router(hop["neighbor"], hop["hostname"])
    return via


def _ignored(document: Json, out: Console) -> None:
    _ignored_rows([(i["key"], i["reason"]) for i in document.get("ignored", ())], out)


def _ignored_rows(rows: list[tuple[str, str]], out: Console) -> None:
    if not rows:
        return
    heading(out, "Ignored")
    grid = table("What", "Why")
    for key, reason in rows:
        grid.add_row(key, Text(reason, style="yellow"))
    emit(out, grid)


# -- differences -----------------------------------------------------------------------------


def _difference(document: Json, out: Console, *, first: bool = True) -> None:
    """Print routes with equal changes once, with all their prefixes."""
    changed = len(document["routes"])
    total = changed + document["unchanged"]
    title = f"{_root(document)}: {changed} of {count(total, 'route')} change"
    heading(out, title, first=first)
    groups: dict[str, list[Json]] = {}
    for route in document["routes"]:
        groups.setdefault(_likeness(route), []).append(route)
    for routes in groups.values():
        _group(routes, out)


def _likeness(route: Json) -> str:
    hops = [
        tuple(hop[name] for name in ("interface", "address", "neighbor"))
        + tuple(hop[when] and hop[when]["weight"] for when in ("before", "after"))
        for hop in route["nexthops"]
    ]
    return repr((_metrics(route), hops))


def _group(routes: list[Json], out: Console) -> None:
    prefixes = [route["prefix"] for route in routes]
    more = len(prefixes) - _PREFIXES_SHOWN
    out.print()
    line = Text(", ".join(prefixes[:_PREFIXES_SHOWN]) + (f" and {more} more" if more > 0 else ""))
    line.append(f"  {_metrics(routes[0])}", style="dim")
    out.print(line)
    if routes[0]["after"] is None or not routes[0]["nexthops"]:
        return
    grid = table("", "Next hop", "Via", ">Weight", ">Share", ">Path")
    for hop in routes[0]["nexthops"]:
        mark, style = _mark(hop)
        grid.add_row(
            mark,
            hop["address"] or "direct",
            _via(hop),
            _both(hop, lambda part: str(part["weight"])),
            _both(hop, lambda part: human.share(part["share"])),
            _both(hop, lambda part: human.bandwidth(part["capacity"])),
            style=style,
        )
    emit(out, grid)


def _metrics(route: Json) -> str:
    before, after = route["before"], route["after"]
    if after is None:
        return "lost"
    if before is None:
        return f"new, metric {after['metric']}"
    kinds = [_kind(before), _kind(after)]
    metric = _change(str(before["metric"]), str(after["metric"]))
    return f"metric {metric}" + (f", {_ARROW.join(kinds)}" if kinds[0] != kinds[1] else "")


def _kind(part: Json) -> str:
    local = part["connected"] and not part["type"].startswith("external")
    return "connected" if local else str(part["type"])


def _mark(hop: Json) -> tuple[str, str]:
    if hop["before"] is None:
        return "+", "green"
    if hop["after"] is None:
        return "-", "red"
    same = all(hop["before"][name] == hop["after"][name] for name in ("weight", "share"))
    return ("", "dim") if same else ("~", "yellow")


def _both(hop: Json, show: Any) -> str:  # noqa: ANN401 - a small function of one part
    parts = [show(hop[when]) for when in ("before", "after") if hop[when] is not None]
    return _change(parts[0], parts[-1])


def _change(old: str, new: str) -> str:
    return old if old == new else f"{old}{_ARROW}{new}"


def render(document: Json) -> str:
    """Format a document as tables, as wide as the terminal, with colours only there."""
    target = console(None if sys.stdout.isatty() else _PIPE_WIDTH)
    with target.capture() as captured:
        write_offline(document, target)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
