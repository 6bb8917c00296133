"""Packets of in-network aggregation: a UDP payload of header, P-BM and values.

    0   1  version (4 bits), type       1   1  flags
    2   1  data type (4 bits), op       3   1  BitStringLength code (4 bits), 0
    4   4  job id                       8   2  tree id           10  2  epoch
    12  4  sequence in the tree         16  2  bytes of values
    18  1  set identifier               19  1  sub-domain
    20  2  exponent (signed)            22  2  receiver: a BFR-id of the job; 0: all workers
    24  8  control sum: the sum of all values, which adds up along the tree
    32  BitStringLength / 8: the P-BM, BFR-id 1 rightmost (RFC 8279 §3)

The header is big-endian, values are little-endian. draft-song-ina-00 leaves the format open.

The sum of a reduce goes to its receiver; the others get a result without values, which tells that
the sum is complete. Former versions ignore the receiver and send 0: then all get the sum.
"""

from __future__ import annotations

import enum
import struct
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fared.core.wire import DecodeError
from fared.extensions.ina.plan.model import BitString

VERSION = 1
DEFAULT_PORT = 54200
SEQUENCES = 1 << 32
NOT_FINITE = 0x7FFF
"""Exponent of a chunk with NaN or infinity."""
_HEADER = struct.Struct("!BBBBIHHIHBBhHq")
_USUAL = struct.Struct("!BBBBIHHIHBBhHqQ")
"""The header with a bit string of 64 bits, the least one."""
USUAL_SIZE = _USUAL.size
CHANGING = struct.Struct("!12sI4shHq8s")
"""The usual header as octets before the sequence, sequence, size and its neighbors, exponent,
receiver, control sum, bits. Sequence, exponent and control sum differ within a train, the others do
not."""
TYPES_AT = 2
"""Where the octet of type and op is."""
LENGTH_AT, USUAL_LENGTH = 3, 0x10
"""Where the octet of the BitStringLength is, and that of 64 bits, which is decoded faster."""
_ENDING = struct.Struct("!BBBBIHHIHBBhHq8s")
"""The same with the octets of the bit string."""
_LENGTHS = MappingProxyType({code: 32 << code for code in range(1, 8)})
"""Bits of the bit string by code (RFC 8296 §2.1.2)."""
_CODES = MappingProxyType({length: code for code, length in _LENGTHS.items()})
IP_UDP = 28
BIER = 12
_SIXTY_FOUR = 64

Buffer = bytes | bytearray | memoryview
Values = NDArray[np.int32] | NDArray[np.int16] | NDArray[np.int64] | NDArray[np.float32]


class PacketKind(enum.IntEnum):
    """What a packet is. ``SYNC`` finds the chunk from which a new epoch runs.

    The bits of ``LACKING`` are the workers for which a router waits, those of ``LOST`` the ones
    whose connection to their router broke. Both go to workers.
    """

    DATA = 1
    RESULT = 2
    NACK = 3
    SYNC = 4
    SYNC_RESULT = 5
    LACKING = 6
    LOST = 7


class Flag(enum.IntFlag):
    """``AGAIN``: this is a repetition; ``WANT``: the sender lacks the result.

    ``ASK``: and asks for whom the sum waits. ``SILENT``, of a LACKING: nothing at all comes from
    these workers, while others may only wait for them.
    """

    AGAIN = 1
    WANT = 2
    ASK = 4
    SILENT = 8


class DataType(enum.IntEnum):
    """Types of values. ``INT64`` is for ``SYNC``."""

    INT32 = 0
    FLOAT32 = 1
    INT16 = 2
    INT64 = 3

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type in NumPy, little-endian."""
        return _DTYPES[self]


class Op(enum.IntEnum):
    """How values are combined."""

    SUM = 0
    MAX = 1
    MIN = 2
    PRODUCT = 3


_DTYPES: MappingProxyType[DataType, np.dtype[np.generic]] = MappingProxyType(
    {
        DataType.INT32: np.dtype("<i4"),
        DataType.FLOAT32: np.dtype("<f4"),
        DataType.INT16: np.dtype("<i2"),
        DataType.INT64: np.dtype("<i8"),
    }
)


# An attribute of an enum takes ten times as long as a global name.
_SUM, _FLOAT32 = Op.SUM, DataType.FLOAT32
# The hash of a member is slow, too.
_DTYPE_AT = tuple(_DTYPES[data_type] for data_type in DataType)
_MASKS = tuple((1 << 8 * dtype.itemsize) - 1 for dtype in _DTYPE_AT)
"""Of the bits in which control sum and sum of values agree."""
# Every packet is decoded: a look-up by octet takes a tenth of the time that calling the enum takes.
_KIND_AT = tuple(
    {VERSION << 4 | kind: kind for kind in PacketKind}.get(octet) for octet in range(256)
)
_SHAPE_AT = tuple(
    {
        data_type << 4 | op: (data_type, op, _DTYPES[data_type].itemsize)
        for data_type in DataType
        for op in Op
    }.get(octet)
    for octet in range(256)
)


class Header(NamedTuple):
    """The header of a packet and its P-BM."""

    kind: PacketKind
    job: int
    tree: int
    epoch: int
    sequence: int
    bits: int
    size: int
    """Bytes of values."""
    data_type: DataType = DataType.INT32
    op: Op = Op.SUM
    flags: int = 0
    exponent: int = 0
    control: int = 0
    length: int = 64
    """Bits of the bit string."""
    set_id: int = 0
    sub_domain: int = 0
    receiver: int = 0
    """The BFR-id of the only worker that gets the sum; 0: all get it."""


def with_sum(receiver: int, bits: BitString) -> BitString:
    """Return which of some workers get the sum itself; others get a result without values."""
    return bits & 1 << receiver - 1 if receiver else bits


def header_size(length: int) -> int:
    """Return the bytes before the values, for a bit string of ``length`` bits."""
    return _HEADER.size + length // 8


def largest_payload(mtu: int, length: int) -> int:
    """Return the most bytes of values, a multiple of 64, for which up and down fit into the MTU.

    A result also has the header of BIER with the same bit string (RFC 8296).
    """
    room = mtu - IP_UDP - header_size(length) - BIER - length // 8
    return max(0, room // _SIXTY_FOUR * _SIXTY_FOUR)


class Headers:
    """Encodes headers that have all of ``like`` but the fields of ``encode``, and these bits."""

    def __init__(self, like: Header, kind: PacketKind, bits: int) -> None:
        self._first = VERSION << 4 | kind
        self._code = _CODES[like.length] << 4
        self._job, self._epoch = like.job, like.epoch
        self._set_id, self._sub_domain = like.set_id, like.sub_domain
        octets = bits.to_bytes(like.length // 8, "big")
        self._bits, self._more_bits = octets[:8], octets[8:]

    def encode(  # noqa: PLR0917 - once for each packet, where names take time
        self, tree: int, sequence: int, size: int, types: int, flags: int, exponent: int,
        control: int, receiver: int = 0,
    ) -> bytes:  # fmt: skip
        """Encode the header of ``size`` bytes of values; ``types``: type and op as in a packet."""
        usual = _ENDING.pack(
            self._first, flags, types, self._code, self._job, tree, self._epoch, sequence, size,
            self._set_id, self._sub_domain, exponent, receiver, control, self._bits,
        )  # fmt: skip
        return usual + self._more_bits if self._more_bits else usual


def encode_header(header: Header) -> bytes:
    """Encode a header. Raises struct.error or OverflowError if a field does not fit."""
    return Headers(header, header.kind, header.bits).encode(
        header.tree,
        header.sequence,
        header.size,
        types_of(header.data_type, header.op),
        header.flags,
        header.exponent,
        wrapped_control(header.control),
        header.receiver,
    )


def decode_header(data: bytes | bytearray | memoryview) -> Header:
    """Decode a header and check the length of the packet. Raises DecodeError only."""
    whole = len(data)
    if whole < _USUAL.size:
        raise DecodeError("truncated", whole, "aggregation header")
    (first, flags, types, code, job, tree, epoch, sequence, size, set_id, sub_domain, exponent,
     receiver, control, bits) = _USUAL.unpack_from(data)  # fmt: skip
    kind, shape = _KIND_AT[first], _SHAPE_AT[types]
    if code == USUAL_LENGTH:
        length, end = _SIXTY_FOUR, _USUAL.size
    else:
        length = _LENGTHS.get(code >> 4, 0)
        end = _HEADER.size + length // 8
        bits = int.from_bytes(data[_HEADER.size : end], "big")
    if kind is None or shape is None or not length or whole != end + size or size % shape[2]:
        raise _error(first, types, code, size, whole)
    data_type, op, _ = shape
    # Calling Header takes three times as long.
    return tuple.__new__(
        Header,
        (kind, job, tree, epoch, sequence, bits, size, data_type, op, flags, exponent, control,
         length, set_id, sub_domain, receiver),
    )  # fmt: skip


def _error(first: int, types: int, code: int, size: int, whole: int) -> DecodeError:
    """Return what is wrong with a packet of ``whole`` bytes."""
    if first >> 4 != VERSION:
        return DecodeError("version", 0, str(first >> 4))
    length = _LENGTHS.get(code >> 4)
    if length is None:
        return DecodeError("length", 3, str(code >> 4))
    end = _HEADER.size + length // 8
    if whole != end + size:
        return DecodeError("length", 16, f"{whole} bytes, {end + size} expected")
    if _KIND_AT[first] is None or _SHAPE_AT[types] is None:
        return DecodeError("tlv", 0, f"packet {first & 15} of {types:#x}")
    return DecodeError("length", 16, f"{size} bytes are no whole values")


def types_of(data_type: DataType, op: Op) -> int:
    """Return the octet of type and op in a header."""
    return data_type << 4 | op


def values_of(header: Header, data: bytes | bytearray | memoryview) -> Values:
    """Return the values of a packet, without copying them."""
    dtype = _DTYPE_AT[header.data_type]
    at = _HEADER.size + header.length // 8
    found: Values = np.frombuffer(data, dtype, header.size // dtype.itemsize, at)
    return found


def rows_of(packets: memoryview, step: int, like: Header) -> Values:
    """Return the values of packets of ``step`` bytes, a row for each, without copying them."""
    dtype = _DTYPE_AT[like.data_type]
    item = dtype.itemsize
    whole: Values = np.frombuffer(packets, dtype)
    return whole.reshape(-1, step // item)[:, (step - like.size) // item :]


def control_of(values: Values) -> int:
    """Return the control sum of a worker's values; 0 for floats, whose sum depends on the order.

    The sum in the type of the values wraps as they do, and is faster than one of 64 bits.
    """
    if values.dtype.kind == "f":
        return 0
    return int(np.add.reduce(values, 0, values.dtype))


def controls_of(rows: Values) -> list[int]:
    """Return the control sum of each row."""
    if rows.dtype.kind == "f":
        return [0] * len(rows)
    found: list[int] = np.add.reduce(rows, axis=1, dtype=rows.dtype).tolist()
    return found


def wrapped_control(control: int) -> int:
    """Return a control sum as 64 bits hold it."""
    return (control + (1 << 63)) % (1 << 64) - (1 << 63)


def agrees(header: Header, values: Values) -> bool:
    """Whether the control sum is that of the values, up to what wrapped in a value.

    Only sums have one: the control sum of a maximum is not the maximum of control sums.
    """
    if header.op is not _SUM or header.data_type is _FLOAT32:
        return True
    found = int(np.add.reduce(values, 0, values.dtype))
    return (found - header.control) & _MASKS[header.data_type] == 0


def agreeing(like: Header, rows: Values, controls: list[int]) -> list[bool]:
    """Whether each control sum is that of its row, as ``agrees`` finds it."""
    if like.op is not _SUM or like.data_type is _FLOAT32:
        return [True] * len(controls)
    mask = _MASKS[like.data_type]
    return [
        (found - control) & mask == 0
        for found, control in zip(controls_of(rows), controls, strict=True)
    ]


def newer(first: int, second: int, bits: int) -> bool:
    """Whether a serial number of ``bits`` bits comes after another (RFC 1982)."""
    ahead = (first - second) % (1 << bits)
    return 0 < ahead < 1 << (bits - 1)
