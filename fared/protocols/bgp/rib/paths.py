"""Neighbors, and the paths that they announce, each kept once and named by a small integer.

A path holds its Link Bandwidth, and whose limit that is, apart from its other attributes: it is no
part of the decision (RFC 10005 §3.2), and changes more often.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Attribute,
    ClusterList,
    Communities,
    ExtendedCommunities,
    LocalPref,
    Med,
    Origin,
    OriginatorId,
    OriginType,
    PathAttributes,
    SharedLimits,
    attributes_of,
)
from fared.protocols.bgp.packet.communities import (
    AvailableBandwidth,
    LinkBandwidth,
    SharedLimit,
    with_link_bandwidth,
)
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.origins import origin_tag

DEFAULT_LOCAL_PREF: Final = 100
_ROOM: Final = 64
OWN: Final = 0
"""The number of this router among its neighbors: what it originates itself."""
REDISTRIBUTED: Final = -1
"""Its number for what it redistributes: used where no neighbor told a path."""


class BgpPeer(msgspec.Struct, frozen=True):
    """A session as the tables see it; ``number`` is above 0.

    ``receive`` False: its Link Bandwidth is ignored. ``missing``: without one, a path weighs as its
    link alone, or all paths weigh the same (RFC 10005 §4). ``own_minimum``: it takes the minimum of
    what it is told and of its own direction of the link.
    """

    number: int
    remote_as: int
    identifier: int
    address: int
    internal: bool = False
    receive: bool = True
    missing: Literal["link", "ecmp"] = "link"
    own_minimum: bool = False

    @property
    def speaker(self) -> tuple[int, int]:
        """The router at the other end, which may have several sessions (RFC 6286 §2.1)."""
        return self.remote_as, self.identifier


class BgpPath(msgspec.Struct, frozen=True, gc=False):
    """A path; ``attributes`` are those without Link Bandwidth, ``bandwidth`` is bytes/s.

    ``limits``: routers that all paths behind the neighbor pass through, itself included.
    ``available``: what load leaves of ``bandwidth``, None: all of it, or unknown.

    ``preference`` is what the decision compares first, the lowest wins: LOCAL_PREF negated, length
    of the AS path, origin.
    """

    attributes: PathAttributes
    next_hop: BgpNextHop
    bandwidth: float | None
    preference: tuple[int, int, int]
    med: int
    neighbor_as: int
    kind: int = 0
    """The same for paths that differ in bandwidth only."""
    origin: int = 0
    """The tag of the protocol that it was redistributed from, 0 for none."""
    limits: tuple[SharedLimit, ...] = ()
    available: float | None = None


def with_bandwidth(
    attributes: PathAttributes, *own: LinkBandwidth | AvailableBandwidth
) -> PathAttributes:
    """Return attributes with these Link Bandwidths, or none, instead of others."""
    found = attributes.find(ExtendedCommunities)
    communities = with_link_bandwidth(() if found is None else found.communities, *own)
    return with_communities(attributes, communities)


def with_communities(attributes: PathAttributes, communities: tuple[bytes, ...]) -> PathAttributes:
    """Return attributes with other extended communities."""
    if communities:
        return attributes.replaced(ExtendedCommunities(communities))
    return without(attributes, ExtendedCommunities)


def with_community(attributes: PathAttributes, community: int) -> PathAttributes:
    """Return attributes with a community beside others (RFC 1997)."""
    found = attributes.find(Communities)
    others = () if found is None else found.communities
    if community in others:
        return attributes
    return attributes.replaced(Communities((*others, community)))


def without(attributes: PathAttributes, *kinds: type[Attribute]) -> PathAttributes:
    """Return attributes without those of some classes."""
    kept = [item for item in attributes.items if not isinstance(item, kinds)]
    if len(kept) == len(attributes.items):
        return attributes
    codes = {kind.code for kind in kinds}
    return attributes_of(kept, [code for code in attributes.partial if code not in codes])


def has_loop(attributes: PathAttributes, local_as: int, identifier: int) -> bool:
    """Whether a path comes from here: this AS is in it, or this router (RFC 4271 §9.1.2).

    RFC 4456 §8: route reflectors name the router that a path comes from, and those that it passed;
    the cluster of a router that reflects nothing is its router id.
    """
    found = attributes.find(AsPath)
    path = () if found is None else found.path
    if any(local_as in segment.numbers for segment in path):
        return True
    first, clusters = attributes.find(OriginatorId), attributes.find(ClusterList)
    if first is not None and first.identifier == identifier:
        return True
    return clusters is not None and identifier in clusters.clusters


def make_path(
    attributes: PathAttributes, next_hop: BgpNextHop, bandwidth: float | None = None, kind: int = 0
) -> BgpPath:
    """Return a path with what the decision needs of its attributes."""
    path, local = attributes.find(AsPath), attributes.find(LocalPref)
    origin, med = attributes.find(Origin), attributes.find(Med)
    preference = (
        -(DEFAULT_LOCAL_PREF if local is None else local.preference),
        0 if path is None else path.length,
        OriginType.INCOMPLETE if origin is None else origin.origin,
    )
    first = path.path[0].numbers[0] if path is not None and path.path else 0
    # RFC 4271 §9.1.2.2 (c): without MED, the lowest
    lowest = 0 if med is None else med.metric
    tag = origin_tag(attributes)
    return BgpPath(attributes, next_hop, bandwidth, preference, lowest, first, kind, tag)


_Key = tuple[int, float | None, tuple[SharedLimit, ...], float | None]
"""Of a path: its kind, and what may be another one in paths of that kind."""


class PathTable:
    """All paths by number; 0 is no path."""

    def __init__(self) -> None:
        self.kinds = np.zeros(_ROOM, np.int32)
        """By the number of a path, its kind: paths of one differ in bandwidth only."""
        self._paths: list[BgpPath | None] = [None]
        self._numbers: dict[_Key, int] = {}
        self._bases: dict[tuple[PathAttributes, BgpNextHop], BgpPath] = {}
        self._last = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> BgpPath:
        found = self._paths[number]
        assert found is not None
        return found

    def number(self, attributes: PathAttributes, next_hop: BgpNextHop, *, receive: bool) -> int:
        """Return the number of a path with these attributes, a new one if need be."""
        bandwidth = attributes.link_bandwidth if receive else None
        limits = attributes.shared_limits if receive else ()
        free = attributes.available_bandwidth if receive else None
        plain = without(with_bandwidth(attributes), SharedLimits)
        base = self._bases.get((plain, next_hop))
        if base is None:
            self._last += 1
            base = make_path(plain, next_hop, kind=self._last)
            self._bases[plain, next_hop] = base
        key = (base.kind, bandwidth, limits, free)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._place()
            self._paths[found] = msgspec.structs.replace(
                base, bandwidth=bandwidth, limits=limits, available=free
            )
            self.kinds[found] = base.kind
        return found

    def _place(self) -> int:
        if self._free:
            return self._free.pop()
        found = len(self._paths)
        self._paths.append(None)
        if found == len(self.kinds):
            self.kinds = np.concatenate([self.kinds, np.zeros_like(self.kinds)])
        return found

    def sweep(self, used: NDArray[np.int32]) -> None:
        """Forget all paths but these."""
        kept = np.zeros(len(self._paths), bool)
        kept[used] = True
        for key, number in list(self._numbers.items()):
            if not kept[number]:
                del self._numbers[key]
                self._paths[number] = None
                self._free.append(number)
        kinds = {key[0] for key in self._numbers}
        self._bases = {key: base for key, base in self._bases.items() if base.kind in kinds}
