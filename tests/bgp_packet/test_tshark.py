"""Wireshark decodes our messages without a warning, and with our values."""

import dpkt
import pytest

from fared.core.ids import parse_dotted, parse_prefix
from fared.protocols.bgp.packet.as_path import AsSegment, sequence
from fared.protocols.bgp.packet.attributes import (
    AsAggregator,
    AsPath,
    AtomicAggregate,
    ClusterList,
    Communities,
    ExtendedCommunities,
    LargeCommunities,
    LocalPref,
    Med,
    Origin,
    OriginatorId,
    attributes_of,
)
from fared.protocols.bgp.packet.capabilities import (
    ExtendedNextHop,
    GracefulRestartCapability,
    KeptFamily,
    NextHopEncoding,
)
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.communities import (
    GRACEFUL_SHUTDOWN,
    LargeCommunity,
    LinkBandwidth,
)
from fared.protocols.bgp.packet.messages import OpenMessage, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.notification import Fault, Notification, hard_reset, with_text
from tests.bgp_packet.test_bytes import HOP, LOCAL, MESSAGES, OPEN
from tests.packets.wireshark import NEEDED, RAW_IP, assert_sound, dissect

pytestmark = NEEDED

ALL = attributes_of(
    (
        Origin(2),
        AsPath((*sequence(65001, 4_200_000_000), AsSegment(1, (65010, 65011)))),
        Med(7),
        LocalPref(200),
        AtomicAggregate(),
        AsAggregator(65001, parse_dotted("10.255.0.1")),
        Communities((GRACEFUL_SHUTDOWN, 65001 << 16 | 100)),
        OriginatorId(parse_dotted("10.255.0.2")),
        ClusterList((parse_dotted("10.255.0.3"),)),
        ExtendedCommunities((LinkBandwidth(65001, 50e9).raw, LinkBandwidth(1, 1e9, False).raw)),
        LargeCommunities((LargeCommunity(4_200_000_000, 1, 2),)),
    )
)
IPV6 = BgpNextHop(6, parse_prefix("2001:db8::1/128").network, LOCAL.address)
PREFIXES = tuple(map(parse_prefix, ("0.0.0.0/0", "10.0.0.0/8", "10.0.2.0/23", "10.0.2.1/32")))
PREFIXES6 = tuple(map(parse_prefix, ("::/0", "fd00:1::/64", "fd00:2::1/128")))
UNNAMED = {
    Fault.INVALID_MESSAGE_LENGTH,
    Fault.SEND_HOLD_TIMER_EXPIRED,
    # "Malformed" is what these are called
    Fault.MALFORMED_ATTRIBUTE_LIST,
    Fault.MALFORMED_AS_PATH,
}
"""Wireshark 4.0 has no names for the first two."""
MORE = (
    Update((*PREFIXES, *PREFIXES6), (RouteGroup(HOP, PREFIXES), RouteGroup(IPV6, PREFIXES6)), ALL),
    Update((), (RouteGroup(IPV6, PREFIXES),), ALL),
    OpenMessage(
        23456,
        9,
        parse_dotted("10.9.1.1"),
        (
            *OPEN.capabilities,
            ExtendedNextHop((NextHopEncoding(1, 1, 2),)),
            GracefulRestartCapability(120, (KeptFamily(1, 1, True), KeptFamily(2, 1)), 0x8000),
        ),
    ),
    *(Notification(*fault.value) for fault in Fault if fault not in UNNAMED),
    hard_reset(with_text(Fault.ADMINISTRATIVE_SHUTDOWN, "bye")),
)


@pytest.fixture(scope="module")
def dissected(tmp_path_factory):
    """Each message in a segment of its own."""
    messages = [*(message for message, _ in MESSAGES.values()), *MORE]
    raw = [one for message in messages for one in encode_message(message)]
    frames, sequence_number = [], 1
    for one in raw:
        frames.append(segment(one, sequence_number))
        sequence_number += len(one)
    return dissect(tmp_path_factory.mktemp("tshark"), RAW_IP, frames)


def segment(data, sequence_number):
    tcp = dpkt.tcp.TCP(sport=40000, dport=179, seq=sequence_number, ack=1, flags=0x18, data=data)
    ip = dpkt.ip.IP(src=b"\x0a\x09\1\1", dst=b"\x0a\x09\1\2", p=6, ttl=1, data=tcp)
    ip.len = 20 + len(bytes(tcp))
    return bytes(ip)


def test_nothing_is_malformed(dissected):
    assert_sound(dissected)


@pytest.mark.parametrize(
    "line",
    [
        "My AS: 65001",
        "Support for 4-octet AS number capability",
        "BGP-Extended Message",
        "AS_PATH: 65001 4200000000 {65010, 65011}",
        "MULTI_EXIT_DISC: 7",
        "LOCAL_PREF: 200",
        "ATOMIC_AGGREGATE",
        "AGGREGATOR: AS: 65001 origin: 10.255.0.1",
        "ORIGINATOR_ID: 10.255.0.2",
        "CLUSTER_LIST: 10.255.0.3",
        "10.0.2.0/23",
        "fd00:2::1/128",
        "Link Bandwidth: ASN 1, 8000.000 Mbps [Non-Transitive 2-Octet AS-Specific]",
        "4200000000:1:2",
        "Minor error Code (Cease): Administratively Shutdown",
    ],
)
def test_values_are_ours(dissected, line):
    assert line in dissected
