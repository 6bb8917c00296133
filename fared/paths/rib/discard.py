"""Discard routes for the area ranges of a border router (RFC 2328 §11.1).

A range advertises all of a prefix to other areas, though parts of it may be missing. This router
must drop packets to a missing part: a shorter route, such as a default route, would send them back
to their origin, in a loop. So while a range is active, that is while it has components in its area,
its prefix has a discard route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.paths.rib.model import DISCARD, Route, RouteDelta
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping

    from fared.core.ids import NodeId, Prefix
    from fared.paths.ted.events import AreaRange

_Key = tuple[int, "Prefix"]
"""Area and prefix of a range."""


class Discards:
    """Adds the discard routes of active ranges to a table of routes.

    ``areas_of`` gives the areas that a route leads into.
    """

    def __init__(self, root: NodeId, areas_of: Callable[[Prefix, Route], Iterable[int]]) -> None:
        self._root = root
        self._areas_of = areas_of
        self._ranges: tuple[AreaRange, ...] = ()
        self._known = True
        self._range_of: dict[Prefix, _Key] = {}
        self._components: dict[_Key, int] = {}
        self._laid: dict[Prefix, Route] = {}
        self._covered: dict[Prefix, Route | None] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges or self._laid)

    def configure(self, ranges: tuple[AreaRange, ...]) -> None:
        """Set the ranges; they take effect at the next ``lay``."""
        if ranges != self._ranges:
            self._ranges = ranges
            self._known = False

    def lay(
        self,
        selected: Iterable[Prefix],
        changed: RouteDelta,
        routes: MutableMapping[Prefix, Route],
    ) -> None:
        """Update the discard routes in ``routes``, and add their changes to ``changed``.

        Both hold the routes as selected; ``changed`` has every route that changed, ``selected`` the
        prefixes whose egress nodes are others.
        """
        if self._known:
            for prefix in dict.fromkeys((*selected, *changed)):
                self._note(prefix, routes.get(prefix))
        else:
            self._known = True
            self._range_of, self._components = {}, {}
            for prefix, route in routes.items():
                self._note(prefix, route)
        for prefix in dict.fromkeys((*self._laid, *(item.prefix for item in self._ranges))):
            self._settle(prefix, changed, routes)

    def _note(self, prefix: Prefix, route: Route | None) -> None:
        """Count a route as a component of the longest range that contains it (RFC 2328 §3.5)."""
        before = self._range_of.pop(prefix, None)
        if before is not None:
            self._components[before] -= 1
        # §12.4.3: ranges summarize intra-area routes only
        if route is None or route.path_type is not PathType.INTRA_AREA:
            return
        areas = set(self._areas_of(prefix, route))
        around = [
            item for item in self._ranges if item.area in areas and item.prefix.covers(prefix)
        ]
        found = max(around, key=lambda item: item.prefix.length, default=None)
        # what filters keep in the area is no part of the range
        if found is not None and found.permits(prefix):
            key = self._range_of[prefix] = found[:2]
            self._components[key] = self._components.get(key, 0) + 1

    def _settle(
        self, prefix: Prefix, changed: RouteDelta, routes: MutableMapping[Prefix, Route]
    ) -> None:
        """Lay, keep or remove the discard route of a range; its change is put into ``changed``."""
        laid = self._laid.get(prefix)
        # The table holds our discard route, unless the solver has just replaced it.
        if laid is None or prefix in changed:
            selected = routes.get(prefix)
        else:
            selected = self._covered[prefix]
        wanted = self._wanted(prefix, selected)
        if wanted is not None:
            self._covered[prefix] = selected
            if laid == wanted:
                routes[prefix] = laid
                changed.pop(prefix, None)
            else:
                self._laid[prefix] = routes[prefix] = changed[prefix] = wanted
        elif laid is not None:
            del self._laid[prefix], self._covered[prefix]
            changed[prefix] = selected
            if selected is None:
                routes.pop(prefix, None)
            else:
                routes[prefix] = selected

    def _wanted(self, prefix: Prefix, selected: Route | None) -> Route | None:
        """Return the discard route of a prefix, an inter-area route (RFC 2328 §11.1, §16.2 (3))."""
        # RFC 2328 §11: intra-area paths are preferred, also to an inter-area discard route
        if selected is not None and selected.path_type is PathType.INTRA_AREA:
            return None
        # §3.5: a range is active while it has components; §16.2 (3): it replaces equal summaries
        for item in self._ranges:
            if item.prefix == prefix and self._components.get(item[:2]):
                return Route(0, PathType.INTER_AREA, item.area, DISCARD, (self._root,))
        return None
