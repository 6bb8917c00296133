"""Prefixes of UPDATE messages (RFC 4271 §4.3), families (RFC 4760), and next hops (RFC 8950).

A prefix is its length in bits and as many bytes as that needs. Ten thousand come in one message:
the loops of this module are written for that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6, Prefix, format_address
from fared.protocols.bgp.packet.notification import Fault, MessageError

UNICAST: Final = 1
AFIS: Final = {FAMILY_IPV4: 1, FAMILY_IPV6: 2}
FAMILIES: Final = {1: FAMILY_IPV4, 2: FAMILY_IPV6}
"""Address family identifiers, and what they are here."""
AFI_SAFI: Final = struct.Struct(">HB")
_BYTES: Final = tuple([(length + 7) >> 3 for length in range(129)])
"""Bytes of a prefix by its length."""


def _tables(bits: int) -> tuple[tuple[int, int], ...]:
    """By length: how far its bytes are shifted to make an address, and its mask."""
    return tuple([(bits - 8 * _BYTES[n], ((1 << n) - 1) << (bits - n)) for n in range(bits + 1)])


_TABLES: Final = {family: _tables(bits) for family, bits in ADDRESS_BITS.items()}


def family_name(afi: int, safi: int = UNICAST) -> str:
    """Write a family as an operator does: ``ipv4 unicast``, or its numbers."""
    if safi == UNICAST and afi in FAMILIES:
        return f"ipv{FAMILIES[afi]} unicast"
    return f"afi {afi} safi {safi}"


def decode_prefixes(data: bytes, start: int, end: int, family: int) -> list[Prefix]:
    """Decode the prefixes between two offsets, host bits cleared.

    Raises MessageError: one that is too long, or exceeds the end, leaves no way to find the next
    one, so that the session is reset (RFC 7606 §5.3).
    """
    found: list[Prefix] = []
    table, number = _TABLES[family], int.from_bytes
    longest, sizes, append = len(table), _BYTES, found.append
    while start < end:
        length = data[start]
        if length >= longest:
            raise _invalid(f"IPv{family} prefix of {length} bits", start)
        first = start + 1
        start = first + sizes[length]
        if start > end:
            raise _invalid(f"IPv{family} prefix of {length} bits in {end - first} bytes", first - 1)
        shift, mask = table[length]
        append(Prefix(family, number(data[first:start], "big") << shift & mask, length))
    return found


def _invalid(what: str, at: int) -> MessageError:
    return MessageError(Fault.INVALID_NETWORK_FIELD, what, offset=at)


def encode_prefixes(prefixes: Iterable[Prefix]) -> list[bytes]:
    """Encode each prefix by itself."""
    found = []
    for prefix in prefixes:
        length = prefix.length
        shift, _ = _TABLES[prefix.family][length]
        size = _BYTES[length]
        # the length, and behind it those bytes of the address that count
        value = length << 8 * size | prefix.network >> shift
        found.append(value.to_bytes(size + 1, "big"))
    return found


class BgpNextHop(msgspec.Struct, frozen=True, gc=False):
    """Where routes lead: an address, and a link-local one beside a global IPv6 address.

    On a link without addresses ``address`` may be link-local itself.
    """

    family: int
    address: int
    link_local: int = 0

    @property
    def raw(self) -> bytes:
        """The bytes of 4, 16 or 32 octets (RFC 2545 §3, RFC 8950 §3)."""
        size = ADDRESS_BITS[self.family] >> 3
        second = self.link_local.to_bytes(16, "big") if self.link_local else b""
        return self.address.to_bytes(size, "big") + second

    def __str__(self) -> str:
        text = format_address(self.family, self.address)
        return f"{text} {format_address(FAMILY_IPV6, self.link_local)}" if self.link_local else text


_SIZES: Final = {FAMILY_IPV4: (4, 16, 32), FAMILY_IPV6: (16, 32)}
"""RFC 8950 §3: IPv4 prefixes may have an IPv6 next hop, not the other way."""


def decode_next_hop(value: bytes, family: int) -> BgpNextHop | None:
    """Decode the next hop of MP_REACH_NLRI; None if its size is not one of the family's."""
    if len(value) not in _SIZES[family]:
        return None
    number = int.from_bytes
    if len(value) == 4:
        return BgpNextHop(FAMILY_IPV4, number(value, "big"))
    return BgpNextHop(FAMILY_IPV6, number(value[:16], "big"), number(value[16:], "big"))
