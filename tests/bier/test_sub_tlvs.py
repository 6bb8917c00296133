"""BIER sub-TLVs of both protocols: bytes, any bytes, and what Wireshark makes of them."""

from __future__ import annotations

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.bier import BierEncapsulation, BierInfo, BierSettings
from fared.core.ids import ipv4_prefix
from fared.core.wire import DecodeError
from fared.protocols.isis.ids import lsp_id
from fared.protocols.isis.pdu import bier as isis
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlv_lists import render_tlvs
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability
from fared.protocols.ospf.packet import bier as ospf
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    capacity_sub_tlv,
    decode_extended_prefix,
    encode_extended_prefix,
)
from fared.protocols.ospf.packet.lsa import encode_lsa
from fared.protocols.ospf.packet.packets import LsUpdate
from fared.protocols.ospf.packet.render import render_lsa
from tests.packets.wireshark import ETHERNET, NEEDED, RAW_IP, assert_sound, dissect

INFO = BierInfo(1, 5, encapsulations=(BierEncapsulation(0, 0x10100, 1),))
PREFIX = ipv4_prefix(0x0A000502, 32)
EXTENDED = "00010020 01200040 0a000502 00090014 01000005 00000000 000a0008 00010100 10000000"
"""RFC 8444 in an extended prefix TLV, E12."""
SUB_TLV = "20 0b 0000 01 0005 01 04 00 110100"
"""RFC 8401, E12."""

encapsulations = st.builds(
    BierEncapsulation, st.integers(0, 255), st.integers(0, 0xFFFFF), st.integers(0, 15)
)


def infos(*, mt: bool):
    return st.builds(
        BierInfo,
        sub_domain=st.integers(0, 255),
        bfr_id=st.integers(0, 65535),
        mt_id=st.integers(0, 255) if mt else st.just(0),
        bar=st.integers(0, 255),
        ipa=st.integers(0, 255),
        encapsulations=st.lists(encapsulations, max_size=3).map(tuple),
        unknown=st.lists(st.tuples(st.integers(20, 200), st.binary(max_size=9)), max_size=2).map(
            tuple
        ),
    )


def extended(*sub_tlvs, route_type=1) -> ExtendedPrefixLsa:
    return ExtendedPrefixLsa((PrefixFacts(route_type, PREFIX, 0x40, sub_tlvs),))


@pytest.mark.rfc("RFC 8444 §2.1")
def test_ospf_has_the_bytes_of_rfc_8444_e12():
    body = extended((ospf.BIER, ospf.encode_bier(INFO)))
    assert encode_extended_prefix(body) == bytes.fromhex(EXTENDED)
    found = decode_extended_prefix(bytes.fromhex(EXTENDED), 0)
    assert [*ospf.read_bier(found.prefixes[0].sub_tlvs)] == [INFO]


@pytest.mark.rfc("RFC 8401 §6.1")
def test_isis_has_the_bytes_of_rfc_8401_e12():
    value = isis.encode_bier(INFO)
    assert bytes((isis.BIER, len(value))) + value == bytes.fromhex(SUB_TLV)
    assert isis.decode_bier(value) == INFO


def test_the_sub_tlv_that_freertr_sends_is_understood_e12():
    value = bytes.fromhex("00000005 00000000 000a0008 01018f70 10000000")
    assert ospf.decode_bier(value) == BierInfo(
        0, 5, encapsulations=(BierEncapsulation(1, 0x18F70, 1),)
    )


def test_a_bfr_offers_a_label_for_each_set_of_its_bit_string_length():
    (offered,) = BierSettings(1, 0, 256).info(7).encapsulations
    assert offered == BierEncapsulation(255, 0x30100, 3)
    assert BierSettings(1, 0, 4096).info(7).encapsulations[0].max_set == 15


@given(infos(mt=True), infos(mt=False))
def test_sub_tlvs_round_trip(of_ospf, of_isis):
    assert ospf.decode_bier(ospf.encode_bier(of_ospf)) == of_ospf
    assert isis.decode_bier(isis.encode_bier(of_isis)) == of_isis


@given(st.binary(max_size=60), st.sampled_from([ospf.decode_bier, isis.decode_bier]))
def test_any_bytes_are_a_sub_tlv_or_a_decode_error(data, decode):
    try:
        found = decode(data)
    except DecodeError:
        return
    assert isinstance(found, BierInfo)


def test_a_malformed_sub_tlv_does_not_hide_the_next_one():
    good = isis.encode_bier(INFO)
    assert [*isis.read_bier([(32, b"\0\0"), (1, b""), (32, good)])] == [INFO]
    good = ospf.encode_bier(INFO)
    assert [*ospf.read_bier([(9, b"\0\0"), (1, b""), (9, good)])] == [INFO]


def test_decoded_packets_show_it():
    rendered = render_lsa(_lsa())["body"]["prefixes"][0]["bier"]
    reach = IpReach(PREFIX, 0, unknown=((isis.BIER, isis.encode_bier(INFO)),))
    listed = render_tlvs((IpReachability(4, (reach,)),))["ext_ip_reach"][0]["bier"]
    for (shown,) in (rendered, listed):
        assert (shown["sub_domain"], shown["bfr_id"]) == (1, 5)
        assert shown["encapsulations"] == [{"max_set": 0, "label": 0x10100, "length_code": 1}]


def _lsa():
    body = extended((ospf.BIER, ospf.encode_bier(INFO)), capacity_sub_tlv(12.5e9, 32768))
    return encode_lsa(
        ls_age=1,
        options=0x42,
        ls_type=10,
        link_state_id=7 << 24,
        advertising_router=0x0AFF0001,
        ls_sequence_number=-0x7FFFFFFF,
        body=encode_extended_prefix(body),
    )


@NEEDED
def test_wireshark_decodes_all_fields_of_isis(tmp_path):
    reach = IpReach(PREFIX, 0, unknown=((isis.BIER, isis.encode_bier(INFO)),))
    lsp = Lsp(2, lsp_id(0x010255000001), 1, 1200, tlvs=(IpReachability(4, (reach,)),))
    pdu = encode_pdu(lsp)
    head = bytes.fromhex("0180c2000015 020000000001") + (len(pdu) + 3).to_bytes(2, "big")
    text = dissect(tmp_path, ETHERNET, [head + b"\xfe\xfe\x03" + pdu])
    assert_sound(text)
    for line in (
        "BIER Info",
        "BFR-id: 5",
        "Maximum Set Identifier: 0",
        "BitString Length: 1",
        "Label: 65792",
    ):
        assert line.lower() in text.lower(), line


@NEEDED
def test_wireshark_finds_nothing_malformed_in_ospf(tmp_path):
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\xe0\0\0\5", p=89, ttl=1)
    ip.data = encode_packet(0x0AFF0001, 0, LsUpdate((_lsa(),)))
    ip.len = 20 + len(ip.data)
    text = dissect(tmp_path, RAW_IP, [bytes(ip)])
    assert_sound(text)
    assert "10.0.5.2" in text
