"""A TLV that declares its fields needs no code: decoder, encoder and JSON follow."""

from typing import Annotated

import pytest

from fared.core.ids import dotted
from fared.core.wire import U8, U16, U32, DecodeError
from fared.protocols.isis.pdu.tlv import FixedTlv, ListTlv, known_tlvs
from fared.protocols.isis.pdu.triplet import DecodeOptions


class Fixed(FixedTlv, frozen=True, gc=False):
    """Two forms: the address alone, or all three fields. It has no code, so no PDU has it."""

    label, what = "fixed", "an example"
    forms = (1, 3)
    address: Annotated[int, U32.shown(dotted)]
    metric: Annotated[int | None, U16] = None
    flags: Annotated[int | None, U8] = None


class Listed(ListTlv, frozen=True, gc=False):
    """A list of numbers."""

    label, what, item = "listed", "numbers", U16
    numbers: tuple[int, ...]


def decode(cls, text):
    data = bytes.fromhex(text)
    return cls.decoder(0)(data, 0, len(data), DecodeOptions())


@pytest.mark.parametrize(
    ("tlv", "value", "document"),
    [
        (Fixed(1), "00000001", {"address": "0.0.0.1", "metric": None, "flags": None}),
        (Fixed(1, 2, 3), "00000001000203", {"address": "0.0.0.1", "metric": 2, "flags": 3}),
        (Listed((1, 2)), "00010002", [1, 2]),
        (Listed(()), "", []),
    ],
)
def test_what_is_declared_is_decoded_encoded_and_shown(tlv, value, document):
    assert decode(type(tlv), value) == tlv
    assert tlv.encode(None).hex() == f"00{len(value) // 2:02x}{value}"
    assert tlv.document() == {tlv.label: document}


def test_other_sizes_are_errors():
    with pytest.raises(DecodeError, match="an example of 6 bytes, not 7"):
        decode(Fixed, "000000010002")
    with pytest.raises(DecodeError, match="numbers of 2 bytes each in 3 bytes"):
        decode(Listed, "000102")


def test_a_class_is_found_by_its_codes():
    known = known_tlvs()
    assert known[14].label == "lsp_buffer_size"
    assert known[132] is known[232]
    assert Fixed not in known.values()
