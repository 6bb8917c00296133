"""UPDATE messages with as many prefixes as fit (RFC 4271 §4.3; RFC 7606 §5.1).

A message has one of: withdrawn IPv4 prefixes, IPv4 prefixes, MP_REACH_NLRI, MP_UNREACH_NLRI. The
last two come before all other attributes. Messages are made when they are asked for: whoever sends
them stops when the neighbor does not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fared.core.ids import FAMILY_IPV4, Prefix
from fared.protocols.bgp.packet.attribute_block import write_block
from fared.protocols.bgp.packet.attributes import (
    MP_REACH,
    MP_UNREACH,
    NEXT_HOP,
    OPTIONAL,
    WELL_KNOWN,
    PathAttributes,
    write_attribute,
)
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.framing import HEADER, frame
from fared.protocols.bgp.packet.messages import MessageType, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import AFI_SAFI, AFIS, UNICAST, encode_prefixes

_FIXED: Final = HEADER + 4
"""Octets of an UPDATE with nothing in it."""
_ATTRIBUTE: Final = 4
"""Octets before the value of a long attribute."""
_SLICE: Final = 1024
"""Prefixes encoded at once: those of a message, more or less."""


def pack_update(update: Update, coding: Coding) -> Iterator[bytes]:
    """Yield the messages of an update: what is withdrawn first, then routes, then the end.

    Raises ValueError if attributes leave no room for a prefix.
    """
    yield from pack_withdrawn(update.withdrawn, coding)
    for routes in update.routes:
        yield from pack_routes(update.attributes, routes, coding)
    if update.end_of_rib is not None:
        yield end_of_rib(update.end_of_rib)


def pack_withdrawn(prefixes: Iterable[Prefix], coding: Coding) -> Iterator[bytes]:
    """Yield messages that withdraw prefixes, of each family by itself."""
    by_family: dict[int, list[Prefix]] = {}
    for prefix in prefixes:
        by_family.setdefault(prefix.family, []).append(prefix)
    for family, some in by_family.items():
        if family == FAMILY_IPV4:
            for block in _filled(some, coding.limit - _FIXED):
                yield _message(withdrawn=block)
        else:
            head = AFI_SAFI.pack(AFIS[family], UNICAST)
            for block in _filled(some, coding.limit - _FIXED - _ATTRIBUTE - len(head)):
                yield _message(write_attribute(OPTIONAL, MP_UNREACH, head + block))


def pack_routes(attributes: PathAttributes, routes: RouteGroup, coding: Coding) -> Iterator[bytes]:
    """Yield messages that announce the prefixes of one family with common attributes."""
    if not routes.prefixes:
        return
    block, next_hop = write_block(attributes, coding), routes.next_hop
    room = coding.limit - _FIXED - len(block)
    family = routes.prefixes[0].family
    if family == next_hop.family == FAMILY_IPV4:
        block = _with_next_hop(block, next_hop.raw)
        for nlri in _filled(routes.prefixes, coding.limit - _FIXED - len(block)):
            yield _message(block, nlri)
        return
    raw = next_hop.raw
    # RFC 4760 §3: the family, the next hop after its size, an octet that is reserved
    head = AFI_SAFI.pack(AFIS[family], UNICAST) + bytes((len(raw),)) + raw + b"\0"
    for nlri in _filled(routes.prefixes, room - _ATTRIBUTE - len(head)):
        yield _message(write_attribute(OPTIONAL, MP_REACH, head + nlri) + block)


def _with_next_hop(block: bytes, raw: bytes) -> bytes:
    """Put NEXT_HOP among the other attributes, which are in ascending order (RFC 4271 §5)."""
    at = 0
    while at < len(block) and block[at + 1] < NEXT_HOP:
        wide = block[at] & 0x10
        at += 4 + int.from_bytes(block[at + 2 : at + 4], "big") if wide else 3 + block[at + 2]
    return block[:at] + write_attribute(WELL_KNOWN, NEXT_HOP, raw) + block[at:]


def end_of_rib(family: int) -> bytes:
    """Return the message that ends the first table of a family (RFC 4724 §2)."""
    if family == FAMILY_IPV4:
        return _message()
    return _message(write_attribute(OPTIONAL, MP_UNREACH, AFI_SAFI.pack(AFIS[family], UNICAST)))


def _filled(prefixes: Sequence[Prefix], room: int) -> Iterator[bytes]:
    """Yield encoded prefixes, each time as many as there is room for."""
    parts: list[bytes] = []
    left = room
    for at in range(0, len(prefixes), _SLICE):
        for one in encode_prefixes(prefixes[at : at + _SLICE]):
            if len(one) > left:
                if not parts:
                    raise ValueError(f"no room for a prefix beside its attributes: {left} bytes")
                yield b"".join(parts)
                parts, left = [], room
            parts.append(one)
            left -= len(one)
    if parts:
        yield b"".join(parts)


def _message(block: bytes = b"", nlri: bytes = b"", withdrawn: bytes = b"") -> bytes:
    lengths = len(withdrawn).to_bytes(2, "big"), len(block).to_bytes(2, "big")
    return frame(MessageType.UPDATE, lengths[0] + withdrawn + lengths[1] + block + nlri)
