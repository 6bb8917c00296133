"""A TE LSA that is flushed with a lost link waits until the loss has been processed."""

from __future__ import annotations

import random

import pytest

from fared.core.igp import LinkChanged
from fared.core.reduction import FloodDelay
from fared.ospf.flooding.late import DELAY
from fared.ospf.flooding.suppression import SUPPRESSION
from fared.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa
from fared.ospf.packet.opaque import TeLink
from fared.ospf.packet.packets import LsUpdate
from fared.ospf.packet.te import encode_te_link
from tests.ospf.harness import make_link, router_id
from tests.ospf.scripted import OURS, Scripted, make_lsa, update

FAR = router_id(7)
ROUTER, TE = (1, FAR, FAR), (10, 0x0100000A, FAR)
FIRST = INITIAL_SEQUENCE_NUMBER


def te(seq: int, age: int = 1) -> Lsa:
    body = encode_te_link(TeLink(link_type=1, link_id=router_id(8), local_addresses=(OURS,)))
    return make_lsa(FAR, seq, age=age, ls_type=10, lsid=TE[1], body=body)


@pytest.fixture
def engine() -> Scripted:
    """An engine that has learnt both LSAs of a router, long enough ago."""
    scripted = Scripted()
    scripted.to_full()
    scripted.send(update(make_lsa(FAR), te(FIRST)))
    scripted.at(scripted.now + 2)
    scripted.greet(scripted.me)
    scripted.got()
    return scripted


def held(engine: Scripted) -> tuple[int, bool]:
    """The instance of the router LSA, and whether the TE LSA is in use."""
    lsas = engine.lsas()
    alive = TE in lsas and lsas[TE][1] < MAX_AGE
    return lsas[ROUTER][0].header.ls_sequence_number - FIRST, alive


def test_the_router_lsa_is_processed_at_once_and_the_flush_after_the_delay(engine):
    engine.send(update(make_lsa(FAR, FIRST + 1), te(FIRST, MAX_AGE)))
    assert held(engine) == (1, True)
    engine.at(engine.now + DELAY)
    assert held(engine) == (1, False)
    acknowledged = {header.key for ack in engine.acks() for header in ack.lsa_headers}
    assert acknowledged == {ROUTER, TE}


@pytest.mark.parametrize(
    "lsas",
    [
        [te(FIRST, MAX_AGE)],
        [make_lsa(FAR, FIRST, age=MAX_AGE), te(FIRST, MAX_AGE)],
    ],
    ids=["alone", "of a router that shuts down"],
)
def test_any_other_flush_is_processed_at_once(engine, lsas):
    engine.send(update(*lsas))
    assert TE not in engine.lsas() or engine.lsas()[TE][1] == MAX_AGE


def test_a_newer_instance_follows_the_flush_in_order(engine):
    engine.send(update(make_lsa(FAR, FIRST + 1), te(FIRST, MAX_AGE)))
    engine.at(engine.now + DELAY / 2)
    engine.send(update(te(FIRST + 1)))
    engine.at(engine.now + DELAY)
    assert engine.lsas()[TE][0].header.ls_sequence_number == FIRST + 1
    assert engine.got(LsUpdate) == []


def test_a_flush_whose_sender_was_lost_meanwhile_is_dropped(engine):
    engine.send(update(make_lsa(FAR, FIRST + 1), te(FIRST, MAX_AGE)))
    engine.handle(LinkChanged(make_link(2, OURS, up=False), engine.settings))
    engine.at(engine.now + DELAY)
    assert held(engine) == (1, True)


def test_deferred_copies_of_the_flush_share_their_time_with_those_of_the_router_lsa():
    """With twice the delay, a lost link of a 4x8 fabric costs a fifth more packets."""
    delay, rng = FloodDelay(), random.Random(1)
    due = delay.due(SUPPRESSION, 0.0, rng)
    assert delay.due(SUPPRESSION, DELAY, rng) == due
    assert delay.due(SUPPRESSION, 2 * DELAY, rng) != due
