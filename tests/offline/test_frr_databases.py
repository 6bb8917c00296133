"""``spf`` and ``plan`` read what FRR prints as JSON, and name what is missing.

``tests/data/ospf/frr-database`` is of FRR 8.4.4: a point-to-point link, a LAN, an area border
router, external routes and TE links; ``capture.pcap`` has the same database, sent to a neighbor
that starts.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fared.extensions.foreign.frr.database import DatabaseError, documents_of, read_frr
from fared.extensions.offline.file import read_database
from fared.extensions.offline.world import FileError
from fared.management.cli.main import main
from fared.protocols.ospf.packet.lsa import raw_checksum_ok

DATA = Path(__file__).parent.parent / "data"
FRR = DATA / "ospf" / "frr-database"
DETAILS = ("router", "network", "summary", "asbr-summary", "external", "opaque-area")


def printed(*kinds: str) -> str:
    """What several commands print, one behind the other."""
    return "".join((FRR / f"{kind}.json").read_text() for kind in kinds)


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


def test_each_lsa_is_encoded_as_it_was_flooded():
    """FRR's checksum is that of the bytes; of long opaque LSAs it prints only the start."""
    found = read_frr(documents_of(printed(*DETAILS)))
    entries = [entry for area in found.document["areas"] for entry in area["lsas"]]
    entries += found.document["as"]
    assert len(entries) == 19
    assert all(raw_checksum_ok(bytes.fromhex(entry["hex"])) for entry in entries)
    assert len(found.cut) == 6
    assert {name.split()[0] for name in found.cut} == {"10"}


def test_newer_frr_prints_all_sections_as_one_document():
    document = {
        name: value for each in documents_of(printed(*DETAILS)) for name, value in each.items()
    }
    assert read_frr([document]) == read_frr(documents_of(printed(*DETAILS)))


def routes(result: Result) -> list:
    assert result.exit_code == 0, result.stderr
    roots = json.loads(result.stdout)["roots"]
    return [(root["root"], root["routes"]) for root in roots]


def test_a_capture_and_the_json_of_frr_give_the_same_routes(tmp_path: Path):
    """To each router, with the same weights."""
    captured = tmp_path / "captured.json"
    made = run("lsdb", "from-pcap", FRR / "capture.pcap")
    captured.write_text(made.stdout)
    of_capture = routes(run("spf", "--lsdb", captured, "--all", "--json"))
    of_frr = routes(run("spf", "--lsdb", "-", "--all", "--json", stdin=printed(*DETAILS)))
    assert of_frr == of_capture
    assert [len(found) for _, found in of_frr] == [11, 11, 6, 3]


def test_an_lsa_that_is_not_whole_is_named():
    done = run("spf", "--lsdb", "-", "--json", stdin=printed(*DETAILS))
    ignored = [
        each["key"] for each in json.loads(done.stdout)["ignored"] if each["reason"] == "truncated"
    ]
    assert "10 1.0.0.1 10.255.0.3" in ignored


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        (["headers"], ["router", "network", "summary", "asbr-summary", "external", "opaque-area"]),
        (["network"], ["router"]),
        (["router"], ["network", "summary"]),
        (["router", "network", "summary", "asbr-summary"], ["external"]),
        (["headers", "router", "network", "summary", "asbr-summary", "external"], ["opaque-area"]),
    ],
)
def test_a_missing_part_is_named_by_its_command(kinds: list[str], missing: list[str]):
    with pytest.raises(DatabaseError) as refused:
        read_frr(documents_of(printed(*kinds)))
    commands = ", ".join(f"'show ip ospf database {word} json'" for word in missing)
    assert str(refused.value).endswith(f"missing: {commands}")


def test_databases_of_two_routers_are_refused():
    other = printed("network").replace('"routerId": "10.255.0.1"', '"routerId": "10.255.0.9"')
    with pytest.raises(FileError, match=r"two routers, 10\.255\.0\.1 and 10\.255\.0\.9"):
        read_database(printed("router") + other)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xd4\xc3\xb2\xa1\x02\x00", "a capture: 'fared-cli lsdb from-pcap FILE'"),
        ("\n       OSPF Router with ID (10.255.0.1)\n\n", "the text that FRR prints of OSPF"),
        ("Area F:\nIS-IS Level-2 link-state database:\n", "the text that FRR prints of IS-IS"),
        ('{"areaScopedLinkStateDb": []}', "a database of OSPFv3"),
        ("{} {}", "several documents"),
        ('{"routerLinkStates": {"areas": {"0.0.0.0": [{}]}}}', "not what FRR prints"),
    ],
)
def test_another_file_is_called_by_its_name(text: str | bytes, words: str):
    with pytest.raises(FileError) as refused:
        read_database(text)
    assert words in str(refused.value)


def test_json_of_isis_is_refused_since_frr_prints_the_last_lsp_only():
    text = (DATA / "isis" / "frr-8.4-database.json").read_text()
    with pytest.raises(FileError, match="one link of each LSP"):
        read_database(text)


def test_all_of_a_database_without_routers_is_an_error():
    empty = {"format": "fared-lsdb/1", "proto": "ospf", "router_id": "10.0.0.1", "areas": []}
    done = run("spf", "--lsdb", "-", "--all", stdin=json.dumps(empty))
    assert done.exit_code == 1
    assert "no router LSA in the database" in done.stderr


@pytest.mark.parametrize(
    ("ethertype", "packet", "words"),
    [
        (0x86DD, bytes(6) + b"\x59" + bytes(40), "1 x OSPFv3"),
        (0x0800, b"\x45" + bytes(8) + b"\x2f" + bytes(20), "1 x GRE"),
    ],
)
def test_a_capture_of_a_tunnel_or_of_ospfv3_is_called_so(ethertype, packet, words, tmp_path):
    frame = bytes(12) + struct.pack(">H", ethertype) + packet
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    file = tmp_path / "x.pcap"
    file.write_bytes(header + struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    done = run("lsdb", "from-pcap", file)
    assert done.exit_code == 1
    assert words in done.stderr
