"""What is exchanged with a neighbor: words, filters, limits, drains, partial drains."""

from __future__ import annotations

import pytest

from fared.core.filters import Filter, parse_item
from fared.core.ids import ipv4_prefix, parse_prefix
from fared.core.routes import LocalRoute, RouteSource
from fared.core.streams import StreamReceived
from fared.extensions.sim.fabric import Fabric, clos3
from fared.protocols.bgp.packet.attributes import Communities
from fared.protocols.bgp.packet.codec import encode_message
from fared.protocols.bgp.packet.coded import Coding
from fared.protocols.bgp.packet.communities import GRACEFUL_SHUTDOWN
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.bgp.settings import BgpRedistribution
from fared.protocols.igp.events import ExternalRoutes
from fared.router.events import RouterSettingsApplied, To
from tests.bgp.fabrics import (
    GBPS,
    apply,
    apply_neighbor,
    engine,
    neighbor,
    ratio,
    settings_of,
    shares,
    slow,
    speakers,
    started,
    weights,
)
from tests.bgp_rib.routers import attributes
from tests.sim.shared import mend

SPINES = ("S1", "S2")
EVEN = ratio({"S1": 1, "S2": 1})


@pytest.fixture(scope="module")
def one_for_all() -> Fabric:
    return started(clos3(2, 3, builder=speakers()))


@pytest.fixture
def fabric(one_for_all):
    """Two spines and three leaves; what a test changed of settings is restored."""
    nodes = one_for_all.network.nodes.values()
    settings = {node.name: node.settings for node in nodes}
    ports = [(port, port.settings["bgp"]) for node in nodes for port in node.ports.values()]
    yield one_for_all
    for port, before in ports:
        if port.settings["bgp"] != before:
            port.settings["bgp"] = before
            one_for_all.network._notify(port)
    for node in nodes:
        if node.settings != settings[node.name]:
            node.settings = settings[node.name]
            one_for_all.network.input(node.name, RouterSettingsApplied(node.settings))
    mend(one_for_all)
    assert shares(one_for_all, "L1", "L2") == EVEN


def logged(fabric: Fabric, name: str, event: str) -> list[dict[str, object]]:
    return [log.fields for log in fabric.network.nodes[name].logs if log.event == event]


def carried(fabric: Fabric, name: str, toward: str) -> float | None:
    """What all paths of a router to the hosts of a leaf carry."""
    rib = engine(fabric, name).instance.ribs[4]
    return rib.carried(fabric.leaf_prefixes[toward])


@pytest.mark.rfc("RFC 8212 §2")
def test_an_external_neighbor_without_policy_exchanges_nothing_and_that_is_said(fabric):
    apply_neighbor(fabric, "L1", SPINES, imports=None, exports=None)
    fabric.network.run_for(1.0)
    assert shares(fabric, "L1", "L2") == {}
    assert shares(fabric, "L2", "L1") == {}
    port = fabric.network.find_port("L1", "S1")
    session = neighbor(fabric, "L1", "S1").session
    assert session.state is BgpState.ESTABLISHED
    fabric.network.set_link("L1", "S1", up=False)
    fabric.network.set_link("L1", "S1", up=True)
    fabric.network.run_for(1.0)
    assert logged(fabric, "L1", "bgp-policy-missing")[-1] == {
        "neighbor": port.name,
        "missing": "import and export",
        "effect": "no routes that way (RFC 8212)",
    }


def test_a_leaf_that_exports_its_own_networks_is_no_way_to_others(fabric):
    fabric.network.set_link("S1", "L2", up=False)
    fabric.network.run_for(0.5)
    assert set(shares(fabric, "S1", "L2")) == {"L1", "L3"}
    for leaf in ("L1", "L3"):
        apply_neighbor(fabric, leaf, SPINES, exports=("own",))
    fabric.network.run_for(0.5)
    assert shares(fabric, "S1", "L2") == {}
    assert shares(fabric, "L3", "L1") == EVEN


@pytest.mark.rfc("RFC 2918 §4")
def test_filters_apply_at_once_to_what_was_told_before(fabric):
    prefix = fabric.leaf_prefixes["L2"]
    deny = Filter("no", (parse_item(f"deny {prefix}"), parse_item("permit any")))
    apply_neighbor(fabric, "L1", ["S1"], import_filters=(deny,))
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert shares(fabric, "L1", "L3") == EVEN
    apply_neighbor(fabric, "L1", ["S1"], import_filters=())
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == EVEN
    apply_neighbor(fabric, "S1", ["L1"], export_filters=(deny,))
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert neighbor(fabric, "L1", "S1").since < fabric.network.now - 0.5


def test_too_many_prefixes_end_a_session_for_a_while(fabric):
    before = len(logged(fabric, "L1", "bgp-maximum-prefixes"))
    apply_neighbor(fabric, "L1", ["S1"], maximum_prefixes=5, restart_after=20.0)
    fabric.network.run_for(1.0)
    assert logged(fabric, "L1", "bgp-maximum-prefixes")[-1]["limit"] == 5
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    fabric.network.run_for(10.0)
    assert neighbor(fabric, "L1", "S1").agreed is None
    assert neighbor(fabric, "S1", "L1").session.reason == "connection refused"
    fabric.network.run_for(12.0)
    assert len(logged(fabric, "L1", "bgp-maximum-prefixes")) == before + 2
    apply_neighbor(fabric, "L1", ["S1"], maximum_prefixes=100)
    fabric.network.run_for(1.0)
    assert shares(fabric, "L1", "L2") == EVEN


def test_a_route_that_carries_too_little_is_withheld_until_it_carries_more(fabric):
    """A partial drain: other spines have enough for all."""
    apply_neighbor(fabric, "S1", ["L1"], min_path_bandwidth=150 * GBPS)
    slow(fabric, "S1", "L2", 100)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert shares(fabric, "L3", "L2") == ratio({"S1": 1, "S2": 4})
    slow(fabric, "S1", "L2", 160)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    slow(fabric, "S1", "L2", 200)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S1": 1, "S2": 2})


def test_the_link_to_the_neighbor_counts_though_it_takes_the_minimum_itself(fabric):
    apply_neighbor(fabric, "S1", ["L1"], min_path_bandwidth=150 * GBPS)
    assert neighbor(fabric, "S1", "L1").agreed.own_minimum
    fabric.network.set_capacity("S1", "L1", 100 * GBPS)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert shares(fabric, "L3", "L2") == EVEN
    fabric.network.set_capacity("S1", "L1", 200 * GBPS)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == EVEN


def test_too_many_prefixes_in_many_messages_are_said_once(fabric):
    """Messages that came with the one that exceeded the limit are read to their end."""
    some = tuple(ipv4_prefix(0x0B000000 + (at << 8), 24) for at in range(40))
    messages = b"".join(
        message
        for prefix in some
        for message in encode_message(
            Update(
                routes=(
                    RouteGroup(BgpNextHop(6, neighbor(fabric, "L1", "S1").place.remote), (prefix,)),
                ),
                attributes=attributes(settings_of(fabric, "S1").local_as),
            ),
            Coding(four_octet_as=True),
        )
    )
    apply_neighbor(fabric, "L1", ["S1"], maximum_prefixes=30, restart_after=1.0)
    before = len(logged(fabric, "L1", "bgp-maximum-prefixes"))
    (stream, _), *_ = neighbor(fabric, "L1", "S1").session.reading()
    fabric.network.input("L1", To("bgp", StreamReceived(stream, messages)))
    assert len(logged(fabric, "L1", "bgp-maximum-prefixes")) == before + 1
    fabric.network.run_for(3.0)


@pytest.mark.rfc("RFC 8326 §4")
def test_a_drained_spine_is_avoided_and_remains_the_last_resort(fabric):
    node = fabric.network.nodes["S1"]
    fabric.network.input("S1", RouterSettingsApplied(node.settings.drain()))
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    rib = engine(fabric, "L1").instance.ribs[4]
    told = [path for members in rib.table.members for path in rib.table.candidates(members)]
    shut = [one for one in told if one.path.attributes.find(Communities) is not None]
    assert shut
    assert {one.path.attributes.find(Communities).communities for one in shut} == {
        (GRACEFUL_SHUTDOWN,)
    }
    fabric.network.set_link("L1", "S2", up=False)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S1": 1})
    fabric.network.input("S1", RouterSettingsApplied(node.settings))


def test_a_derated_link_carries_less_at_both_ends(fabric):
    fabric.network.set_share("S1", "L2", 0.25)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S1": 1, "S2": 4})
    assert shares(fabric, "L2", "L1") == ratio({"S1": 1, "S2": 4})


def test_networks_come_and_go_with_settings_and_with_their_links(fabric):
    network = parse_prefix("10.9.0.0/24")
    apply(fabric, "L1", networks=(network,))
    fabric.network.run_for(0.2)
    assert weights(fabric, "L2", "bgp", network) == {"S1": 1, "S2": 1}
    apply(fabric, "L1", networks=())
    fabric.network.run_for(0.2)
    assert weights(fabric, "L2", "bgp", network) is None
    hosts = next(p for p in fabric.network.nodes["L1"].ports.values() if p.name == "host")
    hosts.admin_up = False
    fabric.network._notify(hosts)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L2", "L1") == {}
    hosts.admin_up = True
    fabric.network._notify(hosts)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L2", "L1") == EVEN


def test_the_capacity_of_an_own_network_limits_all_paths_to_it(fabric):
    """As a host's link would: the spines do not carry more than that, each by itself."""
    hosts = next(p for p in fabric.network.nodes["L2"].ports.values() if p.name == "host")
    hosts.capacity = 100 * GBPS
    fabric.network._notify(hosts)
    fabric.network.run_for(0.2)
    assert carried(fabric, "S1", "L2") == pytest.approx(100 * GBPS)
    assert carried(fabric, "L1", "L2") == pytest.approx(200 * GBPS)
    hosts.capacity = None
    fabric.network._notify(hosts)


def test_a_static_default_route_is_redistributed_only_if_a_filter_permits_it(fabric):
    """It often is that of a management network; ``networks`` has one that is always advertised."""
    default, other = parse_prefix("0.0.0.0/0"), parse_prefix("192.0.2.0/24")
    static = {(RouteSource.STATIC, prefix): LocalRoute() for prefix in (default, other)}
    apply(fabric, "L1", redistribute={"static": BgpRedistribution()})
    fabric.network.input("L1", To("bgp", ExternalRoutes(static)))
    fabric.network.run_for(0.5)
    known = engine(fabric, "L2").instance.ribs[4]
    assert known.paths(other)
    assert not known.paths(default)
    (why,) = engine(fabric, "L1").withheld(default)
    assert why.reason == "a default route needs a filter that permits it"
    filters = (Filter("yes", (parse_item("permit 0.0.0.0/0"),)),)
    apply(fabric, "L1", redistribute={"static": BgpRedistribution(filters=filters)})
    fabric.network.run_for(0.5)
    assert known.paths(default)
    assert not known.paths(other)
    fabric.network.input("L1", To("bgp", ExternalRoutes(dict.fromkeys(static))))
