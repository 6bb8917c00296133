"""The flooding parameters TLV (RFC 9681 §4): how fast a router can receive LSPs.

A sub-TLV of a wrong size, and the second of one type, is kept as bytes and ignored.
"""

# Annotations are evaluated here, not text: sub-TLVs are read from them at start.
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fared.core.json_text import unknown_document
from fared.core.wire import U16, U32, DecodeError, Format
from fared.protocols.isis.pdu.tlv import Json, Tlv
from fared.protocols.isis.pdu.triplet import DecodeOptions, read_triplets, write_triplet

_ORDERED: Final = 0x80
_MOST_FLAGS: Final = 8


class FloodingParameters(Tlv, frozen=True, gc=False):
    """TLV 21: each field with the type of its sub-TLV and its format; None where not sent.

    ``burst_size``: LSPs that may be received without a gap (§4.1). ``transmission_interval``:
    microseconds between LSPs after them (§4.2). ``lsps_per_psnp``: so many LSPs are acknowledged at
    once (§4.3), others within ``psnp_interval`` milliseconds (§4.5). ``receive_window``: most LSPs
    that may be unacknowledged (§4.6). ``flags`` as sent (§4.4), ``unknown`` other sub-TLVs.
    """

    code, label = 21, "flooding_parameters"
    burst_size: Annotated[int | None, 1, U32] = None
    transmission_interval: Annotated[int | None, 2, U32] = None
    lsps_per_psnp: Annotated[int | None, 3, U16] = None
    flags: Annotated[bytes | None, 4, None] = None
    psnp_interval: Annotated[int | None, 5, U16] = None
    receive_window: Annotated[int | None, 6, U16] = None
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
            if kind not in FLOODING_FIELDS:
                unknown.append((kind, value))
                continue
            name, shape = FLOODING_FIELDS[kind]
            size = last - first
            sound = 1 <= size <= _MOST_FLAGS if shape is None else size == shape.size
            if not sound and options.strict:
                raise DecodeError("tlv", first, f"flooding sub-TLV {kind} of {size} bytes")
            if not sound or name in found:
                unknown.append((kind, value))
            else:
                found[name] = value if shape is None else shape.load(data, first)
        return cls(**found, unknown=tuple(unknown))

    def encode(self, _: int | None, /) -> bytes:
        """Encode the sub-TLVs that are set. Raises ValueError if a field is too large."""
        out = b""
        for kind, (name, shape) in FLOODING_FIELDS.items():
            value = getattr(self, name)
            if value is not None:
                try:
                    out += write_triplet(kind, value if shape is None else shape.dump(value))
                except struct.error:
                    raise ValueError(f"{name.replace('_', ' ')} {value}") from None
        out += b"".join(write_triplet(kind, value) for kind, value in self.unknown)
        return write_triplet(self.code, out)

    def document(self) -> Json:
        """Return the parameters that were sent."""
        names = [name for name, _ in FLOODING_FIELDS.values()]
        sent: Json = {name: v for name in names if (v := getattr(self, name)) is not None}
        if self.flags is not None:
            sent |= {"flags": self.flags.hex(), "ordered": self.ordered}
        if self.unknown:
            sent["unknown"] = unknown_document(self.unknown)
        return {self.label: sent}


FLOODING_FIELDS: Final[Mapping[int, tuple[str, Format | None]]] = {
    hint.__metadata__[0]: (name, hint.__metadata__[1])
    for name, hint in FloodingParameters.__annotations__.items()
    if name != "unknown"
}
"""Field and format of each sub-TLV; None: up to eight bytes as they are."""
