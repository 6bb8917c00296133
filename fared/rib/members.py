"""Turn rows of path capacities into weighted next hops over this router's own links.

``AreaSolver`` makes ``Members`` and a ``SetBuilder`` for its area. The rooms below compute for
neighbors; the kernel needs links. Parallel links to one neighbor share its weight in proportion to
their capacities.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.rib.model import HopKey, NextHop, NextHopSet
from fared.ted.rows import snap
from fared.weights.few_flows import skew_for_few_flows
from fared.weights.path_capacity import CapacityRow, WeightMode, fill_unknown
from fared.weights.quantise import quantise_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.rib.settings import SolverSettings
    from fared.spf.plan import SpfPlan
    from fared.ted.model import LocalLink
    from fared.ted.rows import LinkRows


class Members(msgspec.Struct, frozen=True, eq=False, dict=True):
    """This router's usable links in one area, M of them, for the H first hops of a plan.

    ``links`` ascend by (neighbor, local id, ifindex); ``column`` (M,) is the first hop each
    serves; ``share`` (M,) its part of that first hop's capacity; ``local`` (H,) what this
    router can send to each first hop, bytes/s, NaN unknown; ``usable`` (H,) whether any link
    serves it. ``output`` (M,) is the order by ``hop_key``, ``keys`` (M,) are those of the links.
    """

    links: tuple[LocalLink, ...]
    column: NDArray[np.int64]
    share: NDArray[np.float64]
    local: NDArray[np.float64]
    usable: NDArray[np.bool_]
    output: NDArray[np.int64]
    keys: list[HopKey]

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
    plan: SpfPlan,
    rows: LinkRows,
    links: tuple[LocalLink, ...],
    edges: NDArray[np.float64],
    settings: SolverSettings,
) -> Members:
    """Match local links to the first hops of a plan.

    ``edges`` (E,) are the capacities in the graph, where the far end's capacity of a link stands in
    for one that is unknown here.
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


_FEW_ROWS = 64
ABSENT = -1.0
"""In a packed row: no shortest path begins with this first hop, or no link leads to it."""


def pack(row: CapacityRow) -> NDArray[np.float64]:
    """Pack a row into a float for each first hop (1, H): its bound, ABSENT, or less if unknown."""
    known = np.where(row.unknown, -2.0 - row.bound, row.bound)
    return np.where(row.present, known, ABSENT)[None, :]


def _distinct(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first rows (D,) of the runs of equal ones, and the run of each row (K,).

    In a healthy fabric, or in one of its PoDs, most rows are the same: each run gets one key.
    """
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return first.nonzero()[0], first.cumsum() - 1


class SolvedHops(NextHopSet):
    """A next-hop set that makes its ``NextHop`` objects at first use.

    Most sets are only compared by ``key``.
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
        """The content as the kernel has it: (next hop, weight) pairs."""
        members, weights = self.__dict__["_members"], self.__dict__["_weights"].tolist()
        keys = members.keys
        return tuple((keys[at], weights[at]) for at in members.output.tolist() if weights[at])

    @property
    def total_weight(self) -> int:
        """Sum of weights."""
        return int(self.__dict__["_weights"].sum())

    def arrays(self) -> tuple[Members, NDArray[np.float64], NDArray[np.int64]]:
        """Return the members, and capacity (bytes/s, NaN unknown) and weight of each."""
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
    """Makes next-hop sets from rows; equal content gives the same object."""

    def __init__(self, members: Members, settings: SolverSettings) -> None:
        self.members = members
        self._settings = settings
        self._sets: dict[bytes, NextHopSet | None] = {}

    def __len__(self) -> int:
        return len(self._sets)

    def build(self, packed: NDArray[np.float64], limit: float = np.inf) -> NDArray[np.object_]:
        """Return the sets (K,) of packed rows (K, H) that are already bounded by ``Members.local``.

        ``limit`` (bytes/s) lies behind all paths alike: it is displayed but does not change
        weights. None for a row without any usable link.
        """
        if not packed.size:
            return np.full(len(packed), None, object)
        rows, same_as = packed, None
        if len(packed) > _FEW_ROWS:
            first, same_as = _distinct(packed)
            rows = packed[first]
        keys = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()  # each row as bytes
        if not math.isinf(limit):
            keys = [key + str(limit).encode() for key in keys]
        sets = self._sets
        fresh = {key: at for at, key in enumerate(keys) if key not in sets}
        if fresh:
            new = rows[np.fromiter(fresh.values(), np.int64, len(fresh))]
            sets.update(zip(fresh, self._make(new, limit), strict=True))
        found = np.fromiter(map(sets.__getitem__, keys), object, len(keys))
        return found if same_as is None else found[same_as]

    def _make(self, packed: NDArray[np.float64], limit: float) -> list[NextHopSet | None]:
        if packed.min() >= 0.0:  # every first hop usable, everything known
            return self._laid_out(packed, np.ones(packed.shape, bool), limit, None)
        present, unknown = packed != ABSENT, packed < ABSENT
        values = np.where(present, packed, 0.0)
        uncertain = np.flatnonzero(unknown.any(axis=1))
        if not len(uncertain):
            return self._laid_out(values, present, limit, None)
        values = np.where(unknown, -2.0 - values, values)
        for row in uncertain.tolist():
            values[row] = fill_unknown(CapacityRow(values[row], unknown[row], present[row]))
        return self._laid_out(values, present, limit, unknown)

    def _laid_out(
        self,
        values: NDArray[np.float64],
        present: NDArray[np.bool_],
        limit: float,
        unknown: NDArray[np.bool_] | None,
    ) -> list[NextHopSet | None]:
        """Make the sets of rows (K, H): capacity, whether a path exists, whether it is known."""
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
        """Return integer weights (K, M); a row with members always has at least one weight.

        Of more than ``max_paths`` members the first in (neighbor, local id) order are used, so that
        the choice does not change with capacities.
        """
        settings = self._settings
        if present.shape[1] > settings.max_paths:
            present = present & (np.cumsum(present, axis=1) <= settings.max_paths)
            capacity = np.where(present, capacity, 0.0)
        if settings.mode is WeightMode.NONE:
            return present.astype(np.int64)
        if settings.flows is not None:
            capacity = skew_for_few_flows(capacity, settings.flows)
        weights = quantise_rows(
            capacity, settings.max_weight, settings.tolerance, settings.search_members
        )
        used = weights.any(axis=1)
        if not used.all():
            weights[~used] = present[~used]
        return weights


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
