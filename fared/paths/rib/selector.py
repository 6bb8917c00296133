"""The advertisements of all routers and the selection among them, updated with each change.

The solver feeds it. Advertisements change one LSA or TLV at a time, areas by one ``AreaDelta``
each. Where no node moved, only prefixes whose advertisements changed are selected again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import HOSTS_AREA
from fared.paths.rib.distances import locate
from fared.paths.rib.few import take_few
from fared.paths.rib.forwarding import ForwardingAddresses, OwnEnds, Resolved
from fared.paths.rib.own_prefixes import own_prefixes
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.rib.rows import NONE
from fared.paths.rib.selection import Selection, choose, union
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.graph import anywhere
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.area import AreaDelta, AreaSolver
    from fared.paths.rib.facts import Egress
    from fared.paths.rib.hosts import OwnHosts
    from fared.paths.rib.model import Route
    from fared.paths.rib.prefixes import Advertiser, Changes
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.ted.model import PrefixReachability

Advertisements = dict[tuple[int, "NodeId"], "tuple[PrefixReachability, ...]"]


class PrefixSelector:
    """The advertisements of all areas, and the best ones of each prefix."""

    def __init__(self, areas: Mapping[int, AreaSolver], hosts: OwnHosts) -> None:
        self._areas = areas
        self._hosts = hosts
        self._forwarding = ForwardingAddresses()
        self.table = PrefixTable()
        self.selection = Selection()
        self.distances = locate(self.table, areas)
        self._considered: dict[Prefix, None] = {}
        """Prefixes whose advertisements changed, if there are tags."""

    @property
    def forwards(self) -> bool:
        """Whether any prefix has a forwarding address."""
        return bool(self._forwarding)

    def put(self, area: int, node: NodeId, changes: Changes) -> ChangeKind:
        """Process changed advertisements of a node; return the kind of change."""
        ignored, before = self._ignores(area, node, changes), self.table.changed
        changes, kind = self._forwarding.take(area, node, changes)
        if ignored:
            self.table.changed = set()
        kind = max(kind, self.table.put(area, node, changes))
        if ignored:
            self.table.changed = before
            return ChangeKind.NONE
        return kind

    def _ignores(self, area: int, node: NodeId, changes: Changes) -> bool:
        """Whether changes are of summaries that a border router does not examine (RFC 2328 §16.2).

        Their prefixes are not selected again either. If it loses the backbone, all are: distances
        differ then.
        """
        number = self.table.known_advertiser(area, node)
        beyond = self.distances.beyond
        if not 0 <= number < len(beyond) or beyond[number] or self.distances.transit[number]:
            return False
        return self.table.path_types(area, node, changes) == {PathType.INTER_AREA}

    def compact(self) -> bool:
        """Renumber the prefixes if most are withdrawn; if True, all must be selected again."""
        table = self.table.compacted()
        if table is None:
            return False
        self._consider()
        self.table, self.selection = table, Selection()
        return True

    def take_considered(self) -> Collection[Prefix]:
        """Return the prefixes whose tags may be others than at the last call."""
        considered, self._considered = self._considered, {}
        return considered

    def _consider(self) -> None:
        if self.table.tagged:
            prefixes = self.table.prefixes
            self._considered.update(dict.fromkeys(prefixes[at] for at in self.table.changed))

    def select(
        self, deltas: dict[int, AreaDelta], settings: SolverSettings, *, everything: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Select the egress nodes of the prefixes, after the areas have been computed.

        Those of hosts are computed here, and added to ``deltas``. Returns the numbers of the
        prefixes with a new selection, and of those whose single egress node has another next-hop
        set object.
        """
        everything = everything or any(delta.moved for delta in deltas.values())
        # While no node moves, distances stay: only changed advertisements alter a selection.
        if everything:
            self._consider()
            self.distances = locate(self.table, self._areas)
            self.table.changed.clear()
            different = self.selection.take_all(choose(self.table, self.distances))
        else:
            different = self._select_changed()
        # RFC 2328 §16.4 follows §16.1 and §16.2: a forwarding address needs a route inside the AS.
        if self._forwarding:
            links_changed = any(delta.links_changed for delta in deltas.values())
            inside_changed = self.table.inside_changed or self._hosts.stale
            self._resolve(all_ways=everything or inside_changed or links_changed)
            deltas.update(self._place_hosts(settings))
            different = union(different, self._select_changed())
        self.table.inside_changed = False
        return different, self._touched(deltas)

    def _resolve(self, *, all_ways: bool) -> None:
        """Attach prefixes with a forwarding address, after the others are selected."""
        self._locate_new()
        links = {at: solver.links for at, solver in self._areas.items() if at < HOSTS_AREA}
        own = OwnEnds(links, self._hosts)
        attached = self._forwarding.resolve(
            self.table, self.selection, self.distances, own, all_ways=all_ways
        )
        for at, changes in attached.items():
            self.table.put(*at, changes)

    def _place_hosts(self, settings: SolverSettings) -> dict[int, AreaDelta]:
        """Compute the areas of the hosts that serve a forwarding address."""
        placed = self._hosts.place(self._forwarding.hosts, settings)
        if placed:
            self.distances = locate(self.table, self._areas)
        return placed

    def _select_changed(self) -> NDArray[np.int64]:
        table = self.table
        if not table.changed:
            return np.empty(0, np.int64)
        self._locate_new()
        self._consider()
        changed = sorted(table.changed)
        table.changed.clear()
        different = take_few(self.selection, table, self.distances, changed)
        if different is not None:
            return np.array(different, np.int64)
        numbers = np.array(changed, np.int64)
        choice = choose(table, self.distances, numbers)
        return self.selection.take(numbers, choice, len(table.prefixes))

    def _locate_new(self) -> None:
        for at in self._forwarding.advertisers:
            self.table.advertiser(*at)
        # Advertisers are only ever added, so the same number of them is the same set.
        if len(self.distances.index) != len(self.table.advertisers):
            self.distances = locate(self.table, self._areas)

    def _touched(self, deltas: Mapping[int, AreaDelta]) -> NDArray[np.int64]:
        """Return the prefixes whose single egress node has another next-hop set object."""
        areas, _ = self.table.advertiser_arrays()
        touched = np.zeros(len(areas) + 2, bool)  # the last two are ANYCAST and NONE
        for area, delta in deltas.items():
            if len(delta.nodes):
                at = ((areas == area) & (self.distances.index >= 0)).nonzero()[0]
                touched[at] = delta.nodes[self.distances.index[at]]
        if not anywhere(touched):
            return np.empty(0, np.int64)
        return touched[self.selection.advertiser].nonzero()[0]

    def count(self, area: int, node: NodeId) -> int:
        """Return the number of prefixes that a node advertises in an area."""
        return self._forwarding.count(area, node) + sum(
            not isinstance(source, Resolved) for source in self.table.sources(area, node)
        )

    def own_prefixes(self, externals: Iterable[tuple[NodeId, Prefix]]) -> dict[NodeId, int]:
        """Return how many prefixes each router has that no other one advertises."""
        return own_prefixes(self.table, externals)

    def advertised_by(self, area: int, node: NodeId) -> Iterator[PrefixReachability]:
        """Iterate over the prefixes a node advertises, without those with a forwarding address."""
        for source, item in self.table.advertised_by(area, node):
            if not isinstance(source, Resolved):
                yield item

    def advertisements(self, prefix: Prefix | None = None) -> Advertisements:
        """Return the advertisements of a prefix, or of all prefixes, as they are in the database.

        If one of them has a forwarding address, all are returned: the route to it may use any of
        them.
        """
        found: dict[Advertiser, list[PrefixReachability]] = {}
        for at, item in self._forwarding.advertisements():
            if prefix in (None, item.prefix):
                found.setdefault(at, []).append(item)
        if found and prefix is not None:
            return self.advertisements()
        for at, source, item in self.table.advertised(prefix):
            if not isinstance(source, Resolved):
                found.setdefault(at, []).append(item)
        return {at: tuple(items) for at, items in found.items()}

    def crosses(self, prefix: Prefix) -> bool:
        """Whether a route through the backbone crosses a transit area (RFC 2328 §16.3)."""
        return self.table.number(prefix) in self.selection.crossing

    def several(self, prefix: Prefix) -> bool:
        """Whether ``egress`` is more than the node that the route tells."""
        return self.table.number(prefix) in self.selection.egress

    def tags(self, prefix: Prefix) -> tuple[int, ...]:
        """Return the tags with which the nodes that serve a prefix advertise it, ascending."""
        number = self.table.number(prefix)
        if not self.table.tagged or not 0 <= number < len(self.selection.row):
            return ()
        row = self.selection.row.item(number)
        ends = self.selection.egress.get(number, ())
        return () if row == NONE else self.table.tags(number, row, {end for end, _ in ends})

    def egress(self, prefix: Prefix, route: Route) -> Egress:
        """Return the egress nodes of a route, and the capacity each advertises for the prefix."""
        egress = self.selection.egress.get(self.table.number(prefix))
        if egress is None:
            area = 0 if route.area is None else route.area
            return tuple((area, node, np.inf) for node in route.destinations)
        return tuple((*self.table.advertisers[at], capacity) for at, capacity in egress)
