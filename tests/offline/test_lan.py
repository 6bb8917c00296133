"""Databases with network LSAs: routes over a LAN, and failures of its parts."""

from __future__ import annotations

import pytest

from fared.core.ids import dotted
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder
from fared.extensions.sim.network import Network
from tests.offline.fabrics import (
    Json,
    all_tables,
    answer,
    live_tables,
    run_spf,
    saved,
    table,
    weights,
)

BEHIND_R3, BEHIND_R5 = "10.0.3.0/24", "10.0.5.0/24"
NETWORK = "net:10.192.1.4"


def lan_of_four(**options) -> Fabric:
    """R1 to R4 on a LAN with R4 as designated router; R5 is connected to R1 and R2."""
    builder = FabricBuilder(Network(seed=2), **options)
    for name in ("R1", "R2", "R3", "R4", "R5"):
        builder.router(name)
        builder.hosts(name)
    builder.lan("R1", "R2", "R3", "R4")
    builder.link("R1", "R5")
    builder.link("R2", "R5")
    builder.fabric.network.start_all()
    builder.fabric.network.run_until_quiet(120, quiet=6.0)
    return builder.fabric


@pytest.fixture(scope="module")
def lan() -> Fabric:
    return lan_of_four()


@pytest.fixture
def document(lan: Fabric) -> Json:
    return saved(lan, "R3")


def test_every_root_gets_the_routes_it_computes_itself(lan, document):
    assert all_tables(document) == live_tables(lan)


def test_suppressed_networks_are_no_routes_offline_either(lan):
    """RFC 6860: the network LSA has a host mask, for which no route is installed."""
    hidden = lan_of_four(prefix_suppression=True)
    document = saved(hidden, "R3")
    assert all_tables(document) == live_tables(hidden)
    computed, whole = (table(answer(d, "--root", "R3")) for d in (document, saved(lan, "R3")))
    assert whole.keys() ^ computed.keys() == {"10.192.1.0/24", "10.128.0.0/31", "10.128.0.2/31"}
    assert weights(answer(document), BEHIND_R5) == [1, 1]
    assert weights(answer(document, "--fail-link", "R1,R5"), BEHIND_R5) == [1]


def test_network_lsas_count(document):
    assert answer(document)["ignored"] == []


def test_without_interfaces_addresses_on_the_lan_come_from_router_lsas(lan, document):
    del document["interfaces"]
    assert table(answer(document, "--root", "R3")) == live_tables(lan)[dotted(lan.router_ids["R3"])]


def test_the_lan_outlives_its_designated_router(document):
    """Another router is elected."""
    changed = answer(document, "--root", "R3", "--fail-node", "R4")
    assert weights(changed, BEHIND_R5) == [1, 1]


def test_a_link_to_the_lan_fails_by_the_name_of_the_network(document):
    changed = answer(document, "--root", "R3", "--fail-link", f"R1,{NETWORK}")
    assert [len(r["nexthops"]) for r in changed["routes"] if r["prefix"] == BEHIND_R5] == [1]


def test_two_routers_on_a_lan_name_the_link_of_the_first_into_it(document):
    """R1 loses the LAN, so R5 is reached over R2 alone; R3 keeps the LAN and R2."""
    changed = answer(document, "--root", "R3", "--fail-link", "R1,R3")
    assert changed == answer(document, "--root", "R3", "--fail-link", f"R1,{NETWORK}")
    assert [len(r["nexthops"]) for r in changed["routes"] if r["prefix"] == BEHIND_R5] == [1]
    other = answer(document, "--root", "R3", "--fail-link", "R3,R1")
    assert other == answer(document, "--root", "R3", "--fail-link", f"R3,{NETWORK}")
    assert BEHIND_R5 not in {route["prefix"] for route in other["routes"]}


def test_two_routers_that_share_neither_link_nor_lan_are_refused(document):
    done = run_spf(document, "--fail-link", "R3,R5")
    assert done.exit_code == 2
    assert "no link between R3 and R5; R3 has links to net:10.192.1.4" in done.output


def test_the_whole_lan_fails(document):
    changed = answer(document, "--root", "R3", "--fail-node", NETWORK)
    assert BEHIND_R5 not in {route["prefix"] for route in changed["routes"]}


def test_the_rate_of_one_router_on_the_lan_bounds_what_passes_it(document):
    quarter = f"R1,{NETWORK}={DEFAULT_CAPACITY * 8 / 4 / 1e9:g}G"
    changed = answer(document, "--root", "R5", "--set-bandwidth", quarter)
    assert weights(changed, BEHIND_R3) == [1, 4]
    by_name = quarter.replace(NETWORK, "R3")
    assert answer(document, "--root", "R5", "--set-bandwidth", by_name) == changed
