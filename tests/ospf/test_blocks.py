"""TE links are matched with the rows of their router: by a table if possible, else one by one."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import NodeId
from fared.paths.ted.model import NodeBlock
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.te_facts import TeFacts
from fared.protocols.ospf.ted import lost_links
from fared.protocols.ospf.ted.blocks import (
    RouterFacts,
    _look_up,
    _match,
    build,
    fits,
    names_of,
    patch,
    renamed,
)
from fared.protocols.ospf.ted.lost_links import shrunk, withdraw

FEW = st.integers(1, 3)
ADDRESSES = st.sampled_from([0, 1, 2, 0x0A000001, 0x0A000002, 0x0A000003])
LINKS = st.lists(st.builds(RouterLink, st.just(1), FEW, ADDRESSES, st.just(10)), max_size=6)
TE_LINK = st.builds(
    TeFacts,
    link_type=st.just(1),
    link_id=FEW,
    local=ADDRESSES,
    remote=st.just(0),
    local_identifier=st.sampled_from([0, 1, 2]),
    remote_identifier=st.just(0),
    capacity=st.floats(1e6, 1e9),
    available=st.just(1e6),
)
TE = st.lists(TE_LINK, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def any_links_are_many():
    """Else lost links are never removed from blocks of so few."""
    with mock.patch.object(lost_links, "_FEW_LINKS", 0):
        yield


def router(te: list[TeFacts], links: list[RouterLink]) -> RouterFacts:
    known = RouterFacts(NodeId(1))
    known.te = {LsaKey(10, 1 << 24 | number, 1): link for number, link in enumerate(te)}
    known.rows = {(link.link_id, link.link_data): row for row, link in enumerate(links)}
    return known


@given(LINKS, TE)
def test_the_table_gives_the_same_rows_as_matching_one_by_one(links, te):
    known = router(te, links)
    found = _look_up(known, links)
    assert found is None or found == _match(known, links)


@given(LINKS, TE)
def test_each_row_has_the_capacity_of_its_te_link(links, te):
    known = router(te, links)
    block = build(known, RouterLsa(0, tuple(links)))
    rows = {row: known.te[key].capacity for key, row in known.row_of.items()}
    assert len(rows) == len(known.row_of)
    for row, capacity in enumerate(block.capacities.tolist()):
        assert capacity == rows[row] if row in rows else math.isnan(capacity)


@given(LINKS, TE)
def test_with_a_te_lsa_only_its_own_name_goes(links, te):
    known = router(te, links)
    _look_up(known, links)
    for key, gone in list(known.te.items()):
        before = known.named
        unique = before is not None and len(before) == len(known.te)
        del known.te[key]
        renamed(known, gone, None)
        assert known.named == (names_of(known.te) if unique else None)
        assert not unique or known.named is before


METRICS = st.sampled_from([10, 0xFFFF, 0xFFFF])
LISTED = st.lists(
    st.one_of(
        st.builds(RouterLink, st.sampled_from([1, 1, 2]), FEW, ADDRESSES, METRICS),
        st.builds(RouterLink, st.just(3), FEW, st.sampled_from([0xFFFFFF00, 0xFF]), METRICS),
    ),
    max_size=7,
    unique=True,
)


def same_state(ours: RouterFacts, theirs: RouterFacts) -> None:
    """Two routers match the same TE links to the same rows of their blocks."""
    for name in ("rows", "row_of"):
        rows = {key: ours.place(row) for key, row in getattr(ours, name).items()}
        assert rows == getattr(theirs, name), name
    assert {ours.place(row) for row in ours.claimed} == theirs.claimed
    assert ours.named is None or ours.named == names_of(theirs.te)


@st.composite
def listed(draw) -> tuple[list[RouterLink], list[TeFacts], list[TeFacts]]:
    """Links of a router, and TE links, most of them of these; some come after the router LSA."""
    links = draw(LISTED)
    te = draw(st.lists(TE_LINK, max_size=2))
    for at in draw(st.lists(st.integers(0, 6), max_size=7, unique=True)):
        if at < len(links):
            name = {"link_id": links[at].link_id, "local": links[at].link_data}
            te.append(draw(TE_LINK)._replace(local_identifier=0, **name))
    order = draw(st.permutations(te))
    early = draw(st.integers(0, len(te)))
    if draw(st.booleans()):
        order = [link for link in order if link.local]
    return links, order[:early], order[early:]


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 6), st.integers(1, 2), st.booleans()), max_size=4
)
"""Links are lost, the first and how many, or a TE LSA is gone; and whether rows are patched."""


@settings(max_examples=1000)
@given(listed(), STEPS)
def test_a_block_without_lost_links_equals_one_built_without_them(facts, steps):
    """Also where TE LSAs came after the router LSA, or are gone."""
    links, te, later = tuple(facts[0]), facts[1], facts[2]
    known = router(te, [])
    block = build(known, RouterLsa(0, links))
    for number, link in enumerate(later, len(te)):
        key = LsaKey(10, 1 << 24 | number, 1)
        if fits(known, key, link):
            known.te[key] = link
            known.patched[key] = None
            renamed(known, None, link)
    for loses, which, lost, patched in (*steps, (False, 0, 0, True)):
        if loses:
            links = links[:which] + links[which + lost :]
            smaller = shrunk(known, block, RouterLsa(0, links))
            if smaller is None:
                return
            block = smaller
        elif lost and known.te:
            key = sorted(known.te)[which % len(known.te)]
            known.block, gone = block, known.te.pop(key)
            renamed(known, gone, None)
            if not withdraw(known, key, gone):
                return
        fresh = router([], [])
        fresh.te = dict(known.te)
        whole = build(fresh, RouterLsa(0, links))
        same_state(known, fresh)
        if patched:
            block, _ = patch(known, block)
            known.patched.clear()
            known.vacant.clear()
            for name in NodeBlock.__struct_fields__:
                np.testing.assert_array_equal(getattr(block, name), getattr(whole, name), name)


@pytest.mark.parametrize(
    ("data", "te"),
    [
        ([0x0A000001], [0x0A000001, 0x0A000001]),  # the other TE LSA takes the row
        ([1], [1, 0x0A000001]),  # the row may be that of any TE LSA to the neighbor
    ],
)
def test_where_another_te_lsa_may_take_the_row_all_are_matched_again(data, te):
    links = [RouterLink(1, 1, local, 10) for local in data]
    facts = [TeFacts(1, 1, local, 0, 0, 0, 1e9 + at, 1e9) for at, local in enumerate(te)]
    known = router(facts, [])
    known.block = build(known, RouterLsa(0, tuple(links)))
    assert known.block.capacities.tolist() == [1e9]
    key = min(known.te)
    gone = known.te.pop(key)
    renamed(known, gone, None)
    assert not withdraw(known, key, gone)
    assert build(known, RouterLsa(0, tuple(links))).capacities.tolist() == [1e9 + 1]


def test_where_a_te_link_may_match_another_row_a_block_is_built_again():
    """It is the only one to the neighbor, and that row has no address."""
    links = (RouterLink(1, 1, 1, 10), RouterLink(1, 1, 2, 10))
    known = router([TeFacts(1, 1, 1, 0, 0, 0, 1e9, 1e9)], [])
    block = build(known, RouterLsa(0, links))
    np.testing.assert_array_equal(block.capacities, [1e9, np.nan])
    assert shrunk(known, block, RouterLsa(0, links[1:])) is None
    assert build(known, RouterLsa(0, links[1:])).capacities.tolist() == [1e9]
