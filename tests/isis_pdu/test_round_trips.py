"""Every PDU and TLV survives encoding and decoding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.checksum import fletcher_ok
from fared.core.ids import parse_prefix
from fared.core.wire import DecodeError
from fared.paths.te.attributes import TeAttributes
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.pdu.codec import (
    Former,
    checksum_ok,
    decode_pdu,
    decode_raw,
    encode_pdu,
    encode_tlvs,
    entries_size,
    entry_size,
    kind_of,
    peek_lsp,
    read_pdu,
    with_checksum,
    with_lifetime,
)
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.lsp_entries import pack, packed_of, split, unpack
from fared.protocols.isis.pdu.model import Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.tlv_lists import decode_tlvs
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    LspEntries,
    LspEntry,
    Padding,
    UnknownTlv,
    of_type,
)
from fared.protocols.isis.pdu.triplet import DecodeOptions
from tests.isis_pdu.strategies import LSPS, PDUS, TLV_LISTS, TLVS, bits, neighbors, reaches

LSP = Lsp(2, lsp_id(0x010255000001), 7, 1199, tlvs=(Hostname("leaf1"),))
HELLO = P2pHello(LevelSet.TWO, 1, 30, 1)


def decode(data, **reading):
    return decode_tlvs(data, 0, len(data), DecodeOptions(**reading))


def read(hexadecimal, **reading):
    """Decode one TLV."""
    (tlv,) = decode(bytes.fromhex(hexadecimal), **reading)
    return tlv


def refuse(hexadecimal, **reading):
    with pytest.raises(DecodeError) as caught:
        decode(bytes.fromhex(hexadecimal), **reading)
    assert caught.value.code == "tlv"


@given(PDUS)
def test_every_pdu(pdu):
    raw = encode_pdu(pdu)
    again = decode_pdu(raw, strict=True)
    if isinstance(pdu, Lsp):
        assert again.checksum == peek_lsp(raw).checksum
        again = replace(again, checksum=0)
    assert again == pdu
    assert read_pdu(raw).kind is kind_of(pdu)


@given(LSPS, TLV_LISTS, TLV_LISTS)
def test_what_an_lsp_has_in_common_with_the_one_before_it_is_taken_over(lsp, common, gone):
    """The result equals that of decoding it alone, with the objects of the former LSP.

    Where both are of one size, those in the same places may be all that is compared.
    """
    before = encode_pdu(replace(lsp, tlvs=gone + common))
    former = Former(before, decode_pdu(before).tlvs)
    raw = encode_pdu(replace(lsp, tlvs=common + lsp.tlvs))
    again = decode_raw(read_pdu(raw), former=former)
    assert again == decode_pdu(raw)
    known = {id(tlv) for tlv in former.tlvs}
    if len(raw) != len(before):
        assert all(id(tlv) in known for tlv in again.tlvs[: len(common)])
    for tlv, place in zip(again.tlvs, former.tlvs, strict=False):
        if encode_tlvs([tlv]) == encode_tlvs([place]):
            assert id(tlv) in known


@given(TLVS)
def test_every_tlv(tlv):
    data = encode_tlvs([tlv])
    assert decode(data, strict=True) == (tlv,)


@settings(max_examples=30)
@given(st.lists(neighbors(), min_size=1, max_size=4))
def test_links_with_various_sub_tlvs_in_one_tlv_do_not_disturb_each_other(links):
    """The compiled layout of one entry is not used for another order of sub-TLVs."""
    found = decode(encode_tlvs([IsReachability(tuple(links))]), strict=True)
    assert [link for tlv in found for link in tlv.neighbors] == links


@given(LSPS)
def test_lsp_header_is_read_without_its_tlvs(lsp):
    raw = encode_pdu(lsp)
    peek = peek_lsp(raw)
    assert peek.lsp_id == lsp.lsp_id
    assert peek.sequence_number == lsp.sequence_number
    assert peek.remaining_lifetime == lsp.remaining_lifetime
    assert peek.level == lsp.level
    assert checksum_ok(raw)
    assert fletcher_ok(raw[12:])


def test_lifetime_is_changed_in_place_and_outside_the_checksum():
    raw = with_lifetime(encode_pdu(LSP), 17)
    assert checksum_ok(raw)
    assert decode_pdu(raw).remaining_lifetime == 17


def test_wrong_checksum_is_refused_unless_the_lsp_is_purged():
    raw = with_checksum(encode_pdu(LSP), 0x1234)
    with pytest.raises(DecodeError) as caught:
        decode_pdu(raw)
    assert caught.value.code == "checksum"
    assert decode_pdu(raw, verify_checksum=False).checksum == 0x1234
    assert decode_pdu(with_lifetime(raw, 0)).checksum == 0x1234


def test_checksum_of_zero_is_wrong():
    assert not checksum_ok(with_checksum(encode_pdu(LSP), 0))


def test_a_checksum_that_was_decoded_is_written_again():
    raw = with_lifetime(with_checksum(encode_pdu(LSP), 0x1234), 0)
    assert encode_pdu(decode_pdu(raw)) == raw


def test_padding_of_the_frame_is_cut_off():
    raw = encode_pdu(HELLO)
    assert decode_pdu(raw + bytes(20)) == HELLO
    assert read_pdu(raw + bytes(20)).data == raw


@pytest.mark.parametrize(
    ("at", "value", "code"),
    [
        (0, 0x82, "type"),
        (1, 21, "length"),
        (2, 2, "version"),
        (3, 5, "length"),
        (4, 31, "type"),
        (5, 2, "version"),
        (7, 4, "version"),
        (8, 0, "type"),
        (18, 19, "length"),
        (18, 21, "truncated"),
    ],
)
def test_what_is_wrong_with_a_header_is_told(at, value, code):
    raw = bytearray(encode_pdu(HELLO))
    raw[at] = value
    with pytest.raises(DecodeError) as caught:
        decode_pdu(bytes(raw))
    assert caught.value.code == code


@pytest.mark.parametrize(("at", "value"), [(3, 6), (7, 3), (4, 0xE0 | 17)])
def test_other_ways_to_say_the_same_header(at, value):
    """An ID length of 6 and 3 area addresses may be explicit; reserved bits are ignored."""
    raw = bytearray(encode_pdu(HELLO))
    raw[at] = value
    assert decode_pdu(bytes(raw)) == HELLO


def test_long_lists_become_several_tlvs():
    links = tuple(
        IsNeighbor(n << 8, 10, TeAttributes(max_bandwidth=1e9), (n,), (n,)) for n in range(40)
    )
    found = decode(encode_tlvs([IsReachability(links, 2)]))
    assert len(found) > 1
    assert all(tlv.topology == 2 for tlv in found)
    assert tuple(link for tlv in found for link in tlv.neighbors) == links
    entries = tuple(LspEntry(n, 1, 1199, n) for n in range(40))
    assert [len(t.entries) for t in decode(encode_tlvs([LspEntries(entries)]))] == [15, 15, 10]
    addresses = InterfaceAddresses(6, tuple(range(20)))
    assert [len(t.addresses) for t in decode(encode_tlvs([addresses]))] == [15, 5]


@given(st.lists(st.builds(LspEntry, bits(64), bits(32), bits(16), bits(16)), max_size=70))
def test_entries_of_snps_are_the_same_as_bytes(entries):
    tlvs = split(map(pack, entries))
    data = encode_tlvs(tlvs)
    assert data == (encode_tlvs([LspEntries(tuple(entries))]) if entries else b"")
    packed = decode(data, packed=True)
    assert encode_tlvs(packed) == data
    plain = decode(data)
    assert packed_of(packed) == packed_of(plain) == b"".join(map(pack, entries))
    fields = [(e.remaining_lifetime, e.lsp_id, e.sequence_number, e.checksum) for e in entries]
    assert list(unpack(packed_of(packed))) == fields


def test_entries_as_bytes_that_do_not_fit_into_one_tlv_make_several():
    entries = tuple(LspEntry(lsp_id(0x010255000001, 0, n), 7, 1200, n) for n in range(20))
    packed = b"".join(map(pack, entries))
    assert encode_tlvs([LspEntries((), packed)]) == encode_tlvs([LspEntries(entries)])
    assert encode_tlvs([LspEntries(entries[:2], packed[32:])]) == encode_tlvs([LspEntries(entries)])


@settings(max_examples=30)
@given(st.lists(neighbors(), max_size=4), st.sampled_from((None, 2)))
def test_size_of_links_is_known_before_they_are_encoded(links, topology):
    sizes = [entry_size(link) for link in links]
    encoded = encode_tlvs([IsReachability(tuple(links), topology)]) if links else b""
    assert entries_size(sizes, topology) == len(encoded)


@settings(max_examples=30)
@given(st.lists(reaches(6), max_size=12))
def test_size_of_prefixes_is_known_before_they_are_encoded(prefixes):
    sizes = [entry_size(reach) for reach in prefixes]
    encoded = encode_tlvs([IpReachability(6, tuple(prefixes))]) if prefixes else b""
    assert entries_size(sizes) == len(encoded)


def test_what_cannot_be_divided_must_fit():
    with pytest.raises(ValueError, match="TLV 137"):
        encode_tlvs([Hostname("x" * 256)])
    link = IsNeighbor(1, 1, unknown=((200, bytes(250)),))
    with pytest.raises(ValueError, match="sub-TLVs"):
        encode_tlvs([IsReachability((link,))])
    huge = Psnp(2, 1, (UnknownTlv(200, bytes(255)),) * 260)
    with pytest.raises(ValueError, match="too long"):
        encode_pdu(huge)


def test_path_capacity_has_a_configurable_code_point():
    reach = IpReach(parse_prefix("10.0.0.0/24"), 10, True, capacity=1e7)
    data = encode_tlvs([IpReachability(4, (reach,))], 222)
    assert data.hex() == "870f0000000ad80a000006de044b189680"
    (tlv,) = decode(data, capacity_code=222)
    assert tlv.prefixes == (reach,)
    (tlv,) = decode(data)
    assert tlv.prefixes[0].capacity is None
    assert tlv.prefixes[0].unknown == ((222, bytes.fromhex("4b189680")),)
    without = encode_tlvs([IpReachability(4, (reach,))], None)
    assert decode(without)[0].prefixes[0].capacity is None


def test_capacity_of_another_size_is_somebody_elses():
    tlv = read("870c0000000a580a000303fa0105")
    assert tlv.prefixes[0].unknown == ((250, b"\5"),)


def test_host_bits_are_cleared():
    assert read("87080000000a170a00ff").prefixes[0].prefix == parse_prefix("10.0.254.0/23")


def test_default_routes_of_both_families():
    assert read("87050000000a00").prefixes[0].prefix == parse_prefix("0.0.0.0/0")
    assert read("ec060000000a0000").prefixes[0].prefix == parse_prefix("::/0")


def test_sub_tlv_of_a_wrong_size_costs_that_attribute_only():
    """A maximum bandwidth of three bytes: the link is kept; only ``strict`` rejects it."""
    data = "1610" + "01025500000200" + "00000a" + "05" + "0903aabbcc"
    (link,) = read(data).neighbors
    assert link.attributes.max_bandwidth is None
    assert link.unknown == ((9, b"\xaa\xbb\xcc"),)
    refuse(data, strict=True)


def test_sub_tlv_that_comes_twice_counts_once():
    data = "1617" + "01025500000200" + "00000a" + "0c" + "09044b189680" + "0904503a43b7"
    (link,) = read(data).neighbors
    assert link.attributes.max_bandwidth == 1e7
    assert link.unknown == ((9, bytes.fromhex("503a43b7")),)
    assert encode_tlvs((IsReachability((link,)),)).hex() == data


def test_floats_are_decoded_as_sent():
    data = "1617" + "01025500000200" + "00000a" + "0c" + "09047f800000" + "26048000000" + "0"
    (link,) = read(data).neighbors
    assert link.attributes.max_bandwidth == float("inf")
    assert str(link.attributes.available_bandwidth) == "-0.0"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("01", "one byte of a TLV"),
        ("0105024900", "TLV longer than what is left"),
        ("010149", "area address longer than its TLV"),
        ("010100", "area address of no bytes"),
        ("010f0e" + "49" * 14, "area address of 14 bytes"),
        ("06050102030405", "MAC address of five bytes"),
        ("090f" + "00" * 15, "LSP entry of 15 bytes"),
        ("0a00", "authentication without type"),
        ("0d0102", "purge originator without ids"),
        ("0d0703" + "00" * 6, "purge originator of three"),
        ("0e0105", "buffer size of one byte"),
        ("0200", "narrow IS reachability without its first byte"),
        ("020500" + "00" * 4, "narrow neighbor of four bytes"),
        ("160a" + "00" * 10, "neighbor of ten bytes"),
        ("160b" + "00" * 10 + "01", "sub-TLVs beyond their TLV"),
        ("160d" + "00" * 10 + "020904", "sub-TLV beyond its entry"),
        ("8004" + "00" * 4, "narrow prefix of four bytes"),
        ("800c0a80808000000000ff00ff00", "mask with a hole"),
        ("840301020" + "3", "IPv4 address of three bytes"),
        ("e80f" + "00" * 15, "IPv6 address of fifteen bytes"),
        ("86021122", "router id of two bytes"),
        ("87040000000a", "prefix without its length"),
        ("87050000000a18", "prefix without its bytes"),
        ("87050000000a21", "IPv4 prefix of 33 bits"),
        ("87050000000a40", "sub-TLVs announced and absent"),
        ("87060000000a4002", "sub-TLVs beyond their TLV"),
        ("ec060000000a0081", "IPv6 prefix of 129 bits"),
        ("de0100", "half a topology id"),
        ("e50100", "half a topology"),
        ("f0020000", "three-way adjacency of two bytes"),
    ],
)
def test_what_does_not_add_up_is_refused(data, why):
    refuse(data)


@pytest.mark.parametrize("name", ["1b5b324a", "ff", "0a"])
def test_hostnames_that_are_no_text_never_reach_a_terminal(name):
    tlv = read(f"89{len(name) // 2:02x}{name}")
    assert tlv == UnknownTlv(137, bytes.fromhex(name))


def test_padding_with_contents_is_kept():
    assert read("08020000") == Padding(2)
    assert read("08020001") == UnknownTlv(8, b"\0\1")


def test_tlvs_by_class():
    tlvs = (Hostname("a"), AreaAddresses(()), Hostname("b"))
    assert of_type(tlvs, Hostname) == (Hostname("a"), Hostname("b"))


def test_flooding_parameters_of_a_wrong_size_do_not_count():
    """RFC 9681 §4: sizes are fixed, but of the flags; the second sub-TLV of a type is ignored."""
    good = "15 1e0104000000140204000000fa0302005a04018005020064060200c80701aa"
    tlv = read(good, strict=True)
    assert tlv == FloodingParameters(20, 250, 90, b"\x80", 100, 200, ((7, b"\xaa"),))
    assert tlv.ordered
    assert encode_tlvs([tlv]) == bytes.fromhex(good)
    odd = read("15 0e0602000a06020014050200010400")
    assert odd == FloodingParameters(
        psnp_interval=1, receive_window=10, unknown=((6, b"\0\x14"), (4, b""))
    )
    refuse("15 03 06010a", strict=True)
    with pytest.raises(ValueError, match="receive window"):
        encode_tlvs([FloodingParameters(receive_window=0x10000)])
