"""Whatever bytes arrive, a decoder returns a value or raises DecodeError: nothing else."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fared.core.keys import Algorithm, AuthKey, TimedKey
from fared.core.wire import DecodeError
from fared.isis.auth import verify
from fared.isis.pdu.codec import (
    checksum_ok,
    decode_pdu,
    encode_pdu,
    exact,
    pdu_type,
    peek_lsp,
)
from fared.isis.pdu.header import layout_of
from fared.isis.pdu.model import Lsp, PduType
from fared.isis.pdu.render import render_pdu
from fared.isis.pdu.tlv_decode import decode_tlvs
from fared.isis.pdu.triplet import Reading
from tests.isis_pdu.recorded import load_all

CODES = {"truncated", "length", "checksum", "version", "type", "tlv", "auth"}
KEYS = tuple(TimedKey(AuthKey(algorithm, 1, b"key")) for algorithm in Algorithm)


def attempt(function, *arguments, **options):
    """The value, or None after a DecodeError whose code and offset make sense."""
    try:
        return function(*arguments, **options)
    except DecodeError as error:
        refusal = error
    assert refusal.code in CODES
    assert refusal.offset >= 0
    return None


def exercise(payload: bytes) -> None:
    """All decoders over the same bytes; what decodes can be shown, and encoded to the same."""
    attempt(pdu_type, payload)
    attempt(peek_lsp, payload)
    attempt(decode_pdu, payload)
    attempt(decode_pdu, payload, strict=True, verify_checksum=False)
    pdu = attempt(decode_pdu, payload, verify_checksum=False)
    if pdu is None:
        return
    raw = exact(payload)
    render_pdu(pdu, raw)
    attempt(verify, raw, pdu, KEYS, 0.0)
    if isinstance(pdu, Lsp):
        checksum_ok(raw)
    again = decode_pdu(encode_pdu(pdu), verify_checksum=False)
    assert len(again.tlvs) >= len(pdu.tlvs)


@given(st.binary(max_size=120))
@example(b"")
def test_any_bytes_as_a_pdu(data):
    exercise(data)


def frame(kind: PduType, body: bytes) -> bytes:
    """A PDU with a good header and these TLVs."""
    layout = layout_of(kind)
    raw = bytearray(bytes((0x83, layout.size, 1, 0, kind, 1, 0, 0)) + bytes(layout.size - 8) + body)
    raw[8:9] = b"\2"
    raw[layout.length_at : layout.length_at + 2] = len(raw).to_bytes(2, "big")
    return bytes(raw)


@given(st.sampled_from(list(PduType)), st.binary(max_size=200))
def test_any_bytes_behind_a_good_header(kind, data):
    exercise(frame(kind, data))


@given(
    st.sampled_from((1, 2, 6, 8, 9, 10, 13, 14, 22, 128, 129, 130, 132, 134, 135, 137, 222))
    | st.sampled_from((229, 232, 235, 236, 237, 240)),
    st.binary(max_size=120),
)
def test_any_bytes_in_a_known_tlv(kind, data):
    exercise(frame(PduType.L2_LSP, bytes((kind, len(data))) + data))


@given(st.binary(max_size=80))
def test_any_bytes_as_tlvs(data):
    attempt(decode_tlvs, data, 0, len(data), Reading())
    attempt(decode_tlvs, data, 0, len(data), Reading(strict=True))


def mutate(payload: bytes, rng: random.Random) -> bytes:
    """One of: some bytes replaced, bits flipped, cut, grown, a block doubled or dropped."""
    data = bytearray(payload)
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    if kind == 0:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
    elif kind == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        data += rng.randbytes(rng.randint(1, 40))
    elif kind == 4:
        data[at:at] = data[at : at + rng.randint(1, 24)]
    else:
        del data[at : at + rng.randint(1, 24)]
    length_at = 17 if len(payload) > 4 and payload[4] in (15, 16, 17) else 8
    if rng.random() < 0.5 and len(data) >= length_at + 2:
        data[length_at : length_at + 2] = len(data).to_bytes(2, "big")
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_recorded_pdus(seed):
    """Hundreds of PDUs that are almost right."""
    rng = random.Random(seed)
    recorded = [pdu.payload for pdu in load_all()]
    for _ in range(800):
        payload = rng.choice(recorded)
        for _ in range(rng.randint(1, 3)):
            payload = mutate(payload, rng) or b"\0"
        exercise(payload)


def test_every_truncation_is_told():
    """The PDU length says how much is missing."""
    for _, payload in load_all()[::7]:
        for size in range(0, len(payload), 11):
            with pytest.raises(DecodeError) as caught:
                decode_pdu(payload[:size])
            assert caught.value.code == "truncated"


def test_one_flipped_bit_of_an_lsp_is_noticed():
    """Every bit behind the lifetime is covered by the checksum, or checked."""
    lsp = next(p for _, p in load_all() if p[4] == 20 and len(p) > 60)
    for bit in range(12 * 8, len(lsp) * 8, 5):
        broken = bytearray(lsp)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeError):
            decode_pdu(bytes(broken))
