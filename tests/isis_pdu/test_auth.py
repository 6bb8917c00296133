"""Authentication of PDUs: signed PDUs pass verification, modified ones do not."""

import hashlib
import hmac

import pytest
from msgspec.structs import replace

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.pdu.auth import (
    authentication_size,
    keyring_size,
    sign,
    verify,
    without_password,
)
from fared.protocols.isis.pdu.codec import (
    checksum_ok,
    decode_pdu,
    decode_raw,
    encode_pdu,
    read_pdu,
    with_lifetime,
)
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Psnp
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Authentication,
    Hostname,
    PurgeOriginator,
    of_type,
)

TLVS = (AreaAddresses((b"\x49\0\1",)), Hostname("leaf1"))
LSP = Lsp(2, lsp_id(1), 7, 1199, tlvs=TLVS)
PDUS = (
    LanHello(1, LevelSet.BOTH, 1, 30, 64, 0x101, TLVS),
    P2pHello(LevelSet.TWO, 1, 30, 1, TLVS),
    LSP,
    Csnp(2, 1 << 8, 0, 2**64 - 1, TLVS),
    Psnp(1, 1 << 8, TLVS),
)


def key(algorithm=Algorithm.HMAC_SHA_256, key_id=1, secret=b"fabricsecret"):
    return AuthKey(algorithm, key_id, secret)


def ring(*keys):
    return tuple(k if isinstance(k, TimedKey) else TimedKey(k) for k in keys)


def check(raw, *keys, wall=0.0):
    pdu = read_pdu(raw)
    verify(pdu, decode_raw(pdu), ring(*keys), wall)


def refuse(raw, *keys, wall=0.0):
    with pytest.raises(DecodeError) as caught:
        check(raw, *keys, wall=wall)
    assert caught.value.code == "auth"


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("pdu", PDUS, ids=lambda pdu: type(pdu).__name__)
def test_signed_pdus_are_verified(algorithm, pdu):
    raw = encode_pdu(pdu, key(algorithm))
    check(raw, key(algorithm))
    refuse(raw, key(algorithm, secret=b"another"))
    again = decode_pdu(raw)
    assert isinstance(again.tlvs[0], Authentication)
    assert again.tlvs[1:] == TLVS
    size = authentication_size(key(algorithm))
    assert len(raw) == len(encode_pdu(pdu)) + size


@pytest.mark.parametrize("algorithm", list(Algorithm)[1:])
def test_every_touched_byte_is_noticed(algorithm):
    raw = encode_pdu(Psnp(1, 1 << 8, TLVS), key(algorithm))
    for at in range(8, len(raw)):
        broken = bytearray(raw)
        broken[at] ^= 1
        with pytest.raises(DecodeError):
            check(bytes(broken), key(algorithm))


@pytest.mark.parametrize("algorithm", Algorithm)
def test_an_lsp_may_age_on_its_way(algorithm):
    raw = with_lifetime(encode_pdu(LSP, key(algorithm)), 3)
    assert checksum_ok(raw)
    check(raw, key(algorithm))


def test_signing_again_replaces_the_signature():
    once = encode_pdu(LSP, key(Algorithm.MD5))
    again = encode_pdu(decode_pdu(once), key())
    check(again, key())
    assert len(of_type(decode_pdu(again).tlvs, Authentication)) == 1
    assert encode_pdu(decode_pdu(again), key(Algorithm.MD5)) == once


def test_without_keys_everything_passes():
    check(encode_pdu(LSP))
    check(encode_pdu(LSP, key()))


def test_unsigned_pdus_are_refused_where_keys_are():
    refuse(encode_pdu(LSP), key())
    refuse(encode_pdu(LSP, key(Algorithm.CLEARTEXT)), key())
    refuse(encode_pdu(LSP, key(Algorithm.HMAC_SHA_1)), key())


def test_key_id_is_part_of_a_generic_signature():
    """RFC 5310 §3.1; HMAC-MD5 has no key id, so the number is not compared."""
    refuse(encode_pdu(LSP, key(key_id=2)), key(key_id=1))
    check(encode_pdu(LSP, key(Algorithm.MD5, 2)), key(Algorithm.MD5, 1))
    assert decode_pdu(encode_pdu(LSP, key(key_id=0x1234))).tlvs[0].value[:2] == b"\x12\x34"


def test_two_authentication_tlvs_are_refused():
    raw = sign(encode_pdu(LSP, key()), key())
    refuse(raw, key())


def test_keys_roll_without_a_gap():
    """While both are accepted, either one may sign; a key is not used outside its lifetime."""
    old = TimedKey(key(key_id=1, secret=b"old"), send_end=100, accept_end=110)
    new = TimedKey(key(key_id=2, secret=b"new"), send_start=100, accept_start=90)
    by_old, by_new = encode_pdu(LSP, old.key), encode_pdu(LSP, new.key)
    check(by_old, old, new, wall=50)
    refuse(by_new, old, new, wall=50)
    check(by_old, old, new, wall=100)
    check(by_new, old, new, wall=100)
    refuse(by_old, old, new, wall=120)
    check(by_new, old, new, wall=120)


def test_hmac_md5_keys_roll_although_they_have_no_id():
    old, new = key(Algorithm.MD5, 1, b"old"), key(Algorithm.MD5, 2, b"new")
    for signer in (old, new):
        check(encode_pdu(LSP, signer), old, new)


def test_no_key_has_begun():
    refuse(encode_pdu(LSP, key()), TimedKey(key(), accept_start=100), wall=50)


@pytest.mark.parametrize("algorithm", [Algorithm.CLEARTEXT, Algorithm.MD5, Algorithm.HMAC_SHA_1])
def test_purge_may_say_only_who_purged(algorithm):
    """RFC 6233: otherwise the contents of an old signed LSP could purge the present one."""
    said = (PurgeOriginator(1), Hostname("leaf1"))
    purge = replace(LSP, remaining_lifetime=0, tlvs=said)
    check(encode_pdu(purge, key(algorithm)), key(algorithm))
    full = with_lifetime(encode_pdu(LSP, key(algorithm)), 0)
    refuse(full, key(algorithm))
    check(full)


def test_the_room_that_a_signature_takes():
    assert authentication_size(None) == 0
    assert authentication_size(key(Algorithm.CLEARTEXT, secret=b"abc")) == 6
    assert authentication_size(key(Algorithm.MD5)) == 19
    assert authentication_size(key(Algorithm.HMAC_SHA_512)) == 69
    assert keyring_size(ring(key(Algorithm.MD5), key(Algorithm.HMAC_SHA_1))) == 25
    assert keyring_size(()) == 0


def test_hmac_md5_as_rfc_5304_says():
    """RFC 5304 §2: over the PDU with a value of zeros; LSPs with zero lifetime and checksum."""
    raw = encode_pdu(LSP, key(Algorithm.MD5))
    blank = raw[:10] + bytes(2) + raw[12:24] + bytes(2) + raw[26:30] + bytes(16) + raw[46:]
    assert raw[27:30] == bytes((10, 17, 54))
    assert raw[30:46] == hmac.digest(b"fabricsecret", blank, hashlib.md5)


def test_hmac_sha_as_rfc_5310_says():
    """RFC 5310 §3.3: over the PDU with the key id and a constant as the value."""
    raw = encode_pdu(PDUS[1], key(Algorithm.HMAC_SHA_1, 5))
    filled = raw[:25] + bytes.fromhex("878fe1f3") * 5 + raw[45:]
    assert raw[20:25] == bytes((10, 23, 3, 0, 5))
    assert raw[25:45] == hmac.digest(b"fabricsecret", filled, hashlib.sha1)


def test_long_passwords_are_cut_to_what_fits():
    long = key(Algorithm.CLEARTEXT, secret=b"x" * 300)
    check(encode_pdu(LSP, long), long)


def test_a_password_is_not_shown_and_the_rest_of_the_lsp_is():
    secret = key(Algorithm.CLEARTEXT)
    raw = sign(encode_pdu(LSP), secret)
    shown = without_password(raw)
    assert secret.key in raw
    assert secret.key not in shown
    assert checksum_ok(shown)
    assert of_type(decode_pdu(shown).tlvs, Hostname) == of_type(LSP.tlvs, Hostname)
    assert without_password(shown) == shown


def test_digests_and_damaged_lsps_are_shown_as_they_are():
    signed = sign(encode_pdu(LSP), key())
    assert without_password(signed) == signed
    assert without_password(signed[:-1]) == signed[:-1]
    assert without_password(b"") == b""
