"""What a router that runs BGP shows: sessions, paths with their bandwidths, links, reasons."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fared.config import load_text
from fared.core.filters import Filter, FilterItem
from fared.core.ids import parse_prefix
from fared.extensions.sim.fabric import Fabric, clos3
from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError
from fared.management.documents.registry import all_documents
from fared.management.documents.views.validate import validate
from tests.api.answers import run_view
from tests.api.conforms import faults
from tests.api.seen import scraped, seen_from
from tests.bgp.fabrics import apply_neighbor, clos5, slow, speakers, started
from tests.sim.shared import mend

CONFIG = load_text('bgp: {as: 1, networks: [lo], neighbors: {"S*": {import: all, export: all}}}')


@pytest.fixture(scope="module")
def running() -> Fabric:
    return started(clos3(2, 2, builder=speakers()))


@pytest.fixture
def fabric(running):
    """Two spines, two leaves; a test's damage is mended."""
    yield running
    mend(running)


def seen(fabric: Fabric, name: str = "L1") -> ViewContext:
    context = seen_from(fabric, name)
    links = {port.ifindex: port.link() for port in fabric.network.nodes[name].ports.values()}
    return replace(context, config=CONFIG, links=links)


def show(fabric: Fabric, what: str, **args: Any) -> dict[str, Any]:
    found: dict[str, Any] = run_view(seen(fabric), what, args)
    return found


def goal(fabric: Fabric) -> str:
    return str(fabric.leaf_prefixes["L2"])


@pytest.mark.parametrize("entry", all_documents(), ids=lambda entry: entry.name)
def test_every_document_has_what_bgp_knows(fabric, entry):
    """Without an IGP beside it. Only a database of links is refused, with what there is instead."""
    needed = {"prefix": goal(fabric), "source": "L1", "destination": goal(fabric)}
    args = {argument.name: needed[argument.name] for argument in entry.args if argument.required}
    if entry.name in ("database", "lsdb"):
        with pytest.raises(CommandError, match="'show bgp routes' lists the paths"):
            show(fabric, entry.command, **args)
        return
    found = show(fabric, entry.command, **args)
    assert not list(faults(found, entry.row))


def test_a_neighbor_tells_what_is_agreed_and_exchanged(fabric):
    """By interface, address, identifier, or its key in the configuration."""
    (found,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    assert (found["state"], found["peer"], found["external"]) == ("Established", "S1", True)
    assert {"ipv4", "ipv6", "extended next hop"} <= set(found["capabilities"])
    (four, six) = found["families"]
    assert (four["received"], four["advertised"], four["next_hop"]) == (3, 3, found["own_address"])
    assert six["af"] == "ipv6"
    for name in (found["router_id"], found["address"]):
        assert show(fabric, "show neighbors", name=name)["neighbors"][0]["peer"] == "S1"


def test_an_interface_has_the_messages_of_its_session(fabric):
    (found,) = show(fabric, "show interfaces", name="S1")["detail"]
    (neighbor,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    assert found["packets"] == neighbor["messages"]
    assert {each["type"] for each in found["packets"]} >= {"UPDATE"}


def test_neighbors_of_bgp_are_no_fabric_with_tiers(fabric):
    """What is behind them is not known: nobody is a leaf, and no pair of leaves is the weakest."""
    found = show(fabric, "show fabric")
    assert (found["clos"], found["weakest"]) == (False, None)
    assert {node["role"] for node in found["nodes"]} == {None}


def test_messages_count_since_they_were_cleared_and_metrics_since_the_start(fabric):
    """Updates of ``show bgp`` and ``show neighbors`` and messages by type are the same counters."""
    total = scraped(seen(fabric))["bgp_updates"]["S1", "received"]
    fabric.network.nodes["L1"].running.instances["bgp"].engine.counters.clear_interfaces()
    (found,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    assert (found["updates_received"], found["updates_sent"], found["messages"]) == (0, 0, [])
    slow(fabric, "S1", "L2", 25.0)
    fabric.network.run_for(1.0)
    (found,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    (updates,) = [each for each in found["messages"] if each["type"] == "UPDATE"]
    assert found["updates_received"] == updates["received"] > 0
    metrics = scraped(seen(fabric))
    assert metrics["bgp_updates"]["S1", "received"] == total + updates["received"]


def test_paths_tell_what_limits_them_and_who_is_told(fabric):
    slow(fabric, "S1", "L2", 25.0)
    fabric.network.run_for(1.0)
    (row,) = show(fabric, "show bgp-routes", prefix=goal(fabric))["routes"]
    first, second = row["paths"]
    assert (first["neighbor"], first["used"], second["used"]) == ("S1", True, True)
    assert [round(path["carries"] * 8e-9) for path in row["paths"]] == [25, 400]
    assert round(row["carries"] * 8e-9) == 425
    told = {
        each["neighbor"]
        for each in show(fabric, "show bgp-routes", prefix="10.0.1.0/24")["routes"][0][
            "advertised_to"
        ]
    }
    assert told == {"S1", "S2"}


def test_a_path_names_the_routers_that_all_paths_behind_the_neighbor_share():
    """Of five stages, as a spine hears of another pod from the superspines of its plane."""
    running = started(clos5(speakers(), (2, 1, 2, 2)))
    slow(running, "p2.S1", "p2.L1", 25.0)
    running.network.run_for(1.0)
    prefix = str(running.leaf_prefixes["p2.L1"])
    (row,) = run_view(seen(running, "p1.S1"), "show bgp-routes", {"prefix": prefix})["routes"]
    used = [path for path in row["paths"] if path["used"]]
    assert len(used) == 2
    for path in used:
        itself, spine = path["limits"]
        assert (itself["router_id"], itself["reach"]) == (path["router_id"], None)
        assert [round(each["carries"] * 8e-9) for each in (itself, spine)] == [25, 25]
        assert round(spine["reach"] * 8e-9) == 400


def test_an_address_stands_for_the_longest_prefix_and_a_neighbor_for_what_it_told(fabric):
    """As in ``show routes``; other prefixes are refused."""
    (row,) = show(fabric, "show bgp-routes", prefix="10.0.2.77")["routes"]
    assert row["prefix"] == goal(fabric)
    listed = show(fabric, "show bgp-routes", neighbor="S1", af="ipv4")["routes"]
    assert {path["neighbor"] for row in listed for path in row["paths"]} == {"S1"}
    assert len(listed) == 3
    with pytest.raises(CommandError, match=r"no neighbor advertises 192\.0\.2\.1"):
        show(fabric, "show bgp-routes", prefix="192.0.2.1")
    with pytest.raises(CommandError, match="no neighbor S7"):
        show(fabric, "show bgp-routes", neighbor="S7")


def test_a_path_that_is_not_used_says_at_which_step_it_was_left_out(fabric):
    """L1 hears of S1's loopback from S1, and over L2 and S2 a longer path."""
    rows = show(fabric, "show bgp-routes", af="ipv4")["routes"]
    paths = [path for row in rows for path in row["paths"] if not path["used"]]
    assert {path["why_not"] for path in paths} <= {"its AS path is longer: 3, not 1"}


def test_explain_names_the_announcement_that_limits_a_path(fabric):
    slow(fabric, "S1", "L2", 25.0)
    fabric.network.run_for(1.0)
    found = show(fabric, "explain", prefix=goal(fabric))
    assert found["nexthops"][0]["reason"] == ("carries 25G, limited by what S1 announces (25G)")
    assert found["nexthops"][0]["limiting_link"]["to"] == goal(fabric)
    assert found["summary"].startswith(f"{goal(fabric)} is advertised by S1 and S2, 2")
    assert (found["type"], found["destinations"]) == ("bgp", [])


def test_explain_names_the_filters_of_neighbors_that_keep_a_prefix_out(fabric):
    """Each once, with the item that decides."""
    hosts = Filter("hosts", (FilterItem(False, fabric.leaf_prefixes["L2"]), FilterItem(True)))
    apply_neighbor(fabric, "L1", ["S1", "S2"], import_filters=(hosts,))
    fabric.network.run_for(1.0)
    message = r"kept out of routes of S1, S2: filter hosts, item 1: deny 10\.0\.2\.0/24"
    with pytest.raises(CommandError, match=message):
        show(fabric, "explain", prefix=goal(fabric))
    apply_neighbor(fabric, "L1", ["S1", "S2"], import_filters=())
    fabric.network.run_for(1.0)
    assert show(fabric, "explain", prefix=goal(fabric))["withheld"] == []


def test_a_path_leads_over_the_neighbors_to_the_prefix(fabric):
    edges = show(fabric, "path", source="L1", destination=goal(fabric))["edges"]
    assert {(edge["from"], edge["to"]) for edge in edges} == {
        ("10.255.0.3", "10.255.0.1"),
        ("10.255.0.3", "10.255.0.2"),
        ("10.255.0.1", goal(fabric)),
        ("10.255.0.2", goal(fabric)),
    }


def test_groups_of_prefixes_are_no_routers(fabric):
    for what in ("show topology", "show fabric"):
        text = str(show(fabric, what))
        assert "10.255.0.1" in text
        assert "group:" not in text


def test_neighbors_have_the_names_that_they_send(fabric):
    (area,) = show(fabric, "show topology")["areas"]
    for nodes in (show(fabric, "show fabric")["nodes"], area["nodes"]):
        assert sorted(node["hostname"] for node in nodes) == ["L1", "S1", "S2"]


def test_a_lost_link_is_missing_with_its_reason_and_counted(fabric):
    fabric.network.set_link("S1", "L1", up=False)
    fabric.network.run_for(1.0)
    status = show(fabric, "show status")
    assert (status["bgp"]["established"], status["links"]["total"]) == (1, 2)
    (missing,) = status["links"]["missing"]
    assert (missing["interface"], missing["cause"]) == ("S1", "carrier")
    metrics = scraped(seen(fabric))
    assert metrics["link_up"] == {("S1",): 0, ("S2",): 1}
    assert metrics["adjacencies_ended"]["bgp",] >= 1
    assert metrics["bgp_session_up"] == {("S1",): 0, ("S2",): 1}
    (row,) = show(fabric, "show bgp-routes", prefix=goal(fabric))["routes"]
    assert [path["neighbor"] for path in row["paths"]] == ["S2"]


def test_metrics_count_by_neighbor_as_the_configuration_names_it(fabric):
    metrics = scraped(seen(fabric))
    assert metrics["bgp_session_up"] == {("S1",): 1, ("S2",): 1}
    assert metrics["bgp_prefixes"]["S1", "ipv4", "received"] == 3
    assert metrics["bgp_updates"]["S1", "sent"] > 0
    assert metrics["bgp_prefixes_limit"]["S1",] == 100_000
    assert metrics["bgp_groups"]["ipv4",] >= 3


def test_an_external_neighbor_without_a_policy_is_a_problem_that_is_told(fabric):
    """RFC 8212: it exchanges nothing; ``validate`` says so, too."""
    apply_neighbor(fabric, "L1", ["S1"], imports=None)
    fabric.network.run_for(1.0)
    (found,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    assert found["problem"]["cause"] == "policy"
    checks = {check["name"]: check for check in show(fabric, "validate")["checks"]}
    assert "no import (RFC 8212)" in str(checks["sessions are established"])
    apply_neighbor(fabric, "L1", ["S1"], imports=("all",))
    fabric.network.run_for(1.0)
    assert show(fabric, "show neighbors", name="S1")["neighbors"][0]["problem"] is None


def test_a_session_that_was_shut_down_is_not_expected(fabric):
    apply_neighbor(fabric, "L1", ["S1"], enabled=False)
    fabric.network.run_for(1.0)
    status = show(fabric, "show status")
    assert (status["bgp"]["neighbors"], status["links"]["total"]) == (1, 1)
    (found,) = show(fabric, "show neighbors", name="S1")["neighbors"]
    assert (found["shutdown"], found["state"], found["problem"]) == (True, "Idle", None)
    apply_neighbor(fabric, "L1", ["S1"], enabled=True)
    fabric.network.run_for(5.0)


def test_the_summary_has_the_sessions_and_the_sizes_of_tables(fabric):
    found = show(fabric, "show bgp-summary")
    assert [each["peer"] for each in found["neighbors"]] == ["S1", "S2"]
    four = found["status"]["families"][0]
    assert (four["af"], four["own"], four["prefixes"]) == ("ipv4", 2, 6)


def test_validate_speaks_of_sessions_where_only_bgp_runs(fabric):
    """There are no hellos, and no adjacencies."""
    names = [check.name for check in validate(seen(fabric)).checks]
    assert {"sessions are established", "links have a session"} <= set(names)
    assert [name for name in names if "hello" in name or "adjacency" in name] == []


def test_changes_name_the_prefixes_that_a_neighbor_announces(fabric):
    """Also those that are gone by now, and in no document the number of their group."""
    network, first = fabric.network, str(fabric.leaf_prefixes["L2"])
    slow(fabric, "S1", "L2", 25.0)
    network.run_for(1.0)
    for spine in ("S1", "S2"):
        network.set_link(spine, "L2", up=False)
    network.run_for(1.0)
    told = [text for one in show(fabric, "show convergence")["changes"] for text in one["changes"]]
    assert f"S1 > {first} and 1 more: 400G to 25G" in told
    assert f"{first} and 1 more gone" in told
    for entry in all_documents():
        if entry.name not in ("database", "lsdb") and not any(a.required for a in entry.args):
            assert "group:" not in str(show(fabric, entry.command)), entry.name


def test_a_change_of_ipv6_alone_is_told_in_words_and_a_lost_link_once(fabric):
    """Beside IPv4, whose routes stay; of a link both families have it is no second one."""
    network, name = fabric.network, "L2"
    own = [str(prefix) for prefix in fabric.leaf_prefixes.values()]

    def texts() -> list[str]:
        found = show(fabric, "show convergence")["changes"]
        return [text for one in found for text in one["changes"]]

    before = len(texts())
    goal6 = Filter("six", (FilterItem(False, parse_prefix("2001:db8:0:2::/64")), FilterItem(True)))
    apply_neighbor(fabric, name, ["S1"], export_filters=(goal6,))
    network.run_for(1.0)
    told = texts()[before:]
    assert any("2001:db8:0:2::/64" in text for text in told)
    assert not any(prefix in text for prefix in own for text in told)
    apply_neighbor(fabric, name, ["S1"], export_filters=())
    network.run_for(1.0)
    before = len(texts())
    network.set_link("S1", "L1", up=False)
    network.run_for(1.0)
    assert [text for text in texts()[before:] if text.endswith("gone")] == ["10.255.0.1 gone"]
    (lost,) = show(fabric, "show topology")["areas"][0]["lost"]
    assert lost["links"] == 1
