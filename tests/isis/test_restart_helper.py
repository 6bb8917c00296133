"""The helper of neighbors that restart gracefully (RFC 8706 §3.2), hello by hello."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdSettings, BfdStatus
from fared.protocols.igp.events import GracefulRestartRequested, LogRecord
from fared.protocols.isis.ids import Level, LevelSet, lsp_id
from fared.protocols.isis.pdu.model import P2pHello
from fared.protocols.isis.pdu.tlvs import (
    IsNeighbors,
    Restart,
    RestartFlag,
    ThreeWay,
    ThreeWayState,
    of_type,
)
from tests.igp.restarts import helped
from tests.isis.hellonet import P2P, Net, Router, system_id
from tests.isis.net import Network
from tests.isis.test_bfd import sessions

HELPER = {"restart_helper": True}
RR, RA, SA, PR, PA = RestartFlag


def pair(**settings) -> tuple[Net, Router]:
    """Two neighbors; router 2, the helper, is returned, and router 1 is silent from now on."""
    net = Net()
    helping = {**HELPER, **settings}
    net.pair(helping, helping)
    net.run(3.0)
    assert net.routers[2].up() is LevelSet.BOTH
    net.routers[1].stopped = True
    net.routers[2].watcher.take()
    return net, net.routers[2]


def say(net: Net, flags: int, *, three_way: bool = False, remaining: int | None = None) -> None:
    """A hello of router 1 with these restart flags; three-way state Down unless it is settled."""
    sent = [hello for _, hello, _ in net.routers[1].hellos() if isinstance(hello, P2pHello)][-1]
    state = of_type(sent.tlvs, ThreeWay)[0] if three_way else ThreeWay(ThreeWayState.DOWN, 1)
    kept = tuple(tlv for tlv in sent.tlvs if not isinstance(tlv, ThreeWay | Restart))
    hello = replace(sent, tlvs=(state, *kept, Restart(flags, remaining)))
    net.say(2, hello, source=net.routers[1].macs[1])


def answers(net: Net, since: float) -> list[Restart]:
    """The restart TLVs that the helper sent since a time."""
    sent = [hello for at, hello, _ in net.routers[2].hellos() if at >= since]
    return [tlv for hello in sent for tlv in of_type(hello.tlvs, Restart)]


def results(router: Router) -> list[str]:
    event = "graceful-restart-helper-ended"
    logs = [o for _, o in router.said if isinstance(o, LogRecord) and o.event == event]
    return [log.fields["result"] for log in logs]


@pytest.mark.rfc("RFC 8706 §3.1")
def test_hellos_show_that_the_router_helps():
    net, helper = pair()
    assert {tlv.flags for tlv in answers(net, 0.0)} == {0}
    assert helper.adjacency().helps


def test_without_the_setting_there_is_no_tlv_and_a_restart_ends_the_adjacency():
    net, helper = pair(restart_helper=False)
    assert answers(net, 0.0) == []
    say(net, RR)
    assert not helper.up()


@pytest.mark.rfc("RFC 8706 §3.2.1")
def test_a_restart_request_keeps_the_adjacency_and_is_answered_at_once():
    net, helper = pair()
    net.run(1.5)
    began, before = net.now, len(helper.changes())
    say(net, RR)
    assert helper.up() is LevelSet.BOTH
    assert helper.changes()[before:] == []
    (answer,) = answers(net, began)
    assert answer == Restart(RA, 4)
    assert ("restarted", "eth1", 2) in helper.watcher.take()


@pytest.mark.rfc("RFC 8706 §3.2.1")
def test_the_answer_names_the_restarted_neighbor_as_up():
    net, helper = pair()
    began = net.now
    say(net, RR)
    hello = next(hello for at, hello, _ in helper.hellos() if at >= began)
    (three_way,) = of_type(hello.tlvs, ThreeWay)
    assert three_way.state == ThreeWayState.UP
    assert three_way.neighbor_system_id == system_id(1)


@pytest.mark.rfc("RFC 8706 §3.2.1")
def test_repeated_requests_do_not_refresh_the_holding_time():
    net, helper = pair()
    for _ in range(5):
        say(net, RR)
        net.run(1.0)
    assert not helper.up()
    assert results(helper) == ["holding time expired"]


@pytest.mark.rfc("RFC 8706 §3.2.1")
def test_a_hello_without_request_completes_the_restart_and_refreshes_the_holding_time():
    net, helper = pair()
    say(net, RR)
    net.run(3.0)
    say(net, 0, three_way=True)
    assert results(helper) == ["completed"]
    net.run(3.0)
    assert helper.up()
    say(net, RR)
    net.run(3.5)
    assert helper.up(), "another restart may be requested"


@pytest.mark.rfc("RFC 8706 §3.2.3")
def test_an_announced_restart_begins_within_the_holding_time():
    net, helper = pair()
    began = net.now
    say(net, PR, three_way=True, remaining=60)
    assert [a.flags for a in answers(net, began)] == [PA]
    net.run(3.5)
    say(net, RR)
    net.run(3.5)
    say(net, 0, three_way=True)
    assert results(helper) == ["completed"]


@pytest.mark.parametrize("flags", [(PR,), (RR,), (PR, RR)])
def test_a_neighbor_that_has_announced_a_restart_and_is_silent_is_lost_as_any_other(flags):
    net, helper = pair()
    for flag in flags:
        say(net, flag, three_way=True, remaining=0xFFFF)
    net.run(3.5)
    assert helper.up()
    net.run(1.0)
    assert results(helper) == ["holding time expired"]


def test_announced_again_and_again_a_restart_takes_no_longer_than_one():
    """Each hello is a sign of life, until the neighbor has to be adjacent as any other."""
    net, helper = pair()
    began = net.now
    while not results(helper):
        for flag in (PR, RR):
            say(net, flag)
            net.run(0.5)
    assert results(helper) == ["grace-period-expired"]
    assert not helper.up()
    assert net.now - began == pytest.approx(60.0, abs=2.0)


@pytest.mark.rfc("RFC 8706 §3.2")
def test_another_topology_ends_helping_and_a_refreshed_lsp_does_not():
    """Whole engines: 1 restarts, 2 helps, 3 is another neighbor of 2 with a link to 4."""
    for strict in (True, False):
        net = Network()
        for number in (1, 2, 3, 4):
            net.add(number, restarts=True, strict_lsp_checking=strict, **HELPER)
        for ends in ((1, 2), (2, 3), (3, 4)):
            net.join(*ends)
        net.settle()
        net.input(1, GracefulRestartRequested(60.0))
        net.until(lambda n=net: n.nodes[1].engine.restart_announced, 1.0)
        net.stop(1)
        net.nodes[3].engine._originator.renew(Level.TWO, lsp_id(3))
        net.run(1.0)
        assert not helped(net, 2)
        cable = next(c for c in net.cables if {n for n, _ in c.ends} == {3, 4})
        net.set_up(cable, up=False)
        net.run(1.0)
        assert helped(net, 2) == (["topology-change"] if strict else [])
        up = {a.system_id for a in net.adjacencies(2) if a.up}
        assert up == ({3} if strict else {1, 3})


def test_a_link_that_goes_down_ends_helping():
    net, helper = pair()
    say(net, PR, three_way=True, remaining=60)
    net.link(2, up=False)
    assert not helper.up()
    assert len(results(helper)) == 1


@pytest.mark.rfc("RFC 5882 §4.3")
@pytest.mark.parametrize("independent", [False, True])
def test_bfd_that_outlives_the_control_plane_of_a_restarting_neighbor_counts(independent):
    net = Net()
    circuit = replace(P2P, bfd=BfdSettings())
    _, helper = net.pair(HELPER, HELPER, circuit, circuit)
    net.run(3.0)
    sessions(net, helper, BfdStatus.UP)
    net.routers[1].stopped = True
    say(net, PR, three_way=True, remaining=60)
    sessions(net, helper, BfdStatus.DOWN, independent=independent)
    assert helper.up() is not independent


@pytest.mark.rfc("RFC 5882 §4.3.1")
def test_the_end_of_a_bfd_session_with_a_restarting_neighbor_is_no_failure():
    net = Net()
    circuit = replace(P2P, bfd=BfdSettings())
    _, helper = net.pair(HELPER, HELPER, circuit, circuit)
    net.run(3.0)
    sessions(net, helper, BfdStatus.UP)
    net.routers[1].stopped = True
    say(net, PR, three_way=True, remaining=60)
    sessions(net, helper, BfdStatus.DOWN)
    assert helper.up()
    say(net, 0, three_way=True)
    sessions(net, helper, BfdStatus.DOWN)
    assert not helper.up()


@pytest.mark.rfc("RFC 8706 §3.2.2")
def test_a_starting_neighbor_is_not_advertised_while_it_asks_for_that():
    net, helper = pair()
    say(net, SA, three_way=True)
    assert helper.adjacency().suppressed
    assert ("circuit", "eth1") in helper.watcher.take()
    say(net, 0, three_way=True)
    assert not helper.adjacency().suppressed
    assert ("circuit", "eth1") in helper.watcher.take()


@pytest.mark.rfc("RFC 8706 §3.2.1")
def test_on_a_lan_one_helper_sends_the_database_and_all_keep_the_adjacency():
    net = Net()
    for number in (1, 2, 3):
        net.add(number, **HELPER)
    net.lan(1, 2, 3, priorities={1: 10, 2: 20, 3: 30})
    net.run(10.0)
    for number in (2, 3):
        assert system_id(1) in net.routers[number].heard()
        net.routers[number].watcher.take()
    net.routers[1].stopped = True
    sent = [h for _, h, _ in net.routers[1].hellos() if getattr(h, "level", 0) == 2][-1]
    tlvs = tuple(t for t in sent.tlvs if not isinstance(t, IsNeighbors | Restart))
    hello = replace(sent, lan_id=0, tlvs=(*tlvs, Restart(RR)))
    began = net.now
    for number in (2, 3):
        net.say(number, hello, source=net.routers[1].macs[1])
    for number in (2, 3):
        router = net.routers[number]
        assert system_id(1) in router.heard()
        assert router.dis() == system_id(3)
        named = [
            tlv.system_id
            for at, pdu, _ in router.hellos()
            if at >= began
            for tlv in of_type(pdu.tlvs, Restart)
            if tlv.flags == RA
        ]
        assert named[:1] == [system_id(1)]
    assert not [c for c in net.routers[2].watcher.take() if c[0] == "restarted"]
    assert [c for c in net.routers[3].watcher.take() if c[0] == "restarted"]
