"""Router information LSA (RFC 7770 §2): hostname (RFC 5642), dynamic flooding (RFC 9667)."""

from __future__ import annotations

from typing import Final

from fared.core.text import printable
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.opaque import AreaLeader, RouterInformation
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

_CAPABILITIES: Final = 1
_HOSTNAME: Final = 7
_AREA_LEADER: Final = 17
_DYNAMIC_FLOODING: Final = 18
_AREA_LEADER_SIZE: Final = 4
_MAX_HOSTNAME: Final = 255


def decode_router_information(data: bytes, start: int) -> RouterInformation:
    """Decode the TLVs from ``start`` to the end of ``data``.

    Only the first 32 capability bits are kept, as no others are assigned. Of several TLVs of one
    type the first counts. Raises DecodeError ``tlv``.
    """
    capabilities: int | None = None
    hostname: str | None = None
    leader: AreaLeader | None = None
    algorithms: tuple[int, ...] | None = None
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_tlvs(data, start, len(data)):
        value = data[first:last]
        if kind == _CAPABILITIES:
            if not value or len(value) % 4:
                raise DecodeError(
                    "tlv", first, f"capabilities of {len(value)} bytes, not a multiple of 4"
                )
            if capabilities is None:
                capabilities = int.from_bytes(value[:4], "big")
        elif kind == _HOSTNAME:
            if not 0 < len(value) <= _MAX_HOSTNAME:
                raise DecodeError(
                    "tlv", first, f"hostname of {len(value)} bytes, expected 1 to 255"
                )
            hostname = hostname or printable(value.decode("utf-8", "backslashreplace"))
        # RFC 9667 §5.2.1: priority, algorithm, two reserved bytes; of another size it is kept
        elif kind == _AREA_LEADER and len(value) == _AREA_LEADER_SIZE and leader is None:
            leader = AreaLeader(value[0], value[1])
        # RFC 9667 §5.2.2: one byte for each algorithm
        elif kind == _DYNAMIC_FLOODING and algorithms is None:
            algorithms = tuple(value)
        else:
            unknown.append((kind, value))
    return RouterInformation(capabilities, hostname, leader, algorithms, tuple(unknown))


def encode_router_information(body: RouterInformation) -> bytes:
    """Encode the body. A hostname beyond 255 bytes is cut, an empty one left out (RFC 5642 §3)."""
    parts = []
    if body.capabilities is not None:
        parts.append(write_tlv(_CAPABILITIES, body.capabilities.to_bytes(4, "big")))
    if body.hostname:
        parts.append(write_tlv(_HOSTNAME, body.hostname.encode()[:_MAX_HOSTNAME]))
    if body.area_leader is not None:
        leader = body.area_leader
        parts.append(write_tlv(_AREA_LEADER, bytes((leader.priority, leader.algorithm, 0, 0))))
    if body.dynamic_flooding is not None:
        parts.append(write_tlv(_DYNAMIC_FLOODING, bytes(body.dynamic_flooding)))
    parts += (write_tlv(kind, value) for kind, value in body.unknown)
    return b"".join(parts)
