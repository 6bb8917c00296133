"""External prefixes with a forwarding address (RFC 2328 §16.4 (3)).

Such a prefix is reached by the route to its forwarding address, not by the route to the AS boundary
router. So the prefix is resolved after all other routes are chosen: it is attached to the nodes
that advertise the route to the address, at their cost, and then selected like any other. It stays
resolved until the advertisement, the route to the address, or the route to the advertising router
changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import HOSTS_AREA, NodeId, ipv4_prefix
from fared.paths.rib.distances import NO_ROUTE
from fared.paths.rib.rows import METRIC_SHIFT
from fared.paths.rib.selection import ANYCAST
from fared.paths.ted.change import ChangeKind, change_of_prefix
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fared.paths.rib.distances import AdvertiserDistances
    from fared.paths.rib.hosts import OwnHosts
    from fared.paths.rib.prefixes import Advertiser, Changes, PrefixTable
    from fared.paths.rib.selection import Selection
    from fared.paths.ted.model import LocalLink, PrefixReachability

_T = TypeVar("_T", bound=Hashable)
_K = TypeVar("_K")
_Source = tuple["Advertiser", Hashable]
_Served = tuple["Advertiser", int, float, PathType]
"""A node that serves an address, cost and capacity from there on, and the path type."""
_Standing = tuple[bool, bool, bool]
_LENGTHS = range(32, -1, -1)
_TOTAL = (1 << METRIC_SHIFT - 1) - 1
_FORWARD = attrgetter("forward")
_ELSEWHERE = NodeId(-1)
"""The id of an AS boundary router outside the area: no node has it."""


class Resolved(msgspec.Struct, frozen=True):
    """The inputs of an attached advertisement: it is attached again only if they differ."""

    item: PrefixReachability


class OwnEnds(msgspec.Struct, frozen=True):
    """What packets go to directly: the neighbors on own links, by area, and hosts on networks."""

    links: Mapping[int, tuple[LocalLink, ...]]
    hosts: OwnHosts

    def serving(self, address: int) -> Iterator[_Served]:
        """Yield the neighbor with an address, else the host; nothing for an address of our own."""
        neighbors = [
            (area, link.neighbor)
            for area, known in sorted(self.links.items())
            for link in known
            if link.gateway == address
        ]
        for end in neighbors:
            yield end, 0, np.inf, PathType.INTRA_AREA
        host = None if neighbors else self.hosts.find(address)
        if host is not None:
            yield *host, np.inf, PathType.INTRA_AREA


class ForwardingAddresses:
    """All advertisements with a forwarding address, and the nodes they are attached to."""

    def __init__(self) -> None:
        self._advertised: dict[_Source, PrefixReachability] = {}
        self._by_address: dict[int, dict[_Source, None]] = {}
        self._by_advertiser: dict[Advertiser, dict[_Source, None]] = {}
        self._changed: dict[_Source, None] = {}
        self._attached: dict[_Source, tuple[tuple[Advertiser, PrefixReachability], ...]] = {}
        self._users: dict[tuple[Advertiser, PrefixReachability], int] = {}
        self._served: dict[int, list[_Served]] = {}
        self._standing: dict[Advertiser, _Standing] = {}

    def __bool__(self) -> bool:
        return bool(self._advertised or self._attached)

    @property
    def advertisers(self) -> Iterable[Advertiser]:
        """The nodes with such advertisements."""
        return self._by_advertiser.keys()

    @property
    def hosts(self) -> Iterator[Advertiser]:
        """The hosts that serve an address."""
        served = itertools.chain.from_iterable(self._served.values())
        return (end for end, *_ in served if end[0] & HOSTS_AREA)

    def count(self, area: int, node: NodeId) -> int:
        """Return the number of such advertisements of a node in an area."""
        return len(self._by_advertiser.get((area, node), ()))

    def advertisements(self) -> Iterator[tuple[Advertiser, PrefixReachability]]:
        """Iterate over all of them, with their nodes."""
        return ((at, item) for (at, _), item in self._advertised.items())

    def take(self, area: int, node: NodeId, changes: Changes) -> tuple[Changes, ChangeKind]:
        """Store the changes with a forwarding address; return the others.

        Also returns the kind of change of those stored.
        """
        kind = ChangeKind.NONE
        if not self._advertised and not any(map(_FORWARD, filter(None, changes.values()))):
            return changes, kind
        others: dict[Hashable, PrefixReachability | None] = {}
        for source, item in changes.items():
            key = (area, node), source
            mine = item if item is not None and item.forward else None
            kind = max(kind, change_of_prefix(self._advertised.get(key), mine))
            self._put(key, mine)
            others[source] = None if mine is not None else item
        return others, kind

    def _put(self, key: _Source, item: PrefixReachability | None) -> None:
        before = self._advertised.pop(key, None)
        if before == item:
            if item is not None:
                self._advertised[key] = item
            return
        self._changed[key] = None
        if before is not None:
            _discard(self._by_address, before.forward, key, self._served)
            _discard(self._by_advertiser, key[0], key, self._standing)
        if item is not None:
            self._advertised[key] = item
            self._by_address.setdefault(item.forward, {})[key] = None
            self._by_advertiser.setdefault(key[0], {})[key] = None

    def resolve(
        self,
        table: PrefixTable,
        selection: Selection,
        distances: AdvertiserDistances,
        own: OwnEnds,
        *,
        all_ways: bool,
    ) -> dict[Advertiser, dict[Hashable, PrefixReachability | None]]:
        """Attach changed advertisements to the nodes that serve their address.

        Returns the resulting changes of these nodes.

        ``all_ways``: any route inside the AS, or own network, may have changed.
        """
        # Only routes inside the AS lead to an address: look them up again when one may differ.
        for address in tuple(self._by_address) if all_ways else ():
            served = list(_serve(address, table, selection, distances, own))
            if served != self._served.get(address):
                self._served[address] = served
                self._changed.update(self._by_address[address])
        for at in tuple(self._by_advertiser) if all_ways else ():
            standing = _standing(table, distances, at)
            if standing != self._standing.get(at):
                self._standing[at] = standing
                self._changed.update(self._by_advertiser[at])
        changed, self._changed = self._changed, {}
        changes: dict[Advertiser, dict[Hashable, PrefixReachability | None]] = {}
        for key in changed:
            self._detach(key, changes)
            item = self._advertised.get(key)
            if item is None:
                continue
            if item.forward not in self._served:
                served = list(_serve(item.forward, table, selection, distances, own))
                self._served[item.forward] = served
            if key[0] not in self._standing:
                self._standing[key[0]] = _standing(table, distances, key[0])
            self._attached[key] = tuple(self._targets(key[0], item))
            for at, moved in self._attached[key]:
                self._users[at, moved] = self._users.get((at, moved), 0) + 1
                changes.setdefault(at, {})[Resolved(moved)] = moved
        return changes

    def _detach(
        self, key: _Source, changes: dict[Advertiser, dict[Hashable, PrefixReachability | None]]
    ) -> None:
        """Detach an advertisement, unless a second user keeps it."""
        for at, moved in self._attached.pop(key, ()):
            left = self._users.pop((at, moved)) - 1
            if left:
                self._users[at, moved] = left
            else:
                changes.setdefault(at, {})[Resolved(moved)] = None

    def _targets(
        self, at: Advertiser, item: PrefixReachability
    ) -> Iterable[tuple[Advertiser, PrefixReachability]]:
        reached, own, beyond = self._standing[at]
        # RFC 2328 §16.4 (3): without a routing table entry for the ASBR, do nothing
        if not reached or (item.asbr is not None and not (own or beyond)):
            return ()
        if own:  # this router already has a route to what it redistributes
            return () if item.asbr is not None else ((at, replace(item, forward=0)),)
        return dict.fromkeys(
            (server, _moved(item, cost, capacity, kind))
            for server, cost, capacity, kind in self._served[item.forward]
        )


def _discard(
    index: dict[_T, dict[_Source, None]], at: _T, key: _Source, known: dict[_T, _K]
) -> None:
    """Remove a key from an index, and its place with the last key."""
    del index[at][key]
    if not index[at]:
        del index[at]
        known.pop(at, None)


def _standing(table: PrefixTable, distances: AdvertiserDistances, at: Advertiser) -> _Standing:
    """Return whether an advertiser is reached, is this router, and counts for other areas."""
    number = table.advertiser(*at)
    return (
        bool(distances.distance[number] != NO_ROUTE),
        bool(distances.own[number]),
        bool(distances.beyond[number]),
    )


def _moved(
    item: PrefixReachability, cost: int, capacity: float, kind: PathType
) -> PrefixReachability:
    # RFC 2328 §16.4 (4), (5): X is the cost to the address; type 1: X + Y, type 2: Y, then X
    first = item.path_type is PathType.EXTERNAL_1
    return replace(
        item,
        metric=item.metric + cost if first else item.metric,
        distance=0 if first else cost,
        capacity=capacity if np.isfinite(capacity) else None,
        asbr=None if kind is PathType.INTRA_AREA else _ELSEWHERE,
        forward=0,
    )


def _serve(
    address: int,
    table: PrefixTable,
    selection: Selection,
    distances: AdvertiserDistances,
    own: OwnEnds,
) -> Iterator[_Served]:
    """Yield the nodes that the longest intra- or inter-area match of an address leads to.

    For an address on a network of this router that is the neighbor or the host with the address.
    """
    for length in _LENGTHS:
        number = table.number(ipv4_prefix(address, length))
        if not 0 <= number < len(selection.key) or selection.key[number] == NO_ROUTE:
            continue
        kind = table.path_type(int(selection.row[number]))
        # RFC 2328 §16.4 (3): the entry must specify an intra-area or inter-area path
        if kind not in (PathType.INTRA_AREA, PathType.INTER_AREA):
            continue
        chosen = int(selection.advertiser[number])
        egress = selection.egress[number] if chosen == ANYCAST else ((chosen, np.inf),)
        # §16.4 (3), §16.1.1: on a network of this router the next hop is the address itself
        if any(distances.direct[end] for end, _ in egress):
            yield from own.serving(address)
            return
        total = int(selection.key[number]) & _TOTAL
        for end, capacity in egress:
            yield table.advertisers[end], total - int(distances.distance[end]), capacity, kind
        return
