"""``show database`` for people: whose entries, of which type, in the words of the RFCs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.core.ids import dotted
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.extensions.sim.network import Network
from fared.management.documents.errors import CommandError
from fared.management.documents.views.isis_words import words as lsp_words
from fared.management.documents.views.ospf_words import about, words
from fared.protocols.isis.pdu.tlv_lists import render_tlvs
from fared.protocols.ospf.packet.lsa import (
    INITIAL_SEQUENCE_NUMBER,
    LSA_HEADER_SIZE,
    Lsa,
    LsType,
    encode_lsa,
)
from fared.protocols.ospf.packet.te_facts import TeReader
from tests.api.answers import run_view
from tests.api.seen import seen_from
from tests.isis_pdu.strategies import TLV_LISTS
from tests.ospf_packet.strategies import lsas as any_lsa


def quiet(fabric):
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    return fabric


@pytest.fixture(scope="module")
def ospf():
    """S1 > L2 at a quarter."""
    fabric = quiet(clos3(2, 3))
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60.0)
    return seen_from(fabric, "L1")


@pytest.fixture(scope="module")
def isis():
    return seen_from(quiet(clos3_isis(2, 3)), "L1")


@pytest.fixture(scope="module")
def border():
    """A border router of a five-stage fabric."""
    return seen_from(quiet(clos5_areas(2, 2, 2, 2, network=Network(seed=1))), "p1.S1")


def lsas(context, *words):
    args = dict(zip(("type", "id"), words, strict=False))
    found = run_view(context, "show database", args)
    return [lsa for area in found["areas"] for lsa in area["lsas"]] + found["as_scope"]


def lsps(context, *words):
    args = dict(zip(("type", "id"), words, strict=False))
    found = run_view(context, "show database", args)
    return [lsp for level in found["levels"] for lsp in level["lsps"]]


def test_lsas_are_found_by_type_router_and_self(ospf):
    everything = lsas(ospf)
    own = [lsa for lsa in everything if lsa["hostname"] == "L1"]
    assert lsas(ospf, "self") == own
    assert [lsa["id"] for lsa in lsas(ospf, "S1")] == [
        lsa["id"] for lsa in everything if lsa["hostname"] == "S1"
    ]
    assert lsas(ospf, "10.255.0.1") == lsas(ospf, "S1")
    (router,) = lsas(ospf, "router", "S1")
    assert lsas(ospf, "S1", "router") == [router]
    assert [lsa["hostname"] for lsa in lsas(ospf, "router", "self")] == ["L1"]
    with pytest.raises(CommandError, match="no LSA matches S9"):
        lsas(ospf, "S9")


def test_a_router_that_is_named_like_a_type_is_found(ospf, monkeypatch):
    monkeypatch.setitem(ospf.hostnames, next(iter(ospf.hostnames)), "router")
    assert {lsa["hostname"] for lsa in lsas(ospf, "router")} == {"router"}


def test_the_list_of_te_lsas_says_which_link_has_which_capacity(ospf):
    found = {lsa["about"] for lsa in lsas(ospf, "te-link")}
    assert {"S1 > L1, 400G", "S1 > L2, 100G", "L2 > S1, 400G"} <= found
    assert lsas(ospf, "router")[0]["about"] == "3 links, 4 stubs"


def test_a_router_lsa_is_told_in_the_words_of_the_rfc(ospf):
    (router,) = lsas(ospf, "router", "L2")
    assert "stub network 10.0.2.0/24, metric 10" in router["words"]
    link = "link to another router (point-to-point): S1, from 10.128.0.4, metric 10"
    assert link in router["words"]
    assert router["body"]["links"][0]["type_name"] == "stub"


def test_a_te_lsa_is_told_in_words(ospf):
    link = next(lsa for lsa in lsas(ospf, "te-link", "S1") if lsa["about"].startswith("S1 > L2"))
    assert link["words"][:2] == [
        "link S1 > L2 (point-to-point)",
        "address 10.128.0.5, far end 10.128.0.4",
    ]
    assert "bandwidth: residual 100G, available 100G, utilized 0" in link["words"]


def test_summaries_and_path_capacities_are_told_in_words(border):
    words = {line for lsa in lsas(border, "summary", "self") for line in lsa["words"]}
    assert any(line.startswith("network 10.0.") and "metric" in line for line in words)
    found = {lsa["about"] for lsa in lsas(border, "extended-prefix")}
    assert any(", inter-area, path capacity " in about for about in found)
    router = lsas(border, "router", "self")[0]
    assert router["words"][0] == "area border router"


def test_lsps_are_told_in_words_with_the_names_of_routers(isis):
    (lsp,) = lsps(isis, "L2")
    assert {"network 10.0.2.0/24, metric 10", "link to S1, metric 10"} <= set(lsp["words"])
    assert "  address 10.128.0.4, far end 10.128.0.5" in lsp["words"]
    assert [lsp["hostname"] for lsp in lsps(isis, "self")] == ["L1"]
    assert "words" not in lsps(isis, "level-2")[0]


@pytest.mark.parametrize("link_state_id", [0x01000001, 0x04000000, 0x07000000])
def test_an_lsa_that_cannot_be_read_is_told_as_such(link_state_id):
    """It is flooded all the same, and so in the database."""
    lsa = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=LsType.OPAQUE_AREA,
        link_state_id=link_state_id,
        advertising_router=0x0AFF0001,
        ls_sequence_number=INITIAL_SEQUENCE_NUMBER,
        body=b"\0\2\0\xff",
    )
    assert about(lsa, dotted, TeReader()) == "malformed"
    (line,) = words(lsa, dotted)
    assert line.startswith("malformed: ")


def test_an_lsa_of_an_unknown_type_has_no_words():
    lsa = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=LsType.OPAQUE_AREA,
        link_state_id=0x63000000,
        advertising_router=0x0AFF0001,
        ls_sequence_number=INITIAL_SEQUENCE_NUMBER,
        body=b"\0\2\0\4abcd",
    )
    assert about(lsa, dotted, TeReader()) == ""
    assert words(lsa, dotted) == ["28 bytes that are not decoded"]


@given(any_lsa(), st.binary(max_size=64))
def test_whatever_a_router_floods_has_words(lsa, garbage):
    """Neighbors decide what the database contains: no LSA ends the request for all of them."""
    for each in (lsa, Lsa(lsa.header, lsa.raw[:LSA_HEADER_SIZE] + garbage)):
        assert isinstance(about(each, dotted, TeReader()), str)
        assert all(isinstance(line, str) for line in words(each, dotted))


@given(TLV_LISTS)
def test_whatever_tlvs_an_lsp_has_there_are_words_for_them(tlvs):
    assert all(isinstance(line, str) for line in lsp_words(render_tlvs(tlvs), str))
