"""Events between the engines and the packages above.

Engines report what was flooded (``TedUpdated``, ``PrefixesUpdated``) and over which links they
could forward (``LocalLinksChanged``); the engine of a border router receives the resulting routes
(``RoutesComputed``). ``area`` is an OSPF area id or an IS-IS level (1 or 2). ``family`` is that of
the routes: IS-IS sends one update for each family, with the same arrays where both share a
topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from fared.core.bier import BierInfo
    from fared.core.filters import Filter
    from fared.core.ids import NodeId, Prefix
    from fared.paths.ted.model import (
        LocalLink,
        LocalNetwork,
        NodeBlock,
        PathType,
        PrefixReachability,
    )


class AdvertisedRoute(msgspec.Struct, frozen=True):
    """A route as a router advertises it into other areas or protocols.

    ``areas`` are its own and those of its next hops. ``capacity`` is the aggregate capacity of its
    paths, bytes/s; None where it is unknown or unlimited. ``tags`` are those with which it was
    advertised here, each once.
    """

    metric: int
    path_type: PathType
    areas: tuple[int, ...]
    capacity: float | None
    tags: tuple[int, ...] = ()


class AreaRange(NamedTuple):
    """A range of a border router: the area whose prefixes it summarizes, and its prefix.

    ``out`` filters what leaves the area, ``into`` what enters each of the others (None: no filter).
    """

    area: int
    prefix: Prefix
    out: Filter | None = None
    into: tuple[Filter | None, ...] = ()

    def permits(self, prefix: Prefix) -> bool:
        """Whether a prefix may be advertised to any other area, as part of the range."""
        if self.out is not None and not self.out.permits(prefix):
            return False
        return not self.into or any(each is None or each.permits(prefix) for each in self.into)


class RoutesComputed(msgspec.Struct, frozen=True):
    """Changed routes for an engine, which has only databases; routes are computed elsewhere.

    ``changes`` maps to None where a route is gone; ``asbrs`` holds all reachable AS boundary
    routers. Only routers in several areas need this.
    """

    changes: dict[Prefix, AdvertisedRoute | None]
    asbrs: dict[NodeId, AdvertisedRoute]


class EndsCounted(msgspec.Struct, frozen=True):
    """For an engine: the link ends that share the budget of an area or level (``te.budget``).

    ``ends``: by area, of this router, and of all routers on a path from it: those with a capacity
    whose link both ends advertise.
    """

    ends: dict[int, tuple[int, int]]


class TedUpdated(msgspec.Struct, frozen=True):
    """The flooded description of one router changed; ``block`` None: it is gone.

    ``cause`` names the LSA for people, ``since`` is the time at which the first change arrived.
    ``changes`` are those of its prefixes that came along, as of ``PrefixesUpdated``.
    """

    area: int
    node: NodeId
    block: NodeBlock | None
    cause: str
    since: float
    family: int = 4
    changes: Mapping[Hashable, PrefixReachability | None] = msgspec.field(default_factory=dict)


class PrefixesUpdated(msgspec.Struct, frozen=True):
    """Changed prefixes of one router that its block does not list.

    ``changes`` are by the LSA or TLV that advertises each; None: withdrawn. A router may advertise
    a hundred thousand prefixes, learned one by one, so only changes are passed on.
    """

    area: int
    node: NodeId
    changes: Mapping[Hashable, PrefixReachability | None]
    cause: str
    since: float
    family: int = 4


class LocalLinksChanged(msgspec.Struct, frozen=True):
    """The full adjacencies of this router in one area, complete, in ifindex order."""

    area: int
    links: tuple[LocalLink, ...]
    cause: str
    since: float
    family: int = 4


class LocalNetworksChanged(msgspec.Struct, frozen=True):
    """The networks of this router in one area, complete: those of its interfaces that are up."""

    area: int
    networks: tuple[LocalNetwork, ...]
    cause: str
    since: float
    family: int = 4


class BierUpdated(msgspec.Struct, frozen=True):
    """The BIER prefixes of one router changed; ``prefixes`` are all of them now, with BIER only.

    ``is_bfr``: it forwards BIER packets itself, and does not just readvertise prefixes of others.
    """

    area: int
    node: NodeId
    prefixes: Mapping[Prefix, tuple[BierInfo, ...]]
    is_bfr: bool
    cause: str
    since: float


Computed = RoutesComputed | EndsCounted
Output = TedUpdated | PrefixesUpdated | LocalLinksChanged | LocalNetworksChanged | BierUpdated
