"""Blocks that are patched with each LSA equal those built from all LSAs at once."""

from __future__ import annotations

import random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.te.attributes import TeAttributes
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.events import TedUpdated
from fared.paths.ted.model import NodeBlock
from fared.protocols.ospf.instance import Area, Instance
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLsa
from fared.protocols.ospf.packet.body import encode_body, opaque_link_state_id
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, LsType, encode_lsa
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink
from fared.protocols.ospf.settings import AreaSettings, OspfSettings
from fared.protocols.ospf.ted import builder, lost_links
from fared.protocols.ospf.ted.builder import TedBuilder
from tests.ospf.harness import BACKBONE, router_id

ORIGINATOR = router_id(9)
FAR = st.integers(1, 3)
ADDRESSES = st.sampled_from([1, 2, 3, 0x0A000001, 0x0A000002, 0x0A000003])
RATES = st.sampled_from([None, 1e9, 2e9, 5e9])
COSTS = st.sampled_from([10, 20, 0xFFFF])
STUBS = st.builds(RouterLink, st.just(3), ADDRESSES, st.sampled_from([0xFFFFFFFE, 0xFF]), COSTS)
LINKS = st.one_of(
    *[st.builds(RouterLink, st.sampled_from([1, 1, 2]), FAR, ADDRESSES, COSTS)] * 3, STUBS
)
ROUTER = st.builds(RouterLsa, st.just(0), st.lists(LINKS, max_size=5).map(tuple))
TE = st.builds(
    TeLink,
    link_type=st.just(1),
    link_id=FAR,
    local_addresses=st.lists(ADDRESSES, max_size=2).map(tuple),
    remote_addresses=st.lists(ADDRESSES, max_size=1).map(tuple),
    local_identifier=st.one_of(st.none(), st.integers(1, 3)),
    attributes=st.builds(
        TeAttributes,
        max_bandwidth=RATES,
        available_bandwidth=RATES,
        delay=st.sampled_from([None, None, 0, 350]),
        min_max_delay=st.sampled_from([None, None, (200, 900)]),
    ),
)
LOST = st.tuples(st.integers(0, 5), st.integers(1, 2))
"""Which links a router LSA loses: the first, and how many."""
STEPS = st.lists(
    st.tuples(st.integers(-3, 6), st.one_of(st.none(), TE, TE, TE), ROUTER, LOST, st.booleans()),
    max_size=25,
)


@pytest.fixture(autouse=True, scope="module")
def any_links_are_many():
    """Else lost links are never removed from blocks of so few."""
    with mock.patch.object(lost_links, "_FEW_LINKS", 0):
        yield


class Built:
    """A builder, what it said, and a database made of that."""

    def __init__(self) -> None:
        self.instance = Instance(OspfSettings(router_id=router_id(1)), random.Random(1))
        self.area = self.instance.areas[BACKBONE] = Area(AreaSettings(BACKBONE))
        self.builder = TedBuilder(self.instance)
        self.solver = RouteSolver(NodeId(ORIGINATOR), SolverSettings())
        self.updates: list[TedUpdated] = []
        self.kinds: list[ChangeKind] = []

    def install(self, number: int, body: RouterLsa | TeLink | None) -> None:
        """Install the router LSA (number 0) or a TE LSA; None: at MaxAge."""
        te = opaque_link_state_id(OpaqueType.TRAFFIC_ENGINEERING, number)
        lsa = encode_lsa(
            ls_age=MAX_AGE if body is None else 1,
            options=2,
            ls_type=LsType.OPAQUE_AREA if number else LsType.ROUTER,
            link_state_id=te if number else ORIGINATOR,
            advertising_router=ORIGINATOR,
            ls_sequence_number=INITIAL_SEQUENCE_NUMBER,
            body=encode_body(RouterLsa(0, ()) if body is None else body),
        )
        entry = LsaEntry(self.area.lsdb, lsa.header.key, lsa.raw, 0.0)
        self.area.lsdb.entries[entry.key] = entry
        self.builder.lsa_changed(entry)

    def flush(self) -> NodeBlock | None:
        """The block in the database."""
        self.builder.flush()
        for update in self.instance.process.take_outputs():
            assert isinstance(update, TedUpdated)
            self.updates.append(update)
            self.kinds.append(self.solver.put_block(0, update.node, update.block))
        if not self.solver.areas:
            return None
        ted = self.solver.ted(0)
        found = ted.block(NodeId(ORIGINATOR))
        if found is not None:
            rows = ted.links(NodeId(ORIGINATOR))
            assert rows is not None
            order = slice(None) if rows.order is None else rows.order
            np.testing.assert_array_equal(rows.remote_ids, found.remote_ids[order])
        return found


def same(ours: NodeBlock | None, theirs: NodeBlock | None) -> None:
    assert (ours is None) == (theirs is None)
    if ours is None or theirs is None:
        return
    for name in NodeBlock.__struct_fields__:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


@pytest.mark.parametrize("numbered", [False, True])
@settings(max_examples=150)
@given(st.data())
def test_any_history_of_lsas_of_a_router(numbered, data):
    """``numbered``: TE LSAs and links have addresses of their own, so lost links are removed."""
    built, present = Built(), {}
    steps = data.draw(STEPS)
    if numbered:
        present = {number: distinct_te(number) for number in range(1, 7)}
        present[0] = distinct_links()
        for number, body in present.items():
            built.install(number, body)
        built.flush()
    for what, link, router, (low, lost), flushed in steps:
        number = max(what, 0)
        body = link if number else router
        known = present.get(0)
        if what < 0 and known is not None:
            body = replace(known, links=known.links[:low] + known.links[low + lost :])
        if numbered and number and isinstance(body, TeLink):
            body = replace(distinct_te(number), attributes=body.attributes)
        present[number] = body
        built.install(number, body)
        if flushed:
            built.flush()
    fresh = Built()
    for number, body in present.items():
        if body is not None:
            fresh.install(number, body)
    same(built.flush(), fresh.flush())


def distinct_te(number: int) -> TeLink:
    return TeLink(
        link_type=1,
        link_id=number,
        local_addresses=(0x0A000000 + number,),
        remote_addresses=(),
        local_identifier=None,
        attributes=TeAttributes(max_bandwidth=1e9 * number),
    )


def distinct_links() -> RouterLsa:
    links = [RouterLink(1, number, 0x0A000000 + number, 10) for number in range(1, 7)]
    stub = RouterLink(3, 0x0A000000, 0xFFFFFF00, 10)
    return RouterLsa(0, (*links[:3], stub, *links[3:], stub))


def test_a_lost_link_is_removed_from_the_block_and_others_are_patched_as_before(monkeypatch):
    built, links = Built(), distinct_links().links
    built.install(0, distinct_links())
    for number in range(1, 7):
        built.install(number, distinct_te(number))
    built.flush()
    monkeypatch.delattr(builder, "build")
    left = (*links[:1], *links[4:])
    built.install(0, RouterLsa(0, left))
    built.install(2, None)  # with its TE LSA
    block = built.flush()
    assert block is not None
    assert built.kinds[-1] is ChangeKind.DROPPED
    assert block.neighbors.tolist() == [1, 4, 5, 6]
    assert len(block.prefixes) == 1
    built.install(1, replace(distinct_te(1), attributes=TeAttributes(max_bandwidth=3e9)))
    block = built.flush()
    assert block is not None
    np.testing.assert_array_equal(block.capacities, [3e9, 4e9, 5e9, 6e9])
    assert built.kinds[-1] is ChangeKind.CAPACITY
    updates = len(built.updates)
    built.install(3, None)  # of a link that is gone
    built.flush()
    assert len(built.updates) == updates
    built.install(5, replace(distinct_te(5), attributes=TeAttributes(max_bandwidth=7e9)))
    block = built.flush()
    assert block is not None
    np.testing.assert_array_equal(block.capacities, [3e9, 4e9, 7e9, 6e9])
    monkeypatch.undo()
    built.install(6, None)  # of a link that is still there
    block = built.flush()
    assert block is not None
    np.testing.assert_array_equal(block.capacities, [3e9, 4e9, 7e9, np.nan])


def test_a_te_lsa_changes_a_delay(monkeypatch):
    """A router that floods no delay has no array of them; no route follows it unless configured."""
    built = Built()
    built.install(0, distinct_links())
    built.install(1, distinct_te(1))
    block = built.flush()
    assert block is not None
    assert block.delays is None
    monkeypatch.delattr(builder, "build")
    attributes = distinct_te(1).attributes
    delayed = replace(attributes, delay=20_000, min_max_delay=(19_000, 30_000))
    for attributes, found in (
        (delayed, 20_000),
        (replace(delayed, delay=None), 19_000),  # a router that floods the minimum alone
    ):
        built.install(1, replace(distinct_te(1), attributes=attributes))
        block = built.flush()
        assert block is not None
        assert built.kinds[-1] is ChangeKind.LOAD
        np.testing.assert_array_equal(block.delays, [found, *[np.nan] * 5])
    built.install(1, distinct_te(1))
    block = built.flush()
    assert block is not None
    assert (built.kinds[-1], block.delays) == (ChangeKind.LOAD, None)


def unnumbered(number: int, rate: float) -> TeLink:
    return TeLink(
        link_type=1,
        link_id=number,
        local_addresses=(),
        remote_addresses=(),
        local_identifier=number,
        attributes=TeAttributes(residual_bandwidth=rate, available_bandwidth=rate / 2),
    )


def test_a_te_lsa_changes_one_row(monkeypatch):
    """Also the first one of an unnumbered link: the others are not matched again."""
    built = Built()
    built.install(0, RouterLsa(0, tuple(RouterLink(1, far, far, 10) for far in range(1, 65))))
    assert built.flush() is not None
    monkeypatch.delattr(builder, "build")
    for number in range(1, 65):
        built.install(number, unnumbered(number, 1e9))
        built.flush()
    built.install(7, unnumbered(7, 2e9))
    block = built.flush()
    assert block is not None
    assert built.kinds[-1] is ChangeKind.CAPACITY
    assert block.capacities[6] == 2e9
