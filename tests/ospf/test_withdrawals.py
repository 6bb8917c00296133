"""Externals withdrawn together are withdrawn as one by one, whatever comes with them."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.paths.ted.events import PrefixesUpdated
from fared.protocols.igp.events import SendPacket
from fared.protocols.ospf.flooding.withdrawals import Withdrawals
from fared.protocols.ospf.packet.bodies import (
    E_BIT,
    AsExternalLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
)
from fared.protocols.ospf.packet.body import encode_body
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa, LsType
from fared.protocols.ospf.packet.packets import DdFlags, LsUpdate
from tests.ospf.harness import FAST, router_id
from tests.ospf.scripted import OURS, ack, dd, make_lsa, update
from tests.ospf.star import Star

NEIGHBORS, EXTERNALS = 3, 6
PATIENT = replace(FAST, rxmt_interval=2.0, router_dead_interval=4000, hello_interval=1000)
FIELDS = ("key", "raw", "base_age", "installed_at", "marks", "unacknowledged", "deferred")
BOUNDARIES = (router_id(100), router_id(200))
"""AS boundary routers: neighbor 0, and a router behind the neighbors 0 and 1."""
KINDS = ("copy", "changed", "withdrawn anew", "withdrawn late")
_BOUNDARY, _NUMBER = st.sampled_from((0, 1)), st.integers(0, EXTERNALS - 1)
LSA = st.tuples(st.sampled_from(KINDS), _BOUNDARY, _NUMBER).map(lambda each: [each])
RUN = st.tuples(
    st.sampled_from(("withdrawn", "withdrawn", "withdrawn", "changed", "withdrawn late")),
    _BOUNDARY,
    _NUMBER,
).map(lambda run: [(run[0], run[1], number) for number in range(run[2], EXTERNALS)])
"""Several of a boundary router, as it withdraws or changes them."""
STEPS = st.lists(
    st.tuples(
        st.integers(0, NEIGHBORS - 1),
        st.lists(st.one_of(RUN, RUN, LSA), min_size=1, max_size=3),
        st.sampled_from((0.0, 0.5, 3.0)),
        st.booleans(),
    ),
    min_size=2,
    max_size=8,
)


class Observed(Star):
    """Keeps what the engine reports to the TED too; ``one by one`` it processes LSAs alone."""

    def __init__(self, *, one_by_one: bool, **settings) -> None:
        self.reported: list[PrefixesUpdated] = []
        super().__init__(NEIGHBORS, PATIENT, **settings)
        flooding = self.engine._flooding
        if one_by_one:
            flooding._withdrawals.process = lambda neighbor, lsas: lsas
        links = [
            RouterLink(
                link_id=router_id(100 + number),
                link_data=number,
                link_type=RouterLinkType.POINT_TO_POINT,
                metric=10,
            )
            for number in (0, 1)
        ]
        for router in BOUNDARIES:
            body = encode_body(RouterLsa(E_BIT, tuple(links)))
            self.send(0, update(make_lsa(router, body=body)))

    def take_outputs(self) -> None:
        for output in self.engine.take_outputs():
            if isinstance(output, SendPacket):
                self.sent.append((self.now, output.ifindex - 2, output))
            elif isinstance(output, PrefixesUpdated):
                self.reported.append(output)

    def outcome(self) -> tuple:
        """All that it holds, counts, reports, and has sent."""
        databases = [
            [getattr(entry, field) for field in FIELDS]
            for lsdb in self.engine.instance.databases()
            for entry in lsdb
        ]
        reported = [(each.node, dict(each.changes)) for each in self.reported]
        engine = self.engine
        claimed = dict(engine._external._claimed)
        counted = engine.prefix_limit, engine.counters.lsdb, self.states()
        return databases, claimed, reported, self.sent, counted


def external(router: int, number: int, sequence: int, age: int = 1) -> Lsa:
    forwarding_address = OURS + 1 if number % 2 else 0
    body = encode_body(AsExternalLsa(0xFFFFFF00, True, 10 + sequence, forwarding_address, 0))
    network = (20 << 24) + (number << 8)
    return make_lsa(
        router,
        INITIAL_SEQUENCE_NUMBER + sequence,
        age=age,
        ls_type=LsType.AS_EXTERNAL,
        lsid=network,
        body=body,
    )


class Advertised:
    """What the boundary routers have advertised last, by sequence number."""

    def __init__(self) -> None:
        self.sequences: dict[tuple[int, int], int] = {}

    def lsa(self, kind: str, boundary: int, number: int) -> Lsa:
        """An LSA as somebody may send it now."""
        at = (boundary, number)
        sequence = self.sequences.setdefault(at, 0)
        if kind in ("changed", "withdrawn anew"):
            sequence = self.sequences[at] = sequence + 1
        elif kind == "withdrawn late":
            sequence = max(0, sequence - 1)
        age = MAX_AGE if kind.startswith("withdrawn") else 1
        return external(BOUNDARIES[boundary], number, sequence, age)


def acknowledge_all(star: Observed) -> None:
    """Neighbors acknowledge what they were sent last."""
    for number in range(NEIGHBORS):
        for body in star.got(number, LsUpdate):
            star.send(number, ack(*body.lsas))


def learnt(star: Observed) -> None:
    """All externals are learnt from neighbor 0, and everybody has them."""
    for boundary in BOUNDARIES:
        star.send(0, update(*[external(boundary, number, 0) for number in range(EXTERNALS)]))
    star.at(star.now + 3.0)
    acknowledge_all(star)
    star.at(star.now + 3.0)
    star.sent.clear()


def step(kind: str, gap: float, *, acknowledged: bool = False) -> tuple:
    """A step with all externals of the second boundary router."""
    return 0, [[(kind, 1, number) for number in range(EXTERNALS)]], gap, acknowledged


@given(STEPS)
@example([step("changed", 3.0), step("withdrawn", 3.0)])  # a neighbor lacks what is withdrawn
@example([step("changed", 0.5, acknowledged=True), step("withdrawn", 3.0)])  # MinLSArrival
@example([step("changed", 1.1, acknowledged=True), step("withdrawn", 3.0)])
@example([step("withdrawn", 0.5), step("withdrawn", 3.0), step("changed", 3.0)])
def test_together_or_one_by_one_there_is_no_difference(steps):
    both = Observed(one_by_one=False), Observed(one_by_one=True)
    for star in both:
        learnt(star)
    advertised = Advertised()
    for sender, chosen, gap, acknowledged in steps:
        lsas = [advertised.lsa(*each) for run in chosen for each in run]
        for star in both:
            star.send(sender, update(*lsas))
            star.at(star.now + gap)
            if acknowledged:
                acknowledge_all(star)
        assert both[0].outcome() == both[1].outcome()


def test_an_update_of_withdrawn_externals_is_processed_at_once(monkeypatch):
    left = []
    process = Withdrawals.process

    def counted(self, neighbor, lsas):
        rest = process(self, neighbor, lsas)
        left.append((len(lsas), len(rest)))
        return rest

    monkeypatch.setattr(Withdrawals, "process", counted)
    star = Observed(one_by_one=False)
    learnt(star)
    left.clear()
    gone = [external(BOUNDARIES[1], number, 0, MAX_AGE) for number in range(EXTERNALS)]
    star.send(1, update(*gone, external(BOUNDARIES[0], 0, 1)))
    assert left == [(EXTERNALS + 1, 1)]
    star.at(star.now + 3.0)
    acknowledge_all(star)
    held = [
        key
        for key in star.engine.instance.as_scope.entries
        if key.advertising_router == BOUNDARIES[1]
    ]
    assert held == []
    changes = next(each.changes for each in star.reported[-2:] if each.node == BOUNDARIES[1])
    assert changes == dict.fromkeys([lsa.header.key for lsa in gone])


def test_there_is_no_difference_while_a_neighbor_requests_lsas():
    both = Observed(one_by_one=False), Observed(one_by_one=True)
    gone = [external(BOUNDARIES[1], number, 0, MAX_AGE) for number in range(EXTERNALS)]
    for star in both:
        learnt(star)
        star.greet(2)  # one-way: it begins anew
        star.greet(2, star.me)
        star.send(2, dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000))
        headers = [external(BOUNDARIES[1], number, 0).header for number in range(EXTERNALS)]
        star.send(2, dd(DdFlags.M | DdFlags.MS, 1001, *headers))
        star.send(1, update(*gone))
        star.at(star.now + 1.0)
    assert both[0].states()[2] == "Exchange"
    assert both[0].outcome() == both[1].outcome()
