"""The decision among the paths to a prefix (RFC 4271 §9.1), and multipath.

The rules of §9.1.2.2 remove paths from a set, so the order of paths does not matter. No rule orders
all paths: MED is compared only among those of one neighboring AS, (c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from fared.protocols.bgp.packet.attributes import AsPath
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED, BgpPath, BgpPeer

_MAX_PATHS: Final = 64


class DecisionSettings(msgspec.Struct, frozen=True):
    """How many paths are used.

    ``relax``: of AS paths only the length is compared (RFC 7938 §6.2); else paths beside the best
    one need the same AS path. ``follows_load``: what load leaves of paths counts, and is announced.
    """

    max_paths: int = _MAX_PATHS
    relax: bool = True
    follows_load: bool = False


class PeerPath(NamedTuple):
    """A path of a neighbor; ``metric`` is the interior cost of its next hop."""

    peer: BgpPeer
    path: BgpPath
    metric: int = 0


def choose(candidates: Iterable[PeerPath], settings: DecisionSettings) -> tuple[PeerPath, ...]:
    """Return the best path, and behind it those that are used beside it."""
    # what this router originates itself comes first; LOCAL_PREF (§9.1.2), (a) AS path, (b) origin
    left = _lowest(candidates, lambda one: (_rank(one), one.path.preference))
    if len(left) > 1:
        left = _lowest_med(left)
        # §9.1.2.2 (d) external ones, (e) interior cost
        left = _lowest(left, lambda one: (one.peer.internal, one.metric))
        # (f) identifier, (g) address
        left.sort(key=lambda one: (one.peer.identifier, one.peer.address, one.peer.number))
    if not settings.relax and left:
        path = left[0].path.attributes.find(AsPath)
        left = [one for one in left if one.path.attributes.find(AsPath) == path]
    return tuple(left[: settings.max_paths])


def _rank(one: PeerPath) -> int:
    """Own networks come first, then paths of neighbors, last those to other protocols.

    What a border has redistributed is the long way to a prefix that is also native: if the shorter
    of both were used, borders would redistribute it or not by turns.
    """
    if one.peer.number == REDISTRIBUTED:
        return 2 if one.path.origin else 0
    if one.peer.number == OWN:
        return 0
    return 3 if one.path.origin else 1


def _lowest(candidates: Iterable[PeerPath], key: Callable[[PeerPath], Any]) -> list[PeerPath]:
    keyed = [(key(one), one) for one in candidates]
    least = min([value for value, _ in keyed], default=None)
    return [one for value, one in keyed if value == least]


def _lowest_med(candidates: list[PeerPath]) -> list[PeerPath]:
    """Keep the paths of the lowest MED of each neighboring AS (RFC 4271 §9.1.2.2 (c))."""
    least: dict[int, int] = {}
    for one in candidates:
        path = one.path
        least[path.neighbor_as] = min(path.med, least.get(path.neighbor_as, path.med))
    return [one for one in candidates if one.path.med == least[one.path.neighbor_as]]
