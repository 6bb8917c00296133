"""TE links are matched with the rows of their router: by a table if possible, else one by one."""

import math

from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import NodeId
from fared.ospf.packet.bodies import RouterLink, RouterLsa
from fared.ospf.packet.lsa import LsaKey
from fared.ospf.packet.te_facts import TeFacts
from fared.ospf.ted.blocks import RouterFacts, _look_up, _match, _names, build, renamed

FEW = st.integers(1, 3)
ADDRESSES = st.sampled_from([0, 1, 2, 0x0A000001, 0x0A000002, 0x0A000003])
LINKS = st.lists(st.builds(RouterLink, st.just(1), FEW, ADDRESSES, st.just(10)), max_size=6)
TE = st.lists(
    st.builds(
        TeFacts,
        link_type=st.just(1),
        link_id=FEW,
        local=ADDRESSES,
        remote=st.just(0),
        local_identifier=st.sampled_from([0, 1, 2]),
        remote_identifier=st.just(0),
        capacity=st.floats(1e6, 1e9),
        available=st.just(1e6),
    ),
    max_size=6,
)


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
        assert known.named == (_names(known.te) if unique else None)
        assert not unique or known.named is before
