"""The routes of a solver, by prefix, kept in a list by the number of the prefix.

``PrefixTable`` numbers the prefixes that are advertised. A second dictionary of a hundred thousand
prefixes would take five megabytes; a list takes a seventh of that.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, TypeVar

from fared.core.ids import Prefix
from fared.rib.model import Route
from fared.rib.rows import NONE

if TYPE_CHECKING:
    from fared.rib.prefixes import PrefixTable

_D = TypeVar("_D")


class SolvedRoutes(MutableMapping[Prefix, Route]):
    """Routes by prefix, or by the number of the prefix in one table."""

    __slots__ = ("_by_number", "_others", "_size", "_table")

    def __init__(self, table: PrefixTable) -> None:
        self._table = table
        self._by_number: list[Route | None] = []
        self._others: dict[Prefix, Route] = {}
        """Those of prefixes that had no number: a range that no router advertises."""
        self._size = 0

    def __len__(self) -> int:
        return self._size + len(self._others)

    def __iter__(self) -> Iterator[Prefix]:
        return (prefix for prefix, _ in self.items())

    def items(self) -> ItemsView[Prefix, Route]:
        """All prefixes with their routes, in the order of their numbers."""
        return _RouteItems(self)

    def values(self) -> ValuesView[Route]:
        """All routes, in the same order."""
        return _RouteValues(self)

    def pairs(self) -> Iterator[tuple[Prefix, Route]]:
        """Iterate over ``items``."""
        for prefix, route in zip(self._table.prefixes, self._by_number, strict=False):
            if route is not None:
                yield prefix, route
        yield from self._others.items()

    def get(self, prefix: Prefix, default: _D | None = None) -> Route | _D | None:  # type: ignore[override]
        """Return the route to a prefix."""
        number = self._table.number(prefix)
        if number != NONE and number < len(self._by_number):
            route = self._by_number[number]
            if route is not None:
                return route
        return self._others.get(prefix, default)

    def __contains__(self, prefix: object) -> bool:
        return self.get(prefix) is not None  # type: ignore[arg-type]

    def __getitem__(self, prefix: Prefix) -> Route:
        route = self.get(prefix)
        if route is None:
            raise KeyError(prefix)
        return route

    def __setitem__(self, prefix: Prefix, route: Route) -> None:
        number = self._table.number(prefix)
        if number == NONE:
            self._others[prefix] = route
        else:
            self.put({number: route})

    def __delitem__(self, prefix: Prefix) -> None:
        number = self._table.number(prefix)
        if number == NONE or not self.drop(number):
            del self._others[prefix]

    def put(self, routes: Mapping[int, Route]) -> None:
        """Set routes by the numbers of their prefixes."""
        known, prefixes = self._by_number, self._table.prefixes
        known.extend([None] * (len(prefixes) - len(known)))
        for number, route in routes.items():
            if known[number] is None:
                self._size += 1
                if self._others:
                    self._others.pop(prefixes[number], None)
            known[number] = route

    def drop(self, number: int) -> bool:
        """Remove the route to a prefix, by its number; return whether there was one."""
        if number < len(self._by_number) and self._by_number[number] is not None:
            self._by_number[number] = None
            self._size -= 1
            return True
        return self._others.pop(self._table.prefixes[number], None) is not None


class _RouteValues(ValuesView[Route]):
    """A view that does not look up each prefix."""

    def __init__(self, routes: SolvedRoutes) -> None:
        super().__init__(routes)
        self._routes = routes

    def __iter__(self) -> Iterator[Route]:
        return (route for _, route in self._routes.pairs())


class _RouteItems(ItemsView[Prefix, Route]):
    """As ``_RouteValues``."""

    def __init__(self, routes: SolvedRoutes) -> None:
        super().__init__(routes)
        self._routes = routes

    def __iter__(self) -> Iterator[tuple[Prefix, Route]]:
        return self._routes.pairs()
