"""Routes whose weights follow load slowly, between the solver and the FIB.

The solver computes weights for the present load. Here each weight vector (the next hops toward one
destination) approaches them as ``weights.adaptation`` defines, and its routes change only
when the shares have moved far enough. ``router.instance`` feeds it and programs its routes: after a
step of many vectors, a portion of them at a time.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.rib.model import DISCARD, Route
from fared.paths.rib.set_builder import SolvedHops
from fared.paths.weights.adaptation import ExponentialSmoother, VectorState
from fared.paths.weights.quantise import quantise_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.members import Members
    from fared.paths.rib.model import HopKey, NextHopSet, RouteDelta
    from fared.paths.rib.solver import RouteSolver

_FINE = 1e11
"""A share of 1 is this number before it becomes an integer weight."""
_SPARE = 16
_Place = tuple[int, "NodeId"]
_Key = tuple[tuple[_Place, ...], "Prefix | None"]


class _AdaptedVector(msgspec.Struct, eq=False):
    """The next hops toward one destination and the prefixes that use them.

    ``members`` and ``used`` (the indexes of those with a weight) receive the integer weights;
    ``columns`` are the columns of their shares; ``left`` (M,) is the remaining capacity of each
    path, ``capacity`` that of those with a weight; None if it is not known.
    """

    key: _Key
    row: int
    target: NextHopSet
    baseline: NextHopSet
    members: Members
    used: NDArray[np.int64]
    columns: NDArray[np.int64]
    left: NDArray[np.float64]
    capacity: NDArray[np.float64] | None = None
    programmed: NextHopSet | None = None
    count: int = 0
    """The number of prefixes."""
    prefixes: list[Prefix] = msgspec.field(default_factory=list)
    """All prefixes, and some that have left, or are listed again: less memory than a dictionary."""


_Fed = tuple[_AdaptedVector, "NDArray[np.float64]", "NDArray[np.float64]"]
"""A vector, the capacity of each of its members, and the remaining capacity; NaN unknown."""


class AdaptedRoutes:
    """The routes of one solver in available mode, with the weights to program."""

    def __init__(self, solver: RouteSolver, programmed: Mapping[Prefix, Route]) -> None:
        """``programmed``: the routes that were returned so far; the owner applies each return."""
        self._solver = solver
        self._programmed = programmed
        self.settings = solver.settings.adaptation
        self.flows = solver.settings.flows
        self._smoother = ExponentialSmoother(self.settings, self.flows)
        self._columns: dict[HopKey, int] = {}
        self._vectors: dict[_Key, _AdaptedVector] = {}
        self._by_row: dict[int, _AdaptedVector] = {}
        self._by_node: dict[_Place, dict[_Key, None]] = {}
        """The vectors toward one egress node."""
        self._toward_several: dict[_Key, None] = {}
        self._left: dict[_Key, None] = {}
        """Vectors that may have lost their last prefix."""
        self._keys: dict[Prefix, _Key] = {}
        """The keys that differ from those that the route tells (``_plain_key``)."""
        self._due: dict[int, None] = {}
        """Rows whose shares have moved far enough since they were programmed, the next first."""
        self._compared: tuple[Members, Members, bool] | None = None
        """What ``_same_keys`` has compared last."""
        self._joined = False
        """Whether the prefixes of ``programmed`` belong to vectors: not before the first routes."""
        self.rewrites = 0
        """Counts changes of integer weights because of load."""

    def take(
        self, changed: RouteDelta, *, capacities_changed: Iterable[_Place] | None
    ) -> RouteDelta:
        """Process the routes that the solver changed; return the routes to program at once.

        Changes of capacities, members and destinations take effect at once; load takes effect in
        ``step``. ``capacities_changed`` is as in ``RibUpdate``.
        """
        joined: dict[_Key, None] = {}
        for prefix, route in changed.items():
            known = self._programmed.get(prefix) if self._joined else None
            before = None if known is None else self._key_of(prefix, known)
            key = self._key(prefix, route)
            if key != before:
                self._leave(prefix, before)
                self._join(prefix, key, route)
            if key is not None:
                joined[key] = None
        self._joined = True
        self._sweep(joined)
        if capacities_changed is not None:
            for place in capacities_changed:
                joined.update(self._by_node.get(place, {}))
            joined.update(self._toward_several)
        touched: dict[Prefix, None] = dict.fromkeys(changed)
        for vector in self._program(self._feed(joined)):
            touched.update(dict.fromkeys(vector.prefixes))
        return self._publish(touched)

    def step(self, seconds: float, *, stale: bool) -> None:
        """Move shares toward their targets for ``seconds``; ``program`` makes routes of them."""
        due = self._smoother.step(seconds, stale=stale).tolist()
        before = self._due
        # Those that waited since the last step come first.
        self._due = dict.fromkeys([*(row for row in due if row in before), *due])

    @property
    def unprogrammed(self) -> bool:
        """Whether ``program`` has something to do."""
        return bool(self._due)

    def program(self, most: int) -> RouteDelta:
        """Program present shares for up to ``most`` next hops; return the routes that change.

        What ``take`` changed since the step counts: only which vectors wait is kept, no weights.
        """
        rows = list(islice(self._due, max(1, most // max(1, len(self._columns)))))
        touched: dict[Prefix, None] = {}
        for vector in self._program([self._by_row[row] for row in rows]):
            self.rewrites += 1
            touched.update(dict.fromkeys(vector.prefixes))
        return self._publish(touched)

    def state(self, prefix: Prefix) -> tuple[tuple[HopKey, ...], VectorState] | None:
        """Return a prefix's next hops and the state of their shares; None: it has no vector."""
        vector = self._vector_of(prefix, self._solver.routes.get(prefix))
        if vector is None:
            return None
        hops = tuple(vector.members.keys[at] for at in vector.used.tolist())
        return hops, self._smoother.state(vector.row, vector.columns)

    def vector(self, prefix: Prefix) -> int | None:
        """Return a number that is the same for prefixes of one vector; None: it has none."""
        found = self._vector_of(prefix, self._solver.routes.get(prefix))
        return None if found is None else found.row

    # Sharing of vectors by prefixes

    def _key(self, prefix: Prefix, route: Route | None) -> _Key | None:
        """Return the key of a vector, stable from run to run: the destinations of its routes.

        Prefixes with an advertised capacity of their own have a vector of their own. None: routes
        that are connected or discard have no vector.
        """
        if route is None or route.nexthops is None or route.discard:
            return None
        if not self._solver.several(prefix):
            return _plain_key(route)
        egress = self._solver.egress(prefix, route)
        own = len(egress) > 1 and any(np.isfinite(advertised) for _, _, advertised in egress)
        return (tuple((area, node) for area, node, _ in egress), prefix if own else None)

    def _key_of(self, prefix: Prefix, route: Route | None) -> _Key | None:
        """Return the key of the vector that a prefix has joined with this route."""
        return self._keys.get(prefix) or _plain_key(route)

    def _vector_of(self, prefix: Prefix, route: Route | None) -> _AdaptedVector | None:
        key = self._key_of(prefix, route)
        return None if key is None else self._vectors.get(key)

    def _join(self, prefix: Prefix, key: _Key | None, route: Route | None) -> None:
        """Let a prefix use the vector of a key, which begins at the weights without load."""
        if key is None or route is None or route.nexthops is None:
            return
        if key != _plain_key(route):
            self._keys[prefix] = key
        vector = self._vectors.get(key)
        if vector is None:
            nowhere = np.zeros(0, np.int64)
            members, left, _ = _arrays(route.nexthops)
            vector = _AdaptedVector(
                key=key,
                row=self._smoother.add(),
                target=route.nexthops,
                baseline=route.nexthops,
                members=members,
                used=nowhere,
                columns=nowhere,
                left=left,
            )
            self._vectors[key] = self._by_row[vector.row] = vector
            self._of_egress(key)[key] = None
        vector.prefixes.append(prefix)
        vector.count += 1

    def _leave(self, prefix: Prefix, key: _Key | None) -> None:
        if key is None:
            return
        self._keys.pop(prefix, None)
        vector = self._vectors[key]
        vector.count -= 1
        if not vector.count:
            self._left[key] = None

    def _sweep(self, joined: Iterable[_Key]) -> None:
        """Remove vectors without a prefix, and prefixes that have left."""
        for key in joined:
            vector = self._vectors[key]
            if len(vector.prefixes) > 2 * vector.count + _SPARE:
                vector.prefixes = [at for at in dict.fromkeys(vector.prefixes) if self._in(at, key)]
        left, self._left = self._left, {}
        for key in left:
            if self._vectors[key].count:
                continue
            row = self._vectors.pop(key).row
            self._smoother.remove(row)
            self._due.pop(row, None)
            del self._by_row[row], self._of_egress(key)[key]
            if len(key[0]) == 1 and not self._by_node[key[0][0]]:
                del self._by_node[key[0][0]]

    def _in(self, prefix: Prefix, key: _Key) -> bool:
        """Whether a prefix belongs to a vector."""
        return self._key_of(prefix, self._solver.routes.get(prefix)) == key

    def _one_of(self, vector: _AdaptedVector) -> Prefix:
        """Return one of the prefixes of a vector."""
        prefixes = vector.prefixes
        while not self._in(prefixes[-1], vector.key):
            prefixes.pop()
        return prefixes[-1]

    def _of_egress(self, key: _Key) -> dict[_Key, None]:
        """Return the vectors with the same egress node, or all those with several."""
        places = key[0]
        return self._by_node.setdefault(places[0], {}) if len(places) == 1 else self._toward_several

    def _weighed(self, prefix: Prefix, route: Route) -> Route:
        """Return the route to program for one of the solver."""
        vector = self._vector_of(prefix, route)
        if vector is None or route.nexthops is vector.programmed:
            return route
        hops = vector.programmed
        return Route(route.metric, route.path_type, route.area, hops, route.destinations)

    # Targets of vectors

    def _feed(self, keys: Iterable[_Key]) -> list[_AdaptedVector]:
        """Update the targets; return the vectors to program at once.

        Vectors with the same members are processed together: after the loss of a local link these
        are all vectors.
        """
        alike: dict[bytes, list[_Fed]] = {}
        for key in keys:
            vector = self._vectors[key]
            fed = self._refresh(vector)
            if fed is not None:
                alike.setdefault(vector.columns.tobytes(), []).append(fed)
        due = []
        for group in alike.values():
            vectors, capacity, left = zip(*group, strict=True)
            changed = self._smoother.feed(
                np.array([vector.row for vector in vectors], np.int64),
                vectors[0].columns,
                np.array(capacity),
                np.array(left),
            )
            due += [
                vector
                for vector, facts in zip(vectors, changed.tolist(), strict=True)
                if facts or vector.programmed is None
            ]
        return due

    def _refresh(self, vector: _AdaptedVector) -> _Fed | None:
        """Return capacity and remaining capacity of a vector's paths (M,); None: unchanged."""
        prefix = self._one_of(vector)
        route = self._solver.routes[prefix]
        target = route.nexthops
        assert target is not None
        baseline = self._solver.capacity_nexthops(prefix, route) or target
        # Solvers make equal sets one object: neither capacities nor load differ.
        if vector.programmed and target is vector.target and baseline is vector.baseline:
            return None
        if vector.programmed is None or baseline is not vector.baseline:
            self._rebase(vector, baseline)
        vector.target = target
        loaded, left, _ = _arrays(target)
        members, used = vector.members, vector.used
        if not self._same_keys(loaded, members):
            known_left = dict(zip(loaded.keys, left.tolist(), strict=True))
            left = np.array([known_left.get(key, np.nan) for key in members.keys], np.float64)
        vector.left = left
        if vector.capacity is not None:
            return vector, vector.capacity, left[used]
        _, _, weights = _arrays(baseline)
        return vector, weights[used].astype(np.float64), np.full(len(used), np.nan)

    def _rebase(self, vector: _AdaptedVector, baseline: NextHopSet) -> None:
        """Take another next-hop set by capacity: members, those with a weight, their capacities."""
        members, capacity, weights = _arrays(baseline)
        used = weights.nonzero()[0]
        own = capacity[used]
        vector.baseline = baseline
        vector.capacity = own if (own > 0).all() else None  # None with NaN, too
        if vector.members is not members or not np.array_equal(vector.used, used):
            vector.members, vector.used = members, used
            vector.columns = self._columns_of([members.keys[at] for at in used.tolist()])

    def _same_keys(self, loaded: Members, members: Members) -> bool:
        """Whether these have the same next hops in the same order; all vectors ask for the same."""
        known = self._compared
        if known is None or known[0] is not loaded or known[1] is not members:
            known = self._compared = loaded, members, loaded.keys == members.keys
        return known[2]

    def _columns_of(self, keys: Iterable[HopKey]) -> NDArray[np.int64]:
        columns = self._columns
        found = np.array([columns.setdefault(key, len(columns)) for key in keys], np.int64)
        self._smoother.widen(len(columns))
        return found

    def _program(self, vectors: list[_AdaptedVector]) -> list[_AdaptedVector]:
        """Quantise smoothed shares; return the vectors whose integer weights changed."""
        if not vectors:
            return []
        bounds = self._solver.settings
        shares = self._smoother.program(np.array([v.row for v in vectors], np.int64)) * _FINE
        quantised = quantise_rows(shares, bounds.max_weight, 0.0, 0, bounds.max_group_size)
        changed = []
        for vector, row in zip(vectors, quantised, strict=True):
            self._due.pop(vector.row, None)
            weights = np.zeros(len(vector.members.keys), np.int64)
            weights[vector.used] = row[vector.columns]
            made: NextHopSet = SolvedHops(vector.members, vector.left, weights)
            if vector.programmed is None or vector.programmed.key != made.key:
                # Without load the weights are those of the solver, and so are the routes: without
                # an object of its own each.
                vector.programmed = vector.target if _equal(vector.target, made) else made
                changed.append(vector)
        return changed

    def _publish(self, prefixes: Iterable[Prefix]) -> RouteDelta:
        """Make the routes of these prefixes; return those that changed."""
        changed: RouteDelta = {}
        made: dict[tuple[int, _Key | None], Route] = {}
        solved, programmed, keys = self._solver.routes, self._programmed, self._keys
        for prefix in prefixes:
            found, before = solved.get(prefix), programmed.get(prefix)
            if found is None:
                if before is not None:
                    changed[prefix] = None
                continue
            # Prefixes that share a route of the solver and a vector share this one, too.
            at = id(found), keys.get(prefix)
            route = made.get(at)
            if route is None:
                route = made[at] = self._weighed(prefix, found)
            if before is None or before.nexthops is not route.nexthops or before != route:
                changed[prefix] = route
        return changed


def _plain_key(route: Route | None) -> _Key | None:
    """Return the key of a route to a single node of an area; None: it has no vector, or another."""
    hops = None if route is None else route.nexthops
    if route is None or hops is None or hops is DISCARD:
        return None
    area, nodes = 0 if route.area is None else route.area, route.destinations
    if len(nodes) == 1:
        return (((area, nodes[0]),), None)
    return (tuple([(area, node) for node in nodes]), None)


def _equal(solved: NextHopSet, made: NextHopSet) -> bool:
    (members, _, weights), (ours, _, quantised) = _arrays(solved), _arrays(made)
    return members.keys == ours.keys and np.array_equal(weights, quantised)


def _arrays(hops: NextHopSet) -> tuple[Members, NDArray[np.float64], NDArray[np.int64]]:
    assert isinstance(hops, SolvedHops), "the solver makes no others"
    return hops.arrays()
