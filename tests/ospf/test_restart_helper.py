"""The helper of neighbors that restart gracefully (RFC 3623 §3)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdSettings, BfdStatus
from fared.protocols.igp.events import AdjacencyChanged, LinkChanged, LogRecord, SettingsApplied
from fared.protocols.ospf.neighbor import NeighborEvent
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import decode_body, encode_body, opaque_link_state_id
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.grace import GraceLsa, RestartReason
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.packets import DatabaseDescription, DdFlags, Hello, LsUpdate
from fared.protocols.ospf.settings import GracefulRestartSettings
from tests.ospf.harness import FAST, LAN, Network, Packet, router_id
from tests.ospf.scripted import ALL_SPF, THEIRS, Scripted, ack, dd, make_lsa, router_lsa, update

HELPER = GracefulRestartSettings(helper=True)
GRACE = opaque_link_state_id(OpaqueType.GRACE, 0)
STRANGER = router_id(77)


def grace(
    peer: int,
    period: int = 60,
    reason: int = RestartReason.SOFTWARE_RESTART,
    *,
    seq: int = INITIAL_SEQUENCE_NUMBER,
    age: int = 0,
    address: int | None = None,
) -> Lsa:
    body = encode_body(GraceLsa(period, reason, address))
    return make_lsa(peer, seq, age=age, ls_type=9, lsid=GRACE, body=body)


def helper(**changes) -> Scripted:
    """A helper with a Full neighbor, which has acknowledged everything."""
    peer = Scripted(graceful_restart=replace(HELPER, **changes))
    peer.to_full()
    settle(peer)
    return peer


def settle(peer: Scripted, seconds: float = 0.5) -> None:
    """Acknowledge what the engine floods for some time."""
    end = peer.now + seconds
    while peer.now < end:
        peer.at(peer.now + 0.1)
        for flooded in peer.got(LsUpdate):
            peer.send(ack(*flooded.lsas))


def advertised(peer: Scripted) -> bool:
    """Whether the engine's router LSA lists the neighbor as fully adjacent."""
    body = decode_body(peer.own_router_lsa())
    return any(link.link_type == RouterLinkType.POINT_TO_POINT for link in body.links)


def results(peer: Scripted) -> list[str]:
    event = "graceful-restart-helper-ended"
    logs = [o for o in peer.outputs if isinstance(o, LogRecord) and o.event == event]
    return [log.fields["result"] for log in logs]


def reconnect(peer: Scripted) -> None:
    """Exchange databases again, as the restarted neighbor, until it is Full."""
    peer.greet()
    assert peer.state == "Init"
    peer.to_full()
    settle(peer)


def other_lsa(seq: int, cost: int = 1) -> Lsa:
    link = RouterLink(RouterLinkType.STUB, 0x0A630000, 0xFFFFFF00, cost)
    return make_lsa(STRANGER, seq, links=(link,))


def alive(peer: Scripted, seconds: float) -> None:
    """The neighbor sends hellos that list nobody, as one that has restarted does."""
    for _ in range(round(seconds)):
        settle(peer, 1.0)
        peer.greet()


@pytest.mark.rfc("RFC 3623 §3.1")
def test_a_neighbor_that_announces_its_restart_stays_advertised_while_it_is_silent():
    peer = helper()
    settle(peer, 3.0)
    peer.send(update(grace(peer.peer)))
    before = peer.own_router_lsa()
    settle(peer, 3.5)
    assert peer.own_router_lsa() == before
    assert advertised(peer)
    assert peer.state == "Full"


@pytest.mark.rfc("RFC 3623 §3.1")
@pytest.mark.parametrize("again", [False, True])
def test_a_neighbor_that_is_silent_after_it_has_announced_its_restart_is_lost_as_any_other(again):
    """Within the dead interval of the announcement, or of the last hello after it."""
    peer = helper()
    peer.send(update(grace(peer.peer, 1800)))
    if again:
        alive(peer, 20.0)
    settle(peer, 3.5)
    assert advertised(peer)
    settle(peer, 1.5)
    assert results(peer) == ["silent"]
    assert peer.neighbor is None
    assert not advertised(peer)


def test_announced_again_and_again_a_restart_takes_no_longer_than_one():
    """A grace LSA is a sign of life, and no more: help is limited from its beginning on."""
    peer = helper()
    began, sequence = peer.now, INITIAL_SEQUENCE_NUMBER
    while not results(peer):
        peer.send(update(grace(peer.peer, 5, seq=sequence)))
        settle(peer, 2.0)
        sequence += 1
    assert results(peer) == ["grace-period-expired"]
    assert peer.now - began == pytest.approx(120.0, abs=3.0)


@pytest.mark.rfc("RFC 3623 §3.1")
def test_the_restarted_neighbor_exchanges_databases_while_its_link_stays_advertised():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    settle(peer, 3.0)
    seen = len(peer.outputs)
    before = peer.own_router_lsa()
    reconnect(peer)
    peer.send(update(grace(peer.peer, age=MAX_AGE)))
    settle(peer, 1.0)
    assert results(peer) == ["completed"]
    assert peer.own_router_lsa() == before
    changes = [o for o in peer.outputs[seen:] if isinstance(o, AdjacencyChanged)]
    assert changes[-1].state == "Full"
    assert not any(change.gained_or_lost for change in changes)


def test_a_hello_is_sent_at_once_to_a_neighbor_that_has_restarted():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.05)
    peer.got()
    peer.greet()
    assert [hello.neighbors for hello in peer.got(Hello)] == [(peer.peer,)]


@pytest.mark.rfc("RFC 3623 §3.2 (2)")
def test_helping_ends_with_the_grace_period():
    peer = helper()
    peer.send(update(grace(peer.peer, 20, age=5)))
    began = peer.now
    alive(peer, 12.0)
    assert advertised(peer)
    peer.at(began + 15.1)
    assert results(peer) == ["grace-period-expired"]
    assert peer.state == "Init"
    settle(peer, 1.0)
    assert not advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.1")
def test_helping_lasts_no_longer_than_the_configured_limit():
    peer = helper(longest=10.0)
    peer.send(update(grace(peer.peer, 0xFFFFFFFF)))
    alive(peer, 9.0)
    assert advertised(peer)
    settle(peer, 2.0)
    assert not advertised(peer)


def test_a_neighbor_in_exchange_at_the_end_of_the_grace_period_goes_on_unadvertised():
    peer = helper()
    peer.send(update(grace(peer.peer, 10)))
    for _ in range(11):
        settle(peer, 1.0)
        peer.greet(peer.me)
        if peer.now > 8.0 and peer.state == "Full":
            peer.greet()
    assert results(peer) == ["grace-period-expired"]
    assert peer.state in {"ExStart", "Init"}
    settle(peer, 0.5)
    assert not advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.1")
def test_another_grace_lsa_begins_a_new_grace_period():
    peer = helper()
    peer.send(update(grace(peer.peer, 4)))
    settle(peer, 3.0)
    peer.send(update(grace(peer.peer, 4, seq=INITIAL_SEQUENCE_NUMBER + 1)))
    settle(peer, 3.0)
    assert advertised(peer)
    settle(peer, 2.0)
    assert not advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_a_changed_topology_ends_helping_and_the_silent_neighbor_is_lost_at_once():
    peer = helper()
    peer.send(update(other_lsa(INITIAL_SEQUENCE_NUMBER)))
    settle(peer)
    peer.send(update(grace(peer.peer)))
    settle(peer, 3.0)
    peer.send(update(other_lsa(INITIAL_SEQUENCE_NUMBER + 1, cost=5)))
    assert results(peer) == ["topology-change"]
    settle(peer, 1.5)
    assert peer.neighbor is None
    assert not advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_a_refresh_is_no_change_of_the_topology():
    peer = helper()
    peer.send(update(other_lsa(INITIAL_SEQUENCE_NUMBER)))
    settle(peer)
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.0)
    peer.send(update(other_lsa(INITIAL_SEQUENCE_NUMBER + 1)))
    assert results(peer) == []


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_a_changed_bandwidth_is_no_change_of_the_topology():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.0)
    link = opaque_link_state_id(OpaqueType.TRAFFIC_ENGINEERING, 1)
    peer.send(update(make_lsa(STRANGER, ls_type=10, lsid=link, body=bytes(8))))
    assert results(peer) == []


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_a_change_by_this_router_itself_ends_helping():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    peer.handle(LinkChanged(peer.link, replace(FAST, cost=77)))
    settle(peer, 6.0)
    assert results(peer) == ["topology-change"]


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_changes_by_the_restarted_neighbor_do_not_end_helping():
    peer = helper()
    peer.send(update(make_lsa(peer.peer)))
    settle(peer)
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.0)
    link = RouterLink(RouterLinkType.STUB, 0x0A630000, 0xFFFFFF00, 1)
    peer.send(update(make_lsa(peer.peer, INITIAL_SEQUENCE_NUMBER + 1, links=(link,))))
    assert results(peer) == []


@pytest.mark.rfc("RFC 3623 §3.2 (3)")
def test_without_strict_lsa_checking_a_changed_topology_does_not_end_helping():
    peer = helper(strict_lsa_checking=False)
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.0)
    peer.send(update(other_lsa(INITIAL_SEQUENCE_NUMBER)))
    alive(peer, 4.0)
    assert results(peer) == []
    assert advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.1 (2)")
def test_a_change_that_the_neighbor_has_not_acknowledged_prevents_helping():
    peer = helper()
    peer.handle(LinkChanged(peer.link, replace(FAST, cost=77)))
    peer.at(peer.now + 0.5)
    peer.send(update(grace(peer.peer)))
    assert "graceful-restart-not-helped" in {
        o.event for o in peer.outputs if isinstance(o, LogRecord)
    }
    peer.at(peer.now + 4.5)
    assert peer.neighbor is None


@pytest.mark.rfc("RFC 3623 §3.1")
@pytest.mark.parametrize(
    ("settings", "lsa"),
    [
        ({"helper": False}, {}),
        ({"planned_only": True}, {"reason": RestartReason.UNKNOWN}),
        ({}, {"age": 61}),
    ],
)
def test_a_neighbor_is_not_helped_against_policy_or_after_its_grace_period(settings, lsa):
    peer = helper(**settings)
    peer.send(update(grace(peer.peer, **lsa)))
    settle(peer, 5.0)
    assert peer.neighbor is None
    assert not advertised(peer)


@pytest.mark.rfc("RFC 3623 §3.1 (1)")
def test_a_neighbor_that_is_not_full_is_not_helped():
    peer = Scripted(graceful_restart=HELPER)
    peer.to_exchange()
    peer.send(update(grace(peer.peer)))
    peer.at(peer.now + 5.0)
    assert peer.neighbor is None


@pytest.mark.rfc("RFC 3623 §3.1 (4)")
def test_disabling_the_helper_ends_helping():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    settle(peer, 3.0)
    settings = peer.engine.instance.settings
    off = replace(settings, graceful_restart=GracefulRestartSettings())
    peer.handle(SettingsApplied(off))
    assert results(peer) == ["disabled"]
    settle(peer, 1.5)
    assert peer.neighbor is None


def test_a_link_that_goes_down_ends_helping():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    peer.handle(LinkChanged(replace(peer.link, up=False), peer.settings))
    assert results(peer) == ["LLDown"]
    assert peer.neighbor is None


@pytest.mark.rfc("RFC 5882 §4.3")
@pytest.mark.parametrize("independent", [False, True])
def test_bfd_that_outlives_the_control_plane_of_a_helped_neighbor_counts(independent):
    peer = helper()
    peer.handle(LinkChanged(peer.link, replace(peer.settings, bfd=BfdSettings())))
    remote = THEIRS.to_bytes(4, "big")
    peer.handle(BfdChanged(2, remote, BfdStatus.UP))
    peer.send(update(grace(peer.peer)))
    settle(peer)
    peer.handle(BfdChanged(2, remote, BfdStatus.DOWN, independent=independent))
    settle(peer)
    assert results(peer) == ([NeighborEvent.BFD_DOWN.value] if independent else [])
    assert (peer.neighbor is None) is independent


@pytest.mark.rfc("RFC 3623 §A")
def test_a_malformed_grace_lsa_is_counted_and_helps_nobody():
    peer = helper()
    peer.send(update(make_lsa(peer.peer, ls_type=9, lsid=GRACE, body=bytes(3))))
    settle(peer, 5.0)
    assert peer.errors()["grace-lsa"] == 1
    assert peer.neighbor is None


def test_the_exchange_of_a_helped_neighbor_may_fail_and_begin_again():
    peer = helper()
    peer.send(update(grace(peer.peer)))
    settle(peer, 2.0)
    peer.greet()
    peer.to_exchange()
    peer.send(dd(DdFlags.MS, 999))  # out of sequence
    assert peer.state == "ExStart"
    assert peer.got(DatabaseDescription)
    assert advertised(peer)
    assert results(peer) == []


def crashed(net: Network, number: int, period: int = 30) -> None:
    """Stop a router; its neighbors receive its grace LSAs as if it had restarted."""
    node = net.nodes[number]
    net.stop(number)
    for cable in net.cables:
        ends = {end[0]: end for end in cable.ends}
        if number not in ends:
            continue
        own = node.links[ends[number][1]][0].addresses[0].address
        body = encode_body(GraceLsa(period, RestartReason.UNKNOWN, own))
        lsa = make_lsa(router_id(number), age=0, ls_type=9, lsid=GRACE, body=body)
        for other, end in ends.items():
            if other != number:
                deliver(net, number, own, end, lsa)


def deliver(net: Network, number: int, own: int, end, lsa: Lsa) -> None:
    payload = encode_packet(router_id(number), 0, update(lsa))
    net.deliver(end, Packet(own, ALL_SPF, payload, 1))


def star() -> Network:
    """Router 1 in the middle of 2, 3 and 4."""
    net = Network()
    for number in (1, 2, 3, 4):
        net.add(number, graceful_restart=HELPER)
    for number in (2, 3, 4):
        net.join(1, number, FAST)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(2.0)
    return net


def ended(net: Network, number: int) -> list[str]:
    event = "graceful-restart-helper-ended"
    logs = [log for log in net.nodes[number].said(LogRecord) if log.event == event]
    return [log.fields["result"] for log in logs]


def points(net: Network, number: int) -> int:
    rid = router_id(number)
    body = decode_body(net.lsdb(number).entries[router_lsa(rid)].lsa)
    assert isinstance(body, RouterLsa)
    return sum(link.link_type == RouterLinkType.POINT_TO_POINT for link in body.links)


def test_several_neighbors_are_helped_at_once_and_one_that_stays_away_is_lost_alone():
    net = star()
    crashed(net, 3)
    net.run(2.0)
    crashed(net, 2)
    net.run(1.0)
    assert points(net, 1) == 3
    # The loss of 3 is a change of the topology, which ends the help for 2.
    net.until(lambda: ended(net, 1) == ["silent", "topology-change"])
    net.until(lambda: points(net, 1) == 1)


def test_a_router_that_stops_unannounced_ends_the_help_for_others():
    net = star()
    crashed(net, 2)
    net.stop(3)
    net.until(lambda: ended(net, 1) == ["topology-change"])
    net.run(2.0)
    assert points(net, 1) == 1


@pytest.mark.rfc("RFC 3623 §3.1")
def test_a_designated_router_that_restarts_stays_designated():
    net = Network()
    for number in (1, 2, 3):
        net.add(number, graceful_restart=HELPER)
    net.lan(1, 2, 3, settings=LAN)
    net.run(8.0)
    assert net.in_sync()
    designated = {net.interface(n).designated_router for n in (1, 2, 3)}
    assert len(designated) == 1
    number = next(iter(designated)) & 0xFF
    others = [n for n in (1, 2, 3) if n != number]
    crashed(net, number)
    net.run(LAN.router_dead_interval - 0.5)
    assert {net.interface(n).designated_router for n in others} == designated
    net.run(2.0)
    assert {net.interface(n).designated_router for n in others} != designated
    assert [ended(net, n) for n in others] == [["silent"]] * 2
