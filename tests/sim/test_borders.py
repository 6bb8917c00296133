"""Redistribution in both directions at several borders: no loop, no route without its origin.

The fabric is that of ``borders``. After every flap the network must become quiet, and each router
must have a route to a prefix exactly if the rule says so: inside the domain of the prefix if its
router is connected, in the other one if a border there is connected to the router of the prefix
inside the domain of the prefix.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import networkx as nx
import pytest
from msgspec.structs import replace

from fared.core.filters import Filter, parse_item
from fared.core.ids import AreaId, Prefix, ipv4_prefix, parse_prefix
from fared.core.routes import LocalRoute, RouteSource
from fared.extensions.sim.fabric import GIGABIT, Fabric
from fared.extensions.sim.network import link_events
from fared.management.documents.views import explain, routes
from fared.management.documents.views.validate import validate
from fared.protocols.igp.events import ExternalRoutes
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.extended_prefix import PATH_CAPACITY, ExtendedPrefixLsa
from fared.router.events import RouterSettingsApplied
from fared.router.protocols import ISIS, OSPF
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.sim.borders import (
    BORDERS,
    INTO_ISIS,
    INTO_OSPF,
    ISIS_LINKS,
    ISIS_ROUTERS,
    OSPF_LINKS,
    OSPF_ROUTERS,
    configure,
    hops,
    quiet,
    started,
    two_domains,
    walks,
)

SOAK = bool(os.environ.get("FARED_TEST_SOAK"))
DOMAINS = {OSPF: (OSPF_ROUTERS, OSPF_LINKS), ISIS: (ISIS_ROUTERS, ISIS_LINKS)}
OTHER = {OSPF: ISIS, ISIS: OSPF}
TURNED = {OSPF: 115, ISIS: 110}
PREFERENCES = (({}, {}), (TURNED, TURNED), ({}, TURNED), ({}, TURNED, {}))
"""Of each border; in the last case of three."""
EVERYWHERE = parse_prefix("198.51.100.0/24")
"""Any router may have a static route to it, also of both domains at once."""
SOMEWHERE = LocalRoute(((99, 0),))


def domain(fabric: Fabric, proto: str) -> nx.Graph[str]:
    """The routers that run a protocol now, and the links between them that are up."""
    routers, links = DOMAINS[proto]
    nodes = fabric.network.nodes
    known = [n for n in (*routers, *BORDERS) if n in nodes]
    running = [n for n in known if nodes[n].router is not None]
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(running)
    for a, b in links:
        if {a, b} <= {*running} and fabric.network.find_port(a, b).up:
            graph.add_edge(a, b)
    return graph


def reached(fabric: Fabric, proto: str, origins: set[str]) -> set[str]:
    """Who has a route to a prefix of routers in the domain of a protocol, by the rule above."""
    inside, beyond = domain(fabric, proto), domain(fabric, OTHER[proto])
    near = {n for one in origins & {*inside} for n in nx.node_connected_component(inside, one)}
    far = {n for b in near & {*BORDERS} for n in nx.node_connected_component(beyond, b)}
    return near | far


def problems(fabric: Fabric, proto: str, prefix: Prefix, origins: set[str]) -> list[str]:
    """What is wrong with the routes to a prefix that these routers of one domain have."""
    expected, found = reached(fabric, proto, origins), []
    for name, node in fabric.network.nodes.items():
        if node.router is None:
            continue
        if (hops(fabric, name, prefix) is not None) != (name in expected):
            found.append(f"{name} has {hops(fabric, name, prefix)} to {prefix}")
        found += [
            f"{prefix}: {' - '.join(way)}"
            for way in walks(fabric, name, prefix)
            if name in expected and way[-1] not in origins
        ]
    return found


@pytest.fixture(scope="module")
def borders() -> Fabric:
    """A fabric that each test leaves as it was."""
    return started(two_domains())


def tags(fabric: Fabric, name: str, proto: str, prefix: Prefix) -> tuple[int, ...]:
    return fabric.network.nodes[name].running.instances[proto].tags(prefix)


def test_every_router_reaches_the_other_domain_over_both_borders(borders):
    ospf, isis = borders.leaf_prefixes["a"], borders.leaf_prefixes["c"]
    assert hops(borders, "y1", ospf) == hops(borders, "x1", isis) == {"b1": 1, "b2": 1}
    assert hops(borders, "b1", ospf) == {"x1": 1, "x2": 1}
    assert hops(borders, "b1", isis) == {"y1": 1, "y2": 1}
    assert tags(borders, "y1", ISIS, ospf) == (4200000110,)
    assert tags(borders, "x1", OSPF, isis) == (4200000115,)
    assert tags(borders, "y1", ISIS, isis) == ()


def test_a_prefix_of_the_kernel_is_not_redistributed_from_a_protocol(borders):
    """A static route comes first: it is used, and none of IS-IS is."""
    isis = borders.leaf_prefixes["c"]
    borders.network.set_local_route("b1", isis, SOMEWHERE)
    quiet(borders)
    assert tags(borders, "b1", OSPF, isis) == (), "it is advertised as a static route"
    assert hops(borders, "b1", isis) == {}
    borders.network.set_local_route("b1", isis, None)
    quiet(borders)
    assert tags(borders, "b1", OSPF, isis) == (4200000115,)
    assert hops(borders, "b1", isis) == {"y1": 1, "y2": 1}


def test_a_border_without_a_way_inside_the_domain_takes_the_one_over_the_other(borders):
    """And passes nothing of it back: x1 and x2 reach the hosts of a by themselves."""
    ospf = borders.leaf_prefixes["a"]
    for name in ("x1", "x2"):
        borders.network.set_link("b1", name, up=False)
    quiet(borders)
    assert hops(borders, "b1", ospf) == {"y1": 1, "y2": 1}
    assert hops(borders, "y1", ospf) == {"b2": 1}
    assert tags(borders, "b1", OSPF, ospf) == ()
    (refused,) = borders.network.nodes["b1"].running.instances[OSPF].engine.withheld(ospf)
    assert refused.reason == "tag 4200000110 says that it comes from here, and it is not taken back"
    for name in ("x1", "x2"):
        borders.network.set_link("b1", name, up=True)
    quiet(borders)


@pytest.mark.rfc("RFC 7684 §2")
def test_weights_follow_a_link_of_the_other_domain_and_are_as_before_when_it_is(borders):
    """b1 has 50G left inside each domain, b2 has more than the 100G of a link to it."""
    ospf, isis = borders.leaf_prefixes["a"], borders.leaf_prefixes["c"]
    for there, away, prefix in (("y", "x1", isis), ("x", "y1", ospf)):
        for name in ("1", "2"):
            borders.network.set_capacity("b1", there + name, 25 * GIGABIT)
        quiet(borders)
        assert hops(borders, away, prefix) == {"b1": 1, "b2": 2}
        for name in ("1", "2"):
            borders.network.set_capacity("b1", there + name, 100 * GIGABIT)
        quiet(borders)
        assert hops(borders, away, prefix) == {"b1": 1, "b2": 1}


def opaque(fabric: Fabric, name: str, border: str) -> dict[str, float]:
    """The path capacities of externals of a border, bits/s, as another router has them."""
    engine = fabric.network.nodes[name].running.instances[OSPF].engine
    found = {}
    for entry in engine.instance.areas[AreaId(0)].lsdb:
        own = fabric.router_ids[border] == entry.key.advertising_router
        body = decode_body(entry.lsa)
        if own and isinstance(body, ExtendedPrefixLsa) and not entry.at_max_age:
            (facts,) = body.prefixes
            found[str(facts.prefix)] = facts.capacity(PATH_CAPACITY) * 8
    return found


def test_a_capacity_goes_with_its_prefix_and_a_reload_without_the_sub_tlv_takes_all_away(borders):
    isis = str(borders.leaf_prefixes["c"])
    assert opaque(borders, "a", "b1")[isis] == pytest.approx(200e9)
    port = next(p for p in borders.network.nodes["c"].ports.values() if p.name == "host")
    for up in (False, True):
        port.admin_up = up
        borders.network.input("c", *link_events(borders.network.nodes["c"], port))
        quiet(borders)
        assert (isis in opaque(borders, "a", "b1")) is up
    node = borders.network.nodes["b1"]
    without = node.settings.with_protocol("ospf", path_capacity_code=None)
    borders.network.input("b1", RouterSettingsApplied(without))
    quiet(borders)
    assert opaque(borders, "a", "b1") == {}
    assert hops(borders, "x1", borders.leaf_prefixes["c"]) == {"b1": 1, "b2": 1}
    borders.network.input("b1", RouterSettingsApplied(node.settings))
    quiet(borders)
    assert opaque(borders, "a", "b1")[isis] == pytest.approx(200e9)


def test_explain_says_where_a_route_comes_from_and_where_it_goes(borders):
    prefix = str(borders.leaf_prefixes["c"])
    far = explain.explain(seen_from(borders, "x1"), prefix).summary
    assert "It is redistributed from IS-IS: b1 with 200G, b2 with 200G." in far
    near = explain.explain(seen_from(borders, "b1"), prefix).summary
    assert "This router redistributes it into OSPF (path capacity 200G)." in near
    assert "preference" not in near, "that OSPF has it too is this router's own doing"
    (route,) = routes.routes(seen_from(borders, "y1"), str(borders.leaf_prefixes["a"])).routes
    assert route.tag == 4200000110
    status = run_view(seen_from(borders, "b1"), "show status", {})["routes"]
    assert status["redistributed"] == status["total"] - status["connected"]
    assert validate(seen_from(borders, "b1")).ok


def test_one_changed_prefix_of_many_is_passed_on_alone(borders):
    """What a change costs does not depend on what else is redistributed."""
    many = [ipv4_prefix(0xC6120000 + (number << 8), 24) for number in range(200)]
    for prefix in many:
        borders.network.nodes["c"].local_routes[RouteSource.STATIC, prefix] = SOMEWHERE
    changes = dict(borders.network.nodes["c"].local_routes)
    borders.network.input("c", ExternalRoutes(changes))
    quiet(borders)
    assert hops(borders, "x1", many[7]) == {"b1": 1, "b2": 1}
    table = borders.network.nodes["b1"].running.instances[OSPF].engine._external.routes
    passed, update = [], table.update
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "update", lambda event: passed.append(event) or update(event))
        borders.network.set_local_route("c", many[7], None)
        quiet(borders)
    assert [event.changes for event in passed] == [{(RouteSource.ISIS, many[7]): None}]
    for prefix in many[:7] + many[8:]:
        borders.network.set_local_route("c", prefix, None)
    quiet(borders)
    assert hops(borders, "x1", many[0]) is None


def test_a_reload_with_another_tag_or_filter_reaches_the_other_domain(borders):
    ospf, isis = borders.leaf_prefixes["a"], borders.leaf_prefixes["c"]
    only_tagged = Filter("f", (parse_item("permit any tag 5"),))
    for name in ("b1", "b2"):
        into_isis = replace(INTO_ISIS, filters=(only_tagged,))
        configure(borders, name, replace(INTO_OSPF, tag=77), into_isis)
    quiet(borders)
    assert tags(borders, "x1", OSPF, isis) == (77,)
    assert hops(borders, "y1", ospf) is None
    assert hops(borders, "b1", isis) == {"y1": 1, "y2": 1}, "77 is the tag of IS-IS here"
    for name in ("b1", "b2"):
        configure(borders, name, INTO_OSPF, INTO_ISIS)
    quiet(borders)
    assert hops(borders, "y1", ospf) == {"b1": 1, "b2": 1}


class Flaps:
    """Random changes of the fabric; ``check`` compares all routes with the rule."""

    def __init__(self, seed: int, preferences: Iterable[dict[str, int]]) -> None:
        self.random = random.Random(seed)
        self.fabric = started(two_domains(seed, preferences=preferences))
        self.origins = {name: {name} for name in self.fabric.leaf_prefixes}
        nodes = self.fabric.network.nodes
        self.borders = [name for name in BORDERS if name in nodes]
        self.links = [ends for ends in (*OSPF_LINKS, *ISIS_LINKS) if {*ends} <= nodes.keys()]
        self.down: set[tuple[str, str]] = set()
        self.static: set[str] = set()

    def change(self) -> str:
        link, hosts, static = self._link, self._hosts, self._static
        others = [self._border, self._reload, self._capacity]
        change = self.random.choice([link, link, link, hosts, static, *others])
        return f"{change.__name__} {change()}"

    def _link(self) -> str:
        a, b = self.random.choice(self.links)
        self.fabric.network.set_link(a, b, up=(a, b) in self.down)
        self.down ^= {(a, b)}
        return f"{a} {b}"

    def _capacity(self) -> str:
        ends = self.random.choice(self.links)
        a, b = self.random.sample(ends, 2)
        self.fabric.network.set_capacity(a, b, self.random.choice([10, 25, 100]) * GIGABIT)
        return f"{a} {b}"

    def _hosts(self) -> str:
        name = self.random.choice([*self.origins])
        up = not self.origins[name]
        self.origins[name] = {name} if up else set()
        node = self.fabric.network.nodes[name]
        port = next(p for p in node.ports.values() if p.name == "host")
        port.admin_up = up
        self.fabric.network.input(name, *link_events(node, port))
        return name

    def _static(self) -> str:
        name = self.random.choice([*self.fabric.network.nodes])
        self.static ^= {name}
        route = SOMEWHERE if name in self.static else None
        self.fabric.network.set_local_route(name, EVERYWHERE, route)
        return name

    def _border(self) -> str:
        network, name = self.fabric.network, self.random.choice(self.borders)
        if network.nodes[name].router is None:
            network.start(name)
        elif all(network.nodes[border].router is not None for border in self.borders):
            network.kill(name)
            network.run_for(6.0)  # its neighbors notice
        return name

    def _reload(self) -> str:
        name = self.random.choice(self.borders)
        if self.fabric.network.nodes[name].router is not None:
            configure(self.fabric, name, None, None)
            self.fabric.network.run_for(self.random.choice([0.0, 0.05, 0.3]))
            configure(self.fabric, name, INTO_OSPF, INTO_ISIS)
        return name

    def check(self) -> None:
        quiet(self.fabric)
        for name, prefix in self.fabric.leaf_prefixes.items():
            proto = OSPF if name in OSPF_ROUTERS else ISIS
            assert problems(self.fabric, proto, prefix, self.origins[name]) == []
        self._check_static()

    def _check_static(self) -> None:
        """Of a prefix of both domains: who has a route may have it, and it leads to its end."""
        running = {n for n, node in self.fabric.network.nodes.items() if node.router is not None}
        possible = set[str]()
        for proto in DOMAINS:
            inside = {*DOMAINS[proto][0], *BORDERS}
            possible |= reached(self.fabric, proto, self.static & running & inside)
        for name in running:
            has = hops(self.fabric, name, EVERYWHERE) is not None
            assert not has or name in possible, f"{name} has a route without origin"
            for way in walks(self.fabric, name, EVERYWHERE) if has else ():
                assert way[-1] in self.static, f"a way without end: {way}"


@pytest.mark.parametrize("preferences", PREFERENCES)
@pytest.mark.parametrize("seed", range(200 if SOAK else 2))
def test_random_flaps_leave_no_loop_and_no_route_without_origin(seed, preferences):
    flaps = Flaps(seed, preferences)
    flaps.check()
    for _ in range(12):
        happened = [flaps.change() for _ in range(flaps.random.choice([1, 1, 2, 3]))]
        try:
            flaps.check()
        except (AssertionError, TimeoutError) as error:
            raise AssertionError(f"after {', '.join(happened)}") from error
