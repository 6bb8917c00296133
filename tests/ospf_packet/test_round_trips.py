"""What is encoded decodes to the same thing: every LSA body, every packet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.wire import Reader
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import decode_lsa, encode_lsa, lsa_checksum_ok, with_age
from tests.ospf_packet.strategies import BODIES, PACKETS, i32, lsas, u8, u16, u32


@pytest.mark.parametrize("name", BODIES)
@given(data=st.data())
def test_every_body_survives(name, data):
    ls_type, link_state_id, bodies = BODIES[name]
    body = data.draw(bodies)
    lsa = encode_lsa(
        ls_age=data.draw(u16),
        options=data.draw(u8),
        ls_type=ls_type,
        link_state_id=link_state_id,
        advertising_router=data.draw(u32),
        ls_sequence_number=data.draw(i32),
        body=encode_body(body),
    )
    assert decode_body(lsa) == body
    assert lsa_checksum_ok(lsa)
    assert decode_lsa(Reader(lsa.raw)) == lsa


@pytest.mark.parametrize("name", PACKETS)
@given(data=st.data())
def test_every_packet_survives(name, data):
    body = data.draw(PACKETS[name])
    au_type = data.draw(st.sampled_from([0, 1, 2, 3]))
    authentication = data.draw(st.binary(min_size=8, max_size=8))
    payload = encode_packet(1, 2, body, au_type=au_type, authentication=authentication)
    packet = decode_packet(payload)
    assert packet.body == body
    assert packet.packet_type.label == name
    assert (packet.router_id, packet.area_id) == (1, 2)
    assert (packet.au_type, packet.authentication) == (au_type, authentication)


@given(lsas(), u16)
def test_another_age_is_the_same_instance(lsa, age):
    """Flooding ages LSAs: key, sequence, checksum and body stay, and the bytes agree."""
    older = with_age(lsa, age)
    assert older.header.ls_age == age
    assert older.raw[2:] == lsa.raw[2:]
    assert lsa_checksum_ok(older)
    assert decode_lsa(Reader(older.raw)) == older
