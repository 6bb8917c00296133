"""PDUs of FRR decode to its configuration, and encode to the same bytes."""

import re

import pytest

from fared.core.ids import parse_dotted, parse_prefix, parse_system_id
from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.ids import LevelSet, format_lsp_id
from fared.protocols.isis.pdu.auth import sign, verify
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu, read_pdu
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.render import render_pdu
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    Authentication,
    Hostname,
    IpReachability,
    IsReachability,
    LspEntries,
    MultiTopology,
    NarrowIpReachability,
    NarrowIsReachability,
    ProtocolsSupported,
    PurgeOriginator,
    TeRouterId,
    ThreeWay,
    of_type,
)
from tests.packets.recorded import ISIS, ISIS_LAN, ISIS_P2P, load

R1, R2 = parse_system_id("0102.5500.0001"), parse_system_id("0102.5500.0002")


def pdus(session, kind):
    decoded = [decode_pdu(recorded.payload, strict=True) for recorded in load(session)]
    return [pdu for pdu in decoded if isinstance(pdu, kind)]


def tlvs(session, kind):
    return [tlv for pdu in pdus(session, Lsp) for tlv in of_type(pdu.tlvs, kind)]


def test_every_pdu_encodes_to_the_bytes_sent():
    for recorded in load(*ISIS):
        assert encode_pdu(decode_pdu(recorded.payload, strict=True)) == recorded.payload


def test_sessions_have_every_kind_of_pdu():
    assert all(pdus(ISIS_P2P, kind) for kind in (P2pHello, Lsp, Csnp, Psnp))
    assert {hello.level for hello in pdus(ISIS_LAN, LanHello)} == {1, 2}
    assert {lsp.level for lsp in pdus(ISIS_LAN, Lsp)} == {1, 2}


def test_wireshark_reads_the_same_headers():
    """The comment above each PDU is tshark's."""
    for comment, payload in load(*ISIS):
        pdu = decode_pdu(payload)
        if isinstance(pdu, Lsp):
            found = re.search(r"LSP-ID: (\S+), Sequence: (\S+), Lifetime: (\d+)s", comment)
            sequence = f"{pdu.sequence_number:#010x}"
            expected = (format_lsp_id(pdu.lsp_id), sequence, str(pdu.remaining_lifetime))
            assert found is not None
            assert found.groups() == expected
        else:
            assert render_pdu(pdu)["source"] in comment


def test_point_to_point_adjacency_goes_through_its_three_states():
    adjacencies = [of_type(hello.tlvs, ThreeWay)[0] for hello in pdus(ISIS_P2P, P2pHello)]
    assert {adjacency.state for adjacency in adjacencies} >= {0, 2}
    assert {a.neighbor_system_id for a in adjacencies} == {None, R1, R2}


def test_hello_fields():
    hello = pdus(ISIS_P2P, P2pHello)[0]
    assert hello.circuit_type is LevelSet.TWO
    assert hello.holding_time == 3
    assert of_type(hello.tlvs, AreaAddresses) == (AreaAddresses((b"\x49\0\1",)),)
    assert of_type(hello.tlvs, ProtocolsSupported) == (
        ProtocolsSupported((NLPID_IPV4, NLPID_IPV6)),
    )


def test_te_link_carries_what_was_configured():
    links = [
        link
        for tlv in tlvs(ISIS_P2P, IsReachability)
        if tlv.topology is None
        for link in tlv.neighbors
        if link.neighbor == R2 << 8 and link.remote_addresses
    ]
    link = links[-1]
    assert link.local_addresses == (parse_dotted("10.128.0.0"),)
    assert link.remote_addresses == (parse_dotted("10.128.0.1"),)
    te = link.attributes
    assert (te.max_bandwidth, te.max_reservable_bandwidth) == (12.5e6, 10e6)
    assert te.unreserved_bandwidth == (10e6,) * 8
    assert (te.admin_group, te.te_metric) == (0xABCD, 10)
    assert (te.delay, te.min_max_delay, te.delay_variation) == (10, (5, 20), 3)
    assert (te.residual_bandwidth, te.available_bandwidth) == (9e6, 1e6)
    assert te.utilized_bandwidth == 1e6


def test_ipv6_topology_has_links_and_prefixes_of_its_own():
    assert any(tlv.topology == 2 for tlv in tlvs(ISIS_P2P, IsReachability))
    prefixes = {
        reach.prefix
        for tlv in tlvs(ISIS_P2P, IpReachability)
        if tlv.topology == 2
        for reach in tlv.prefixes
    }
    assert parse_prefix("fd00:128::/127") in prefixes
    topologies = tlvs(ISIS_P2P, MultiTopology)[0].topologies
    assert [t.topology for t in topologies] == [0, 2]


def test_names_and_router_ids():
    assert {tlv.name for tlv in tlvs(ISIS_P2P, Hostname)} == {"r1", "r2"}
    assert TeRouterId(parse_dotted("10.255.0.1")) in tlvs(ISIS_P2P, TeRouterId)


def test_overload_bit():
    assert {lsp.overload for lsp in pdus(ISIS_P2P, Lsp)} == {False, True}


def test_purge_says_who_purged():
    """RFC 6232: R2 became designated IS and purged the pseudonode of R1."""
    purges = [lsp for lsp in pdus(ISIS_LAN, Lsp) if not lsp.remaining_lifetime]
    assert {purge.lsp_id >> 16 for purge in purges} == {R1}
    assert of_type(purges[0].tlvs, PurgeOriginator) == (PurgeOriginator(R2),)


def test_lsp_entries_of_snps():
    entries = [
        entry
        for pdu in pdus(ISIS_P2P, Csnp) + pdus(ISIS_P2P, Psnp)
        for tlv in of_type(pdu.tlvs, LspEntries)
        for entry in tlv.entries
    ]
    assert {entry.lsp_id >> 16 for entry in entries} == {R1, R2}


def test_narrow_metrics_stand_beside_wide_ones():
    assert any(
        n.metric == 10 for tlv in tlvs(ISIS_LAN, NarrowIsReachability) for n in tlv.neighbors
    )
    narrow = {r.prefix for tlv in tlvs(ISIS_LAN, NarrowIpReachability) for r in tlv.prefixes}
    assert parse_prefix("10.255.0.1/32") in narrow


def test_pseudonode_and_attached_bit():
    lsps = pdus(ISIS_LAN, Lsp)
    assert any(lsp.lsp_id >> 8 & 0xFF for lsp in lsps)
    assert any(lsp.attached for lsp in lsps if lsp.level == 1)


def test_area_addresses_of_different_lengths():
    areas = (b"\x49\0\1", bytes.fromhex("4900000002000300040005"))
    assert AreaAddresses(areas) in tlvs(ISIS_LAN, AreaAddresses)


def key_of(pdu):
    secret = "hello" if isinstance(pdu, LanHello) else "area" if pdu.level == 1 else "domain"
    return AuthKey(Algorithm.MD5, 0, f"{secret}secret".encode())


def test_hmac_md5_of_frr_is_verified_and_reproduced():
    """Our authentication TLV is the first; TLVs in the order of FRR give the same digest."""
    for _, payload in load(ISIS_LAN):
        pdu = decode_pdu(payload)
        key = key_of(pdu)
        raw = read_pdu(payload)
        verify(raw, pdu, (TimedKey(key),), 0.0)
        wrong = AuthKey(Algorithm.MD5, 0, b"wrong")
        with pytest.raises(DecodeError):
            verify(raw, pdu, (TimedKey(wrong),), 0.0)
        if isinstance(pdu.tlvs[0], Authentication):
            assert encode_pdu(pdu, key) == payload
            assert sign(encode_pdu(without_authentication(pdu)), key) == payload


def without_authentication(pdu):
    kept = tuple(tlv for tlv in pdu.tlvs if not isinstance(tlv, Authentication))
    return type(pdu)(
        **{name: getattr(pdu, name) for name in pdu.__struct_fields__ if name != "tlvs"}, tlvs=kept
    )
