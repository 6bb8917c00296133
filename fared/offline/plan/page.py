"""A report as one HTML file: tables, the distribution of what remains, the fabric with the worst.

The pictures are inline SVG, so that the file needs nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fared.api import human
from fared.offline.plan.document import Planned
from fared.offline.plan.fabric import PlanFabric

Json = dict[str, Any]
_WIDTH, _TIER, _MARGIN = 960, 130, 60
_MOST_LINKS, _MOST_NAMES = 3000, 48
_BAR, _HEIGHT = 26, 150
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .15rem .8rem .15rem 0; text-align: left }
td.n, th.n { text-align: right }
h2 { margin-top: 2rem; font-size: 1.15rem } th { font-weight: 600 }
svg text { font: 11px system-ui, sans-serif } .bad { color: #b3402e } .good { color: #2a7f4f }
line { stroke: #c9ced3 } line.pair { stroke: #5b7c99 }
line.failed { stroke: #b3402e; stroke-width: 3 }
circle { fill: #5b7c99 } circle.end { fill: #2a7f4f } circle.failed { fill: #b3402e }
rect { fill: #5b7c99 }
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
        f"{len(document['ends']):,} routers, {human.bandwidth(healthy['least'])} to "
        f"{human.bandwidth(healthy['most'])} without failures{drained}"
    )


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
    bars = one["histogram"]
    most = max(bars) or 1
    drawn = []
    for at, number in enumerate(bars):
        height = _HEIGHT * number / most
        x, y = _MARGIN + at * _BAR, _HEIGHT - height + 15
        if number:
            drawn.append(
                f'<rect x="{x}" y="{y:.1f}" width="{_BAR - 4}" height="{max(height, 1):.1f}"/>'
                f'<text x="{x + 11}" y="{y - 3:.1f}" text-anchor="middle">{number:,}</text>'
            )
        if at % 4 == 0:
            label = f"{at * 100 // (len(bars) - 1)}%"
            drawn.append(
                f'<text x="{x + 11}" y="{_HEIGHT + 32}" text-anchor="middle">{label}</text>'
            )
    width = _MARGIN * 2 + len(bars) * _BAR
    title = f"{one['set']}: what the worst pair keeps, number of failures"
    return (
        f"<h2>{_text(title)}</h2>"
        f'<svg role="img" aria-label="{_text(title)}" width="{width}" height="{_HEIGHT + 40}">'
        f"{''.join(drawn)}</svg>"
    )


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
    pair = {plan.fabric.names.index(name) for name in worst["pair"]}
    return [f"<h2>{_text(title)}</h2>", _drawn(plan.fabric, links, nodes, pair, title)]


def _place(document: Json, plan: Planned, row: Json) -> tuple[int, int]:
    """Where the failure of a row is: the number of its set, and its own."""
    kinds = [result.failures.kind for result in plan.results]
    before = sum(len(result.left) for result in plan.results[: kinds.index(row["set"])])
    rows = document["rows"][before:]
    at = next(n for n, other in enumerate(rows) if other["failure"] == row["failure"])
    return kinds.index(row["set"]), at


def _drawn(fabric: PlanFabric, links: set[int], nodes: set[int], pair: set[int], title: str) -> str:
    tier = _tiers(fabric)
    place: dict[int, tuple[float, float]] = {}
    top = int(tier.max())
    for level in range(top + 1):
        here = sorted(np.flatnonzero(tier == level).tolist(), key=lambda n: fabric.names[n])
        for at, node in enumerate(here):
            x = _MARGIN + (at + 0.5) * (_WIDTH - 2 * _MARGIN) / len(here)
            place[node] = (x, 30 + (top - level) * _TIER)
    drawn: list[str] = []
    marked: list[str] = []
    edges, graph = fabric.link_edges[:, 0], fabric.graph
    few = len(edges) <= _MOST_LINKS
    for link, edge in enumerate(edges.tolist()):
        a, b = int(graph.src[edge]), int(graph.dst[edge])
        kind = "failed" if link in links else "pair" if pair & {a, b} else ""
        if kind or few:
            (x, y), (u, v) = place[a], place[b]
            line = f'<line class="{kind}" x1="{x:.1f}" y1="{y}" x2="{u:.1f}" y2="{v}"/>'
            (marked if kind == "failed" else drawn).append(line)
    for node, (x, y) in place.items():
        kind = "failed" if node in nodes else "end" if node in pair else ""
        drawn_name = kind or len(place) <= _MOST_NAMES
        radius = 6 if kind else 4
        marked.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{radius}"/>')
        if drawn_name:
            name = _text(fabric.names[node])
            marked.append(f'<text x="{x:.1f}" y="{y - 9}" text-anchor="middle">{name}</text>')
    height = 60 + top * _TIER
    return (
        f'<svg role="img" aria-label="{_text(title)}" width="{_WIDTH}" height="{height}">'
        f"{''.join(drawn)}{''.join(marked)}</svg>"
    )


def _tiers(fabric: PlanFabric) -> NDArray[np.int64]:
    """The number of links from each node to the nearest end (N,)."""
    graph = fabric.graph
    found = np.full(len(fabric.names), len(fabric.names))
    found[fabric.ends] = 0
    while True:
        nearer = found.copy()
        np.minimum.at(nearer, graph.dst, found[graph.src] + 1)
        if np.array_equal(nearer, found):
            break
        found = nearer
    reached = found < len(found)
    found[~reached] = found[reached].max() + 1
    return found
