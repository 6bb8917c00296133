"""LSPs in which little differs from the instance before: reading only that gives the same."""

from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.wire import DecodeError
from fared.paths.te.attributes import TeAttributes
from fared.protocols.isis.ids import PATH_CAPACITY
from fared.protocols.isis.lsdb import StoredLsp, renewed_tlvs
from fared.protocols.isis.pdu.codec import (
    Former,
    RawPdu,
    checksum_of,
    decode_raw,
    encode_pdu,
    read_pdu,
    with_checksum,
)
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import Hostname, IsNeighbor, IsReachability, UnknownTlv
from fared.protocols.isis.ted.fragment_facts import FragmentFacts, changed_rows, read_fragment
from fared.protocols.isis.ted.fragment_patch import patched
from tests.isis.floodnet import name

BANDWIDTHS = st.sampled_from((None, 0.0, 1e9, 2e9, -1.0, math.nan, math.inf))
LINKS = st.builds(
    IsNeighbor,
    st.sampled_from((7 << 8, 8 << 8)),
    st.sampled_from((10, 11)),
    st.builds(
        TeAttributes,
        max_bandwidth=BANDWIDTHS,
        available_bandwidth=BANDWIDTHS,
        residual_bandwidth=BANDWIDTHS,
        delay=st.sampled_from((None, None, None, 0, 350)),
    ),
    local_addresses=st.sampled_from(((), (1,), (2, 3))),
)
TLVS = st.one_of(
    st.builds(
        IsReachability,
        st.lists(LINKS, max_size=3).map(tuple),
        st.sampled_from((None, None, None, 0, 2)),
    ),
    st.builds(Hostname, st.sampled_from(("a", "b"))),
    st.builds(UnknownTlv, st.sampled_from((240, 22, 135)), st.binary(max_size=12)),
)


def lsp(tlvs: list[object], *, overload: bool = False) -> Lsp:
    return Lsp(2, name(9), 1, 1200, tlvs=tuple(tlvs), overload=overload)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Lsp, Lsp]:
    """Two LSPs; of the second some TLVs are others, mostly with other bandwidths only."""
    before = draw(st.lists(TLVS, max_size=5))
    after = list(before)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(after)))
        old = after[place] if place < len(after) else None
        if isinstance(old, IsReachability) and draw(st.booleans()):
            links = tuple(
                draw(st.sampled_from((link, renewed(draw, link)))) for link in old.neighbors
            )
            after[place] = replace(old, neighbors=links)
        elif draw(st.booleans()):
            after[place : place + draw(st.integers(0, 1))] = [draw(TLVS)]
        else:
            del after[place : place + 1]
    return lsp(before), lsp(after, overload=draw(st.sampled_from((False, False, False, True))))


def renewed(draw: st.DrawFn, link: IsNeighbor) -> IsNeighbor:
    attributes = replace(link.attributes, available_bandwidth=draw(BANDWIDTHS))
    return replace(link, attributes=attributes)


def decoded(raw: RawPdu, former: Former | None = None) -> Lsp | str:
    try:
        found = decode_raw(raw, capacity_code=PATH_CAPACITY, former=former)
    except DecodeError as error:
        return f"{error.code} {error.offset} {error}"
    assert isinstance(found, Lsp)
    return found


def plain(facts: FragmentFacts) -> tuple[object, ...]:
    """Facts as values that can be compared, NaN too."""
    links = {
        topology: [column.tobytes() for column in (*links.columns(), links.each_delay())]
        for topology, links in facts.links.items()
    }
    return links, replace(facts, links={})


def the_same(one: object, other: object) -> bool:
    return repr(one) == repr(other)  # NaN equals NaN


@settings(max_examples=400, deadline=None)
@given(
    pairs(),
    st.lists(st.tuples(st.integers(10, 400), st.integers(0, 255)), max_size=3),
    st.booleans(),
)
@example((lsp([]), lsp([])), [], True)
@example((lsp([Hostname("a")]), lsp([Hostname("b")])), [(24, 0), (25, 0)], False)
def test_an_instance_decoded_by_what_differs_equals_one_decoded_as_a_whole(lsps, damage, right):
    """Whatever bytes are damaged, lengths and checksum too; ``right``: that is computed again."""
    first, second = (read_pdu(encode_pdu(one)) for one in lsps)
    before = decoded(first)
    assert isinstance(before, Lsp)
    data = bytearray(second.data)
    for place, value in damage:
        if place < len(data):
            data[place] = value
    raw = second._replace(data=bytes(data))
    if right:
        raw = raw._replace(data=with_checksum(raw.data, checksum_of(raw.data)))
    found = decoded(raw, Former(first.data, before.tlvs))
    assert the_same(found, decoded(raw))


@settings(max_examples=600, deadline=None)
@given(pairs())
def test_facts_patched_with_what_differs_equal_those_read_as_a_whole(lsps):
    first, second = (read_pdu(encode_pdu(one)) for one in lsps)
    before = decoded(first)
    after = decoded(second, Former(first.data, before.tlvs))
    assert isinstance(before, Lsp)
    assert isinstance(after, Lsp)
    old = read_fragment(before, own=False, capacity_code=PATH_CAPACITY)
    new = read_fragment(after, own=False, capacity_code=PATH_CAPACITY)
    stored = StoredLsp(before.lsp_id, 1, before.checksum, 9e9, first.data, before)
    places = renewed_tlvs(stored, after)
    if places is None:
        assert len(before.tlvs) != len(after.tlvs) or before.overload != after.overload
        return
    earlier = plain(old)
    found = patched(before, old, after, places)
    if found is not None:
        assert plain(found[0]) == plain(new)
        assert found[1] == changed_rows(old, new)
    assert plain(old) == earlier  # the former facts are as they were


def test_only_the_rows_of_changed_bandwidths_are_patched():
    links = [IsNeighbor(number << 8, 10, TeAttributes(max_bandwidth=1e9)) for number in range(4)]
    other = replace(links[2], attributes=TeAttributes(max_bandwidth=1e9, available_bandwidth=5e8))
    tlvs = [Hostname("a"), IsReachability(tuple(links[:2])), IsReachability(tuple(links[2:]))]
    before, after = lsp(tlvs), lsp([*tlvs[:2], IsReachability((other, links[3]))])
    old = read_fragment(before, own=False, capacity_code=PATH_CAPACITY)
    found = patched(before, old, after, (2,))
    assert found is not None
    facts, rows = found
    assert rows == {None: [2]}
    assert facts.links[None].availables.tolist() == [1e9, 1e9, 5e8, 1e9]
    assert facts.links[None].neighbors is old.links[None].neighbors
    assert facts.links[None].capacities is not old.links[None].capacities  # 5e8: of the lower
