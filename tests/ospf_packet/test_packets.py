"""Packets: fields of the header, and all reasons of rejection."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.checksum import internet_checksum
from fared.core.wire import DecodeError, Reader
from fared.protocols.ospf.packet.codec import (
    DecodedUpdates,
    decode_packet,
    encode_packet,
    packet_length,
)
from fared.protocols.ospf.packet.lsa import LsaKey, decode_lsa, encode_lsa
from fared.protocols.ospf.packet.packets import Hello, LsAck, LsRequest, LsUpdate

HELLO = Hello(0xFFFFFF00, 10, 2, 1, 40, 0, 0, (2, 3))
LSA = encode_lsa(
    ls_age=0,
    options=2,
    ls_type=1,
    link_state_id=1,
    advertising_router=1,
    ls_sequence_number=-0x7FFFFFFF,
    body=bytes(4),
)


def packet(
    kind: int, body: bytes, *, version: int = 2, length: int | None = None, au_type: int = 0
):
    """A packet whose checksum is right whatever else is wrong."""
    size = 24 + len(body) if length is None else length
    head = struct.pack(">BBHIIHH8x", version, kind, size, 1, 0, 0, au_type)
    checksum = internet_checksum((head + body)[:size])
    return head[:12] + checksum.to_bytes(2, "big") + head[14:] + body


def refused(payload: bytes) -> tuple[str, int]:
    with pytest.raises(DecodeError) as caught:
        decode_packet(payload)
    return caught.value.code, caught.value.offset


def test_a_hello_of_frr_by_hand():
    wire = (
        "0201 0030 0aff0001 00000000 e5c8 0000 0000000000000000"
        "fffffffe 0001 02 01 00000004 00000000 00000000 0aff0002"
    )
    hello = Hello(0xFFFFFFFE, 1, 2, 1, 4, 0, 0, (0x0AFF0002,))
    assert encode_packet(0x0AFF0001, 0, hello) == bytes.fromhex(wire)


def test_what_follows_the_length_is_not_ours():
    """A digest or an LLS block (RFC 5613) comes after the packet."""
    payload = encode_packet(1, 0, HELLO)
    assert decode_packet(payload + b"LLS block of some length").body == HELLO
    assert packet_length(payload + bytes(16)) == len(payload)


def test_a_packet_shorter_than_its_length():
    payload = encode_packet(1, 0, HELLO)
    assert refused(payload[:-1]) == ("truncated", len(payload) - 1)
    assert refused(payload[:23]) == ("truncated", 23)
    assert refused(b"") == ("truncated", 0)


def test_header_fields_that_are_wrong():
    assert refused(packet(1, bytes(20), version=3)) == ("version", 0)
    assert refused(packet(0, bytes(20))) == ("type", 1)
    assert refused(packet(6, bytes(20))) == ("type", 1)
    assert refused(packet(1, bytes(20), length=23)) == ("length", 2)
    assert refused(packet(1, bytes(20), au_type=4)) == ("auth", 14)


def test_the_checksum_is_verified():
    payload = bytearray(encode_packet(1, 0, HELLO))
    payload[30] ^= 1
    assert refused(bytes(payload)) == ("checksum", 12)
    assert decode_packet(bytes(payload), verify_checksum=False).router_id == 1


@pytest.mark.parametrize("size", [24, 25])
def test_the_checksum_of_a_known_update_is_verified_with_each_header(size):
    updates = DecodedUpdates()
    raw = LSA.raw[:18] + size.to_bytes(2, "big") + bytes(range(size - 20))
    update = LsUpdate((), (raw,))
    first, second = (bytearray(encode_packet(router, 0, update)) for router in (1, 2))
    known = decode_packet(bytes(first), packed=True, updates=updates)
    again = decode_packet(bytes(second), packed=True, updates=updates)
    assert again.body is known.body
    assert (known.router_id, again.router_id) == (1, 2)
    second[7] ^= 4
    with pytest.raises(DecodeError, match="checksum"):
        decode_packet(bytes(second), packed=True, updates=updates)
    second[7] ^= 4
    second[-1] ^= 4
    with pytest.raises(DecodeError, match="checksum"):
        decode_packet(bytes(second), packed=True, updates=updates)


UPDATES = [
    LsUpdate((), tuple(LSA.raw[:18] + size.to_bytes(2, "big") + bytes(size - 20) for size in sizes))
    for sizes in ((24,), (25,), (24, 28), ())
]


def decoded(raw: bytes, updates: DecodedUpdates | None) -> object:
    try:
        return decode_packet(raw, packed=True, updates=updates)
    except DecodeError as error:
        return error.code, error.offset, str(error)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(UPDATES),
            st.integers(1, 2),
            st.none() | st.tuples(st.integers(0, 90), st.integers(1, 255)),
        ),
        max_size=40,
    )
)
def test_updates_decoded_once_equal_those_decoded_each_time(packets):
    """Damaged ones, too."""
    updates = DecodedUpdates()
    for update, router, damage in packets:
        raw = bytearray(encode_packet(router, 0, update))
        if damage is not None:
            place, bits = damage
            raw[place % len(raw)] ^= bits
        assert decoded(bytes(raw), updates) == decoded(bytes(raw), None)


def test_the_checksum_leaves_the_password_out():
    """RFC 2328 §D.4.2."""
    plain = encode_packet(1, 0, HELLO, au_type=1)
    secret = encode_packet(1, 0, HELLO, au_type=1, authentication=b"password")
    assert plain[12:14] == secret[12:14]
    assert decode_packet(secret).authentication == b"password"


@pytest.mark.parametrize("au_type", [2, 3])
def test_a_digest_replaces_the_checksum(au_type):
    """RFC 2328 §D.4.3: sent as zero, not looked at."""
    payload = bytearray(encode_packet(1, 0, HELLO, au_type=au_type))
    assert payload[12:14] == bytes(2)
    payload[12] = 7
    assert decode_packet(bytes(payload)).body == HELLO


@pytest.mark.parametrize(
    ("kind", "size", "code"),
    [
        (1, 19, "truncated"),
        (1, 22, "length"),
        (2, 7, "truncated"),
        (2, 8 + 19, "length"),
        (3, 11, "length"),
        (4, 3, "truncated"),
        (5, 21, "length"),
    ],
)
def test_bodies_with_broken_lists(kind, size, code):
    assert refused(packet(kind, bytes(size)))[0] == code


def test_an_update_must_hold_as_many_lsas_as_it_says():
    two = LSA.raw * 2
    assert len(decode_packet(packet(4, struct.pack(">I", 2) + two)).body.lsas) == 2
    assert refused(packet(4, struct.pack(">I", 1) + two)) == ("length", 28 + 24)
    assert refused(packet(4, struct.pack(">I", 3) + two)) == ("length", 24)
    assert refused(packet(4, struct.pack(">I", 0xFFFFFFFF) + two)) == ("length", 24)


def test_an_lsa_inside_an_update_stays_in_its_bounds():
    long = LSA.raw[:18] + b"\xff\xff" + LSA.raw[20:]
    short = LSA.raw[:18] + b"\x00\x13" + LSA.raw[20:]
    assert refused(packet(4, struct.pack(">I", 1) + long))[0] == "truncated"
    assert refused(packet(4, struct.pack(">I", 1) + short)) == ("length", 28 + 18)


def test_updates_pass_lsas_on_unjudged():
    """A wrong LSA checksum or an unknown type is for the flooding procedure to see."""
    odd = LSA.raw[:3] + b"\xc8" + LSA.raw[4:]
    update = decode_packet(packet(4, struct.pack(">I", 1) + odd)).body
    assert update.lsas[0].raw == odd
    assert encode_packet(1, 0, update)[24:] == struct.pack(">I", 1) + odd


def test_empty_lists_are_fine():
    for body in (LsRequest(()), LsUpdate(()), LsAck(())):
        assert decode_packet(encode_packet(1, 0, body)).body == body


def test_requests_name_lsas_by_their_key():
    request = LsRequest((LsaKey(1, 2, 3), LsaKey(0xFFFFFFFF, 0, 0)))
    assert decode_packet(encode_packet(1, 0, request)).body == request
    assert LSA.header.key == LsaKey(1, 1, 1)


def test_a_packet_longer_than_its_length_field():
    with pytest.raises(ValueError, match="does not fit"):
        encode_packet(1, 0, LsUpdate((LSA,) * 3000))


def test_an_lsa_knows_its_own_end():
    reader = Reader(LSA.raw + b"next")
    assert decode_lsa(reader) == LSA
    assert reader.rest() == b"next"
