"""Adjacencies that form at once (RFC 4222 §2 (5)): turns, descriptions kept, stuck neighbors."""

import pytest
from msgspec.structs import replace

from fared.protocols.ospf.packet.packets import DatabaseDescription, DdFlags, LsRequest
from tests.ospf.harness import FAST, Network, router_id
from tests.ospf.scripted import dd, make_lsa, update
from tests.ospf.star import Star

INITIAL = dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000)
LAST = dd(DdFlags.MS, 1001)


def greeted(count: int = 6, limit: int = 2, **settings) -> Star:
    """Neighbors whose hellos have arrived; none has described its database."""
    star = Star(count, full=False, adjacency_stagger=limit, **settings)
    for number in range(count):
        star.greet(number, star.me)
    return star


@pytest.mark.rfc("RFC 4222 §2 (5)")
def test_neighbors_beyond_the_limit_wait_in_2_way():
    star = greeted()
    assert star.states() == ["ExStart"] * 2 + ["2-Way"] * 4
    assert [star.view(n).waits for n in range(6)] == [False] * 2 + [True] * 4
    assert star.engine.adjacency_progress() == (6, 0, 6)


@pytest.mark.rfc("RFC 4222 §2 (5)")
def test_the_next_neighbor_begins_when_one_is_full():
    star = greeted()
    star.send(1, INITIAL, LAST)
    assert star.states() == ["ExStart", "Full", "ExStart", "2-Way", "2-Way", "2-Way"]
    assert star.got(2, DatabaseDescription)[-1].flags == INITIAL.flags


@pytest.mark.rfc("RFC 4222 §2 (5)")
def test_the_next_neighbor_begins_when_one_is_lost():
    star = greeted()
    star.greet(0)
    assert star.states() == ["Init", "ExStart", "ExStart", "2-Way", "2-Way", "2-Way"]


def test_the_first_description_of_a_waiting_neighbor_is_answered_in_its_turn():
    star = greeted()
    star.send(3, INITIAL)
    star.send(2, INITIAL)
    assert star.got(3, DatabaseDescription) == []
    star.send(0, INITIAL, LAST)
    star.send(1, INITIAL, LAST)
    assert star.states() == ["Full", "Full", "Exchange", "Exchange", "2-Way", "2-Way"]
    assert star.got(3, DatabaseDescription)[-1].dd_sequence_number == 1000
    star.send(3, LAST)
    assert star.states()[3] == "Full"


def test_a_description_kept_is_dropped_with_the_adjacency_that_it_began():
    star = greeted()
    star.send(2, INITIAL)
    star.greet(2)
    star.greet(2, star.me)
    for number in (0, 1, 3, 4):
        star.send(number, INITIAL, LAST)
    assert star.states()[2] == "ExStart"


@pytest.mark.rfc("RFC 4222 §2 (5)")
def test_neighbors_that_do_not_answer_do_not_keep_others_waiting():
    star = greeted(settings=replace(FAST, router_dead_interval=40, rxmt_interval=5.0))
    star.at(0.99)
    assert star.states().count("ExStart") == 2
    star.at(1.01)
    assert star.states().count("ExStart") == 4
    star.at(2.02)
    assert star.states().count("ExStart") == 6


def test_a_neighbor_with_a_larger_mtu_keeps_others_waiting_for_a_second_only():
    star = greeted(settings=replace(FAST, router_dead_interval=40, rxmt_interval=5.0))
    for seconds in range(1, 3):
        for number in (0, 1):
            star.send(number, dd(INITIAL.flags, 1000, mtu=9000))
        star.at(seconds + 0.02)
    assert star.states() == ["ExStart"] * 6


def test_a_neighbor_that_stops_describing_holds_its_place_for_rxmtinterval():
    star = greeted(settings=replace(FAST, router_dead_interval=40, rxmt_interval=5.0))
    star.send(0, INITIAL)
    star.send(1, INITIAL)
    star.at(4.99)
    assert star.states().count("2-Way") == 4
    star.at(5.01)
    assert star.states().count("2-Way") == 2


def test_a_neighbor_whose_exchange_fails_loses_its_place():
    star = greeted()
    star.send(0, INITIAL, dd(DdFlags.MS, 4711))
    assert star.states() == ["ExStart", "ExStart", "ExStart", "2-Way", "2-Way", "2-Way"]


@pytest.mark.parametrize("number", [1, 99], ids=["slave", "master"])
def test_a_spine_that_restarts_is_full_with_all_its_neighbors_within_seconds(number):
    net = Network()
    for leaf in range(2, 34):
        net.join(number, leaf)
    net.until(net.all_full, 60)
    net.restart(number)
    began = net.now
    net.until(lambda: net.all_full() and net.in_sync(), 60)
    assert net.now - began < 2.0


@pytest.mark.rfc("RFC 4222 §2 (5)")
def test_a_fabric_that_starts_at_once_forms_all_adjacencies_within_seconds():
    net = Network()
    for spine in range(8):
        for leaf in range(16):
            net.join(100 + spine if spine % 2 else 1 + spine, 50 + leaf)
    net.until(net.all_full, 60)
    assert net.now < 5.0


# Requests while several neighbors describe the same LSAs


def offering(*seconds: int) -> tuple[Star, list]:
    """Two neighbors that describe 100 LSAs, the second with other sequence numbers."""
    star = greeted(2)
    first = [make_lsa(router_id(1000 + n)) for n in range(100)]
    for number in (0, 1):
        star.send(number, INITIAL)
        star.send(number, dd(DdFlags.MS, 1001, *(lsa.header for lsa in first)))
    return star, first


def names(requests: list[LsRequest]) -> list:
    return [key for request in requests for key in request.requests]


@pytest.mark.rfc("RFC 2328 §10.9")
def test_an_lsa_is_requested_from_one_neighbor_at_a_time():
    star, lsas = offering()
    asked = names(star.got(0, LsRequest)) + names(star.got(1, LsRequest))
    assert sorted(asked) == sorted(lsa.header.key for lsa in lsas)


@pytest.mark.rfc("RFC 2328 §10.9")
def test_an_lsa_that_does_not_come_is_requested_from_the_other_neighbor_too():
    star, lsas = offering()
    star.got(1, LsRequest)
    star.at(1.01)
    assert set(names(star.got(1, LsRequest))) == {lsa.header.key for lsa in lsas}
    star.send(1, update(*lsas))
    assert star.states() == ["Full", "Full"]


@pytest.mark.rfc("RFC 2328 §10.9")
def test_what_one_neighbor_sends_is_loaded_from_the_other_too():
    star, lsas = offering()
    star.send(0, update(*lsas))
    assert star.states() == ["Full", "Full"]


@pytest.mark.rfc("RFC 2328 §10.9")
def test_a_newer_instance_is_requested_although_another_neighbor_is_asked_for_the_old_one():
    star = greeted(2)
    old = make_lsa(router_id(1000))
    new = make_lsa(router_id(1000), seq=old.header.ls_sequence_number + 1)
    for number, lsa in ((0, old), (1, new)):
        star.send(number, INITIAL)
        star.send(number, dd(DdFlags.MS, 1001, lsa.header))
    assert names(star.got(1, LsRequest)) == [new.header.key]
