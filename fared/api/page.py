"""The page at ``/``: the state of this router. No scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from html import escape
from types import MappingProxyType
from typing import Any

from fared.api import human
from fared.api.errors import CommandError

Json = dict[str, Any]
Fact = tuple[str, str]
"""Name and value."""
Facts = Mapping[str, Callable[[Json], Iterator[Fact]]]
"""Functions by protocol that yield the facts of its status."""
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
    """Compose the page from the JSON documents that ``fetch`` returns."""
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
        *_of_protocols(_IDENTITY, status),
        ("Up", human.duration(status["uptime"])),
        *_of_protocols(_ADJACENCIES, status),
        ("Routes", f"{status['routes']['total']}"),
        ("Unequal weights", f"{status['routes']['weighted']}"),
        ("Groups in the kernel", f"{status['fib']['groups']}"),
        ("Last SPF", human.duration(status["spf"]["last_duration"])),
    ]
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    return f"<h1>{escape(status['hostname'])}{tags}</h1><dl>{items}</dl>"


def _router_id(status: Json) -> Iterator[Fact]:
    yield "Router id", status["router_id"]


def _system_id(status: Json) -> Iterator[Fact]:
    yield "System id", status["isis"]["system_id"]


def _neighbors_full(status: Json) -> Iterator[Fact]:
    areas = status["ospf"]["areas"]
    full, heard = (sum(area[key] for area in areas) for key in ("full", "neighbors"))
    yield "Neighbors full", f"{full} of {heard}"


def _adjacencies_up(status: Json) -> Iterator[Fact]:
    """An adjacency counts in each level."""
    for level in status["isis"]["levels"]:
        name = level["level"].capitalize()
        yield f"{name} adjacencies", f"{level['up']} of {level['neighbors']}"


_IDENTITY: Facts = MappingProxyType({"ospf": _router_id, "isis": _system_id})
_ADJACENCIES: Facts = MappingProxyType({"ospf": _neighbors_full, "isis": _adjacencies_up})
"""By protocol: how many neighbors are full, or adjacencies up."""


def _of_protocols(facts: Facts, status: Json) -> Iterator[Fact]:
    """Yield the facts of the protocols that run."""
    for proto, of_protocol in facts.items():
        if status[proto]:
            yield from of_protocol(status)


def _tag(text: str, kind: str) -> str:
    return f'<span class="tag {kind}">{escape(text)}</span>'


class _Html(str):
    """Text that is HTML already; all other text in a table is escaped."""

    __slots__ = ()


def _cell(text: str) -> str:
    return text if isinstance(text, _Html) else escape(text)


def _table(title: str, columns: list[str], rows: Iterable[list[str]]) -> str:
    """Make a table; a column named with a leading ``>`` is aligned right."""
    marks = [' class="n"' if column.startswith(">") else "" for column in columns]
    pairs = zip(columns, marks, strict=True)
    head = "".join(f"<th{mark}>{escape(name.lstrip('>'))}</th>" for name, mark in pairs)
    body = "".join(
        "<tr>"
        + "".join(f"<td{m}>{_cell(cell)}</td>" for cell, m in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows
    )
    if not body:
        return f"<h2>{escape(title)}</h2><p>none</p>"
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _protocols(entries: list[Json]) -> dict[str, str]:
    """Return the names of protocols if several run, else nothing."""
    return human.PROTOCOLS if len({entry["proto"] for entry in entries}) > 1 else {}


def _neighbors(document: Json) -> str:
    entries = document["neighbors"]
    names = _protocols(entries)
    rows = (
        [
            human.router(n["router_id"], n["hostname"]),
            *([names[n["proto"]]] if names else []),
            n["area"],
            n["interface"],
            n["address"] or human.DASH,
            _Html(f'<span class="{_mark(n["state"])}">{escape(n["state"])}</span>'),
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
            i["interface"],
            *([names[i["proto"]]] if names else []),
            i["area"],
            i["state"],
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
        routes = ", ".join(vector["examples"])
        if vector["prefixes"] > len(vector["examples"]):
            routes += f" and {vector['prefixes'] - len(vector['examples'])} more"
        for index, member in enumerate(vector["members"]):
            via = human.router(member["neighbor"], member["hostname"])
            rows.append(
                [
                    "" if index else routes,
                    f"{via} ({member['interface']})",
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


def _bar(ratio: float) -> _Html:
    width = min(1.0, max(0.0, ratio)) * 8
    return _Html(f'<span class="bar" style="width:{width:.2f}rem"></span>')
