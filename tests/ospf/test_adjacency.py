"""Adjacencies: how they form and how they end (RFC 2328 §10)."""

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import AdjacencyChanged, LinkChanged, LinkRemoved
from fared.protocols.ospf.neighbor import NEIGHBOR_TABLE, NeighborEvent, NeighborState
from fared.protocols.ospf.packet.packets import DatabaseDescription, Hello, LsUpdate, Options
from tests.ospf.harness import DEFAULTS, FAST, pair, router_id
from tests.ospf.scripted import OURS, THEIRS, Scripted, ack


def test_adjacency_forms_in_milliseconds_with_default_timers():
    """No step waits for a hello: with 10 s hellos, Full and in sync in ten round trips."""
    net = pair(settings=DEFAULTS)
    assert net.until(lambda: net.all_full() and net.in_sync()) < 0.010


@pytest.mark.rfc("RFC 2328 §10.1")
def test_states_are_passed_in_order():
    net = pair()
    net.until(net.all_full)
    states = [c.state for c in net.nodes[1].said(AdjacencyChanged)]
    assert states == ["Init", "ExStart", "Exchange", "Loading", "Full"]


@pytest.mark.rfc("RFC 2328 §10.3")
def test_the_table_covers_each_event_of_the_rfc():
    """Each event has a row; events that end an adjacency have one in every state."""
    rows = set(NEIGHBOR_TABLE)
    assert {event for _, event in rows} == set(NeighborEvent)
    for event in (NeighborEvent.KILL_NBR, NeighborEvent.LL_DOWN, NeighborEvent.INACTIVITY_TIMER):
        for state in NeighborState:
            assert NEIGHBOR_TABLE.find(state, event).target is NeighborState.DOWN


@pytest.mark.rfc("RFC 2328 §9.5")
def test_first_hello_is_sent_when_the_link_comes_up_and_answered_on_receipt():
    peer = Scripted()
    (hello,) = peer.got(Hello)
    assert hello.neighbors == ()
    peer.greet()
    assert peer.state == "Init"
    (hello,) = peer.got(Hello)
    assert hello.neighbors == (peer.peer,)


@pytest.mark.rfc("RFC 2328 §9.5")
def test_hellos_repeat_within_the_interval():
    peer = Scripted()
    peer.at(10.0)
    assert 10 <= len(peer.got(Hello)) - 1 <= 11


@pytest.mark.rfc("RFC 2328 §10.5")
def test_a_hello_that_lists_us_starts_the_exchange_at_once():
    peer = Scripted()
    peer.greet()
    peer.got()
    peer.greet(peer.me)
    assert peer.state == "ExStart"
    hello, first = peer.got()
    assert hello.neighbors == (peer.peer,)
    assert isinstance(first, DatabaseDescription)
    assert first.flags == 7
    assert first.lsa_headers == ()


@pytest.mark.rfc("RFC 2328 §10.5")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hello_interval": 10}, "hello-interval-mismatch"),
        ({"router_dead_interval": 40}, "dead-interval-mismatch"),
        ({"options": 0}, "options-mismatch"),
    ],
)
def test_hello_with_other_parameters_is_counted_and_ignored(changes, reason):
    peer = Scripted()
    peer.greet(**changes)
    assert peer.state == "Down"
    assert peer.errors() == {reason: 1}


@pytest.mark.rfc("RFC 2328 §10.5")
def test_hellos_with_any_options_leave_no_flags_behind():
    peer = Scripted()
    peer.to_full()
    before = len(Options._value2member_map_)
    for options in range(256):
        peer.greet(peer.me, options=options)
    assert len(Options._value2member_map_) <= before + 2


@pytest.mark.rfc("RFC 2328 §10.5")
def test_network_mask_does_not_matter_on_point_to_point_links():
    peer = Scripted()
    peer.greet(network_mask=0xFFFFFF00)
    assert peer.state == "Init"


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_of_another_area_are_dropped():
    peer = Scripted()
    peer.send(peer.hello(), area=1)
    assert peer.errors() == {"area-mismatch": 1}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_a_neighbor_with_our_own_router_id_is_refused_and_named():
    peer = Scripted()
    peer.send(peer.hello(), peer=peer.me)
    assert peer.state == "Down"
    assert peer.errors() == {"duplicate-router-id": 1}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_our_own_multicast_looped_back_is_ignored_silently():
    peer = Scripted()
    peer.send(peer.hello(), source=OURS)
    assert peer.errors() == {}


@pytest.mark.rfc("RFC 2328 §10.5")
def test_an_adjacency_without_hellos_ends_after_the_dead_interval_and_not_before():
    peer = Scripted()
    peer.to_full()
    peer.at(3.9)
    assert peer.state == "Full"
    peer.at(4.1)
    assert peer.state == "Down"
    last = [o for o in peer.outputs if isinstance(o, AdjacencyChanged)][-1]
    assert (last.previous, last.state, last.reason) == ("Full", "Down", "InactivityTimer")


@pytest.mark.rfc("RFC 2328 §10.5")
def test_hellos_keep_the_adjacency_alive():
    peer = Scripted()
    peer.to_full()
    for second in range(1, 20):
        peer.at(float(second))
        peer.greet(peer.me)
    assert peer.state == "Full"
    assert peer.neighbor.dead_at - peer.now == pytest.approx(4.0)


def test_a_quiet_adjacency_wakes_the_router_for_its_own_hellos_only():
    """Inactivity timers and the check of checksums share the wake-ups of hellos."""
    peer = Scripted()
    peer.to_full()
    greeting = 0.75
    while (due := peer.engine.next_deadline()) < 60:
        while greeting < due:
            peer.at(greeting)
            peer.greet(peer.me)
            greeting += 1
        received = peer.got(LsUpdate)
        if received:
            peer.send(ack(*(lsa for update in received for lsa in update.lsas)))
        peer.at(due)
        if due > 10:
            assert len(peer.got(Hello)) == 1
    assert peer.state == "Full"


def test_a_shorter_dead_interval_counts_from_the_next_hello_on():
    peer = Scripted(settings=replace(FAST, router_dead_interval=40))
    peer.to_full()
    peer.settings = FAST
    peer.handle(LinkChanged(peer.link, FAST))
    peer.greet(peer.me)
    peer.at(3.9)
    assert peer.state == "Full"
    peer.at(4.1)
    assert peer.state == "Down"


@pytest.mark.rfc("RFC 2328 §10.5")
def test_a_hello_without_us_breaks_a_full_adjacency_and_is_answered_at_once():
    """1-WayReceived: the neighbor has restarted."""
    peer = Scripted()
    peer.to_full()
    peer.got()
    peer.greet()
    assert peer.state == "Init"
    assert peer.got(Hello)[0].neighbors == (peer.peer,)
    assert peer.neighbor.flaps == 1


@pytest.mark.rfc("RFC 2328 §10.5")
def test_a_neighbor_that_restarts_under_a_new_router_id_replaces_the_old_one():
    """After two hello intervals without the old id: a stray packet does not end the adjacency."""
    peer = Scripted()
    peer.to_full()
    peer.send(peer.hello(), peer=router_id(77))
    assert peer.state == "Full"
    assert peer.errors() == {"second-neighbor": 1}
    peer.at(2.1)
    peer.send(peer.hello(), peer=router_id(77))
    (neighbor,) = peer.engine.instance.neighbors()
    assert (neighbor.router_id, neighbor.state.label) == (router_id(77), "Init")


@pytest.mark.rfc("RFC 2328 §10.5")
def test_a_second_router_on_a_point_to_point_link_is_rejected():
    peer = Scripted(length=28)
    peer.to_full()
    peer.send(peer.hello(), peer=router_id(77), source=THEIRS + 8)
    assert peer.state == "Full"
    assert peer.errors() == {"second-neighbor": 1}


@pytest.mark.rfc("RFC 2328 §9.3")
def test_carrier_loss_ends_adjacencies_at_once():
    net = pair()
    net.until(net.all_full)
    before = net.now
    net.set_up(net.cables[0], up=False)
    assert net.states(1) == net.states(2) == []
    assert net.now == before
    assert net.nodes[1].said(AdjacencyChanged)[-1].reason == "LLDown"
    net.set_up(net.cables[0], up=True)
    assert net.until(net.all_full) < 0.1


def test_a_removed_interface_is_forgotten():
    net = pair()
    net.until(net.all_full)
    net.input(1, LinkRemoved(2))
    assert [i.name for i in net.nodes[1].engine.instance.ordered_interfaces()] == ["lo"]


@pytest.mark.rfc("RFC 2328 §10.3")
def test_a_silent_failure_is_found_by_the_dead_timer():
    net = pair()
    net.until(net.all_full)
    net.cables[0].cut = True
    net.run(5)
    assert net.states(1) == net.states(2) == []


@pytest.mark.rfc("RFC 2328 §9.3")
def test_disabling_ospf_on_an_interface_sends_a_hello_without_neighbors():
    """The neighbor ends the adjacency before its dead interval."""
    net = pair(settings=DEFAULTS)
    net.until(net.all_full)
    link, _ = net.nodes[1].links[2]
    net.link(1, link, None)
    net.run(0.01)
    assert net.states(2) == ["Init"]


def test_changed_cost_is_announced_and_does_not_disturb_the_adjacency():
    net = pair()
    net.until(net.all_full)
    net.run(1)
    link, settings = net.nodes[1].links[2]
    net.link(1, link, replace(settings, cost=77))
    net.run(1)
    assert net.all_full()
    assert net.blocks(2)[router_id(1)].metrics.tolist() == [77]
    assert net.local_links(1)[0].metric == 77


SLOW = replace(FAST, hello_interval=10, router_dead_interval=40)


@pytest.mark.parametrize(
    ("before", "after"), [(FAST, SLOW), (SLOW, FAST)], ids=["longer", "shorter"]
)
def test_an_adjacency_survives_intervals_that_both_ends_change_within_the_dead_interval(
    before, after
):
    net = pair(settings=before)
    net.until(net.all_full)
    net.run(25)
    formed = [list(node.said(AdjacencyChanged)) for node in net.nodes.values()]
    for number in (1, 2):
        net.link(number, net.nodes[number].links[2][0], after)
        net.run(2)
    net.run(100)
    assert net.all_full()
    assert [list(node.said(AdjacencyChanged)) for node in net.nodes.values()] == formed


def test_a_hello_leaves_at_once_when_an_interval_changes_and_the_next_follow_it():
    peer = Scripted(settings=SLOW)
    peer.at(1.0)
    peer.got()
    peer.handle(LinkChanged(peer.link, FAST))
    (hello,) = peer.got(Hello)
    assert (hello.hello_interval, hello.router_dead_interval) == (1, 4)
    peer.at(11.0)
    assert 10 <= len(peer.got(Hello)) <= 11


@pytest.mark.rfc("RFC 2328 §10.5")
def test_mismatched_hello_intervals_never_become_adjacent():
    net = pair(settings=FAST, b_settings=DEFAULTS)
    net.run(30)
    assert net.states(1) == net.states(2) == []
