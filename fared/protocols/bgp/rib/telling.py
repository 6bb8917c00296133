"""What neighbors are told of a group of prefixes: route, bandwidth, and limits (RFC 4271 §9.1.3).

``tables`` keeps one for all neighbors of a family; their Adj-RIB-Out asks it (``adj_out``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from fared.protocols.bgp.packet.attributes import AsPath, LocalPref, PathAttributes
from fared.protocols.bgp.packet.communities import GRACEFUL_SHUTDOWN, SharedLimit
from fared.protocols.bgp.rib.adj_out import ExportedRoute, ExportSettings, Outgoing, exported
from fared.protocols.bgp.rib.bandwidth import announced
from fared.protocols.bgp.rib.decision import PeerPath
from fared.protocols.bgp.rib.exits import Exits
from fared.protocols.bgp.rib.graph import GroupGraph
from fared.protocols.bgp.rib.hosts import Hosts, share
from fared.protocols.bgp.rib.lans import capacity_of
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED, BgpPeer, with_community
from fared.protocols.bgp.rib.shared import Chain

_WORDS: Final[Mapping[int, str]] = MappingProxyType({OWN: "own", REDISTRIBUTED: "igp"})
_EXPORTED: Final = 4096
"""Kinds of paths for which it is remembered what is told of them."""


class GroupPaths(NamedTuple):
    """The paths of a group that are used, best first, and what they carry, bytes/s."""

    paths: tuple[PeerPath, ...]
    total: float | None
    numbers: frozenset[int] = frozenset()
    """Those of the neighbors that told the paths."""
    chain: Chain = ()
    """Routers that all paths pass through."""
    available: float | None = None
    """What load leaves of the total, bytes/s; None: all of it, or unknown."""
    lans: frozenset[int] = frozenset()
    """Links to LANs that carry less than the neighbors there."""
    offered: float | None = None
    """What they carry before the port of a destination limits them."""


NO_PATHS: Final = GroupPaths((), None)


class Telling:
    """What the neighbors of one family are told."""

    def __init__(self, local_as: int, graph: GroupGraph, exits: Exits) -> None:
        self._local_as, self._graph, self._exits = local_as, graph, exits
        self.siblings: dict[int, frozenset[int]] = {}
        """By neighbor, the sessions with the same router, its own included."""
        self.passing: set[int] = set()
        """Neighbors that pass routes of others on: only these need to know shared limits."""
        self.hosts = Hosts()
        self._derated: set[int] = set()
        """Neighbors whose link is derated or drained."""
        self._carried: dict[int, float | None] = {}
        """C of the router of a neighbor, as far as it is known what that is."""
        self._exported: dict[tuple[int, bool, bool, bool], ExportedRoute | None] = {}

    @property
    def demand(self) -> float | None:
        """D of the neighbors that are told a share, bytes/s; None: not known."""
        return self.hosts.demand(self._graph.capacities)

    def find_siblings(self, peers: Mapping[int, BgpPeer]) -> None:
        """Find the sessions with the same router."""
        by_speaker: dict[tuple[int, int], list[int]] = {}
        for number, peer in peers.items():
            by_speaker.setdefault(peer.speaker, []).append(number)
        self.siblings = {number: frozenset(some) for some in by_speaker.values() for number in some}
        self._carried.clear()

    def set_derated(self, peer: int, *, derated: bool) -> None:
        """Note that the link to a neighbor has changed."""
        self._derated.discard(peer)
        if derated:
            self._derated.add(peer)
        self._carried.clear()

    def note_passing(self, peer: int, attributes: PathAttributes) -> bool:
        """Note that a neighbor passes on what others told it; return whether that is new.

        A leaf never does.
        """
        path = attributes.find(AsPath)
        if peer in self.passing or path is None or path.length < 2:
            return False
        self.passing.add(peer)
        return True

    def outgoing(
        self, peer: BgpPeer, export: ExportSettings, chosen: GroupPaths
    ) -> Outgoing | None:
        """Return the route of a group for a neighbor; None if it is not to be told."""
        paths, total, numbers, *_ = chosen
        # RFC 4271 §9.2: what an internal neighbor told is not told to another one
        if not paths or (peer.internal and paths[0].peer.internal):
            return None
        if not export.tells(_WORDS.get(paths[0].peer.number, "bgp")):
            return None
        if not numbers.isdisjoint(self.siblings[peer.number]):
            # it would not use a longer path beside its own
            return None
        route = self._export(paths[0], internal=peer.internal, drained=export.drained)
        if route is None:
            return None
        if export.drained:
            return Outgoing(route, 0.0)
        told = announced(total, self._limit(peer))
        if export.share and numbers.isdisjoint(self.hosts.ports):
            # no part of what other hosts are sent: their own ports limit that
            part = share(total, chosen.offered, self.capacity(peer.number), self.demand)
            told = told if part is None else part
        return Outgoing(route, told, self._limits(peer, chosen), _free(peer, told, chosen))

    def _limits(self, peer: BgpPeer, chosen: GroupPaths) -> Chain:
        """Return the routers that all paths pass through: this one, and those beyond it.

        Not of own networks, which are not limited. Internal neighbors are not told, since they
        tell no other internal ones.
        """
        total = chosen.total
        passing = peer.number in self.passing and not peer.internal
        if not passing or total is None or math.isinf(total):
            return ()
        if chosen.paths[0].peer.number == OWN:
            return ()
        own = SharedLimit(self._local_as, int(self._graph.root) & 0xFFFF_FFFF, total)
        return (own, *chosen.chain)

    def _export(self, one: PeerPath, *, internal: bool, drained: bool) -> ExportedRoute | None:
        """Return what is told of a path, once made for all paths of a kind."""
        own, path = one.peer.number <= OWN, one.path
        key = (path.kind, own, internal, drained)
        if key in self._exported:
            return self._exported[key]
        attributes = exported(path.attributes, self._local_as, internal=internal, own=own)
        if attributes is not None and drained:
            attributes = with_community(attributes, GRACEFUL_SHUTDOWN)
            if internal:
                # RFC 8326 §4.2: who does not know the community prefers others, too
                attributes = attributes.replaced(LocalPref(0))
        if len(self._exported) == _EXPORTED:
            self._exported.clear()
        found = None if attributes is None else ExportedRoute(attributes)
        self._exported[key] = found
        return found

    def _limit(self, peer: BgpPeer) -> float | None:
        """Return what our links limit of routes told to a neighbor; None: they do not.

        One that knows its own direction is told only what it cannot know: that ours is derated.
        """
        if peer.own_minimum and self._derated.isdisjoint(self.siblings[peer.number]):
            return None
        return self.capacity(peer.number)

    def capacity(self, peer: int) -> float | None:
        """Return C of a neighbor: of all links to that router; None: one is unknown."""
        if peer not in self._carried:
            exits = {self._exits.usual(number) for number in self.siblings[peer]}
            total = capacity_of(exits, self._graph.capacities, self._graph.lans)
            self._carried[peer] = None if math.isinf(total) else total
        return self._carried[peer]


def _free(peer: BgpPeer, told: float | None, chosen: GroupPaths) -> float | None:
    """Return what load leaves of a bandwidth that is told; None: all, or it is not for others."""
    left = chosen.available
    return left if peer.own_minimum and left is not None and (told is None or left < told) else None
