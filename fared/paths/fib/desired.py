"""The next hops that the routes of a table want in the kernel.

A view: a dictionary of its own would take fifty bytes for each of a hundred thousand prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from fared.core.ids import Prefix
from fared.paths.rib.model import NextHopSet, Route

Routes: TypeAlias = Callable[[], Mapping[Prefix, Route]]
"""Returns the present routes of a table."""


class DesiredRoutes(Mapping[Prefix, NextHopSet]):
    """Next-hop sets by prefix; connected routes have none. Empty until ``begin``."""

    __slots__ = ("_begun", "_routes")

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._begun = False

    def begin(self) -> None:
        """Follow the table from now on."""
        self._begun = True

    def end(self) -> None:
        """Desire nothing any more."""
        self._begun = False

    def table(self) -> Mapping[Prefix, Route]:
        """The routes followed; ``wanted_of`` tells what they want."""
        return self._routes() if self._begun else {}

    def __getitem__(self, prefix: Prefix) -> NextHopSet:
        hops = wanted_of(self.table().get(prefix))
        if hops is None:
            raise KeyError(prefix)
        return hops

    def __contains__(self, prefix: object) -> bool:
        return wanted_of(self.table().get(prefix)) is not None  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[Prefix]:
        return (at for at, route in self.table().items() if wanted_of(route) is not None)

    def __len__(self) -> int:
        return sum(wanted_of(route) is not None for route in self.table().values())


def wanted_of(route: Route | None) -> NextHopSet | None:
    """Return the next hops of a route for the kernel; None: it has none there."""
    hops = None if route is None else route.nexthops
    return hops if hops is not None and hops.key else None
