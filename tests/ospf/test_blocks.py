"""TE links are matched with the rows of their router."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import NodeId
from fared.paths.ted.model import NodeBlock
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.te_facts import TeFacts
from fared.protocols.ospf.ted.blocks import RouterFacts, build, fits, patch

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


def router(te: list[TeFacts], links: list[RouterLink]) -> RouterFacts:
    known = RouterFacts(NodeId(1))
    known.te = {LsaKey(10, 1 << 24 | number, 1): link for number, link in enumerate(te)}
    known.rows = {(link.link_id, link.link_data): row for row, link in enumerate(links)}
    return known


@given(LINKS, TE)
def test_each_row_has_the_capacity_of_its_te_link(links, te):
    known = router(te, links)
    block = build(known, RouterLsa(0, tuple(links)))
    rows = {row: known.te[key].capacity for key, row in known.row_of.items()}
    assert len(rows) == len(known.row_of)
    for row, capacity in enumerate(block.capacities.tolist()):
        assert capacity == rows[row] if row in rows else math.isnan(capacity)


METRICS = st.sampled_from([10, 0xFFFF, 0xFFFF])
LISTED = st.lists(
    st.one_of(
        st.builds(RouterLink, st.sampled_from([1, 1, 2]), FEW, ADDRESSES, METRICS),
        st.builds(RouterLink, st.just(3), FEW, st.sampled_from([0xFFFFFF00, 0xFF]), METRICS),
    ),
    max_size=7,
    unique=True,
)


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


@settings(max_examples=500)
@given(listed())
def test_te_lsas_that_come_after_the_router_lsa_give_the_same_block(facts):
    links, te, later = RouterLsa(0, tuple(facts[0])), facts[1], facts[2]
    known = router(te, [])
    block = build(known, links)
    for number, link in enumerate(later, len(te)):
        key = LsaKey(10, 1 << 24 | number, 1)
        if fits(known, key, link):
            known.te[key] = link
            known.patched[key] = None
    block = patch(known, block)
    fresh = router([], [])
    fresh.te = dict(known.te)
    whole = build(fresh, links)
    assert (known.rows, known.row_of, known.claimed) == (fresh.rows, fresh.row_of, fresh.claimed)
    for name in NodeBlock.__struct_fields__:
        np.testing.assert_array_equal(getattr(block, name), getattr(whole, name), name)


def test_of_two_te_lsas_for_one_row_the_other_takes_it_when_the_first_is_gone():
    links = RouterLsa(0, (RouterLink(1, 1, 0x0A000001, 10),))
    known = router([TeFacts(1, 1, 0x0A000001, 0, 0, 0, 1e9 + at, 1e9) for at in range(2)], [])
    assert build(known, links).capacities.tolist() == [1e9]
    del known.te[min(known.te)]
    assert build(known, links).capacities.tolist() == [1e9 + 1]


def test_a_te_link_may_match_another_row_when_its_link_is_lost():
    """It is the only one to the neighbor, and that row has no address."""
    links = (RouterLink(1, 1, 1, 10), RouterLink(1, 1, 2, 10))
    known = router([TeFacts(1, 1, 1, 0, 0, 0, 1e9, 1e9)], [])
    np.testing.assert_array_equal(build(known, RouterLsa(0, links)).capacities, [1e9, np.nan])
    assert build(known, RouterLsa(0, links[1:])).capacities.tolist() == [1e9]
