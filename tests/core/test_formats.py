"""Formats of fields, from which decoders, encoders and JSON follow."""

import struct

import pytest

from fared.core.wire import F32, U8, U16, U24, U32, Format, integer


@pytest.mark.parametrize(
    ("shape", "value", "encoded"),
    [
        (U8, 1, "01"),
        (U16, 1, "0001"),
        (U24, 0x010203, "010203"),
        (U32, 1, "00000001"),
        (F32, 1.0, "3f800000"),
        (integer(6), 0x010255000001, "010255000001"),
    ],
)
def test_a_value_is_decoded_and_encoded(shape, value, encoded):
    data = bytes.fromhex(encoded)
    assert shape.size == len(data)
    assert shape.dump(value) == data
    assert shape.load(b"\xff" + data, 1) == value
    assert shape.load_all(data * 3) == (value,) * 3


def test_a_format_converts_what_struct_reads():
    halves = Format("B", lambda byte: byte / 2, lambda value: int(value * 2), "{:.1f} s".format)
    assert halves.load(b"\x03", 0) == 1.5
    assert halves.dump(1.5) == b"\x03"
    assert halves.text(1.5) == "1.5 s"
    assert halves.shown(str).text(1.5) == "1.5"


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(struct.error):
        U16.dump(1 << 16)
    with pytest.raises(OverflowError):
        U24.dump(1 << 24)
