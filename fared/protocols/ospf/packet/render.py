"""OSPF packets and LSAs as plain dictionaries for JSON: ``decode``, ``show database``.

The values:

- addresses, ids and masks are dotted text;
- numbers of the protocol are integers as in the packet, some with their names: ``type`` and
  ``type_name``, ``flags`` and ``flags_names``, ``options`` and ``options_names``. ``seq`` is
  unsigned, so 0x80000001 is the same as in FRR;
- bandwidths are bytes/s, delays microseconds, loss per cent; fields that were not sent are null;
- floats without a JSON representation are text: ``"NaN"``, ``"Infinity"``, ``"-Infinity"``;
- bytes that are not decoded are hexadecimal text.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from fared.core.ids import dotted
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.bodies import (
    B_BIT,
    E_BIT,
    V_BIT,
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import LsaBody, decode_body
from fared.protocols.ospf.packet.extended_prefix import (
    PATH_CAPACITY,
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
)
from fared.protocols.ospf.packet.grace import GraceLsa, restart_reason
from fared.protocols.ospf.packet.lsa import Lsa, LsaHeader, LsaKey, LsType, lsa_checksum_ok
from fared.protocols.ospf.packet.opaque import RouterInformation, TeLink, TeRouterAddress
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    DdFlags,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
    Options,
    Packet,
    PacketBody,
)

Json = dict[str, Any]
_BIER = 9
"""The BIER sub-TLV of a prefix: ``fared.protocols.ospf.packet.bier``."""


class _RouterFlags(enum.IntFlag):
    """Flags of a router LSA (RFC 2328 §A.4.2)."""

    B = B_BIT
    E = E_BIT
    V = V_BIT


def _names(flags: type[enum.IntFlag], value: int) -> list[str]:
    return [str(flag.name) for flag in flags if value & flag]


def _type_name(kinds: type[enum.IntEnum], value: int) -> str:
    """``point-to-point``, or ``type-42`` for a type without a name here."""
    known = {int(kind): kind.name.lower().replace("_", "-") for kind in kinds}
    return known.get(value, f"type-{value}")


def _dotted_list(values: tuple[int, ...]) -> list[str]:
    return [dotted(value) for value in values]


def _unknown(triplets: tuple[tuple[int, bytes], ...]) -> list[Json]:
    return [{"type": kind, "hex": value.hex()} for kind, value in triplets]


def render_packet(packet: Packet) -> Json:
    """A packet with its body inline, ``packet`` first."""
    return {
        "packet": packet.packet_type.label,
        "version": 2,
        "router_id": dotted(packet.router_id),
        "area": dotted(packet.area_id),
        "au_type": packet.au_type,
        **_packet_body(packet.body),
    }


def _packet_body(body: PacketBody) -> Json:
    match body:
        case Hello():
            return _hello(body)
        case DatabaseDescription():
            return {
                "mtu": body.interface_mtu,
                "options": body.options,
                "options_names": _names(Options, body.options),
                "flags": body.flags,
                "flags_names": _names(DdFlags, body.flags),
                "dd_seq": body.dd_sequence_number,
                "lsa_headers": [render_header(header) for header in body.lsa_headers],
            }
        case LsRequest():
            return {"requests": [render_key(key) for key in body.requests]}
        case LsUpdate():
            return {"lsas": [render_lsa(lsa) for lsa in body.lsas]}
        case LsAck():
            return {"lsa_headers": [render_header(header) for header in body.lsa_headers]}


def _hello(hello: Hello) -> Json:
    return {
        "network_mask": dotted(hello.network_mask),
        "hello_interval": hello.hello_interval,
        "dead_interval": hello.router_dead_interval,
        "options": hello.options,
        "options_names": _names(Options, hello.options),
        "priority": hello.router_priority,
        "dr": dotted(hello.designated_router),
        "bdr": dotted(hello.backup_designated_router),
        "neighbors": _dotted_list(hello.neighbors),
    }


def render_key(key: LsaKey) -> Json:
    """The identity of an LSA."""
    return {
        "type": key.ls_type,
        "type_name": _type_name(LsType, key.ls_type),
        "id": dotted(key.link_state_id),
        "adv_router": dotted(key.advertising_router),
    }


def render_header(header: LsaHeader) -> Json:
    """An LSA header."""
    return {
        **render_key(header.key),
        "seq": header.ls_sequence_number & 0xFFFFFFFF,
        "age": header.ls_age,
        "checksum": header.ls_checksum,
        "length": header.length,
        "options": header.options,
        "options_names": _names(Options, header.options),
    }


def render_lsa(lsa: Lsa) -> Json:
    """An LSA with its body; null for types that are not decoded, with the bytes as ``body_hex``.

    A malformed body is null too, with the reason as ``body_error``.
    """
    rendered: Json = {**render_header(lsa.header), "checksum_ok": lsa_checksum_ok(lsa)}
    try:
        body = decode_body(lsa)
    except DecodeError as error:
        return {**rendered, "body": None, "body_error": str(error)}
    if body is None:
        return {**rendered, "body": None, "body_hex": lsa.raw[20:].hex()}
    return {**rendered, "body": render_body(body)}


def render_body(body: LsaBody) -> Json:
    """The body of an LSA."""
    return _BODIES[type(body)](body)


def _router(body: RouterLsa) -> Json:
    return {
        "flags": body.flags,
        "flags_names": _names(_RouterFlags, body.flags),
        "links": [_router_link(link) for link in body.links],
    }


def _router_link(link: RouterLink) -> Json:
    return {
        "type": link.link_type,
        "type_name": _type_name(RouterLinkType, link.link_type),
        "id": dotted(link.link_id),
        "data": dotted(link.link_data),
        "metric": link.metric,
    }


def _network(body: NetworkLsa) -> Json:
    return {
        "network_mask": dotted(body.network_mask),
        "attached_routers": _dotted_list(body.attached_routers),
    }


def _summary(body: SummaryLsa) -> Json:
    return {"network_mask": dotted(body.network_mask), "metric": body.metric}


def _as_external(body: AsExternalLsa) -> Json:
    return {
        "network_mask": dotted(body.network_mask),
        "metric_type": 2 if body.type_2 else 1,
        "metric": body.metric,
        "forwarding_address": dotted(body.forwarding_address),
        "tag": body.external_route_tag,
    }


def _te_router_address(body: TeRouterAddress) -> Json:
    return {"te_router_address": dotted(body.address)}


def _te_link(body: TeLink) -> Json:
    address = None if body.router_address is None else dotted(body.router_address)
    return {
        **({} if address is None else {"te_router_address": address}),
        "te_link": {
            "link_type": body.link_type,
            "link_id": None if body.link_id is None else dotted(body.link_id),
            "local_addresses": _dotted_list(body.local_addresses),
            "remote_addresses": _dotted_list(body.remote_addresses),
            "local_identifier": body.local_identifier,
            "remote_identifier": body.remote_identifier,
            **dict.fromkeys(body.attributes.__struct_fields__),
            **body.attributes.sent(),
            "anomalous": list(body.anomalous),
            "unknown": _unknown(body.unknown),
        },
    }


def _router_information(body: RouterInformation) -> Json:
    leader = body.area_leader
    return {
        "capabilities": body.capabilities,
        "hostname": body.hostname,
        "area_leader": None
        if leader is None
        else {"priority": leader.priority, "algorithm": leader.algorithm},
        "dynamic_flooding": None if body.dynamic_flooding is None else list(body.dynamic_flooding),
        "unknown": _unknown(body.unknown),
    }


def _extended_prefix(body: ExtendedPrefixLsa) -> Json:
    return {
        "prefixes": [_prefix_facts(facts) for facts in body.prefixes],
        "unknown": _unknown(body.unknown),
    }


def _grace(body: GraceLsa) -> Json:
    return {
        "grace_period": body.period,
        "reason": body.reason,
        "reason_name": restart_reason(body.reason),
        "address": None if body.address is None else dotted(body.address),
        "unknown": _unknown(body.unknown),
    }


def _prefix_facts(facts: PrefixFacts) -> Json:
    """``path_capacity`` is the value with the default code point; all sub-TLVs are listed too."""
    return {
        "route_type": facts.route_type,
        "route_type_name": _type_name(RouteType, facts.route_type),
        "prefix": str(facts.prefix),
        "flags": facts.flags,
        "path_capacity": facts.capacity(PATH_CAPACITY),
        **_bier(facts.sub_tlvs),
        "sub_tlvs": _unknown(facts.sub_tlvs),
    }


def _bier(sub_tlvs: tuple[tuple[int, bytes], ...]) -> Json:
    """The BIER sub-TLVs (RFC 8444), if there are any; their codec is loaded for them only."""
    if all(kind != _BIER for kind, _ in sub_tlvs):
        return {}
    from fared.protocols.ospf.packet.bier import read_bier  # noqa: PLC0415

    return {"bier": [info.document() for info in read_bier(sub_tlvs)]}


_BODIES: dict[type, Callable[[Any], Json]] = {
    RouterLsa: _router,
    NetworkLsa: _network,
    SummaryLsa: _summary,
    AsExternalLsa: _as_external,
    TeRouterAddress: _te_router_address,
    TeLink: _te_link,
    RouterInformation: _router_information,
    ExtendedPrefixLsa: _extended_prefix,
    GraceLsa: _grace,
}
