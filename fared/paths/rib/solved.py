"""The routes of a solver, by prefix, kept in a list by the number of the prefix.

``PrefixTable`` numbers the prefixes that are advertised. A second dictionary of a hundred thousand
prefixes would take five megabytes; a list takes a seventh of that. So others follow these routes
instead of copying them: they stay one object, and each change tells what is different.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from fared.core.ids import Prefix
from fared.paths.rib.model import Route

if TYPE_CHECKING:
    from fared.paths.rib.model import NumberedRoutes, RouteDelta
    from fared.paths.rib.prefixes import PrefixTable

_D = TypeVar("_D")


class PairedRoutes(Mapping[Prefix, Route]):
    """Routes by prefix that are iterated as pairs, without a look-up of each prefix."""

    __slots__ = ()

    @abstractmethod
    def pairs(self) -> Iterator[tuple[Prefix, Route]]:
        """Iterate over ``items``."""

    @abstractmethod
    def get(self, prefix: Prefix, default: _D | None = None) -> Route | _D | None:  # type: ignore[override]
        """Return the route to a prefix."""

    def __iter__(self) -> Iterator[Prefix]:
        return (prefix for prefix, _ in self.pairs())

    def items(self) -> ItemsView[Prefix, Route]:
        """All prefixes with their routes."""
        return _RouteItems(self)

    def values(self) -> ValuesView[Route]:
        """All routes, in the same order."""
        return _RouteValues(self)

    def __contains__(self, prefix: object) -> bool:
        return self.get(prefix) is not None  # type: ignore[arg-type]

    def __getitem__(self, prefix: Prefix) -> Route:
        route = self.get(prefix)
        if route is None:
            raise KeyError(prefix)
        return route


class SolvedRoutes(PairedRoutes, MutableMapping[Prefix, Route]):
    """Routes by prefix, or by the number of the prefix in one table, in the order of numbers."""

    __slots__ = ("_by_number", "_numbers", "_others", "_size", "_table")

    def __init__(self, table: PrefixTable) -> None:
        self._table = table
        self._numbers = table.numbers
        self._by_number: list[Route | None] = []
        self._others: dict[Prefix, Route] = {}
        """Those of prefixes that had no number: a range that no router advertises."""
        self._size = 0

    def __len__(self) -> int:
        return self._size + len(self._others)

    def pairs(self) -> Iterator[tuple[Prefix, Route]]:
        """Iterate over ``items``."""
        for prefix, route in zip(self._table.prefixes, self._by_number, strict=False):
            if route is not None:
                yield prefix, route
        yield from self._others.items()

    def get(self, prefix: Prefix, default: _D | None = None) -> Route | _D | None:  # type: ignore[override]
        """Return the route to a prefix."""
        try:
            route = self._by_number[self._numbers[prefix]]
        except (KeyError, IndexError):  # it has no number, or got it after the last run
            route = None
        return self._others.get(prefix, default) if route is None else route

    def __setitem__(self, prefix: Prefix, route: Route) -> None:
        number = self._numbers.get(prefix)
        if number is None:
            self._others[prefix] = route
        else:
            self.put(([number], [route]))

    def __delitem__(self, prefix: Prefix) -> None:
        number = self._numbers.get(prefix)
        if number is None or not self.drop(number):
            del self._others[prefix]

    def put(self, routes: NumberedRoutes) -> RouteDelta:
        """Set routes by the numbers of their prefixes; return those that are other objects."""
        known, prefixes = self._by_number, self._table.prefixes
        known.extend([None] * (len(prefixes) - len(known)))
        changed: RouteDelta = {}
        for number, route in zip(*routes, strict=True):
            before, known[number] = known[number], route
            if before is None:
                self._size += 1
                if self._others:
                    before = self._others.pop(prefixes[number], None)
            if before is not route:
                changed[prefixes[number]] = route
        return changed

    def drop(self, number: int) -> bool:
        """Remove the route to a prefix, by its number; return whether there was one."""
        if number < len(self._by_number) and self._by_number[number] is not None:
            self._by_number[number] = None
            self._size -= 1
            return True
        return self._others.pop(self._table.prefixes[number], None) is not None

    def replace(self, table: PrefixTable, routes: NumberedRoutes) -> RouteDelta:
        """Replace all routes by others, by the numbers of a table, and return what is different.

        Where a route equals the former one, that object stays (in ``routes``, too).
        """
        before = copy(self)
        self._table, self._numbers = table, table.numbers
        self._by_number, self._others, self._size = [], {}, 0
        if not before:
            return self.put(routes)
        former, prefixes = before.get, table.prefixes
        numbers, made = routes
        changed: RouteDelta = {}
        for at, (number, route) in enumerate(zip(numbers, made, strict=True)):
            prefix = prefixes[number]
            known = former(prefix)
            if known is not None and known == route:
                made[at] = known
            else:
                changed[prefix] = route
        self.put(routes)
        changed.update({prefix: None for prefix in before if prefix not in self})
        return changed


class FamilyRoutes(PairedRoutes):
    """The routes of several solvers, one for each family."""

    __slots__ = ("_of",)

    def __init__(self, of: Mapping[int, Mapping[Prefix, Route]]) -> None:
        """``of``: the routes by family."""
        self._of = of

    def __len__(self) -> int:
        return sum([len(routes) for routes in self._of.values()])

    def pairs(self) -> Iterator[tuple[Prefix, Route]]:
        """Iterate over ``items``."""
        return (pair for routes in self._of.values() for pair in routes.items())

    def get(self, prefix: Prefix, default: _D | None = None) -> Route | _D | None:  # type: ignore[override]
        """Return the route to a prefix."""
        routes = self._of.get(prefix.family)
        return default if routes is None else routes.get(prefix, default)


class _RouteValues(ValuesView[Route]):
    """A view that does not look up each prefix."""

    def __init__(self, routes: PairedRoutes) -> None:
        super().__init__(routes)
        self._routes = routes

    def __iter__(self) -> Iterator[Route]:
        return (route for _, route in self._routes.pairs())


class _RouteItems(ItemsView[Prefix, Route]):
    """As ``_RouteValues``."""

    def __init__(self, routes: PairedRoutes) -> None:
        super().__init__(routes)
        self._routes = routes

    def __iter__(self) -> Iterator[tuple[Prefix, Route]]:
        return self._routes.pairs()
