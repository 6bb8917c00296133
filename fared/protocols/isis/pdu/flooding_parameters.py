"""The flooding parameters TLV (RFC 9681 §4): how fast a router can receive LSPs.

A sub-TLV of a wrong size, and the second of one type, is kept as bytes and ignored.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.tlv import Json, Tlv, unknown_document
from fared.protocols.isis.pdu.triplet import DecodeOptions, read_triplets, write_triplet

_ORDERED: Final = 0x80
_MOST_FLAGS: Final = 8


class FloodingSubTlv(enum.IntEnum):
    """Sub-TLVs of TLV 21 (RFC 9681 §4.1 to §4.6)."""

    BURST_SIZE = 1
    TRANSMISSION_INTERVAL = 2
    LSPS_PER_PSNP = 3
    FLAGS = 4
    PSNP_INTERVAL = 5
    RECEIVE_WINDOW = 6


_S = FloodingSubTlv
_SIZES: Final[dict[int, int]] = {
    _S.BURST_SIZE: 4,
    _S.TRANSMISSION_INTERVAL: 4,
    _S.LSPS_PER_PSNP: 2,
    _S.PSNP_INTERVAL: 2,
    _S.RECEIVE_WINDOW: 2,
}
_FIELDS: Final[dict[int, str]] = {kind: kind.name.lower() for kind in _S}


class FloodingParameters(Tlv, frozen=True, gc=False):
    """TLV 21; None where not sent.

    ``burst_size``: LSPs that may be received without a gap (§4.1). ``transmission_interval``:
    microseconds between LSPs after them (§4.2). ``lsps_per_psnp``: so many LSPs are acknowledged at
    once (§4.3), others within ``psnp_interval`` milliseconds (§4.5). ``receive_window``: most LSPs
    that may be unacknowledged (§4.6). ``flags`` as sent (§4.4), ``unknown`` other sub-TLVs.
    """

    code, label = 21, "flooding_parameters"
    burst_size: int | None = None
    transmission_interval: int | None = None
    lsps_per_psnp: int | None = None
    flags: bytes | None = None
    psnp_interval: int | None = None
    receive_window: int | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()

    @property
    def ordered(self) -> bool:
        """Whether LSPs are acknowledged in the order of arrival (§4.4, O-flag)."""
        return bool(self.flags and self.flags[0] & _ORDERED)

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, options: DecodeOptions, /) -> Tlv:
        """Decode the sub-TLVs."""
        found: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        for kind, first, last in read_triplets(data, start, end):
            value = data[first:last]
            name = _FIELDS.get(kind)
            size = _SIZES.get(kind, len(value))
            sound = len(value) == size and (kind != _S.FLAGS or 1 <= size <= _MOST_FLAGS)
            if name is not None and not sound and options.strict:
                raise DecodeError("tlv", first, f"flooding sub-TLV {kind} of {len(value)} bytes")
            if name is None or not sound or name in found:
                unknown.append((kind, value))
            else:
                found[name] = value if kind == _S.FLAGS else int.from_bytes(value, "big")
        return cls(**found, unknown=tuple(unknown))

    def encode(self, _: int | None, /) -> bytes:
        """Encode the sub-TLVs that are set. Raises ValueError if a field is too large."""
        out = b""
        for kind, name in _FIELDS.items():
            value = getattr(self, name)
            if isinstance(value, bytes):
                out += write_triplet(kind, value)
            elif value is not None:
                try:
                    out += write_triplet(kind, value.to_bytes(_SIZES[kind], "big"))
                except OverflowError:
                    raise ValueError(f"{name.replace('_', ' ')} {value}") from None
        out += b"".join(write_triplet(kind, value) for kind, value in self.unknown)
        return write_triplet(self.code, out)

    def document(self) -> Json:
        """Return the parameters that were sent."""
        sent: Json = {
            name: v for name in _FIELDS.values() if (v := getattr(self, name)) is not None
        }
        if self.flags is not None:
            sent |= {"flags": self.flags.hex(), "ordered": self.ordered}
        if self.unknown:
            sent["unknown"] = unknown_document(self.unknown)
        return {self.label: sent}
