"""Addresses of links that come and go, and what neighbors are told of next hops then."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.links import InterfaceAddress
from fared.extensions.sim.fabric import Fabric, clos3
from fared.protocols.igp.events import LinkChanged
from fared.router.events import To
from tests.bgp.fabrics import engine, numbered, speakers, started, weights

BOTH = {"S1": 1, "S2": 1}


def have(fabric: Fabric, name: str, toward: str, *addresses: InterfaceAddress) -> None:
    """Have a link with its IPv4 address, and these others."""
    port = fabric.network.find_port(name, toward)
    link = replace(port.link(), addresses=(*port.link().ipv4(), *addresses))
    fabric.network.input(name, To("bgp", LinkChanged(link, port.settings["bgp"])))
    fabric.network.run_for(0.3)


def by(fabric: Fabric, name: str, to: str) -> dict[str, int] | None:
    return weights(fabric, name, "bgp", fabric.leaf_prefixes6[to])


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
