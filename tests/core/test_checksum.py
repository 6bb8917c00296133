"""The internet checksum and Fletcher's, against vectors and their definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.checksum import fletcher16, fletcher_ok, internet_checksum


def test_example_of_rfc_1071():
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0xFFFF),
        (bytes(8), 0xFFFF),
        (b"\xff\xff", 0),
        (b"\xff\xff\xff\xff", 0),
        (b"\x12", 0xEDFF),
    ],
)
def test_internet_checksum_at_its_edges(data, checksum):
    """Zeros have no sum, all ones are negative zero, an odd byte is padded on the right."""
    assert internet_checksum(data) == checksum


@given(st.binary(max_size=300))
def test_internet_checksum_is_the_folded_sum_of_words(data):
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    assert internet_checksum(data) == total ^ 0xFFFF


def sums(data):
    """RFC 905 annex B as written."""
    c0 = c1 = 0
    for byte in data:
        c0 = (c0 + byte) % 255
        c1 = (c1 + c0) % 255
    return c0, c1


@given(st.binary(max_size=600) | st.binary(min_size=3000, max_size=9000))
def test_fletcher_ok_means_both_sums_are_zero(data):
    assert fletcher_ok(data) == (sums(data) == (0, 0))


@given(st.binary(min_size=2, max_size=600), st.data())
def test_written_checksum_makes_the_sums_zero(data, draw):
    """Whatever stood in the field before; and no byte of it is zero, which means no checksum."""
    offset = draw.draw(st.integers(0, len(data) - 2))
    checksum = fletcher16(data, offset)
    filled = data[:offset] + checksum.to_bytes(2, "big") + data[offset + 2 :]
    assert sums(filled) == (0, 0)
    assert fletcher_ok(filled)
    assert 0 not in checksum.to_bytes(2, "big")
    assert fletcher16(filled, offset) == checksum


@given(st.binary(min_size=20, max_size=200), st.data())
def test_fletcher_notices_any_changed_byte(data, draw):
    """Except 0x00 against 0xff, which are the same number modulo 255."""
    filled = data[:14] + fletcher16(data, 14).to_bytes(2, "big") + data[16:]
    at = draw.draw(st.integers(0, len(filled) - 1))
    other = draw.draw(st.integers(0, 255).filter(lambda b: b % 255 != filled[at] % 255))
    assert not fletcher_ok(filled[:at] + bytes([other]) + filled[at + 1 :])


def test_sixty_kilobytes():
    data = bytes(range(256)) * 240
    checksum = fletcher16(data, 100)
    assert fletcher_ok(data[:100] + checksum.to_bytes(2, "big") + data[102:])


@pytest.mark.parametrize(("size", "offset"), [(0, 0), (1, 0), (10, 9), (10, 11), (10, -1)])
def test_no_room_for_the_checksum(size, offset):
    with pytest.raises(ValueError, match="no checksum field"):
        fletcher16(bytes(size), offset)
