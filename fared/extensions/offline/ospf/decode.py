"""One OSPF packet, LSA or TLV list from bytes to a ``fared-decode/1`` document.

A malformed opaque LSA, which the daemon floods without using it, is an error here. Offsets in
errors count from the first byte of the input, which may be an IP header.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from fared.core.ids import dotted
from fared.core.wire import DecodeError, Reader
from fared.extensions.offline.decoded import decoded_document
from fared.extensions.offline.ospf.capture import OSPF_PROTOCOL, is_ipv4, parse_ipv4, read_capture
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.ospf.auth.signature import AuthInfo, overhead_of, read_auth, sign, verify
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.codec import (
    PACKET_HEADER_SIZE,
    decode_packet,
    encode_packet,
    packet_length,
)
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, Lsa, decode_lsa, encode_lsa
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.packets import AuType, LsUpdate, Packet
from fared.protocols.ospf.packet.render import render_body, render_lsa, render_packet
from fared.protocols.ospf.packet.router_info import RouterInformation
from fared.protocols.ospf.packet.te import decode_te
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

Json = dict[str, Any]

_AU_TYPE_NAMES = {
    AuType.NULL: "none",
    AuType.SIMPLE: "cleartext",
    AuType.CRYPTOGRAPHIC: "cryptographic",
    AuType.CRYPTOGRAPHIC_EXTENDED: "cryptographic-extended",
}
_TE_TLVS = (1, 2)
_HOSTNAME_TLV = 7
_ALIASES: Mapping[str, dict[str, Algorithm]] = MappingProxyType(
    {"isis": {"hmacmd5": Algorithm.MD5}}
)


def parse_auth(text: str, proto: str = "ospf") -> AuthKey:
    """Read ``md5:1:KEY``, ``hmac-sha256:1:KEY`` or ``cleartext:KEY``. Raises ValueError.

    The names of the configuration (``hmac-sha-256``) are valid, too. The MD5 of IS-IS is
    ``hmac-md5`` (RFC 5304); that of OSPF is not an HMAC (RFC 2328 §D.4.3).
    """
    names = {a.value.replace("-", ""): a for a in Algorithm}
    names |= _ALIASES.get(proto, {})
    name, _, rest = text.partition(":")
    algorithm = names.get(name.lower().replace("-", ""))
    if algorithm is None:
        known = ", ".join(a.value for a in Algorithm)
        raise ValueError(f"{name!r} is not an algorithm; known are {known}")
    if algorithm is Algorithm.CLEARTEXT:
        return AuthKey(algorithm, 0, rest.encode())
    key_id, colon, key = rest.partition(":")
    if not colon or not key_id.isdecimal():
        raise ValueError(f"write {name}:KEY-ID:KEY, for instance {name}:1:secret")
    return AuthKey(algorithm, int(key_id), key.encode())


def decode_document(
    data: bytes,
    form: str,
    *,
    key: AuthKey | None = None,
    reencode: bool = False,
    source: int = 0,
) -> Json:
    """Decode ``data`` as packet, lsa or tlvs; a malformed one gives ``"ok": false``.

    ``source`` is the source address of a packet without an IP header.
    """

    def decode() -> Json:
        if form == "packet":
            return _decode_packet_form(data, key, source)
        return _decode_lsa_form(data) if form == "lsa" else _decode_tlvs_form(data)

    return decoded_document("ospf", form, decode, reencode=reencode)


def capture_documents(path: Path, *, key: AuthKey | None, reencode: bool) -> Iterator[Json]:
    """A document for each packet of a capture. Raises CaptureError."""
    for datagram in read_capture(path):
        document = decode_document(
            datagram.payload, "packet", key=key, reencode=reencode, source=datagram.source
        )
        yield {
            **document,
            "frame": datagram.frame,
            "time": datagram.time,
            "source": dotted(datagram.source),
            "destination": dotted(datagram.destination),
        }


def _decode_packet_form(data: bytes, key: AuthKey | None, source: int) -> Json:
    offset = 0
    if is_ipv4(data):
        datagram = parse_ipv4(data)
        if datagram.protocol != OSPF_PROTOCOL:
            raise DecodeError("type", 9, f"IP protocol {datagram.protocol} is not OSPF")
        data, offset, source = datagram.payload, datagram.offset, datagram.source
    try:
        packet = decode_packet(data)
        info = read_auth(data)
        if key is not None:
            # RFC 7474 §3: the AuType tells an extended sequence number; HMAC keys serve both types.
            extended = (
                info.au_type == AuType.CRYPTOGRAPHIC_EXTENDED and "hmac" in key.algorithm.value
            )
            key = replace(key, extended=extended)
            verify(data, key, source)
        _check_bodies(packet)
    except DecodeError as error:
        raise DecodeError(error.code, error.offset + offset, error.what) from error
    return {
        "packet": render_packet(packet),
        "auth": _render_auth(info, key),
        "bytes": (data, partial(_reencode_packet, packet, data, info, key, source)),
    }


def _check_bodies(packet: Packet) -> None:
    if not isinstance(packet.body, LsUpdate):
        return
    offset = PACKET_HEADER_SIZE + 4
    for lsa in packet.body.lsas:
        try:
            decode_body(lsa)
        except DecodeError as error:
            raise DecodeError(error.code, error.offset + offset, error.what) from error
        offset += lsa.header.length


def _render_auth(info: AuthInfo, key: AuthKey | None) -> Json:
    rendered: Json = {
        "type": _AU_TYPE_NAMES[AuType(info.au_type)] if key is None else key.algorithm.value
    }
    if info.data_length:
        rendered |= {"key_id": info.key_id, "sequence": info.sequence}
    return {**rendered, "verified": None if key is None else True}


def _reencode_lsa(lsa: Lsa) -> Lsa:
    body = decode_body(lsa)
    header = lsa.header
    return encode_lsa(
        ls_age=header.ls_age,
        options=header.options,
        ls_type=header.ls_type,
        link_state_id=header.link_state_id,
        advertising_router=header.advertising_router,
        ls_sequence_number=header.ls_sequence_number,
        body=lsa.raw[LSA_HEADER_SIZE:] if body is None else encode_body(body),
    )


def _reencode_packet(
    packet: Packet, data: bytes, info: AuthInfo, key: AuthKey | None, source: int
) -> bytes:
    """Encode a decoded packet; sign it again with ``key``, or keep the trailer without one."""
    body = packet.body
    if isinstance(body, LsUpdate):
        body = LsUpdate(tuple(_reencode_lsa(lsa) for lsa in body.lsas))
    encoded = encode_packet(
        packet.router_id,
        packet.area_id,
        body,
        au_type=packet.au_type,
        authentication=packet.authentication,
    )
    end = packet_length(data)
    if key is not None:
        encoded = sign(encoded, key, info.sequence, source)
        end += overhead_of(key)
    return encoded + data[end:]


def _decode_lsa_form(data: bytes) -> Json:
    reader = Reader(data)
    lsa = decode_lsa(reader)
    if reader.remaining:
        raise DecodeError("length", reader.offset, f"{reader.remaining} bytes after the LSA")
    decode_body(lsa)
    return {"lsa": render_lsa(lsa), "bytes": (data, lambda: _reencode_lsa(lsa).raw)}


def _decode_tlvs_form(data: bytes) -> Json:
    """TLVs of an opaque LSA body: traffic engineering 1 and 2, the hostname 7, others as hex."""
    tlvs: Json = {}
    order: list[list[int]] = []
    unknown: list[Json] = []
    encoded = b""
    for kind, first, last in read_tlvs(data, 0, len(data)):
        order.append([kind, last - first])
        one = data[:last]
        start = first - 4
        value = data[first:last]
        body = decode_te(one, start) if kind in _TE_TLVS else None
        if isinstance(body, TeRouterAddress | TeLink):
            tlvs |= render_body(body)
            encoded += encode_body(body)
        elif kind == _HOSTNAME_TLV:
            information = RouterInformation.decode(one, start)
            tlvs["hostname"] = information.hostname
            encoded += information.encode()
        else:
            unknown.append({"type": kind, "hex": value.hex()})
            encoded += write_tlv(kind, value)
    return {
        "tlvs": {**tlvs, "unknown": unknown},
        "tlv_order": order,
        "bytes": (data, lambda: encoded),
    }
