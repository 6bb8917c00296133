"""Authentication: what is signed verifies, under that key and no other."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.ospf.auth.signature import (
    AuthInfo,
    au_type_of,
    overhead_of,
    read_auth,
    sign,
    verify,
)
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.packets import AuType, Hello

HELLO = encode_packet(1, 0, Hello(0xFFFFFF00, 10, 2, 1, 40, 0, 0, ()))
SOURCE = 0x0A800000
HMACS = [a for a in Algorithm if a.value.startswith("hmac")]
KEYS = [
    *(AuthKey(algorithm, 7, b"fabric secret") for algorithm in Algorithm),
    *(AuthKey(algorithm, 7, b"fabric secret", extended=True) for algorithm in HMACS),
]


def refused(payload: bytes, key: AuthKey | None, source: int = SOURCE) -> tuple[str, int]:
    with pytest.raises(DecodeError) as caught:
        verify(payload, key, source)
    return caught.value.code, caught.value.offset


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_what_is_signed_verifies_and_decodes(key):
    signed = sign(HELLO, key, 77, SOURCE)
    assert len(signed) == len(HELLO) + overhead_of(key)
    info = verify(signed, key, SOURCE)
    assert info.au_type == au_type_of(key)
    if key.algorithm is not Algorithm.CLEARTEXT:
        assert info == AuthInfo(au_type_of(key), 7, 77, overhead_of(key))
    packet = decode_packet(signed)
    assert packet.au_type == au_type_of(key)
    assert packet.body == decode_packet(HELLO).body


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_another_key_is_refused(key):
    signed = sign(HELLO, key, 77, SOURCE)
    other = AuthKey(key.algorithm, key.key_id, b"other", key.extended)
    assert refused(signed, other)[0] == "auth"
    assert refused(signed, None) == ("auth", 14)
    assert refused(HELLO, key) == ("auth", 14)


@pytest.mark.parametrize("key", [k for k in KEYS if au_type_of(k) != AuType.SIMPLE], ids=repr)
def test_another_key_id_is_refused(key):
    signed = sign(HELLO, key, 77, SOURCE)
    assert refused(signed, AuthKey(key.algorithm, 8, key.key, key.extended)) == ("auth", 18)


def test_another_algorithm_is_refused():
    signed = sign(HELLO, AuthKey(Algorithm.MD5, 1, b"key"), 1)
    assert refused(signed, AuthKey(Algorithm.HMAC_SHA_256, 1, b"key")) == ("auth", 19)


def test_no_authentication_is_a_kind_too():
    assert verify(HELLO, None) == AuthInfo(AuType.NULL)


def test_password_is_cut_and_padded_to_eight_bytes():
    """RFC 2328 §D.4.2."""
    assert sign(HELLO, AuthKey(Algorithm.CLEARTEXT, 0, b"abc"))[16:24] == b"abc\0\0\0\0\0"
    assert sign(HELLO, AuthKey(Algorithm.CLEARTEXT, 0, b"abcdefghij"))[16:24] == b"abcdefgh"


def test_md5_as_rfc_2328_spells_it():
    """§D.4.3: over the packet with its checksum zero and the key padded to 16 bytes."""
    signed = sign(HELLO, AuthKey(Algorithm.MD5, 5, b"key"), 0x01020304)
    head = HELLO[:12] + bytes.fromhex("0000 0002 0000 05 10 01020304")
    message = head + HELLO[24:]
    assert signed == message + hashlib.md5(message + b"key".ljust(16, b"\0")).digest()


def test_hmac_as_rfc_5709_spells_it():
    """§3.3: over the packet and 0x878FE1F3 repeated to the length of the digest."""
    signed = sign(HELLO, AuthKey(Algorithm.HMAC_SHA_256, 5, b"key"), 9)
    head = HELLO[:12] + bytes.fromhex("0000 0002 0000 05 20 00000009")
    message = head + HELLO[24:]
    apad = bytes.fromhex("878fe1f3") * 8
    assert signed == message + hmac.digest(b"key", message + apad, "sha256")


def test_extended_sequence_numbers_as_rfc_7474_spells_them():
    """§3: the key id takes the sequence's place, 64 bits follow the packet and are digested.

    §5: Apad begins with the source address. §6: the key ends with the protocol id, 3.
    """
    key = AuthKey(Algorithm.HMAC_SHA_1, 0x01020304, b"key", extended=True)
    signed = sign(HELLO, key, 0x0000000500000009, SOURCE)
    head = HELLO[:12] + bytes.fromhex("0000 0003 000000 1c 01020304")
    message = head + HELLO[24:] + bytes.fromhex("0000000500000009")
    apad = bytes.fromhex("0a800000") + bytes.fromhex("878fe1f3") * 4
    assert signed == message + hmac.digest(b"key\0\3", message + apad, "sha1")
    assert refused(signed, key, SOURCE + 1)[0] == "auth"


def test_an_extended_key_does_not_take_short_sequence_numbers():
    """Else a downgrade would bring replays back."""
    short = AuthKey(Algorithm.HMAC_SHA_256, 1, b"key")
    extended = AuthKey(Algorithm.HMAC_SHA_256, 1, b"key", extended=True)
    assert refused(sign(HELLO, short, 1), extended) == ("auth", 14)
    assert refused(sign(HELLO, extended, 1, SOURCE), short) == ("auth", 14)


@pytest.mark.parametrize("algorithm", [Algorithm.CLEARTEXT, Algorithm.MD5])
def test_only_hmac_has_extended_sequence_numbers(algorithm):
    with pytest.raises(ValueError, match="no extended sequence numbers"):
        AuthKey(algorithm, 1, b"key", extended=True)


def test_what_follows_the_digest_is_not_authenticated():
    """An LLS block comes after the digest and has one of its own (RFC 5613 §2.5)."""
    key = AuthKey(Algorithm.MD5, 1, b"key")
    assert verify(sign(HELLO, key, 3) + b"LLS block", key).sequence == 3


def test_a_digest_cut_short():
    key = AuthKey(Algorithm.MD5, 1, b"key")
    signed = sign(HELLO, key, 3)
    assert refused(signed[:-1], key)[0] == "truncated"
    with pytest.raises(DecodeError, match="unknown authentication type 9"):
        read_auth(HELLO[:14] + b"\x00\x09" + HELLO[16:])


def test_an_extended_trailer_too_short_for_its_sequence():
    head = HELLO[:12] + bytes.fromhex("0000 0003 000000 07 00000001")
    with pytest.raises(DecodeError, match="expected 8 or more"):
        read_auth(head + HELLO[24:] + bytes(7))


def test_keys_do_not_show_their_secret():
    assert "secret" not in repr(KEYS)


@given(st.sampled_from(KEYS[1:]), st.data())
def test_any_changed_byte_is_noticed(key, data):
    signed = sign(HELLO, key, 5, SOURCE)
    at = data.draw(st.integers(0, len(signed) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != signed[at]))
    with pytest.raises(DecodeError):
        verify(signed[:at] + bytes([other]) + signed[at + 1 :], key, SOURCE)
