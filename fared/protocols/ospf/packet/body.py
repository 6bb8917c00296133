"""LSA bodies to bytes and back: the codec of ``bodies`` and ``opaque``.

Opaque LSAs are decoded when a calculation needs them, not when they are flooded. Offsets in errors
count from the start of the LSA.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from fared.core.wire import DecodeError
from fared.protocols.ospf.common_ends import common_ends
from fared.protocols.ospf.packet.bodies import (
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    decode_extended_prefix,
    encode_extended_prefix,
)
from fared.protocols.ospf.packet.grace import GraceLsa
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, Lsa, LsaKey, LsType
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink, TeRouterAddress
from fared.protocols.ospf.packet.router_info import RouterInformation
from fared.protocols.ospf.packet.te import decode_te, encode_te_link, encode_te_router_address

LsaBody = (
    RouterLsa
    | NetworkLsa
    | SummaryLsa
    | AsExternalLsa
    | TeRouterAddress
    | TeLink
    | RouterInformation
    | ExtendedPrefixLsa
    | GraceLsa
)

_START: Final = LSA_HEADER_SIZE
_E_BIT: Final = 0x80
_METRIC: Final = 0xFFFFFF
_OPAQUE_ID_BITS: Final = 24
_OPAQUE_AREA: Final = int(LsType.OPAQUE_AREA)
_TE: Final = int(OpaqueType.TRAFFIC_ENGINEERING)
_ROUTER = struct.Struct(">BxH")
_LINK = struct.Struct(">IIBBH")
_LINKS: Final = _START + _ROUTER.size
_WORD = struct.Struct(">I")
_SUMMARY = struct.Struct(">II")
_EXTERNAL = struct.Struct(">IIII")
_EXTERNAL_TOS_SIZE: Final = 12


def opaque_type(link_state_id: int) -> int:
    """The opaque type: the first 8 bits of the link state id (RFC 5250 §3)."""
    return link_state_id >> _OPAQUE_ID_BITS


def is_te_lsa(key: LsaKey) -> bool:
    """Whether an LSA is a TE LSA (RFC 3630 §2.1): most of those in a large fabric are."""
    return key.ls_type == _OPAQUE_AREA and key.link_state_id >> _OPAQUE_ID_BITS == _TE


def opaque_link_state_id(kind: int, opaque_id: int) -> int:
    """The link state id of an opaque LSA; ``opaque_id`` has 24 bits (RFC 5250 §3)."""
    return kind << _OPAQUE_ID_BITS | opaque_id & _METRIC


def decode_body(lsa: Lsa) -> LsaBody | None:
    """Decode the body by LS type; None for types this router does not use.

    Raises only DecodeError (truncated, length, tlv).
    """
    decoder = _DECODERS.get(lsa.header.ls_type)
    if decoder is not None:
        return decoder(lsa.raw)
    kind = opaque_type(lsa.header.link_state_id)
    opaque = _OPAQUE_DECODERS.get((lsa.header.ls_type, kind))
    return None if opaque is None else opaque(lsa.raw, _START)


def decode_again(lsa: Lsa, raw: bytes, former: LsaBody | None) -> LsaBody | None:
    """Decode as ``decode_body``; ``raw`` is the former instance, ``former`` its body if decoded.

    The links of a router LSA that both list are the same objects, and are not decoded again.
    """
    old, new, size = raw[_LINKS:], lsa.raw[_LINKS:], _LINK.size
    if not isinstance(former, RouterLsa) or lsa.header.ls_type != LsType.ROUTER or not new:
        return decode_body(lsa)
    flags, count = _ROUTER.unpack_from(lsa.raw, _START)
    if len(new) != count * size or len(old) != len(former.links) * size:
        return decode_body(lsa)
    alike = common_ends(old, new, size)
    differ = _plain_links(new[alike.begin * size : (count - alike.end) * size])
    if alike.begin + len(differ) + alike.end != count:  # TOS metrics
        return decode_body(lsa)
    same = former.links
    return RouterLsa(flags, (*same[: alike.begin], *differ, *same[len(same) - alike.end :]))


def encode_body(body: LsaBody) -> bytes:
    """Encode a body: the bytes after the LSA header."""
    return _ENCODERS[type(body)](body)


def _check_size(raw: bytes, minimum: int, unit: int, what: str) -> None:
    """Check that a body has ``minimum`` bytes and then whole units."""
    size = len(raw) - _START
    if size < minimum:
        raise DecodeError("truncated", len(raw), f"{what} of {size} bytes, below {minimum}")
    if (size - minimum) % unit:
        raise DecodeError("length", len(raw), f"{what} of {size} bytes ends within a field")


def _decode_router(raw: bytes) -> RouterLsa:
    """RFC 2328 §A.4.2; TOS metrics are skipped (§12.3)."""
    _check_size(raw, _ROUTER.size, 4, "router LSA")
    flags, count = _ROUTER.unpack_from(raw, _START)
    offset = _START + _ROUTER.size
    if len(raw) - offset == count * _LINK.size:
        links = _plain_links(raw[offset:])
        if len(links) == count:
            return RouterLsa(flags, tuple(links))
    return RouterLsa(flags, _decode_tos_links(raw, offset, count))


def _plain_links(raw: bytes) -> list[RouterLink]:
    """Decode links without TOS metrics; those that have any are left out."""
    make = tuple.__new__  # what RouterLink does, without a call of Python's for each link
    return [
        make(RouterLink, (kind, id_, data, metric))
        for id_, data, kind, tos, metric in _LINK.iter_unpack(raw)
        if not tos
    ]


def _decode_tos_links(raw: bytes, offset: int, count: int) -> tuple[RouterLink, ...]:
    """Decode links one by one, of LSAs with TOS metrics, or malformed ones."""
    links: list[RouterLink] = []
    for _ in range(count):
        if offset + _LINK.size > len(raw):
            raise DecodeError(
                "truncated", offset, f"router LSA ends before the last of {count} links"
            )
        link_id, link_data, link_type, tos_count, metric = _LINK.unpack_from(raw, offset)
        links.append(RouterLink(link_type, link_id, link_data, metric))
        offset += _LINK.size + 4 * tos_count
    if offset > len(raw):
        raise DecodeError("truncated", len(raw), "router LSA ends within TOS metrics")
    if offset < len(raw):
        raise DecodeError("length", offset, f"{len(raw) - offset} bytes after the last link")
    return tuple(links)


def encode_router_lsa(body: RouterLsa) -> bytes:
    """Encode a router LSA body, without TOS metrics."""
    links = (_LINK.pack(k.link_id, k.link_data, k.link_type, 0, k.metric) for k in body.links)
    return _ROUTER.pack(body.flags, len(body.links)) + b"".join(links)


def _decode_network(raw: bytes) -> NetworkLsa:
    """RFC 2328 §A.4.3."""
    _check_size(raw, 4, 4, "network LSA")
    mask, *routers = (word for (word,) in _WORD.iter_unpack(raw[_START:]))
    return NetworkLsa(mask, tuple(routers))


def encode_network_lsa(body: NetworkLsa) -> bytes:
    """Encode a network LSA body."""
    words = (body.network_mask, *body.attached_routers)
    return struct.pack(f">{len(words)}I", *words)


def _decode_summary(raw: bytes) -> SummaryLsa:
    """RFC 2328 §A.4.4; TOS metrics are skipped."""
    _check_size(raw, _SUMMARY.size, 4, "summary LSA")
    mask, metric = _SUMMARY.unpack_from(raw, _START)
    return SummaryLsa(mask, metric & _METRIC)


def encode_summary_lsa(body: SummaryLsa) -> bytes:
    """Encode the body of a summary LSA, type 3 or 4."""
    return _SUMMARY.pack(body.network_mask, body.metric & _METRIC)


def _decode_external(raw: bytes) -> AsExternalLsa:
    """RFC 2328 §A.4.5; TOS metrics are skipped."""
    _check_size(raw, _EXTERNAL.size, _EXTERNAL_TOS_SIZE, "AS-external LSA")
    mask, metric, forwarding, tag = _EXTERNAL.unpack_from(raw, _START)
    return AsExternalLsa(mask, bool(metric >> 24 & _E_BIT), metric & _METRIC, forwarding, tag)


def encode_as_external_lsa(body: AsExternalLsa) -> bytes:
    """Encode the body of an AS-external LSA (type 5) or NSSA LSA (type 7)."""
    metric = body.type_2 * _E_BIT << 24 | body.metric & _METRIC
    return _EXTERNAL.pack(
        body.network_mask, metric, body.forwarding_address, body.external_route_tag
    )


_DECODERS: dict[int, Callable[[bytes], LsaBody]] = {
    LsType.ROUTER: _decode_router,
    LsType.NETWORK: _decode_network,
    LsType.SUMMARY_NETWORK: _decode_summary,
    LsType.SUMMARY_ASBR: _decode_summary,
    LsType.AS_EXTERNAL: _decode_external,
    LsType.NSSA_EXTERNAL: _decode_external,
}
_OPAQUE_DECODERS: dict[tuple[int, int], Callable[[bytes, int], LsaBody | None]] = {
    (LsType.OPAQUE_AREA, OpaqueType.TRAFFIC_ENGINEERING): decode_te,
    (LsType.OPAQUE_LINK, OpaqueType.GRACE): GraceLsa.decode,
    **{
        (ls_type, kind): decoder
        for ls_type in (LsType.OPAQUE_LINK, LsType.OPAQUE_AREA, LsType.OPAQUE_AS)
        for kind, decoder in (
            (OpaqueType.ROUTER_INFORMATION, RouterInformation.decode),
            (OpaqueType.EXTENDED_PREFIX, decode_extended_prefix),
        )
    },
}
_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    RouterLsa: encode_router_lsa,
    NetworkLsa: encode_network_lsa,
    SummaryLsa: encode_summary_lsa,
    AsExternalLsa: encode_as_external_lsa,
    TeRouterAddress: encode_te_router_address,
    TeLink: encode_te_link,
    RouterInformation: RouterInformation.encode,
    ExtendedPrefixLsa: encode_extended_prefix,
    GraceLsa: GraceLsa.encode,
}
