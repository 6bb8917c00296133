"""Readers never read outside of their slice."""

import pytest

from fared.core.wire import DecodeError, Reader


def test_the_error_says_where_and_what():
    reader = Reader(bytes(10), 4, 7)
    reader.take(2)
    with pytest.raises(DecodeError, match=r"metric: need 4 bytes, 1 left \(at byte 6\)") as caught:
        reader.u32("metric")
    assert (caught.value.code, caught.value.offset) == ("truncated", 6)


def test_a_slice_ends_before_the_data():
    """A length field from a peer opens a slice; what follows it is out of reach."""
    reader = Reader(b"abcdef")
    inner = reader.sub(3)
    assert inner.take(3) == b"abc"
    with pytest.raises(DecodeError):
        inner.take(1)
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
