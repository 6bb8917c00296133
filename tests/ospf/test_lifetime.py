"""Self-originated LSAs: origination, throttle, refresh, wrap, restart, flush (RFC 2328 §12,
§13.4, §14)."""

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.protocols.igp.events import LinkChanged, LogRecord, PacketReceived, ShutdownRequested
from fared.protocols.igp.throttle import Throttle, ThrottleSettings
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import (
    INITIAL_SEQUENCE_NUMBER,
    MAX_AGE,
    MAX_SEQUENCE_NUMBER,
    LsaKey,
    LsType,
)
from fared.protocols.ospf.packet.packets import Hello, LsUpdate, PacketType
from tests.ospf.harness import DEFAULTS, FAST, Network, pair, router_id
from tests.ospf.scripted import ALL_SPF, Scripted, ack, make_lsa, update

OTHER = router_id(30)


def keep_alive(peer: Scripted, seconds: float, *, acks: bool = True) -> list:
    """Send hellos and acknowledgments for some time; return the LSAs received."""
    came = []
    end = peer.now + seconds
    while peer.now < end:
        peer.at(min(end, peer.now + 0.5))
        updates = peer.got(LsUpdate)
        came += [lsa for u in updates for lsa in u.lsas]
        peer.greet(peer.me)
        if acks:
            for u in updates:
                peer.send(ack(*u.lsas))
    return came


@pytest.mark.rfc("RFC 2328 §12.4")
def test_the_first_origination_is_immediate_and_gaps_then_double():
    throttle = Throttle(ThrottleSettings(initial=0, minimum=0.05, maximum=0.3, reset=10))
    now, gaps = 0.0, []
    for _ in range(6):
        due = throttle.due(now)
        gaps.append(round(due - now, 6))
        throttle.sent(now, due)
        now = due
    assert gaps == [0, 0.05, 0.1, 0.2, 0.3, 0.3]


def test_after_a_quiet_time_the_next_origination_is_immediate_again():
    throttle = Throttle(ThrottleSettings(minimum=0.05, maximum=5, reset=10))
    throttle.sent(0.0, 0.0)
    throttle.sent(0.01, 0.05)
    assert throttle.due(10.1) == 10.1
    throttle.sent(10.1, 10.1)
    assert throttle.due(10.1) == 10.1 + 0.05


def test_single_events_a_second_apart_never_wait():
    throttle = Throttle(ThrottleSettings())
    for event in range(20):
        now = event * 1.1
        assert throttle.due(now) == now
        throttle.sent(now, now)


def test_a_gap_is_reset_only_after_twice_its_length_without_changes():
    throttle = Throttle(ThrottleSettings())
    now = 0.0
    for _ in range(9):
        now = throttle.due(now)
        throttle.sent(now, now)
    assert throttle.due(now + 9.9) == now + 5.0
    assert throttle.due(now + 10.1) == now + 10.1


def test_a_flapping_cost_is_flooded_at_growing_intervals_and_ends_with_the_last_value():
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 15)
    costs = []
    for n in range(40):
        peer.handle(LinkChanged(peer.link, replace(peer.settings, cost=100 + n)))
        costs += [x for x in keep_alive(peer, 0.25) if x.header.ls_type == 1]
    costs += [x for x in keep_alive(peer, 6) if x.header.ls_type == 1]
    assert len(costs) < 15
    assert decode_body(peer.own_router_lsa()).links[0].metric == 139


@pytest.mark.rfc("RFC 2328 §12.4")
def test_unchanged_contents_are_not_originated_again():
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    before = peer.own_router_lsa()
    peer.handle(LinkChanged(replace(peer.link, mtu=9000), peer.settings))
    assert keep_alive(peer, 1) == []
    assert peer.own_router_lsa() == before


@pytest.mark.rfc("RFC 2328 §12.4")
def test_own_lsas_are_refreshed_after_half_an_hour_without_spf():
    net = pair(settings=DEFAULTS)
    net.until(lambda: net.all_full() and len(net.database(1)) == 8)
    net.run(5)
    before, updates = net.database(1), len(net.nodes[1].outputs)
    net.run(1800)
    after = net.database(1)
    assert {key: seq for key, (seq, _) in after.items()} == {
        key: seq + 1 for key, (seq, _) in before.items()
    }
    assert net.in_sync()
    kinds = {type(o).__name__ for _, o in net.nodes[1].outputs[updates:]}
    assert kinds == {"SendPacket"}


def test_refreshes_are_spread():
    net = pair(settings=DEFAULTS)
    net.run(1801)
    times = {round(t, 3) for t, node, p in net.trace if node == 1 and p.payload[1] == 4 and t > 60}
    assert len(times) >= 3
    assert min(times) > 1700


@pytest.mark.rfc("RFC 2328 §14")
def test_an_lsa_of_another_router_that_is_not_refreshed_ages_out():
    peer = Scripted()
    peer.to_full()
    lsa = make_lsa(OTHER, age=3590)
    peer.send(update(lsa))
    keep_alive(peer, 9)
    assert lsa.header.key in peer.lsas()
    came = keep_alive(peer, 2)
    assert [(x.header.key, x.header.ls_age) for x in came] == [(lsa.header.key, MAX_AGE)]
    assert lsa.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §14")
def test_a_maxage_lsa_stays_until_acknowledged():
    peer = Scripted()
    peer.to_full()
    lsa = make_lsa(OTHER, age=3599)
    peer.send(update(lsa))
    keep_alive(peer, 2, acks=False)
    assert peer.lsas()[lsa.header.key][1] == MAX_AGE
    peer.send(ack(make_lsa(OTHER, age=MAX_AGE)))
    assert lsa.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §13.4")
def test_after_a_restart_own_lsas_from_before_are_replaced_or_flushed():
    """§13.4: the neighbor still has the LSAs from before the restart."""
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    stale = make_lsa(peer.me, INITIAL_SEQUENCE_NUMBER + 500)
    gone = make_lsa(peer.me, 77, ls_type=10, lsid=0x01000063, body=bytes(8))
    peer.send(update(stale, gone))
    came = keep_alive(peer, 1)
    assert peer.own_router_lsa().header.ls_sequence_number == INITIAL_SEQUENCE_NUMBER + 501
    flushed = [x for x in came if x.header.key == gone.header.key]
    assert [(x.header.ls_sequence_number, x.header.ls_age) for x in flushed] == [(77, MAX_AGE)]
    assert gone.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §13.4")
def test_an_instance_that_is_flushed_at_once_is_not_acknowledged():
    """If it came again meanwhile, its neighbor would take it for acknowledged, and keep it."""
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    gone = make_lsa(peer.me, 77, ls_type=10, lsid=0x01000063, body=bytes(8))
    other = make_lsa(peer.peer, 77, ls_type=10, lsid=0x01000063, body=bytes(8))
    peer.send(update(gone, other))
    acknowledged = [header.key for sent in peer.acks() for header in sent.lsa_headers]
    assert acknowledged == [other.header.key]
    peer.send(update(gone))
    assert not peer.acks()
    assert gone.header.key in peer.lsas()  # at MaxAge, until it is acknowledged
    keep_alive(peer, 6)
    assert gone.header.key not in peer.lsas()


@pytest.mark.rfc("RFC 2328 §13.4")
def test_an_own_lsa_flushed_by_another_router_is_originated_again():
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    own = peer.own_router_lsa()
    body = own.raw[20:]
    peer.send(update(make_lsa(peer.me, own.header.ls_sequence_number, age=MAX_AGE, body=body)))
    keep_alive(peer, 1)
    assert peer.own_router_lsa().header.ls_sequence_number == own.header.ls_sequence_number + 1
    assert peer.lsas()[own.header.key][1] < MAX_AGE


@pytest.mark.rfc("RFC 2328 §12.1.6")
def test_the_sequence_number_wraps_by_way_of_a_flush():
    """§12.1.6: at MaxSequenceNumber the LSA is flushed, acknowledged, and originated again."""
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    peer.send(update(make_lsa(peer.me, MAX_SEQUENCE_NUMBER - 1)))
    keep_alive(peer, 1)
    assert peer.own_router_lsa().header.ls_sequence_number == MAX_SEQUENCE_NUMBER
    peer.handle(LinkChanged(peer.link, replace(peer.settings, cost=99)))
    came = [x for x in keep_alive(peer, 5) if x.header.ls_type == 1]
    assert [(x.header.ls_sequence_number, x.header.ls_age >= MAX_AGE) for x in came] == [
        (MAX_SEQUENCE_NUMBER, True),
        (INITIAL_SEQUENCE_NUMBER, False),
    ]
    assert decode_body(peer.own_router_lsa()).links[0].metric == 99


@pytest.mark.rfc("RFC 2328 §12.1.6")
def test_after_a_second_wrap_the_first_instance_is_another_one():
    """A late acknowledgment of the first one would else end the retransmission of the second."""
    peer = Scripted()
    peer.to_full()
    first = []
    for _ in range(3):
        keep_alive(peer, 2)
        peer.send(update(make_lsa(peer.me, MAX_SEQUENCE_NUMBER)))
        came = [x.header for x in keep_alive(peer, 6) if x.header.ls_type == 1]
        first.append(next(x.ls_sequence_number for x in came if x.ls_age < MAX_AGE))
    assert first == [INITIAL_SEQUENCE_NUMBER + number for number in range(3)]


def silenced() -> tuple[Network, LsaKey]:
    """Router 1 between 2 and 3; of 3, only hellos arrive.

    Before that, it sent a router LSA of 1 with MaxSequenceNumber.
    """
    net = Network(1)
    net.join(1, 2)
    net.join(1, 3)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(3.0)
    carry = net.carry
    net.carry = lambda end, packet: (
        carry(end, packet) if end[0] != 3 or packet.payload[1] == PacketType.HELLO else None
    )
    forge(net)
    return net, LsaKey(LsType.ROUTER, router_id(1), router_id(1))


def forge(net: Network, *links: RouterLink) -> None:
    """Let router 3 send to router 1 a router LSA of 1 with MaxSequenceNumber."""
    lsa = make_lsa(router_id(1), MAX_SEQUENCE_NUMBER, links=links)
    packet = encode_packet(router_id(3), 0, update(lsa))
    net.input(1, PacketReceived(3, parse_dotted("10.128.0.3"), ALL_SPF, packet, 1))


@pytest.mark.rfc("RFC 2328 §12.1.6")
def test_a_neighbor_that_never_acknowledges_a_flush_does_not_prevent_origination():
    """§12.1.6 requires all acknowledgments; after three retransmissions the LSA is originated."""
    net, key = silenced()
    begun = net.now
    net.until(lambda: key not in net.database(2), 1.0)
    assert net.states(1) == ["Full", "Full"]
    net.until(lambda: net.database(2).get(key, (0,))[0] == INITIAL_SEQUENCE_NUMBER, 10.0)
    assert net.now - begun < 3 * FAST.rxmt_interval + 0.5
    net.run(10.0)
    assert net.database(2)[key] == net.database(1)[key]
    assert [r.event for r in net.nodes[1].said(LogRecord)][-2:] == [
        "ospf-sequence-wrap",
        "ospf-flush-not-acknowledged",
    ]


@pytest.mark.rfc("RFC 2328 §12.1.6")
def test_an_lsa_of_maxsequencenumber_received_again_meanwhile_is_flushed_again():
    """It does not stay in the database, and does not extend the wait."""
    net, key = silenced()
    begun = net.now
    net.run(1.0)
    forge(net)
    for cost in range(9):  # some of these have a greater checksum, and so are newer
        forge(net, RouterLink(RouterLinkType.POINT_TO_POINT, 3, 1, cost))
    net.until(lambda: net.database(2).get(key, (0,))[0] == INITIAL_SEQUENCE_NUMBER, 10.0)
    assert net.now - begun < 3 * FAST.rxmt_interval + 0.5


@pytest.mark.rfc("RFC 2328 §14.1")
def test_shutdown_flushes_own_lsas_and_then_sends_hellos_without_neighbors():
    peer = Scripted()
    peer.to_full()
    keep_alive(peer, 1)
    peer.got()
    own = {key for key in peer.lsas() if key.advertising_router == peer.me}
    peer.handle(ShutdownRequested())
    *updates, hello = peer.got()
    flushed = {x.header.key: x.header.ls_age for u in updates for x in u.lsas}
    assert flushed == dict.fromkeys(own, MAX_AGE)
    assert isinstance(hello, Hello)
    assert hello.neighbors == ()


def test_after_shutdown_the_engine_is_quiet():
    peer = Scripted()
    peer.to_full()
    peer.handle(ShutdownRequested())
    peer.got()
    peer.greet(peer.me)
    assert peer.engine.next_deadline() is None
    assert peer.got() == []


@pytest.mark.rfc("RFC 2328 §14.1")
def test_no_lsas_of_a_router_that_shut_down_remain():
    net = Network(4)
    net.join(1, 2)
    net.join(2, 3)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(1)
    net.input(3, ShutdownRequested())
    net.nodes[3].stopped = True
    net.run(0.2)
    assert all(key.advertising_router != router_id(3) for key in net.database(1))
    assert net.blocks(1)[router_id(3)] is None


@pytest.mark.rfc("RFC 2328 §14.1")
def test_a_te_lsa_is_flushed_when_its_link_goes_down():
    net = Network(4)
    net.join(1, 2)
    net.join(1, 3)
    cable = net.join(2, 3)
    net.until(lambda: net.all_full() and net.in_sync())
    net.run(1)
    key = LsaKey(10, 0x01000003, router_id(2))
    assert key in net.database(1)
    net.set_up(cable, up=False)
    net.run(0.2)
    assert key not in net.database(1)
    assert key not in net.database(3)
