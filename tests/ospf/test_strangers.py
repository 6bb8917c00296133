"""Packets of hosts that are not on the link change nothing (RFC 2328 §8.1, §8.2, RFC 5082)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.core.links import InterfaceAddress
from fared.paths.ted.events import LocalLinksChanged
from fared.protocols.igp.events import LinkChanged, LogRecord, OpenInterface, SendPacket, Unicasts
from fared.protocols.ospf.packet.packets import DdFlags
from fared.protocols.ospf.settings import TtlSecurity
from tests.ospf.harness import FAST, LAN, make_link, pair, router_id
from tests.ospf.scripted import E_O, OURS, THEIRS, Scripted, ack, dd, make_lsa, router_lsa, update

MASK = 0xFFFFFF00
ALL_DR = parse_dotted("224.0.0.6")
STRANGER = parse_dotted("192.0.2.66")
LOOPBACK, PEER_LOOPBACK = router_id(5), router_id(9)
FORGED = update(make_lsa(router_id(66), lsid=router_id(66)))


def full(settings=FAST, **changes) -> Scripted:
    """A router that is Full with its neighbor on a point-to-point link."""
    peer = Scripted(settings=settings, **changes)
    peer.to_full()
    return peer


def unnumbered() -> Scripted:
    """The same on a link without addresses."""
    peer = Scripted()
    lo = make_link(1, LOOPBACK, length=32, name="lo", loopback=True)
    peer.handle(LinkChanged(lo, replace(FAST, passive=True)))
    peer.handle(LinkChanged(replace(peer.link, addresses=()), FAST))
    speak = peer.send
    peer.send = lambda body, source=PEER_LOOPBACK, **kind: speak(body, source=source, **kind)
    peer.to_full()
    return peer


def on_lan(*, designated: bool = True) -> Scripted:
    """A router on a LAN that is Full with the other router there; one of them is the DR."""
    ours = 1 if designated else 0
    peer = Scripted(settings=replace(LAN, router_priority=ours), length=24)
    for second in range(6):
        peer.at(float(second))
        leader = 0 if designated else THEIRS
        peer.greet(peer.me, network_mask=MASK, router_priority=1 - ours, designated_router=leader)
    peer.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000), destination=OURS)
    peer.send(dd(DdFlags.MS, 1001, options=E_O), destination=OURS)
    assert peer.state == "Full"
    (interface,) = peer.engine.instance.interfaces.values()
    assert interface.state.value == ("DR" if designated else "DR Other")
    return peer


def attack(peer: Scripted, reason: str, **header) -> None:
    """Send forged packets of the neighbor that would end the adjacency, or change its next hop."""
    before = peer.state_without_counters()
    mask = 0 if peer.settings is FAST else MASK
    bodies = [
        peer.hello(network_mask=mask),
        peer.hello(peer.me, network_mask=mask),
        FORGED,
        dd(DdFlags.I | DdFlags.M | DdFlags.MS, 9),
        ack(peer.own_router_lsa()),
    ]
    for body in bodies:
        peer.send(body, **header)
    assert peer.state_without_counters() == before
    assert peer.errors() == {reason: len(bodies)}


@pytest.mark.parametrize("source", [THEIRS, STRANGER])
@pytest.mark.parametrize("ttl", [1, 63, 254])
def test_unicasts_on_a_point_to_point_link_are_refused(source, ttl):
    """For any source: neighbors send to AllSPFRouters, never forwarded, or with TTL 255."""
    attack(full(), "unicast", source=source, destination=OURS, ttl=ttl)


@pytest.mark.rfc("RFC 2328 §8.2")
def test_a_neighbor_that_sends_unicasts_with_ttl_255_on_a_point_to_point_link_becomes_full():
    """As freeRtr does (RFC 2328 §8.2): no router has forwarded such a packet."""
    peer = Scripted()
    unicast = {"destination": OURS, "ttl": 255}
    peer.to_exstart()
    peer.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000), **unicast)
    peer.send(dd(DdFlags.MS, 1001), **unicast)
    assert (peer.state, peer.errors()) == ("Full", {})
    peer.send(FORGED, **unicast)
    assert router_lsa(router_id(66)) in peer.lsas()
    peer.send(peer.hello(peer.me), **unicast)
    assert peer.errors() == {"destination": 1}, "hellos go to AllSPFRouters (§9.5)"


def test_a_unicast_with_ttl_255_must_come_from_the_network_of_the_link_all_the_same():
    attack(full(), "source-network", source=STRANGER, destination=OURS, ttl=255)


def receives(peer: Scripted) -> Unicasts | None:
    """What the sockets were told last."""
    return [o.unicasts for o in peer.outputs if isinstance(o, OpenInterface)][-1]


def test_sockets_are_told_which_unicasts_can_come_from_the_link():
    """TTL 255 on point-to-point links, 1 as well on LANs; sources on the networks of the link."""
    own = InterfaceAddress(4, OURS, 31)
    assert receives(full()) == Unicasts((OURS,), (255,), (own,))
    assert receives(unnumbered()) == Unicasts((LOOPBACK,), (255,))
    assert receives(on_lan()) == Unicasts((OURS,), (1, 255), (replace(own, prefix_length=24),))


def test_sockets_are_told_when_that_changes():
    peer = on_lan()
    link, (first,) = peer.link, peer.link.addresses
    secure = replace(peer.settings, ttl_security=TtlSecurity.ON)
    peer.handle(LinkChanged(link, secure))
    assert receives(peer) == Unicasts((OURS,), (255,), (first,))
    second = InterfaceAddress(4, OURS + 0x100, 24)
    peer.handle(LinkChanged(replace(link, addresses=(first, second)), secure))
    assert receives(peer) == Unicasts((OURS, OURS + 0x100), (255,), (first, second))
    count = len(peer.outputs)
    peer.handle(LinkChanged(replace(link, addresses=(first, second), mtu=9000), secure))
    assert not [o for o in peer.outputs[count:] if isinstance(o, OpenInterface)]


def test_unicasts_on_an_unnumbered_link_are_refused_and_the_next_hop_stays():
    """Regression: forged hellos from two hops away redirected the traffic of the link."""
    peer = unnumbered()
    links = [o for o in peer.outputs if isinstance(o, LocalLinksChanged)][-1].links
    assert [link.gateway for link in links] == [PEER_LOOPBACK]
    for source in (STRANGER, PEER_LOOPBACK):
        peer.send(peer.hello(peer.me), source=source, destination=LOOPBACK, ttl=63)
    assert [o for o in peer.outputs if isinstance(o, LocalLinksChanged)][-1].links == links
    assert (peer.state, peer.neighbor.address) == ("Full", PEER_LOOPBACK)
    assert peer.errors() == {"unicast": 2}


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_to_all_designated_routers_are_refused_on_point_to_point_links():
    attack(full(), "destination", destination=ALL_DR)


@pytest.mark.rfc("RFC 2328 §8.2")
@pytest.mark.parametrize("ttl", [0, 2, 63, 64, 254])
@pytest.mark.parametrize("make", [full, on_lan])
def test_packets_that_a_router_may_have_forwarded_are_refused(make, ttl):
    attack(make(), "ttl", ttl=ttl)


def test_a_ttl_of_255_is_accepted_without_ttl_security_too():
    """No router has forwarded it; one end of a link may enable TTL security before the other."""
    peer = full()
    peer.send(peer.hello(peer.me), ttl=255)
    assert peer.errors() == {}


@pytest.mark.rfc("RFC 5082 §3")
def test_with_ttl_security_only_255_is_accepted_and_sent():
    peer = Scripted(settings=replace(FAST, ttl_security=TtlSecurity.ON))
    for ttl in (1, 254):
        peer.send(peer.hello(peer.me), ttl=ttl)
    assert (peer.state, peer.errors()) == ("Down", {"ttl": 2})
    peer.send(peer.hello(peer.me), ttl=255)
    assert peer.state == "ExStart"
    assert {o.ttl for o in peer.outputs if isinstance(o, SendPacket)} == {255}


@pytest.mark.rfc("RFC 5082 §3")
@pytest.mark.parametrize(
    ("ours", "theirs", "formed"),
    [
        (TtlSecurity.ON, TtlSecurity.ON, True),
        (TtlSecurity.TX_ONLY, TtlSecurity.ON, True),
        (TtlSecurity.TX_ONLY, TtlSecurity.OFF, True),
        (TtlSecurity.OFF, TtlSecurity.ON, False),
    ],
)
def test_ttl_security_can_be_enabled_on_one_router_after_the_other(ours, theirs, formed):
    """First all routers send 255 (tx-only), then all require it: no adjacency is lost."""
    far = replace(FAST, ttl_security=theirs)
    net = pair(settings=replace(FAST, ttl_security=ours), b_settings=far)
    net.run(3.0)
    assert net.all_full() is formed
    sent = {number: {p.ttl for p in net.nodes[number].said(SendPacket)} for number in (1, 2)}
    assert sent == {
        1: {1 if ours is TtlSecurity.OFF else 255},
        2: {255 if theirs is not TtlSecurity.OFF else 1},
    }


@pytest.mark.rfc("RFC 2328 §8.2")
@pytest.mark.parametrize("make", [full, on_lan])
def test_sources_outside_of_the_network_of_a_link_are_refused(make):
    attack(make(), "source-network", source=STRANGER)


@pytest.mark.parametrize(
    ("addresses", "source", "refused"),
    [
        ([(OURS, 31, None)], THEIRS, False),
        ([(OURS, 31, None)], THEIRS + 1, True),
        ([(OURS, 32, THEIRS + 77)], THEIRS + 77, False),
        ([(OURS, 32, THEIRS + 77)], THEIRS, True),
        ([(OURS, 31, None), (STRANGER - 1, 24, None)], STRANGER, False),
        ([(OURS, 31, None), (LOOPBACK, 32, None)], STRANGER, True),
        ([(OURS, 32, None)], STRANGER, False),
    ],
)
def test_a_numbered_link_has_the_networks_of_its_addresses(addresses, source, refused):
    """A peer address is included, if there is one; a host address alone implies no network."""
    peer = Scripted()
    own = tuple(InterfaceAddress(4, *address) for address in addresses)
    peer.handle(LinkChanged(replace(peer.link, addresses=own), FAST))
    peer.send(peer.hello(peer.me), source=source)
    assert peer.errors() == ({"source-network": 1} if refused else {})


@pytest.mark.rfc("RFC 2328 §8.2")
def test_any_source_may_be_a_neighbor_on_an_unnumbered_link():
    peer = unnumbered()
    assert (peer.state, peer.errors()) == ("Full", {})


@pytest.mark.rfc("RFC 2328 §A.3.2")
def test_hellos_on_a_lan_that_are_not_sent_to_all_spf_routers_are_refused():
    peer = on_lan()
    peer.send(peer.hello(network_mask=MASK), destination=OURS)
    peer.send(peer.hello(network_mask=MASK), destination=ALL_DR)
    assert (peer.state, peer.errors()) == ("Full", {"destination": 2})


@pytest.mark.rfc("RFC 2328 §8.2")
def test_packets_to_all_designated_routers_are_accepted_by_these_only():
    designated = on_lan()
    designated.send(FORGED, destination=ALL_DR)
    assert router_lsa(router_id(66)) in designated.lsas()
    other = on_lan(designated=False)
    other.send(FORGED, destination=ALL_DR)
    assert router_lsa(router_id(66)) not in other.lsas()
    assert other.errors() == {}


@pytest.mark.rfc("RFC 2328 §10.5")
def test_a_neighbor_at_another_address_changes_nothing_while_hellos_of_the_known_one_arrive():
    """A next hop changes only with its adjacency: neighbors have router ids (RFC 2328 §10.5)."""
    peer = full(length=28)
    attack(peer, "neighbor-address", source=THEIRS + 8)
    peer.greet(peer.me)
    peer.at(1.9)
    peer.send(peer.hello(peer.me), source=THEIRS + 8)
    assert (peer.state, peer.neighbor.address) == ("Full", THEIRS)


def test_a_neighbor_that_was_renumbered_is_a_new_one_after_two_silent_hello_intervals():
    """Before the dead interval, the old adjacency ends, and its next hop is removed."""
    peer = full(length=28)
    peer.at(2.1)
    peer.send(peer.hello(peer.me), source=THEIRS + 8)
    assert (peer.state, peer.neighbor.address) == ("ExStart", THEIRS + 8)
    links = [o for o in peer.outputs if isinstance(o, LocalLinksChanged)][-1].links
    assert links == ()


def test_a_stranger_is_logged_once_and_counted_always():
    peer = full()
    for _ in range(50):
        peer.send(peer.hello(), source=STRANGER, destination=OURS, ttl=63)
    (record,) = [o for o in peer.outputs if isinstance(o, LogRecord) and o.level == "warning"]
    assert record.fields == {
        "reason": "unicast",
        "source": "192.0.2.66",
        "interface": "eth2",
        "destination": "10.128.0.0",
        "ttl": 63,
    }
    assert peer.errors() == {"unicast": 50}
