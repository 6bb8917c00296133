"""Two borders between an IGP and a BGP network, which redistribute both ways, with capacities.

a - x1, x2 - b1, b2     a, x1, x2: IS-IS, or OSPF; b1, b2: both protocols
c - y1, y2 - b1, b2     c, y1, y2: BGP, each its own AS
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import networkx as nx
import pytest
from msgspec.structs import replace

from fared.core.filters import Filter, parse_item
from fared.core.ids import Prefix, parse_prefix
from fared.core.routes import ORIGIN_TAGS, RouteSource
from fared.extensions.sim.fabric import Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder, IsisBuilder, OspfBuilder
from fared.protocols.bgp.settings import BgpRedistribution
from fared.protocols.isis import settings as isis
from fared.protocols.isis.ids import LevelSet
from fared.protocols.ospf import settings as ospf
from fared.router.events import RouterSettingsApplied
from tests.bgp.fabrics import NEIGHBOR, apply, slow
from tests.sim.borders import hops, walks

BORDERS, INSIDE, OUTSIDE = ("b1", "b2"), ("a", "x1", "x2"), ("c", "y1", "y2")
IGP_LINKS = (("x1", "a"), ("x2", "a"), ("b1", "x1"), ("b1", "x2"), ("b2", "x1"), ("b2", "x2"))
BGP_LINKS = (("y1", "c"), ("y2", "c"), ("b1", "y1"), ("b1", "y2"), ("b2", "y1"), ("b2", "y2"))
INTO_IGP = {
    "isis": isis.RedistributeSettings(
        bgp=isis.Redistribution(LevelSet.TWO, tag=None, refused=(ORIGIN_TAGS[RouteSource.ISIS],))
    ),
    "ospf": ospf.RedistributeSettings(
        bgp=ospf.Redistribution(tag=None, refused=(ORIGIN_TAGS[RouteSource.OSPF],))
    ),
}
DEFAULT = parse_prefix("0.0.0.0/0")
SOAK = bool(os.environ.get("FARED_TEST_SOAK"))


def two_networks(igp: str, seed: int = 1) -> Fabric:
    builder = FabricBuilder(Network(seed=seed))
    inner = IsisBuilder(COMMON) if igp == "isis" else OspfBuilder()
    outer = BgpBuilder(NEIGHBOR)
    for protocols, names in (((inner,), INSIDE), ((inner, outer), BORDERS), ((outer,), OUTSIDE)):
        builder.speak(*protocols)
        for name in names:
            builder.router(name)
    for protocol, links, leaf in ((inner, IGP_LINKS, "a"), (outer, BGP_LINKS, "c")):
        builder.speak(protocol)
        for ends in links:
            builder.link(*ends)
        builder.hosts(leaf)
    fabric = builder.fabric
    for name in BORDERS:
        node = fabric.network.nodes[name]
        node.settings = node.settings.with_protocol(igp, redistribute=INTO_IGP[igp]).with_protocol(
            "bgp", redistribute={igp: BgpRedistribution()}
        )
    fabric.network.start_all()
    quiet(fabric)
    return fabric


def quiet(fabric: Fabric) -> None:
    """Wait longer than any throttle."""
    fabric.network.run_until_quiet(90, quiet=6.0)


@pytest.fixture(scope="module", params=["isis", "ospf"])
def networks(request: pytest.FixtureRequest) -> Fabric:
    return two_networks(request.param)


def test_both_networks_reach_each_other_over_both_borders(networks):
    inside, outside = networks.leaf_prefixes["a"], networks.leaf_prefixes["c"]
    assert hops(networks, "x1", outside) == hops(networks, "y1", inside) == {"b1": 1, "b2": 1}
    assert hops(networks, "b1", inside) == {"x1": 1, "x2": 1}
    assert hops(networks, "b1", outside) == {"y1": 1, "y2": 1}


def test_what_an_igp_carries_to_a_prefix_is_told_over_bgp(networks):
    inside = networks.leaf_prefixes["a"]
    for name in ("x1", "x2"):
        slow(networks, "b1", name, 50)
    quiet(networks)
    assert hops(networks, "y1", inside) == {"b1": 1, "b2": 4}
    for name in ("x1", "x2"):
        slow(networks, "b1", name, 400)
    quiet(networks)


def test_what_bgp_carries_to_a_prefix_is_told_over_is_is():
    fabric = two_networks("isis")
    for name in ("y1", "y2"):
        slow(fabric, "b2", name, 50)
    quiet(fabric)
    assert hops(fabric, "x1", fabric.leaf_prefixes["c"]) == {"b1": 4, "b2": 1}


def test_a_border_without_a_way_inside_takes_the_one_over_bgp_and_passes_nothing_back(networks):
    inside = networks.leaf_prefixes["a"]
    for name in ("x1", "x2"):
        networks.network.set_link("b1", name, up=False)
    quiet(networks)
    assert hops(networks, "b1", inside) == {"y1": 1, "y2": 1}
    assert hops(networks, "y1", inside) == {"b2": 1}
    for name in ("x1", "x2"):
        networks.network.set_link("b1", name, up=True)
    quiet(networks)
    assert hops(networks, "y1", inside) == {"b1": 1, "b2": 1}
    assert hops(networks, "b1", inside) == {"x1": 1, "x2": 1}


def test_a_default_route_passes_only_where_a_filter_permits_it(networks):
    (igp,) = networks.network.nodes["b1"].settings.protocols.keys() - {"bgp"}
    default = (Filter("default", (parse_item("permit 0.0.0.0/0"),)),)
    plain = INTO_IGP[igp]
    permitted = replace(plain, bgp=replace(plain.bgp, filters=default))
    ways = (
        ("c", "bgp", {"networks": (DEFAULT,)}, {"networks": ()}, igp, plain, permitted, "x1"),
        (
            "a",
            igp,
            {"redistribute": replace(plain, bgp=None, default=plain.bgp, default_always=True)},
            {"redistribute": type(plain)()},
            "bgp",
            {igp: BgpRedistribution()},
            {igp: BgpRedistribution(filters=default)},
            "y1",
        ),
    )
    for origin, proto, begin, end, into, before, after, far in ways:
        set_protocol(networks, origin, proto, **begin)
        quiet(networks)
        assert hops(networks, far, DEFAULT) is None
        withheld = networks.network.nodes["b1"].running.instances[into].engine.withheld(DEFAULT)
        whys = {one.reason for one in withheld}
        assert "a default route needs a filter that permits it" in whys
        for name in BORDERS:
            set_protocol(networks, name, into, redistribute=after)
        quiet(networks)
        assert hops(networks, far, DEFAULT) == {"b1": 1, "b2": 1}
        for name in BORDERS:
            set_protocol(networks, name, into, redistribute=before)
        set_protocol(networks, origin, proto, **end)
        quiet(networks)
        assert hops(networks, far, DEFAULT) is None


def set_protocol(fabric: Fabric, name: str, proto: str, **changes: Any) -> None:
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol(proto, **changes)
    fabric.network.input(name, RouterSettingsApplied(node.settings))


def test_only_routes_with_a_tag_are_announced(networks):
    inside = networks.leaf_prefixes["a"]
    (igp,) = networks.network.nodes["b1"].settings.protocols.keys() - {"bgp"}
    apply(networks, "b1", redistribute={igp: BgpRedistribution(tag=5)})
    quiet(networks)
    assert hops(networks, "y1", inside) == {"b2": 1}
    engine = networks.network.nodes["b1"].running.instances["bgp"].engine
    (why,) = engine.withheld(inside)
    assert why.reason == "it has not the tag 5"
    apply(networks, "b1", redistribute={igp: BgpRedistribution()})
    quiet(networks)
    assert hops(networks, "y1", inside) == {"b1": 1, "b2": 1}


def reached(fabric: Fabric, links: tuple[tuple[str, str], ...], origin: set[str]) -> set[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from({*BORDERS, *origin})
    graph.add_edges_from([ends for ends in links if fabric.network.find_port(*ends).up])
    return {n for one in origin for n in nx.node_connected_component(graph, one)}


def problems(fabric: Fabric) -> Iterator[str]:
    """Who has a route, or has none, against the rule; and ways that do not end where they lead."""
    for origin, near, far in (("a", IGP_LINKS, BGP_LINKS), ("c", BGP_LINKS, IGP_LINKS)):
        prefix: Prefix = fabric.leaf_prefixes[origin]
        here = reached(fabric, near, {origin})
        expected = here | reached(fabric, far, here & {*BORDERS})
        for name in fabric.network.nodes:
            if (hops(fabric, name, prefix) is not None) != (name in expected):
                yield f"{name} has {hops(fabric, name, prefix)} to {prefix}"
            for way in walks(fabric, name, prefix) if name in expected else ():
                if way[-1] != origin:
                    yield f"{prefix}: {' - '.join(way)}"


@pytest.mark.parametrize("igp", ["isis", "ospf"])
@pytest.mark.parametrize("seed", range(50 if SOAK else 1))
def test_random_flaps_leave_no_loop_and_no_route_without_origin(seed, igp):
    fabric, dice = two_networks(igp, seed), random.Random(seed)
    down: set[tuple[str, str]] = set()
    assert list(problems(fabric)) == []
    for _ in range(12):
        happened = []
        for ends in dice.sample([*IGP_LINKS, *BGP_LINKS], dice.choice((1, 1, 2, 3))):
            fabric.network.set_link(*ends, up=ends in down)
            fabric.network.run_for(dice.choice((0.0, 0.01, 0.3)))
            down ^= {ends}
            happened.append(ends)
        quiet(fabric)
        assert list(problems(fabric)) == [], f"after {happened}, down: {down}"
