"""Neighbors, and the paths that they announce, each kept once and named by a small integer.

A path holds its Link Bandwidth, and whose limit that is, apart from its other attributes: it is no
part of the decision (RFC 10005 §3.2), and changes more often.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, Final, Literal, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
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
_T = TypeVar("_T", bound=Hashable)
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


_Value = tuple[float | None, tuple[SharedLimit, ...], float | None]
"""What may be another one in paths of one kind: bandwidth, limits, available."""


class PathTable:
    """All paths by number; 0 is no path. A kind mostly has one path, so that little is kept of it.

    A table of 64 neighbors with 500 paths each, all of them different, has 32,000 kinds.
    """

    def __init__(self) -> None:
        self.kinds = np.zeros(_ROOM, np.int32)
        """By the number of a path, its kind: paths of one differ in bandwidth only."""
        self._paths: list[BgpPath | None] = [None]
        self._firsts: dict[BgpNextHop, dict[PathAttributes, int]] = {}
        """By next hop and attributes, a path of that kind."""
        self._others: dict[int, dict[_Value, int]] = {}
        """By kind and value, the paths of kinds that have several."""
        self._alike: dict[Hashable, Any] = {}
        """What equal parts of many paths refer to."""
        self._last = self._count = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> BgpPath:
        found = self._paths[number]
        assert found is not None
        return found

    @property
    def next_hops(self) -> Collection[BgpNextHop]:
        """Those of all paths."""
        return self._firsts.keys()

    def number(self, attributes: PathAttributes, next_hop: BgpNextHop, *, receive: bool) -> int:
        """Return the number of a path with these attributes, a new one if need be."""
        value: _Value = (None, (), None)
        if receive:
            limits, free = attributes.shared_limits, attributes.available_bandwidth
            value = attributes.link_bandwidth, limits, free
        plain = without(with_bandwidth(attributes), SharedLimits)
        firsts = self._firsts.setdefault(next_hop, {})
        first = firsts.get(plain)
        if first is None:
            self._last += 1
            made = make_path(plain, next_hop, kind=self._last)
            found = firsts[plain] = self._enter(made, value)
            return found
        base = self[first]
        if value == _value(base):
            return first
        others = self._others.setdefault(base.kind, {_value(base): first})
        found = others.get(value, 0)
        if not found:
            found = others[value] = self._enter(base, value)
        return found

    def _enter(self, base: BgpPath, value: _Value) -> int:
        """Enter a path of the kind of another one."""
        self._count += 1
        if self._free:
            found = self._free.pop()
        else:
            found = len(self._paths)
            self._paths.append(None)
            if found == len(self.kinds):
                self.kinds = np.concatenate([self.kinds, np.zeros_like(self.kinds)])
        bandwidth, limits, available = value
        self._paths[found], self.kinds[found] = (
            replace(
                base,
                next_hop=self._same(base.next_hop),
                preference=self._same(base.preference),
                bandwidth=self._same(bandwidth),
                limits=limits,
                available=available,
            ),
            base.kind,
        )
        return found

    def _same(self, part: _T) -> _T:
        """Return what other paths have that is equal."""
        found: _T = self._alike.setdefault(part, part)
        return found

    def sweep(self, used: NDArray[np.int32]) -> None:
        """Forget all paths but these."""
        kept = np.zeros(len(self._paths), bool)
        kept[used] = True
        self._firsts, self._others, self._alike, self._count = {}, {}, {}, 0
        for number, path in enumerate(self._paths):
            if path is None:
                continue
            if not kept[number]:
                self._paths[number] = None
                self._free.append(number)
                continue
            self._count += 1
            for part in (path.next_hop, path.preference, path.bandwidth):
                self._same(part)
            first = self._firsts.setdefault(path.next_hop, {}).setdefault(path.attributes, number)
            if first != number:
                others = self._others.setdefault(path.kind, {_value(self[first]): first})
                others[_value(path)] = number


def _value(path: BgpPath) -> _Value:
    return path.bandwidth, path.limits, path.available
