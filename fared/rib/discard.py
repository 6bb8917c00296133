"""Discard routes for the area ranges of a border router (RFC 2328 §11.1).

A range tells other areas that all of it is to be found here, though some of it may be missing.
What is addressed to the missing part must then end here: by a shorter route, a default route
say, it would go back to where it came from, and round in circles. So while a range is active,
that is while it has components in its area, its prefix is a route that discards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.rib.model import DISCARD, Route
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fared.core.ids import NodeId, Prefix

AreaRange = tuple[int, "Prefix"]
"""The area whose prefixes a range stands for, and the prefix that stands for them."""


class Discards:
    """Lays the discard routes of active ranges over a table of routes.

    ``areas_of`` gives the areas that a route leads into.
    """

    def __init__(self, root: NodeId, areas_of: Callable[[Route], Iterable[int]]) -> None:
        self._root = root
        self._areas_of = areas_of
        self._ranges: tuple[AreaRange, ...] = ()
        self._known = True
        self._range_of: dict[Prefix, AreaRange] = {}
        self._components: dict[AreaRange, int] = {}
        self._laid: dict[Prefix, Route] = {}
        self._covered: dict[Prefix, Route | None] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges or self._laid)

    def configure(self, ranges: tuple[AreaRange, ...]) -> None:
        """Take the ranges; they count from the next ``lay`` on."""
        if ranges != self._ranges:
            self._ranges = ranges
            self._known = False

    def lay(self, changed: dict[Prefix, Route | None], routes: dict[Prefix, Route]) -> None:
        """Bring the discard routes in ``routes`` up to date, and ``changed`` with them.

        Both come with the routes as selected; ``changed`` lacks none that became another one.
        """
        if self._known:
            for prefix, route in changed.items():
                self._note(prefix, route)
        else:
            self._known = True
            self._range_of, self._components = {}, {}
            for prefix, route in routes.items():
                self._note(prefix, route)
        for prefix in dict.fromkeys((*self._laid, *(prefix for _, prefix in self._ranges))):
            self._settle(prefix, changed, routes)

    def _note(self, prefix: Prefix, route: Route | None) -> None:
        """Count a route as a component of the longest range that it is in (§3.5)."""
        before = self._range_of.pop(prefix, None)
        if before is not None:
            self._components[before] -= 1
        if route is None or route.path_type is not PathType.INTRA_AREA:
            return
        areas = set(self._areas_of(route))
        around = [item for item in self._ranges if item[0] in areas and item[1].covers(prefix)]
        if around:
            found = max(around, key=lambda item: item[1].length)
            self._range_of[prefix] = found
            self._components[found] = self._components.get(found, 0) + 1

    def _settle(
        self, prefix: Prefix, changed: dict[Prefix, Route | None], routes: dict[Prefix, Route]
    ) -> None:
        laid = self._laid.get(prefix)
        if laid is None or prefix in changed:
            selected = routes.get(prefix)
        else:
            selected = self._covered[prefix]
        wanted = self._wanted(prefix, selected)
        if wanted is not None:
            self._covered[prefix] = selected
            self._laid[prefix] = routes[prefix] = wanted
            if wanted == laid:
                changed.pop(prefix, None)
            else:
                changed[prefix] = wanted
        elif laid is not None:
            del self._laid[prefix], self._covered[prefix]
            changed[prefix] = selected
            if selected is None:
                routes.pop(prefix, None)
            else:
                routes[prefix] = selected

    def _wanted(self, prefix: Prefix, selected: Route | None) -> Route | None:
        """The discard route of a prefix, as an inter-area route (§11.1, §16.2 (3))."""
        if selected is not None and selected.path_type is PathType.INTRA_AREA:
            return None
        for area, wide in self._ranges:
            if wide == prefix and self._components.get((area, wide)):
                return Route(prefix, 0, PathType.INTER_AREA, area, DISCARD, (self._root,))
        return None
