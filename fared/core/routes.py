"""Routes of this router that no routing protocol of ours made: what may be redistributed."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fared.core.ids import Prefix


class RouteSource(enum.StrEnum):
    """Where a route comes from; in order of preference where two have the same prefix."""

    CONNECTED = "connected"
    STATIC = "static"


@dataclass(frozen=True, slots=True)
class LocalRoute:
    """A route that forwards now. ``hops`` are (ifindex, gateway) pairs, gateway 0 for none.

    A connected route has the interfaces that have an address in it. Without hops a static one
    discards, or its next hops are not known here.
    """

    hops: tuple[tuple[int, int], ...] = ()


RouteKey = tuple[RouteSource, Prefix]
