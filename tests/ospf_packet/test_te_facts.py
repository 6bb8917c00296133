"""The facts of a TE LSA are the same, decoded in full or by the fast reader."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from fared.core.wire import DecodeError
from fared.paths.te.attributes import TeAttributes
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.te import decode_te, encode_te_link, encode_te_router_address
from fared.protocols.ospf.packet.te_facts import TeReader, facts_of
from tests.ospf_packet.strategies import te_links, te_router_addresses

HEADER = bytes(LSA_HEADER_SIZE)
USUAL = TeLink(
    link_type=1,
    link_id=7,
    local_addresses=(10,),
    remote_addresses=(11,),
    attributes=TeAttributes(
        te_metric=10,
        max_bandwidth=12.5e6,
        unreserved_bandwidth=(12.5e6,) * 8,
        residual_bandwidth=12.5e6,
        available_bandwidth=10e6,
    ),
)


def in_full(raw: bytes):
    body = decode_te(raw, LSA_HEADER_SIZE)
    return facts_of(body) if isinstance(body, TeLink) else None


def outcome(read, raw: bytes) -> str:
    """What a reader makes of an LSA, errors included, in words that compare NaN as equal."""
    try:
        return repr(read(raw))
    except DecodeError as error:
        return f"{error.code} at {error.offset}"


@given(st.lists(te_links(), min_size=1, max_size=6))
def test_any_links_one_after_the_other(links):
    """The reader remembers the layout of the last one: that must not leak into the next."""
    reader = TeReader()
    for link in [*links, USUAL, *links]:
        raw = HEADER + encode_te_link(link)
        assert repr(reader.read(raw)) == repr(in_full(raw))


@given(te_router_addresses)
def test_an_lsa_without_a_link_has_no_facts(body):
    assert TeReader().read(HEADER + encode_te_router_address(body)) is None


@given(st.data())
def test_whatever_is_damaged_reads_the_same_or_is_refused_the_same(data):
    raw = bytearray(HEADER + encode_te_link(USUAL))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(LSA_HEADER_SIZE, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(LSA_HEADER_SIZE, len(raw)))]
    reader = TeReader()
    reader.read(HEADER + encode_te_link(USUAL))
    assert outcome(reader.read, bytes(raw)) == outcome(in_full, bytes(raw))


def test_absurd_bandwidths_are_unknown():
    raw = HEADER + struct.pack(">HHHHf", 2, 8, 31, 4, float("inf"))
    facts = TeReader().read(raw)
    assert facts is not None
    assert repr((facts.capacity, facts.available)) == "(nan, nan)"
