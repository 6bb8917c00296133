"""The extended prefix LSA (RFC 7684) with the path capacity, byte by byte as the docs say."""

import struct

import pytest

from fared.core.ids import ipv4_prefix
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.extended_prefix import (
    PATH_CAPACITY,
    ExtendedPrefixLsa,
    PrefixFacts,
    RouteType,
    capacity_sub_tlv,
    decode_extended_prefix,
    encode_extended_prefix,
)
from fared.protocols.ospf.packet.lsa import encode_lsa
from fared.protocols.ospf.packet.render import render_lsa

PREFIX = ipv4_prefix(0x0A000300, 24)
BYTES = bytes.fromhex("00010010 03180000 0a000300 80000004 503a43b7")


def facts(*sub_tlvs: tuple[int, bytes], prefix=PREFIX) -> ExtendedPrefixLsa:
    return ExtendedPrefixLsa((PrefixFacts(RouteType.INTER_AREA, prefix, 0, sub_tlvs),))


def test_the_example_of_the_documentation():
    body = facts(capacity_sub_tlv(12.5e9, PATH_CAPACITY))
    assert encode_extended_prefix(body) == BYTES
    assert decode_extended_prefix(BYTES, 0) == body
    assert body.prefixes[0].capacity(PATH_CAPACITY) == pytest.approx(12.5e9, rel=1e-6)


def test_another_code_point_is_another_thing():
    assert facts(capacity_sub_tlv(1e9, 32769)).prefixes[0].capacity(PATH_CAPACITY) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_what_is_no_capacity_counts_as_not_said(value):
    sub_tlv = PATH_CAPACITY, struct.pack(">f", value)
    assert facts(sub_tlv).prefixes[0].capacity(PATH_CAPACITY) is None


def test_the_default_route_has_no_address():
    body = facts(prefix=ipv4_prefix(0, 0))
    assert encode_extended_prefix(body).hex() == "0001000403000000"
    assert decode_extended_prefix(encode_extended_prefix(body), 0) == body


def test_another_address_family_is_kept_as_it_came():
    other = bytes.fromhex("00010008 03180100 0a000300")
    found = decode_extended_prefix(other, 0)
    assert found.prefixes == ()
    assert encode_extended_prefix(found) == other


@pytest.mark.parametrize(
    "hex_", ["00010002 0318", "00010008 03210000 0a000300", "00010004 03180000"]
)
def test_what_does_not_fit_is_refused(hex_):
    with pytest.raises(DecodeError):
        decode_extended_prefix(bytes.fromhex(hex_), 0)


def test_decode_shows_the_capacity():
    lsa = encode_lsa(
        ls_age=0,
        options=2,
        ls_type=10,
        link_state_id=7 << 24 | 1,
        advertising_router=0x0AFF0001,
        ls_sequence_number=-0x7FFFFFFF,
        body=BYTES,
    )
    (shown,) = render_lsa(lsa)["body"]["prefixes"]
    assert shown["prefix"] == "10.0.3.0/24"
    assert shown["route_type_name"] == "inter-area"
    assert shown["path_capacity"] == pytest.approx(12.5e9, rel=1e-6)


def test_the_example_of_a_redistributed_prefix():
    """As the documentation says: the same with route type 5, in an LSA of AS scope."""
    body = ExtendedPrefixLsa(
        (PrefixFacts(RouteType.AS_EXTERNAL, PREFIX, 0, (capacity_sub_tlv(12.5e9, PATH_CAPACITY),)),)
    )
    wire = bytes.fromhex("00010010 05180000 0a000300 80000004 503a43b7")
    assert encode_extended_prefix(body) == wire
    assert decode_extended_prefix(wire, 0) == body
