"""Circuits: links that come, go and change, and settings that change at run time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import CloseInterface, LogRecord, OpenInterface, SendPacket
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.pdu.tlvs import NLPID_IPV4, AreaAddresses, InterfaceAddresses, of_type
from tests.isis.hellonet import AREA, LAN, LOOPBACK, OTHER_AREA, P2P, Net, make_link

QUICK = 0.02
BOTH = LevelSet.BOTH


def kinds(router) -> list[type]:
    """The outputs, without logs."""
    return [type(output) for _, output in router.said if not isinstance(output, LogRecord)]


def removed(net: Net, number: int, ifindex: int = 1) -> None:
    net.routers[number].manager.removed(ifindex)
    net.take_outputs(net.routers[number])


def test_a_circuit_is_opened_before_it_speaks_and_closed_after():
    net = Net()
    a = net.add(1)
    net.link(1)
    assert kinds(a) == [OpenInterface, SendPacket]
    net.link(1, None)
    assert kinds(a)[2:] == [SendPacket, CloseInterface]  # a final hello
    assert a.instance.circuits == {}
    assert a.watcher.take() == [("circuit", "eth1")] * 2
    net.run(10)
    assert kinds(a)[4:] == []


def test_the_same_news_twice_is_no_news():
    net = Net()
    a, _ = net.pair()
    net.run(1)
    a.watcher.take()
    said = len(a.said)
    net.link(1)
    assert a.watcher.take() == []
    assert len(a.said) == said


@pytest.mark.parametrize(
    "quiet", [LOOPBACK, replace(P2P, passive=True), replace(LAN, passive=True)]
)
def test_loopbacks_and_passive_circuits_are_there_and_never_speak(quiet):
    net = Net()
    a, b = net.pair(circuit_a=quiet)
    net.run(10)
    assert a.circuit().up
    assert not a.circuit().is_active
    assert kinds(a) == []
    assert b.adjacency() is None
    assert a.watcher.take() == [("circuit", "eth1")]


def test_the_loopback_device_never_speaks_whatever_its_settings():
    net = Net()
    a = net.add(1)
    net.link(1, P2P, name="lo", loopback=True, mtu=65536)
    net.run(5)
    assert kinds(a) == []


def test_a_link_that_goes_down_drops_its_neighbor_at_once_and_comes_back():
    net = Net()
    a, b = net.pair()
    net.run(5)
    a.watcher.take()
    net.link(1, up=False)
    assert a.adjacency() is None
    assert kinds(a)[-1] is CloseInterface
    assert a.watcher.take() == [
        ("adjacency", "eth1", 2, 1, False),
        ("adjacency", "eth1", 2, 2, False),
        ("circuit", "eth1"),
    ]
    net.run(0.5)
    assert b.up() == BOTH  # router 2 has not detected it yet
    net.link(1)
    net.run(QUICK)
    assert a.up() == b.up() == BOTH
    assert a.adjacency().flaps == 1


def test_a_link_that_is_gone_takes_everything_with_it():
    net = Net()
    a, _ = net.pair()
    net.run(5)
    a.watcher.take()
    removed(net, 1)
    removed(net, 1)
    assert a.instance.circuits == {}
    assert ("adjacency", "eth1", 2, 2, False) in a.watcher.take()
    assert kinds(a)[-1] is CloseInterface
    assert len(a.instance.process.timers) == 0


def test_a_lan_that_goes_down_resigns():
    net = Net()
    net.lan(1, 2)
    net.run(5)
    router = net.routers[2]
    router.watcher.take()
    lan_id = 2 << 8 | 1
    net.link(2, LAN, up=False)
    calls = router.watcher.take()
    assert ("dis", "eth1", 2, lan_id, 0) in calls
    assert router.circuit().lan == {}
    assert len(router.instance.process.timers) == 0


def test_switching_a_circuit_off_tells_the_neighbors():
    net = Net()
    _, b = net.pair()
    net.run(5)
    net.link(1, None)
    net.run(QUICK)
    assert b.adjacency() is None


@pytest.mark.parametrize(
    "change",
    [
        {"metric": 77},
        {"hello_interval": 0.5},
        {"hello_interval": 10.0},
        {"hello_multiplier": 9},
        {"priority": 1},
        {"hello_padding": False},
        {"csnp_interval": 3.0},
        {"capacity": 1e6},
    ],
    ids=str,
)
def test_settings_that_leave_adjacencies_alone(change):
    net = Net()
    a, b = net.pair()
    net.run(5)
    a.watcher.take()
    net.link(1, replace(P2P, **change))
    assert a.watcher.take() == [("circuit", "eth1")]
    net.run(10)
    assert len(a.changes()) == len(b.changes()) == 4


def test_a_new_interval_holds_at_once():
    net = Net()
    a, b = net.pair(circuit_a=replace(P2P, hello_interval=10.0))
    net.run(1)
    net.link(1, replace(P2P, hello_interval=0.5))
    net.run(QUICK)
    assert b.adjacency().holding_time == 2
    before = net.now
    net.run(5)
    assert len(a.hellos(since=before)) >= 9


def test_a_level_that_is_switched_off_is_dropped_and_the_other_one_stays():
    net = Net()
    a, b = net.pair()
    net.run(5)
    net.link(1, replace(P2P, levels=LevelSet.TWO))
    net.run(QUICK)
    assert a.up() == b.up() == LevelSet.TWO
    assert [change for change in b.changes() if change[0] == 2] == [
        (2, "Down", "Initializing"),
        (2, "Initializing", "Up"),
    ]
    assert ("adjacency", "eth1", 1, 1, False) in b.watcher.take()
    net.link(1)
    net.run(QUICK)
    assert a.up() == b.up() == BOTH


def test_a_level_that_is_switched_off_on_a_lan_sends_a_final_hello():
    net = Net()
    net.lan(1, 2)
    net.run(5)
    net.link(2, replace(LAN, levels=LevelSet.TWO))
    net.run(QUICK)
    assert net.routers[1].heard(Level.ONE) == set()
    assert net.routers[1].dis(Level.ONE) == 0
    assert net.routers[1].heard(Level.TWO) == {2}
    assert set(net.routers[2].circuit().lan) == {Level.TWO}
    net.link(2, LAN)
    net.run(0.3)
    assert net.routers[1].heard(Level.ONE) == {2}


@pytest.mark.parametrize("change", [{"passive": True}, {"kind": LAN.kind}])
def test_passive_mode_and_another_network_type_begin_anew(change):
    net = Net()
    a, b = net.pair()
    net.run(5)
    first = a.circuit()
    net.link(1, replace(P2P, **change))
    assert a.circuit() is not first
    net.run(QUICK)
    assert b.adjacency() is None
    net.link(1)
    net.run(0.5)
    assert a.up() == b.up() == BOTH


def test_addresses_that_change_are_told_to_the_neighbor_at_once():
    net = Net()
    a, b = net.pair()
    net.run(5)
    a.watcher.take()
    b.watcher.take()
    net.link(1, addresses=(InterfaceAddress(4, 0x0A09_0901, 31),))
    net.run(QUICK)
    assert b.adjacency().ipv4 == (0x0A09_0901,)
    assert b.adjacency().ipv6 == ()
    assert a.watcher.take() == b.watcher.take() == [("circuit", "eth1")]
    assert len(b.changes()) == 4


@pytest.mark.rfc("RFC 5308 §3")
def test_hellos_name_link_local_ipv6_addresses_only():
    """RFC 5308 §3."""
    net = Net()
    a = net.add(1)
    own = make_link(1, 1).addresses
    net.link(1, addresses=(*own, InterfaceAddress(6, 0x2001_0DB8 << 96 | 1, 64)))
    _, sent, _ = a.hellos()[-1]
    listed = {tlv.family: tlv.addresses for tlv in of_type(sent.tlvs, InterfaceAddresses)}
    assert listed == {4: (own[0].address,), 6: (own[1].address,)}


def test_new_areas_end_level_1_and_leave_level_2():
    net = Net()
    a, b = net.pair()
    net.run(5)
    net.apply(1, areas=(OTHER_AREA,))
    net.run(QUICK)
    assert a.up() == b.up() == LevelSet.TWO
    net.apply(1, areas=(OTHER_AREA, AREA))
    net.run(QUICK)
    assert a.up() == b.up() == BOTH
    assert of_type(a.hellos()[-1][1].tlvs, AreaAddresses)[0].addresses == (OTHER_AREA, AREA)


def test_new_levels_of_the_router_reach_its_circuits():
    net = Net()
    net.lan(1, 2)
    net.run(3)
    net.apply(1, levels=LevelSet.TWO)
    net.run(QUICK)
    assert net.routers[2].heard(Level.ONE) == set()
    assert net.routers[2].heard(Level.TWO) == {1}
    net.apply(1, levels=BOTH)
    net.run(0.3)
    assert net.routers[2].heard(Level.ONE) == {1}


def test_protocols_that_are_switched_off_are_told():
    net = Net()
    a, b = net.pair()
    net.run(3)
    net.apply(1, families=(4,))
    net.run(QUICK)
    assert b.adjacency().nlpids == (NLPID_IPV4,)
    assert b.adjacency().ipv6 == ()
    assert a.up() == b.up() == BOTH


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_two_routers_of_one_system_id_never_become_neighbors():
    net = Net()
    a, b = net.pair(b={"system_id": 1})
    net.run(100)
    assert a.adjacency() is None
    assert b.errors().keys() == {"duplicate-system-id"}
    logged = [o for _, o in b.said if isinstance(o, LogRecord) and o.event == "isis-rejected"]
    assert 1 <= len(logged) <= 2


@pytest.mark.rfc("RFC 3719 §5")
def test_a_link_too_small_for_lsps_gets_no_neighbors_until_they_fit():
    net = Net()
    a, b = net.add(1), net.add(2)
    net.cable((1, 1), (2, 1))
    net.link(1, mtu=1400)
    net.link(2, mtu=1400)
    net.run(5)
    assert a.hellos() == []
    assert "isis-mtu-too-small" in {o.event for _, o in a.said if isinstance(o, LogRecord)}
    net.apply(1, lsp_mtu=1300)
    net.apply(2, lsp_mtu=1300)
    net.run(QUICK)
    assert a.up() == b.up() == BOTH


@pytest.mark.rfc("ISO 10589 §9.7")
def test_circuit_ids_follow_the_ifindex_and_lans_never_share_one():
    net = Net()
    a = net.add(1)
    for ifindex in (3, 258, 513):
        net.link(1, LAN, ifindex)
    assert [a.circuit(i).circuit_id for i in (3, 258, 513)] == [3, 4, 5]
    net.link(1, P2P, 4)
    assert a.circuit(4).circuit_id == 4


def test_a_router_has_any_number_of_point_to_point_circuits_but_255_lans():
    net = Net()
    a = net.add(1)
    for ifindex in range(1, 601):
        net.link(1, replace(P2P, passive=True), ifindex)
    for ifindex in range(1001, 1257):
        net.link(1, replace(LAN, passive=True), ifindex)
    circuits = a.instance.circuits.values()
    assert {circuit.circuit_id for circuit in circuits} == set(range(1, 256))
    assert len([circuit for circuit in circuits if circuit.broadcast]) == 255
    assert [o.event for _, o in a.said] == ["isis-no-circuit-id"]


def test_another_hardware_address_is_heard_as_another_neighbor_of_a_lan():
    net = Net()
    net.lan(1, 2)
    net.run(5)
    net.link(1, LAN, hardware_address=0x0200_0009_7777)
    net.run(0.5)
    assert net.routers[2].circuit().lan[Level.TWO].adjacencies[0x0200_0009_7777].up
    net.run(5)
    assert len(net.routers[2].circuit().lan[Level.TWO].adjacencies) == 1
    assert net.routers[2].dis() == net.routers[1].dis() == 1


@pytest.mark.rfc("RFC 5303 §3.2")
def test_parallel_links_are_told_apart_by_their_extended_circuit_ids():
    net = Net()
    a, b = net.add(1), net.add(2)
    for near, far in ((1, 2), (2, 1), (3, 3)):
        net.cable((1, near), (2, far))
    for ifindex in (1, 2, 3):
        net.link(1, P2P, ifindex)
        net.link(2, P2P, ifindex)
    net.run(QUICK)
    assert [a.adjacency(i).extended_circuit_id for i in (1, 2, 3)] == [2, 1, 3]
    assert [b.up(i) for i in (1, 2, 3)] == [BOTH] * 3
    net.link(1, None, 2)
    net.run(QUICK)
    assert [b.up(i) for i in (1, 2, 3)] == [LevelSet.NONE, BOTH, BOTH]
