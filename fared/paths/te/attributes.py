"""TE link attributes as a router advertises them, independent of the protocol.

OSPF carries them in opaque LSAs (RFC 3630, RFC 7471), IS-IS in sub-TLVs (RFC 5305, RFC 8570).
All bandwidths are bytes/s as on the wire, delays microseconds, loss a percentage. A field is
None where the peer did not send it. Values are as received: read them through ``capacity`` and
``available``, which reject NaN, infinities and absurd numbers.

The fields of ``TeAttributes`` are the table of TE sub-TLVs: codecs of both protocols, JSON, and the
strategies of tests follow from it.
"""

# Annotations are evaluated here, not text: sub-TLVs are read from them at start.
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from fared.core.json_text import render_number
from fared.core.units import sane_capacity, sane_load
from fared.core.wire import F32, U32, Format
from fared.paths.te.sub_tlvs import EIGHT_FLOATS, LOSS, METRIC_24, MICROSECONDS, MIN_MAX, SubTlv


class TeAttributes(msgspec.Struct, frozen=True, gc=False):
    """Attributes of one direction of one link: numbers, which the collector skips.

    Types of sub-TLVs: RFC 3630 §2.5 and RFC 5305 §3, from ``delay`` on RFC 7471 §4 and RFC 8570 §4.
    """

    te_metric: Annotated[int | None, SubTlv(5, 18, U32, in_isis=METRIC_24)] = None
    max_bandwidth: Annotated[float | None, SubTlv(6, 9, F32)] = None
    max_reservable_bandwidth: Annotated[float | None, SubTlv(7, 10, F32)] = None
    unreserved_bandwidth: Annotated[tuple[float, ...] | None, SubTlv(8, 11, EIGHT_FLOATS)] = None
    admin_group: Annotated[int | None, SubTlv(9, 3, U32)] = None
    delay: Annotated[int | None, SubTlv(27, 33, MICROSECONDS, a_bit=True)] = None
    min_max_delay: Annotated[tuple[int, int] | None, SubTlv(28, 34, MIN_MAX, a_bit=True)] = None
    delay_variation: Annotated[int | None, SubTlv(29, 35, MICROSECONDS)] = None
    loss: Annotated[float | None, SubTlv(30, 36, LOSS, a_bit=True)] = None
    residual_bandwidth: Annotated[float | None, SubTlv(31, 37, F32)] = None
    available_bandwidth: Annotated[float | None, SubTlv(32, 38, F32)] = None
    utilized_bandwidth: Annotated[float | None, SubTlv(33, 39, F32)] = None

    @property
    def capacity(self) -> float | None:
        """Capacity of the link, bytes/s: its residual bandwidth (RFC 7471 §4.5).

        Without one, the lower of maximum and available: FRR derives a wrong maximum from the
        interface speed, but sends the available bandwidth that was configured.
        """
        residual = sane_capacity(self.residual_bandwidth)
        if residual is not None:
            return residual
        known = [
            v
            for v in (sane_capacity(self.max_bandwidth), sane_capacity(self.available_bandwidth))
            if v is not None
        ]
        return min(known) if known else None

    @property
    def share(self) -> float:
        """The part of its maximum that a derated link may carry (``te.far_ends``), 1 otherwise."""
        maximum, residual = map(sane_capacity, (self.max_bandwidth, self.residual_bandwidth))
        if maximum is None or residual is None:
            return 1.0
        return min(residual / maximum, 1.0)

    @property
    def available(self) -> float | None:
        """Capacity minus present load, bytes/s; it can be zero."""
        available = sane_load(self.available_bandwidth)
        capacity = self.capacity
        if available is None or capacity is None:
            return capacity
        return min(available, capacity)

    @property
    def one_way_delay(self) -> int | None:
        """Delay of this direction, microseconds: the average (RFC 7471 §4.1), else the minimum."""
        if self.delay is None and self.min_max_delay is not None:
            return self.min_max_delay[0]
        return self.delay

    def resized(self, bandwidth: float) -> "TeAttributes":
        """Return the attributes after a change of capacity under the same load."""
        available = self.available_bandwidth
        if available is not None:
            used = self.utilized_bandwidth
            spare = bandwidth - used if used is not None else min(available, bandwidth)
            available = max(0.0, spare)
        return replace(
            self,
            max_bandwidth=bandwidth,
            residual_bandwidth=bandwidth,
            available_bandwidth=available,
        )

    def sent(self) -> dict[str, Any]:
        """Return the attributes that were sent as JSON values."""
        document: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                many = isinstance(value, tuple)
                document[name] = list(map(render_number, value)) if many else render_number(value)
        return document


NO_ATTRIBUTES = TeAttributes()
"""Attributes of a link whose router advertises no TE."""
VOLATILE: Final = ("unreserved_bandwidth", "available_bandwidth", "utilized_bandwidth")
"""What changes with the load of a link."""
A_BIT: Final = 0x80


class SubTlvRow(msgspec.Struct, frozen=True):
    """An attribute as one protocol encodes it: the field, the type of the sub-TLV, the format."""

    field: str
    type: int
    format: Format
    a_bit: bool


class SubTlvTable:
    """The attributes as one protocol encodes them; ``rows`` by type, in the order of the fields."""

    __slots__ = ("_dumps", "_values", "a_bits", "rows")

    def __init__(self, rows: Iterable[SubTlvRow]) -> None:
        self.rows: Mapping[int, SubTlvRow] = {row.type: row for row in rows}
        self.a_bits = tuple([row.type for row in self.rows.values() if row.a_bit])
        by_type = sorted(self.rows.values(), key=attrgetter("type"))
        self._dumps = [(row.type, row.format.dump) for row in by_type]
        self._values = attrgetter(*(row.field for row in by_type))

    def types(self, fields: Iterable[str]) -> tuple[int, ...]:
        """Return the types of the sub-TLVs of these fields."""
        by_field = {row.field: row.type for row in self.rows.values()}
        return tuple([by_field[field] for field in fields])

    def encode(self, attributes: TeAttributes, anomalous: Iterable[int]) -> dict[int, bytes]:
        """Return the values of the attributes that are set by type, in the order of types.

        ``anomalous`` lists the types with the A bit.
        """
        found = {
            kind: dump(value)
            for (kind, dump), value in zip(self._dumps, self._values(attributes), strict=True)
            if value is not None
        }
        for kind in anomalous:
            if kind in found and kind in self.a_bits:
                found[kind] = bytes((found[kind][0] | A_BIT,)) + found[kind][1:]
        return found


_DECLARED: Final[dict[str, SubTlv]] = {
    field: hint.__metadata__[0] for field, hint in TeAttributes.__annotations__.items()
}
OSPF_TE: Final = SubTlvTable(SubTlvRow(f, s.ospf, s.format, s.a_bit) for f, s in _DECLARED.items())
ISIS_TE: Final = SubTlvTable(
    SubTlvRow(f, s.isis, s.in_isis or s.format, s.a_bit) for f, s in _DECLARED.items()
)
