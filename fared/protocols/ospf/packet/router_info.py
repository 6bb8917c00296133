"""Router information LSA (RFC 7770 §2): hostname (RFC 5642), dynamic flooding (RFC 9667)."""

# Annotations are evaluated here, not text: TLVs are read from them when a body is decoded.
from typing import Annotated, Final

import msgspec
from msgspec.structs import asdict

from fared.core.text import printable
from fared.core.wire import U32, DecodeError
from fared.protocols.ospf.packet.tlv import TlvBody, TlvField

_MAX_HOSTNAME: Final = 255
_AREA_LEADER_SIZE: Final = 4


class AreaLeader(msgspec.Struct, frozen=True):
    """Eligibility as area leader, and the flooding algorithm it would demand (RFC 9667 §5.2.1)."""

    priority: int
    algorithm: int


def _capabilities(value: bytes, offset: int) -> int:
    """Only the first 32 bits are kept, as no others are assigned."""
    if not value or len(value) % 4:
        raise DecodeError("tlv", offset, f"capabilities of {len(value)} bytes, not a multiple of 4")
    return int.from_bytes(value[:4], "big")


def _hostname(value: bytes, offset: int) -> str:
    if not 0 < len(value) <= _MAX_HOSTNAME:
        raise DecodeError("tlv", offset, f"hostname of {len(value)} bytes, expected 1 to 255")
    return printable(value.decode("utf-8", "backslashreplace"))


def _encode_hostname(name: str) -> bytes | None:
    """RFC 5642 §3: a name beyond 255 bytes is cut, an empty one left out."""
    return name.encode()[:_MAX_HOSTNAME] if name else None


def _area_leader(value: bytes, _: int) -> AreaLeader | None:
    # RFC 9667 §5.2.1: priority, algorithm, two reserved bytes; of another size it is kept
    return AreaLeader(value[0], value[1]) if len(value) == _AREA_LEADER_SIZE else None


def _encode_leader(leader: AreaLeader) -> bytes:
    return bytes((leader.priority, leader.algorithm, 0, 0))


def _algorithms(value: bytes, _: int) -> tuple[int, ...]:
    # RFC 9667 §5.2.2: one byte for each algorithm
    return tuple(value)


class RouterInformation(TlvBody, frozen=True):
    """Router information LSA (RFC 7770): capabilities and the dynamic hostname (RFC 5642).

    ``dynamic_flooding`` lists the flooding algorithms that are supported (RFC 9667 §5.2.2).
    """

    capabilities: Annotated[int | None, TlvField(1, _capabilities, U32.dump)] = None
    hostname: Annotated[str | None, TlvField(7, _hostname, _encode_hostname)] = None
    area_leader: Annotated[
        AreaLeader | None, TlvField(17, _area_leader, _encode_leader, asdict, keep=True)
    ] = None
    dynamic_flooding: Annotated[
        tuple[int, ...] | None, TlvField(18, _algorithms, bytes, list, keep=True)
    ] = None
