"""GENINFO TLVs (RFC 6823): values in pieces, put together again from fragments in any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import NodeId
from fared.core.wire import DecodeError
from fared.protocols.isis.ids import Level
from fared.protocols.isis.origination.fragment import Item, TlvKind, keyed
from fared.protocols.isis.origination.fragments import FragmentTable
from fared.protocols.isis.pdu.geninfo import (
    GENINFO,
    MAX_PIECE,
    decode_geninfo,
    encode_geninfo,
    pieces_of,
)
from fared.protocols.isis.ted.information import InformationTable

APPLICATION = 0xFFFF
ROOM = 600


class Fragment:
    def __init__(self, tlvs):
        self.tlvs = tlvs


def test_the_layout_of_a_tlv():
    pieces = [piece for _, piece in pieces_of(0x010203, b"ab")]
    assert encode_geninfo(APPLICATION, pieces).value.hex(" ") == (
        "00 ff ff 01 02 03 00 00 00 01 02 61 62"
    )


def test_pieces_of_other_applications_and_with_flags_are_not_read():
    tlv = encode_geninfo(7, [piece for _, piece in pieces_of(1, b"x")])
    assert decode_geninfo(tlv.value, 7) == {(1, 0, 1): b"x"}
    assert decode_geninfo(tlv.value, 8) == {}
    assert decode_geninfo(b"\x80" + tlv.value[1:], 7) == {}


@given(st.binary(max_size=255))
def test_any_bytes_give_pieces_or_an_error(data):
    try:
        found = decode_geninfo(data, APPLICATION)
    except DecodeError:
        return
    assert all(number < count for _, number, count in found)


@given(
    st.dictionaries(st.integers(0, 0xFFFFFF), st.binary(max_size=4 * MAX_PIECE), max_size=5),
    st.randoms(),
)
def test_values_survive_fragments_in_any_order(values, rng):
    kind = TlvKind(GENINFO, APPLICATION)
    table = FragmentTable(ROOM)
    for key, value in values.items():
        for number, piece in pieces_of(key, value):
            table.put(keyed(kind, (key, number)), Item(kind, piece, len(piece)))
    table.settle()
    assert not table.omitted
    fragments = [(number, table.contents(number) or ()) for number in table.numbers()]
    rng.shuffle(fragments)
    at, found = (Level.TWO, NodeId(5)), {}
    read = InformationTable(APPLICATION)
    for number, tlvs in fragments:
        assert all(len(tlv.value) <= 255 for tlv in tlvs)
        read.put(at, number, Fragment(tlvs))
        for update in read.take():
            assert update.value is not None
            found[update.key] = update.value
    assert found == values
    for number, _ in fragments:
        read.put(at, number, None)
    gone = {update.key for update in read.take() if update.value is None}
    assert gone == set(values)


def test_a_value_is_there_until_all_fragments_of_the_one_that_replaces_it_are():
    """A job's epochs alternate between two keys: without either it would seem withdrawn."""
    table, at = InformationTable(APPLICATION), (Level.TWO, NodeId(5))

    def told(number: int, *pieces: bytes) -> dict[int, bytes | None]:
        table.put(at, number, Fragment([encode_geninfo(APPLICATION, [one]) for one in pieces]))
        return {update.key: update.value for update in table.take()}

    former = [piece for _, piece in pieces_of(4, b"epoch 2" * 50)]
    later = [piece for _, piece in pieces_of(5, b"epoch 3" * 50)]
    assert len(former) == len(later) == 2
    assert not told(1, former[0])
    assert told(2, former[1]) == {4: b"epoch 2" * 50}
    assert not told(1, later[0])
    assert told(2, later[1]) == {4: None, 5: b"epoch 3" * 50}
    assert not told(1)
    assert told(2) == {5: None}


def test_a_truncated_piece_is_an_error():
    tlv = encode_geninfo(APPLICATION, [piece for _, piece in pieces_of(1, b"abc")])
    with pytest.raises(DecodeError):
        decode_geninfo(tlv.value[:-1], APPLICATION)
