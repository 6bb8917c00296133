"""The fabric of a plan as a picture: tiers by their distance from the ends, what fails in red."""

from __future__ import annotations

import html

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanFabric
from fared.management.documents import human
from fared.paths.spf.search import shortest_paths

_WIDTH, _TIER, _MARGIN = 960, 130, 60
_MOST_LINKS, _MOST_NAMES = 3000, 48
_RADIUS, _GAP = 4, 9

Places = dict[int, tuple[float, float]]


class Marked(msgspec.Struct, frozen=True):
    """What fails, links and nodes by index, and the pair that loses most."""

    links: set[int]
    nodes: set[int]
    pair: tuple[int, int]


def drawn(fabric: PlanFabric, marked: Marked, title: str) -> str:
    """Return the picture as SVG. Large fabrics show marked links and names only."""
    tier = _tiers(fabric)
    places = _places(fabric, tier)
    height = 70 + int(tier.max()) * _TIER
    return (
        f'<svg role="img" aria-label="{html.escape(title)}" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}">{_links(fabric, marked, places)}'
        f"{_nodes(fabric, marked, places, tier)}</svg>"
    )


def _places(fabric: PlanFabric, tier: NDArray[np.int64]) -> Places:
    found: Places = {}
    top = int(tier.max())
    for level in range(top + 1):
        here = np.flatnonzero(tier == level).tolist()
        here.sort(key=lambda node: human.ordering(fabric.names[node]))
        for at, node in enumerate(here):
            x = _MARGIN + (at + 0.5) * (_WIDTH - 2 * _MARGIN) / len(here)
            found[node] = (x, 30 + (top - level) * _TIER)
    return found


def _links(fabric: PlanFabric, marked: Marked, places: Places) -> str:
    used = _on_paths(fabric, *marked.pair)
    few = len(fabric.link_edges) <= _MOST_LINKS
    lines: dict[str, list[str]] = {"": [], "pair": [], "failed": []}
    for link, (edge, back) in enumerate(fabric.link_edges.tolist()):
        kind = "failed" if link in marked.links else "pair" if used & {edge, back} else ""
        if kind or few:
            (x, y), (u, v) = (
                places[int(fabric.graph.src[edge])],
                places[int(fabric.graph.dst[edge])],
            )
            line = f'<line class="{kind}" x1="{x:.1f}" y1="{y}" x2="{u:.1f}" y2="{v}"/>'
            lines[kind].append(line)
    return "".join(line for kind in lines.values() for line in kind)


def _nodes(fabric: PlanFabric, marked: Marked, places: Places, tier: NDArray[np.int64]) -> str:
    found = []
    for node, (x, y) in places.items():
        kind = "failed" if node in marked.nodes else "end" if node in marked.pair else ""
        radius = _RADIUS + 2 if kind else _RADIUS
        found.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{radius}"/>')
        if kind or len(places) <= _MOST_NAMES:
            below = y + _GAP + 12 if tier[node] == 0 else y - _GAP
            name = html.escape(fabric.names[node])
            found.append(f'<text x="{x:.1f}" y="{below}" text-anchor="middle">{name}</text>')
    return "".join(found)


def _on_paths(fabric: PlanFabric, source: int, target: int) -> set[int]:
    """The edges of all shortest paths from one node to another while nothing fails."""
    wanted = np.zeros(len(fabric.names), bool)
    wanted[target] = True
    found: set[int] = set()
    for level in reversed(shortest_paths(fabric.graph, source)[1]):
        used = wanted[level.heads]
        wanted[level.tails[used]] = True
        found.update(level.edges[used].tolist())
    return found


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
