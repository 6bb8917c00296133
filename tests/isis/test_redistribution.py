"""Static and connected routes in LSPs: marks, levels and leaking."""

import pytest
from msgspec.structs import replace

from fared.core.filters import within
from fared.core.ids import Prefix, parse_prefix
from fared.core.links import InterfaceAddress, Link
from fared.core.routes import LocalRoute, RouteSource
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import ExternalRoutes, SettingsApplied
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import RedistributeSettings, Redistribution
from tests.isis.net import BOTH, ONE, TWO, Network, node, pair, prefixes
from tests.isis.routed import Routers
from tests.isis.test_leaking import SLOW, reach, two_pods

OUTSIDE, OUTSIDE6 = parse_prefix("203.0.113.0/24"), parse_prefix("2001:db8:cafe::/48")
DEFAULT, DEFAULT6 = Prefix(4, 0, 0), Prefix(6, 0, 0)
SOMEWHERE = LocalRoute(((99, 0),))
EXTERNAL, READVERTISED = 0x80, 0x40


def static(levels: LevelSet = TWO, **settings) -> RedistributeSettings:
    return RedistributeSettings(static=Redistribution(levels, **settings))


def tell(net: Network, number: int, *found: Prefix, source=RouteSource.STATIC, route=SOMEWHERE):
    """Add routes of other sources to a router, or remove them (``route`` None)."""
    net.input(number, ExternalRoutes({(source, prefix): route for prefix in found}))


def configure(net: Network, number: int, wanted: RedistributeSettings, **changes) -> None:
    """Reload the configuration."""
    node = net.nodes[number]
    node.settings = replace(node.settings, redistribute=wanted, **changes)
    net.input(number, SettingsApplied(node.settings))


def neighbors(wanted: RedistributeSettings, **settings) -> Network:
    """Two routers of level 2, of which the first redistributes."""
    net = pair(settings=SLOW)
    configure(net, 1, wanted, **settings)
    net.run(15)
    return net


def announced(net: Network, prefix: Prefix, **where):
    """The entry of a prefix in the LSP of router 1 on router 2."""
    return reach(net.lsp(2, 1, **where), prefix)


@pytest.mark.rfc("RFC 5308 §2", "RFC 7794 §2.1", "RFC 5130 §3.1")
@pytest.mark.parametrize("multi_topology", [False, True])
def test_both_families_are_announced_and_marked_external(multi_topology):
    """The X bit of IPv6 entries (RFC 5308), the X flag of both (RFC 7794), a tag (RFC 5130)."""
    net = neighbors(static(metric=30, tag=77), multi_topology=multi_topology)
    tell(net, 1, OUTSIDE, OUTSIDE6)
    net.run(5)
    four, six = announced(net, OUTSIDE), announced(net, OUTSIDE6)
    for entry in (four, six):
        assert (entry.metric, entry.down, entry.tags) == (30, False, (77,))
        assert entry.flags == EXTERNAL
    tag_of = net.nodes[2].engine.tags()
    assert [tag_of(prefix, 2, ()) for prefix in (OUTSIDE, OUTSIDE6, DEFAULT)] == [77, 77, None]
    assert (four.external, six.external) == (False, True)
    tell(net, 1, OUTSIDE, OUTSIDE6, route=None)
    net.run(5)
    assert announced(net, OUTSIDE) is None
    assert announced(net, OUTSIDE6) is None


def test_a_reload_changes_metric_and_prefixes_in_place():
    net = neighbors(static(metric=30))
    tell(net, 1, OUTSIDE, OUTSIDE6)
    configure(net, 1, static(metric=5, filters=(within((parse_prefix("2001:db8::/32"),)),)))
    net.run(5)
    assert announced(net, OUTSIDE) is None
    assert announced(net, OUTSIDE6).metric == 5
    configure(net, 1, RedistributeSettings())
    net.run(5)
    assert announced(net, OUTSIDE6) is None


def test_only_families_that_are_routed_are_announced():
    net = neighbors(static(), families=(6,))
    tell(net, 1, OUTSIDE, OUTSIDE6)
    net.run(5)
    assert announced(net, OUTSIDE) is None
    assert announced(net, OUTSIDE6) is not None


@pytest.mark.parametrize(
    "prefix",
    ["127.5.0.0/16", "169.254.7.0/24", "224.5.0.0/16", "::1/128", "fe80::/64", "ff05::/16"],
)
def test_what_means_something_else_on_every_host_is_kept_back(prefix):
    net = neighbors(static())
    tell(net, 1, parse_prefix(prefix), OUTSIDE)
    net.run(5)
    assert announced(net, parse_prefix(prefix)) is None
    assert announced(net, OUTSIDE) is not None


def test_default_routes_are_announced_only_where_it_is_asked_for():
    """With a static one of the family; with ``always`` for both families."""
    net = neighbors(static())
    tell(net, 1, DEFAULT6)
    net.run(5)
    assert announced(net, DEFAULT6) is None
    configure(net, 1, RedistributeSettings(default=Redistribution(TWO, 7)))
    net.run(5)
    assert (announced(net, DEFAULT), announced(net, DEFAULT6).metric) == (None, 7)
    always = RedistributeSettings(default=Redistribution(TWO, 7), default_always=True)
    configure(net, 1, always)
    net.run(5)
    assert announced(net, DEFAULT).metric == 7
    configure(net, 1, static())
    net.run(5)
    assert announced(net, DEFAULT) is None
    assert announced(net, DEFAULT6) is None


def test_connected_networks_are_those_of_interfaces_without_isis():
    """A prefix of a circuit, passive or not, is not redistributed; that of a disabled one is."""
    net = neighbors(RedistributeSettings(connected=Redistribution(TWO, 40)))
    addresses = (
        InterfaceAddress(4, OUTSIDE.network + 1, 24),
        InterfaceAddress(6, OUTSIDE6.network + 1, 48),
    )
    stub = Link(9, "d0", up=True, mtu=1500, addresses=addresses)
    passive = replace(SLOW, passive=True)
    net.link(1, stub, passive)
    route = LocalRoute(((9, 0),))
    tell(net, 1, OUTSIDE, OUTSIDE6, source=RouteSource.CONNECTED, route=route)
    net.run(5)
    for prefix in (OUTSIDE, OUTSIDE6):
        entry = announced(net, prefix)
        assert (entry.metric, entry.flags, entry.external) == (10, None, False)
    net.link(1, stub, None)
    net.run(5)
    for prefix in (OUTSIDE, OUTSIDE6):
        assert (announced(net, prefix).metric, announced(net, prefix).flags) == (40, EXTERNAL)


def test_a_network_of_ours_is_not_announced_a_second_time():
    """A static route to the network of a circuit is not redistributed, whatever its metric."""
    net = neighbors(static(metric=0))
    own = parse_prefix("10.128.0.0/31")
    tell(net, 1, own)
    net.run(5)
    assert (announced(net, own).metric, announced(net, own).flags) == (10, None)


def test_our_own_description_knows_it_as_redistributed_others_as_a_prefix_of_the_level():
    net = neighbors(static(metric=3))
    tell(net, 1, OUTSIDE)
    net.run(5)
    key = str(OUTSIDE)
    assert prefixes(net.blocks(1)[node(1)])[key] == (3, "LEVEL_2_REDISTRIBUTED")
    assert prefixes(net.blocks(2)[node(1)])[key] == (3, "LEVEL_2")


# Two pods: leaf 1 - spines 2, 3 - core 9 - spines 5, 6 - leaf 4


@pytest.fixture
def leaf_redistributes():
    """Leaf 1, of level 1, has a static route of each family."""
    net = two_pods(down=True)
    configure(net, 1, static(ONE, metric=5, tag=77))
    routers = Routers(net)
    net.run(15)
    tell(net, 1, OUTSIDE, OUTSIDE6)
    routers.settle()
    return net, routers


@pytest.mark.rfc("RFC 7794 §2.1", "RFC 5302 §3.3")
def test_leaking_keeps_what_says_where_a_prefix_comes_from(leaf_redistributes):
    """The down bit in level 1 only; external, tagged and re-advertised in both levels."""
    net, routers = leaf_redistributes
    for prefix, bit in ((OUTSIDE, False), (OUTSIDE6, True)):
        up, down = reach(net.lsp(9, 2), prefix), reach(net.lsp(4, 5, level=1), prefix)
        assert (up.metric, up.down) == (15, False)
        assert (down.metric, down.down) == (35, True)
        for entry in (up, down):
            assert entry.flags == EXTERNAL | READVERTISED
            assert (entry.external, entry.tags) == (bit, (77,))
        assert set(routers.hops(4, str(prefix))) == {5, 6}
        assert set(routers.hops(9, str(prefix))) == {2, 3}


@pytest.mark.rfc("ISO 10589 §9.8", "RFC 7794 §2.1")
def test_routers_of_both_levels_are_told_from_others(leaf_redistributes):
    """In level 1 by the IS type; in level 2, where all have the same, by what they readvertise."""
    net, _ = leaf_redistributes
    assert set(net.nodes[1].engine.borders()) == {(1, node(2)), (1, node(3))}
    assert set(net.nodes[9].engine.borders()) == {(2, node(n)) for n in (2, 3, 5, 6)}
    assert (node(1), OUTSIDE) in set(net.nodes[2].engine.externals())


def test_a_route_that_goes_goes_from_all_levels(leaf_redistributes):
    net, routers = leaf_redistributes
    tell(net, 1, OUTSIDE, OUTSIDE6, route=None)
    routers.settle()
    for number in (2, 9, 5, 4):
        assert routers.route(number, str(OUTSIDE)) is None
        assert routers.route(number, str(OUTSIDE6)) is None


def test_a_router_of_both_levels_announces_where_it_is_told_to_and_leaks_the_rest():
    """Spine 2 redistributes into level 1, external and not down, and leaks into level 2."""
    net = two_pods(down=True)
    configure(net, 2, static(ONE, metric=5))
    routers = Routers(net)
    net.run(15)
    tell(net, 2, OUTSIDE)
    routers.settle()
    inside = reach(net.lsp(1, 2, level=1), OUTSIDE)
    assert (inside.down, inside.flags) == (False, EXTERNAL)
    leaked = reach(net.lsp(9, 2), OUTSIDE)
    assert (leaked.metric, leaked.flags) == (5, EXTERNAL | READVERTISED)
    configure(net, 2, static(BOTH, metric=6))
    routers.settle()
    for held in (net.lsp(1, 2, level=1), net.lsp(9, 2)):
        entry = reach(held, OUTSIDE)
        assert (entry.metric, entry.down, entry.flags) == (6, False, EXTERNAL)


def test_others_do_not_displace_what_a_router_redistributes_itself():
    """Leaf 1 advertises the same in level 1, which is preferred; spine 2 keeps its own entry."""
    net = two_pods()
    configure(net, 1, static(ONE))
    configure(net, 2, static(TWO, metric=100))
    routers = Routers(net)
    net.run(15)
    tell(net, 1, OUTSIDE)
    tell(net, 2, OUTSIDE)
    routers.settle()
    own = routers.route(2, str(OUTSIDE))
    assert own.nexthops is None
    assert own.path_type is PathType.LEVEL_2_REDISTRIBUTED
    assert set(routers.hops(3, str(OUTSIDE))) == {1}
    tell(net, 2, OUTSIDE, route=None)
    routers.settle()
    assert set(routers.hops(2, str(OUTSIDE))) == {1}
