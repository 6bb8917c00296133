"""Routes whose weights follow load, slowly: between what is computed and what is programmed.

The solver says what weights the load of this moment asks for; here each weight vector (the
next hops toward one destination) moves there as ``fared.weights.adaptation`` says, and its
routes become others only when the shares have moved far enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.members import SolvedHops
from fared.weights.adaptation import Relaxation, VectorState
from fared.weights.quantise import quantise_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import Prefix
    from fared.rib.members import Members
    from fared.rib.model import HopKey, NextHopSet, Route
    from fared.rib.solver import RouteSolver

_FINE = 1e11
"""What a share of 1 is turned into before it becomes an integer weight."""
_Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class _Vector:
    """The next hops toward one destination and the prefixes that use them.

    ``members`` and ``used`` (of those, the places) are where the integer weights go;
    ``columns`` where the shares of the used ones lie; ``left`` (M,) what each path has left.
    """

    row: int
    target: NextHopSet
    unloaded: NextHopSet
    members: Members
    used: NDArray[np.int64]
    columns: NDArray[np.int64]
    left: NDArray[np.float64]
    programmed: NextHopSet | None = None
    prefixes: dict[Prefix, None] = field(default_factory=dict)


_Fed = tuple[_Vector, "NDArray[np.float64]", "NDArray[np.float64]"]
"""A vector, what each of its members can carry, and what it has left; NaN unknown."""


class AdaptedRoutes:
    """The routes of one solver in available mode, as they are to be programmed."""

    def __init__(self, solver: RouteSolver) -> None:
        self._solver = solver
        self.settings = solver.settings.adaptation
        self.flows = solver.settings.flows
        self._relaxation = Relaxation(self.settings, self.flows)
        self._columns: dict[HopKey, int] = {}
        self._vectors: dict[_Key, _Vector] = {}
        self._keys: dict[Prefix, _Key] = {}
        self._routes: dict[Prefix, Route] = {}
        self._unloaded: tuple[object, int] | None = None
        self.rewrites = 0
        """How often integer weights of a vector became others because of load."""

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The present routes with the weights that are to be programmed."""
        return self._routes

    def take(self, changed: Mapping[Prefix, Route | None]) -> dict[Prefix, Route | None]:
        """Take what the solver changed and return what that changes here, now.

        Facts count at once: capacities, members, new destinations. Load waits for ``step``.
        """
        joined: dict[_Key, None] = {}
        for prefix, route in changed.items():
            self._leave(prefix)
            if route is not None and route.nexthops is not None and not route.discard:
                joined[self._join(prefix, route)] = None
        self._sweep()
        if self._unloaded != self._solver.unloaded_version:
            self._unloaded = self._solver.unloaded_version
            joined = dict.fromkeys(self._vectors)
        touched: dict[Prefix, None] = dict.fromkeys(changed)
        for vector in self._program(self._feed(joined)):
            touched.update(vector.prefixes)
        return self._publish(touched)

    def step(self, seconds: float, *, stale: bool) -> dict[Prefix, Route | None]:
        """Let time pass: move shares toward their targets, return the routes that follow."""
        due = set(self._relaxation.step(seconds, stale=stale).tolist())
        touched: dict[Prefix, None] = {}
        if due:
            moved = [vector for vector in self._vectors.values() if vector.row in due]
            for vector in self._program(moved):
                self.rewrites += 1
                touched.update(vector.prefixes)
        return self._publish(touched)

    def state(self, prefix: Prefix) -> tuple[tuple[HopKey, ...], VectorState] | None:
        """The vector of a prefix: its next hops, and how their shares stand."""
        key = self._keys.get(prefix)
        if key is None:
            return None
        vector = self._vectors[key]
        hops = tuple(vector.members.keys[at] for at in vector.used.tolist())
        return hops, self._relaxation.state(vector.row, vector.columns)

    def vector(self, prefix: Prefix) -> int | None:
        """A number that prefixes of one vector share; None: it has none."""
        key = self._keys.get(prefix)
        return None if key is None else self._vectors[key].row

    # Which prefixes share a vector

    def _key(self, route: Route) -> _Key:
        """What a vector is known by, from one run to the next: where its routes lead.

        Prefixes with an announced capacity of their own have a vector of their own.
        """
        ends = self._solver.ends(route)
        own = len(ends) > 1 and any(np.isfinite(announced) for _, _, announced in ends)
        return (tuple((area, node) for area, node, _ in ends), route.prefix if own else None)

    def _join(self, prefix: Prefix, route: Route) -> _Key:
        assert route.nexthops is not None
        key = self._key(route)
        vector = self._vectors.get(key)
        if vector is None:
            nowhere = np.zeros(0, np.int64)
            members, left, _ = _arrays(route.nexthops)
            vector = self._vectors[key] = _Vector(
                row=self._relaxation.add(),
                target=route.nexthops,
                unloaded=route.nexthops,
                members=members,
                used=nowhere,
                columns=nowhere,
                left=left,
            )
        vector.prefixes[prefix] = None
        self._keys[prefix] = key
        return key

    def _leave(self, prefix: Prefix) -> None:
        key = self._keys.pop(prefix, None)
        if key is not None:
            del self._vectors[key].prefixes[prefix]

    def _sweep(self) -> None:
        for key in [key for key, vector in self._vectors.items() if not vector.prefixes]:
            self._relaxation.remove(self._vectors.pop(key).row)

    # What a vector is to become

    def _feed(self, keys: Iterable[_Key]) -> list[_Vector]:
        """Bring targets up to date; the vectors that are to be programmed at once.

        Those with the same members are worked out together: after the loss of a local link
        these are all vectors.
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
            changed = self._relaxation.feed(
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

    def _refresh(self, vector: _Vector) -> _Fed | None:
        """Find what the paths of a vector can carry and have left (M,); None: as before."""
        route = self._solver.routes[next(iter(vector.prefixes))]
        target = route.nexthops
        assert target is not None
        unloaded = self._solver.unloaded_set(route) or target
        if vector.programmed and target is vector.target and unloaded is vector.unloaded:
            return None
        vector.target, vector.unloaded = target, unloaded
        loaded, left, _ = _arrays(target)
        members, capacity, weights = _arrays(unloaded)
        used = weights.nonzero()[0]
        if loaded.keys != members.keys:
            known_left = dict(zip(loaded.keys, left.tolist(), strict=True))
            left = np.array([known_left.get(key, np.nan) for key in members.keys], np.float64)
        vector.left = left
        own = capacity[used]
        known = bool((own > 0).all())  # False with NaN, too
        if vector.members is not members or not np.array_equal(vector.used, used):
            vector.members, vector.used = members, used
            vector.columns = self._columns_of([members.keys[at] for at in used.tolist()])
        if known:
            return vector, own, left[used]
        return vector, weights[used].astype(np.float64), np.full(len(used), np.nan)

    def _columns_of(self, keys: Iterable[HopKey]) -> NDArray[np.int64]:
        columns = self._columns
        found = np.array([columns.setdefault(key, len(columns)) for key in keys], np.int64)
        self._relaxation.widen(len(columns))
        return found

    def _program(self, vectors: list[_Vector]) -> list[_Vector]:
        """Turn relaxed shares into integer weights; the vectors whose are others than before."""
        if not vectors:
            return []
        limit = self._solver.settings.max_weight
        shares = self._relaxation.program(np.array([v.row for v in vectors], np.int64)) * _FINE
        quantised = quantise_rows(shares, limit, 0.0, 0)
        changed = []
        for vector, row in zip(vectors, quantised, strict=True):
            weights = np.zeros(len(vector.members.keys), np.int64)
            weights[vector.used] = row[vector.columns]
            made = SolvedHops(vector.members, vector.left, weights)
            if vector.programmed is None or vector.programmed.key != made.key:
                vector.programmed = made
                changed.append(vector)
        return changed

    def _publish(self, prefixes: Iterable[Prefix]) -> dict[Prefix, Route | None]:
        """Make the routes of these prefixes; return those that are not what they were."""
        changed: dict[Prefix, Route | None] = {}
        for prefix in prefixes:
            route = self._solver.routes.get(prefix)
            if route is None:
                if self._routes.pop(prefix, None) is not None:
                    changed[prefix] = None
                continue
            key = self._keys.get(prefix)
            if key is not None:
                route = replace(route, nexthops=self._vectors[key].programmed)
            before = self._routes.get(prefix)
            if before is None or before.nexthops is not route.nexthops or before != route:
                self._routes[prefix] = changed[prefix] = route
        return changed


def _arrays(hops: NextHopSet) -> tuple[Members, NDArray[np.float64], NDArray[np.int64]]:
    assert isinstance(hops, SolvedHops), "the solver makes no others"
    return hops.arrays()
