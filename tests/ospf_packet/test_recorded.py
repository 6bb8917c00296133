"""Packets of FRR and BIRD decode to what was configured, and encode to the very same bytes."""

import pytest

from fared.core.ids import dotted, parse_dotted
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.ospf.auth.signature import sign, verify
from fared.protocols.ospf.packet.bodies import (
    AsExternalLsa,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
    SummaryLsa,
)
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet, packet_length
from fared.protocols.ospf.packet.lsa import encode_lsa, lsa_checksum_ok
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.packets import DatabaseDescription, Hello, LsUpdate, Options
from fared.protocols.ospf.packet.router_info import RouterInformation
from tests.packets.recorded import OSPF, load

POINT_TO_POINT, LAN, HMAC = OSPF
R1, R2 = parse_dotted("10.255.0.1"), parse_dotted("10.255.0.2")
W1, W2 = parse_dotted("10.128.0.0"), parse_dotted("10.128.0.1")


def packets(session):
    return [decode_packet(recorded.payload) for recorded in load(session)]


def lsas(session):
    return [
        lsa
        for packet in packets(session)
        if isinstance(packet.body, LsUpdate)
        for lsa in packet.body.lsas
    ]


def bodies(session, kind):
    return [
        (lsa.header, body) for lsa in lsas(session) if isinstance(body := decode_body(lsa), kind)
    ]


def test_a_session_has_all_five_packets():
    kinds = {packet.packet_type.label for packet in packets(POINT_TO_POINT)}
    assert kinds == {"hello", "database-description", "ls-request", "ls-update", "ls-ack"}


@pytest.mark.parametrize("session", [POINT_TO_POINT, LAN])
def test_every_lsa_checksum_of_frr_holds(session):
    assert lsas(session)
    assert all(lsa_checksum_ok(lsa) for lsa in lsas(session))


@pytest.mark.parametrize("session", [POINT_TO_POINT, LAN])
def test_every_lsa_encodes_to_the_bytes_frr_sent(session):
    for lsa in lsas(session):
        header = lsa.header
        again = encode_lsa(
            ls_age=header.ls_age,
            options=header.options,
            ls_type=header.ls_type,
            link_state_id=header.link_state_id,
            advertising_router=header.advertising_router,
            ls_sequence_number=header.ls_sequence_number,
            body=encode_body(decode_body(lsa)),
        )
        assert again == lsa


def test_every_packet_encodes_to_the_bytes_sent():
    for recorded in load(*OSPF):
        packet = decode_packet(recorded.payload)
        again = encode_packet(
            packet.router_id,
            packet.area_id,
            packet.body,
            au_type=packet.au_type,
            authentication=packet.authentication,
        )
        assert again == recorded.payload[: packet_length(recorded.payload)]


def test_hello_says_who_is_heard():
    first, *_, last = [p for p in packets(POINT_TO_POINT) if isinstance(p.body, Hello)]
    assert first.body == Hello(0xFFFFFFFE, 1, Options.E, 1, 4, 0, 0, ())
    assert last.body.neighbors in {(R1,), (R2,)}


def test_opaque_capability_is_told_in_database_descriptions():
    """RFC 5250 §4.1: the O bit belongs there, FRR does not set it in hellos."""
    descriptions = [
        p.body for p in packets(POINT_TO_POINT) if isinstance(p.body, DatabaseDescription)
    ]
    assert all(body.options == Options.E | Options.O for body in descriptions)
    assert all(body.interface_mtu == 1500 for body in descriptions)


def test_point_to_point_link_in_a_router_lsa():
    links = [
        link
        for header, body in bodies(POINT_TO_POINT, RouterLsa)
        for link in body.links
        if header.advertising_router == R1
    ]
    assert RouterLink(RouterLinkType.POINT_TO_POINT, R2, W1, 10) in links
    assert RouterLink(RouterLinkType.STUB, W1, 0xFFFFFFFE, 10) in links


def test_network_lsa_of_the_designated_router():
    header, body = bodies(LAN, NetworkLsa)[0]
    assert dotted(header.link_state_id) == "10.128.0.1"
    assert body == NetworkLsa(0xFFFFFFFE, (R1, R2))


def test_summary_from_the_area_border_router():
    header, body = bodies(POINT_TO_POINT, SummaryLsa)[0]
    assert dotted(header.link_state_id) == "10.2.0.0"
    assert body.network_mask == 0xFFFFFF00
    assert header.advertising_router == R2


def test_default_route_from_outside():
    header, body = bodies(POINT_TO_POINT, AsExternalLsa)[0]
    assert header.link_state_id == 0
    assert body == AsExternalLsa(0, True, 7, 0, 0)


def test_te_link_carries_what_was_configured():
    """FRR puts the router address in front of the link, in the same LSA."""
    links = {header.advertising_router: body for header, body in bodies(POINT_TO_POINT, TeLink)}
    link = links[R1]
    assert (link.link_type, link.link_id, link.router_address) == (1, R2, R1)
    assert (link.local_addresses, link.remote_addresses) == ((W1,), (W2,))
    te = link.attributes
    assert te.max_bandwidth == 12.5e6
    assert te.max_reservable_bandwidth == 10e6
    assert te.unreserved_bandwidth == (10e6,) * 8
    assert te.admin_group == 0xABCD
    assert (te.te_metric, te.delay, te.min_max_delay, te.delay_variation) == (10, 10, (5, 20), 3)
    assert (te.residual_bandwidth, te.available_bandwidth) == (9e6, 4e6)
    assert te.utilized_bandwidth == 1e6
    assert te.capacity == 9e6
    assert links[R2].attributes.available == 8e6


def test_router_information_of_frr():
    """Bit 3 from the left: the traffic engineering capability (RFC 7770 §2.4)."""
    assert (R1, RouterInformation(capabilities=1 << 28)) in [
        (header.advertising_router, body)
        for header, body in bodies(POINT_TO_POINT, RouterInformation)
    ]


def test_md5_of_frr_is_verified_and_reproduced():
    key = AuthKey(Algorithm.MD5, 1, b"fabricsecret")
    for recorded in load(LAN):
        info = verify(recorded.payload, key)
        assert info.sequence > 0
        length = packet_length(recorded.payload)
        assert sign(recorded.payload[:length], key, info.sequence) == recorded.payload


def test_hmac_sha_of_bird_is_verified_and_reproduced():
    names = set()
    for comment, payload in load(HMAC):
        name, key_id, text = comment.split()
        names.add(name)
        key = AuthKey(Algorithm(name), int(key_id), text.encode())
        info = verify(payload, key)
        assert sign(payload[: packet_length(payload)], key, info.sequence) == payload
    assert len(names) == 4
