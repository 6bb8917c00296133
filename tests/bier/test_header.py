"""The BIER header of RFC 8296, and the places of BFR-ids in bit strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.bier import LENGTHS, bift_id
from fared.core.wire import DecodeError
from fared.paths.bier.bit_string import as_ranges, bfr_ids, bit_strings, place
from fared.paths.bier.header import BierHeader, decode_header, encode_header

lengths = st.sampled_from(LENGTHS)
headers = lengths.flatmap(
    lambda length: st.builds(
        BierHeader,
        bift_id=st.integers(0, (1 << 20) - 1),
        bit_string=st.integers(0, (1 << length) - 1),
        length=st.just(length),
        bfir_id=st.integers(0, 0xFFFF),
        proto=st.integers(0, 63),
        entropy=st.integers(0, (1 << 20) - 1),
        ttl=st.integers(0, 255),
        traffic_class=st.integers(0, 7),
        bottom=st.booleans(),
        nibble=st.integers(0, 15),
        oam=st.integers(0, 3),
        reserved=st.integers(0, 3),
        dscp=st.integers(0, 63),
    )
)


@pytest.mark.rfc("RFC 8296 §2.1.2")
def test_a_header_has_the_bytes_of_rfc_8296_e12():
    header = BierHeader(
        bift_id(64, 1, 0), 0b0111, 64, bfir_id=201, entropy=0xABCDE, ttl=7, dscp=0x2E
    )
    assert encode_header(header).hex(" ", 4) == "10100107 001abcde 0b8400c9 00000000 00000007"


def test_a_bift_id_is_bsl_code_sub_domain_and_set():
    assert bift_id(64, 1, 0) == 0x10100
    assert bift_id(4096, 255, 7) == 0x7FF07


@pytest.mark.rfc("RFC 8279 §3")
def test_bfr_id_1_is_the_lowest_bit_and_those_above_the_length_are_in_further_sets():
    assert [place(i, 64) for i in (1, 64, 65, 130)] == [(0, 1), (0, 1 << 63), (1, 1), (2, 2)]
    assert bit_strings([1, 3, 66], 64) == {0: 0b101, 1: 0b10}


@given(st.sets(st.integers(1, 65535), max_size=40), lengths)
def test_bit_strings_have_the_bfr_ids_they_were_made_of(ids, length):
    made = bit_strings(ids, length)
    assert {i for s, string in made.items() for i in bfr_ids(string, length, s)} == ids


@given(headers, st.binary(max_size=8))
def test_headers_round_trip(header, payload):
    encoded = encode_header(header)
    assert len(encoded) == header.size
    assert decode_header(encoded + payload) == header


@given(st.binary(max_size=80))
def test_any_bytes_are_a_header_or_a_decode_error(data):
    try:
        header = decode_header(data)
    except DecodeError:
        return
    assert encode_header(header) == data[: header.size]


@pytest.mark.rfc("RFC 8296 §2.1.2")
@pytest.mark.parametrize(
    ("at", "byte", "code"),
    [(4, 0x01, "version"), (5, 0x00, "length"), (5, 0x80, "length"), (5, 0x20, "truncated")],
)
def test_a_header_with_an_unknown_version_or_length_is_refused(at, byte, code):
    data = bytearray(encode_header(BierHeader(1, 1, 64)))
    data[at] = byte
    with pytest.raises(DecodeError) as refused:
        decode_header(bytes(data))
    assert refused.value.code == code


def test_numbers_are_printed_as_ranges():
    assert as_ranges([1, 2, 3, 5, 8, 9]) == "1-3,5,8-9"
    assert as_ranges([]) == ""
