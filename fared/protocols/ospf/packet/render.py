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

from fared.core.ids import dotted
from fared.core.text import flag_names, type_name
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.body import LsaBody, decode_body
from fared.protocols.ospf.packet.lsa import Lsa, LsaHeader, LsaKey, LsType, lsa_checksum_ok
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
from fared.protocols.ospf.packet.tlv import Json


def _dotted_list(values: tuple[int, ...]) -> list[str]:
    return [dotted(value) for value in values]


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
                "options_names": flag_names(Options, body.options),
                "flags": body.flags,
                "flags_names": flag_names(DdFlags, body.flags),
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
        "options_names": flag_names(Options, hello.options),
        "priority": hello.router_priority,
        "dr": dotted(hello.designated_router),
        "bdr": dotted(hello.backup_designated_router),
        "neighbors": _dotted_list(hello.neighbors),
    }


def render_key(key: LsaKey) -> Json:
    """The identity of an LSA."""
    return {
        "type": key.ls_type,
        "type_name": type_name(LsType, key.ls_type),
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
        "options_names": flag_names(Options, header.options),
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
    return body.document()
