"""Point-to-point circuits: how adjacencies form, and what prevents them."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import AdjacencyChanged, LogRecord
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis.adjacency.fsm import ADJACENCY_TABLE, AdjacencyEvent
from fared.protocols.isis.circuit import AdjacencyState
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.pdu.model import P2pHello
from fared.protocols.isis.pdu.tlvs import (
    MT_IPV6,
    NLPID_IPV4,
    NLPID_IPV6,
    AreaAddresses,
    InterfaceAddresses,
    MultiTopology,
    Padding,
    ProtocolsSupported,
    ThreeWay,
    ThreeWayState,
    Topology,
    of_type,
)
from tests.igp.log_lines import bare_ids
from tests.isis.hellonet import AREA, LAN, LINK_LOCAL, LOOPBACK, OTHER_AREA, P2P, Net, mac

ROUND_TRIPS = 0.01
"""Seconds: enough for several immediate hellos, less than a hello interval."""
STRANGER = 0x99
BOTH = LevelSet.BOTH


def key(secret: bytes, algorithm: Algorithm = Algorithm.HMAC_SHA_256) -> tuple[TimedKey, ...]:
    return (TimedKey(AuthKey(algorithm, 1, secret)),)


def hello(three_way: ThreeWay | None = None, tlvs=None, areas=(AREA,), **fields) -> P2pHello:
    """A hello that a router of these tests accepts."""
    if tlvs is None:
        tlvs = (AreaAddresses(areas), ProtocolsSupported((NLPID_IPV4, NLPID_IPV6)))
    if three_way is not None:
        tlvs = (three_way, *tlvs)
    values = {
        "circuit_type": BOTH,
        "source_id": STRANGER,
        "holding_time": 4,
        "local_circuit_id": 1,
        "tlvs": tlvs,
    }
    return P2pHello(**{**values, **fields})


def alone() -> Net:
    """Router 1 with an unconnected cable."""
    net = Net()
    net.add(1)
    net.link(1)
    return net


def test_two_routers_are_neighbors_after_round_trips_and_not_after_intervals():
    net = Net()
    a, b = net.pair()
    net.run(ROUND_TRIPS)
    assert a.up() == b.up() == BOTH
    assert a.adjacency().system_id == 2
    assert a.adjacency().snpa == mac(2, 1)
    assert a.adjacency().extended_circuit_id == 1
    assert sorted(a.changes()) == sorted(
        (level, *states)
        for level in (1, 2)
        for states in (("Down", "Initializing"), ("Initializing", "Up"))
    )
    assert a.watcher.take()[-2:] == [
        ("adjacency", "eth1", 2, 1, True),
        ("adjacency", "eth1", 2, 2, True),
    ]


def test_a_neighbor_that_comes_later_does_not_wait_for_our_hello_interval():
    net = Net()
    net.add(1)
    net.add(2)
    net.cable((1, 1), (2, 1))
    net.link(1, replace(P2P, hello_interval=10.0))
    net.run(7)
    net.link(2)
    net.run(ROUND_TRIPS)
    assert net.routers[1].up() == net.routers[2].up() == BOTH


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
@pytest.mark.parametrize("ours", [1, 2, 3])
@pytest.mark.parametrize("theirs", [1, 2, 3])
@pytest.mark.parametrize("same_area", [True, False])
def test_levels_in_use_are_those_of_both_and_level_1_needs_an_area_in_common(
    ours, theirs, same_area
):
    """ISO 10589 §8.2.5.2, tables 5 to 8."""
    net = Net()
    other = AREA if same_area else OTHER_AREA
    a, b = net.pair({"levels": LevelSet(ours)}, {"levels": LevelSet(theirs), "areas": (other,)})
    net.run(3)
    expected = LevelSet(ours & theirs & (3 if same_area else 2))
    assert a.up() == b.up() == expected
    reasons = {"level-mismatch", "area-mismatch"}
    assert bool(reasons & a.errors().keys()) == (expected == LevelSet.NONE)


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_one_area_of_several_in_common_is_enough():
    net = Net()
    a, _ = net.pair({"areas": (AREA, OTHER_AREA)}, {"areas": (b"\x49", OTHER_AREA)})
    net.run(ROUND_TRIPS)
    assert a.up() == BOTH


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_the_levels_of_the_circuit_count_as_well():
    net = Net()
    a, b = net.pair(circuit_a=replace(P2P, levels=LevelSet.TWO))
    net.run(ROUND_TRIPS)
    assert a.up() == b.up() == LevelSet.TWO


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_silence_for_the_holding_time_ends_the_adjacency():
    net = Net()
    a, b = net.pair()
    net.run(10)
    heard = a.adjacency().last_hello
    b.stopped = True
    net.run(heard + 4 - net.now - 0.001)
    assert a.up() == BOTH
    net.run(0.01)
    assert a.adjacency() is None
    reasons = [o.reason for _, o in a.said if isinstance(o, AdjacencyChanged) and o.state == "Down"]
    assert reasons == ["holding time expired"] * 2
    assert a.circuit().flaps == {(2, 0): 1}


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_the_holding_time_is_the_one_the_neighbor_asks_for():
    net = Net()
    a, b = net.pair(circuit_b=replace(P2P, hello_interval=0.5, hello_multiplier=3))
    net.run(5)
    assert a.adjacency().holding_time == 2  # whole seconds, rounded up
    b.stopped = True
    net.run(2.1)
    assert a.adjacency() is None


def test_hellos_keep_an_adjacency_up_for_ever():
    net = Net()
    a, b = net.pair()
    net.run(300)
    assert len(a.changes()) == len(b.changes()) == 4
    gaps = [late - soon for (soon, *_), (late, *_) in itertools.pairwise(a.hellos(since=1))]
    assert min(gaps) >= 0.75 - 1e-9
    assert max(gaps) <= 1.0


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_a_neighbor_without_the_three_way_tlv_is_two_way_at_once():
    net = alone()
    a = net.routers[1]
    net.say(1, hello())
    assert a.up() == BOTH
    assert a.adjacency().extended_circuit_id is None
    _, sent, _ = a.hellos()[-1]
    assert of_type(sent.tlvs, ThreeWay)[0].state == ThreeWayState.UP


@pytest.mark.rfc("RFC 5303 §3.2")
def test_the_state_machine_is_the_table_of_rfc_5303():
    """RFC 5303 §3.2: rows are the state in the hello, columns our own state."""
    down, starting, up = AdjacencyState
    table = {
        AdjacencyEvent.DOWN_RECEIVED: (starting, starting, starting),
        AdjacencyEvent.INITIALIZING_RECEIVED: (up, up, up),
        AdjacencyEvent.UP_RECEIVED: (down, up, up),
    }
    for event, targets in table.items():
        found = tuple(ADJACENCY_TABLE.find(state, event).target for state in (down, starting, up))
        assert found == targets


@pytest.mark.rfc("RFC 5303 §3.2")
def test_a_neighbor_that_restarted_is_up_again_after_round_trips():
    net = Net()
    a, _ = net.pair()
    net.run(5)
    net.add(2)
    net.link(2)
    net.run(ROUND_TRIPS)
    assert a.up() == net.routers[2].up() == BOTH
    assert ("adjacency", "eth1", 2, 2, False) in a.watcher.take()
    assert a.adjacency().flaps == 1


@pytest.mark.rfc("RFC 5303 §3.2")
def test_a_neighbor_that_holds_us_up_from_before_our_restart_is_told_at_once():
    net = alone()
    a = net.routers[1]
    net.run(0.5)
    net.say(1, hello(ThreeWay(ThreeWayState.UP, 7, 1, 1)))
    assert a.adjacency() is None
    at, sent, _ = a.hellos()[-1]
    assert at == net.now
    assert of_type(sent.tlvs, ThreeWay) == (ThreeWay(ThreeWayState.DOWN, 1),)


@pytest.mark.rfc("RFC 5303 §3.2")
def test_a_neighbor_that_knows_us_by_a_former_circuit_id_learns_the_new_one():
    """The interface was created again with another ifindex, unknown to the neighbor."""
    net = alone()
    a = net.routers[1]
    net.run(0.5)
    net.say(1, hello(ThreeWay(ThreeWayState.UP, 7, 1, 99)))
    assert a.errors() == {"three-way-mismatch": 1}
    at, sent, _ = a.hellos()[-1]
    assert at == net.now
    assert of_type(sent.tlvs, ThreeWay)[0].extended_local_circuit_id == 1


@pytest.mark.rfc("RFC 5303 §3.2")
def test_the_neighbors_circuit_id_may_change_and_is_told():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(ThreeWay(ThreeWayState.INITIALIZING, 7, 1, 1)))
    a.watcher.take()
    net.say(1, hello(ThreeWay(ThreeWayState.UP, 8, 1, 1)))
    assert a.adjacency().extended_circuit_id == 8
    assert a.watcher.take() == [("circuit", "eth1")]


@pytest.mark.parametrize(
    ("reason", "stranger"),
    [
        ("duplicate-system-id", hello(source_id=1)),
        ("holding-time", hello(holding_time=0)),
        ("level-mismatch", hello(circuit_type=LevelSet.ONE)),
        ("area-mismatch", hello(areas=(OTHER_AREA,))),
        ("no-common-protocol", hello(tlvs=(AreaAddresses((AREA,)),))),
        (
            "no-common-protocol",
            hello(tlvs=(AreaAddresses((AREA,)), ProtocolsSupported((NLPID_IPV6,)))),
        ),
        (
            "no-common-topology",
            hello(
                tlvs=(
                    AreaAddresses((AREA,)),
                    ProtocolsSupported((NLPID_IPV4,)),
                    MultiTopology((Topology(MT_IPV6),)),
                )
            ),
        ),
        ("three-way-state", hello(ThreeWay(3, 7))),
        ("three-way-mismatch", hello(ThreeWay(ThreeWayState.INITIALIZING, 7, 5, 1))),
        ("three-way-mismatch", hello(ThreeWay(ThreeWayState.INITIALIZING, 7, 1, 5))),
    ],
)
def test_hellos_that_are_turned_away_are_counted_by_reason_and_change_nothing(reason, stranger):
    net = Net()
    level = LevelSet.ONE if reason == "area-mismatch" else LevelSet.TWO
    a = net.add(1, families=(4,), levels=level)
    net.link(1)
    for _ in range(3):
        net.say(1, stranger)
    assert a.errors() == {reason: 3}
    assert a.adjacency() is None
    assert a.changes() == []
    records = [output for _, output in a.said if isinstance(output, LogRecord)]
    assert [record.event for record in records] == ["isis-rejected"]
    assert bare_ids(records) == []


@pytest.mark.rfc("ISO 10589 §8.2.5.1")
def test_a_lan_hello_on_a_point_to_point_circuit_is_turned_away():
    net = Net()
    a, b = net.pair(circuit_b=LAN)
    net.run(ROUND_TRIPS)
    assert a.errors().keys() == b.errors().keys() == {"network-type-mismatch"}


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
@pytest.mark.parametrize(
    ("reason", "later"),
    [
        ("area-mismatch", hello(areas=(OTHER_AREA,), circuit_type=LevelSet.ONE)),
        ("no-common-protocol", hello(tlvs=(AreaAddresses((AREA,)),))),
    ],
)
def test_a_neighbor_that_ceases_to_fit_is_dropped(reason, later):
    net = alone()
    a = net.routers[1]
    net.say(1, hello())
    net.say(1, later)
    assert a.adjacency() is None
    downs = [o for _, o in a.said if isinstance(o, AdjacencyChanged) and o.state == "Down"]
    assert [o.reason for o in downs] == [reason] * 2


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_a_neighbor_that_moves_to_another_area_keeps_level_2():
    net = alone()
    a = net.routers[1]
    net.say(1, hello())
    a.watcher.take()
    net.say(1, hello(areas=(OTHER_AREA,)))
    assert a.up() == LevelSet.TWO
    assert ("adjacency", "eth1", STRANGER, 1, False) in a.watcher.take()
    net.say(1, hello())
    assert a.up() == BOTH
    assert ("adjacency", "eth1", STRANGER, 1, True) in a.watcher.take()
    assert [change[0] for change in a.changes()].count(2) == 1


@pytest.mark.rfc("ISO 10589 §8.2.5.2", "RFC 3719 §9")
def test_a_second_neighbor_is_turned_away_while_the_first_lives():
    net = alone()
    a = net.routers[1]
    net.say(1, hello(holding_time=9))
    net.run(2)
    net.say(1, hello(source_id=0x77))
    assert a.adjacency().system_id == STRANGER
    assert a.errors() == {"second-neighbor": 1}
    net.run(2)  # silent for more than a third of its holding time: the cable was moved
    net.say(1, hello(source_id=0x77))
    assert a.adjacency().system_id == 0x77
    assert a.up() == BOTH


def test_a_broadcast_of_noise_does_not_make_us_talk_without_bounds():
    net = alone()
    net.run(5)
    before = len(net.routers[1].hellos())
    for _ in range(1000):
        net.say(1, hello(ThreeWay(ThreeWayState.DOWN, 7)))
    assert len(net.routers[1].hellos()) - before <= 5
    net.run(1)
    assert len(net.routers[1].hellos()) - before <= 10


@pytest.mark.rfc("RFC 3719 §6")
def test_hellos_fill_the_mtu_until_the_adjacency_is_up():
    net = Net()
    a, _ = net.pair()
    net.run(5)
    sizes = [(bool(of_type(pdu.tlvs, Padding)), size) for _, pdu, size in a.hellos()]
    padded = [size for padding, size in sizes if padding]
    assert padded
    assert set(padded) <= {1496, 1497}
    assert not any(padding for padding, _ in sizes[len(padded) :])
    assert sizes[-1][1] < 100


@pytest.mark.parametrize("mtu", [1500, 1514, 9000])
def test_a_signed_hello_is_no_larger_than_the_mtu(mtu):
    net = Net()
    net.add(1)
    for algorithm in Algorithm:
        net.link(1, None)
        net.link(1, replace(P2P, authentication=key(b"secret", algorithm)), mtu=mtu)
        assert mtu - 4 <= net.routers[1].hellos()[-1][2] <= mtu - 3


def test_padding_can_be_switched_off():
    net = Net()
    a, _ = net.pair(circuit_a=replace(P2P, hello_padding=False))
    net.run(5)
    assert all(size < 100 for _, _, size in a.hellos())


@pytest.mark.rfc("RFC 3719 §6")
def test_padding_keeps_links_down_whose_ends_differ_in_mtu():
    net = Net()
    a, b = net.add(1), net.add(2)
    net.cable((1, 1), (2, 1))
    net.link(1, mtu=9000)
    net.link(2)
    net.run(20)
    assert not a.up()
    assert not b.up()


def test_what_the_neighbor_says_of_itself_is_kept_for_next_hops():
    net = Net()
    a, _ = net.pair(b={"multi_topology": True})
    net.run(ROUND_TRIPS)
    adjacency = a.adjacency()
    assert adjacency.ipv4 == (0x0A00_0102,)
    assert adjacency.ipv6 == (LINK_LOCAL | 1 << 16 | 2,)
    assert adjacency.nlpids == (NLPID_IPV4, NLPID_IPV6)
    assert adjacency.areas == (AREA,)
    assert adjacency.topologies == (0, MT_IPV6)
    assert adjacency.circuit_type == BOTH


@pytest.mark.rfc("RFC 1195 §5.2")
def test_a_router_of_one_family_is_a_neighbor_of_one_with_both():
    net = Net()
    a, b = net.pair({"families": (6,)})
    net.run(ROUND_TRIPS)
    assert a.up() == b.up() == BOTH
    assert b.adjacency().nlpids == (NLPID_IPV6,)
    assert b.adjacency().ipv4 == ()


@pytest.mark.rfc("RFC 5120 §2.1")
def test_topologies_without_one_in_common_make_no_neighbors():
    """RFC 5120 §2.1: on point-to-point circuits."""
    net = Net()
    a, b = net.pair({"families": (6,), "multi_topology": True}, {"families": (4, 6)})
    net.run(5)
    assert a.errors().keys() == b.errors().keys() == {"no-common-topology"}


def test_routers_without_any_address_are_neighbors():
    net = Net()
    a, b = net.add(1), net.add(2)
    net.cable((1, 1), (2, 1))
    net.link(1, addresses=())
    net.link(2, addresses=())
    net.run(ROUND_TRIPS)
    assert a.up() == b.up() == BOTH
    assert a.adjacency().ipv4 == a.adjacency().ipv6 == ()


def test_hellos_of_a_link_without_ipv4_addresses_carry_that_of_the_loopback():
    """The address of the router id, at once when it changes; FRR requires one in TLV 132."""
    first, second = 0x0AFF_0001, 0x0AFF_0002
    net = Net()
    a = net.add(1, router_id=second)
    net.link(1, addresses=(InterfaceAddress(6, LINK_LOCAL | 1, 64),))

    def said() -> set[tuple[int, ...]]:
        return {tlv.addresses for tlv in of_type(a.hellos()[-1][1].tlvs, InterfaceAddresses)}

    assert said() == {(LINK_LOCAL | 1,)}
    for addresses, shown in (((first,), first), ((first, second), second)):
        known = tuple(InterfaceAddress(4, address, 32) for address in addresses)
        net.run(1.5)
        net.link(1, LOOPBACK, 9, addresses=known, loopback=True)
        assert said() == {(shown,), (LINK_LOCAL | 1,)}


@pytest.mark.rfc("RFC 5304 §2")
def test_routers_with_different_keys_are_no_neighbors():
    net = Net()
    a, b = net.pair(
        circuit_a=replace(P2P, authentication=key(b"one")),
        circuit_b=replace(P2P, authentication=key(b"other")),
    )
    net.run(5)
    assert not a.up()
    assert a.errors().keys() == b.errors().keys() == {"auth"}


def test_a_key_changes_at_run_time_without_losing_the_adjacency():
    """One end accepts both keys while the other changes its key."""
    net = Net()
    old, new = key(b"old"), key(b"new", Algorithm.MD5)
    a, b = net.pair(
        circuit_a=replace(P2P, authentication=old), circuit_b=replace(P2P, authentication=old)
    )
    net.run(5)
    net.link(1, replace(P2P, authentication=old + new))
    net.run(5)
    net.link(2, replace(P2P, authentication=new + old))
    net.run(5)
    net.link(1, replace(P2P, authentication=new))
    net.run(10)
    assert a.up() == b.up() == BOTH
    assert len(a.changes()) == len(b.changes()) == 4


def test_a_router_that_stops_sends_final_hellos():
    net = Net()
    a, b = net.pair()
    net.run(5)
    a.hello.shutdown()
    net.take_outputs(a)
    net.run(0.1)
    assert b.adjacency() is None
    reasons = [o.reason for _, o in b.said if isinstance(o, AdjacencyChanged) and o.state == "Down"]
    assert reasons == ["neighbor sent a final hello"] * 2
    assert ("adjacency", "eth1", 1, 2, False) in b.watcher.take()
    sent = len(a.hellos())
    net.run(10)
    assert len(a.hellos()) == sent  # silent, whatever it receives


@pytest.mark.parametrize("seed", range(12))
def test_whatever_was_lost_the_adjacency_comes_up_once_the_loss_ends(seed):
    """One of the two may have restarted, too."""
    net = Net(seed)
    a, _ = net.pair()
    cable = net.by_end[1, 1]
    cable.loss = 0.7 + 0.25 * net.rng.random()
    net.run(20 + 10 * net.rng.random())
    if seed % 3 == 0:
        net.add(2)
        net.link(2)
    cable.loss = 0.0
    net.run(2.1)
    assert a.up() == net.routers[2].up() == BOTH
    changes = len(a.changes())
    net.run(20)
    assert len(a.changes()) == changes


def test_hellos_of_all_circuits_come_to_leave_together():
    """They share wake-ups; none is later than its interval, or much earlier."""
    net = Net()
    router = net.add(1)
    for ifindex in range(1, 6):
        net.link(1, P2P, ifindex)
        net.run(0.17)
    net.run(120)
    times = sorted({at for at, _, _ in router.hellos(since=110.0)})
    assert len(times) <= 15
    assert all(0.75 <= after - at <= 1.0 for at, after in itertools.pairwise(times))
