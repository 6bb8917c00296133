"""LSAs in the words of their RFCs: one line for the list, and all of it for one LSA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from fared.core.ids import dotted, ipv4_prefix
from fared.core.link_text import direction
from fared.core.text import type_name
from fared.core.wire import DecodeError
from fared.management.documents import human
from fared.management.documents.cells import count
from fared.management.documents.contents import nested
from fared.management.documents.views.te_words import ends, te_words
from fared.protocols.ospf.packet.bodies import (
    B_BIT,
    E_BIT,
    TO_VERTICES,
    V_BIT,
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import LsaBody, decode_body, is_te_lsa
from fared.protocols.ospf.packet.extended_prefix import ExtendedPrefixLsa, PrefixFacts, RouteType
from fared.protocols.ospf.packet.grace import GraceLsa, restart_reason
from fared.protocols.ospf.packet.lsa import Lsa, LsType
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.router_info import RouterInformation
from fared.protocols.ospf.packet.te_facts import TeFacts, TeReader, facts_of

if TYPE_CHECKING:
    from fared.core.ids import Prefix

Namer = Callable[[int], str]
"""Returns the hostname of a router id, or the id."""

_ROLES: Final = (
    (B_BIT, "area border router"),
    (E_BIT, "AS boundary router"),
    (V_BIT, "end of a virtual link"),
)
_POINT_TO_POINT: Final = 1
"""The link type of RFC 3630 §2.5.1; 2 is multi-access."""
_LEAST_ADDRESS: Final = 1 << 24
"""Link data below is the ifindex of an unnumbered link (RFC 2328 §12.4.1.1)."""
_FIRST: Final = 1 << 31
_CAPABILITIES: Final = (
    "graceful restart",
    "graceful restart helper",
    "stub router",
    "traffic engineering",
    "point-to-point over LAN",
    "experimental traffic engineering",
)
"""Informational capabilities (RFC 7770 §2.4), from the first bit on."""
_NODE, _ATTACHED = 0x40, 0x80
"""Flags of RFC 7684 §2.1."""


def about(lsa: Lsa, name: Namer, reader: TeReader) -> str:
    """Return what an LSA is about, in a few words; empty: its type says all that is known.

    ``reader`` is one for a list of LSAs, of which most are TE LSAs.
    """
    try:
        if is_te_lsa(lsa.header.key) and (link := reader.read(lsa.raw)) is not None:
            return _te_link(lsa, link, name)
        body = decode_body(lsa)
    except DecodeError:
        return "malformed"
    text = ""
    match body:
        case RouterLsa():
            links = sum(link.link_type in TO_VERTICES for link in body.links)
            text = f"{count(links, 'link')}, {count(len(body.links) - links, 'stub')}"
        case TeRouterAddress():
            text = dotted(body.address)
        case RouterInformation():
            text = body.hostname or ""
        case ExtendedPrefixLsa():
            text = "; ".join(map(_extended, body.prefixes))
        case NetworkLsa():
            text = count(len(body.attached_routers), "router")
        case SummaryLsa() | AsExternalLsa() | GraceLsa():
            text = next(_words(lsa, body, name))
    return text


def words(lsa: Lsa, name: Namer) -> list[str]:
    """Return the contents of an LSA, line by line."""
    try:
        body = decode_body(lsa)
    except DecodeError as error:
        return [f"malformed: {error}"]
    if body is None:
        return [f"{len(lsa.raw)} bytes that are not decoded"]
    return list(_words(lsa, body, name))


def _words(lsa: Lsa, body: LsaBody, name: Namer) -> Iterator[str]:
    match body:
        case RouterLsa():
            yield from (role for bit, role in _ROLES if body.flags & bit)
            yield from (_router_link(link, name) for link in body.links)
        case NetworkLsa():
            yield f"network {_prefix(lsa.header.link_state_id, body.network_mask)}"
            yield from (f"attached router {name(router)}" for router in body.attached_routers)
        case SummaryLsa():
            yield f"{_summarized(lsa, body, name)}, metric {body.metric}"
        case AsExternalLsa():
            yield from _external(lsa, body)
        case TeRouterAddress():
            yield f"router address {dotted(body.address)}"
        case TeLink():
            yield from _te_link_words(lsa, body, name)
        case ExtendedPrefixLsa():
            yield from map(_extended, body.prefixes)
            yield from nested({"unknown": body.document()["unknown"]})
        case GraceLsa():
            yield f"restarts ({restart_reason(body.reason)}), grace period {body.period}s"
        case RouterInformation():
            yield from _router_information(body)


def _router_link(link: RouterLink, name: Namer) -> str:
    metric = f"metric {link.metric}"
    match link.link_type:
        case RouterLinkType.POINT_TO_POINT:
            what = f"link to another router (point-to-point): {name(link.link_id)}"
        case RouterLinkType.TRANSIT:
            what = f"link to a transit network: DR {dotted(link.link_id)}"
        case RouterLinkType.STUB:
            return f"stub network {_prefix(link.link_id, link.link_data)}, {metric}"
        case RouterLinkType.VIRTUAL:
            what = f"virtual link: {name(link.link_id)}"
        case _:
            what = f"link of type {link.link_type}: {dotted(link.link_id)}"
    data = link.link_data
    here = f"interface {data}" if data < _LEAST_ADDRESS else dotted(data)
    return f"{what}, from {here}, {metric}"


def _summarized(lsa: Lsa, body: SummaryLsa, name: Namer) -> str:
    id_ = lsa.header.link_state_id
    if lsa.header.ls_type == LsType.SUMMARY_ASBR:
        return f"AS boundary router {name(id_)}"
    return f"network {_prefix(id_, body.network_mask)}"


def _external(lsa: Lsa, body: AsExternalLsa) -> Iterator[str]:
    kind = 2 if body.type_2 else 1
    prefix = _prefix(lsa.header.link_state_id, body.network_mask)
    yield f"network {prefix}, type {kind} metric {body.metric}"
    if body.forwarding_address:
        yield f"forwarding address {dotted(body.forwarding_address)}"
    if body.external_route_tag:
        yield f"external route tag {body.external_route_tag}"


def _te_ends(lsa: Lsa, link: TeFacts, name: Namer) -> str:
    far = "unknown"
    if link.link_id:
        far = name(link.link_id) if link.link_type == _POINT_TO_POINT else dotted(link.link_id)
    return direction(name(lsa.header.advertising_router), far)


def _te_link(lsa: Lsa, link: TeFacts, name: Namer) -> str:
    """Return ends, capacity, and what is left of it where that is less."""
    text = f"{_te_ends(lsa, link, name)}, {human.bandwidth(link.capacity)}"
    less = link.available < link.capacity  # NaN, unknown, is not
    return f"{text}, {human.bandwidth(link.available)} free" if less else text


def _te_link_words(lsa: Lsa, body: TeLink, name: Namer) -> Iterator[str]:
    kind = "point-to-point" if body.link_type == _POINT_TO_POINT else "multi-access"
    yield f"link {_te_ends(lsa, facts_of(body), name)} ({kind})"
    if body.local_addresses:
        there = ", ".join(map(dotted, body.remote_addresses))
        yield ends("address", ", ".join(map(dotted, body.local_addresses)), there)
    if body.local_identifier is not None:
        yield ends("identifier", body.local_identifier, body.remote_identifier)
    yield from te_words(body.attributes.sent())
    if body.router_address is not None:
        yield f"router address {dotted(body.router_address)}"
    yield from nested({"unknown": body.document()["te_link"]["unknown"]})


def _extended(facts: PrefixFacts) -> str:
    found: dict[str, Any] = facts.document()
    kind = type_name(RouteType, facts.route_type)
    flags = ((_ATTACHED, "attached"), (_NODE, "node"))
    parts = [str(facts.prefix), kind, *(word for bit, word in flags if facts.flags & bit)]
    if found["path_capacity"] is not None:
        parts.append(f"path capacity {human.bandwidth(found['path_capacity'])}")
    parts += [f"BFR {info['bfr_id']}" for info in found.get("bier", ())]
    return ", ".join(parts)


def _router_information(body: RouterInformation) -> Iterator[str]:
    if body.hostname is not None:
        yield f"hostname {body.hostname}"
    if body.capabilities is not None:
        bits = (name for at, name in enumerate(_CAPABILITIES) if body.capabilities << at & _FIRST)
        yield f"capabilities: {', '.join(bits) or 'none'}"
    if body.area_leader is not None:
        leader = body.area_leader
        yield f"area leader: priority {leader.priority}, algorithm {leader.algorithm}"
    if body.dynamic_flooding is not None:
        yield f"flooding algorithms {', '.join(map(str, body.dynamic_flooding))}"


def _prefix(network: int, mask: int) -> str:
    """Return a network as a prefix; with a mask that is none, as both."""
    length = mask.bit_count()
    prefix: Prefix = ipv4_prefix(network & mask, length)
    contiguous = mask == (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
    return str(prefix) if contiguous else f"{dotted(network)} mask {dotted(mask)}"
