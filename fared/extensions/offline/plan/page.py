"""A report as one HTML file: tables, the distribution of what remains, the fabric with the worst.

The pictures are inline SVG (``picture``), so that the file needs nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from fared.extensions.offline.plan.document import Planned
from fared.extensions.offline.plan.picture import Marked, drawn
from fared.management.documents import human

Json = dict[str, Any]
_MARGIN, _BAR, _HEIGHT = 60, 26, 150
_MOST_PAIRS = 10
_KEY = (
    "Red: what fails. Green: the pair that loses most. Blue: the shortest paths between them while"
    " nothing fails."
)
_STYLE = """
:root { color-scheme: light dark; --ink: #222; --ground: #fff; --line: #c9ced3; --blue: #3f6f9c;
  --red: #b3402e; --green: #2a7f4f }
@media (prefers-color-scheme: dark) { :root { --ink: #dde2e7; --ground: #14181c; --line: #3d454d;
  --blue: #6fa3d1; --red: #e8735f; --green: #58b883 } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: var(--ink); background: var(--ground) }
table { border-collapse: collapse; display: block; overflow-x: auto }
td, th { padding: .15rem .8rem .15rem 0; text-align: left; white-space: nowrap }
td.n, th.n { text-align: right }
h2 { margin-top: 2rem; font-size: 1.15rem } th { font-weight: 600 } svg { max-width: 100% }
h3 { font-size: 1rem; margin-bottom: .3rem }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink) }
.bad { color: var(--red) } .good { color: var(--green) }
line { stroke: var(--line) } line.pair { stroke: var(--blue); stroke-width: 1.5 }
line.failed { stroke: var(--red); stroke-width: 3 }
circle { fill: var(--blue) } circle.end { fill: var(--green) } circle.failed { fill: var(--red) }
rect { fill: var(--blue) }
"""


def plan_page(document: Json, plan: Planned) -> str:
    """Return the page of a report."""
    parts = [
        f"<h1>What failures leave</h1><p>{_summary(document)}</p>",
        *(
            f"<p>What if: {_text(', '.join(document['changes']))}</p>"
            for _ in document["changes"][:1]
        ),
        *_bounds(document["required"]),
        "<h2>What remains between the worst pair</h2>",
        _sets(document["sets"]),
        *(_distribution(one) for one in document["sets"]),
        *_traffic(document),
        "<h2>Worst failures</h2>",
        _worst(document["worst"]),
        *_picture(document, plan),
        "<h2>Single points of failure</h2>",
        _names(document["single_points"]),
        "<h2>Links whose failure takes no capacity from any pair</h2>",
        _names(document["never_matter"]),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>fared plan</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


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


def _bounds(bounds: Iterable[Json]) -> list[str]:
    found = []
    for bound in bounds:
        kind, words = ("good", "holds") if bound["met"] else ("bad", "is broken")
        text = f"{_text(bound['bound'])} {words}: {human.share(bound['left'])} is left"
        found.append(f'<p class="{kind}">{text}</p>')
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], text: int) -> str:
    """A table whose first ``text`` columns are text, the others numbers."""

    def line(cells: Sequence[object], tag: str) -> str:
        kinds = ("" if at < text else ' class="n"' for at in range(len(cells)))
        joined = (f"<{tag}{k}>{_text(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(joined)}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


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
    return ["<h2>Traffic</h2>", f"<p>{words}</p>", _table(head, rows, 3)]


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
    return (
        f"<h2>{_text(title)}</h2>"
        f'<svg role="img" aria-label="{_text(title)}" viewBox="0 0 {width} {_HEIGHT + 40}"'
        f' width="{width}">{"".join(bars)}</svg>{_pairs(one["pairs"])}'
    )


def _pairs(pairs: Sequence[Json]) -> str:
    """The worst pairs of a set, with the failure that causes it."""
    head = ("Worst pairs", "Failure", "Left", "Capacity")
    rows = [
        (
            " > ".join(pair["pair"]),
            pair["cause"],
            human.share(pair["left"]),
            human.bandwidth(pair["capacity"]),
        )
        for pair in pairs[:_MOST_PAIRS]
    ]
    return _table(head, rows, 2) if rows else ""


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
    return [
        f"<h2>{_text(title)}</h2>",
        drawn(plan.fabric, Marked(links, nodes, ends), title),
        f"<p>{_KEY}</p>",
    ]


def _place(document: Json, plan: Planned, row: Json) -> tuple[int, int]:
    """Where the failure of a row is: the number of its set, and its own."""
    kinds = [result.failures.kind for result in plan.results]
    before = sum(len(result.left) for result in plan.results[: kinds.index(row["set"])])
    rows = document["rows"][before:]
    at = next(n for n, other in enumerate(rows) if other["failure"] == row["failure"])
    return kinds.index(row["set"]), at
