"""From rows of path capacities to weighted next hops over this router's own links.

The weights rooms think in neighbors; the kernel thinks in links. Parallel links to one
neighbor share its weight in proportion to what each of them can carry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.model import HopKey, NextHop, NextHopSet
from fared.ted.rows import snap
from fared.weights.path_capacity import Row, WeightMode, fill_unknown
from fared.weights.quantise import quantise_rows
from fared.weights.staffing import lean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.rib.settings import SolverSettings
    from fared.spf.plan import Plan
    from fared.ted.model import LocalLink
    from fared.ted.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """This router's usable links in one area, M of them, for the H first hops of a plan.

    ``links`` ascend by (neighbor, local id, ifindex); ``column`` (M,) is the first hop each
    serves; ``share`` (M,) its part of that first hop's capacity; ``local`` (H,) what this
    router can send to each first hop, bytes/s, NaN unknown; ``usable`` (H,) whether any link
    serves it. ``output`` (M,) is the order of
    ``hop_key``, ``keys`` these themselves.
    """

    links: tuple[LocalLink, ...]
    column: NDArray[np.int64]
    share: NDArray[np.float64]
    local: NDArray[np.float64]
    usable: NDArray[np.bool_]
    output: NDArray[np.int64]
    keys: list[HopKey]

    @property
    def plain(self) -> bool:
        """Whether there is just one link to each first hop, in the same order."""
        return len(self.column) == len(self.local) and bool(
            (self.column[1:] > self.column[:-1]).all()
        )

    def identity(self) -> tuple[object, ...]:
        """Equal for tables that turn equal rows into equal next hops."""
        return (self.links, self.column.tobytes(), self.share.tobytes())


def _columns_of(plan: Plan, rows: Rows, links: Sequence[LocalLink]) -> list[int]:
    """The first hop that each link serves, -1 for none.

    A link belongs to a first hop if the router's own description has it, by id, toward that
    neighbor (or toward the transit network before it) at the least metric. Links whose ids are
    not described are matched by neighbor.
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


def _described(rows: Rows) -> dict[int, list[int]]:
    """The ids of the cheapest links to each neighbor."""
    neighbors, local_ids = rows.neighbors.tolist(), rows.local_ids.tolist()
    ids: dict[int, list[int]] = {
        neighbor: [local_id] for neighbor, local_id in zip(neighbors, local_ids, strict=True)
    }
    if len(ids) == len(neighbors):
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
    rows: Rows, links: Sequence[LocalLink], settings: SolverSettings
) -> NDArray[np.float64]:
    """What each link carries by our own description, else by its bandwidth; NaN unknown."""
    ids = rows.local_ids.tolist()
    position = {end: at for at, end in enumerate(zip(rows.neighbors.tolist(), ids, strict=True))}
    places = [position.get((link.neighbor, link.local_id), -1) for link in links]
    if -1 in places:
        by_id = {local_id: at for at, local_id in enumerate(ids) if local_id}
        for number, link in enumerate(links):
            if places[number] < 0:
                places[number] = by_id.get(link.local_id, -1)
    at = np.array(places, np.int64)
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


def build_members(
    plan: Plan,
    rows: Rows,
    links: tuple[LocalLink, ...],
    edges: NDArray[np.float64],
    settings: SolverSettings,
) -> Members:
    """Match local links to the first hops of a plan.

    ``edges`` (E,) are the capacities in the graph: they know the far end's view of a link
    whose capacity this end does not know.
    """
    columns = _columns_of(plan, rows, links)
    place = [(link.neighbor, link.local_id, link.ifindex) for link in links]
    order = [at for at in sorted(range(len(links)), key=place.__getitem__) if columns[at] >= 0]
    used = tuple(links[at] for at in order)
    column = np.array([columns[at] for at in order], np.int64)
    size = len(plan.hops)
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
    return Members(used, column, share, reach, count > 0, output, keys)


def _output_order(links: Sequence[LocalLink]) -> tuple[NDArray[np.int64], list[HopKey]]:
    keys = [(link.ifindex, link.family, link.gateway, link.onlink) for link in links]
    return np.array(sorted(range(len(links)), key=keys.__getitem__), np.int64), keys


_HASH_FACTOR = 0x9E3779B97F4A7C15
_FEW_ROWS = 64
ABSENT = -1.0
"""In a packed row: no shortest path begins with this first hop (or no link leads to it)."""


def pack(row: Row) -> NDArray[np.float64]:
    """Write a row as one float a first hop (1, H): its bound, ABSENT, or unknown below that."""
    known = np.where(row.unknown, -2.0 - row.bound, row.bound)
    return np.where(row.present, known, ABSENT)[None, :]


def _distinct(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that stand for all: their places (D,), and for each row (K,) which one equals it.

    In a healthy fabric most rows are the same: only those that differ from one are hashed.
    """
    usual = len(rows) // 2
    odd = (rows != rows[usual]).any(axis=1).nonzero()[0]
    first, odd_as = _hashed(rows[odd])
    same_as = np.zeros(len(rows), np.int64)
    same_as[odd] = odd_as + 1
    return np.concatenate(([usual], odd[first])), same_as


def _hashed(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find equal rows by a hash, checked: should two others ever share one, all stand alone."""
    alone = np.arange(len(rows))
    if len(rows) <= _FEW_ROWS:
        return alone, alone
    factors = np.arange(1, 2 * rows.shape[1], 2, dtype=np.uint64) * np.uint64(_HASH_FACTOR)
    hashes = rows.view(np.uint64) @ factors
    _, first, same_as = np.unique(hashes, return_index=True, return_inverse=True)
    return (first, same_as) if np.array_equal(rows[first[same_as]], rows) else (alone, alone)


class SolvedHops(NextHopSet):
    """A next-hop set that makes its ``NextHop`` objects when first asked for them.

    Most sets are only ever compared by ``key``.
    """

    def __init__(
        self, members: Members, capacities: NDArray[np.float64], weights: NDArray[np.int64]
    ) -> None:
        self.__dict__.update(_members=members, _capacities=capacities, _weights=weights)

    @cached_property
    def hops(self) -> tuple[NextHop, ...]:
        """The next hops; ``capacity`` NaN in the arrays is unknown."""
        members, weights = self.__dict__["_members"], self.__dict__["_weights"].tolist()
        capacities = self.__dict__["_capacities"].tolist()
        return tuple(
            _next_hop(members.links[at], capacities[at], weights[at])
            for at in members.output.tolist()
            if weights[at]
        )

    @cached_property
    def key(self) -> tuple[tuple[HopKey, int], ...]:
        """What the kernel sees of it."""
        members, weights = self.__dict__["_members"], self.__dict__["_weights"].tolist()
        keys = members.keys
        return tuple((keys[at], weights[at]) for at in members.output.tolist() if weights[at])

    @property
    def total_weight(self) -> int:
        """Sum of weights."""
        return int(self.__dict__["_weights"].sum())

    def arrays(self) -> tuple[Members, NDArray[np.float64], NDArray[np.int64]]:
        """The members it is made of, and capacity (bytes/s, NaN unknown) and weight of each."""
        kept = self.__dict__
        return kept["_members"], kept["_capacities"], kept["_weights"]


def _next_hop(link: LocalLink, capacity: float, weight: int) -> NextHop:
    return NextHop(
        ifindex=link.ifindex,
        interface=link.interface,
        family=link.family,
        gateway=link.gateway,
        neighbor=link.neighbor,
        bandwidth=link.bandwidth,
        capacity=None if math.isnan(capacity) else capacity,
        weight=weight,
        onlink=link.onlink,
    )


class SetBuilder:
    """Makes next-hop sets out of rows and hands out the same object for the same content."""

    def __init__(self, members: Members, settings: SolverSettings) -> None:
        self.members = members
        self._settings = settings
        self._sets: dict[bytes, NextHopSet | None] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def build(self, packed: NDArray[np.float64], limit: float = np.inf) -> NDArray[np.object_]:
        """Next-hop sets (K,) of many packed rows (K, H), already clipped by ``Members.local``.

        ``limit`` (bytes/s) lies behind all paths alike: it is shown and does not weigh. None
        for a row without any usable link.
        """
        if not packed.size:
            return np.full(len(packed), None, object)
        rows, same_as = packed, None
        if len(packed) > _FEW_ROWS:
            first, same_as = _distinct(packed)
            rows = packed[first]
        data, width = rows.tobytes(), rows.itemsize * rows.shape[1]
        suffix = b"" if math.isinf(limit) else str(limit).encode()
        keys = [data[at : at + width] + suffix for at in range(0, len(data), width)]
        sets = self._sets
        fresh = {key: at for at, key in enumerate(keys) if key not in sets}
        if fresh:
            new = rows[np.fromiter(fresh.values(), np.int64, len(fresh))]
            sets.update(zip(fresh, self._make(new, limit), strict=True))
        found = np.fromiter((sets[key] for key in keys), object, len(keys))
        return found if same_as is None else found[same_as]

    def _make(self, packed: NDArray[np.float64], limit: float) -> list[NextHopSet | None]:
        if packed.min() >= 0.0:  # every first hop usable, everything known
            return self._laid_out(packed, np.ones(packed.shape, bool), limit, None)
        present, unknown = packed != ABSENT, packed < ABSENT
        values = np.where(present, packed, 0.0)
        doubtful = np.flatnonzero(unknown.any(axis=1))
        if not len(doubtful):
            return self._laid_out(values, present, limit, None)
        values = np.where(unknown, -2.0 - values, values)
        for row in doubtful.tolist():
            values[row] = fill_unknown(Row(values[row], unknown[row], present[row]))
        return self._laid_out(values, present, limit, unknown)

    def _laid_out(
        self,
        values: NDArray[np.float64],
        present: NDArray[np.bool_],
        limit: float,
        unknown: NDArray[np.bool_] | None,
    ) -> list[NextHopSet | None]:
        """Sets of rows over first hops (K, H): what each can carry, whether it is one, known."""
        members = self.members
        capacity = values
        if not members.plain:
            present = present.take(members.column, 1)
            capacity = values.take(members.column, 1) * members.share
        weights = self.weigh(capacity, present)
        shown = capacity if math.isinf(limit) else np.minimum(capacity, limit)
        if unknown is not None:
            shown = np.where(unknown.take(members.column, 1), np.nan, shown)
        usable = np.logical_or.reduce(present, axis=1).tolist()
        return [
            SolvedHops(members, row, shares) if some else None
            for row, shares, some in zip(shown, weights, usable, strict=True)
        ]

    def weigh(self, capacity: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Integer weights (K, M). No row that has members is left without any.

        Of more than ``max_paths`` members the first in (neighbor, local id) order are taken:
        a choice that does not move when capacities do.
        """
        settings = self._settings
        if present.shape[1] > settings.max_paths:
            present = present & (np.cumsum(present, axis=1) <= settings.max_paths)
            capacity = np.where(present, capacity, 0.0)
        if settings.mode is WeightMode.NONE:
            return present.astype(np.int64)
        if settings.flows is not None:
            capacity = lean(capacity, settings.flows)
        weights = quantise_rows(
            capacity, settings.max_weight, settings.tolerance, settings.search_members
        )
        empty = ~weights.any(axis=1)
        if empty.any():
            weights[empty] = present[empty]
        return weights


def join_members(parts: Sequence[Members]) -> Members:
    """Lay the members of several areas side by side, their first hops counted on."""
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
