"""OSPF packets to bytes and back (RFC 2328 §A.3).

``decode_packet`` checks version, type, lengths, packet checksum and the format of the body, which
needs neither neighbor nor key. LSAs in an update are not decoded; the flooding procedure verifies
their checksums (§13 (1)). Packed, LSAs and headers remain bytes: most of those that a router
receives are copies of what it has, which is recognized without an object for each.

``DecodedUpdates`` is a fast path beside ``decode_packet``: tests/ospf_packet/test_packets.py proves
them equal; row ``updates decoded once``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from fared.core.checksum import internet_checksum, sum_of_words
from fared.core.wire import DecodeError, Reader
from fared.protocols.ospf.packet.lsa import (
    LSA_HEADER_SIZE,
    LsaKey,
    decode_headers,
    decode_lsa,
    encode_header,
    packed_headers,
)
from fared.protocols.ospf.packet.packets import (
    AuType,
    DatabaseDescription,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
    Packet,
    PacketBody,
    PacketType,
)

OSPF_VERSION: Final = 2
PACKET_HEADER_SIZE: Final = 24
_AUTHENTICATION: Final = slice(16, 24)
_DECODED_KEPT: Final = 16
_NO_AUTHENTICATION: Final = bytes(8)
_MAX_LENGTH: Final = 0xFFFF
_ONES: Final = 0xFFFF
_HEADER = struct.Struct(">BBHIIHH8s")
_HELLO = struct.Struct(">IHBBIII")
_DD = struct.Struct(">HBBI")
_REQUEST = struct.Struct(">III")
_COUNT = struct.Struct(">I")
_CHECKSUMMED = (AuType.NULL, AuType.SIMPLE)


def packet_length(payload: bytes) -> int:
    """The length in the OSPF header, at most that of the payload.

    A digest (RFC 2328 §D.4.3) or an LLS block (RFC 5613) may follow the packet. Raises
    DecodeError ``truncated``, ``version`` or ``length``.
    """
    if len(payload) < PACKET_HEADER_SIZE:
        raise DecodeError("truncated", len(payload), f"packet of {len(payload)} bytes, below 24")
    if payload[0] != OSPF_VERSION:
        raise DecodeError("version", 0, f"OSPF version {payload[0]}, expected 2")
    length = int.from_bytes(payload[2:4], "big")
    if length < PACKET_HEADER_SIZE:
        raise DecodeError("length", 2, f"packet length {length}, below 24")
    if length > len(payload):
        raise DecodeError(
            "truncated", len(payload), f"packet length {length}, received {len(payload)} bytes"
        )
    return length


def packet_checksum(packet: bytes) -> int:
    """The packet checksum, which excludes the 64-bit authentication field (§A.3.1)."""
    if packet[_AUTHENTICATION] == _NO_AUTHENTICATION:
        return internet_checksum(packet)
    return internet_checksum(packet[: _AUTHENTICATION.start] + packet[_AUTHENTICATION.stop :])


class DecodedUpdates:
    """The updates decoded last, by their bytes: many neighbors flood the same LSAs alike.

    With each is the sum of its words: of the packet checksum only the header's part is new.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[LsUpdate, int]] = {}

    def decode(self, packet: bytes, *, verify: bool) -> LsUpdate:
        """Decode the body of a packet as a packed update, or return the one known. As its decoder.

        The same LSAs give the same object. ``verify``: the packet checksum, too. Raises
        DecodeError.
        """
        content = packet[PACKET_HEADER_SIZE:]
        known = self._known.get(content)
        words = sum_of_words(content) if known is None else known[1]
        # A packet is never all zeros, whose sum would be the same.
        if verify and (sum_of_words(packet[: _AUTHENTICATION.start]) + words) % _ONES:
            raise DecodeError("checksum", 12, "wrong packet checksum")
        if known is not None:
            return known[0]
        update = _decode_packed_update(Reader(packet, PACKET_HEADER_SIZE))
        if len(self._known) >= _DECODED_KEPT:
            del self._known[next(iter(self._known))]
        self._known[content] = update, words
        return update


def decode_packet(
    payload: bytes,
    *,
    verify_checksum: bool = True,
    packed: bool = False,
    updates: DecodedUpdates | None = None,
) -> Packet:
    """Decode the payload of one IP datagram.

    Bytes after the length of the header are ignored (authentication data). The checksum is
    verified unless the authentication type replaces it (2 and 3) or ``verify_checksum`` is false.
    ``packed``: LSAs and their headers stay in the ``packed`` field of the body; of updates in
    ``updates`` even those are not split again.
    Raises only DecodeError, codes truncated, version, type, length, auth (unknown authentication
    type) and checksum.
    """
    length = packet_length(payload)
    packet = payload[:length]
    _, type_number, _, router_id, area_id, _, au_type, authentication = _HEADER.unpack_from(packet)
    decoder = _DECODERS.get(type_number)
    if decoder is None:
        raise DecodeError("type", 1, f"unknown packet type {type_number}")
    if au_type > AuType.CRYPTOGRAPHIC_EXTENDED:
        raise DecodeError("auth", 14, f"unknown authentication type {au_type}")
    verify = verify_checksum and au_type in _CHECKSUMMED
    body: PacketBody
    if updates is not None and type_number == PacketType.LS_UPDATE:
        body = updates.decode(packet, verify=verify)
    else:
        if verify and packet_checksum(packet):
            raise DecodeError("checksum", 12, "wrong packet checksum")
        if packed:
            decoder = _PACKED_DECODERS.get(type_number, decoder)
        body = decoder(Reader(packet, PACKET_HEADER_SIZE))
    return Packet(_TYPES[type_number], router_id, area_id, au_type, authentication, body)


def encode_packet(
    router_id: int,
    area_id: int,
    body: PacketBody,
    *,
    au_type: int = AuType.NULL,
    authentication: bytes = bytes(8),
) -> bytes:
    """Encode one packet with its header; ``ospf.auth.signature`` appends the digest.

    The checksum is computed for authentication types 0 and 1, and zero for the cryptographic
    ones (§D.4). Raises ValueError beyond 65,535 bytes.
    """
    packet_type, content = _encode_body(body)
    length = PACKET_HEADER_SIZE + len(content)
    if length > _MAX_LENGTH:
        raise ValueError(f"an OSPF packet of {length} bytes does not fit its length field")
    checksum = 0
    if au_type in _CHECKSUMMED:
        blank = _HEADER.pack(
            OSPF_VERSION, packet_type, length, router_id, area_id, 0, au_type, bytes(8)
        )
        checksum = internet_checksum(blank + content)
    head = _HEADER.pack(
        OSPF_VERSION, packet_type, length, router_id, area_id, checksum, au_type, authentication
    )
    return head + content


def _words(reader: Reader, what: str) -> tuple[int, ...]:
    """Read 32-bit ids to the end of the slice."""
    if reader.remaining % 4:
        raise DecodeError(
            "length", reader.offset, f"{reader.remaining} bytes of {what}, not a multiple of 4"
        )
    count = reader.remaining // 4
    return struct.unpack(f">{count}I", reader.rest())


def _decode_hello(reader: Reader) -> Hello:
    """RFC 2328 §A.3.2."""
    mask, interval, options, priority, dead, dr, bdr = _HELLO.unpack(
        reader.take(_HELLO.size, "hello")
    )
    neighbors = _words(reader, "neighbors")
    return Hello(mask, interval, options, priority, dead, dr, bdr, neighbors)


def _decode_dd(reader: Reader) -> DatabaseDescription:
    """RFC 2328 §A.3.3."""
    mtu, options, flags, sequence = _DD.unpack(reader.take(_DD.size, "database description"))
    return DatabaseDescription(mtu, options, flags, sequence, decode_headers(reader))


def _decode_packed_dd(reader: Reader) -> DatabaseDescription:
    mtu, options, flags, sequence = _DD.unpack(reader.take(_DD.size, "database description"))
    return DatabaseDescription(mtu, options, flags, sequence, (), packed_headers(reader))


def _decode_request(reader: Reader) -> LsRequest:
    """RFC 2328 §A.3.4."""
    if reader.remaining % _REQUEST.size:
        raise DecodeError(
            "length", reader.offset, f"{reader.remaining} bytes of requests, not a multiple of 12"
        )
    return LsRequest(tuple([LsaKey(*key) for key in _REQUEST.iter_unpack(reader.rest())]))


def _decode_update(reader: Reader) -> LsUpdate:
    """RFC 2328 §A.3.5."""
    start = reader.offset
    count = reader.u32("number of LSAs")
    if count * 20 > reader.remaining:
        raise DecodeError("length", start, f"{count} LSAs in {reader.remaining} bytes")
    lsas = tuple([decode_lsa(reader) for _ in range(count)])
    if reader.remaining:
        raise DecodeError("length", reader.offset, f"{reader.remaining} bytes after the last LSA")
    return LsUpdate(lsas)


def _decode_packed_update(reader: Reader) -> LsUpdate:
    """Split an update into its LSAs; the errors are those of ``_decode_update``."""
    start = reader.offset
    count = reader.u32("number of LSAs")
    data, end = reader.data, reader.end
    at = reader.offset
    lsas: list[bytes] = []
    if count * LSA_HEADER_SIZE <= reader.remaining:
        for _ in range(count):
            if at + LSA_HEADER_SIZE > end:
                break
            beyond = at + (data[at + 18] << 8 | data[at + 19])
            if beyond < at + LSA_HEADER_SIZE or beyond > end:
                break
            lsas.append(data[at:beyond])
            at = beyond
    if len(lsas) == count and at == end:
        return LsUpdate((), tuple(lsas))
    reader.offset = start
    return _decode_update(reader)


def _decode_ack(reader: Reader) -> LsAck:
    """RFC 2328 §A.3.6."""
    return LsAck(decode_headers(reader))


def _decode_packed_ack(reader: Reader) -> LsAck:
    return LsAck((), packed_headers(reader))


_TYPES = {kind.value: kind for kind in PacketType}
_DECODERS: dict[int, Callable[[Reader], PacketBody]] = {
    PacketType.HELLO: _decode_hello,
    PacketType.DATABASE_DESCRIPTION: _decode_dd,
    PacketType.LS_REQUEST: _decode_request,
    PacketType.LS_UPDATE: _decode_update,
    PacketType.LS_ACK: _decode_ack,
}
_PACKED_DECODERS: dict[int, Callable[[Reader], PacketBody]] = {
    PacketType.DATABASE_DESCRIPTION: _decode_packed_dd,
    PacketType.LS_UPDATE: _decode_packed_update,
    PacketType.LS_ACK: _decode_packed_ack,
}


def _encode_body(body: PacketBody) -> tuple[PacketType, bytes]:
    match body:
        case Hello():
            return PacketType.HELLO, _encode_hello(body)
        case DatabaseDescription():
            fixed = _DD.pack(body.interface_mtu, body.options, body.flags, body.dd_sequence_number)
            headers = b"".join(map(encode_header, body.lsa_headers)) + body.packed
            return PacketType.DATABASE_DESCRIPTION, fixed + headers
        case LsRequest():
            return PacketType.LS_REQUEST, b"".join(map(_encode_request, body.requests))
        case LsUpdate():
            lsas = (*(lsa.raw for lsa in body.lsas), *body.packed)
            return PacketType.LS_UPDATE, _COUNT.pack(len(lsas)) + b"".join(lsas)
        case LsAck():
            return PacketType.LS_ACK, b"".join(map(encode_header, body.lsa_headers)) + body.packed


def _encode_request(key: LsaKey) -> bytes:
    return _REQUEST.pack(key.ls_type, key.link_state_id, key.advertising_router)


def _encode_hello(hello: Hello) -> bytes:
    """RFC 2328 §A.3.2."""
    fixed = _HELLO.pack(
        hello.network_mask,
        hello.hello_interval,
        hello.options,
        hello.router_priority,
        hello.router_dead_interval,
        hello.designated_router,
        hello.backup_designated_router,
    )
    return fixed + struct.pack(f">{len(hello.neighbors)}I", *hello.neighbors)
