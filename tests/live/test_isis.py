"""Two live daemons over IS-IS: every command, the metrics, the page, and drain."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from fared.management.documents.registry import SHOWN, document_of, narrowed
from tests.live.daemons import LINKS, RIGHT_STUB, Json, Pair, running_pair
from tests.waiting import wait_for

pytestmark = pytest.mark.netns

LEVEL = "level-2"
RIGHT6, RIGHT6_STUB = "2001:db8:0:92::1/64", "2001:db8:0:92::/64"
COMMANDS = [
    *(("show", name) for name in SHOWN if not document_of(name).proto),
    *(("show", "isis", name) for name in narrowed()),
    ("show", "isis", "database", "right"),
    ("show", "routes", "--af", "ipv4"),
    ("show", "isis", "routes", RIGHT_STUB),
    ("show", "fib", "diff"),
    ("explain", RIGHT_STUB),
    ("explain", RIGHT6_STUB),
    ("path", "left", "right"),
    ("path", "left", "right", "--af", "ipv6"),
    ("validate",),
]


def configuration(identity: str, hostname: str) -> Json:
    """IS-IS in level 2 on both links."""
    links = {"hello-interval": 1, "hello-multiplier": 4}
    return {
        "router-id": identity,
        "hostname": hostname,
        "isis": {
            "net": f"49.0001.0102.5500.{int(identity.rpartition('.')[2]):04d}.00",
            "level": LEVEL,
            "interfaces": {
                "lo": {"passive": True},
                "d0": {"passive": True},
                **dict.fromkeys(LINKS, links),
            },
        },
    }


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two routers that route both families; no test here changes them for good."""
    with running_pair("i", tmp_path_factory.mktemp("isis"), configuration) as running:
        running.right.netns.batch("ip", [f"addr add {RIGHT6} dev d0 nodad"])
        wait_for(lambda: leads_over_both_links(routes6(running)), 40, "IPv6 over both links")
        wait_for(running.left.settled, 40, "the kernel holds it")
        yield running


def leads_over_both_links(routes: list[Json]) -> bool:
    """Whether there is one route, with both: one link may be up a moment before the other."""
    return [{hop["interface"] for hop in route["nexthops"]} for route in routes] == [set(LINKS)]


def routes6(pair: Pair) -> list[Json]:
    """The IPv6 routes of the left one that lead anywhere."""
    found: list[Json] = pair.left.show("routes", af="ipv6")["routes"]
    return [route for route in found if route["nexthops"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_answers_with_a_table_of_80_columns_and_with_json(
    pair: Pair, command: tuple[str, ...]
):
    pair.left.assert_answers(*command)


def test_ipv6_routes_lead_over_both_links(pair: Pair):
    """Gateways are link-local; the kernel has what the table says."""
    (route,) = routes6(pair)
    assert (route["prefix"], route["type"], route["protocol"]) == (RIGHT6_STUB, LEVEL, "isis")
    assert {hop["interface"] for hop in route["nexthops"]} == set(LINKS)
    assert all(hop["address"].startswith("fe80:") for hop in route["nexthops"])
    held = {entry["prefix"] for entry in pair.left.show("fib")["routes"]}
    assert RIGHT6_STUB in held


def test_metrics_and_the_web_page_include_isis(pair: Pair):
    """Levels are the areas; both ends hold the same database."""
    values = pair.left.metrics()
    assert values[f'fared_neighbors{{area="{LEVEL}",proto="isis",state="Up"}}'] == 2
    assert values[f'fared_lsdb_entries{{area="{LEVEL}",proto="isis",type="lsp"}}'] == 2
    assert values['fared_packets_total{direction="received",proto="isis",type="p2p-hello"}'] > 1
    at = 'interface="u0",neighbor="0102.5500.0002",proto="isis"'
    assert values[f"fared_neighbor_up{{{at}}}"] == 1
    assert values['fared_spf_runs_total{proto="isis",reason="topology"}'] >= 1
    assert values['fared_routes{proto="isis"}'] == len(pair.left.show("routes")["routes"])
    assert values['fared_link_capacity_bytes_per_second{interface="u0"}'] > 0
    lowest = "0102.5500.0001"
    checksum = f'fared_lsdb_checksum{{area="{LEVEL}",lowest="{lowest}",proto="isis"}}'
    assert values[checksum] == pair.right.metrics()[checksum]
    assert pair.left.get("/")[0] == 200
    status, body = pair.left.get("/api/v1/fabric")
    assert (status, "0102.5500.0001" in body) == (200, True)
    status, body = pair.left.get("/api/v1/isis/neighbors")
    assert (status, {n["hostname"] for n in json.loads(body)["neighbors"]}) == (200, {"right"})
    assert pair.left.get("/api/v1/ospf/neighbors")[0] == 501


def overloaded(pair: Pair) -> bool:
    """Whether the right one has an LSP of the left one with the overload bit."""
    (level,) = pair.right.show("database", proto="isis", id="left")["levels"]
    return any(lsp["overload"] for lsp in level["lsps"])


def test_drain_sets_the_overload_bit_and_undrain_takes_it_back(pair: Pair):
    """What ends at the drained router still arrives."""
    assert not overloaded(pair)
    assert pair.left.cli("drain").returncode == 0
    wait_for(lambda: overloaded(pair), 40, "the overload bit is flooded")
    assert pair.left.show("status")["isis"]["overloaded"]
    (area,) = pair.right.show("topology")["areas"]
    assert [node["transit"] for node in area["nodes"] if node["hostname"] == "left"] == [False]
    assert pair.used(RIGHT_STUB) == set(LINKS)
    assert pair.left.cli("undrain").returncode == 0
    wait_for(lambda: not overloaded(pair), 40, "the overload bit is taken back")
