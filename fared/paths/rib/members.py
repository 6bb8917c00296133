"""This router's own links as members of next-hop sets.

The packages below compute for neighbors; the kernel needs links. ``build_members`` matches local
links to the first hops of a plan, for each area. Parallel links to one neighbor share its weight in
proportion to their capacities.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.ted.rows import snap
from fared.paths.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.paths.rib.model import HopKey
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.spf.plan import SpfPlan
    from fared.paths.ted.model import LocalLink
    from fared.paths.ted.rows import LinkRows
    from fared.paths.weights.path_delay import DelayRule


class SlowerLink(msgspec.Struct, frozen=True):
    """A parallel link to the first hop ``column`` that is not used; delays in microseconds."""

    link: LocalLink
    column: int
    delay: float
    lowest: float


class Members(msgspec.Struct, frozen=True, eq=False, dict=True):
    """This router's usable links in one area, M of them, for the H first hops of a plan.

    ``links`` ascend by (neighbor, local id, ifindex); ``column`` (M,) is the first hop each
    serves; ``share`` (M,) its part of that first hop's capacity; ``local`` (H,) what this
    router can send to each first hop, bytes/s, NaN unknown; ``usable`` (H,) whether any link
    serves it. ``delay`` (H,) is that of the links to each first hop, microseconds, None where
    delays choose nothing; ``slower``: parallel links that are not used because of it.
    ``output`` (M,) is the order by ``hop_key``, ``keys`` (M,) are those of the links.
    """

    links: tuple[LocalLink, ...]
    column: NDArray[np.int64]
    share: NDArray[np.float64]
    local: NDArray[np.float64]
    usable: NDArray[np.bool_]
    output: NDArray[np.int64]
    keys: list[HopKey]
    delay: NDArray[np.float64] | None = None
    slower: tuple[SlowerLink, ...] = ()

    @cached_property
    def plain(self) -> bool:
        """Whether each first hop has exactly one link, in the same order."""
        return len(self.column) == len(self.local) and bool(
            (self.column[1:] > self.column[:-1]).all()
        )

    @cached_property
    def known(self) -> bool:
        """Whether it is known of each first hop what this router can send to it."""
        return not np.isnan(self.local).any()

    def identity(self) -> tuple[object, ...]:
        """A key that is equal for tables that turn equal rows into equal next hops."""
        return (self.links, self.column.tobytes(), self.share.tobytes())


def _columns_of(plan: SpfPlan, rows: LinkRows, links: Sequence[LocalLink]) -> list[int]:
    """Return the first hop (index) that each link serves, -1 for none.

    A link serves a first hop if the router's own block lists it, by id, toward that neighbor (or
    toward the transit network before it) at the least metric. Links whose ids are not listed are
    matched by neighbor.
    """
    names = plan.graph.nodes
    ids = _described(rows)
    by_id: dict[tuple[int, int], int] = {}
    by_neighbor: dict[int, int] = {}
    ends = names[plan.hops].tolist(), names[plan.graph.dst[plan.via]].tolist()
    for hop, (neighbor, via) in enumerate(zip(*ends, strict=True)):
        for local_id in ids.get(via, ()):
            by_id[neighbor, local_id] = hop
        if via == neighbor or neighbor not in by_neighbor:
            by_neighbor[neighbor] = hop
    found = [
        by_id.get((link.neighbor, link.local_id), -1) if link.local_id else -1 for link in links
    ]
    if -1 in found:
        described = set(rows.local_ids.tolist()) - {0}
        least_metric: dict[int, int] = {}
        for link in links:
            known = least_metric.get(link.neighbor, link.metric)
            least_metric[link.neighbor] = min(known, link.metric)
        for at, link in enumerate(links):
            least = link.metric == least_metric[link.neighbor]
            if found[at] < 0 and link.local_id not in described and least:
                found[at] = by_neighbor.get(link.neighbor, -1)
    return found


def _described(rows: LinkRows) -> dict[int, list[int]]:
    """Return the ids of the links of least metric to each neighbor."""
    neighbors, local_ids = rows.neighbors.tolist(), rows.local_ids.tolist()
    ids: dict[int, list[int]] = {
        neighbor: [local_id] for neighbor, local_id in zip(neighbors, local_ids, strict=True)
    }
    if len(ids) == len(neighbors):  # no parallel links
        return ids
    ids = {}
    cheapest: dict[int, int] = {}
    for neighbor, metric, local_id in zip(
        neighbors, rows.metrics.tolist(), local_ids, strict=True
    ):  # ascending by metric for each neighbor
        if metric == cheapest.setdefault(neighbor, metric):
            ids.setdefault(neighbor, []).append(local_id)
    return ids


def _own_capacities(
    rows: LinkRows, links: Sequence[LocalLink], settings: SolverSettings
) -> NDArray[np.float64]:
    """Return the capacity of each link from our own block, else its bandwidth; NaN unknown."""
    at, ids = _places(rows, links), rows.local_ids
    capacity = rows.capacities[at] if len(ids) else np.full(len(links), np.nan)
    capacity[at < 0] = np.nan
    if np.isnan(capacity).any():
        width = [np.nan if link.bandwidth is None else link.bandwidth for link in links]
        capacity = np.where(np.isnan(capacity), snap(np.array(width, np.float64)), capacity)
    if settings.mode is not WeightMode.AVAILABLE:
        return capacity
    available = rows.availables[at] if len(ids) else np.full(len(links), np.nan)
    available[at < 0] = np.nan
    return np.fmax(np.where(np.isnan(available), capacity, available), capacity * settings.floor)


def _places(rows: LinkRows, links: Sequence[LocalLink]) -> NDArray[np.int64]:
    """Return the row of each link in our own block, -1 for none."""
    ids = rows.local_ids.tolist()
    position = {end: at for at, end in enumerate(zip(rows.neighbors.tolist(), ids, strict=True))}
    places = [position.get((link.neighbor, link.local_id), -1) for link in links]
    if -1 in places:
        by_id = {local_id: at for at, local_id in enumerate(ids) if local_id}
        for number, link in enumerate(links):
            if places[number] < 0:
                places[number] = by_id.get(link.local_id, -1)
    return np.array(places, np.int64)


def _own_delays(rows: LinkRows, links: Sequence[LocalLink], rule: DelayRule) -> NDArray[np.float64]:
    """Return the delay of each link from our own block, as it counts."""
    delays = rows.delays
    if delays is None or not len(delays):
        return np.full(len(links), rule.unknown)
    at = _places(rows, links)
    return rule.counted(np.where(at < 0, np.nan, delays[at]))


def build_members(
    plan: SpfPlan,
    rows: LinkRows,
    links: tuple[LocalLink, ...],
    edges: NDArray[np.float64],
    settings: SolverSettings,
) -> Members:
    """Match local links to the first hops of a plan.

    ``edges`` (E,) are the capacities in the graph, where the far end's capacity of a link stands in
    for one that is unknown here. Of parallel links those that the rule of delays excludes are not
    used: whatever lies behind the neighbor, packets reach it sooner over another one.
    """
    columns = _columns_of(plan, rows, links)
    place = [(link.neighbor, link.local_id, link.ifindex) for link in links]
    order = [at for at in sorted(range(len(links)), key=place.__getitem__) if columns[at] >= 0]
    used = tuple(links[at] for at in order)
    column = np.array([columns[at] for at in order], np.int64)
    size = len(plan.hops)
    delay, slower = None, list[SlowerLink]()
    if rule := settings.delay_rule:
        mine = _own_delays(rows, used, rule)
        lowest = np.full(size, np.inf)
        np.minimum.at(lowest, column, mine)
        kept = rule.used(mine, column, size)
        slower = [
            SlowerLink(used[at], int(column[at]), float(mine[at]), float(lowest[column[at]]))
            for at in (~kept).nonzero()[0].tolist()
        ]
        used = tuple(link for link, stays in zip(used, kept.tolist(), strict=True) if stays)
        column, mine = column[kept], mine[kept]
        delay = np.zeros(size)
        np.maximum.at(delay, column, mine)
    own = _own_capacities(rows, used, settings)
    count = np.bincount(column, minlength=size)
    known = ~np.isnan(own)
    if not known.all():
        count_known = np.bincount(column, known, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(column, np.where(known, own, 0.0), size) / count_known
        mean = np.where(count_known > 0, mean, edges[plan.via] / np.maximum(count, 1))
        own = np.where(known, own, mean[column])
    local = np.bincount(column, own, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = own / local[column]
    share = np.where(np.isfinite(share), share, 1.0 / np.maximum(count, 1)[column])
    reach = np.where(count > 0, local, np.nan)
    output, keys = _output_order(used)
    return Members(used, column, share, reach, count > 0, output, keys, delay, tuple(slower))


def _output_order(links: Sequence[LocalLink]) -> tuple[NDArray[np.int64], list[HopKey]]:
    keys = [(link.ifindex, link.family, link.gateway, link.onlink) for link in links]
    return np.array(sorted(range(len(links)), key=keys.__getitem__), np.int64), keys


def join_members(parts: Sequence[Members]) -> Members:
    """Concatenate the members of several areas; their first hops are numbered consecutively."""
    links = tuple(link for part in parts for link in part.links)
    offsets = np.cumsum([0, *(len(part.local) for part in parts[:-1])])
    output, keys = _output_order(links)
    return Members(
        links=links,
        column=np.concatenate([p.column + at for p, at in zip(parts, offsets, strict=True)]),
        share=np.concatenate([part.share for part in parts]),
        local=np.concatenate([part.local for part in parts]),
        usable=np.concatenate([part.usable for part in parts]),
        output=output,
        keys=keys,
    )
