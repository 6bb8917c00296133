"""Readers never read outside of their slice; writers and readers agree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.wire import DecodeError, Reader, Writer


def test_reading_in_order():
    reader = Reader(bytes.fromhex("01 0203 040506 0708090a 0b0c0d0e0f101112 3f800000 aabb"))
    assert reader.u8() == 0x01
    assert reader.u16() == 0x0203
    assert reader.u24() == 0x040506
    assert reader.u32() == 0x0708090A
    assert reader.u64() == 0x0B0C0D0E0F101112
    assert reader.f32() == 1.0
    assert reader.rest() == b"\xaa\xbb"
    assert reader.remaining == 0


def test_the_error_says_where_and_what():
    reader = Reader(bytes(10), 4, 7)
    reader.u16()
    with pytest.raises(DecodeError, match=r"metric: need 4 bytes, 1 left \(at byte 6\)") as caught:
        reader.u32("metric")
    assert (caught.value.code, caught.value.offset) == ("truncated", 6)


def test_a_slice_ends_before_the_data():
    """A length field from a peer opens a slice; what follows it is out of reach."""
    reader = Reader(b"abcdef")
    inner = reader.sub(3)
    assert inner.take(3) == b"abc"
    with pytest.raises(DecodeError):
        inner.u8()
    assert reader.rest() == b"def"


@pytest.mark.parametrize("size", [-1, 7, 1 << 40])
def test_impossible_sizes(size):
    with pytest.raises(DecodeError):
        Reader(bytes(6)).take(size)
    with pytest.raises(DecodeError):
        Reader(bytes(6)).sub(size)


def test_a_slice_beyond_the_data_is_refused_at_once():
    with pytest.raises(DecodeError, match="need 2 more bytes"):
        Reader(bytes(6), 0, 8)


numbers = st.tuples(*(st.integers(0, (1 << 8 * size) - 1) for size in (1, 2, 3, 4, 8)))


@given(numbers, st.floats(width=32), st.binary(max_size=9))
def test_what_is_written_is_read(integers, number, tail):
    one, two, three, four, eight = integers
    writer = Writer()
    writer.u8(one)
    writer.u16(0)
    writer.u24(three)
    writer.u32(four)
    writer.u64(eight)
    writer.f32(number)
    writer.put(tail)
    writer.patch_u16(1, two)
    assert len(writer) == 22 + len(tail)
    reader = Reader(writer.finish())
    assert (reader.u8(), reader.u16(), reader.u24()) == (one, two, three)
    assert (reader.u32(), reader.u64()) == (four, eight)
    again = reader.f32()
    assert again == number or (math.isnan(again) and math.isnan(number))
    assert reader.rest() == tail
