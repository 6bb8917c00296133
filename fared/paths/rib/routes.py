"""Make routes from a selection: next hops, metric and area of each prefix with an advertiser.

Prefixes that one node serves share its next-hop set, and the route if metric and path type are
equal, too; those that several nodes serve share a set joined once for all prefixes with the same
egress.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fared.paths.rib.few import FEW
from fared.paths.rib.join import join_areas
from fared.paths.rib.model import Route
from fared.paths.rib.rows import NONE, TYPE_SHIFT, metric, metrics, path_types
from fared.paths.rib.selection import ANYCAST
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.paths.rib.area import AreaDelta, AreaSolver
    from fared.paths.rib.model import NextHopSet, NumberedRoutes
    from fared.paths.rib.prefixes import PrefixTable
    from fared.paths.rib.selection import EgressAdvertisers
    from fared.paths.rib.selector import PrefixSelector
    from fared.paths.rib.settings import SolverSettings

_SPARE_SETS = 64
_MOST_OTHERS = 4096
_EXTERNAL_2 = int(PathType.EXTERNAL_2)
_Selected = tuple[int, bool, int, int, int, bool]
"""Number of a prefix, whether several nodes serve it, advertiser, metric and path type of one of
these, whether it is connected."""
_TYPES: Mapping[int, PathType] = MappingProxyType({int(item): item for item in PathType})


class Joined(NamedTuple):
    """The set toward several egress nodes, None without a path; their area, None if in several."""

    hops: NextHopSet | None
    area: int | None
    nodes: tuple[NodeId, ...]


class JoinedSets:
    """What prefixes share: next-hop sets toward several egress nodes, routes to a single one.

    A single one that advertises a capacity counts as several. ``first`` and ``second`` hold two
    routes of each advertiser, by its number; ``others`` more, by metric and path type, too.
    """

    def __init__(self, areas: Mapping[int, AreaSolver], settings: SolverSettings) -> None:
        self.areas = areas
        self._settings = settings
        self._sets: dict[EgressAdvertisers, Joined] = {}
        self.first: list[Route | None] = []
        self.second: list[Route | None] = []
        self.others: dict[tuple[int, int, int], Route] = {}

    def get(self, table: PrefixTable, egress: EgressAdvertisers) -> Joined:
        """Return the set toward these egress nodes."""
        known = self._sets.get(egress)
        if known is not None:
            return known
        by_area: dict[int, list[tuple[int, float]]] = {}
        for advertiser, capacity in egress:
            area, node = table.advertisers[advertiser]
            index = self.areas[area].index(node)
            assert index is not None
            by_area.setdefault(area, []).append((index, capacity))
        only = next(iter(by_area)) if len(by_area) == 1 else None
        nodes = tuple(sorted({table.advertisers[advertiser][1] for advertiser, _ in egress}))
        hops = join_areas(self.areas, by_area, self._settings)
        found = self._sets[egress] = Joined(hops, only, nodes)
        return found

    def renew(
        self, selector: PrefixSelector, deltas: Mapping[int, AreaDelta], *, everything: bool
    ) -> NDArray[np.int64]:
        """Join sets again after areas were computed; return prefixes with a new set object.

        Only those that ``deltas`` may have changed, unless ``everything`` is to be made again.
        """
        egress = selector.selection.egress
        if everything or deltas or len(self.others) > _MOST_OTHERS:
            self.first, self.second, self.others = [], [], {}
        # Sets depend on rows of areas: without a computed area they are as before.
        if not everything and not deltas:
            if len(self._sets) > 2 * len(egress) + _SPARE_SETS:  # most sets have no prefix any more
                self._forget_unused(egress)
            return np.empty(0, np.int64)
        self._forget_unused(egress)
        table, different = selector.table, set()
        for ends, before in list(self._sets.items()):
            if everything or self._may_differ(table, ends, deltas):
                del self._sets[ends]
                if self.get(table, ends).hops is not before.hops:
                    different.add(ends)
        if not different:
            return np.empty(0, np.int64)
        return np.array([n for n, ends in egress.items() if ends in different], np.int64)

    def _forget_unused(self, egress: Mapping[int, EgressAdvertisers]) -> None:
        used = set(egress.values())
        self._sets = {known: hops for known, hops in self._sets.items() if known in used}

    def _may_differ(
        self, table: PrefixTable, ends: EgressAdvertisers, deltas: Mapping[int, AreaDelta]
    ) -> bool:
        """Whether the set toward these nodes may be another one than before.

        The set toward one node is made of the same row as the set of the node itself, so both stay
        the same object or neither does. Paths to several nodes share links, whose capacity may
        count for all of them together though it does not for any one.
        """
        if len(ends) > 1:
            return any(
                tuple(map(self.areas[area].index, nodes)) not in deltas[area].contracted
                for area, nodes in _nodes_by_area(table, ends).items()
                if area in deltas
            )
        area, node = table.advertisers[ends[0][0]]
        if area not in deltas:
            return False
        index = self.areas[area].index(node)
        return index is None or bool(deltas[area].nodes[index])


def _nodes_by_area(table: PrefixTable, ends: EgressAdvertisers) -> dict[int, list[NodeId]]:
    found: dict[int, list[NodeId]] = {}
    for advertiser, _ in ends:
        area, node = table.advertisers[advertiser]
        found.setdefault(area, []).append(node)
    return found


def make_routes(
    numbers: NDArray[np.int64], selector: PrefixSelector, joined: JoinedSets
) -> NumberedRoutes:
    """Make the routes of these prefixes, by number; one without a route is skipped."""
    table, selection, distances = selector.table, selector.selection, selector.distances
    served, made = list[int](), list[Route]()
    first, second, others = joined.first, joined.second, joined.others
    for known in (first, second):
        known.extend([None] * (len(table.advertisers) - len(known)))
    few = len(numbers) <= FEW and not selector.distances.crosses
    found = _each_of_few(numbers, selector) if few else _each(numbers, selector)
    for number, several, end, total, kind, local in found:
        if several and not local:
            hops, at, nodes = joined.get(table, selection.egress[number])
            if hops is not None:
                served.append(number)
                made.append(Route(total, _TYPES[kind], at, hops, nodes))
            continue
        slots, route = first, first[end]
        if route is not None and (route.metric != total or route.path_type != kind):
            slots, route = second, second[end]
        third = route is not None and (route.metric != total or route.path_type != kind)
        if third:
            route = others.get((end, total, kind))
        if route is None:
            area, node = table.advertisers[end]
            hops = None if local else joined.areas[area].set_of(distances.index.item(end))
            if hops is None and not local:
                continue
            route = Route(total, _TYPES[kind], area, hops, (node,))
            # No tuple stays for each of many nodes: they would lie between the routes in memory,
            # for another time than these, and routes made later be far from one another.
            if third:
                others[end, total, kind] = route
            else:
                slots[end] = route
        served.append(number)
        made.append(route)
    return served, made


def _each(numbers: NDArray[np.int64], selector: PrefixSelector) -> Iterator[_Selected]:
    table, selection, distances = selector.table, selector.selection, selector.distances
    found = numbers[selection.advertiser[numbers] != NONE]
    advertiser, key = table.ends_and_keys(selection.row[found])
    path_type = path_types(key)
    connected = distances.direct[advertiser]
    # RFC 2328 §16.4 (5): the type 2 cost is Y, without the cost inside the AS
    alone = connected | (path_type == _EXTERNAL_2)
    total = metrics(key) + np.where(alone, 0, distances.distance[advertiser])
    if selection.crossing:  # the row is that of the path that another one replaces
        crossing = np.isin(found, list(selection.crossing))
        total[crossing] = metrics(selection.key[found[crossing]])
    return zip(
        found.tolist(),
        (selection.advertiser[found] == ANYCAST).tolist(),
        advertiser.tolist(),
        total.tolist(),
        path_type.tolist(),
        connected.tolist(),
        strict=True,
    )


def _each_of_few(numbers: NDArray[np.int64], selector: PrefixSelector) -> Iterator[_Selected]:
    """The same one by one, in fewer steps."""
    selection, distances = selector.selection, selector.distances
    for number in numbers.tolist():
        selected = selection.advertiser.item(number)
        if selected == NONE:
            continue
        row = selector.table.read_one(selection.row.item(number))
        end, kind = row.advertiser, row.key >> TYPE_SHIFT
        local = distances.direct.item(end)
        beyond = 0 if local or kind == _EXTERNAL_2 else distances.distance.item(end)
        yield number, selected == ANYCAST, end, metric(row.key) + beyond, kind, local
