"""Results in BIER: one packet to all workers, which the fabric copies where ways part.

::

    Ethernet  type 0xab37 (RFC 8296 §2.2)
    BIER      bits of workers, next protocol IPv4
    IPv4      from the root to the group of results
    UDP       without checksum (RFC 768): the result has a control sum
    result    as it is sent by unicast

Whoever has no raw socket gets the IPv4 packet from a leaf that pops headers (``bier: php``). Only
the first packet of a result goes this way: what a worker lacks is repeated to it by unicast.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import Final

import msgspec

from fared.core.bier import LENGTHS, bift_id
from fared.core.wire import DecodeError
from fared.extensions.ina.fields import BfrId, FabricBfrId, Length, Octet
from fared.extensions.ina.plan.model import BitString, members
from fared.paths.bier.bit_string import bit_strings
from fared.paths.bier.header import ETHERTYPE, FIXED_SIZE, PROTO_IPV4, BierHeader, encode_header

GROUP: Final = "239.192.33.84"
"""Of results, in the scope of an organization (RFC 2365)."""
PORT: Final = 54199
"""UDP port of results that come by BIER, the same at all workers of a host."""
_ETHERNET = bytes(12) + ETHERTYPE.to_bytes(2, "big")
_IP = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_DONT_FRAGMENT = 0x4000
_TTL = 64
_UDP_NUMBER = 17
_LEAST = FIXED_SIZE + LENGTHS[0] // 8 + _IP.size + _UDP.size
_FIRST = _IP.size + _UDP.size


class BierWay(msgspec.Struct, frozen=True):
    """How results of a job go by BIER: the BFR-id of each worker, by its bit in the job.

    ``length`` is that of the sub-domain's bit strings.
    """

    sub_domain: Octet
    length: Length
    bfr_ids: dict[BfrId, FabricBfrId]

    def frame(self, bits: BitString, size: int, source: tuple[str, int], entropy: int) -> bytes:
        """Return what precedes a result of ``size`` bytes to the workers of ``bits``.

        ``source`` is the root's address and port. Raises ValueError if the workers are in several
        sets, KeyError if one has no BFR-id.
        """
        strings = bit_strings((self.bfr_ids[bit] for bit in members(bits)), self.length)
        if len(strings) != 1:
            raise ValueError(f"workers in {len(strings)} sets")
        ((set_id, string),) = strings.items()
        number = bift_id(self.length, self.sub_domain, set_id)
        header = BierHeader(number, string, self.length, proto=PROTO_IPV4, entropy=entropy)
        return _ETHERNET + encode_header(header) + _addressed(size, source)


def _addressed(size: int, source: tuple[str, int]) -> bytes:
    """Return the headers of IPv4 and UDP."""
    fields = (
        0x45, 0, _FIRST + size, 0, _DONT_FRAGMENT, _TTL, _UDP_NUMBER, 0,
        IPv4Address(source[0]).packed, IPv4Address(GROUP).packed,
    )  # fmt: skip
    plain = _IP.pack(*fields)
    total = sum(struct.unpack("!10H", plain))
    total = (total & 0xFFFF) + (total >> 16)
    check = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    ip = _IP.pack(*fields[:7], check, *fields[8:])
    return ip + _UDP.pack(source[1], PORT, _UDP.size + size, 0)


def unwrapped(data: memoryview, own: int) -> tuple[tuple[str, int], memoryview]:
    """Return source and result of a packet that begins with the BIER header.

    ``own`` is the BFR-id of the worker's host. Raises DecodeError if it is no result for it.
    """
    if len(data) < _LEAST:
        raise DecodeError("truncated", len(data), "result by BIER")
    code = data[5] >> 4
    if data[4] & 0xF or not 1 <= code <= len(LENGTHS) or data[9] & 0x3F != PROTO_IPV4:
        raise DecodeError("version", 4, "not a result by BIER")
    length = LENGTHS[code - 1]
    at = FIXED_SIZE + length // 8
    bits = int.from_bytes(data[FIXED_SIZE:at], "big")
    if not bits >> (own - 1) % length & 1:
        raise DecodeError("tlv", FIXED_SIZE, "for another host")
    inner = data[at:]
    if len(inner) < _FIRST or inner[0] != 0x45 or inner[9] != _UDP_NUMBER:
        raise DecodeError("tlv", at, "not UDP in IPv4")
    port, to, size, _ = _UDP.unpack_from(inner, _IP.size)
    if to != PORT or not _UDP.size <= size <= len(inner) - _IP.size:
        raise DecodeError("length", at + _IP.size, "not a result by BIER")
    address = ".".join(map(str, inner[12:16]))
    return (address, port), inner[_FIRST : _IP.size + size]
