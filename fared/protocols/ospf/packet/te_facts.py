"""The numbers of a TE LSA that routes need, read without decoding the other sub-TLVs.

A large fabric floods a TE LSA for each direction of each link, with a dozen sub-TLVs, of which
routes need eight numbers, and a delay where there is one. Most routers send the same sub-TLVs in
the same order. So an order is compiled once into a ``struct`` that reads these numbers, and used
while the type and length fields remain the same. ``decode_te`` decodes all other LSAs, and
malformed ones.

A fast path beside ``decode_te``: tests/ospf_packet/test_te_facts.py proves them equal; row
``numbers of a TE LSA``.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from fared.core.wire import DecodeError
from fared.paths.te.attributes import OSPF_TE, TeAttributes
from fared.paths.te.sub_tlvs import Layout
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.te import LINK_TLV, SIZES, LinkSubTlv, decode_te
from fared.protocols.ospf.packet.tlv import read_tlvs

_S = LinkSubTlv
_TLV = struct.Struct(">HH")
_HEAD: Final = 4
_ALIGN: Final = 4
_JUDGED: Final = (
    "max_bandwidth",
    "residual_bandwidth",
    "available_bandwidth",
    "delay",
    "min_max_delay",
)
_READ: Final[dict[int, str]] = {
    _S.LINK_TYPE: "B",
    _S.LINK_ID: "I",
    _S.LOCAL_ADDRESS: "I",
    _S.REMOTE_ADDRESS: "I",
    _S.LINK_IDENTIFIERS: "II",
    **{kind: OSPF_TE.rows[kind].format.item for kind in OSPF_TE.types(_JUDGED)},
}
"""The items of struct of each sub-TLV that is read, in the order of TeFacts."""
_VALUES: Final = tuple(OSPF_TE.rows[kind].format.read for kind in OSPF_TE.types(_JUDGED))
"""What converts what struct reads of each that is judged; None: it is the value."""
_Shape = tuple[tuple[int, int], ...]


class RareFacts(msgspec.Struct, frozen=True):
    """What few TE links have: all local addresses if there are several; delay, microseconds."""

    more: tuple[int, ...] = ()
    delay: int | None = None


_NOTHING_RARE: Final = RareFacts()


class TeFacts(NamedTuple):
    """The values of a TE link for the TED; ids and addresses that were not sent are 0.

    ``local`` and ``remote`` are the first addresses of their kind. Bandwidths are bytes/s, NaN if
    unknown.
    """

    link_type: int | None
    link_id: int
    local: int
    remote: int
    local_identifier: int
    remote_identifier: int
    capacity: float
    available: float
    rare: RareFacts = _NOTHING_RARE

    @property
    def delay(self) -> float:
        """Microseconds, NaN if unknown."""
        return math.nan if self.rare.delay is None else self.rare.delay

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields that identify the link: all but its bandwidths and delay."""
        return (*self[:6], self.rare.more)

    @property
    def locals(self) -> tuple[int, ...]:
        """All local addresses."""
        return self.rare.more or ((self.local,) if self.local else ())


def facts_of(link: TeLink) -> TeFacts:
    """The values of a decoded link."""
    local, remote = link.local_addresses, link.remote_addresses
    capacity, available = link.attributes.capacity, link.attributes.available
    return TeFacts(
        link.link_type,
        link.link_id or 0,
        local[0] if local else 0,
        remote[0] if remote else 0,
        link.local_identifier or 0,
        link.remote_identifier or 0,
        math.nan if capacity is None else capacity,
        math.nan if available is None else available,
        _rare(local if len(local) > 1 else (), link.attributes.one_way_delay),
    )


def _rare(more: tuple[int, ...], delay: int | None) -> RareFacts:
    """What few links have; the others share one object."""
    return RareFacts(more, delay) if more or delay is not None else _NOTHING_RARE


class _TeLinkLayout(Layout):
    """One order of sub-TLVs, compiled: it recognizes such LSAs and reads their numbers."""

    __slots__ = ("pick", "unpack")

    def __init__(self, shape: _Shape) -> None:
        parts = [(b"", LSA_HEADER_SIZE), (_TLV.pack(LINK_TLV, _padded(shape)), 0)]
        form = [f">{LSA_HEADER_SIZE + _HEAD}x"]
        places: dict[int, int] = {}
        count = 0
        for kind, length in shape:
            size = length + -length % _ALIGN
            parts.append((_TLV.pack(kind, length), size))
            items = _READ.get(kind)
            form.append(f"{_HEAD}x" + (f"{size}x" if items is None else f"{items}{size - length}x"))
            if items is not None:
                places[kind] = count
                count += 1 + (kind == _S.LINK_IDENTIFIERS)
        super().__init__(parts)
        self.unpack = struct.Struct("".join(form)).unpack
        # The value after the last one, None, stands for all fields that were not sent.
        ids = places.get(_S.LINK_IDENTIFIERS, count)
        order = [places.get(kind, count) for kind in _READ]
        at = list(_READ).index(_S.LINK_IDENTIFIERS)
        order.insert(at + 1, min(ids + 1, count))
        self.pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] = operator.itemgetter(*order)


def _padded(shape: _Shape) -> int:
    """The length of a link TLV with these sub-TLVs, all padded."""
    return sum(_HEAD + length + -length % _ALIGN for _, length in shape)


@functools.lru_cache(maxsize=64)
def _compile(shape: _Shape) -> _TeLinkLayout:
    return _TeLinkLayout(shape)


def _shape(raw: bytes) -> _Shape | None:
    """The sub-TLVs of an LSA with one link TLV of known sub-TLVs and lengths, else None."""
    try:
        tlvs = list(read_tlvs(raw, LSA_HEADER_SIZE, len(raw)))
        if len(tlvs) != 1 or tlvs[0][0] != LINK_TLV:
            return None
        _, start, end = tlvs[0]
        shape = tuple([(kind, last - first) for kind, first, last in read_tlvs(raw, start, end)])
    except DecodeError:
        return None
    usual = all(SIZES.get(kind) == size for kind, size in shape)
    alone = len(dict(shape)) == len(shape)
    whole = _padded(shape) == end - start == len(raw) - start
    return shape if usual and alone and whole else None


@functools.lru_cache(maxsize=4096)
def _judged(*words: Any) -> tuple[float, float, RareFacts]:  # noqa: ANN401 - as struct reads them
    """Capacity, available bandwidth and delay, cached, as most links of a fabric are alike."""
    fields: dict[str, Any] = {
        name: word if word is None or read is None else read(word)
        for name, word, read in zip(_JUDGED, words, _VALUES, strict=True)
    }
    attributes = TeAttributes(**fields)
    capacity, spare = attributes.capacity, attributes.available
    delayed = attributes.delay is not None or attributes.min_max_delay is not None
    return (
        math.nan if capacity is None else capacity,
        math.nan if spare is None else spare,
        _rare((), attributes.one_way_delay) if delayed else _NOTHING_RARE,
    )


class TeReader:
    """Reads TE LSAs one after the other, with the layout of the last one."""

    __slots__ = ("_layout",)

    def __init__(self) -> None:
        self._layout = _compile(())

    def read(self, raw: bytes) -> TeFacts | None:
        """Read an LSA with its header; None if it has no link TLV. Raises DecodeError ``tlv``."""
        layout = self._layout
        if not layout.fits(raw):
            shape = _shape(raw)
            if shape is None:
                body = decode_te(raw, LSA_HEADER_SIZE)
                return facts_of(body) if isinstance(body, TeLink) else None
            layout = self._layout = _compile(shape)
        link_type, link_id, local, remote, own, other, *judged = layout.pick(
            (*layout.unpack(raw), None)
        )
        return TeFacts(
            link_type,
            link_id or 0,
            local or 0,
            remote or 0,
            own or 0,
            other or 0,
            *_judged(*judged),
        )
