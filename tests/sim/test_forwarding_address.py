"""Externals whose forwarding address is a host that speaks no OSPF, on a network of a router."""

import pytest
from msgspec.structs import replace

from fared.core.ids import BACKBONE, parse_dotted, parse_prefix
from fared.core.routes import LocalRoute
from fared.extensions.sim.fabric import Fabric, FabricBuilder
from fared.extensions.sim.network import Network
from fared.paths.fib.model import FibState
from fared.protocols.igp.events import LinkChanged
from fared.protocols.ospf.settings import AreaSettings, RangeSettings
from fared.router.events import To
from tests.sim.externals import OUTSIDE, configure, externals, route, started, static

HOST, OTHER = parse_dotted("10.192.1.99"), parse_dotted("10.192.1.98")
LAN = parse_prefix("10.192.1.0/24")


def lan_of_two(*areas: AreaSettings) -> Fabric:
    """A and B on a LAN with the host; C behind B."""
    builder = FabricBuilder(Network(seed=6))
    builder.areas(BACKBONE, *areas)
    for name in "ABC":
        builder.router(name)
    builder.lan("A", "B")
    builder.link("B", "C")
    return started(builder.fabric)


def port(fabric: Fabric, name: str):
    return next(p for p in fabric.network.nodes[name].ports.values() if p.segment)


def over(fabric: Fabric, name: str, *hosts: int) -> None:
    """Let a router redistribute a static route over hosts of the LAN."""
    configure(fabric, name, static())
    hops = tuple((port(fabric, name).ifindex, host) for host in hosts)
    fabric.network.set_local_route(name, OUTSIDE, LocalRoute(hops))
    fabric.network.run_until_quiet(60)


def gateways(fabric: Fabric, name: str, prefix=OUTSIDE) -> set[int]:
    """The next hops in a router's kernel."""
    state: FibState = fabric.network.nodes[name].kernel.dump()
    target = state.routes.get(prefix)
    members = state.groups.get(target)
    ids = [target] if members is None else [member.nexthop_id for member in members]
    return {state.nexthops[at][2] for at in ids if at is not None}


@pytest.mark.rfc("RFC 2328 §16.4 (3)", "RFC 2328 §16.1.1")
def test_on_the_lan_the_next_hop_is_the_host_and_behind_it_the_router_on_the_lan():
    """RFC 2328 §16.4 (3), §16.1.1."""
    fabric = lan_of_two()
    over(fabric, "A", HOST)
    (lsa,) = externals(fabric, "B").values()
    assert lsa.forwarding_address == HOST
    assert gateways(fabric, "B") == {HOST}
    (hop,) = route(fabric, "B").nexthops.hops
    assert (hop.interface, hop.capacity) == (port(fabric, "B").name, port(fabric, "B").capacity)
    assert route(fabric, "C").destinations == route(fabric, "C", LAN).destinations


def test_two_hosts_of_equal_cost_share_the_load_and_each_leaves_with_its_external():
    builder = FabricBuilder(Network(seed=6))
    for name in "ABC":
        builder.router(name)
    builder.lan("A", "B", "C")
    fabric = started(builder.fabric)
    over(fabric, "A", HOST)
    over(fabric, "B", OTHER)
    assert gateways(fabric, "C") == {HOST, OTHER}
    fabric.network.set_local_route("A", OUTSIDE, None)
    fabric.network.run_until_quiet(60)
    assert gateways(fabric, "C") == {OTHER}
    fabric.network.set_local_route("B", OUTSIDE, None)
    fabric.network.run_until_quiet(60)
    assert gateways(fabric, "C") == set()


def test_a_host_is_no_next_hop_while_the_interface_is_down_or_has_another_network():
    fabric = lan_of_two()
    over(fabric, "A", HOST)
    lan, node = port(fabric, "B"), fabric.network.nodes["B"]
    link, settings = lan.link(), lan.settings["ospf"]
    for changed in (replace(link, up=False), replace(link, addresses=())):
        fabric.network.input("B", To("ospf", LinkChanged(changed, settings)))
        fabric.network.run_for(3.0)
        assert route(fabric, "B") is None
        fabric.network.input("B", To("ospf", LinkChanged(link, settings)))
        fabric.network.run_until_quiet(60)
        assert gateways(fabric, "B") == {HOST}
    assert node.running.solver.areas == (0,)


def test_a_router_is_no_next_hop_of_its_own():
    """The forwarding address of A's external is B's: packets of B would go round in B."""
    fabric = lan_of_two()
    over(fabric, "A", port(fabric, "B").address)
    (lsa,) = externals(fabric, "B").values()
    assert lsa.forwarding_address == port(fabric, "B").address
    assert route(fabric, "B") is None


@pytest.mark.rfc("RFC 2328 §3.5")
@pytest.mark.parametrize(("advertise", "forward"), [(False, 0), (True, HOST)])
def test_an_address_in_a_hidden_range_is_no_forwarding_address(advertise, forward):
    """Other areas have no route to it (RFC 2328 §3.5): they could not use the external."""
    hidden = AreaSettings(BACKBONE, ranges=(RangeSettings(LAN, advertise=advertise),))
    fabric = lan_of_two(hidden)
    over(fabric, "A", HOST)
    (lsa,) = externals(fabric, "B").values()
    assert lsa.forwarding_address == forward
