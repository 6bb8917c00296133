"""The bit index routing table: the ways from this BFR to each BFER (RFC 8279 §6.3).

An entry has the BFR-prefix of a BFER and all BFR neighbors on shortest paths to it, weighted by
path capacity. A BFER without a usable neighbor stays in the table with the reason, for people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix
from fared.paths.rib.model import NextHop, Route

Ways = tuple[tuple["BfrNeighbor", int], ...]
"""Neighbors and their weights, ascending by node and address."""


class BfrNeighbor(msgspec.Struct, frozen=True, order=True):
    """A BFR neighbor (BFR-NBR): the router or host behind an interface, with its IPv4 address.

    ``address`` is 0 on a link without IPv4 addresses. ``node`` is its vertex of the TED, 0 for a
    host.
    """

    ifindex: int
    address: int
    interface: str
    node: NodeId = NodeId(0)


class BirtEntry(msgspec.Struct, frozen=True):
    """The ways to one BFER; ``local``: it is this router. ``problem``: why there are none."""

    bfr_id: int
    prefix: Prefix
    ways: Ways = ()
    local: bool = False
    problem: str = ""

    @property
    def usable(self) -> bool:
        """Whether packets can be delivered."""
        return not self.problem and (self.local or bool(self.ways))


def make_birt(entries: Iterable[BirtEntry]) -> dict[int, tuple[BirtEntry, ...]]:
    """Return the entries by BFR-id, ascending.

    A BFR-id with several prefixes is ambiguous: none of its entries is usable (RFC 8279 §5: a
    BFR-id is unique in its sub-domain).
    """
    found: dict[int, list[BirtEntry]] = defaultdict(list)
    for entry in entries:
        found[entry.bfr_id].append(entry)
    return {bfr_id: _with_duplicates(found[bfr_id]) for bfr_id in sorted(found)}


def _with_duplicates(entries: list[BirtEntry]) -> tuple[BirtEntry, ...]:
    """Return the entries of one BFR-id, each with the problem if there are several."""
    if len(entries) == 1:
        return (*entries,)
    entries.sort(key=lambda entry: entry.prefix)
    return tuple(
        replace(entry, problem=f"BFR-id also of {_others(entries, entry)}") for entry in entries
    )


def _others(entries: Iterable[BirtEntry], entry: BirtEntry) -> str:
    return ", ".join(str(other.prefix) for other in entries if other is not entry)


def entry_of(
    bfr_id: int,
    prefix: Prefix,
    route: Route | None,
    bfrs: Container[NodeId],
    refused: Mapping[NodeId, str] = MappingProxyType({}),
) -> BirtEntry:
    """Return the entry of a BFER from the route to its BFR-prefix; ``bfrs`` are usable neighbors.

    ``refused``: why others with BIER are not. RFC 8279 §6.9 tunnels through routers without BIER;
    fared does not, so that their next hops do not count.
    """
    if route is None or route.discard:
        return BirtEntry(bfr_id, prefix, problem="no route")
    if route.nexthops is None:
        return BirtEntry(bfr_id, prefix, local=True)
    ways = sorted(
        (BfrNeighbor(hop.ifindex, _ipv4(hop), hop.interface, hop.neighbor), hop.weight)
        for hop in route.nexthops.hops
        if hop.weight and hop.neighbor in bfrs
    )
    # tables depend on this order, and so not on interface indexes: the next start has the same
    ways.sort(key=lambda way: (way[0].node, way[0].address, way[0].ifindex))
    if ways:
        return BirtEntry(bfr_id, prefix, (*ways,))
    why = next((refused[h.neighbor] for h in route.nexthops.hops if h.neighbor in refused), "")
    problem = f"next hop: {why}" if why else "no next hop has BIER"
    return BirtEntry(bfr_id, prefix, problem=problem)


def _ipv4(hop: NextHop) -> int:
    return hop.gateway if hop.family == FAMILY_IPV4 else 0
