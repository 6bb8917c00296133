"""The LSAs of an area as routers would originate them after some changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from fared.core.ids import NETWORK_NODE, mask_length
from fared.extensions.offline.changes import Changes
from fared.extensions.offline.ospf.database import AreaContents, SavedInterface, StoredLsa
from fared.paths.te.attributes import TeAttributes
from fared.paths.ted.links import HIGHEST_INDEX
from fared.paths.ted.model import HIGHEST_OSPF_METRIC
from fared.protocols.ospf.origination.external import DRAINED_METRIC
from fared.protocols.ospf.packet.bodies import (
    TO_ROUTERS,
    TO_VERTICES,
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import LsaBody, opaque_link_state_id
from fared.protocols.ospf.packet.lsa import LS_INFINITY, LsaKey, LsType, encode_lsa
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink

_HOST_LENGTH = 32
_HOST_MASK = 0xFFFFFFFF
_OPAQUE_ID = 0xFFFFFF
_TE_POINT_TO_POINT = 1
_TE_MULTI_ACCESS = 2


def apply(contents: AreaContents, changes: Changes) -> AreaContents:
    """The database of an area after the changes; headers and ages are kept."""
    bodies = {
        key.advertising_router: stored.body
        for key, stored in contents.lsas.items()
        if isinstance(stored.body, RouterLsa)
    }
    lsas: dict[LsaKey, StoredLsa] = {}
    for key, stored in contents.lsas.items():
        router = key.advertising_router
        if isinstance(stored.body, NetworkLsa):
            network = _network_lsa(key.link_state_id, stored.body, changes)
            if network is not None:
                lsas[key] = stored._replace(body=network)
            continue
        if router in changes.failed_nodes:
            continue
        if isinstance(stored.body, RouterLsa):
            lsas[key] = stored._replace(body=_router_lsa(router, bodies, changes))
        elif isinstance(stored.body, TeLink):
            link = _te_link(router, stored.body, changes)
            if link is not None:
                lsas[key] = stored._replace(body=link)
        else:
            drained = router in changes.overloaded
            body = _used_last(stored.body, bodies.get(router)) if drained else stored.body
            lsas[key] = stored._replace(body=body)
    for (tail, head), bandwidth in sorted(changes.bandwidths.items()):
        body = bodies.get(tail)
        if body is not None and not changes.fails(tail, head):
            _advertise(lsas, tail, head, body, bandwidth)
    return replace(contents, lsas=dict(sorted(lsas.items())))


def apply_to_interfaces(
    interfaces: Iterable[SavedInterface], router: int, changes: Changes
) -> tuple[SavedInterface, ...]:
    """The interfaces of one router after the changes."""
    result = []
    for interface in interfaces:
        neighbors = tuple(n for n in interface.neighbors if not changes.fails(router, n.router_id))
        bandwidths = (changes.bandwidths.get((router, n.router_id)) for n in neighbors)
        bandwidth = next((b for b in bandwidths if b is not None), interface.bandwidth)
        result.append(replace(interface, neighbors=neighbors, bandwidth=bandwidth))
    return tuple(result)


def _router_lsa(router: int, bodies: Mapping[int, RouterLsa], changes: Changes) -> RouterLsa:
    body = bodies[router]
    kept: list[RouterLink] = []
    lost: list[RouterLink] = []
    for link in body.links:
        leads_on = link.link_type in TO_VERTICES
        gone = leads_on and changes.fails(router, _head(link))
        (lost if gone else kept).append(link)
    if lost:
        subnets = _lost_subnets(router, lost, kept, bodies)
        kept = [link for link in kept if link not in subnets]
    return replace(body, links=tuple(_metric(router, link, changes) for link in kept))


def _metric(router: int, link: RouterLink, changes: Changes) -> RouterLink:
    if link.link_type == RouterLinkType.STUB:
        return link
    if router in changes.overloaded:
        return link._replace(metric=HIGHEST_OSPF_METRIC)
    if link.link_type not in TO_VERTICES:
        return link
    return link._replace(metric=changes.costs.get((router, _head(link)), link.metric))


def _used_last(body: LsaBody | None, links: RouterLsa | None) -> LsaBody | None:
    """A summary or AS-external LSA of a router that becomes a stub router.

    The first link on the way to a summary then costs MaxLinkMetric; the least cost of the router's
    links stands for what it has cost. The subnet of a link has that metric and lies behind none.
    """
    if isinstance(body, AsExternalLsa):
        return replace(body, metric=max(body.metric, DRAINED_METRIC))
    if not isinstance(body, SummaryLsa):
        return body
    costs = (k.metric for k in (links.links if links else ()) if k.link_type in TO_VERTICES)
    least = min(costs, default=0)
    subnet = 0 < body.network_mask < _HOST_MASK
    if body.metric < least or (body.metric == least and subnet):
        return body
    metric = body.metric - least + HIGHEST_OSPF_METRIC
    return replace(body, metric=min(metric, LS_INFINITY - 1))


def _head(link: RouterLink) -> int:
    """The vertex at the far end of a link."""
    transit = link.link_type == RouterLinkType.TRANSIT
    return NETWORK_NODE | link.link_id if transit else link.link_id


def _network_lsa(address: int, body: NetworkLsa, changes: Changes) -> NetworkLsa | None:
    """A LAN after the changes. If its designated router fails, another router is elected."""
    vertex = NETWORK_NODE | address
    if vertex in changes.failed_nodes:
        return None
    left = tuple(r for r in body.attached_routers if not changes.fails(r, vertex))
    return replace(body, attached_routers=left) if left else None


def _lost_subnets(
    router: int,
    lost: list[RouterLink],
    kept: list[RouterLink],
    bodies: Mapping[int, RouterLsa],
) -> set[RouterLink]:
    """The stub networks of lost links: the subnet, or the host route of the far end.

    These are the two options of RFC 2328 §12.4.1.1. A host route of the router's own address is a
    loopback whose address an unnumbered link borrows; it remains.
    """
    ours = {link.link_data for link in lost if link.link_data > HIGHEST_INDEX}
    theirs = {
        far.link_data
        for link in lost
        for far in getattr(bodies.get(link.link_id), "links", ())
        if far.link_type in TO_ROUTERS and far.link_id == router
    }
    in_use = [link.link_data for link in kept if link.link_type in TO_ROUTERS]
    subnets: set[RouterLink] = set()
    for stub in kept:
        length = mask_length(stub.link_data)
        if stub.link_type != RouterLinkType.STUB or not length:
            continue
        if length == _HOST_LENGTH:
            if stub.link_id in theirs - ours:
                subnets.add(stub)
        elif any(_inside(stub, a) for a in ours) and not any(_inside(stub, a) for a in in_use):
            subnets.add(stub)
    return subnets


def _inside(stub: RouterLink, address: int) -> bool:
    return address & stub.link_data == stub.link_id & stub.link_data


def _te_link(router: int, link: TeLink, changes: Changes) -> TeLink | None:
    """The TE link after the changes; None if it fails."""
    head = _te_head(link)
    if head is None:
        return link
    if changes.fails(router, head):
        return None
    bandwidth = changes.bandwidths.get((router, head))
    if bandwidth is None:
        return link
    return replace(link, attributes=link.attributes.resized(bandwidth))


def _te_head(link: TeLink) -> int | None:
    """The vertex at the far end of a TE link (RFC 3630 §2.5.2)."""
    if link.link_id is None or link.link_type != _TE_MULTI_ACCESS:
        return link.link_id
    return NETWORK_NODE | link.link_id


def _advertise(
    lsas: dict[LsaKey, StoredLsa], tail: int, head: int, body: RouterLsa, bandwidth: float
) -> None:
    """Add TE LSAs with a bandwidth for links of a router to a vertex that have none."""
    described = [
        (key, stored.body)
        for key, stored in lsas.items()
        if key.advertising_router == tail
        and isinstance(stored.body, TeLink)
        and _te_head(stored.body) == head
    ]
    told = {
        local
        for _, link in described
        for local in (*link.local_addresses, link.local_identifier or 0)
    }
    rows = [k for k in body.links if k.link_type in TO_VERTICES and _head(k) == head]
    missing = [link for link in rows if link.link_data not in told]
    opaque_id = _OPAQUE_ID
    for link in missing[: len(rows) - len(described)]:
        while (key := _te_key(tail, opaque_id)) in lsas:
            opaque_id -= 1
        numbered = link.link_data > HIGHEST_INDEX
        te = TeLink(
            link_type=_TE_MULTI_ACCESS if head & NETWORK_NODE else _TE_POINT_TO_POINT,
            link_id=link.link_id,
            local_addresses=(link.link_data,) if numbered else (),
            local_identifier=None if numbered else link.link_data,
            attributes=TeAttributes(max_bandwidth=bandwidth, residual_bandwidth=bandwidth),
        )
        lsas[key] = _stored(key, te)


def _te_key(router: int, opaque_id: int) -> LsaKey:
    kind = OpaqueType.TRAFFIC_ENGINEERING
    return LsaKey(LsType.OPAQUE_AREA, opaque_link_state_id(kind, opaque_id), router)


def _stored(key: LsaKey, body: TeLink) -> StoredLsa:
    lsa = encode_lsa(
        ls_age=0,
        options=0,
        ls_type=key.ls_type,
        link_state_id=key.link_state_id,
        advertising_router=key.advertising_router,
        ls_sequence_number=1,
        body=b"",
    )
    return StoredLsa(lsa, body)
