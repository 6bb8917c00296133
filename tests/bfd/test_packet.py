"""The codec: round trips, and any bytes give a value or DecodeError."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.bfd.packet import (
    AuthSection,
    ControlPacket,
    State,
    decode_packet,
    diagnostic_label,
    discard_reason,
    encode_packet,
)
from tests.packets.damage import attempt, mutate

U32 = st.integers(0, 0xFFFFFFFF)
PACKETS = st.builds(
    ControlPacket,
    state=st.sampled_from(State),
    my_discriminator=U32,
    your_discriminator=U32,
    detect_mult=st.integers(0, 255),
    desired_min_tx=U32,
    required_min_rx=U32,
    required_min_echo_rx=U32,
    diagnostic=st.integers(0, 31),
    poll=st.booleans(),
    final=st.booleans(),
    control_plane_independent=st.booleans(),
    demand=st.booleans(),
    multipoint=st.booleans(),
    authentication=st.none()
    | st.builds(AuthSection, st.integers(0, 255), st.integers(0, 255), st.binary(max_size=100)),
)
UP_PACKET = bytes.fromhex("20c003185dc1a4e1a29c1f77000493e0000493e00000c350")


@given(PACKETS)
def test_packets_survive_encoding_and_decoding(packet):
    assert decode_packet(encode_packet(packet)) == packet


@given(PACKETS, st.binary(max_size=30))
def test_bytes_after_the_packet_are_ignored(packet, more):
    assert decode_packet(encode_packet(packet) + more) == packet


@given(st.binary(max_size=60))
def test_any_bytes_give_a_packet_or_a_decode_error(data):
    attempt(decode_packet, data)


@given(PACKETS, st.integers(0, 2**32))
def test_damaged_packets_give_a_packet_or_a_decode_error(packet, seed):
    attempt(decode_packet, mutate(encode_packet(packet), random.Random(seed), 2))


@pytest.mark.rfc("RFC 5880 §4.1")
def test_fields_are_where_the_rfc_has_them():
    packet = decode_packet(UP_PACKET)
    assert packet == ControlPacket(
        state=State.UP,
        my_discriminator=0x5DC1A4E1,
        your_discriminator=0xA29C1F77,
        detect_mult=3,
        desired_min_tx=300_000,
        required_min_rx=300_000,
        required_min_echo_rx=50_000,
    )
    assert encode_packet(packet) == UP_PACKET


@pytest.mark.rfc("RFC 5880 §6.8.6")
@pytest.mark.parametrize("length", [23, 25, 255])
def test_a_wrong_length_is_refused(length):
    data = bytearray(UP_PACKET)
    data[3] = length
    assert attempt(decode_packet, bytes(data)) is None


@pytest.mark.rfc("RFC 5880 §6.8.6")
def test_another_version_is_refused():
    assert attempt(decode_packet, b"\x40" + UP_PACKET[1:]) is None


@pytest.mark.parametrize("values", [{"detect_mult": 256}, {"diagnostic": 32}])
def test_values_that_do_not_fit_are_not_encoded(values):
    packet = {"my_discriminator": 1, "your_discriminator": 0, "detect_mult": 3} | values
    with pytest.raises(ValueError, match="fit"):
        encode_packet(
            ControlPacket(state=State.DOWN, desired_min_tx=1, required_min_rx=1, **packet)
        )


@pytest.mark.rfc("RFC 5880 §6.8.6")
@given(PACKETS)
def test_packets_that_no_session_may_accept_have_a_reason(packet):
    # RFC 5880 §6.8.6
    refused = (
        packet.detect_mult == 0
        or packet.multipoint
        or packet.my_discriminator == 0
        or (packet.your_discriminator == 0 and packet.state in (State.INIT, State.UP))
        or (packet.poll and packet.final)
    )
    assert (discard_reason(packet) is not None) == refused


def test_diagnostics_have_words_and_unassigned_ones_a_number():
    assert diagnostic_label(1) == "control detection time expired"
    assert diagnostic_label(31) == "diagnostic 31"
