"""The messages of a fabric, byte by byte; FRR, BIRD, GoBGP and tshark read the same in them."""

import pytest

from fared.core.ids import parse_dotted, parse_prefix
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ExtendedCommunities,
    Origin,
    SharedLimits,
    attributes_of,
)
from fared.protocols.bgp.packet.capabilities import (
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    NextHopEncoding,
    OwnMinimum,
    RouteRefreshCapability,
    UnknownCapability,
    decode_parameters,
    multiprotocol,
)
from fared.protocols.bgp.packet.codec import decode_message, encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.communities import (
    AvailableBandwidth,
    LinkBandwidth,
    SharedLimit,
    available_bandwidth,
    extended_text,
    link_bandwidth,
    read_link_bandwidth,
    with_link_bandwidth,
)
from fared.protocols.bgp.packet.messages import (
    Keepalive,
    OpenMessage,
    RouteGroup,
    RouteRefresh,
    Update,
)
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.notification import Fault, Notification, hard_reset, with_text

MARKER = "ff" * 16
LINK = LinkBandwidth(65001, 12.5e9)
ATTRIBUTES = attributes_of(
    (Origin(0), AsPath(sequence(65001)), ExtendedCommunities((LINK.raw,))),
)
SHARED = attributes_of(
    (
        *ATTRIBUTES.items[:2],
        ExtendedCommunities((LinkBandwidth(65001, 25e6 / 8).raw,)),
        SharedLimits((SharedLimit(65001, parse_dotted("10.255.0.1"), 25e6 / 8, 12499999744.0),)),
    )
)
PREFIX = parse_prefix("10.0.2.0/24")
HOP = BgpNextHop(4, parse_dotted("10.9.1.1"))
LOCAL = BgpNextHop(6, parse_prefix("fe80::1/128").network)
OPEN = OpenMessage(
    65001,
    9,
    parse_dotted("10.9.1.1"),
    (
        multiprotocol(4),
        multiprotocol(6),
        RouteRefreshCapability(),
        FourOctetAs(65001),
        ExtendedMessage(),
        OwnMinimum(),
    ),
)
MESSAGES = {
    "open": (
        OPEN,
        "003b01" + "04fde900090a090101" + "1e021c"
        "010400010001" + "010400020001" + "0200" + "41040000fde9" + "0600" + "fe0446415245",
    ),
    "route with 100G": (
        Update((), (RouteGroup(HOP, (PREFIX,)),), ATTRIBUTES),
        "003a02" + "0000" + "001f" + "40010100" + "40020602010000fde9" + "4003040a090101"
        "c010080004fde9503a43b7" + "180a0002",
    ),
    "route with 25M, limited by a spine": (
        Update((), (RouteGroup(HOP, (PREFIX,)),), SHARED),
        "005102" + "0000" + "0036" + "40010100" + "40020602010000fde9" + "4003040a090101"
        "c010080004fde94a3ebc20"
        + "80ff14"
        + "46415245"
        + "0000fde90aff00014a3ebc20503a43b7"
        + "180a0002",
    ),
    "IPv4 by an IPv6 next hop": (
        Update((), (RouteGroup(LOCAL, (PREFIX,)),), ATTRIBUTES),
        "004b02"
        "0000"
        "0034"
        "800e19"
        "00010110"
        "fe80" + "00" * 13 + "01" + "00180a0002"
        "40010100" + "40020602010000fde9" + "c010080004fde9503a43b7",
    ),
    "withdrawal": (Update((PREFIX,)), "001b02" + "0004" + "180a0002" + "0000"),
    "end of IPv4": (Update(end_of_rib=4), "001702" + "0000" + "0000"),
    "end of IPv6": (Update(end_of_rib=6), "001d02" + "0000" + "0006" + "800f03000201"),
    "keepalive": (Keepalive(), "001304"),
    "refresh of IPv6": (RouteRefresh(2, 1), "001705" + "00020001"),
    "shutdown with a text": (with_text(Fault.ADMINISTRATIVE_SHUTDOWN, "bye"), "001903060203627965"),
}


@pytest.mark.rfc("RFC 4271 §4.2", "RFC 4271 §4.3", "RFC 4760 §3", "RFC 4724 §2", "RFC 10005 §2")
@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_these_bytes(name):
    message, text = MESSAGES[name]
    (encoded,) = encode_message(message)
    assert encoded.hex() == MARKER + text
    assert decode_message(encoded) == message


@pytest.mark.parametrize(
    ("bits", "raw"),
    [
        (1e6, "47f42400"),
        (25e6, "4a3ebc20"),
        (10e9, "4e9502f9"),
        (25e9, "4f3a43b7"),
        (100e9, "503a43b7"),
        (400e9, "513a43b7"),
        (800e9, "51ba43b7"),
    ],
)
@pytest.mark.rfc("RFC 10005 §2")
def test_bandwidths_are_single_precision_in_bytes_per_second(bits, raw):
    found = LinkBandwidth(4_200_000_000, bits / 8, transitive=False)
    assert found.raw.hex() == "40045ba0" + raw
    again = read_link_bandwidth(found.raw)
    assert (again.number, again.transitive) == (23456, False)
    assert again.bandwidth == pytest.approx(bits / 8, rel=1e-7)


@pytest.mark.rfc("RFC 10005 §4")
@pytest.mark.parametrize(
    ("values", "lowest"),
    [
        ((2e9, 1e9), 1e9),
        ((2e9, 0.0), 0.0),
        ((2e9, -1.0, float("nan"), float("inf")), 2e9),
        ((-1.0,), None),
        ((), None),
    ],
)
def test_the_lowest_valid_bandwidth_of_either_type_counts(values, lowest):
    raws = [LinkBandwidth(n, value, bool(n % 2)).raw for n, value in enumerate(values)]
    raws.append(bytes.fromhex("0002fde900000064"))
    assert link_bandwidth(raws) == lowest
    assert with_link_bandwidth(raws, LINK) == (raws[-1], LINK.raw)


@pytest.mark.rfc("RFC 8950 §4")
@pytest.mark.rfc("RFC 4360 §4")
@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("0002fde800000007", "RT:65000:7"),
        ("4003fde800000007", "SoO:65000:7"),
        ("01020aff00010007", "RT:10.255.0.1:7"),
        ("0202fde9fde80007", "RT:4259970536:7"),
        ("4300000000000001", "0x4300000000000001"),
    ],
)
def test_extended_communities_are_told_as_in_other_daemons(raw, text):
    assert extended_text(bytes.fromhex(raw)) == text


def test_next_hops_of_another_family_are_announced():
    one = ExtendedNextHop((NextHopEncoding(1, 1, 2),))
    (encoded,) = encode_message(OpenMessage(1, 9, 1, (one,)))
    assert encoded.hex().endswith("0506000100010002")
    document = decode_message(encoded).document()
    assert document["capabilities"] == [{"extended_next_hop": ["ipv4 unicast via ipv6"]}]


@pytest.mark.rfc("RFC 9072 §2")
def test_capabilities_of_more_than_255_octets_are_sent_in_the_extended_form():
    many = tuple(multiprotocol(6) for _ in range(60))
    (encoded,) = encode_message(OpenMessage(1, 9, 1, many))
    assert encoded[28:32].hex() == "ffff021c"
    assert decode_message(encoded).capabilities == many


@pytest.mark.rfc("RFC 9072 §2")
def test_the_extended_form_is_read_with_few_capabilities_too():
    body = "04fde900090a090101" + "ffff0005" + "020002" + "0200"
    data = bytes.fromhex(MARKER + "002501" + body)
    assert decode_message(data).capabilities == (RouteRefreshCapability(),)


@pytest.mark.rfc("RFC 6793 §4.2.2", "RFC 6793 §4.2.3")
def test_a_neighbor_of_two_octets_gets_large_numbers_in_as4_path():
    narrow = Coding(four_octet_as=False)
    attributes = attributes_of((Origin(0), AsPath(sequence(65001, 4_200_000_000))))
    update = Update((), (RouteGroup(HOP, (PREFIX,)),), attributes)
    (encoded,) = encode_message(update, narrow)
    assert "40020602" + "02" + "fde95ba0" in encoded.hex()
    assert "c0110a0202" + "0000fde9" + "fa56ea00" in encoded.hex()
    assert decode_message(encoded, narrow) == update


@pytest.mark.rfc("RFC 9003 §2", "RFC 8538 §3.1")
def test_notifications_are_told_in_words():
    shutdown = with_text(Fault.ADMINISTRATIVE_SHUTDOWN, "back at \N{SNOWMAN} 5\x1b")
    told = 'cease, administrative shutdown: "back at ☃ 5\\x1b"'
    assert shutdown.words == told
    assert hard_reset(shutdown).words == f"cease, hard reset: {told}"
    assert len(with_text(Fault.ADMINISTRATIVE_RESET, "é" * 200).data) == 255
    assert Notification(4).words == "hold timer expired"
    assert Notification(2, 99).words == "OPEN message error, subcode 99"
    assert Notification(77, 1).words == "error code 77, subcode 1"


def test_messages_as_json():
    _, route = MESSAGES["route with 100G"]
    assert decode_message(bytes.fromhex(MARKER + route)).document() == {
        "message": "update",
        "withdrawn": [],
        "attributes": {
            "origin": "igp",
            "as_path": "65001",
            "extended_communities": [
                {
                    "hex": "0004fde9503a43b7",
                    "link_bandwidth": 12499999744.0,
                    "as": 65001,
                    "transitive": True,
                }
            ],
        },
        "routes": [{"next_hop": "10.9.1.1", "prefixes": ["10.0.2.0/24"]}],
    }
    assert OPEN.document()["capabilities"] == [
        {"multiprotocol": "ipv4 unicast"},
        {"multiprotocol": "ipv6 unicast"},
        {"route_refresh": True},
        {"four_octet_as": 65001},
        {"extended_message": True},
        {"own_minimum": True},
    ]


@pytest.mark.rfc("RFC 8810 §3")
def test_a_capability_of_others_by_the_same_code_is_not_ours():
    assert decode_parameters(bytes.fromhex("080206fe0446415246"), 0) == (
        UnknownCapability(254, b"FARF"),
    )


@pytest.mark.rfc("RFC 4360 §6", "RFC 4360 §7")
def test_what_load_leaves_is_a_community_of_a_type_for_experiments():
    raw = AvailableBandwidth(12.5e9).raw
    assert raw.hex() == "c0464152503a43b7"
    assert ExtendedCommunities((raw,)).document() == [
        {"hex": "c0464152503a43b7", "available_bandwidth": 12499999744.0}
    ]
    assert available_bandwidth((raw, bytes.fromhex("c04641527fc00000"))) == 12499999744.0
    assert with_link_bandwidth((raw,), LINK) == (LINK.raw,)
