"""The page at ``/``: how this router is, in one look. No scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from html import escape
from typing import Any

from fared.api import human
from fared.api.control import CommandError

Json = dict[str, Any]
Fetch = Callable[[str, Json], Awaitable[Json]]

_REFRESH = 5
_MAX_VECTORS = 50
_STYLE = """
:root{color-scheme:light dark;--line:#8883;--dim:#888;--good:#1a7f37;--bad:#cf222e;--bar:#3b82f6}
body{font:15px/1.5 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .4rem}
p{color:var(--dim);margin:.2rem 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:500;color:var(--dim);font-size:.85rem}
td,th{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
.n{text-align:right}.good{color:var(--good)}.bad{color:var(--bad)}
.tag{border:1px solid;border-radius:1rem;padding:.05rem .6rem;font-size:.8rem;margin-left:.6rem}
.bar{display:inline-block;height:.55rem;border-radius:.2rem;background:var(--bar)}
dl{display:flex;flex-wrap:wrap;gap:.4rem 2.2rem;margin:1rem 0}dt{color:var(--dim);font-size:.85rem}
dd{margin:0;font-size:1.1rem}footer{margin:2.5rem 0;color:var(--dim);font-size:.85rem}
a{color:inherit}
"""


async def render_page(fetch: Fetch) -> bytes:
    """Compose the page from the JSON documents that ``fetch`` gives."""
    status = await fetch("status", {})
    sections = [
        await _section(fetch, "neighbors", _neighbors),
        await _section(fetch, "interfaces", _interfaces),
        await _section(fetch, "weights", _weights),
    ]
    title = escape(f"{status['hostname']} · fared")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="refresh" content="{_REFRESH}"><style>{_STYLE}</style></head><body>
{_header(status)}{"".join(sections)}
<footer><a href="/metrics">metrics</a> · <a href="/api/v1/">documents</a> ·
fared {escape(status["version"])}</footer></body></html>
""".encode()


async def _section(fetch: Fetch, name: str, render: Callable[[Json], str]) -> str:
    try:
        return render(await fetch(name, {}))
    except CommandError as error:
        return f"<h2>{escape(name.capitalize())}</h2><p>{escape(error.message)}</p>"


def _header(status: Json) -> str:
    ready = status["ready"]
    tags = _tag("ready", "good") if ready else _tag(status["stage"], "bad")
    if status["drained"]:
        tags += _tag("drained", "bad")
    facts = [
        *_identity(status),
        ("Up", human.duration(status["uptime"])),
        *_adjacencies(status),
        ("Routes", f"{status['routes']['total']}"),
        ("Unequal weights", f"{status['routes']['weighted']}"),
        ("Groups in the kernel", f"{status['fib']['groups']}"),
        ("Last SPF", human.duration(status["spf"]["last_duration"])),
    ]
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    return f"<h1>{escape(status['hostname'])}{tags}</h1><dl>{items}</dl>"


def _identity(status: Json) -> list[tuple[str, str]]:
    facts = [("Router id", status["router_id"])] if status["ospf"] else []
    if status["isis"]:
        facts.append(("System id", status["isis"]["system_id"]))
    return facts


def _adjacencies(status: Json) -> list[tuple[str, str]]:
    """How many neighbors are as near as they should be; an adjacency counts in each level."""
    facts = []
    if status["ospf"]:
        areas = status["ospf"]["areas"]
        full, heard = (sum(area[key] for area in areas) for key in ("full", "neighbors"))
        facts.append(("Neighbors full", f"{full} of {heard}"))
    if status["isis"]:
        for level in status["isis"]["levels"]:
            name = level["level"].capitalize()
            facts.append((f"{name} adjacencies", f"{level['up']} of {level['neighbors']}"))
    return facts


def _tag(text: str, kind: str) -> str:
    return f'<span class="tag {kind}">{escape(text)}</span>'


def _table(title: str, columns: list[str], rows: Iterable[list[str]]) -> str:
    """Make a table; a column named with a leading ``>`` is aligned right. Cells are HTML."""
    marks = [' class="n"' if column.startswith(">") else "" for column in columns]
    pairs = zip(columns, marks, strict=True)
    head = "".join(f"<th{mark}>{escape(name.lstrip('>'))}</th>" for name, mark in pairs)
    body = "".join(
        "<tr>"
        + "".join(f"<td{m}>{cell}</td>" for cell, m in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows
    )
    if not body:
        return f"<h2>{escape(title)}</h2><p>none</p>"
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _protocols(entries: list[Json]) -> dict[str, str]:
    """How protocols are called where several run, else nothing: then it goes without saying."""
    known = {"ospf": "OSPF", "isis": "IS-IS"}
    return known if len({entry["proto"] for entry in entries}) > 1 else {}


def _neighbors(document: Json) -> str:
    entries = document["neighbors"]
    names = _protocols(entries)
    rows = (
        [
            escape(human.router(n["router_id"], n["hostname"])),
            *([names[n["proto"]]] if names else []),
            escape(n["area"]),
            escape(n["interface"]),
            escape(n["address"] or human.DASH),
            f'<span class="{_mark(n["state"])}">{escape(n["state"])}</span>',
            human.duration(n["uptime"]),
        ]
        for n in entries
    )
    protocol = ["Protocol"] if names else []
    columns = ["Neighbor", *protocol, "Area", "Interface", "Address", "State", ">For"]
    return _table("Neighbors", columns, rows)


def _mark(state: str) -> str:
    return "good" if state in ("Full", "Up") else "bad"


def _interfaces(document: Json) -> str:
    entries = document["interfaces"]
    names = _protocols(entries)
    rows = (
        [
            escape(i["interface"]),
            *([names[i["proto"]]] if names else []),
            escape(i["area"]),
            escape(i["state"]),
            str(i["cost"]),
            human.bandwidth(i["bandwidth"]),
            human.bandwidth(i["utilized"]),
            _load_bar(i["utilized"], i["bandwidth"]),
        ]
        for i in entries
    )
    protocol = ["Protocol"] if names else []
    columns = ["Interface", *protocol, "Area", "State", ">Cost", ">Capacity", ">Load", ""]
    return _table("Interfaces", columns, rows)


def _weights(document: Json) -> str:
    vectors = document["vectors"]
    rows = []
    for vector in vectors[:_MAX_VECTORS]:
        routes = escape(", ".join(vector["examples"]))
        if vector["prefixes"] > len(vector["examples"]):
            routes += f" and {vector['prefixes'] - len(vector['examples'])} more"
        for index, member in enumerate(vector["members"]):
            via = human.router(member["neighbor"], member["hostname"])
            rows.append(
                [
                    "" if index else routes,
                    escape(f"{via} ({member['interface']})"),
                    human.bandwidth(member["capacity"]),
                    str(member["weight"]),
                    human.share(member["share"]),
                    _bar(member["share"]),
                ]
            )
    columns = ["Routes", "Next hop", ">Path capacity", ">Weight", ">Share", ""]
    return _table("Weights", columns, rows)


def _load_bar(load: float | None, capacity: float | None) -> str:
    return _bar(load / capacity) if load is not None and capacity else ""


def _bar(ratio: float) -> str:
    return f'<span class="bar" style="width:{min(1.0, max(0.0, ratio)) * 8:.2f}rem"></span>'
