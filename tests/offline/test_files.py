"""Errors in a database or in arguments are reported, without a traceback."""

from __future__ import annotations

import copy
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import dotted
from fared.core.wire import Reader
from fared.extensions.offline.file import read_database
from fared.extensions.offline.world import FileError
from fared.protocols.ospf.packet.bodies import RouterLsa
from fared.protocols.ospf.packet.body import decode_body, encode_body
from fared.protocols.ospf.packet.lsa import Lsa, LsType, decode_lsa, encode_lsa
from tests.offline.fabrics import Json, answer, clos, run_spf, saved
from tests.offline.spoil import ANYTHING, assert_computed_or_refused, places, spoilt


def lsas_of(document: Json) -> list[Lsa]:
    return [
        decode_lsa(Reader(bytes.fromhex(entry["hex"]))) for entry in document["areas"][0]["lsas"]
    ]


def position(document: Json, ls_type: int, router: str) -> int:
    """The index of the first LSA of this type and router in the file."""
    for number, lsa in enumerate(lsas_of(document)):
        if (lsa.header.ls_type, dotted(lsa.header.advertising_router)) == (ls_type, router):
            return number
    raise AssertionError(f"no LSA of type {ls_type} by {router}")


def rewritten(lsa: Lsa, body: bytes, sequence: int | None = None) -> str:
    """An LSA with the same key, another body and a correct checksum."""
    head = lsa.header
    return encode_lsa(
        ls_age=head.ls_age,
        options=head.options,
        ls_type=head.ls_type,
        link_state_id=head.link_state_id,
        advertising_router=head.advertising_router,
        ls_sequence_number=sequence or head.ls_sequence_number,
        body=body,
    ).raw.hex()


def reasons(found: Json) -> dict[str, str]:
    return {item["key"]: item["reason"] for item in found["ignored"]}


def test_a_sound_database_has_nothing_to_ignore(document):
    assert answer(document)["ignored"] == []


def test_an_lsa_at_maxage_does_not_count(document):
    entry = document["areas"][0]["lsas"][position(document, LsType.ROUTER, "10.255.0.6")]
    entry["age"] = 3600
    found = reasons(answer(document))
    assert found["router 10.255.0.6 10.255.0.6"] == "maxage"
    assert found["10.255.0.1 > 10.255.0.6"] == "one-way"


def test_the_age_in_the_header_counts_where_none_stands_beside_it(document):
    entry = document["areas"][0]["lsas"][position(document, LsType.ROUTER, "10.255.0.6")]
    entry["hex"] = "0e10" + entry["hex"][4:]
    assert "maxage" not in reasons(answer(document)).values()
    del entry["age"]
    assert reasons(answer(document))["router 10.255.0.6 10.255.0.6"] == "maxage"


def test_a_wrong_checksum(document):
    entry = document["areas"][0]["lsas"][position(document, LsType.ROUTER, "10.255.0.6")]
    entry["hex"] = entry["hex"][:-2] + "fe"
    assert reasons(answer(document))["router 10.255.0.6 10.255.0.6"] == "checksum"


def test_lsas_that_cannot_be_read(document):
    lsas = document["areas"][0]["lsas"]
    number = position(document, LsType.ROUTER, "10.255.0.6")
    lsas[number]["hex"] = rewritten(lsas_of(document)[number], bytes.fromhex("00000009"))
    lsas += [{"hex": "zz", "age": 1}, {"hex": "0001", "age": 1}, {"hex": lsas[0]["hex"] + "00"}]
    found = reasons(answer(document))
    assert found["router 10.255.0.6 10.255.0.6"] == "malformed"
    size = len(lsas)
    assert [found[f"area 0.0.0.0 lsa {size - n}"] for n in (3, 2, 1)] == ["malformed"] * 3


def test_a_link_that_the_far_end_does_not_confirm(document):
    lsas = document["areas"][0]["lsas"]
    number = position(document, LsType.ROUTER, "10.255.0.6")
    lsa = lsas_of(document)[number]
    body = decode_body(lsa)
    assert isinstance(body, RouterLsa)
    without = tuple(link for link in body.links if dotted(link.link_id) != "10.255.0.1")
    lsas[number]["hex"] = rewritten(lsa, encode_body(RouterLsa(body.flags, without)))
    assert reasons(answer(document)) == {"10.255.0.1 > 10.255.0.6": "one-way"}


def test_a_router_without_a_way_to_it(document):
    args = [arg for spine in range(1, 5) for arg in ("--fail-link", f"S{spine},L8")]
    assert reasons(answer(document, *args)) == {"10.255.0.12": "unreachable"}


def test_lsa_types_that_no_route_is_computed_from_are_said(document):
    external = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=LsType.NSSA_EXTERNAL,
        link_state_id=0,
        advertising_router=0x0AFF0001,
        ls_sequence_number=-0x7FFFFFFF,
        body=bytes(16),
    )
    document["as"] = [{"hex": external.raw.hex()}]
    assert reasons(answer(document)) == {"nssa-external 0.0.0.0 10.255.0.1": "unsupported"}


def test_of_two_instances_the_newer_counts(document):
    lsas = document["areas"][0]["lsas"]
    number = position(document, LsType.ROUTER, "10.255.0.6")
    lsa = lsas_of(document)[number]
    nothing = encode_body(RouterLsa(0, ()))
    before = len(answer(document)["routes"])
    lsas.insert(0, {"hex": rewritten(lsa, nothing, lsa.header.ls_sequence_number - 1)})
    assert len(answer(document)["routes"]) == before
    lsas.insert(0, {"hex": rewritten(lsa, nothing, lsa.header.ls_sequence_number + 1)})
    assert len(answer(document)["routes"]) < before


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _: b"{", "not JSON"),
        (lambda _: b"\xff\xfe", "not JSON"),
        (lambda _: b"[" * 100_000, "not JSON"),
        (lambda _: b"[]", "expected a JSON object"),
        (lambda _: b"{}", "format: Field required"),
        (lambda d: {**d, "format": "fared-routes/1"}, "format: Input should be 'fared-lsdb/1'"),
        (lambda d: {**d, "router_id": "spine"}, "router_id:"),
        (lambda d: {**d, "areas": 7}, "areas: Input should be a valid list, not 7"),
        (lambda d: {**d, "areas": [{"area": "0", "lsas": [{}]}]}, "areas.0.lsas.0.hex: Field"),
        (lambda d: {**d, "areas": []}, "no router LSA of 10.255.0.5"),
    ],
)
def test_a_file_that_is_no_database(document, spoil, words):
    spoilt = spoil(document)
    result = run_spf(spoilt)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr


def test_a_file_that_cannot_be_read(tmp_path):
    result = run_spf(b"", "--lsdb", str(tmp_path / "absent.json"))
    assert result.exit_code == 1
    assert "absent.json: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--root", "10.255.0.55"), "no router '10.255.0.55' in the database; did you mean"),
        (("--root", "zebra"), "known: 10.255.0.1, 10.255.0.2"),
        (("--fail-link", "L1"), "is not A-B"),
        (("--fail-link", "L1,L2"), "no link between L1 and L2; L1 has links to S1, S2, S3, S4"),
        (("--fail-node", "L1"), "is the root"),
        (("--set-bandwidth", "S1,L2=fast"), "'fast' is not a bandwidth"),
        (("--set-bandwidth", "S1,L2"), "is not A-B=25G"),
        (("--set-bandwidth", "S1,L2=0"), "is outside 1 kbit/s .. 10 Pbit/s"),
        (("--set-cost", "S1,L2=0"), "'0' is not a metric: 1..65535"),
        (("--set-cost", "S1,L2=70000"), "is not a metric"),
        (("--diff",), "--diff requires a change"),
        (("--all", "--root", "L1"), "are mutually exclusive"),
        (("--all", "--explain", "10.0.2.0/24"), "omit --all"),
        (("--af", "ipv6"), "OSPF routes IPv4 only"),
        (("--level", "2"), "this is an OSPF database: use --area"),
        (("--area", "nowhere"), "is not an area id"),
    ],
)
def test_usage_errors_give_a_hint(document, args, words):
    result = run_spf(document, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in " ".join(result.stderr.split())


def test_a_hostname_of_two_routers_is_ambiguous(document):
    lsas = document["areas"][0]["lsas"]
    routers = [lsa.header.advertising_router for lsa in lsas_of(document)]
    for number, lsa in enumerate(lsas_of(document)):
        information = lsa.header.link_state_id >> 24 == 4
        if lsa.header.ls_type == LsType.OPAQUE_AREA and information and routers[number] & 1:
            name = b"\x00\x07\x00\x04same"
            lsas[number]["hex"] = rewritten(lsa, name)
    result = run_spf(document, "--root", "same")
    assert result.exit_code == 2
    assert "is the name of 10.255.0.1, 10.255.0.3" in result.stderr


# -- any input -------------------------------------------------------------------------------


@functools.cache
def small() -> Json:
    """The database of L1 in a fabric of two spines and two leaves."""
    return saved(clos(2, 2))


PLACES = st.deferred(lambda: st.sampled_from(places(small())))
LSA_NUMBERS = st.deferred(lambda: st.sampled_from(range(len(small()["areas"][0]["lsas"]))))


@settings(max_examples=150)
@given(st.lists(st.tuples(PLACES, ANYTHING), min_size=1, max_size=3))
def test_a_document_spoilt_anywhere_is_computed_or_refused(edits):
    assert_computed_or_refused(spoilt(small(), edits))


@settings(max_examples=150)
@given(
    LSA_NUMBERS,
    st.integers(0, 200),
    st.binary(min_size=1, max_size=8),
)
def test_lsas_spoilt_under_a_right_checksum_are_computed_with_or_ignored(number, at, garbage):
    document = copy.deepcopy(small())
    lsas = document["areas"][0]["lsas"]
    lsa = decode_lsa(Reader(bytes.fromhex(lsas[number]["hex"])))
    body = bytearray(lsa.raw[20:])
    body[at % (len(body) + 1) : at % (len(body) + 1) + len(garbage)] = garbage
    lsas[number]["hex"] = rewritten(lsa, bytes(body))
    changes = ("--fail-link", "S1,L1", "--overload", "S2")
    assert_computed_or_refused(document, *changes, codes=(0, 2))


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_what_is_not_json_is_refused(text):
    with pytest.raises(FileError):
        read_database(text)
