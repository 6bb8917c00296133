"""``spf`` and ``plan`` read what FRR prints as JSON, and name what is missing.

``tests/data/ospf/frr-database`` is of FRR 8.4.4: a point-to-point link, a LAN, an area border
router, external routes and TE links; ``capture.pcap`` has the same database, sent to a neighbor
that starts.
"""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


# -- IS-IS ---------------------------------------------------------------------------------------

ARRAYS = {
    "areas": [
        {
            "area": {"name": "F"},
            "levels": [{}, {"id": 2, "lsps": [], "count": 4}],
        }
    ]
}
"""What later versions print, with a list of links and one of prefixes in each LSP."""
HOSTNAMES = """vrf     : default
Level  System ID      Dynamic Hostname
2      0102.5500.0002 b
2      0102.5500.0003 a-very-long-name
     * 0102.5500.0001 a
"""


def lsp(name: str, number: int, links: dict[str, int], hostname: str = "") -> dict:
    """One LSP as FRR prints it. ``links``: metrics by neighbor."""
    found = {
        "lsp": {"id": f"{name}", "own": "*" if number == 1 else " "},
        "pduLen": 100,
        "seqNumber": "0x00000003",
        "chksum": "0x0477",
        "holdtime": 1100,
        "attPOl": "0/0/0",
        "extReach": [
            {"mtId": "Extended", "id": neighbor, "metric": metric}
            for neighbor, metric in links.items()
        ],
    }
    if hostname:
        found |= {
            "supportedProtocols": {"0": "IPv4", "1": "IPv6"},
            "areaAddr": "49.0001",
            "hostname": hostname,
            "teRouterId": f"10.255.0.{number}",
            "extIpReach": [
                {
                    "mtId": "Extended",
                    "ipReach": f"10.255.0.{number}/32",
                    "ipReachMetric": 5,
                    "down": False,
                }
            ],
            "ipv6Reach": [
                {"prefix": f"fd00::{number}/128", "metric": 7, "down": False, "external": False}
            ],
        }
    return found


def printed_lsps(*lsps: dict) -> str:
    document = json.loads(json.dumps(ARRAYS))
    document["areas"][0]["levels"][1]["lsps"] = list(lsps)
    return json.dumps(document, indent=2) + "\n"


TRIANGLE = (
    lsp("a.00-00", 1, {"0102.5500.0002.00": 10, "0102.5500.0003.07": 30}, "a"),
    lsp("b.00-00", 2, {"0102.5500.0001.00": 10, "0102.5500.0003.07": 15}, "b"),
    lsp("a-very-long-na.00-00", 3, {"0102.5500.0003.07": 20}, "a-very-long-name"),
    lsp("a-very-long-na.07-00", 0, {f"0102.5500.000{n}.00": 0 for n in (1, 2, 3)}),
)
"""Two routers linked, and both with a third one on a LAN, of which that is the designated one."""


@pytest.mark.parametrize("af", ["ipv4", "ipv6"])
def test_later_versions_print_all_links_of_isis(af: str):
    text = printed_lsps(*TRIANGLE) + HOSTNAMES
    result = run("spf", "--lsdb", "-", "--all", "--json", "--af", af, stdin=text)
    prefix, own = ("10.255.0.{}/32", 5) if af == "ipv4" else ("fd00::{}/128", 7)
    metrics = {
        (root, route["prefix"]): route["metric"]
        for root, found in routes(result)
        for route in found
    }
    distances = {(1, 2): 10, (1, 3): 25, (2, 1): 10, (2, 3): 15, (3, 1): 20, (3, 2): 20}
    assert (
        metrics.items()
        >= {
            (f"0102.5500.000{a}", prefix.format(b)): distance + own
            for (a, b), distance in distances.items()
        }.items()
    )


def test_links_with_sub_tlvs_are_named_since_these_are_not_read():
    """Their names in later versions have not been seen: capacities are not known."""
    changed = json.loads(json.dumps(TRIANGLE))
    changed[1]["extReach"][0]["teMetric"] = 10
    result = run("spf", "--lsdb", "-", "--json", stdin=printed_lsps(*changed) + HOSTNAMES)
    assert json.loads(result.stdout)["ignored"] == [{"key": "b.00-00", "reason": "truncated"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (printed_lsps(*TRIANGLE), "LSP a.00-00: who is a? vtysh -c 'show isis database detail"),
        (
            printed_lsps(*TRIANGLE) + HOSTNAMES + "2      0102.5500.0004 a-very-long-nam2\n",
            "two systems are called a-very-long-na",
        ),
        (
            printed_lsps(
                lsp("a.00-00", 1, {}) | {"extReach": [{"mtId": "MT", "id": "x", "metric": 1}]}
            )
            + HOSTNAMES,
            "multi-topology",
        ),
        (printed_lsps({"pduLen": 1}), "not what FRR prints"),
    ],
)
def test_lsps_that_cannot_be_read_are_refused(text: str, words: str):
    with pytest.raises(FileError) as refused:
        read_database(text)
    assert words in str(refused.value)


def places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside."""
    listed = part if isinstance(part, list) else ()
    for key, value in part.items() if isinstance(part, dict) else enumerate(listed):
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("value", [None, 10**13, "x", [1], {"a": 1}], ids=str)
def test_any_other_value_is_read_or_refused(value: object):
    text = printed_lsps(*TRIANGLE)
    for path in places(json.loads(text)):
        document = at = json.loads(text)
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        with contextlib.suppress(FileError):
            read_database(json.dumps(document) + "\n" + HOSTNAMES)


def test_json_of_isis_that_has_one_link_of_each_lsp_is_refused():
    """FRR 8.4 prints the last LSP only, later versions each LSP with its last link."""
    text = (DATA / "isis" / "frr-8.4-database.json").read_text()
    with pytest.raises(FileError, match="one link of each LSP"):
        read_database(text)
    document = json.loads(text)
    level = document["areas"][0]["levels"][1]
    level["lsps"] = [{key: level.pop(key) for key in list(level) if key not in ("id", "count")}]
    with pytest.raises(FileError, match="one link of each LSP"):
        read_database(json.dumps(document))


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
