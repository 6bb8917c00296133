"""Maximum flow between two vertices: Edmonds and Karp, enough for the cuts of one plan."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from fared.extensions.ina.plan.model import Direction, Vertex

_EXACT = 1e-9
"""The part of the wanted flow that is rounding."""


def max_flow(
    links: Mapping[Direction, float], source: Vertex, sink: Vertex, enough: float = math.inf
) -> float:
    """Return the maximum flow (bytes/s), or ``enough`` as soon as it is reached."""
    left: dict[Vertex, dict[Vertex, float]] = {}
    for (tail, head), capacity in links.items():
        if capacity > 0:
            there = left.setdefault(tail, {})
            there[head] = there.get(head, 0.0) + capacity
            left.setdefault(head, {}).setdefault(tail, 0.0)
    total = 0.0
    largest = max((c for c in links.values() if math.isfinite(c)), default=1.0)
    while total < enough * (1 - _EXACT) if math.isfinite(enough) else True:
        path = _path(left, source, sink, largest * _EXACT)
        if path is None:
            return total
        width = min(left[tail][head] for tail, head in path)
        if math.isinf(width):
            return enough
        for tail, head in path:
            left[tail][head] -= width
            left[head][tail] += width
        total += width
    return enough


def _path(
    left: Mapping[Vertex, Mapping[Vertex, float]], source: Vertex, sink: Vertex, least: float
) -> list[Direction] | None:
    """Return a path with the fewest links that has more than ``least`` left."""
    came = {source: source}
    queue = deque([source])
    while queue and sink not in came:
        near = queue.popleft()
        for far, room in left.get(near, {}).items():
            if room > least and far not in came:
                came[far] = near
                queue.append(far)
    if sink not in came or source == sink:
        return None
    path: list[Direction] = []
    at = sink
    while at != source:
        path.append((came[at], at))
        at = came[at]
    return path


def shortest_paths_only(
    links: Mapping[Direction, float], source: Vertex, sink: Vertex
) -> dict[Direction, float]:
    """Return the links on the shortest paths, by their number, from ``source`` to ``sink``."""
    ahead: dict[Vertex, list[Vertex]] = {}
    behind: dict[Vertex, list[Vertex]] = {}
    for (tail, head), capacity in links.items():
        if capacity > 0:
            ahead.setdefault(tail, []).append(head)
            behind.setdefault(head, []).append(tail)
    begun, ends = _distances(ahead, source), _distances(behind, sink)
    whole = begun.get(sink, -1)
    return {
        (tail, head): links[tail, head]
        for tail, heads in ahead.items()
        for head in heads
        if tail in begun and head in ends and begun[tail] + 1 + ends[head] == whole
    }


def _distances(neighbors: Mapping[Vertex, list[Vertex]], source: Vertex) -> dict[Vertex, int]:
    found = {source: 0}
    queue = deque([source])
    while queue:
        near = queue.popleft()
        for far in neighbors.get(near, ()):
            if far not in found:
                found[far] = found[near] + 1
                queue.append(far)
    return found
