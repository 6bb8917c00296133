"""``show lsdb --json``: all input of the offline tool, with LSAs as on the wire."""

from __future__ import annotations

from fared.core.wire import Reader
from fared.management.documents.views.ospf_lsdb import lsdb_document
from fared.protocols.ospf.packet.lsa import decode_lsa, lsa_checksum_ok
from tests.offline.fabrics import clos, saved


def test_lsas_are_whole_and_carry_their_age_of_now(figure_one, document):
    node = figure_one.network.nodes["L1"].running
    stored = node.instances["ospf"].engine.instance.areas[0].lsdb
    entries = document["areas"][0]["lsas"]
    assert len(entries) == len(stored)
    for entry in entries:
        lsa = decode_lsa(Reader(bytes.fromhex(entry["hex"])))
        assert lsa_checksum_ok(lsa)
        assert lsa.header.ls_age == entry["age"]


def test_interfaces_name_links_and_full_neighbors(document):
    by_name = {entry["name"]: entry for entry in document["interfaces"]}
    assert by_name["S1"] == {
        "name": "S1",
        "area": "0.0.0.0",
        "type": "point-to-point",
        "ifindex": 3,
        "addresses": ["10.128.0.0/31"],
        "unnumbered": False,
        "cost": 10,
        "bandwidth": 50e9,
        "neighbors": [{"router_id": "10.255.0.1", "address": "10.128.0.1"}],
    }
    assert by_name["lo"]["neighbors"] == []
    assert by_name["lo"]["unnumbered"] is False


def test_a_neighbor_that_is_not_full_is_no_next_hop():
    fabric = clos(2, 2)
    fabric.network.set_link("L1", "S1", up=False)
    fabric.network.run_for(0.001)
    links = {i["name"]: i["neighbors"] for i in saved(fabric)["interfaces"]}
    assert links["S1"] == []
    assert len(links["S2"]) == 1


def test_a_router_that_has_just_begun_has_an_empty_database():
    fabric = clos(2, 2)
    fabric.network.kill("L1")
    fabric.network.start("L1")
    engine = fabric.network.nodes["L1"].running.instances["ospf"].engine
    document = lsdb_document(engine, fabric.network.now)
    assert all(len(area.lsas) <= 3 for area in document.areas)
