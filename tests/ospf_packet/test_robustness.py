"""Whatever bytes arrive, a decoder returns a value or raises DecodeError: nothing else."""

import random
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fared.core.wire import DecodeError, Reader
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.ospf.auth.signature import read_auth, verify
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import DecodedUpdates, decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import (
    Lsa,
    LsaHeader,
    decode_headers,
    decode_lsa,
    lsa_checksum_ok,
)
from fared.protocols.ospf.packet.packets import LsUpdate, Packet
from fared.protocols.ospf.packet.render import render_lsa, render_packet
from tests.packets.damage import attempt, mutate
from tests.packets.recorded import OSPF, load

KEYS = [None, *(AuthKey(algorithm, 1, b"key") for algorithm in Algorithm)]


def use(packet: Packet) -> None:
    """Everything that is done to a packet which decoded."""
    render_packet(packet)
    if isinstance(packet.body, LsUpdate):
        for lsa in packet.body.lsas:
            lsa_checksum_ok(lsa)
            attempt(decode_body, lsa)


def as_decoded(payload: bytes) -> object:
    """What a packet is encoded to again, or why it cannot be decoded."""
    return encoded_again(payload, packed=False)


def as_packed(payload: bytes) -> object:
    """The same by way of LSAs and headers that remain bytes."""
    return encoded_again(payload, packed=True)


def as_repeated(payload: bytes) -> object:
    """The same of a packet whose LSAs may have come before."""
    updates = DecodedUpdates()
    first = encoded_again(payload, packed=True, updates=updates)
    assert encoded_again(payload, packed=True, updates=updates) == first
    return first


def encoded_again(payload: bytes, *, packed: bool, updates: DecodedUpdates | None = None) -> object:
    try:
        body = decode_packet(payload, verify_checksum=False, packed=packed, updates=updates).body
    except DecodeError as error:
        return error.code, error.offset, error.what
    return encode_packet(1, 2, body)


def exercise(payload: bytes) -> None:
    """All decoders over the same bytes."""
    packet = attempt(decode_packet, payload, verify_checksum=False)
    if packet is not None:
        use(packet)
    attempt(decode_packet, payload)
    assert as_packed(payload) == as_repeated(payload) == as_decoded(payload)
    attempt(read_auth, payload)
    for key in KEYS:
        attempt(verify, payload, key)


@given(st.binary(max_size=120))
@example(b"")
def test_any_bytes_as_a_packet(data):
    exercise(data)


@given(st.integers(1, 5), st.integers(0, 3), st.binary(max_size=120))
def test_any_bytes_behind_a_good_header(kind, au_type, data):
    """With version, type and length right, the bytes reach the decoders of the bodies."""
    exercise(struct.pack(">BBHIIHH8s", 2, kind, 24 + len(data), 1, 0, 0, au_type, bytes(8)) + data)


@given(st.integers(0, 12), st.sampled_from([0, 1, 4, 7, 9]), st.binary(max_size=120))
def test_any_bytes_as_an_lsa_body(ls_type, opaque_type, data):
    header = LsaHeader(0, 2, ls_type, opaque_type << 24, 1, 1, 0, 20 + len(data))
    lsa = Lsa(header, bytes(20) + data)
    attempt(decode_body, lsa)
    render_lsa(lsa)


@given(st.binary(max_size=60))
def test_any_bytes_as_an_lsa(data):
    attempt(decode_headers, Reader(data))
    lsa = attempt(decode_lsa, Reader(data))
    if lsa is not None:
        assert len(lsa.raw) == lsa.header.length
        attempt(decode_body, lsa)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_recorded_packets(seed):
    """Thousands of packets that are almost right."""
    rng = random.Random(seed)
    recorded = [packet.payload for packet in load(*OSPF)]
    for _ in range(1500):
        payload = rng.choice(recorded)
        for _ in range(rng.randint(1, 3)):
            payload = mutate(payload, rng, 2) or b"\0"
        exercise(payload)


def receive(payload: bytes, key: AuthKey | None) -> Packet:
    """What is done to a packet on arrival."""
    verify(payload, key)
    return decode_packet(payload)


def test_one_flipped_bit_is_noticed():
    """Every single flipped bit of a checksummed or signed packet makes it refused."""
    for comment, payload in load(*OSPF):
        key = None
        if payload[15]:
            algorithm, _, text = comment.partition(" ")
            known = {a.value: a for a in Algorithm}
            key = (
                AuthKey(known[algorithm], 7, text.split()[1].encode())
                if algorithm in known
                else AuthKey(Algorithm.MD5, 1, b"fabricsecret")
            )
        for bit in range(0, len(payload) * 8, 7):
            if 16 * 8 <= bit < 24 * 8 and key is None:
                continue  # the unused authentication field is covered by nothing
            broken = bytearray(payload)
            broken[bit // 8] ^= 1 << bit % 8
            with pytest.raises(DecodeError):
                receive(bytes(broken), key)
