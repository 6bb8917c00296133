"""What engines and the rooms above tell each other about routes: the two ends of the data flow.

Engines say what was flooded (``TedUpdated``) and over which links they could forward
(``LocalLinksChanged``); a border router's engine is told what became of it (``RoutesComputed``).
``area`` is an OSPF area id or an IS-IS level (1 or 2). ``family`` is that of the routes: IS-IS
sends one update for each family, with the same arrays where both share a topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fared.core.ids import NodeId, Prefix
    from fared.ted.model import LocalLink, NodeBlock, PathType


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """What a border router needs to know of a route to announce it into other areas.

    ``areas`` are those its next hops belong to. ``capacity`` is what this router can carry to
    the prefix, bytes/s; None where that is unknown or unlimited.
    """

    metric: int
    path_type: PathType
    areas: tuple[int, ...]
    capacity: float | None


@dataclass(frozen=True, slots=True)
class RoutesComputed:
    """What the routing table became: the engine knows databases, routes are computed elsewhere.

    ``changes`` maps to None where a route is gone; ``asbrs`` holds all AS boundary routers
    that are reached. Only routers in several areas need to be told.
    """

    changes: dict[Prefix, RouteFacts | None]
    asbrs: dict[NodeId, RouteFacts]


@dataclass(frozen=True, slots=True)
class TedUpdated:
    """The flooded description of one router changed; ``block`` None: it is gone.

    ``topology`` is False when only capacities differ from the block before. ``cause`` names
    the LSA in words, ``since`` is the time at which the first change arrived.
    """

    area: int
    node: NodeId
    block: NodeBlock | None
    topology: bool
    cause: str
    since: float
    family: int = 4


@dataclass(frozen=True, slots=True)
class LocalLinksChanged:
    """The full adjacencies of this router in one area, complete, in ifindex order."""

    area: int
    links: tuple[LocalLink, ...]
    cause: str
    since: float
    family: int = 4
