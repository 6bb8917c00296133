"""Keyed SHA1 (RFC 5880 §6.7.4): digests, and the order of sequence numbers."""

import hashlib

import pytest

from fared.core.bfd import Sha1Key
from fared.protocols.bfd.auth import Verifier, sign
from fared.protocols.bfd.packet import ControlPacket, State, decode_packet, encode_packet

PACKET = ControlPacket(State.UP, 1, 2, 3, 300_000, 300_000)
METICULOUS, PLAIN = Sha1Key(7, b"fabric"), Sha1Key(7, b"fabric", meticulous=False)


def problem(verifier, key, sequence):
    payload = sign(PACKET, key, sequence)
    return verifier.problem(decode_packet(payload), payload)


@pytest.mark.rfc("RFC 5880 §6.7.4")
@pytest.mark.parametrize("key", [METICULOUS, PLAIN])
def test_the_digest_covers_the_packet_with_the_key_in_its_place(key):
    data = sign(PACKET, key, 9)
    assert len(data) == data[3] == 52
    assert data[24:28] == bytes((5 if key.meticulous else 4, 28, 7, 0))
    padded = data[:32] + b"fabric".ljust(20, b"\0")
    assert data[32:] == hashlib.sha1(padded).digest()
    assert problem(Verifier(key), key, 9) is None


@pytest.mark.rfc("RFC 5880 §6.7.4")
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Sha1Key(7, b"other"), "auth-digest"),
        (Sha1Key(8, b"fabric"), "auth-key-id"),
        (PLAIN, "auth-type"),
    ],
)
def test_packets_of_another_key_are_refused(other, reason):
    assert problem(Verifier(METICULOUS), other, 1) == reason


@pytest.mark.rfc("RFC 5880 §6.8.6")
def test_packets_without_authentication_and_damaged_ones_are_refused():
    verifier = Verifier(METICULOUS)
    assert verifier.problem(PACKET, encode_packet(PACKET)) == "auth-type"
    payload = bytearray(sign(PACKET, METICULOUS, 1))
    payload[16] ^= 1
    assert verifier.problem(decode_packet(bytes(payload)), bytes(payload)) == "auth-digest"


@pytest.mark.rfc("RFC 5880 §6.7.4")
@pytest.mark.parametrize(("key", "least"), [(METICULOUS, 1), (PLAIN, 0)])
def test_sequence_numbers_advance_within_three_detection_multipliers(key, least):
    verifier = Verifier(key)
    start = 2**32 - 2
    assert problem(verifier, key, start) is None
    assert problem(verifier, key, (start + 9) % 2**32) is None
    for ahead in (least - 1, 10):
        assert problem(verifier, key, (start + 9 + ahead) % 2**32) == "auth-sequence"
    assert problem(verifier, key, (start + 9 + least) % 2**32) is None


def test_a_forged_sequence_number_moves_nothing():
    verifier = Verifier(METICULOUS)
    assert problem(verifier, METICULOUS, 10) is None
    assert problem(verifier, Sha1Key(7, b"other"), 15) == "auth-digest"
    assert problem(verifier, METICULOUS, 11) is None


def test_the_secret_is_not_in_the_repr():
    assert "fabric" not in repr(METICULOUS)
