"""Point-to-point links without addresses of their own, parallel ones, and links that change."""

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.core.links import InterfaceAddress
from fared.extensions.sim.wire import Cable
from fared.protocols.igp.events import LinkRemoved, SendPacket
from fared.protocols.ospf.packet.bodies import RouterLinkType
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.opaque import TeLink
from fared.protocols.ospf.packet.packets import Hello
from tests.ospf.harness import FAST, Network, make_link, router_id


def unnumbered_pair(count: int = 1, *, borrowed: bool = False) -> Network:
    """Two routers joined by links without addresses, or with those of the loopbacks."""
    net = Network(1)
    net.add(1)
    net.add(2)
    for index in range(count):
        ends = ((1, 2 + index), (2, 12 + index))
        net.lay(Cable(ends))
        for number, ifindex in ends:
            own = (InterfaceAddress(4, router_id(number), 32),) if borrowed else ()
            net.link(number, replace(make_link(ifindex, 0), addresses=own), FAST)
    return net


def lsas_of(net: Network, number: int, ls_type: int) -> list:
    mine = [e.lsa for e in net.lsdb(number) if e.key.advertising_router == router_id(number)]
    return [decode_body(lsa) for lsa in mine if lsa.header.ls_type == ls_type]


@pytest.mark.rfc("RFC 2328 §12.4.1.1")
@pytest.mark.parametrize("borrowed", [False, True])
def test_links_without_their_own_address_form_adjacencies(borrowed):
    """RFC 2328 §12.4.1.1: the router LSA has the interface index, and no subnet."""
    net = unnumbered_pair(borrowed=borrowed)
    net.run(1.0)
    assert net.states(1) == net.states(2) == ["Full"]
    assert net.in_sync()
    (body,) = lsas_of(net, 2, LsType.ROUTER)
    assert [(k.link_type, k.link_id, k.link_data) for k in body.links] == [
        (RouterLinkType.STUB, router_id(2), 0xFFFFFFFF),
        (RouterLinkType.POINT_TO_POINT, router_id(1), 12),
    ]


@pytest.mark.rfc("RFC 2328 §9.5")
def test_hellos_come_from_the_loopback_and_carry_no_mask():
    net = unnumbered_pair()
    net.run(1.0)
    sent = [p for p in net.nodes[1].said(SendPacket) if p.ifindex == 2]
    assert {p.source for p in sent} == {router_id(1)}
    hello = next(b for p in sent if isinstance(b := decode_packet(p.payload).body, Hello))
    assert hello.network_mask == 0


def test_next_hops_are_onlink_by_the_address_of_the_neighbor():
    net = unnumbered_pair()
    net.run(1.0)
    (link,) = net.local_links(1)
    assert (link.gateway, link.onlink, link.local_id) == (router_id(2), True, 2)
    assert not any(k.onlink for k in numbered().local_links(1))


A, B = parse_dotted("10.7.0.0"), parse_dotted("10.7.0.1")
OTHER = parse_dotted("10.99.0.1")


@pytest.mark.parametrize(
    ("ours", "theirs", "onlink"),
    [
        ([(A, 31)], B, False),
        ([(A, 32)], B, True),
        ([(A, 32, B)], B, False),
        ([(A, 24, B)], B, False),
        ([(OTHER, 24), (A, 24)], B, False),
        ([(A, 24, None, False)], B, True),
    ],
    ids=["subnet", "two-hosts", "peer", "network-of-peer", "second-subnet", "noprefixroute"],
)
def test_a_next_hop_is_onlink_where_the_kernel_has_no_route_to_it(ours, theirs, onlink):
    net = Network(1)
    net.add(1)
    net.add(2)
    net.lay(Cable(((1, 2), (2, 2))))
    addresses = tuple(InterfaceAddress(4, *address) for address in ours)
    net.link(1, replace(make_link(2, 0), addresses=addresses), FAST)
    net.link(2, make_link(2, theirs, length=32), FAST)
    net.run(2.0)
    (link,) = net.local_links(1)
    assert (link.gateway, link.onlink) == (theirs, onlink)


def test_no_adjacency_forms_with_an_address_that_the_kernel_refuses_as_a_gateway():
    """Its routes could not be installed, and others would send their packets here."""
    net = Network(1)
    net.join(1, 2)
    elsewhere = make_link(9, parse_dotted("10.128.0.1"), length=32)
    net.link(1, elsewhere, None)
    net.run(2.0)
    assert (net.states(1), set(net.nodes[1].engine.counters.errors)) == ([], {"own-address"})
    net.link(1, replace(elsewhere, addresses=()), None)
    net.run(2.0)
    assert net.states(1) == ["Full"]
    net.link(1, elsewhere, None)
    assert (net.states(1), net.local_links(1)) == ([], ())


def test_an_adjacency_ends_with_the_address_whose_network_it_is_on():
    net = Network(1)
    net.join(1, 2)
    link, settings = net.nodes[1].links[2]
    first = replace(link.addresses[0], address=OTHER, prefix_length=24)
    net.link(1, replace(link, addresses=(first, *link.addresses)), settings)
    net.run(5.0)
    assert net.states(1) == ["Full"]
    net.link(1, replace(link, addresses=(first,)), settings)
    assert net.states(1) == []


def numbered() -> Network:
    net = Network(1)
    net.join(1, 2)
    net.run(1.0)
    return net


@pytest.mark.rfc("RFC 2328 §12.4.1.1")
def test_parallel_unnumbered_links_are_told_apart_by_index():
    net = unnumbered_pair(3)
    net.run(1.0)
    assert net.states(1) == ["Full"] * 3
    assert [link.local_id for link in net.local_links(1)] == [2, 3, 4]
    block = net.blocks(1)[router_id(2)]
    assert block.local_ids.tolist() == [12, 13, 14]
    assert block.capacities.tolist() == [12.5e6] * 3
    links = [body for body in lsas_of(net, 2, LsType.OPAQUE_AREA) if isinstance(body, TeLink)]
    assert sorted(k.local_identifier for k in links) == [12, 13, 14]


def test_without_a_loopback_there_is_nothing_to_borrow():
    net = unnumbered_pair()
    net.run(1.0)
    net.input(1, LinkRemoved(1))
    assert net.interface(1).state.value == "Down"
    assert net.local_links(1) == ()


def test_a_changed_loopback_address_is_borrowed_by_unnumbered_links():
    net = unnumbered_pair()
    net.run(1.0)
    lo, settings = net.nodes[1].links[1]
    other = parse_dotted("10.255.7.7")
    net.link(1, replace(lo, addresses=(InterfaceAddress(4, other, 32),)), settings)
    net.run(0.5)
    assert [link.gateway for link in net.local_links(2)] == [router_id(1)]
    net.run(3.0)  # after two hello intervals without hellos, another address is accepted
    assert net.states(1) == ["Full"]
    assert [link.gateway for link in net.local_links(2)] == [other]


def test_a_link_that_gets_an_address_becomes_numbered():
    net = unnumbered_pair()
    net.run(1.0)
    for number, ifindex in net.cables[0].ends:
        net.link(number, make_link(ifindex, parse_dotted("10.128.9.1") + number), FAST)
    net.run(5.0)
    assert net.states(1) == ["Full"]
    (link,) = net.local_links(1)
    assert (link.gateway, link.onlink) == (parse_dotted("10.128.9.3"), False)


# Parallel links, and changes while the engine runs


def test_of_eight_parallel_links_seven_stay():
    net = Network(1)
    cables = [net.join(1, 2) for _ in range(8)]
    net.run(1.0)
    assert len(net.local_links(1)) == 8
    net.set_up(cables[3], False)
    net.run(0.2)
    assert len(net.local_links(1)) == len(net.local_links(2)) == 7
    assert len(net.blocks(1)[router_id(2)].neighbors) == 7
    net.set_up(cables[3], True)
    net.run(2.0)
    assert len(net.local_links(1)) == 8
    assert net.in_sync()


@pytest.mark.rfc("RFC 2328 §10.6")
def test_a_changed_mtu_is_sent_in_the_next_exchange_and_ends_no_adjacency():
    net = numbered()
    link, settings = net.nodes[1].links[2]
    net.link(1, replace(link, mtu=1400), settings)
    net.run(1.0)
    assert net.states(1) == ["Full"]
    net.set_up(net.cables[0], False)
    net.set_up(net.cables[0], True)
    net.nodes[1].links[2] = (replace(link, mtu=1400), settings)
    net.link(1, replace(link, mtu=1400), settings)
    net.run(2.0)
    assert net.interface(1).link.mtu == 1400


def test_a_second_address_is_announced_and_withdrawn_without_ending_the_adjacency():
    net = numbered()
    link, settings = net.nodes[1].links[2]
    second = InterfaceAddress(4, parse_dotted("10.77.0.1"), 24)
    net.link(1, replace(link, addresses=(*link.addresses, second)), settings)
    net.run(1.0)
    assert net.states(1) == ["Full"]
    (body,) = lsas_of(net, 1, LsType.ROUTER)
    assert parse_dotted("10.77.0.0") in [k.link_id for k in body.links]
    net.link(1, link, settings)
    net.run(1.0)
    (body,) = lsas_of(net, 1, LsType.ROUTER)
    assert parse_dotted("10.77.0.0") not in [k.link_id for k in body.links]
    assert net.states(1) == ["Full"]
