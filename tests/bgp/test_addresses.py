"""Addresses of links that come and go, and what neighbors are told of next hops then."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, ipv4_prefix
from fared.core.links import InterfaceAddress
from fared.core.streams import StreamReceived
from fared.extensions.sim.fabric import Fabric, clos3
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.igp.events import LinkChanged
from fared.router.events import To
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.bgp.fabrics import engine, numbered, speakers, started, weights
from tests.bgp_rib.routers import attributes

BOTH = {"S1": 1, "S2": 1}


def have(fabric: Fabric, name: str, toward: str, *addresses: InterfaceAddress) -> None:
    """Have a link with its IPv4 address, and these others."""
    port = fabric.network.find_port(name, toward)
    link = replace(port.link(), addresses=(*port.link().ipv4(), *addresses))
    fabric.network.input(name, To("bgp", LinkChanged(link, port.settings["bgp"])))
    fabric.network.run_for(0.3)


def by(fabric: Fabric, name: str, to: str) -> dict[str, int] | None:
    return weights(fabric, name, "bgp", fabric.leaf_prefixes6[to])


def gateways(fabric: Fabric, name: str, to: str) -> set[int]:
    """Where packets to the hosts of a leaf are sent."""
    route = fabric.network.nodes[name].running.instances["bgp"].routes[fabric.leaf_prefixes6[to]]
    assert route.nexthops is not None
    return {hop.gateway for hop in route.nexthops.hops}


def sessions(fabric: Fabric) -> list[int]:
    return [
        one.flaps
        for name in fabric.network.nodes
        for one in engine(fabric, name).instance.neighbors.values()
    ]


@pytest.fixture
def fabric() -> Fabric:
    """IPv4 sessions, which carry IPv6 routes too."""
    return started(numbered(clos3(2, 2, builder=speakers())))


@pytest.mark.rfc("RFC 4271 §5.1.3")
def test_routes_of_a_family_whose_last_address_is_removed_are_withdrawn(fabric):
    have(fabric, "L1", "S1")
    assert by(fabric, "S1", "L1") == {"L2": 1}, "over L2, as nothing leads there directly"
    assert by(fabric, "L2", "L1") == {"S2": 1}
    assert by(fabric, "L1", "L2") == {"S2": 1}, "nor can it send anything there"
    assert weights(fabric, "L2", "bgp", fabric.leaf_prefixes["L1"]) == BOTH
    assert not any(sessions(fabric))


def test_of_an_address_that_comes_instead_neighbors_are_told(fabric):
    have(fabric, "L1", "S1")
    new = InterfaceAddress(6, (0xFE80 << 112) + 0xABCD, 64)
    have(fabric, "L1", "S1", new)
    assert by(fabric, "L2", "L1") == BOTH
    assert by(fabric, "L1", "L2") == BOTH
    assert gateways(fabric, "S1", "L1") == {new.address}
    assert not any(sessions(fabric))


def test_a_neighbor_that_cannot_be_asked_again_has_its_session_begun_anew(fabric):
    for one in engine(fabric, "L1").instance.neighbors.values():
        one.agreed = replace(one.agreed, refresh=False)
    have(fabric, "L1", "S1")
    port = fabric.network.find_port("L1", "S1")
    have(fabric, "L1", "S1", InterfaceAddress(6, port.link_local, 64))
    fabric.network.run_for(3.0)
    assert by(fabric, "L1", "L2") == BOTH
    assert sum(sessions(fabric)) == 2


def test_an_address_beside_others_may_come_and_go(fabric):
    port = fabric.network.find_port("L1", "S1")
    near = InterfaceAddress(6, port.link_local, 64)
    have(fabric, "L1", "S1", near, InterfaceAddress(6, (0x2001 << 112) + 1, 64))
    assert gateways(fabric, "S1", "L1") == {port.link_local}
    have(fabric, "L1", "S1", InterfaceAddress(6, near.address + 7, 64))
    assert gateways(fabric, "S1", "L1") == {near.address + 7}
    assert by(fabric, "L1", "L2") == BOTH
    assert not any(sessions(fabric))


def said(fabric: Fabric, toward: str, *told: tuple[BgpNextHop, Prefix]) -> None:
    """L1 is told routes by a neighbor, each with a next hop of its own."""
    settings = fabric.network.nodes[toward].settings.protocols["bgp"]
    tell(fabric, by_address(fabric, "L1", toward), settings.local_as, *told)


def tell(
    fabric: Fabric, speaker: BgpSpeaker, remote_as: int, *told: tuple[BgpNextHop, Prefix]
) -> None:
    for hop, prefix in told:
        group = RouteGroup(hop, (prefix,))
        update = Update(routes=(group,), attributes=attributes(remote_as, 65099))
        data = b"".join(encode_message(update, Coding(four_octet_as=True)))
        (stream, _), *_ = speaker.session.reading()
        fabric.network.input("L1", To("bgp", StreamReceived(stream, data)))
    fabric.network.run_for(0.3)


def by_address(fabric: Fabric, name: str, toward: str) -> BgpSpeaker:
    remote = fabric.network.find_port(toward, name).address
    found = engine(fabric, name).instance.neighbors.values()
    return next(one for one in found if one.place.remote == remote)


def hops(fabric: Fabric, prefix: Prefix) -> list[int]:
    route = fabric.network.nodes["L1"].running.instances["bgp"].routes.get(prefix)
    return [] if route is None else [one.gateway for one in route.nexthops.hops]


def why_not(fabric: Fabric, prefix: Prefix) -> list[str | None]:
    found = run_view(seen_from(fabric, "L1"), "show bgp-routes", {"prefix": str(prefix)})
    return [one["why_not"] for one in found["routes"][0]["paths"]]


@pytest.mark.rfc("RFC 4271 §5.1.3")
def test_paths_of_one_neighbor_are_forwarded_to_their_own_next_hops(fabric):
    """The link is a LAN of a route server: 10.99.0.0/24 beside the network of the session."""
    lan = InterfaceAddress(4, 0x0A630001, 24)
    have(fabric, "L1", "S1", lan, InterfaceAddress(6, 0xFE80 << 112 | 5, 64))
    one, two, off, own, all_of = [ipv4_prefix(0x0AC80000 + (at << 8), 24) for at in range(5)]
    usual = by_address(fabric, "L1", "S1").place.remote
    where = (0x0A630007, 0x0A630008, 0x0A640001, lan.address, lan.broadcast)
    prefixes = (one, two, off, own, all_of)
    told = [(BgpNextHop(4, hop), to) for hop, to in zip(where, prefixes, strict=True)]
    said(fabric, "S1", *told)
    assert hops(fabric, one) == [0x0A630007]
    assert hops(fabric, two) == [0x0A630008]
    assert hops(fabric, fabric.leaf_prefixes["L2"]).count(usual) == 1
    for unusable in (off, own, all_of):
        assert hops(fabric, unusable) == []
        (why,) = why_not(fabric, unusable)
        assert "is not on the link" in why
    # as soon as the link has a network with it, a path is usable, and no longer without it
    near = InterfaceAddress(6, 0xFE80 << 112 | 5, 64)
    have(fabric, "L1", "S1", InterfaceAddress(4, 0x0A640009, 24), near)
    assert hops(fabric, off) == [0x0A640001]
    assert hops(fabric, one) == []
    # another next hop takes the place of the first one
    said(fabric, "S1", (BgpNextHop(4, 0x0A640002), off))
    assert hops(fabric, off) == [0x0A640002]
    assert not any(sessions(fabric))


def test_another_link_local_next_hop_of_an_unnumbered_neighbor_is_followed():
    fabric = started(clos3(1, 2, builder=speakers()))
    (speaker,) = engine(fabric, "L1").instance.neighbors.values()
    prefix, wide = fabric.leaf_prefixes6["L2"], 0x2001 << 112 | 9
    (before,) = gateways(fabric, "L1", "L2")
    assert before == speaker.place.remote
    for near in (before + 1, before + 2, before):
        tell(fabric, speaker, speaker.agreed.number, (BgpNextHop(6, wide, near), prefix))
        assert gateways(fabric, "L1", "L2") == {near}
    # IPv4 routes have such next hops, too (RFC 8950)
    tell(
        fabric,
        speaker,
        speaker.agreed.number,
        (BgpNextHop(6, before + 3), fabric.leaf_prefixes["L2"]),
    )
    assert hops(fabric, fabric.leaf_prefixes["L2"]) == [before + 3]
