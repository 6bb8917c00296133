"""The tables of one family together (RFC 4271 §3.2): updates in, a graph and updates out.

Work is done in portions: ``settle`` regroups some prefixes, decides for the groups that changed,
and marks their prefixes in the tables of neighbors; each of them is taken by itself. What was
chosen among paths of the same kinds is remembered: row ``BGP: choice among paths of known kinds``
of the ledger, ``tests/bgp_rib/test_choices.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

import numpy as np

from fared.core.ids import NodeId, Prefix
from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Origin,
    OriginType,
    PathAttributes,
)
from fared.protocols.bgp.packet.messages import Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_in import RECENT, AdjRibIn
from fared.protocols.bgp.rib.adj_out import (
    AdjRibOut,
    Announces,
    ExportSettings,
)
from fared.protocols.bgp.rib.bandwidth import path_bandwidth
from fared.protocols.bgp.rib.decision import DecisionSettings, PeerPath, choose
from fared.protocols.bgp.rib.exits import Exits, Resolve
from fared.protocols.bgp.rib.graph import GroupGraph
from fared.protocols.bgp.rib.hosts import offered
from fared.protocols.bgp.rib.paths import (
    OWN,
    REDISTRIBUTED,
    BgpPeer,
    has_loop,
)
from fared.protocols.bgp.rib.telling import NO_PATHS, GroupPaths, Telling

OWN_ATTRIBUTES: Final = PathAttributes((Origin(OriginType.IGP), AsPath(())))
"""Those of a network of this router."""


_LOOKED_AT: Final = 4096
"""Prefixes of a group of which the first one is looked for."""
_CHOICES: Final = 1024
"""Choices that are remembered."""


class BgpRib:
    """All routes of one family of one router."""

    def __init__(
        self, root: NodeId, local_as: int, family: int, settings: DecisionSettings
    ) -> None:
        self.local_as = local_as
        self._identifier = int(root) & 0xFFFF_FFFF
        self.family = family
        self.settings = settings
        self.table = AdjRibIn()
        self.graph = GroupGraph(root, family)
        self.chosen: dict[int, GroupPaths] = {}
        """By group; those without a usable path are not in it."""
        self.outs: dict[int, AdjRibOut] = {}
        """By neighbor."""
        self._exits = Exits(self.graph)
        self._peers: dict[int, BgpPeer] = {}
        self._again: dict[int, None] = {}
        self._places: dict[bytes, tuple[int, ...]] = {}
        self.telling = Telling(local_as, self.graph, self._exits)
        self._former: dict[int, str] = {}
        """In words, the groups that are gone, while their numbers are not used again."""
        for number in (OWN, REDISTRIBUTED):
            self.table.add(BgpPeer(number, local_as, self._identifier, 0))

    def apply(self, settings: DecisionSettings) -> None:
        """Decide by other settings."""
        if settings != self.settings:
            self.settings = settings
            self._places.clear()
            self._again.update(dict.fromkeys(self.table.members))

    # -- neighbors --------------------------------------------------------------------------------

    def add(
        self,
        peer: BgpPeer,
        link: LocalLink | None,
        export: ExportSettings,
        announces: Announces,
        *,
        derated: bool = False,
        resolve: Resolve | None = None,
    ) -> None:
        """Take in a neighbor whose session is established."""
        self._peers[peer.number] = peer
        self._places.clear()
        self.telling.find_siblings(self._peers)
        self.table.add(peer)
        self._note_host(peer.number, export)
        self.set_link(peer.number, link, derated=derated, resolve=resolve)
        out = AdjRibOut(
            export,
            lambda group: self.telling.outgoing(
                peer, out.settings, self.chosen.get(group, NO_PATHS)
            ),
            announces,
            lambda: self.telling.capacity(peer.number),
        )
        out.mark(self.table.groups.nonzero()[0])
        self.outs[peer.number] = out

    def export(self, peer: int, settings: ExportSettings) -> None:
        """Tell a neighbor everything again, by other settings."""
        self.outs[peer].change(settings, self.table)
        self._note_host(peer, settings)

    def _note_host(self, peer: int, settings: ExportSettings) -> None:
        """Note whether a neighbor is told a share: that counts in those of others."""
        ports = self.telling.hosts.ports
        if settings.share:
            self.telling.hosts.configured = settings.demand
            ports[peer] = self.graph.interface(peer)
        if settings.share or ports.pop(peer, None) is not None:
            self._mark_hosts()

    def _mark_hosts(self) -> None:
        """Look again at what hosts are told: their ports are others."""
        numbers = self.table.groups.nonzero()[0]
        for number in self.telling.hosts.ports:
            if number in self.outs:
                self.outs[number].mark(numbers)

    @property
    def demand(self) -> float | None:
        """D of the neighbors that are told a share, bytes/s; None: not known."""
        return self.telling.demand

    def knows(self, peer: int) -> bool:
        """Whether a neighbor is in these tables: its session is up, or its routes are kept."""
        return peer in self._peers

    def lose(self, peer: int) -> None:
        """Forget a neighbor."""
        self.table.lose(peer)
        self.telling.passing.discard(peer)
        self.set_link(peer, None)
        self.telling.hosts.ports.pop(peer, None)
        self.outs.pop(peer, None)
        del self._peers[peer]
        self.telling.find_siblings(self._peers)

    def suspend(self, peer: int) -> None:
        """Keep what a neighbor has told until it has told it again, and tell it nothing."""
        # RFC 4724 §4.2: what is stale already is lost
        self.table.end_of_rib(peer)
        self.table.mark_stale(peer)
        self.outs.pop(peer, None)

    def set_link(
        self,
        peer: int,
        link: LocalLink | None,
        *,
        derated: bool = False,
        resolve: Resolve | None = None,
    ) -> None:
        """Set the link to a neighbor: its capacity limits routes by it and routes told to it.

        ``resolve``: where its next hops lead, without it all to the neighbor.
        """
        self.telling.set_derated(peer, derated=derated)
        if self._exits.set_link(peer, self._peers[peer].identifier, link, resolve):
            # other paths may be usable
            self._places.clear()
            self._again.update(dict.fromkeys(self.table.groups_of(peer)))
        for group, chosen in self.chosen.items():
            if peer in chosen.numbers:
                self._again[group] = None
        numbers = self.table.groups.nonzero()[0]
        for number in self.telling.siblings[peer]:
            if number in self.outs:
                self.outs[number].mark(numbers)
        if peer in self.telling.hosts.ports:
            self.telling.hosts.ports[peer] = self.graph.interface(peer)
            self._mark_hosts()

    def set_available(self, peer: int, available: float | None) -> None:
        """Set what load leaves of the link to a neighbor, bytes/s; None: unknown."""
        self._exits.set_available(peer, available)
        if self.settings.follows_load:
            for group, chosen in self.chosen.items():
                if peer in chosen.numbers:
                    self._again[group] = None

    # -- routes -----------------------------------------------------------------------------------

    def update(self, peer: int, update: Update) -> None:
        """Learn what an UPDATE says about this family."""
        lost = [prefix for prefix in update.withdrawn if prefix.family == self.family]
        routes = [one for one in update.routes if one.prefixes[0].family == self.family]
        if routes and has_loop(update.attributes, self.local_as, self._identifier):
            lost += [prefix for one in routes for prefix in one.prefixes]
            routes = []
        if lost:
            self.table.withdraw(peer, lost)
        # RFC 4271 §4.3: a prefix that is withdrawn as well is announced
        for one in routes:
            self.table.announce(peer, one.prefixes, update.attributes, one.next_hop)
            if self.telling.note_passing(peer, update.attributes) and peer in self.outs:
                self.outs[peer].mark(self.table.groups.nonzero()[0])
        if update.end_of_rib == self.family:
            self.table.end_of_rib(peer)

    def originate(
        self,
        prefixes: Iterable[Prefix],
        attributes: PathAttributes = OWN_ATTRIBUTES,
        source: int = OWN,
    ) -> None:
        """Announce prefixes of this router; their path bandwidth is that of the attributes.

        ``source``: OWN or REDISTRIBUTED.
        """
        self.table.announce(source, tuple(prefixes), attributes, BgpNextHop(self.family, 0))

    def withdraw(self, prefixes: Iterable[Prefix], source: int = OWN) -> None:
        """Announce prefixes of this router no more."""
        self.table.withdraw(source, prefixes)

    def paths(self, prefix: Prefix) -> list[PeerPath]:
        """Return all paths to a prefix, whether used or not."""
        group = self.table.group(prefix)
        return self.table.candidates(group) if group else []

    def is_internal(self, prefix: Prefix) -> bool:
        """Whether internal neighbors told the paths to a prefix that are used."""
        paths = self.chosen.get(self.table.group(prefix), NO_PATHS).paths
        return bool(paths) and paths[0].peer.internal

    def carried(self, prefix: Prefix) -> float | None:
        """Return what the paths to a prefix carry, bytes/s; None: unknown, or there is none."""
        return self.chosen.get(self.table.group(prefix), NO_PATHS).total

    def limiting_links(self, prefix: Prefix) -> frozenset[int]:
        """Return the links to LANs that limit the paths to a prefix, beside each other."""
        return self.chosen.get(self.table.group(prefix), NO_PATHS).lans

    def in_words(self, group: int) -> str:
        """Name a group for people: its first prefix, and how many others it has, or had at last."""
        some = self.table.members.get(group)
        return self._prefixes_in_words(some) if some else self._former.get(group, "former prefixes")

    def _remember(self, group: int, numbers: Collection[int]) -> None:
        self._former[group] = self._prefixes_in_words(numbers)
        if len(self._former) > RECENT:
            del self._former[next(iter(self._former))]

    def _prefixes_in_words(self, numbers: Collection[int]) -> str:
        some = islice(numbers, _LOOKED_AT)
        first = min([self.table.prefixes[number] for number in some])
        more = len(numbers) - 1
        return f"{first} and {more} more" if more else str(first)

    # -- decision ---------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether all decisions are made."""
        return not self._again and self.table.settled

    def settle(self, limit: int) -> int:
        """Regroup at most so many prefixes, and decide for at most so many groups.

        Returns for how many groups it was decided.
        """
        done = self.table.regroup(limit)
        for group in done.gone:
            self.chosen.pop(group, None)
            self._again.pop(group, None)
            self.graph.set_shares(group, {})
            self.graph.set_tag(group, 0, ())
        prefixes = self.table.prefixes
        marked: list[int] = []
        for before, after, numbers in done.moved:
            if before in done.gone:
                self._remember(before, numbers)
            self._former.pop(after, None)
            self.graph.move([prefixes[number] for number in numbers], before, after)
            marked += numbers
        # first those that prefixes have moved to: until it is decided they have no routes
        others = [group for group in self._again if group not in done.changed]
        again = [*done.changed, *others[: max(0, limit - len(done.changed))]]
        for group in again:
            self._again.pop(group, None)
            if self._decide(group):
                marked += self.table.members[group]
        some = np.array(marked, np.int64)
        for out in self.outs.values():
            out.mark(some)
        return len(again)

    def _decide(self, group: int) -> bool:
        """Choose paths; return whether they or what they carry are others than before."""
        paths = self._choose(group)
        availables = self.graph.availables if self.settings.follows_load else None
        exits = [self._exits.of(one.peer.number, one.path.next_hop) for one in paths]
        found = path_bandwidth(paths, self.graph.capacities, availables, self.graph.lans, exits)
        self.graph.set_shares(group, found.shares, found.parts, found.free)
        tag = paths[0].path.origin if found.shares else 0
        if tag != self.graph.tag(group):
            names = self.table.prefixes
            self.graph.set_tag(group, tag, [names[at] for at in self.table.members[group]])
        numbers = frozenset([one.peer.number for one in paths])
        chosen = GroupPaths(
            paths,
            found.total,
            numbers,
            found.chain,
            found.available,
            found.lans,
            offered(found.total, found.chain, found.speakers),
        )
        if chosen == self.chosen.get(group):
            return False
        self.chosen[group] = chosen
        return True

    def _choose(self, group: int) -> tuple[PeerPath, ...]:
        """Choose as for another group with paths of the same kinds, if there was one."""
        kinds = self.table.kinds(group)
        places = self._places.get(kinds)
        if places is not None:
            return tuple(self.table.candidates(group, places))
        candidates = self.table.candidates(group)
        paths = choose([one for one in candidates if self.usable(one)], self.settings)
        if len(self._places) == _CHOICES:
            self._places.clear()
        at = {one.peer.number: place for place, one in enumerate(candidates)}
        self._places[kinds] = tuple([at[one.peer.number] for one in paths])
        return paths

    def usable(self, one: PeerPath) -> bool:
        """Whether the next hop of a path is on the link to the neighbor (RFC 4271 §9.1.2)."""
        return one.peer.number <= OWN or self._exits.of(one.peer.number, one.path.next_hop) > 0

    def capacity_to(self, one: PeerPath) -> float | None:
        """Return C of the next hop of a path, bytes/s; None: unknown, or there is no link."""
        return self.graph.capacities.get(self._exits.of(one.peer.number, one.path.next_hop))

    def sweep(self) -> None:
        """Forget prefixes, paths and next hops that nobody knows any more."""
        self.table.sweep([out.sent for out in self.outs.values()])
        self._exits.keep(self.table.paths.next_hops)
