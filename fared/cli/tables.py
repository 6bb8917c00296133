"""Documents as tables for people; the only module of the tool that loads rich.

Each renderer takes one document of ``fared.api.schema`` and prints it so that it reads well in
80 columns. Cells are ``Text``: what a neighbor calls itself is never taken for markup.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fared.api import human

Json = dict[str, Any]
Cell = str | Text
Renderer = Callable[[Json, Console, float], None]

ROUTE_TYPES = {
    "intra-area": "intra",
    "inter-area": "inter",
    "external-1": "E1",
    "external-2": "E2",
    "level-1": "L1",
    "level-2": "L2",
}
_PROTOCOLS = {"ospf": "OSPF", "isis": "IS-IS"}
_UNBOUNDED = 1000
_LEVEL_STYLES = {"error": "red", "warning": "yellow", "info": "", "debug": "dim"}


def console(width: int | None = None) -> Console:
    """Make a console for stdout that adds nothing of its own to the text.

    With NO_COLOR not even bold: whoever sets it wants plain text.
    """
    return Console(
        width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


def table(*columns: str) -> Table:
    """Make a table; ``>`` before a column's name aligns it right, ``~`` lets it wrap."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        name = column.lstrip(">~")
        grid.add_column(
            name,
            justify="right" if column.startswith(">") else "left",
            no_wrap=not column.startswith("~"),
            overflow="fold",
        )
    return grid


def emit(out: Console, grid: Table) -> None:
    """Print a table; where the terminal is too narrow lines run over, but no value is cut."""
    if not grid.row_count:
        out.print(Text("none", style="dim"))
        return
    for column in grid.columns:
        if column.no_wrap:
            cells = (cell.plain if isinstance(cell, Text) else str(cell) for cell in column.cells)
            column.min_width = max(map(cell_len, (*cells, str(column.header))))
    width = out.width
    try:
        unbounded = out.options.update(width=_UNBOUNDED)
        out.width = max(width, Measurement.get(out, unbounded, grid).minimum)
        out.print(grid, crop=False)
    finally:
        out.width = width


def heading(out: Console, text: str, *, first: bool = False) -> None:
    """Print a line in bold with room above."""
    if not first:
        out.print()
    out.print(Text(text, style="bold"))


def by_protocol(entries: list[Json], out: Console) -> Iterator[tuple[str, list[Json]]]:
    """Entries of each protocol, under its name where there are several."""
    found: dict[str, list[Json]] = {}
    for entry in entries:
        found.setdefault(entry["proto"], []).append(entry)
    for index, (proto, members) in enumerate(found.items()):
        if len(found) > 1:
            heading(out, _PROTOCOLS.get(proto, proto), first=index == 0)
        yield proto, members
    if not found:
        out.print("none")


def facts(out: Console, rows: Iterable[tuple[str, Cell]]) -> None:
    """Print names and values in two columns."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    out.print(grid)


def styled(text: str, *, good: bool, bad: str = "red") -> Text:
    """Colour a word by whether it is what one hopes for."""
    return Text(text, style="green" if good else bad)


def count(number: int, noun: str) -> str:
    """Write ``1 route``, ``2 routes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def area_title(area: str) -> str:
    """Write ``Area 0.0.0.0`` or ``Level 1``."""
    return area.replace("level-", "Level ") if area.startswith("level-") else f"Area {area}"


def plural_list(items: list[str], limit: int) -> str:
    """Join items, the rest of a long list as a number."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"


def plain(value: object) -> str:
    """Write a value of a document in one line."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def gateway(hop: Json) -> str:
    """Write the address of a next hop."""
    return hop["address"] or "direct"


# -- status ----------------------------------------------------------------------------------


def _status(document: Json, out: Console, now: float) -> None:
    """Identity, start-up and sums."""
    state = styled("ready" if document["ready"] else document["stage"], good=document["ready"])
    if document["drained"]:
        state.append(", drained", style="yellow")
    routes, fib, spf = document["routes"], document["fib"], document["spf"]
    reload_ok = document["config"]["last_reload_ok"]
    rows: list[tuple[str, Cell]] = [
        ("Router", f"{document['hostname']} ({_identity(document)})"),
        ("State", state),
        ("Version", f"fared {document['version']}, process {document['pid']}"),
        ("Up", human.duration(document["uptime"])),
        ("Start-up", _stages(document["stages"])),
        *_sysctls(document.get("sysctls", [])),
        ("Weights", document["weights"]),
        ("Routes", _routes_line(routes)),
        ("Kernel", _fib_line(fib)),
        ("SPF", _spf_line(spf, now)),
        ("Loop lag", human.duration(document["event_loop_lag"])),
        ("Configuration", document["config"]["file"]),
    ]
    if reload_ok is False:
        error = document["config"]["last_reload_error"] or "no reason given"
        rows.append(("Last reload", Text(f"refused: {error}", style="red")))
    facts(out, rows)
    if document["ospf"] is not None:
        out.print()
        _areas(document["ospf"], out)
    if isis := document.get("isis"):
        out.print()
        _levels(isis, out)


def _identity(document: Json) -> str:
    isis = document.get("isis")
    if isis is None or document["router_id"] == isis["system_id"]:
        return str(document["router_id"])
    return f"{document['router_id']}, {isis['system_id']}"


def _routes_line(routes: Json) -> str:
    kinds = ["connected", "redistributed", "weighted"]
    if not routes.get("redistributed"):
        kinds.remove("redistributed")
    return ", ".join([str(routes["total"]), *(f"{routes[kind]} {kind}" for kind in kinds)])


def _fib_line(fib: Json) -> str:
    objects = (("routes", "route"), ("groups", "group"), ("nexthops", "next hop"))
    held = ", ".join(count(fib[key], noun) for key, noun in objects)
    return f"{held}; {count(fib['drift'], 'repair')}"


def _stages(stages: list[Json]) -> str:
    """The last stage reached; ``show convergence`` has them all."""
    if not stages:
        return "-"
    return f"{stages[-1]['stage']} after {human.duration(stages[-1]['seconds'])}"


def _sysctls(rows: list[Json]) -> Iterable[tuple[str, Cell]]:
    """The kernel settings that weights depend on: their number where right, else each."""
    if not rows:
        return
    wrong = [row for row in rows if not row["ok"]]
    changed = sum(row["action"] == "set" for row in rows)
    if not wrong:
        yield "Sysctls", f"{len(rows)} right, {changed} of them set at start"
    for row in wrong:
        found = "missing" if row["found"] is None else row["found"]
        text = f"{row['name']} is {found}, not {row['wanted']}: {row['why']}"
        yield "Sysctl", Text(text, style="red")


def _spf_line(spf: Json, now: float) -> str:
    if spf["last_at"] is None:
        return "never ran"
    return (
        f"{count(spf['runs'], 'run')}, the last {human.duration(now - spf['last_at'])} ago "
        f"in {human.duration(spf['last_duration'])}, {spf['backoff']}"
    )


def _areas(ospf: Json, out: Console) -> None:
    grid = table("Area", "Type", ">Interfaces", ">Neighbors", ">Full", ">LSAs", "Checksum")
    for area in ospf["areas"]:
        full = styled(str(area["full"]), good=area["full"] == area["neighbors"], bad="yellow")
        grid.add_row(
            area["area"],
            area["type"],
            str(area["interfaces"]),
            str(area["neighbors"]),
            full,
            str(area["lsas"]),
            area["checksum"],
        )
    emit(out, grid)
    _flooding(ospf, out)


def _levels(isis: Json, out: Console) -> None:
    grid = table("Level", "~Areas", ">Interfaces", ">Adjacencies", ">Up", ">LSPs", "Checksum")
    for level in isis["levels"]:
        up = styled(str(level["up"]), good=level["up"] == level["neighbors"], bad="yellow")
        grid.add_row(
            level["level"],
            ", ".join(isis["areas"]),
            str(level["interfaces"]),
            str(level["neighbors"]),
            up,
            str(level["lsps"]),
            level["checksum"],
        )
    emit(out, grid)
    bits = [name for name in ("overloaded", "attached") if isis[name]]
    if bits:
        out.print(Text(f"our LSPs say: {', '.join(bits)}", style="yellow"))
    _flooding(isis, out)


def _flooding(protocol: Json, out: Console) -> None:
    """A line only where it is not the usual way."""
    flooding = protocol["flooding"]
    if flooding["reduction"] != "none":
        how = f"floods as a {flooding['reduction']}: what one neighbor sent, to others within "
        out.print(how + human.duration(flooding["delay"]), highlight=False)


# -- timers, counters, logs, configuration ---------------------------------------------------


def _timers(document: Json, out: Console, _now: float) -> None:
    """Whose timer it is stands there where several protocols run."""
    protos = {timer["proto"] for timer in document["timers"]} - {None}
    shown = ("Proto",) if len(protos) > 1 else ()
    grid = table(">Due in", *shown, "Timer", "~About")
    for timer in document["timers"]:
        whose = (_PROTOCOLS.get(timer["proto"], human.DASH),) if shown else ()
        grid.add_row(human.duration(timer["due_in"]), *whose, timer["timer"], timer["subject"])
    emit(out, grid)


def _counters(document: Json, out: Console, _now: float) -> None:
    grid = table("Group", "~Counter", ">Count")
    group = None
    for entry in document["counters"]:
        shown = "" if entry["group"] == group else entry["group"]
        group = entry["group"]
        grid.add_row(shown, entry["name"], f"{entry['value']}")
    emit(out, grid)


def _log(document: Json, out: Console, _now: float) -> None:
    for line in document["lines"]:
        when = time.strftime("%b %d %H:%M:%S", time.localtime(line["time"]))
        text = Text(f"{when} ", style="dim")
        text.append(f"{line['level']:<7} ", style=_LEVEL_STYLES.get(line["level"], ""))
        text.append(str(line["event"]), style="bold")
        for key, value in line["fields"].items():
            text.append(f" {key}=", style="dim")
            text.append(plain(value), style="")
        out.print(text, soft_wrap=True)


def _config(document: Json, out: Console, _now: float) -> None:
    import yaml  # noqa: PLC0415 - for this table only

    out.print(Text(f"# {document['file']}, with all defaults", style="dim"))
    text = yaml.safe_dump(document["config"], sort_keys=False, default_flow_style=False)
    out.print(Text(text.rstrip()), soft_wrap=True)


def _config_diff(document: Json, out: Console, _now: float) -> None:
    if not document["changes"]:
        out.print("no differences")
        return
    for change in document["changes"]:
        text = Text(change["path"], style="bold")
        before, after = _value(change["old"]), _value(change["new"])
        text.append(f": {before} -> {after}", style="")
        harmless = change["action"] == "update-in-place"
        text.append(f"  [{change['action']}]", style="green" if harmless else "yellow")
        out.print(text, soft_wrap=True)


def _value(value: object) -> str:
    return "(none)" if value is None else json.dumps(value)


def _reload(document: Json, out: Console, now: float) -> None:
    for error in document["errors"]:
        out.print(Text(error, style="red"), soft_wrap=True)
    out.print(styled("applied" if document["applied"] else "refused", good=document["applied"]))
    if document["changes"]:
        _config_diff(document, out, now)


def _validate(document: Json, out: Console, _now: float) -> None:
    grid = table("", "Check", "~Found")
    for check in document["checks"]:
        mark = styled("PASS" if check["ok"] else "FAIL", good=check["ok"])
        grid.add_row(mark, check["name"], check["detail"])
    emit(out, grid)


def _drain(document: Json, out: Console, _now: float) -> None:
    out.print("drained: others route around" if document["drained"] else "in transit")


def write(document: Json, out: Console, now: float) -> None:
    """Print any document; an unknown format comes out as JSON. ``now`` is Unix time."""
    from fared.cli import (  # noqa: PLC0415 - they build on this module
        database_tables,
        interface_tables,
        path_tables,
    )

    renderers: dict[str, Renderer] = {
        "fared-status/1": _status,
        "fared-timers/1": _timers,
        "fared-counters/1": _counters,
        "fared-log/1": _log,
        "fared-config/1": _config,
        "fared-config-diff/1": _config_diff,
        "fared-reload/1": _reload,
        "fared-validate/1": _validate,
        "fared-drain/1": _drain,
        **database_tables.RENDERERS,
        **interface_tables.RENDERERS,
        **path_tables.RENDERERS,
    }
    renderer = renderers.get(document.get("format", ""))
    if renderer is None:
        out.print(json.dumps(document, indent=2), soft_wrap=True)
        return
    renderer(document, out, now)
