"""Wireshark decodes the packets that fared encodes without errors, and with the same values."""

import dpkt
import pytest

from fared.core.ids import ipv4_prefix
from fared.protocols.ospf.packet.bodies import (
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.extended_prefix import (
    ExtendedPrefixLsa,
    PrefixFacts,
    capacity_sub_tlv,
)
from fared.protocols.ospf.packet.lsa import encode_lsa
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
)
from fared.protocols.ospf.packet.router_info import RouterInformation
from tests.packets.wireshark import ATTRIBUTES, NEEDED, RAW_IP, assert_sound, dissect

pytestmark = NEEDED

TE_LINK = TeLink(
    1, 0x0AFF0002, (0x0A800000,), (0x0A800001,), 3, 7, ATTRIBUTES, router_address=0x0AFF0001
)
BODIES = [
    (
        1,
        0x0AFF0001,
        RouterLsa(3, (RouterLink(1, 0x0AFF0002, 0x0A800000, 10), RouterLink(3, 1, 2, 3))),
    ),
    (2, 0x0A000001, NetworkLsa(0xFFFFFF00, (0x0AFF0001, 0x0AFF0002))),
    (3, 0x0A020000, SummaryLsa(0xFFFFFF00, 20)),
    (4, 0x0AFF0009, SummaryLsa(0, 20)),
    (5, 0, AsExternalLsa(0, True, 7, 0, 42)),
    (7, 0, AsExternalLsa(0, False, 7, 1, 42)),
    (10, 1 << 24, TeRouterAddress(0x0AFF0001)),
    (10, 1 << 24 | 1, TE_LINK),
    (10, 4 << 24, RouterInformation(1 << 28, "leaf1")),
    (
        10,
        7 << 24 | 1,
        ExtendedPrefixLsa(
            (PrefixFacts(3, ipv4_prefix(0x0A000300, 24), 0, (capacity_sub_tlv(12.5e9, 32768),)),)
        ),
    ),
]


def lsas():
    return tuple(
        encode_lsa(
            ls_age=1,
            options=0x42,
            ls_type=ls_type,
            link_state_id=link_state_id,
            advertising_router=0x0AFF0001,
            ls_sequence_number=-0x7FFFFFFF,
            body=encode_body(body),
        )
        for ls_type, link_state_id, body in BODIES
    )


@pytest.fixture(scope="module")
def dissected(tmp_path_factory):
    """One packet of each type, as ``tshark -V`` prints them."""
    headers = tuple(lsa.header for lsa in lsas())
    packets = [
        Hello(0xFFFFFF00, 10, 2, 1, 40, 0x0A000001, 0x0A000002, (0x0AFF0002,)),
        DatabaseDescription(1500, 0x42, 7, 0x12345678, headers),
        LsRequest(tuple(header.key for header in headers)),
        LsUpdate(lsas()),
        LsAck(headers),
    ]
    return dissect(tmp_path_factory.mktemp("tshark"), RAW_IP, map(datagram, packets))


def datagram(body) -> bytes:
    """A packet to all routers."""
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\xe0\0\0\5", p=89, ttl=1)
    ip.data = encode_packet(0x0AFF0001, 0, body)
    ip.len = 20 + len(ip.data)
    return bytes(ip)


def test_nothing_is_malformed(dissected):
    assert_sound(dissected)


def test_every_packet_checksum_is_right(dissected):
    assert dissected.count("[correct]") == 5


@pytest.mark.parametrize(
    "line",
    [
        "Message Type: Hello Packet (1)",
        "Active Neighbor: 10.255.0.2",
        "DD Sequence: 305419896",
        "Type: PTP",
        "Link State ID: 10.2.0.0",
        "External Route Tag: 42",
        "Dynamic Hostname: leaf1",
        "MPLS/TE Router ID: 10.255.0.1",
        "Min Delay: 5",
        "Max Delay: 20",
        "Delay Variation: 3",
    ],
)
def test_values_are_ours(dissected, line):
    assert line in dissected
