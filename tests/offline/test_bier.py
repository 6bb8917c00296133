"""``spf --bier`` computes from a saved database the BIFTs of the routers."""

from __future__ import annotations

import pytest

from fared.core.ids import format_node
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.offline import fabrics, isis_fabrics
from tests.sim.test_bier import build

Json = fabrics.Json


@pytest.fixture(scope="module", params=["ospf", "isis"])
def fabric(request) -> Fabric:
    made = build(f"clos3-{request.param}")
    made.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    made.network.run_for(20)
    return made


def saved(fabric: Fabric) -> Json:
    protocol = next(iter(fabric.network.nodes["L1"].running.instances))
    return (isis_fabrics if protocol == "isis" else fabrics).saved(fabric, "L1")


def seen(document: Json) -> dict[int, tuple[bool, str, list[tuple[str, int]]]]:
    """Of BFERs but those of hosts: whether local, the problem, and tables by neighbor."""
    return {
        b["bfr_id"]: (
            b["local"],
            b["problem"],
            sorted((hop["neighbor"] or "", hop["tables"]) for hop in b["nexthops"]),
        )
        for b in document["bfers"]
        if b["bfr_id"] < 100
    }


def test_the_tables_of_every_router_are_those_of_its_daemon(fabric: Fabric):
    document = saved(fabric)
    for name, node in fabric.network.nodes.items():
        root = format_node(node.running.solver.root)
        found = fabrics.answer(document, "--bier", "1", "--root", root)
        live = run_view(seen_from(fabric, name), "show bier", {})
        assert found["root"] == root
        assert seen(found) == seen(live)
        assert (found["bfr_id"], found["bit_string_length"]) == (live["bfr_id"], 64)
        assert masks(found) == masks(live)


def masks(document: Json) -> list[Json]:
    """The F-BMs of each table without the bits of hosts, which are in set 1."""
    return [
        {"entropy": t["entropy"], **{m["neighbor"]: m["f_bm"] for m in t["masks"]}}
        for t in document["bifts"]
        if t["set"] == 0
    ]


def test_a_failed_link_is_in_no_table(fabric: Fabric):
    found = fabrics.answer(saved(fabric), "--bier", "1", "--root", "L3", "--fail-link", "L3,S1")
    assert {m["hostname"] for table in found["bifts"] for m in table["masks"]} == {"S2", "S3", "S4"}


def test_the_tables_are_printed_within_80_columns(fabric: Fabric):
    result = fabrics.run_spf(saved(fabric), "--bier", "1", "--root", "L3")
    assert result.exit_code == 0
    assert "BIFT-id 0x10100" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_weights_by_available_bandwidth_fill_the_tables_too(fabric: Fabric):
    args = ("--bier", "1", "--root", "L3")
    tables = fabrics.answer(saved(fabric), *args, "--weights", "available")
    assert seen(tables) == seen(fabrics.answer(saved(fabric), *args))


def test_an_empty_sub_domain_is_an_error(fabric: Fabric):
    result = fabrics.run_spf(saved(fabric), "--bier", "9")
    assert result.exit_code
    assert "no router is in BIER sub-domain 9" in result.output + result.stderr
