"""Links with several subnets, of which a neighbor has another one than the primary address."""

import pytest
from msgspec.structs import replace

from fared.core.ids import length_mask, parse_dotted
from fared.core.links import InterfaceAddress
from fared.extensions.sim.wire import Cable
from fared.protocols.igp.events import LogRecord, SendPacket
from fared.protocols.ospf.packet.bodies import RouterLinkType
from fared.protocols.ospf.packet.body import decode_body
from tests.ospf.harness import FAST, LAN, Network, make_link, router_id
from tests.ospf.scripted import router_lsa

FIRST, SECOND = "10.99.0.", "10.4.0."


def addresses(number: int, *subnets: str) -> tuple[InterfaceAddress, ...]:
    return tuple(InterfaceAddress(4, parse_dotted(f"{net}{number}"), 24) for net in subnets)


def on_a_link(settings, *subnets: tuple[str, ...]) -> Network:
    """Routers 1, 2... with these subnets on one link, the primary one first."""
    net = Network(1)
    ends = tuple((number, 2) for number in range(1, len(subnets) + 1))
    for number, _ in ends:
        net.add(number)
    net.lay(Cable(ends))
    for (number, ifindex), own in zip(ends, subnets, strict=True):
        link = replace(make_link(ifindex, 0), addresses=addresses(number, *own))
        net.link(number, link, settings)
    return net


def sources(net: Network, number: int, since: float) -> set[int]:
    """The source addresses of its packets, as the kernel would choose where the engine does not."""
    primary = net.nodes[number].links[2][0].addresses[0].address
    return {
        packet.source or primary
        for at, packet in net.nodes[number].outputs
        if isinstance(packet, SendPacket) and packet.ifindex == 2 and at >= since
    }


@pytest.mark.parametrize("settings", [FAST, LAN], ids=["point-to-point", "broadcast"])
@pytest.mark.parametrize("alone", [1, 2], ids=["of-lower-id", "of-higher-id"])
def test_a_neighbor_in_the_second_subnet_is_followed(settings, alone):
    """The one with two subnets speaks in the other's; both subnets are advertised."""
    own = {alone: (SECOND,), 3 - alone: (FIRST, SECOND)}
    net = on_a_link(settings, own[1], own[2])
    net.run(8.0)
    assert net.states(1) == net.states(2) == ["Full"]
    for number in (1, 2):
        (link,) = net.local_links(number)
        assert link.gateway == parse_dotted(f"{SECOND}{3 - number}")
        assert sources(net, number, net.now - 3.0) == {parse_dotted(f"{SECOND}{number}")}
    assert prefixes_of(net, 3 - alone) >= {f"{FIRST}0"}


def prefixes_of(net: Network, number: int) -> set[str]:
    body = decode_body(net.lsdb(number).entries[router_lsa(router_id(number))].lsa)
    stubs = (k for k in body.links if k.link_type == RouterLinkType.STUB)
    return {
        net
        for net in (f"{FIRST}0", f"{SECOND}0")
        for k in stubs
        if (k.link_id, k.link_data) == (parse_dotted(net), length_mask(24))
    }


@pytest.mark.parametrize("settings", [FAST, LAN], ids=["point-to-point", "broadcast"])
@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_two_routers_with_both_subnets_meet_in_one_of_them(settings, order):
    """Only one of them follows the other: else they would change places for ever."""
    net = on_a_link(settings, (FIRST, SECOND), order)
    net.run(8.0)
    assert net.states(1) == net.states(2) == ["Full"]
    used = {min(sources(net, number, net.now - 3.0)) >> 8 for number in (1, 2)}
    assert len(used) == 1
    assert sum(moves(net, number) for number in (1, 2)) == (order != (FIRST, SECOND))


def moves(net: Network, number: int) -> int:
    said = net.nodes[number].said(LogRecord)
    return sum(record.event == "ospf-subnet-chosen" for record in said)


def test_who_has_a_neighbor_follows_no_other_and_tells_why():
    """On a LAN two routers are in the first subnet, and the third in the second one only."""
    net = on_a_link(LAN, (FIRST, SECOND), (FIRST,))
    net.run(8.0)
    net.add(3)
    net.plug(net.cables[0], (3, 2))
    net.link(3, replace(make_link(2, 0), addresses=addresses(3, SECOND)), LAN)
    net.run(5.0)
    assert net.states(1) == ["Full"]
    assert net.nodes[1].engine.counters.errors["other-subnet"] > 0


def test_the_address_in_use_stays_while_the_primary_one_changes():
    net = on_a_link(FAST, (FIRST, SECOND), (SECOND,))
    net.run(5.0)
    link, settings = net.nodes[1].links[2]
    net.link(1, replace(link, addresses=addresses(1, "10.98.0.", SECOND)), settings)
    assert net.states(1) == ["Full"]
    net.link(1, replace(link, addresses=addresses(1, SECOND, FIRST)), settings)
    assert net.states(1) == ["Full"]
    net.link(1, replace(link, addresses=addresses(1, FIRST)), settings)
    assert net.states(1) == []
