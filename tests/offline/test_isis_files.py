"""Errors in IS-IS databases or in arguments are reported, without a traceback."""

from __future__ import annotations

import copy
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import ipv4_prefix, parse_system_id
from fared.extensions.sim.levels import clos3_isis
from fared.protocols.igp.events import ShutdownRequested
from fared.protocols.isis.ids import lsp_id
from fared.protocols.isis.pdu.codec import (
    checksum_of,
    decode_pdu,
    encode_pdu,
    with_checksum,
    with_lifetime,
)
from fared.protocols.isis.pdu.model import Lsp
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    IsReachability,
    NarrowIpReach,
    NarrowIpReachability,
    NarrowIsReachability,
    NarrowNeighbor,
    ProtocolsSupported,
)
from tests.offline.fabrics import Json, answer, run_spf
from tests.offline.isis_fabrics import offline, saved, started, table
from tests.offline.spoil import ANYTHING, assert_computed_or_refused, places, spoilt


@functools.cache
def _small() -> Json:
    return saved(started(clos3_isis(2, 2)), "L1")


@pytest.fixture
def document() -> Json:
    """The database of L1 in a fabric of two spines and two leaves; a test may modify it."""
    return copy.deepcopy(_small())


S1 = "0000.0aff.0001"


def place(document: Json, router: str, fragment: int = 0) -> int:
    """The index of an LSP in the file."""
    wanted = lsp_id(parse_system_id(router), 0, fragment)
    return next(
        number
        for number, entry in enumerate(document["lsps"])
        if bytes.fromhex(entry["hex"])[12:20] == wanted.to_bytes(8, "big")
    )


def read(document: Json, number: int) -> Lsp:
    lsp = decode_pdu(bytes.fromhex(document["lsps"][number]["hex"]))
    assert isinstance(lsp, Lsp)
    return lsp


def write(lsp: Lsp) -> str:
    return encode_pdu(replace(lsp, checksum=0)).hex()


def reasons(found: Json) -> dict[str, str]:
    return {item["key"]: item["reason"] for item in found["ignored"]}


# The file of a router


def test_the_document_of_a_router(document):
    assert document["format"] == "fared-lsdb/1"
    assert (document["proto"], document["system_id"]) == ("isis", "0000.0aff.0003")
    assert document["levels"] == [2]
    links = {entry["name"]: entry for entry in document["interfaces"]}
    assert links["S1"] == {
        "name": "S1",
        "type": "point-to-point",
        "ifindex": links["S1"]["ifindex"],
        "addresses": ["10.128.0.0/31", links["S1"]["addresses"][1]],
        "metric": 10,
        "bandwidth": 50e9,
        "adjacencies": [
            {
                "neighbor": S1,
                "level": 2,
                "ipv4": "10.128.0.1",
                "ipv6": links["S1"]["adjacencies"][0]["ipv6"],
            }
        ],
    }
    assert links["S1"]["addresses"][1].startswith("fe80::")
    assert links["S1"]["adjacencies"][0]["ipv6"].startswith("fe80::")
    assert links["lo"]["adjacencies"] == []


def test_lsps_have_the_lifetime_of_this_moment():
    fabric = started(clos3_isis(2, 2))
    before = saved(fabric, "L1")
    fabric.network.run_for(30)
    after = saved(fabric, "L1")
    for old, new in zip(before["lsps"], after["lsps"], strict=True):
        lifetimes = [int.from_bytes(bytes.fromhex(e["hex"])[10:12], "big") for e in (old, new)]
        assert lifetimes[1] == lifetimes[0] - 30
        decode_pdu(bytes.fromhex(new["hex"]))


def test_a_purged_lsp_is_in_the_document_and_does_not_count():
    fabric = started(clos3_isis(2, 2))
    fabric.network.input("S1", ShutdownRequested())
    fabric.network.run_for(0.5)
    found = answer(saved(fabric, "L1"))
    assert reasons(found)[f"{S1}.00-00"] == "maxage"


# Ignored LSPs


def test_a_sound_database_has_nothing_to_ignore(document):
    for af in ("ipv4", "ipv6"):
        assert answer(document, "--af", af)["ignored"] == []


def test_an_lsp_that_has_run_out(document):
    entry = document["lsps"][place(document, S1)]
    entry["hex"] = with_lifetime(bytes.fromhex(entry["hex"]), 0).hex()
    found = reasons(answer(document))
    assert found[f"{S1}.00-00"] == "maxage"
    assert found[f"0000.0aff.0004 > {S1}"] == "one-way"


def test_a_wrong_checksum(document):
    entry = document["lsps"][place(document, S1)]
    raw = bytes.fromhex(entry["hex"])
    entry["hex"] = with_checksum(raw, checksum_of(raw) ^ 1).hex()
    assert reasons(answer(document))[f"{S1}.00-00"] == "checksum"


def test_lsps_that_cannot_be_read(document):
    lsps = document["lsps"]
    size = len(lsps)
    whole = lsps[0]["hex"]
    lsps += [
        {"level": 2, "hex": "zz"},
        {"level": 2, "hex": "8300"},
        {"level": 2, "hex": whole + "00"},
    ]
    lsps.append({"level": 1, "hex": whole})
    found = reasons(answer(document))
    assert found[f"level-2 lsp {size}"] == found[f"level-2 lsp {size + 1}"] == "malformed"
    assert list(found.values()) == ["malformed"] * 3
    assert len(found) == 3, "the last two are of the same LSP"


def test_a_link_that_the_far_end_does_not_confirm(document):
    number = place(document, "0000.0aff.0004")
    lsp = read(document, number)
    tlvs = tuple(
        replace(t, neighbors=tuple(n for n in t.neighbors if n.neighbor >> 8 != 0x0AFF0001))
        if isinstance(t, IsReachability)
        else t
        for t in lsp.tlvs
    )
    document["lsps"][number]["hex"] = write(replace(lsp, tlvs=tlvs))
    assert reasons(answer(document)) == {f"{S1} > 0000.0aff.0004": "one-way"}


def test_a_router_without_a_way_to_it(document):
    args = [arg for spine in ("S1", "S2") for arg in ("--fail-link", f"{spine},L2")]
    assert reasons(answer(document, *args)) == {"0000.0aff.0004": "unreachable"}


def test_fragments_without_the_first_one_do_not_count(document):
    """ISO 10589 §7.2.5."""
    number = place(document, S1)
    lsp = read(document, number)
    document["lsps"][number]["hex"] = write(replace(lsp, lsp_id=lsp.lsp_id | 1))
    found = reasons(answer(document))
    assert found[f"{S1}.00-01"] == "no-first-fragment"


def test_of_two_instances_the_newer_counts(document):
    number = place(document, S1)
    lsp = read(document, number)
    empty = replace(lsp, tlvs=lsp.tlvs[:2])
    before = answer(document)
    older = {"level": 2, "hex": write(replace(empty, sequence_number=lsp.sequence_number - 1))}
    document["lsps"].insert(0, older)
    assert answer(document) == before
    newer = {"level": 2, "hex": write(replace(empty, sequence_number=lsp.sequence_number + 1))}
    document["lsps"].insert(0, newer)
    assert len(answer(document)["routes"]) < len(before["routes"])


# Interfaces


def test_without_interfaces_next_hops_are_named_by_neighbor(document):
    live = table(answer(document), addresses=False)
    del document["interfaces"]
    found = answer(document)
    assert {hop["interface"] for route in found["routes"] for hop in route["nexthops"]} == {None}
    assert table(found, addresses=False) == live


def test_interfaces_with_nothing_but_what_is_promised(document):
    """The documented keys: name, type, addresses, adjacencies."""
    wanted = {af: offline(document, af) for af in ("ipv4", "ipv6")}
    for interface in document["interfaces"]:
        for key in ("ifindex", "metric", "bandwidth"):
            del interface[key]
        for adjacency in interface["adjacencies"]:
            adjacency["ipv6"] = [adjacency["ipv6"]]
    assert {af: offline(document, af) for af in wanted} == wanted


# Narrow metrics


def test_narrow_routers_can_be_asked_what_if_as_well():
    """Three routers in a row with the TLVs of RFC 1195 only."""

    def row(number: int, *neighbors: int) -> dict[str, object]:
        prefix = NarrowIpReach(ipv4_prefix(0x0A000000 | number << 8, 24), 5)
        tlvs = (
            ProtocolsSupported((NLPID_IPV4,)),
            NarrowIsReachability(tuple(NarrowNeighbor(n << 8, 10) for n in neighbors)),
            NarrowIpReachability((prefix,)),
        )
        return {"level": 1, "hex": encode_pdu(Lsp(1, lsp_id(number), 1, 1000, tlvs=tlvs)).hex()}

    document: Json = {
        "format": "fared-lsdb/1",
        "proto": "isis",
        "system_id": "0000.0000.0001",
        "lsps": [row(1, 2, 3), row(2, 1, 4), row(3, 1, 4), row(4, 2, 3)],
    }
    far = "10.0.4.0/24"
    assert offline(document, "ipv4")[far][:2] == (25, "level-1")
    ends = "0000.0000.0002,0000.0000.0004"
    assert offline(document, "ipv4", "--fail-link", ends)[far][3] == [("0000.0000.0003", None, 1)]
    dearer = offline(document, "ipv4", "--set-cost", f"{ends}=1000")
    assert dearer[far][3] == [("0000.0000.0003", None, 1)]
    rates = {"1 2": "400G", "1 3": "400G", "2 4": "100G", "3 4": "400G"}
    links = (
        ",".join(f"0000.0000.000{end}" for end in way.split()) + f"={rate}"
        for way, rate in rates.items()
    )
    args = [arg for link in links for arg in ("--set-bandwidth", link)]
    slower = offline(document, "ipv4", *args)
    assert [weight for _, _, weight in slower[far][3]] == [1, 4]


# Arguments


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--area", "0"), "this is an IS-IS database: use --level"),
        (("--level", "1"), "no level 1 in the database; known: 2"),
        (("--root", "0000.0aff.0009"), "did you mean"),
        (("--set-cost", "S1,L2=16777215"), "is not a metric: 1..16777214"),
        (("--fail-node", "L1"), "is the root"),
        (("--fail-link", "L1,L2"), "no link between L1 and L2; L1 has links to S1, S2"),
    ],
)
def test_usage_errors_give_a_hint(document, args, words):
    result = run_spf(document, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"system_id": "spine"}, "system_id: 'spine' is not a system id"),
        ({"lsps": 7}, "lsps: Input should be a valid list, not 7"),
        ({"lsps": [{"level": 3, "hex": ""}]}, "lsps.0.level:"),
        ({"interfaces": [{"name": "a", "addresses": ["x"]}]}, "interfaces.0.addresses.0"),
        ({"lsps": []}, "no LSP of 0000.0aff.0003 that routes IPv4"),
    ],
)
def test_a_file_that_is_no_database(document, change, words):
    result = run_spf({**document, **change})
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr


def test_explain_and_tables(document):
    found = answer(document, "--explain", "10.0.2.0/24", "--set-bandwidth", "S1,L2=100G")
    assert found["format"] == "fared-explain/1"
    assert found["nexthops"][0]["limiting_link"]["from_hostname"] == "S1"
    shown = run_spf(document, "--af", "ipv6").stdout
    assert shown.splitlines()[1].split()[:2] == ["2001:db8:0:1::/64", "L2"]
    changed = run_spf(document, "--diff", "--fail-link", "L1,S1", "--all").stdout
    assert "L1 (0000.0aff.0003)" in changed


# Any input

PLACES = st.deferred(lambda: st.sampled_from(places(_small())))


@settings(max_examples=100)
@given(st.lists(st.tuples(PLACES, ANYTHING), min_size=1, max_size=3))
def test_a_document_spoilt_anywhere_is_computed_or_refused(edits):
    assert_computed_or_refused(spoilt(_small(), edits))


@settings(max_examples=100)
@given(
    st.integers(0, 100),
    st.integers(0, 400),
    st.binary(min_size=1, max_size=8),
)
def test_lsps_spoilt_under_a_right_checksum_are_computed_with_or_ignored(number, at, garbage):
    document = copy.deepcopy(_small())
    entry = document["lsps"][number % len(document["lsps"])]
    raw = bytearray(bytes.fromhex(entry["hex"]))
    start = 26 + at % (len(raw) - 26)
    raw[start : start + len(garbage)] = garbage
    entry["hex"] = with_checksum(bytes(raw), checksum_of(bytes(raw))).hex()
    args = ("--fail-link", "S1,L1", "--overload", "S2", "--set-cost", "L1,S2=20")
    assert_computed_or_refused(document, "--af", "ipv6", *args)
