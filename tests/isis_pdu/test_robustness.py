"""For any bytes a decoder returns a value or raises DecodeError."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.pdu.auth import verify
from fared.protocols.isis.pdu.codec import (
    checksum_ok,
    decode_pdu,
    encode_pdu,
    is_copy,
    peek_lsp,
    peek_lsp_id,
    peek_type,
    read_pdu,
)
from fared.protocols.isis.pdu.header import common_header
from fared.protocols.isis.pdu.model import Lsp, PduType
from fared.protocols.isis.pdu.render import render_pdu
from fared.protocols.isis.pdu.tlv import known_tlvs
from fared.protocols.isis.pdu.tlv_lists import decode_tlvs
from fared.protocols.isis.pdu.tlvs import UnknownTlv
from fared.protocols.isis.pdu.triplet import DecodeOptions
from tests.packets.damage import attempt, mutate
from tests.packets.recorded import ISIS, load

KEYS = tuple(TimedKey(AuthKey(algorithm, 1, b"key")) for algorithm in Algorithm)


def exercise(payload: bytes) -> None:
    """Apply all decoders; each decoded value can be rendered, and encoded to an equal one."""
    attempt(read_pdu, payload)
    peek_type(payload)
    peek_lsp_id(payload)
    attempt(peek_lsp, payload)
    attempt(decode_pdu, payload)
    attempt(decode_pdu, payload, strict=True, verify_checksum=False)
    pdu = attempt(decode_pdu, payload, verify_checksum=False)
    if pdu is None:
        return
    raw = read_pdu(payload)
    assert raw.kind is peek_type(payload)
    render_pdu(pdu, raw.data)
    attempt(verify, raw, pdu, KEYS, 0.0)
    if isinstance(pdu, Lsp):
        assert pdu.lsp_id == peek_lsp_id(payload)
        assert is_copy(payload, raw.data, purged=not pdu.remaining_lifetime)
        checksum_ok(raw.data)
    again = decode_pdu(encode_pdu(pdu), verify_checksum=False)
    assert len(again.tlvs) >= len(pdu.tlvs)


@given(st.binary(max_size=120))
@example(b"")
def test_any_bytes_as_a_pdu(data):
    exercise(data)


HELLOS = (PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO, PduType.P2P_HELLO)


def frame(kind: PduType, body: bytes) -> bytes:
    """A PDU with a valid header and these TLVs."""
    header = common_header(kind)
    raw = bytearray(header + bytes(header[1] - len(header)) + body)
    raw[8:9] = b"\2"
    length_at = 17 if kind in HELLOS else 8
    raw[length_at : length_at + 2] = len(raw).to_bytes(2, "big")
    return bytes(raw)


@given(st.sampled_from(list(PduType)), st.binary(max_size=200))
def test_any_bytes_behind_a_good_header(kind, data):
    exercise(frame(kind, data))


@given(
    st.sampled_from(sorted(known_tlvs())),
    st.binary(max_size=120),
)
def test_any_bytes_in_a_known_tlv(kind, data):
    exercise(frame(PduType.L2_LSP, bytes((kind, len(data))) + data))


@given(st.binary(max_size=80))
def test_any_bytes_as_tlvs(data):
    attempt(decode_tlvs, data, 0, len(data), DecodeOptions())
    attempt(decode_tlvs, data, 0, len(data), DecodeOptions(strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_recorded_pdus(seed):
    """Hundreds of slightly malformed PDUs."""
    rng = random.Random(seed)
    recorded = [pdu.payload for pdu in load(*ISIS)]
    for _ in range(800):
        payload = rng.choice(recorded)
        for _ in range(rng.randint(1, 3)):
            hello = len(payload) > 4 and payload[4] in HELLOS
            payload = mutate(payload, rng, 17 if hello else 8) or b"\0"
        exercise(payload)


@pytest.mark.parametrize("kind", list(PduType))
def test_a_malformed_tlv_is_kept_in_an_lsp_and_refused_elsewhere(kind):
    """RFC 8918 §4 is about LSPs; a hello without its three-way TLV has another meaning."""
    payload = frame(kind, b"\xf0\x02\0\0")
    if kind in (PduType.L1_LSP, PduType.L2_LSP):
        (tlv,) = decode_pdu(payload, verify_checksum=False).tlvs
        assert tlv == UnknownTlv(0xF0, b"\0\0")
    else:
        assert attempt(decode_pdu, payload) is None
    assert attempt(decode_pdu, payload, strict=True, verify_checksum=False) is None


def test_every_truncation_is_told():
    """By the PDU length."""
    for _, payload in load(*ISIS)[::7]:
        for size in range(0, len(payload), 11):
            with pytest.raises(DecodeError) as caught:
                decode_pdu(payload[:size])
            assert caught.value.code == "truncated"


def test_one_flipped_bit_of_an_lsp_is_noticed():
    """Every bit after the lifetime is covered by the checksum or checked."""
    lsp = next(p for _, p in load(*ISIS) if p[4] == 20 and len(p) > 60)
    for bit in range(12 * 8, len(lsp) * 8, 5):
        broken = bytearray(lsp)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeError):
            decode_pdu(bytes(broken))
