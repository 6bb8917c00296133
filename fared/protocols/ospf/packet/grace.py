"""Grace LSA (RFC 3623 appendix A): a link-local opaque LSA that announces a graceful restart."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

_PERIOD: Final = 1
_REASON: Final = 2
_ADDRESS: Final = 3
_SIZES: Final = ((_PERIOD, 4), (_REASON, 1), (_ADDRESS, 4))


class RestartReason(enum.IntEnum):
    """Why a router restarts (RFC 3623 appendix A)."""

    UNKNOWN = 0
    SOFTWARE_RESTART = 1
    SOFTWARE_UPGRADE = 2
    SWITCH_TO_REDUNDANT = 3

    @property
    def planned(self) -> bool:
        """Whether the router sent its grace LSA before the restart."""
        return self in (RestartReason.SOFTWARE_RESTART, RestartReason.SOFTWARE_UPGRADE)


def restart_reason(value: int) -> str:
    """``software-restart``, or ``type-42`` for a reason without a name here."""
    known = {int(reason): reason.name.lower().replace("_", "-") for reason in RestartReason}
    return known.get(value, f"type-{value}")


class GraceLsa(msgspec.Struct, frozen=True):
    """The body: ``period`` in seconds from the origination, ``reason`` as received.

    ``address`` is that of the restarting router's interface, on broadcast networks.
    """

    period: int
    reason: int = RestartReason.UNKNOWN
    address: int | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()


def decode_grace(data: bytes, start: int) -> GraceLsa:
    """Decode the TLVs from ``start`` to the end of ``data``; of several of one type the first.

    Raises DecodeError ``tlv``, also without a grace period.
    """
    sizes = dict(_SIZES)
    found: dict[int, int] = {}
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_tlvs(data, start, len(data)):
        if kind not in sizes:
            unknown.append((kind, data[first:last]))
            continue
        if last - first != sizes[kind]:
            raise DecodeError("tlv", first, f"TLV {kind} of {last - first} bytes, not as specified")
        found.setdefault(kind, int.from_bytes(data[first:last], "big"))
    if _PERIOD not in found:
        raise DecodeError("tlv", start, "grace LSA without a grace period")
    reason = found.get(_REASON, int(RestartReason.UNKNOWN))
    return GraceLsa(found[_PERIOD], reason, found.get(_ADDRESS), tuple(unknown))


def encode_grace(body: GraceLsa) -> bytes:
    """Encode the body."""
    values = {_PERIOD: body.period, _REASON: body.reason, _ADDRESS: body.address}
    parts = [
        write_tlv(kind, value.to_bytes(size, "big"))
        for kind, size in _SIZES
        if (value := values[kind]) is not None
    ]
    parts += (write_tlv(kind, value) for kind, value in body.unknown)
    return b"".join(parts)
