"""Networks between routers that are kept out of the database (RFC 6860)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import NETWORK_NODE, parse_dotted, parse_prefix
from fared.core.links import InterfaceAddress
from fared.protocols.ospf.packet.bodies import NetworkLsa, RouterLinkType, RouterLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.settings import NetworkType
from fared.protocols.ospf.ted.networks import network_block, network_node
from tests.ospf.harness import FAST, LAN, Network, pair, router_id

LINK = parse_dotted("10.128.0.0")
SEGMENT = parse_dotted("10.192.0.0")
HOST_MASK = 0xFFFFFFFF
SUPPRESSED = replace(FAST, prefix_suppression=True)


def body(net: Network, viewer: int, of: int, ls_type: LsType = LsType.ROUTER):
    """The body of a router LSA, or of the network LSA of a DR, in another router's database."""
    (found,) = (
        entry.lsa
        for entry in net.lsdb(viewer)
        if (entry.key.ls_type, entry.key.advertising_router) == (ls_type, router_id(of))
    )
    return decode_body(found)


def stubs(net: Network, of: int) -> list[tuple[int, int]]:
    """The stub networks of a router LSA, loopbacks left out."""
    found: RouterLsa = body(net, of, of)
    return [
        (link.link_id, link.link_data)
        for link in found.links
        if link.link_type == RouterLinkType.STUB and link.link_id != router_id(of)
    ]


def settled(net: Network) -> Network:
    net.run(10.0)
    return net


@pytest.fixture(scope="module")
def linked() -> Network:
    return settled(pair(settings=SUPPRESSED))


@pytest.mark.rfc("RFC 6860 §2.1")
def test_a_point_to_point_link_is_described_without_its_network(linked: Network):
    """RFC 6860 §2.1.1: the link to the neighbor stays, and with it the address of this end."""
    links = body(linked, 2, 1).links
    assert [(link.link_type, link.link_id, link.link_data) for link in links] == [
        (RouterLinkType.STUB, router_id(1), HOST_MASK),
        (RouterLinkType.POINT_TO_POINT, router_id(2), LINK),
    ]


def test_next_hops_and_capacities_do_not_depend_on_the_network_of_a_link(linked: Network):
    (link,) = linked.local_links(1)
    assert (link.neighbor, link.gateway, link.onlink) == (router_id(2), LINK + 1, False)
    block = linked.blocks(1)[router_id(2)]
    assert block.local_ids.tolist() == [LINK + 1]
    assert block.remote_ids.tolist() == [LINK]
    assert block.capacities.tolist() == [12.5e6]
    assert [str(p.prefix) for p in block.prefixes] == ["10.255.0.2/32"]


def test_each_end_decides_for_itself():
    net = settled(pair(settings=SUPPRESSED, b_settings=FAST))
    assert (stubs(net, 1), stubs(net, 2)) == ([], [(LINK, HOST_MASK - 1)])


def test_a_reload_suppresses_and_advertises_again_without_ending_the_adjacency():
    net = settled(pair())
    assert stubs(net, 1) == [(LINK, HOST_MASK - 1)]
    for suppressed in (True, False):
        net.change(1, 2, prefix_suppression=suppressed)
        net.run(10.0)
        assert stubs(net, 1) == ([] if suppressed else [(LINK, HOST_MASK - 1)])
        assert net.interface(1).prefix_suppression is suppressed
        (neighbor,) = net.neighbors(1)
        assert net.states(1) == ["Full"]
        assert neighbor.flaps == 0
        assert net.now - neighbor.since > 15


@pytest.mark.rfc("RFC 6860 §2.1")
def test_secondary_addresses_are_advertised_unless_they_are_of_the_same_network():
    net = settled(pair(settings=SUPPRESSED))
    link, settings = net.nodes[1].links[2]
    more = (
        InterfaceAddress(4, parse_dotted("192.0.2.1"), 24),
        InterfaceAddress(4, LINK + 1, 31),
    )
    net.link(1, replace(link, addresses=(*link.addresses, *more)), settings)
    net.run(10.0)
    assert stubs(net, 1) == [(parse_dotted("192.0.2.0"), HOST_MASK - 255)]


def test_a_loopback_is_advertised_whatever_is_configured():
    net = settled(pair())
    net.change(1, 1, prefix_suppression=True)
    net.run(10.0)
    assert (router_id(1), HOST_MASK) in [(k.link_id, k.link_data) for k in body(net, 2, 1).links]
    assert not net.interface(1, 1).prefix_suppression


def test_a_passive_interface_is_not_advertised_if_it_is_suppressed_itself():
    net = settled(pair(settings=replace(SUPPRESSED, passive=True)))
    assert stubs(net, 1) == []


@pytest.fixture(scope="module")
def lan() -> Network:
    """Three routers on a LAN, of which the third is designated."""
    net = Network()
    net.lan(1, 2, 3, settings=replace(LAN, prefix_suppression=True))
    return settled(net)


@pytest.mark.rfc("RFC 6860 §2.2.1")
def test_the_network_lsa_of_a_lan_has_the_mask_of_a_host(lan: Network):
    """RFC 6860 §2.2.1."""
    found: NetworkLsa = body(lan, 1, 3, LsType.NETWORK)
    assert found.network_mask == HOST_MASK
    assert found.attached_routers == tuple(router_id(n) for n in (1, 2, 3))


@pytest.mark.rfc("RFC 6860 §2.2.2")
def test_a_network_lsa_with_that_mask_gives_no_host_route(lan: Network):
    """RFC 6860 §2.2.2. The LAN remains a vertex of the graph."""
    block = lan.blocks(1)[NETWORK_NODE | (SEGMENT + 3)]
    assert block.prefixes == ()
    assert block.neighbors.tolist() == [router_id(n) for n in (1, 2, 3)]
    assert {link.gateway for link in lan.local_links(1)} == {SEGMENT + 2, SEGMENT + 3}


@pytest.mark.parametrize(
    ("mask", "prefixes"), [(HOST_MASK, []), (HOST_MASK - 1, ["10.192.0.2/31"]), (0xFF00FF00, [])]
)
def test_masks_other_than_of_a_host_are_prefixes(mask: int, prefixes: list[str]):
    block = network_block(network_node(SEGMENT + 3), NetworkLsa(mask, (router_id(1),)))
    assert [p.prefix for p in block.prefixes] == list(map(parse_prefix, prefixes))


@pytest.mark.rfc("RFC 2328 §10.5")
def test_hellos_on_a_lan_keep_the_true_mask(lan: Network):
    """Neighbors would refuse another one (RFC 2328 §10.5)."""
    assert {lan.interface(n).state.value for n in (1, 2, 3)} == {
        "DR",
        "Backup",
        "DR Other",
    }
    assert all(len(lan.interface(n).neighbors) == 2 for n in (1, 2, 3))


def test_a_reload_of_the_designated_router_changes_its_network_lsa():
    net = Network()
    net.lan(1, 2)
    settled(net)
    for suppressed, mask in ((True, HOST_MASK), (False, 0xFFFFFF00)):
        net.change(2, 2, prefix_suppression=suppressed)
        net.run(10.0)
        found: NetworkLsa = body(net, 1, 2, LsType.NETWORK)
        assert found.network_mask == mask


def test_a_router_alone_on_a_lan_does_not_advertise_it():
    net = Network()
    net.lan(1, settings=replace(LAN, prefix_suppression=True))
    assert net.nodes[1].links[2][1].network_type is NetworkType.BROADCAST
    assert stubs(settled(net), 1) == []
