"""LANs: two-way communication, and the election of one designated IS for each level."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.isis.adjacency.dis_election import Candidate, elect
from fared.protocols.isis.adjacency.lan import MAX_LAN_ADJACENCIES
from fared.protocols.isis.ids import Level, LevelSet, Snpa
from fared.protocols.isis.pdu.model import LanHello
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    IsNeighbors,
    Padding,
    ProtocolsSupported,
    of_type,
)
from tests.isis.hellonet import AREA, LAN, OTHER_AREA, P2P, Net, mac, system_id

ROUND_TRIPS = 0.02
WAITED = 2.1
"""Seconds: a little more than two hello intervals."""
STRANGER = 0x99
OURS = IsNeighbors((Snpa(mac(1, 1)),))


def hello(*more, level=2, areas=(AREA,), **fields) -> LanHello:
    """A LAN hello of an unknown router."""
    values = {
        "level": level,
        "circuit_type": LevelSet.BOTH,
        "source_id": STRANGER,
        "holding_time": 4,
        "priority": 1,
        "lan_id": 0,
        "tlvs": (AreaAddresses(areas), ProtocolsSupported((NLPID_IPV4, NLPID_IPV6)), *more),
    }
    return LanHello(**{**values, **fields})


def alone(**settings) -> Net:
    """Router 1 alone on a LAN."""
    net = Net()
    net.add(1, **settings)
    net.cable((1, 1))
    net.link(1, LAN)
    return net


def candidate(number: int, priority: int = 64, lan_id: int = 0) -> Candidate:
    return Candidate(number, mac(number, 1), priority, lan_id)


@pytest.mark.rfc("ISO 10589 §8.4.2.5.1")
def test_routers_of_a_lan_hear_each_other_in_both_levels_after_round_trips():
    net = Net()
    net.lan(1, 2, 3, 4)
    net.run(0.3)
    for number, router in net.routers.items():
        others = {system_id(other) for other in net.routers if other != number}
        assert router.heard(Level.ONE) == router.heard(Level.TWO) == others


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_the_highest_snpa_is_designated_after_two_hello_intervals():
    net = Net()
    net.lan(1, 2, 3)
    net.run(1.9)
    assert [router.dis() for router in net.routers.values()] == [0, 0, 0]
    net.run(0.2)
    assert [router.dis() for router in net.routers.values()] == [3, 3, 3]
    lan = net.routers[3].circuit().lan[Level.TWO]
    assert lan.is_dis
    assert lan.dis == 3 << 8 | net.routers[3].circuit().circuit_id
    assert ("dis", "eth1", 2, 0, lan.dis) in net.routers[1].watcher.take()


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_the_priority_counts_before_the_snpa():
    net = Net()
    net.lan(1, 2, 3, priorities={1: 64, 2: 100, 3: 0})
    net.run(WAITED)
    assert [router.dis() for router in net.routers.values()] == [2, 2, 2]


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_a_router_alone_on_a_lan_designates_nobody():
    net = Net()
    net.lan(1, 2)
    net.run(WAITED)
    net.routers[2].stopped = True
    net.run(5)
    assert net.routers[1].dis() == 0
    assert not net.routers[1].circuit().lan[Level.TWO].is_dis


def test_the_designated_is_sends_hellos_three_times_as_often_and_is_missed_as_much_sooner():
    net = Net()
    net.lan(1, 2)
    net.run(10)
    sent = [pdu for _, pdu, _ in net.routers[2].hellos(since=4) if pdu.level == 2]
    others = [pdu for _, pdu, _ in net.routers[1].hellos(since=4) if pdu.level == 2]
    assert 18 <= len(sent) <= 25
    assert 6 <= len(others) <= 9
    assert {pdu.holding_time for pdu in sent} == {2}
    assert {pdu.holding_time for pdu in others} == {4}


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_a_better_router_takes_the_office_from_its_holder_and_the_lan_is_never_without():
    net = Net()
    cable = net.lan(1, 2)
    net.run(WAITED)
    for router in net.routers.values():
        router.watcher.take()
    net.add(3)
    net.plug(cable, (3, 1))
    net.link(3, LAN)
    net.run(0.3)
    assert net.routers[3].dis() == 2, "a newcomer accepts the present DIS"
    net.run(3)
    assert [router.dis() for router in net.routers.values()] == [3, 3, 3]
    for number in (1, 2):
        offices = [call[4] for call in net.routers[number].watcher.take() if call[0] == "dis"]
        assert 0 not in offices
    assert not net.routers[2].circuit().lan[Level.TWO].is_dis


def test_the_next_best_takes_over_when_the_designated_is_falls_silent():
    net = Net()
    net.lan(1, 2, 3)
    net.run(5)
    net.routers[3].stopped = True
    net.run(2.2)
    assert net.routers[1].dis() == net.routers[2].dis() == 2


def test_the_next_best_takes_over_at_once_when_the_designated_is_sends_a_final_hello():
    net = Net()
    net.lan(1, 2, 3)
    net.run(5)
    net.routers[3].hello.shutdown()
    net.take_outputs(net.routers[3])
    net.run(0.3)
    assert net.routers[1].dis() == net.routers[2].dis() == 2
    assert net.routers[1].heard() == {2}


@pytest.mark.rfc("ISO 10589 §8.4.5")
def test_levels_elect_apart_from_each_other():
    """Router 3 is of level 2 only, router 4 of another area."""
    net = Net()
    net.add(3, levels=LevelSet.TWO)
    net.add(4, areas=(OTHER_AREA,))
    net.lan(1, 2, 3, 4)
    net.run(WAITED)
    assert net.routers[1].dis(Level.TWO) == 4
    assert net.routers[1].dis(Level.ONE) == 2
    assert net.routers[1].heard(Level.ONE) == {2}
    assert net.routers[4].dis(Level.ONE) == 0


def test_a_new_priority_moves_the_office():
    net = Net()
    net.lan(1, 2, 3)
    net.run(5)
    net.link(1, replace(LAN, priority=100))
    net.run(0.3)
    assert [router.dis() for router in net.routers.values()] == [1, 1, 1]


@pytest.mark.rfc("ISO 10589 §8.4.2.5.1")
def test_a_router_that_nobody_hears_is_no_neighbor():
    """Router 2 receives hellos of router 1, which never list it."""
    net = Net()
    cable = net.lan(1, 2)
    cable.deaf.add(1)
    net.run(10)
    assert not net.routers[2].heard()
    assert net.routers[2].circuit().lan[Level.TWO].adjacencies[mac(1, 1)].state.value == (
        "Initializing"
    )
    cable.deaf.clear()
    net.run(1.1)
    assert net.routers[2].heard() == {1}


@pytest.mark.rfc("ISO 10589 §8.4.2.5.3")
def test_a_neighbor_that_no_longer_lists_us_is_one_way():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(OURS))
    assert a.heard() == {STRANGER}
    net.say(1, hello())
    assert a.heard() == set()
    assert ("adjacency", "eth1", STRANGER, 2, False) in a.watcher.take()


@pytest.mark.rfc("ISO 10589 §8.4.2.4")
def test_another_router_behind_the_same_address_is_another_neighbor():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(OURS))
    net.say(1, hello(OURS, source_id=0x77))
    assert a.heard() == {0x77}


@pytest.mark.parametrize(
    ("reason", "stranger"),
    [
        ("duplicate-system-id", hello(source_id=1)),
        ("holding-time", hello(holding_time=0)),
        ("circuit-type", hello(circuit_type=LevelSet.ONE)),
        ("level-mismatch", hello(level=1, circuit_type=LevelSet.ONE)),
        ("no-common-protocol", hello(tlvs=(AreaAddresses((AREA,)),))),
    ],
)
def test_hellos_that_are_turned_away_are_counted_by_reason(reason, stranger):
    net = alone(levels=LevelSet.TWO)
    a = net.routers[1]
    net.say(1, stranger)
    assert a.errors() == {reason: 1}
    assert not a.circuit().lan[Level.TWO].adjacencies


@pytest.mark.rfc("ISO 10589 §8.4.2.2")
def test_level_1_needs_an_area_in_common():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(OURS, level=1))
    assert a.heard(Level.ONE) == {STRANGER}
    net.say(1, hello(OURS, level=1, areas=(OTHER_AREA,)))
    assert a.heard(Level.ONE) == set()
    assert a.errors() == {"area-mismatch": 1}


def test_a_point_to_point_hello_on_a_lan_is_turned_away():
    net = Net()
    a, _ = net.pair(circuit_a=LAN, circuit_b=P2P)
    net.run(ROUND_TRIPS)
    assert a.errors().keys() == {"network-type-mismatch"}


def test_forged_neighbors_cannot_crowd_out_real_ones():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(OURS), source=5)
    for number in range(3 * MAX_LAN_ADJACENCIES):
        net.say(1, hello(source_id=0x1000 + number), source=0x1000 + number)
        net.now += 0.001
    adjacencies = a.circuit().lan[Level.TWO].adjacencies
    assert len(adjacencies) == MAX_LAN_ADJACENCIES
    assert 5 in adjacencies
    net.say(1, hello(OURS), source=6)
    assert adjacencies[6].up


def test_a_lan_with_as_many_real_neighbors_as_a_hello_can_list_takes_no_more():
    net = alone()
    a = net.routers[1]
    for number in range(1, MAX_LAN_ADJACENCIES + 2):
        net.say(1, hello(OURS, source_id=0x1000 + number), source=number)
    assert a.errors() == {"too-many-neighbors": 1}
    net.run(1.1)
    _, sent, size = next(entry for entry in reversed(a.hellos()) if entry[1].level == 2)
    listed = [snpa for tlv in of_type(sent.tlvs, IsNeighbors) for snpa in tlv.snpas]
    assert listed == sorted(range(1, MAX_LAN_ADJACENCIES + 1))
    assert size <= 1497


@pytest.mark.rfc("RFC 3719 §6")
def test_hellos_are_padded_only_while_somebody_is_not_two_way():
    net = Net()
    cable = net.lan(1, 2)
    net.run(3)
    assert not any(of_type(pdu.tlvs, Padding) for _, pdu, _ in net.routers[1].hellos(since=1))
    net.add(3)
    net.plug(cable, (3, 1))
    net.link(3, LAN)
    start = net.now
    net.run(0.5)
    assert any(of_type(pdu.tlvs, Padding) for _, pdu, _ in net.routers[1].hellos(since=start))
    net.run(2)
    assert not of_type(net.routers[1].hellos()[-1][1].tlvs, Padding)


@pytest.mark.rfc("ISO 10589 §9.5")
def test_the_lan_id_of_hellos_is_zero_until_somebody_is_designated():
    """With our own LAN id there, neighbors would take this router for the elected DIS."""
    net = Net()
    net.lan(1, 2)
    net.run(10)
    ids = [pdu.lan_id for _, pdu, _ in net.routers[1].hellos() if pdu.level == 2]
    first = next(at for at, lan_id in enumerate(ids) if lan_id)
    assert set(ids[first:]) == {2 << 8 | 1}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_was_lost_all_agree_on_one_once_the_loss_ends(seed):
    net = Net(seed)
    cable = net.lan(1, 2, 3, 4, priorities={n: net.rng.randrange(128) for n in range(1, 5)})
    cable.loss = 0.6 + 0.3 * net.rng.random()
    net.run(20 + 5 * net.rng.random())
    cable.loss = 0.0
    net.run(4.5)
    best = max(
        net.routers, key=lambda number: (net.routers[number].circuit().settings.priority, number)
    )
    for level in Level:
        assert {router.dis(level) for router in net.routers.values()} == {best}
        for number, router in net.routers.items():
            assert router.heard(level) == set(net.routers) - {number}


def test_the_election_keeps_the_office_filled_until_the_best_declares_itself():
    own, best, other = 0x201, 0x301, 0x101
    me = candidate(2, lan_id=own)
    assert elect(me, [], current=own, eligible=True) == 0
    assert elect(me, [candidate(1)], current=0, eligible=False) == 0
    assert elect(me, [candidate(1)], current=0, eligible=True) == own
    assert elect(me, [candidate(1, lan_id=other)], current=0, eligible=False) == other
    assert elect(me, [candidate(3)], current=own, eligible=True) == own
    assert elect(me, [candidate(3, lan_id=best)], current=own, eligible=True) == best
    assert elect(me, [candidate(3), candidate(1, lan_id=other)], current=other, eligible=True) == (
        other
    )
    assert elect(me, [candidate(3), candidate(1)], current=other, eligible=True) == 0
