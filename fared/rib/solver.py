"""The route solver: what the engines say of routers in, changed routes out.

It owns one ``AreaSolver`` per area (graph, plan, path capacities) and the table of announced
prefixes, and combines them: preference among path types, the nearest of several announcing
nodes, equal ones joined. Routes are only made for prefixes whose best announcement or
next-hop set became another one. No clock, no I/O: the daemon and the offline tool share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import BACKBONE
from fared.rib.area import AreaSolver
from fared.rib.discard import AreaRange, Discards
from fared.rib.explain import Explanation, SpfNode, explain_route, view_spf
from fared.rib.facts import Ends, Reached, carried, find_asbrs
from fared.rib.forwarding import Forwarded
from fared.rib.join import join_areas
from fared.rib.model import Route
from fared.rib.prefixes import NO_ROUTE, NOBODY, SEVERAL, PrefixTable, Reach, Selection
from fared.rib.settings import SolverSettings
from fared.rib.told import Told
from fared.rib.unloaded import Unloaded
from fared.ted.database import Change
from fared.ted.model import PathType
from fared.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.rib.model import NextHopSet
    from fared.ted.database import Ted
    from fared.ted.model import LocalLink, NodeBlock, PrefixAttachment

__all__ = ["RibUpdate", "RouteSolver", "SolverSettings", "WeightMode"]

Announcements = dict[tuple[int, "NodeId"], "tuple[PrefixAttachment, ...]"]
_Shared = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class RibUpdate:
    """The outcome of one run: ``changed`` maps to None where a route is gone.

    ``spf_ran`` is False when present plans sufficed; ``areas`` are those computed. ``nodes``,
    ``edges`` (directed, both ends agreeing) and ``destinations`` (reached) count all areas.
    """

    changed: dict[Prefix, Route | None]
    spf_ran: bool
    areas: tuple[int, ...]
    nodes: int
    edges: int
    destinations: int
    spf_seconds: float = 0.0
    """What shortest paths took, where the solver was given a stopwatch."""


class RouteSolver:
    """Routes of one router (or, offline, of any router of the database)."""

    def __init__(self, root: NodeId, settings: SolverSettings) -> None:
        self.root = root
        self.settings = settings
        self.stopwatch: Callable[[], float] = float
        self._areas: dict[int, AreaSolver] = {}
        self._unloaded = Unloaded(root, settings)
        self._table = PrefixTable()
        self._routes: dict[Prefix, Route] = {}
        self._selection: Selection | None = None
        self._reach = self._locate()
        self._shared_sets: dict[_Shared, NextHopSet | None] = {}
        self._forwarded = Forwarded()
        self._placed = False
        self._told = Told(self._areas, self.ends)
        self._untold: dict[Prefix, None] | None = None
        self._asbrs: dict[NodeId, Reached] | None = None
        self._discards = Discards(root, self._areas_of)
        self._boundaries: dict[tuple[int, NodeId], NodeBlock] = {}
        self._all_changed = False

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The present best routes, connected and discarding ones included."""
        return MappingProxyType(self._routes)

    def ted(self, area: int) -> Ted:
        """The database of one area. Raises KeyError for an area never heard of."""
        return self._areas[area].ted

    @property
    def areas(self) -> tuple[int, ...]:
        """The areas that have been fed, ascending."""
        return tuple(sorted(self._areas))

    def _area(self, area: int) -> AreaSolver:
        if area not in self._areas:
            self._areas[area] = AreaSolver(self.root)
            self._areas[area].stopwatch = self.stopwatch
        return self._areas[area]

    def put_block(self, area: int, node: NodeId, block: NodeBlock | None) -> Change:
        """Take the newest description of a router in an area; None: it is gone.

        Returns what it changed.
        """
        solver = self._area(area)
        change = solver.ted.remove(node) if block is None else solver.ted.put(block)
        if Change.LOAD in change:
            solver.loads += 1
        if block is not None and (block.boundary or block.leads_to):
            self._boundaries[area, node] = block
            self._asbrs = None
        elif self._boundaries.pop((area, node), None) is not None:
            self._asbrs = None
        if Change.PREFIXES in change:
            prefixes = () if block is None else block.prefixes
            elsewhere = bool(self._forwarded)
            self._table.put(area, node, self._forwarded.take(area, node, prefixes))
            self._table.changed |= elsewhere or bool(self._forwarded)
        return change

    def set_local_links(self, area: int, links: tuple[LocalLink, ...]) -> None:
        """Take the full adjacencies of this router in an area."""
        self._area(area).links = links

    def set_ranges(self, ranges: tuple[AreaRange, ...]) -> None:
        """Take the area ranges that this router stands for: active ones get a discard route."""
        self._discards.configure(ranges)

    def apply_settings(self, settings: SolverSettings) -> None:
        """Weigh by other settings from the next run on."""
        if settings != self.settings:
            self.settings = settings
            self._all_changed = True
            self._unloaded = Unloaded(self.root, settings)
            for solver in self._areas.values():
                solver.forget()

    def solve(self) -> RibUpdate:
        """Compute what changed since the last run."""
        changes = {}
        before = sum(solver.spf_seconds for solver in self._areas.values())
        for area in sorted(self._areas):
            change = self._areas[area].update(self.settings)
            if change is not None:
                changes[area] = change
            if self.settings.mode is WeightMode.AVAILABLE:
                self._unloaded.follow(area, self._areas[area])
        if self._table.compact():
            self._all_changed = True
        spf_ran = any(change.spf_ran for change in changes.values())
        changed: dict[Prefix, Route | None] = {}
        # Where all nodes stay where they were, the same ones serve the prefixes as before.
        moved = any(change.moved for change in changes.values())
        moved |= spf_ran and (bool(self._forwarded) or self._selection is None)
        nodes = {area: change.nodes for area, change in changes.items()}
        if moved or self._table.changed or self._all_changed:
            changed = self._select_again(nodes)
        elif self._table.retold or any(change.any for change in changes.values()):
            changed = self._refresh(nodes)
        self._all_changed = False
        if self._discards:
            self._discards.lay(changed, self._routes)
        if self._untold is not None:
            self._untold.update(dict.fromkeys(changed))
        if spf_ran:
            self._asbrs = None
        solved = [s.solution for s in self._areas.values() if s.solution is not None]
        return RibUpdate(
            changed=changed,
            spf_ran=spf_ran,
            areas=tuple(changes),
            nodes=sum(len(solution.plan.distance) for solution in solved),
            edges=sum(len(solution.plan.graph.dst) for solution in solved),
            destinations=sum(solver.reached() for solver in self._areas.values()),
            spf_seconds=sum(solver.spf_seconds for solver in self._areas.values()) - before,
        )

    def unloaded_set(self, route: Route) -> NextHopSet | None:
        """The next-hop set of a present route by capacity, whatever the load; in available mode.

        What announcing nodes say lies behind them is left out: that moves with load.
        """
        return self._unloaded.set_of(self.ends(route))

    @property
    def unloaded_version(self) -> tuple[object, int]:
        """Equal as long as no ``unloaded_set`` of a present route is another one."""
        return self._unloaded, self._unloaded.version

    def _locate(self) -> Reach:
        """Locate all announcing nodes in the present plans."""
        areas, nodes = self._table.owner_arrays()
        size = len(nodes)
        reach = Reach(
            distance=np.full(size, NO_ROUTE),
            own=np.zeros(size, bool),
            direct=np.zeros(size, bool),
            index=np.full(size, -1, np.int64),
            beyond=np.ones(size, bool),
        )
        backbone = self._areas.get(BACKBONE)
        if backbone is not None and backbone.reached() > 0:
            reach.beyond[:] = areas == BACKBONE
        for area, solver in self._areas.items():
            if solver.solution is None:
                continue
            plan = solver.solution.plan
            at = (areas == area).nonzero()[0]
            index = plan.graph.indexes(nodes[at])
            if (index < 0).any():
                at, index = at[index >= 0], index[index >= 0]
            reach.index[at] = index
            reach.distance[at] = plan.distance[index]
            reach.own[at] = reach.direct[at] = index == plan.root
            if plan.graph.network.any():
                around = slice(*plan.graph.indptr[plan.root : plan.root + 2].tolist())
                attached = np.zeros(len(plan.distance), bool)
                attached[plan.graph.dst[around]] = True
                reach.direct[at] |= (attached & plan.graph.network)[index]
        return reach

    def _touched(self, nodes: Mapping[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Mark the owners (O,) whose next-hop set is another object."""
        areas, _ = self._table.owner_arrays()
        touched = np.zeros(len(areas), bool)
        for area, mask in nodes.items():
            if len(mask):
                at = ((areas == area) & (self._reach.index >= 0)).nonzero()[0]
                touched[at] = mask[self._reach.index[at]]
        return touched

    def _select_again(self, nodes: Mapping[int, NDArray[np.bool_]]) -> dict[Prefix, Route | None]:
        self._reach = self._locate()
        old, new = self._selection, self._select()
        self._selection = new
        shared_sets = self._begin_sets(new, keep=not nodes and not self._all_changed)
        if old is None or self._all_changed:
            return self._replace_all()
        size = len(old.key)
        different = np.ones(len(new.key), bool)
        different[:size] = (new.key[:size] != old.key) | (new.owner[:size] != old.owner)
        touched = self._touched(nodes)
        single = new.owner >= 0
        different[single] |= touched[new.owner[single]]
        different[self._rejoined(new.shared, old, new, shared_sets)] = True
        return self._publish(different.nonzero()[0])

    def _select(self) -> Selection:
        """Choose the best announcements; those with a forwarding address come after the others."""
        if self._forwarded or self._placed:
            self._table.add({})
        selection = self._table.select(self._reach)
        self._placed = bool(self._forwarded)
        if not self._placed:
            return selection
        links = {area: solver.links for area, solver in self._areas.items()}
        self._table.add(self._forwarded.place(self._table, selection, self._reach, links))
        self._reach = self._locate()
        return self._table.select(self._reach)

    def _refresh(self, nodes: Mapping[int, NDArray[np.bool_]]) -> dict[Prefix, Route | None]:
        """Renew the routes whose next-hop set changed; which nodes serve them did not."""
        old, retold = self._selection, tuple(self._table.retold)
        assert old is not None
        new = self._table.select_retold(old, self._reach) if retold else old
        self._selection = new
        touched = np.append(self._touched(nodes), [False, False])  # SEVERAL and NOBODY
        different = touched[new.owner] | (new.owner != old.owner)
        shared_sets = self._begin_sets(new, keep=not nodes)
        different[self._rejoined(new.shared if nodes else retold, old, new, shared_sets)] = True
        return self._publish(different.nonzero()[0])

    def _rejoined(
        self,
        numbers: Iterable[int],
        old: Selection,
        new: Selection,
        before: Mapping[_Shared, NextHopSet | None],
    ) -> list[int]:
        """Which of these prefixes lead to several nodes by other ways than ``before``, or no more."""

        def same(number: int) -> bool:
            shared = new.shared.get(number)
            if old.shared.get(number) != shared:
                return False
            return shared is None or self._shared_set(shared) is before.get(shared)

        return [number for number in numbers if not same(number)]

    def _begin_sets(self, new: Selection, *, keep: bool) -> dict[_Shared, NextHopSet | None]:
        """Forget next-hop sets toward several nodes, and return those there were.

        ``keep``: those of present prefixes still hold, for no path carries more or less.
        """
        before, self._shared_sets = self._shared_sets, {}
        if keep:
            present = set(new.shared.values())
            self._shared_sets = {shared: s for shared, s in before.items() if shared in present}
        return before

    def _replace_all(self) -> dict[Prefix, Route | None]:
        selection = self._selection
        assert selection is not None
        routes = dict(self._make_routes(np.flatnonzero(selection.owner != NOBODY)))
        changed: dict[Prefix, Route | None] = {
            prefix: route for prefix, route in routes.items() if self._routes.get(prefix) != route
        }
        changed.update({prefix: None for prefix in self._routes if prefix not in routes})
        self._routes = routes
        self._untold = None  # what is announced along may be another even with an equal route
        return changed

    def _publish(self, numbers: NDArray[np.int64]) -> dict[Prefix, Route | None]:
        if not len(numbers):
            return {}
        changed: dict[Prefix, Route | None] = dict(self._make_routes(numbers))
        prefixes, routes = self._table.prefixes, self._routes
        routes.update((prefix, route) for prefix, route in changed.items() if route is not None)
        if len(changed) < len(numbers):
            for number in numbers.tolist():
                if prefixes[number] not in changed and prefixes[number] in routes:
                    del routes[prefixes[number]]
                    changed[prefixes[number]] = None
        return changed

    def _make_routes(self, numbers: NDArray[np.int64]) -> Iterator[tuple[Prefix, Route]]:
        """Make the routes of these prefixes, leaving out those that have none."""
        selection, table = self._selection, self._table
        assert selection is not None
        found = numbers[selection.owner[numbers] != NOBODY]
        metric, path_type, owner = table.announcements(selection.row[found])
        connected = self._reach.direct[owner]
        alone = connected | (path_type == int(PathType.EXTERNAL_2))
        distance = np.where(alone, 0, self._reach.distance[owner])
        sets: dict[int, NextHopSet | None] = {}
        types = {int(item): item for item in PathType}
        for number, several, end, total, kind, local in zip(
            found.tolist(),
            (selection.owner[found] == SEVERAL).tolist(),
            owner.tolist(),
            (metric + distance).tolist(),
            path_type.tolist(),
            connected.tolist(),
            strict=True,
        ):
            prefix = table.prefixes[number]
            area, node = table.owners[end]
            if local:
                yield prefix, Route(prefix, total, types[kind], area, None, (node,))
            elif several:
                route = self._shared_route(number, total, types[kind])
                if route is not None:
                    yield prefix, route
            else:
                if end not in sets:
                    sets[end] = self._areas[area].set_of(int(self._reach.index[end]))
                hops = sets[end]
                if hops is not None:
                    yield prefix, Route(prefix, total, types[kind], area, hops, (node,))

    def _shared_route(self, number: int, metric: int, path_type: PathType) -> Route | None:
        """The route to a prefix that several nodes announce, or one with a capacity of its own."""
        selection = self._selection
        assert selection is not None
        shared = selection.shared[number]
        hops = self._shared_set(shared)
        if hops is None:
            return None
        ends = [self._table.owners[owner] for owner, _ in shared]
        areas = {area for area, _ in ends}
        nodes = tuple(sorted({node for _, node in ends}))
        area = areas.pop() if len(areas) == 1 else None
        return Route(self._table.prefixes[number], metric, path_type, area, hops, nodes)

    def _shared_set(self, shared: _Shared) -> NextHopSet | None:
        """The next-hop set toward several nodes; made once a run for all their prefixes."""
        if shared in self._shared_sets:
            return self._shared_sets[shared]
        by_area: dict[int, list[tuple[int, float]]] = {}
        for owner, capacity in shared:
            area, node = self._table.owners[owner]
            index = self._areas[area].ted.graph().index(node)
            assert index is not None
            by_area.setdefault(area, []).append((index, capacity))
        found = join_areas(self._areas, by_area, self.settings)
        self._shared_sets[shared] = found
        return found

    def seen_from(self, root: NodeId, announced: Announcements) -> RouteSolver:
        """Make a solver for another root on these very databases, to be read from only.

        ``announced`` stands for the prefixes of all blocks, by area and node; local links are
        still to be set.
        """
        other = RouteSolver(root, self.settings)
        for area, solver in self._areas.items():
            other._area(area).ted = solver.ted
        for (area, node), prefixes in announced.items():
            other._table.put(area, node, other._forwarded.take(area, node, prefixes))
        return other

    def path_capacity(self, prefix: Prefix) -> float | None:
        """What this router can carry to a prefix over all its paths together, bytes/s.

        This is what a border router announces along with a prefix. None where it is unknown,
        unlimited (connected) or there is no route.
        """
        route = self._routes.get(prefix)
        if route is None or route.discard:
            return None
        return carried(self._areas, self.ends(route), route.nexthops)

    def ends(self, route: Route) -> Ends:
        """The nodes a route leads to, with what each of them announced of the prefix."""
        number = self._table.number(route.prefix)
        shared = None if self._selection is None else self._selection.shared.get(number)
        if shared is None:
            area = 0 if route.area is None else route.area
            return tuple((area, node, np.inf) for node in route.destinations)
        owners = self._table.owners
        return tuple((*owners[owner], capacity) for owner, capacity in shared)

    def _areas_of(self, route: Route) -> Iterator[int]:
        return (area for area, _, _ in self.ends(route))

    def reached_now(self) -> tuple[dict[Prefix, Reached | None], dict[NodeId, Reached]]:
        """What others are told of routes, where it changed since asked last, and all ASBRs.

        None: nothing is told any more. External and discarding routes are not told.
        """
        if self._untold is None:
            prefixes: Collection[Prefix] = dict.fromkeys((*self._told.prefixes, *self._routes))
        else:
            prefixes = self._untold
        self._untold = {}
        changes = self._told.update(prefixes, self._routes)
        if self._asbrs is None:
            backbone = self._areas.get(BACKBONE)
            border = backbone is not None and backbone.reached() > 0
            beyond = (BACKBONE,) if border else tuple(self._areas)
            self._asbrs = find_asbrs(self._areas, self._boundaries, beyond, self.root)
        return changes, self._asbrs

    def explain(self, prefix: Prefix) -> Explanation | None:
        """Why the route to a prefix is what it is; None without a route."""
        route = self._routes.get(prefix)
        if route is None:
            return None
        return explain_route(self._areas, route, () if route.discard else self.ends(route))

    def spf_view(self, area: int) -> dict[NodeId, SpfNode]:
        """Distance and first hops of every reachable node of an area."""
        solver = self._areas.get(area)
        return {} if solver is None or solver.solution is None else view_spf(solver.solution.plan)
