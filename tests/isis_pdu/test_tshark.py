"""Wireshark decodes our PDUs without a warning and with our values."""

import struct

import pytest

from fared.core.ids import parse_prefix
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.isis.ids import FIRST_LSP, LAST_LSP, LevelSet, lsp_id
from fared.protocols.isis.pdu.codec import encode_pdu
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsNeighbors,
    IsReachability,
    LspBufferSize,
    LspEntries,
    LspEntry,
    MultiTopology,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    Padding,
    ProtocolsSupported,
    PurgeOriginator,
    TeRouterId,
    ThreeWay,
    Topology,
)
from tests.packets.wireshark import ATTRIBUTES, ETHERNET, NEEDED, assert_sound, dissect

pytestmark = NEEDED

R1, R2 = 0x010255000001, 0x010255000002
LINK = IsNeighbor(
    R2 << 8, 10, ATTRIBUTES, (0x0A800000,), (0x0A800001,), (1,), (2,), 3, 7, anomalous=(33,)
)
AREA = AreaAddresses((b"\x49\0\1", bytes.fromhex("4900000002000300040005")))
IPV6 = parse_prefix("fd00:1::/64")
LSP_TLVS = (
    AREA,
    ProtocolsSupported((0xCC, 0x8E)),
    MultiTopology((Topology(0), Topology(2, attached=True))),
    Hostname("leaf1"),
    LspBufferSize(1492),
    TeRouterId(0x0AFF0001),
    NarrowIsReachability((NarrowNeighbor(R2 << 8, 10),)),
    IsReachability((LINK, IsNeighbor(R2 << 8 | 2, 11))),
    IsReachability((LINK,), 2),
    InterfaceAddresses(4, (0x0AFF0001,)),
    InterfaceAddresses(6, (IPV6.network,)),
    NarrowIpReachability((NarrowIpReach(parse_prefix("10.9.0.0/16"), 20, True),)),
    NarrowIpReachability((NarrowIpReach(parse_prefix("10.8.0.0/16"), 20),), True),
    IpReachability(
        4,
        (
            IpReach(parse_prefix("10.7.0.0/16"), 30, True, tags=(77,), flags=0x40, capacity=12e9),
            IpReach(parse_prefix("0.0.0.0/0"), 31),
        ),
    ),
    IpReachability(6, (IpReach(IPV6, 32, False, True, tags=(78,), flags=0x20),)),
    IpReachability(4, (IpReach(parse_prefix("10.6.0.0/16"), 33),), 2),
    IpReachability(6, (IpReach(IPV6, 34, True),), 2),
)
SPEED = FloodingParameters(20, 250, 90, b"\0", 100, 200)
HELLO_TLVS = (AREA, ProtocolsSupported((0xCC, 0x8E)), InterfaceAddresses(4, (0x0A800000,)))
ENTRIES = LspEntries(tuple(LspEntry(lsp_id(R1, 0, n), 7 + n, 1199, 0xABC0 + n) for n in range(40)))
PDUS = (
    LanHello(1, LevelSet.BOTH, R1, 30, 64, R1 << 8 | 1, (*HELLO_TLVS, IsNeighbors((0x02AA,)))),
    LanHello(2, LevelSet.TWO, R1, 30, 64, R1 << 8 | 1, (*HELLO_TLVS, Padding(255), Padding(9))),
    P2pHello(LevelSet.TWO, R1, 30, 1, (*HELLO_TLVS, ThreeWay(1, 3, R2, 4))),
    P2pHello(LevelSet.TWO, R1, 30, 1, (*HELLO_TLVS, ThreeWay(2, 3))),
    P2pHello(LevelSet.TWO, R1, 30, 1, (*HELLO_TLVS, SPEED)),
    Lsp(1, lsp_id(R1, 2, 3), 8, 1199, attached=True, overload=True, tlvs=LSP_TLVS),
    Lsp(2, lsp_id(R1), 9, 1199, tlvs=LSP_TLVS),
    Lsp(2, lsp_id(R1), 10, 0, tlvs=(PurgeOriginator(R1, R2), Hostname("leaf1"))),
    Csnp(1, R1 << 8, FIRST_LSP, LAST_LSP, (ENTRIES,)),
    Psnp(2, R1 << 8, (ENTRIES,)),
)


def signed():
    """One PDU of each kind under each algorithm."""
    for algorithm in Algorithm:
        for pdu in PDUS:
            yield encode_pdu(pdu, AuthKey(algorithm, 7, b"secret"))


@pytest.fixture(scope="module")
def dissected(tmp_path_factory):
    """The output of ``tshark -V``."""
    pdus = (*map(encode_pdu, PDUS), *signed())
    return dissect(tmp_path_factory.mktemp("tshark"), ETHERNET, map(framed, pdus))


def framed(pdu: bytes) -> bytes:
    """A PDU with an LLC header, to all intermediate systems."""
    body = b"\xfe\xfe\x03" + pdu
    return bytes.fromhex("09002b000005020000000001") + struct.pack(">H", len(body)) + body


def test_nothing_is_malformed(dissected):
    assert_sound(dissected)


def test_every_lsp_checksum_is_right(dissected):
    lsps = 3 * (1 + len(Algorithm))
    assert dissected.count("[correct]") + dissected.count("Checksum Status: Good") >= lsps


@pytest.mark.parametrize(
    "line",
    [
        "Area address (3): 49.0001",
        "Hostname: leaf1",
        "10.7.0.0/16",
        "fd00:1::/64",
    ],
)
def test_values_are_ours(dissected, line):
    assert line in dissected
