"""A report as one HTML file: the conclusion, the fabric with the worst failure, then the tables.

The pictures are inline SVG (``picture``), so that the file needs nothing else; colors and font are
those of the daemon's page.
"""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from fared.extensions.offline.plan.conclusion import conclusions
from fared.extensions.offline.plan.document import Planned
from fared.extensions.offline.plan.picture import Marked, drawn
from fared.management.documents import human

Json = dict[str, Any]
_MARGIN, _BAR, _HEIGHT = 60, 26, 150
_MOST_PAIRS = 10
_FEW_BARS = 2
"""A distribution over so few parts is said by the table above it."""
_KEY = (
    "Red: what fails. Green: the pair that loses most. Blue: the shortest paths between them while"
    " nothing fails."
)
_STYLE = """
body { font: 15px/1.55 var(--font); font-variant-numeric: tabular-nums; color: var(--ink);
  background: var(--ground); margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.5rem; letter-spacing: -.02em; margin: 0 }
h2 { font-size: 1.1rem; letter-spacing: -.01em; margin: 0 0 .6rem }
h3 { font-size: .85rem; color: var(--dim); margin: 1.2rem 0 .3rem }
p { margin: .3rem 0 .6rem } .dim { color: var(--dim) }
section { background: var(--surface); border: 1px solid var(--line); border-radius: 10px;
  padding: 1rem 1.2rem; margin-top: 1rem }
ul.said { list-style: none; padding: 0; margin: 0; font-size: 1.05rem }
ul.said li { padding: .25rem 0 .25rem 1.5rem; position: relative }
ul.said li::before { content: ""; position: absolute; left: 0; top: .72rem; width: .6rem;
  height: .6rem; border-radius: 50%; background: var(--dim) }
ul.said li.good::before { background: var(--good) }
ul.said li.bad::before { background: var(--bad) }
ul.said li.bad { font-weight: 600 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem; min-width: 60% }
td, th { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top }
tr:last-child td { border-bottom: 0 } th { font-weight: 500; color: var(--dim); font-size: .8rem }
td.n, th.n { text-align: right } td.bad, .bad { color: var(--bad) } .good { color: var(--good) }
svg { max-width: 100%; min-width: 34rem; height: auto; display: block }
svg text { font: 11px var(--font); fill: var(--ink) }
line { stroke: var(--line) } line.pair { stroke: var(--load1); stroke-width: 2 }
line.failed { stroke: var(--bad); stroke-width: 3; stroke-dasharray: 2 5; stroke-linecap: round }
circle { fill: var(--spine) } circle.end { fill: var(--good) } circle.failed { fill: var(--bad) }
rect { fill: var(--load1) } summary { cursor: pointer; color: var(--dim); margin-top: .8rem }
"""
_TOKENS_END = "* {"


def plan_page(document: Json, plan: Planned, at: float) -> str:
    """Return the page of a report that was made ``at`` (Unix time)."""
    parts = [
        _head(document, at),
        _section("", _said(document)),
        *_picture(document, plan),
        _section("Worst failures", _worst(document["worst"])),
        _section(
            "What remains between the worst pair",
            _sets(document["sets"]) + "".join(map(_distribution, document["sets"])),
        ),
        *_traffic(document),
        _section("Single points of failure", _names(document["single_points"])),
        _section(
            "Links whose failure takes no capacity from any pair",
            _names(document["never_matter"]),
        ),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What failures leave</title><style>{_tokens()}{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _tokens() -> str:
    """Return the colors and the font of the daemon's page, light and dark."""
    style = files("fared.management.api").joinpath("static/page.css").read_text(encoding="utf-8")
    return style.partition(_TOKENS_END)[0]


def _head(document: Json, at: float) -> str:
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    changed = document["changes"]
    what = f"<p>What if: {_text(', '.join(changed))}</p>" if changed else ""
    return f'<h1>What failures leave</h1><p class="dim">{_summary(document)}; {made}</p>{what}'


def _said(document: Json) -> str:
    """The conclusion, with the bounds that were required first."""
    lines = [*_bounds(document["required"])]
    lines += [(said.kind, said.text) for said in conclusions(document)]
    items = "".join(f'<li class="{kind}">{_text(text)}</li>' for kind, text in lines)
    return f'<ul class="said">{items}</ul>'


def _section(title: str, content: str) -> str:
    heading = f"<h2>{_text(title)}</h2>" if title else ""
    return f"<section>{heading}{content}</section>"


def _text(value: object) -> str:
    return html.escape(str(value))


def _summary(document: Json) -> str:
    healthy = document["healthy"]
    drained = f"; drained: {_text(', '.join(document['drained']))}" if document["drained"] else ""
    return (
        f"{document['routers']:,} routers, {document['links']:,} links; capacity between "
        f"{len(document['ends']):,} routers, {_between(healthy)} without failures{drained}"
    )


def _between(healthy: Json) -> str:
    least, most = human.bandwidth(healthy["least"]), human.bandwidth(healthy["most"])
    return least if least == most else f"{least} to {most}"


def _bounds(bounds: Iterable[Json]) -> Iterator[tuple[str, str]]:
    for bound in bounds:
        kind, words = ("good", "holds") if bound["met"] else ("bad", "is broken")
        yield kind, f"{bound['bound']} {words}: {bound['found']}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], text: int) -> str:
    """A table whose first ``text`` columns are text, the others numbers."""

    def line(cells: Sequence[object], tag: str) -> str:
        kinds = ("" if at < text else ' class="n"' for at in range(len(cells)))
        joined = (f"<{tag}{k}>{_text(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(joined)}</tr>"

    lines = "".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table>{line(head, "th")}{lines}</table></div>'


def _sets(sets: Iterable[Json]) -> str:
    head = ("Set", "Failures", "At worst", "On average", "All pairs", "Cut a pair", "No effect")
    rows = [
        (
            one["set"] + (f" ({one['alias']})" if one["alias"] else ""),
            f"{one['failures']:,}",
            *(human.share(one[name]) for name in ("left", "mean_left", "mean")),
            f"{one['cut']:,}",
            f"{one['harmless']:,}",
        )
        for one in sets
    ]
    return _table(head, rows, 1)


def _traffic(document: Json) -> list[str]:
    traffic = document["traffic"]
    if traffic is None:
        return []
    head = ("Set", "Worst failure", "Busiest link", "Load", "Time", "Lost")
    rows = [
        (
            one["set"],
            one["traffic"]["failure"],
            one["traffic"]["busiest"] or "none",
            f"{one['traffic']['utilization']:.0%}",
            "never ends"
            if one["traffic"]["slowdown"] is None
            else f"{one['traffic']['slowdown']:.2f}x",
            human.bandwidth(one["traffic"]["unserved"]),
        )
        for one in document["sets"]
    ]
    words = (
        f"{traffic['demands']:,} rates, {human.bandwidth(traffic['rate'])} together; without "
        f"failures the busiest link is loaded to {traffic['utilization']:.0%}"
    )
    return [_section("Traffic", f"<p>{words}</p>{_table(head, rows, 3)}")]


def _worst(worst: Iterable[Json]) -> str:
    head = ("Failure", "Worst pair", "Left", "Capacity", "Max flow", "Pairs", "Cut", "Alike")
    rows = [
        (
            row["failure"],
            " > ".join(row["pair"]),
            human.share(row["left"]),
            human.bandwidth(row["capacity"]),
            human.bandwidth(row["max_flow"]),
            f"{row['reduced']:,}",
            f"{row['cut']:,}",
            f"{row['alike']:,}",
        )
        for row in worst
    ]
    return _table(head, rows, 2)


def _names(entries: Sequence[Json]) -> str:
    if not entries:
        return "<p>none</p>"
    names = ", ".join(_text(entry["failure"]) for entry in entries[:200])
    return f"<p>{len(entries):,}: {names}{' ...' if len(entries) > 200 else ''}</p>"


def _distribution(one: Json) -> str:
    """Bars: how many failures of a set leave the worst pair nothing, up to 5 %, ... all."""
    counts = one["histogram"]
    most = max(counts) or 1
    bars = []
    for at, number in enumerate(counts):
        height = _HEIGHT * number / most
        x, y = _MARGIN + at * _BAR, _HEIGHT - height + 15
        if number:
            bars.append(
                f'<rect x="{x}" y="{y:.1f}" width="{_BAR - 4}" height="{max(height, 1):.1f}"/>'
                f'<text x="{x + 11}" y="{y - 3:.1f}" text-anchor="middle">{number:,}</text>'
            )
        if at % 4 == 0:
            label = f"{at * 100 // (len(counts) - 1)}%"
            bars.append(
                f'<text x="{x + 11}" y="{_HEIGHT + 32}" text-anchor="middle">{label}</text>'
            )
    width = _MARGIN * 2 + len(counts) * _BAR
    title = f"{one['set']}: what the worst pair keeps, number of failures"
    picture = (
        f'<h3>{_text(title)}</h3><div class="scroll">'
        f'<svg role="img" aria-label="{_text(title)}" viewBox="0 0 {width} {_HEIGHT + 40}"'
        f' width="{width}">{"".join(bars)}</svg></div>'
    )
    few = sum(map(bool, counts)) <= _FEW_BARS
    return ("" if few else picture) + _pairs(one["set"], one["pairs"])


def _pairs(name: str, pairs: Sequence[Json]) -> str:
    """The worst pairs of a set, with the failure that causes it."""
    head = ("Pair", "Failure", "Left", "Capacity")
    rows = [
        (
            " > ".join(pair["pair"]),
            pair["cause"],
            human.share(pair["left"]),
            human.bandwidth(pair["capacity"]),
        )
        for pair in pairs[:_MOST_PAIRS]
    ]
    table = _table(head, rows, 2)
    title = f"{name}: the worst pairs"
    return f"<details><summary>{_text(title)}</summary>{table}</details>" if rows else ""


def _picture(document: Json, plan: Planned) -> list[str]:
    """The fabric, with the worst failure in red and the paths of its worst pair in blue."""
    if not document["worst"]:
        return []
    worst = document["worst"][0]
    number, at = _place(document, plan, worst)
    failures = plan.results[number].failures
    links = set(failures.links[failures.link_start[at] : failures.link_start[at + 1]].tolist())
    nodes = set(failures.nodes[failures.node_start[at] : failures.node_start[at + 1]].tolist())
    title = f"The worst failure: {worst['failure']}, for {' > '.join(worst['pair'])}"
    names = plan.fabric.names
    ends = (names.index(worst["pair"][0]), names.index(worst["pair"][1]))
    picture = drawn(plan.fabric, Marked(links, nodes, ends), title)
    return [_section(title, f'<div class="scroll">{picture}</div><p class="dim">{_KEY}</p>')]


def _place(document: Json, plan: Planned, row: Json) -> tuple[int, int]:
    """Where the failure of a row is: the number of its set, and its own."""
    kinds = [result.failures.kind for result in plan.results]
    before = sum(len(result.left) for result in plan.results[: kinds.index(row["set"])])
    rows = document["rows"][before:]
    at = next(n for n, other in enumerate(rows) if other["failure"] == row["failure"])
    return kinds.index(row["set"]), at
