"""For any bytes a decoder returns a value or raises MessageError, and the stream stays in step."""

import contextlib
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fared.protocols.bgp.packet.attributes import KNOWN
from fared.protocols.bgp.packet.codec import Decoder, decode_message, encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.framing import Framer, check_header, frame
from fared.protocols.bgp.packet.notification import MessageError
from tests.bgp_packet.strategies import OTHER_MESSAGES, updates
from tests.bgp_packet.test_bytes import MARKER, MESSAGES
from tests.packets.damage import attempt, mutate

CODINGS = (Coding(), Coding(False, internal=True), Coding(first_as=65001, families=(6,)))


def exercise(data):
    """Decode in every way; each value has JSON, and can be encoded again."""
    for coding in CODINGS:
        found = attempt(decode_message, data, coding)
        if found is not None:
            found.document()
            assert all(len(one) >= 19 for one in encode_message(found, Coding(limit=65535)))


@given(st.binary(max_size=60))
@example(b"")
def test_any_bytes_as_a_message(data):
    exercise(data)


@settings(max_examples=60)
@given(st.integers(1, 5), st.binary(max_size=200))
def test_any_bytes_behind_a_good_header(kind, data):
    exercise(frame(kind, data))


@settings(max_examples=60)
@given(st.sampled_from(sorted({*KNOWN, 3, 14, 15})), st.integers(0, 255), st.binary(max_size=80))
def test_any_bytes_in_a_known_attribute(kind, flags, value):
    size = len(value).to_bytes(2, "big") if flags & 0x10 else bytes((len(value),))
    block = bytes((flags, kind)) + size + value
    exercise(frame(2, bytes(2) + len(block).to_bytes(2, "big") + block + b"\x18\x0a\0\2"))


@pytest.mark.parametrize("seed", range(3))
def test_mutations_of_real_messages(seed):
    rng = random.Random(seed)
    good = [bytes.fromhex(MARKER + text) for _, text in MESSAGES.values()]
    for _ in range(200):
        data = rng.choice(good)
        for _ in range(rng.randint(1, 3)):
            data = mutate(data, rng, 16) or b"\0"
        exercise(b"\xff" * 16 + data[16:])


@settings(max_examples=40)
@given(st.lists(OTHER_MESSAGES | updates(), max_size=4), st.lists(st.integers(1, 50), max_size=40))
def test_a_stream_in_any_pieces_is_cut_into_its_messages(messages, sizes):
    raw = [one for message in messages for one in encode_message(message)]
    stream, framer, found = b"".join(raw), Framer(), []
    for size in [*sizes, len(stream)]:
        framer.feed(stream[:size])
        stream = stream[size:]
        while framer.ready:
            found.append(framer.next()[1])
        assert framer.next() is None
    assert found == raw
    assert framer.waiting == 0


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_stream_gives_messages_or_an_error(pieces):
    framer, decoder = Framer(), Decoder(Coding())
    for piece in pieces:
        framer.feed(piece)
        with contextlib.suppress(MessageError):
            while (found := framer.next()) is not None:
                decoder.decode(*found)


@pytest.mark.rfc("RFC 4271 §6.1", "RFC 8654 §4")
@pytest.mark.parametrize(
    ("header", "limit", "kind", "data"),
    [
        ("00" + "ff" * 15 + "001304", 4096, (1, 1), ""),
        (MARKER + "001204", 4096, (1, 2), "0012"),
        (MARKER + "001404", 4096, (1, 2), "0014"),
        (MARKER + "001602", 4096, (1, 2), "0016"),
        (MARKER + "100102", 4096, (1, 2), "1001"),
        (MARKER + "100101", 65535, (1, 2), "1001"),
        (MARKER + "001c01", 4096, (1, 2), "001c"),
        (MARKER + "001306", 4096, (1, 3), "06"),
    ],
)
def test_a_wrong_header_is_refused_before_the_message_is_complete(header, limit, kind, data):
    framer = Framer()
    framer.limit = limit
    framer.feed(bytes.fromhex(header))
    with pytest.raises(MessageError) as caught:
        framer.next()
    assert caught.value.notification.kind == kind
    assert caught.value.notification.data.hex() == data


@pytest.mark.rfc("RFC 8654 §4")
def test_65535_octets_once_that_is_agreed():
    assert check_header(bytes.fromhex(MARKER + "ffff02"), 65535) == (2, 65535)
