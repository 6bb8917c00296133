"""LSA bodies byte by byte, with what RFCs allow and peers get wrong."""

import math
import struct

import pytest

from fared.core.wire import DecodeError
from fared.paths.te.attributes import TeAttributes
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa, SummaryLsa
from fared.protocols.ospf.packet.body import (
    decode_body,
    encode_body,
    encode_router_lsa,
    opaque_link_state_id,
    opaque_type,
)
from fared.protocols.ospf.packet.lsa import (
    INITIAL_SEQUENCE_NUMBER,
    Lsa,
    encode_lsa,
    lsa_checksum_ok,
)
from fared.protocols.ospf.packet.opaque import (
    OpaqueType,
    TeLink,
    TeRouterAddress,
)
from fared.protocols.ospf.packet.router_info import RouterInformation

TE = opaque_link_state_id(OpaqueType.TRAFFIC_ENGINEERING, 1)
RI = opaque_link_state_id(OpaqueType.ROUTER_INFORMATION, 0)


def lsa(ls_type: int, body: str | bytes, link_state_id: int = 0) -> Lsa:
    return encode_lsa(
        ls_age=1,
        options=2,
        ls_type=ls_type,
        link_state_id=link_state_id,
        advertising_router=1,
        ls_sequence_number=INITIAL_SEQUENCE_NUMBER,
        body=bytes.fromhex(body) if isinstance(body, str) else body,
    )


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack(">HH", kind, len(value)) + value + bytes(-len(value) % 4)


def te_link(*sub_tlvs: bytes) -> TeLink:
    body = decode_body(lsa(10, tlv(2, b"".join(sub_tlvs)), TE))
    assert isinstance(body, TeLink)
    return body


def refused(ls_type: int, body: str | bytes, link_state_id: int = 0) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode_body(lsa(ls_type, body, link_state_id))
    return caught.value


def test_router_lsa_on_the_wire():
    links = (RouterLink(1, 0x0AFF0002, 0x0A800000, 10), RouterLink(3, 0x0A010000, 0xFFFFFF00, 5))
    wire = "01000002 0aff0002 0a800000 01 00 000a 0a010000 ffffff00 03 00 0005"
    assert encode_router_lsa(RouterLsa(1, links)) == bytes.fromhex(wire)
    assert decode_body(lsa(1, wire)) == RouterLsa(1, links)


def test_metrics_by_type_of_service_are_read_over():
    wire = "00000002 00000001 00000002 01 02 000a 08000014 1000001e 00000003 00000004 03 00 0005"
    assert decode_body(lsa(1, wire)) == RouterLsa(
        0, (RouterLink(1, 1, 2, 10), RouterLink(3, 3, 4, 5))
    )


def test_metrics_by_type_of_service_in_the_space_of_other_links():
    """Three links announced, room for three, but the first one claims the room of the second."""
    wire = "00000003 00000001 00000002 01 03 000a" + "00" * 24
    assert refused(1, wire).code == "truncated"


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        ("", "truncated"),
        ("0000", "truncated"),
        ("00000001", "truncated"),
        ("0000ffff" + "00" * 12, "truncated"),
        ("00000000" + "00" * 12, "length"),
        ("00000001" + "00" * 13, "length"),
        ("00000001 00000001 00000002 01 ff 000a", "truncated"),
    ],
)
def test_router_lsas_that_lie(wire, code):
    assert refused(1, wire).code == code


def test_a_link_state_id_of_zero_links_is_a_router_too():
    assert decode_body(lsa(1, "03000000")) == RouterLsa(3, ())


def test_summary_metric_has_24_bits():
    assert decode_body(lsa(3, "ffffff00 ff000010")) == SummaryLsa(0xFFFFFF00, 16)
    assert decode_body(lsa(4, "00000000 00ffffff 080000ff")) == SummaryLsa(0, 0xFFFFFF)
    assert refused(3, "ffffff00").code == "truncated"


def test_external_lsas_have_whole_entries():
    assert refused(5, "00" * 20).code == "length"
    assert decode_body(lsa(5, "00" * 28)) is not None
    assert decode_body(lsa(7, "00" * 16)) is not None


@pytest.mark.parametrize("ls_type", [0, 6, 8, 12, 255])
def test_other_lsa_types_are_not_decoded(ls_type):
    assert decode_body(lsa(ls_type, "ff" * 7)) is None


@pytest.mark.parametrize(
    ("ls_type", "link_state_id"), [(9, TE), (11, TE), (10, 3 << 24), (10, 8 << 24), (9, 200 << 24)]
)
def test_other_opaque_types_are_not_decoded(ls_type, link_state_id):
    """TE has area scope only (RFC 3630 §2.2)."""
    assert decode_body(lsa(ls_type, "ff" * 7, link_state_id)) is None


def test_opaque_link_state_ids():
    assert TE == 0x01000001
    assert opaque_type(0x04ABCDEF) == OpaqueType.ROUTER_INFORMATION


def test_te_router_address():
    assert decode_body(lsa(10, "00010004 0aff0001", TE)) == TeRouterAddress(0x0AFF0001)


def test_a_te_lsa_with_neither_tlv():
    assert decode_body(lsa(10, "", TE)) is None
    assert decode_body(lsa(10, tlv(5, b"abcd"), TE)) is None


def test_available_bandwidth_on_the_wire():
    """12.5e6 bytes/s as IEEE single is 4b3ebc20 (RFC 7471 §4.6)."""
    link = TeLink(None, None, attributes=TeAttributes(available_bandwidth=12.5e6))
    assert encode_body(link) == bytes.fromhex("00020008 00200004 4b3ebc20")


def test_link_type_is_padded():
    assert encode_body(TeLink(1, None)) == bytes.fromhex("00020008 00010001 01000000")


def test_the_a_bit_is_no_part_of_the_delay():
    link = te_link(
        tlv(27, bytes.fromhex("8000000a")),
        tlv(28, bytes.fromhex("80000005 ff000014")),
        tlv(30, bytes.fromhex("800003e8")),
    )
    assert link.attributes.delay == 10
    assert link.attributes.min_max_delay == (5, 20)
    assert link.attributes.loss == pytest.approx(0.003)
    assert link.anomalous == (27, 28, 30)
    assert decode_body(lsa(10, encode_body(link), TE)) == link


def test_values_beyond_24_bits_are_clipped():
    """RFC 7471 §4.1.3, §4.4.3: the maximum means that or more."""
    te = TeAttributes(delay=1 << 30, min_max_delay=(1, 1 << 24), delay_variation=1 << 25, loss=99.0)
    te = decode_body(lsa(10, encode_body(TeLink(None, None, attributes=te)), TE)).attributes
    assert (te.delay, te.min_max_delay, te.delay_variation) == (0xFFFFFF, (1, 0xFFFFFF), 0xFFFFFF)
    assert te.loss == pytest.approx(50.331645)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 0.0, 3e38])
def test_absurd_bandwidths_decode_but_are_no_capacity(value):
    """A capture shows what was sent; nothing computes with it."""
    raw = struct.pack(">f", value)
    te = te_link(tlv(6, raw), tlv(31, raw), tlv(32, raw)).attributes
    assert te.max_bandwidth == struct.unpack(">f", raw)[0] or math.isnan(value)
    assert te.capacity is None


def test_unknown_sub_tlvs_are_kept_in_order():
    link = te_link(tlv(32768, b"abc"), tlv(1, b"\x01"), tlv(10, b"12345678"))
    assert link.unknown == ((32768, b"abc"), (10, b"12345678"))


def test_of_a_repeated_sub_tlv_the_first_counts():
    assert te_link(tlv(5, bytes(3) + b"\1"), tlv(5, bytes(3) + b"\2")).attributes.te_metric == 1


def test_unnumbered_links_have_identifiers():
    link = te_link(tlv(11, bytes.fromhex("00000003 00000007")))
    assert (link.local_identifier, link.remote_identifier) == (3, 7)


def test_padding_may_miss_at_the_very_end():
    assert decode_body(lsa(10, bytes.fromhex("0002 0005 0001 0001 01"), TE)).link_type == 1


@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, *range(27, 34)])
def test_known_sub_tlvs_of_wrong_length(kind):
    assert refused(10, tlv(2, tlv(kind, bytes(7))), TE).code == "tlv"


@pytest.mark.parametrize(
    "wire", ["00", "0002", "000200", "0002 0008 0000", "0002ffff", "0002 0006 0001 0004 0000"]
)
def test_tlvs_that_run_over(wire):
    assert refused(10, wire, TE).code == "tlv"


def test_errors_point_into_the_lsa():
    """20 bytes of header, 4 of TLV, 4 of sub-TLV: the value at 28."""
    assert refused(10, tlv(2, tlv(6, bytes(3))), TE).offset == 28


def test_dynamic_hostname():
    body = decode_body(lsa(11, tlv(1, bytes(4)) + tlv(7, b"leaf1"), RI))
    assert body == RouterInformation(0, "leaf1")
    assert encode_body(RouterInformation(hostname="leaf1")) == tlv(7, b"leaf1")


def test_a_hostname_cannot_steer_the_terminal():
    body = decode_body(lsa(11, tlv(7, b"a\x1b[2Jb\xff\n"), RI))
    assert body.hostname == r"a\x1b[2Jb\xff\n"
    assert body.hostname.isprintable()


def test_hostnames_have_a_length():
    assert refused(11, tlv(7, b""), RI).code == "tlv"
    assert refused(11, tlv(7, bytes(256)), RI).code == "tlv"
    assert encode_body(RouterInformation(hostname="")) == b""
    assert len(encode_body(RouterInformation(hostname="h" * 300))) == 4 + 256


def test_capabilities_come_in_words():
    assert (
        decode_body(lsa(10, tlv(1, bytes.fromhex("10000000 ffffffff")), RI)).capabilities == 1 << 28
    )
    assert refused(10, tlv(1, bytes(3)), RI).code == "tlv"


def test_an_lsa_longer_than_its_length_field():
    with pytest.raises(ValueError, match="does not fit"):
        lsa(1, bytes(65536))


def test_a_checksum_of_zero_is_wrong():
    """RFC 2328 §12.1.7: zero would mean no checksum, which OSPF does not allow."""
    blank = lsa(1, "00000000")
    raw = bytes(blank.raw[:16]) + bytes(2) + blank.raw[18:]
    header = type(blank.header)(1, 2, 1, 0, 1, INITIAL_SEQUENCE_NUMBER, 0, 24)
    assert lsa_checksum_ok(blank)
    assert not lsa_checksum_ok(Lsa(header, raw))
