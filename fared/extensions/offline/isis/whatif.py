"""The LSPs of a level as routers would originate them after some changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, ISIS_NODE, NodeId, Prefix
from fared.extensions.offline.changes import Changes
from fared.protocols.isis.ids import LspId, fragment_of, node_of, pseudonode_of
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    FLAG_READVERTISED,
    MT_IPV4,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    Tlv,
)
from fared.protocols.isis.settings import used_last
from fared.protocols.isis.ted.fragment_prefixes import says_external

Lsps = Mapping[LspId, Lsp]


class _AdvertisedByNode(msgspec.Struct):
    """The links and prefixes that one router or pseudonode advertises."""

    wide: list[IsNeighbor] = msgspec.field(default_factory=list)
    narrow: list[NarrowNeighbor] = msgspec.field(default_factory=list)
    prefixes: dict[Prefix, int] = msgspec.field(default_factory=dict)
    """The metrics by prefix."""

    @property
    def neighbors(self) -> Iterator[IsNeighbor]:
        """All neighbors; a narrow entry has a metric and no link attributes."""
        yield from self.wide
        yield from (IsNeighbor(entry.neighbor, entry.metric) for entry in self.narrow)


def apply(lsps: Lsps, changes: Changes) -> dict[LspId, Lsp]:
    """The database of a level after the changes; headers and lifetimes are kept.

    The pseudonode of a LAN remains if its designated IS fails: another router is elected. Leaked
    prefixes are not changed here (see ``leaking``).
    """
    said = _collect(lsps)
    links = _LinkSubnets(said)
    changed: dict[LspId, Lsp] = {}
    for identifier, lsp in lsps.items():
        node = node_of(identifier)
        if node not in changes.failed_nodes:
            changed[identifier] = _Rewriter(node, said[node], links, changes).rewrite(lsp)
    return changed


def _collect(lsps: Lsps) -> dict[NodeId, _AdvertisedByNode]:
    """Return what each router advertises, of all its fragments together."""
    said: dict[NodeId, _AdvertisedByNode] = {}
    for identifier, lsp in lsps.items():
        mine = said.setdefault(node_of(identifier), _AdvertisedByNode())
        for tlv in lsp.tlvs:
            match tlv:
                case IsReachability():
                    mine.wide += tlv.neighbors
                case NarrowIsReachability():
                    mine.narrow += tlv.neighbors
                case IpReachability():
                    mine.prefixes.update((r.prefix, r.metric) for r in tlv.prefixes if _own(r))
                case NarrowIpReachability():
                    for entry in tlv.prefixes:
                        if not entry.down:
                            mine.prefixes.setdefault(entry.prefix, entry.metric)
                case _:
                    pass
    return said


def _own(reach: IpReach) -> bool:
    return not reach.down and not (reach.flags or 0) & FLAG_READVERTISED


def _behind(reach: IpReach) -> bool:
    """Whether a prefix is one of another level or of another source."""
    return not _own(reach) or says_external(reach)


def head_of(neighbor: int) -> NodeId:
    """The vertex of a neighbor in an IS reachability TLV."""
    return NodeId(ISIS_NODE | neighbor)


class _LinkSubnets:
    """Finds the prefixes that are the subnets of links."""

    def __init__(self, said: Mapping[NodeId, _AdvertisedByNode]) -> None:
        self._said = said
        self._advertisers: dict[Prefix, set[NodeId]] = {}
        for node, mine in said.items():
            for prefix in mine.prefixes:
                self._advertisers.setdefault(prefix, set()).add(node)

    def subnets(
        self, node: NodeId, lost: list[IsNeighbor], kept: Iterable[IsNeighbor]
    ) -> Iterator[Prefix]:
        """The prefixes of a router that are subnets of lost links, but not of kept ones."""
        in_use = {address for link in kept for address in _addresses(link)}
        ours = {address for link in lost for address in _addresses(link)} - in_use
        for prefix, metric in self._said[node].prefixes.items():
            family = prefix.family
            if prefix.length == ADDRESS_BITS[family]:
                continue
            if any(prefix.contains(a) for f, a in ours if f == family):
                if not any(prefix.contains(a) for f, a in in_use if f == family):
                    yield prefix
            elif family != FAMILY_IPV4 and not any(f == family for f, _ in ours):
                # Without IPv6 addresses of links in LSPs, the subnet of a link is a prefix with the
                # metric of the link that only the routers at its ends advertise.
                advertisers = self._advertisers[prefix]
                if any(
                    link.metric == metric and advertisers == {node, *self._ends(node, link)}
                    for link in lost
                ):
                    yield prefix

    def _ends(self, node: NodeId, link: IsNeighbor) -> set[NodeId]:
        """The routers at the far end of a link."""
        head = head_of(link.neighbor)
        if not head & 0xFF:
            return {head}
        known = self._said.get(head)
        return {head_of(n.neighbor) for n in known.neighbors} - {node} if known else set()


def _addresses(link: IsNeighbor) -> Iterator[tuple[int, int]]:
    """The local addresses of a link, with their family."""
    yield from ((4, address) for address in link.local_addresses)
    yield from ((6, address) for address in link.local_addresses6)


class _Rewriter:
    """Rewrites the LSPs of one router or pseudonode."""

    def __init__(
        self, node: NodeId, said: _AdvertisedByNode, links: _LinkSubnets, changes: Changes
    ) -> None:
        self._node = node
        self._changes = changes
        self._overload = node in changes.overloaded
        self._wide = {head_of(link.neighbor) for link in said.wide}
        lost: list[IsNeighbor] = []
        kept: list[IsNeighbor] = []
        costlier: dict[int, list[IsNeighbor]] = {}
        for link in said.neighbors:
            head = head_of(link.neighbor)
            if changes.fails(node, head):
                lost.append(link)
                continue
            kept.append(link)
            if (node, head) in changes.costs:
                costlier.setdefault(changes.costs[node, head], []).append(link)
        self._lost = set(links.subnets(node, lost, kept)) if lost else set()
        self._costs = {
            prefix: cost
            for cost, parts in costlier.items()
            for prefix in links.subnets(node, parts, [link for link in kept if link not in parts])
        }

    def rewrite(self, lsp: Lsp) -> Lsp:
        """One fragment after the changes."""
        first = not pseudonode_of(lsp.lsp_id) and fragment_of(lsp.lsp_id) == 0
        tlvs = tuple(new for tlv in lsp.tlvs for new in self._tlv(tlv))
        return replace(lsp, tlvs=tlvs, overload=lsp.overload or (self._overload and first))

    def _tlv(self, tlv: Tlv) -> Iterator[Tlv]:
        """Yield a TLV as it is after the failure, without links and prefixes that are gone."""
        match tlv:
            case IsReachability():
                kept = (n for n in tlv.neighbors if not self._fails(n.neighbor))
                yield replace(tlv, neighbors=tuple(self._link(n) for n in kept))
            case NarrowIsReachability():
                yield from self._narrow(tlv)
            case IpReachability():
                prefixes = tuple(self._reach(r) for r in tlv.prefixes if not self._gone(r))
                yield replace(tlv, prefixes=prefixes)
            case NarrowIpReachability():
                left = tuple(r for r in tlv.prefixes if not self._gone(r))
                yield replace(tlv, prefixes=left)
            case MultiTopology() if self._overload:
                # RFC 5120 §4: the overload bit of topology 0 is in the LSP header.
                entries = tlv.topologies
                marked = (replace(e, overload=e.topology != MT_IPV4) for e in entries)
                yield replace(tlv, topologies=tuple(marked))
            case _:
                yield tlv

    def _fails(self, neighbor: int) -> bool:
        return self._changes.fails(self._node, head_of(neighbor))

    def _link(self, link: IsNeighbor) -> IsNeighbor:
        way = self._node, head_of(link.neighbor)
        bandwidth = self._changes.bandwidths.get(way)
        if bandwidth is not None:
            link = replace(link, attributes=link.attributes.resized(bandwidth))
        return replace(link, metric=self._changes.costs.get(way, link.metric))

    def _narrow(self, tlv: NarrowIsReachability) -> Iterator[Tlv]:
        """Changed neighbors move to TLV 22: TLV 2 has no bandwidth, and no metric above 63."""
        left = [n for n in tlv.neighbors if not self._fails(n.neighbor)]
        changed = [n for n in left if self._is_changed(n) and head_of(n.neighbor) not in self._wide]
        yield replace(tlv, neighbors=tuple(n for n in left if n not in changed))
        if changed:
            wide = (self._link(IsNeighbor(n.neighbor, n.metric)) for n in changed)
            yield IsReachability(tuple(wide))

    def _is_changed(self, entry: NarrowNeighbor) -> bool:
        way = self._node, head_of(entry.neighbor)
        return way in self._changes.costs or way in self._changes.bandwidths

    def _gone(self, reach: IpReach | NarrowIpReach) -> bool:
        own = not isinstance(reach, IpReach) or _own(reach)
        return own and not reach.down and reach.prefix in self._lost

    def _reach(self, reach: IpReach) -> IpReach:
        """The subnet of a link has the metric of the link; what lies behind a router, used last."""
        if self._overload and _behind(reach):
            return replace(reach, metric=used_last(reach.metric))
        cost = self._costs.get(reach.prefix) if _own(reach) else None
        return reach if cost is None else replace(reach, metric=cost)
