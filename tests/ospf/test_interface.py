"""The interface state machine (RFC 2328 §9) following the kernel's links."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.protocols.igp.events import (
    CloseInterface,
    LinkChanged,
    LinkRemoved,
    OpenInterface,
    SettingsApplied,
)
from fared.protocols.ospf.interface import INTERFACE_TABLE, InterfaceEvent, InterfaceState
from fared.protocols.ospf.packet.packets import Hello
from fared.protocols.ospf.settings import AreaSettings, InterfaceSettings, NetworkType, OspfSettings
from tests.ospf.harness import BACKBONE, FAST, make_link
from tests.ospf.scripted import Scripted


def state_of(peer: Scripted, ifindex: int = 2) -> str:
    return peer.engine.instance.interfaces[ifindex].state.value


@pytest.mark.rfc("RFC 2328 §9.3")
def test_interface_down_leads_down_from_every_state():
    for state in InterfaceState:
        row = INTERFACE_TABLE.find(state, InterfaceEvent.INTERFACE_DOWN)
        assert row.target is InterfaceState.DOWN


@pytest.mark.rfc("RFC 2328 §9.3")
def test_a_link_that_is_up_joins_the_group_before_its_first_hello():
    peer = Scripted()
    assert state_of(peer) == "Point-to-point"
    assert isinstance(peer.outputs[0], OpenInterface)


@pytest.mark.rfc("RFC 2328 §9.3")
def test_carrier_loss_leaves_the_group_and_stops_hellos():
    peer = Scripted()
    peer.got()
    peer.handle(LinkChanged(replace(peer.link, up=False), FAST))
    assert state_of(peer) == "Down"
    assert CloseInterface(2) in peer.outputs
    peer.at(30.0)
    assert peer.got() == []
    peer.handle(LinkChanged(peer.link, FAST))
    assert len(peer.got(Hello)) == 1


@pytest.mark.rfc("RFC 2328 §9.1")
@pytest.mark.parametrize(
    ("link", "settings"),
    [
        (make_link(3, parse_dotted("10.9.0.1"), loopback=True), FAST),
        (make_link(3, parse_dotted("10.9.0.1")), replace(FAST, network_type=NetworkType.LOOPBACK)),
    ],
    ids=["by the kernel", "by configuration"],
)
def test_loopbacks_are_in_state_loopback_and_send_nothing(link, settings):
    peer = Scripted()
    peer.got()
    peer.handle(LinkChanged(link, settings))
    assert state_of(peer, 3) == "Loopback"
    assert not [o for o in peer.outputs if isinstance(o, OpenInterface) and o.ifindex == 3]


def test_passive_interfaces_neither_send_nor_receive():
    peer = Scripted(settings=replace(FAST, passive=True))
    peer.at(5.0)
    assert peer.got() == []
    peer.greet(peer.me)
    assert peer.state == "Down"
    assert peer.errors() == {"interface-not-running": 1}


def test_a_link_without_address_waits_for_one():
    peer = Scripted()
    bare = replace(make_link(3, 0), addresses=())
    peer.handle(LinkChanged(bare, FAST))
    assert state_of(peer, 3) == "Down"
    peer.handle(LinkChanged(make_link(3, parse_dotted("10.9.0.1")), FAST))
    assert state_of(peer, 3) == "Point-to-point"


def test_a_new_address_restarts_the_interface():
    peer = Scripted()
    peer.to_full()
    peer.handle(LinkChanged(make_link(2, parse_dotted("10.9.0.0")), FAST))
    assert state_of(peer) == "Point-to-point"
    assert peer.state == "Down"


def test_moving_to_another_area_leaves_the_old_one():
    peer = Scripted()
    peer.to_full()
    peer.handle(LinkChanged(peer.link, replace(FAST, area=1)))
    instance = peer.engine.instance
    assert instance.ordered_interfaces()[0].settings.area == 1
    assert 1 in instance.areas
    peer.send(peer.hello(), area=1)
    assert peer.state == "Init"


def test_unknown_links_may_be_removed():
    peer = Scripted()
    peer.handle(LinkRemoved(99))
    peer.handle(LinkChanged(make_link(98, 1), None))
    assert state_of(peer) == "Point-to-point"


@pytest.mark.rfc("RFC 2328 §10.5")
def test_adjacencies_are_formed_again_when_the_area_becomes_stub():
    peer = Scripted()
    peer.to_full()
    peer.got()
    stub = OspfSettings(router_id=peer.me, areas=(AreaSettings(BACKBONE, stub=True),))
    peer.handle(SettingsApplied(stub))
    assert peer.state == "Down"
    assert peer.got(Hello)[0].options == 0


@pytest.mark.rfc("RFC 2328 §C.3")
def test_defaults_are_those_of_the_rfc():
    settings = InterfaceSettings(area=BACKBONE)
    assert (settings.hello_interval, settings.router_dead_interval) == (10, 40)
    assert settings.rxmt_interval == 5.0


def test_hellos_of_all_interfaces_are_sent_together():
    """Otherwise each wakes up the daemon; none is later than its interval, or much earlier."""
    peer = Scripted()
    for ifindex in range(3, 7):
        peer.handle(LinkChanged(make_link(ifindex, parse_dotted("10.9.0.0") + 2 * ifindex), FAST))
        peer.at(peer.now + 0.17)
    turns: list[float] = []
    while (due := peer.engine.next_deadline()) < 310:
        peer.at(due)
        turns.append(due)
    settled = [at for at in turns if at > 300]
    assert len(settled) <= 12
    assert all(0.9 <= after - at <= 1.0 for at, after in pairwise(settled))
    sent = [at for at in turns if at < 10]
    assert len(sent) > 30
