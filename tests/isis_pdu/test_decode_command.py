"""``fared-cli decode --proto isis``: documents of hex text, lines and captures."""

import json
import struct

import dpkt
import pytest
from click.testing import CliRunner

from fared.core.ids import parse_prefix
from fared.extensions.offline.cli.decode import decode
from fared.paths.te.attributes import TeAttributes
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.isis.ids import LevelSet, lsp_id
from fared.protocols.isis.pdu.codec import encode_pdu, encode_tlvs, with_checksum, with_lifetime
from fared.protocols.isis.pdu.model import Csnp, Lsp, P2pHello
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsReachability,
    LspEntries,
    LspEntry,
    ProtocolsSupported,
    ThreeWay,
)
from tests.packets.recorded import ISIS, ISIS_LAN, ISIS_P2P, load

R1 = 0x010255000001
LSP = Lsp(
    2,
    lsp_id(R1),
    8,
    1199,
    overload=True,
    tlvs=(
        AreaAddresses((b"\x49\0\1",)),
        ProtocolsSupported((0xCC, 0x8E)),
        Hostname("leaf1"),
        InterfaceAddresses(4, (0x0AFF0001,)),
        IsReachability(
            (
                IsNeighbor(
                    0x01025500000200,
                    10,
                    TeAttributes(available_bandwidth=1e6, max_bandwidth=float("nan")),
                    (0x0A800000,),
                ),
            )
        ),
        IpReachability(
            4, (IpReach(parse_prefix("10.0.1.0/24"), 20, True, tags=(7,), capacity=1e9),)
        ),
        IpReachability(6, (IpReach(parse_prefix("fd00:1::/64"), 20),)),
        IpReachability(6, (IpReach(parse_prefix("fd00:2::/64"), 20),), 2),
    ),
)
HELLO = P2pHello(LevelSet.TWO, R1, 30, 1, (ThreeWay(0, 3, R1 + 1, 4),))
LLC = b"\xfe\xfe\x03"
MULTICAST = bytes.fromhex("09002b000005")
SOURCE = bytes.fromhex("020000000001")


def run(*arguments, stdin=None):
    return CliRunner().invoke(decode, ["--proto", "isis", *arguments], input=stdin)


def document(*arguments, code=0):
    result = run("--json", *arguments)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def frame(pdu, tag=b""):
    body = LLC + pdu
    return MULTICAST + SOURCE + tag + struct.pack(">H", len(body)) + body


def capture(path, frames, link_type=1):
    with path.open("wb") as file:
        out = dpkt.pcap.Writer(file, linktype=link_type)
        for number, data in enumerate(frames):
            out.writepkt(data, ts=number)
    return str(path)


def test_lsp_document():
    raw = encode_pdu(LSP)
    found = document(raw.hex())
    packet = found.pop("packet")
    assert found == {
        "format": "fared-decode/1",
        "proto": "isis",
        "form": "packet",
        "ok": True,
        "auth": {"type": "none", "verified": None},
    }
    assert packet == {
        "pdu": "l2-lsp",
        "level": 2,
        "source": "0102.5500.0001",
        "lsp_id": "0102.5500.0001.00-00",
        "seq": 8,
        "lifetime": 1199,
        "checksum": int.from_bytes(raw[24:26], "big"),
        "overload": True,
        "attached": False,
        "partition_repair": False,
        "is_type": 3,
        "tlvs": {
            "area_addresses": ["49.0001"],
            "protocols": [204, 142],
            "protocols_names": ["ipv4", "ipv6"],
            "hostname": "leaf1",
            "ip_addresses": ["10.255.0.1"],
            "ext_is_reach": [
                {
                    "neighbor": "0102.5500.0002.00",
                    "metric": 10,
                    "sub": {
                        "local_addresses": ["10.128.0.0"],
                        "max_bandwidth": "NaN",
                        "available_bandwidth": 1e6,
                    },
                }
            ],
            "ext_ip_reach": [
                {
                    "prefix": "10.0.1.0/24",
                    "metric": 20,
                    "down": True,
                    "tags": [7],
                    "capacity": 1e9,
                }
            ],
            "ipv6_reach": [
                {"prefix": "fd00:1::/64", "metric": 20, "down": False, "external": False}
            ],
            "mt_ipv6_reach": [
                {
                    "topology": 2,
                    "prefix": "fd00:2::/64",
                    "metric": 20,
                    "down": False,
                    "external": False,
                }
            ],
        },
        "tlv_order": [
            [1, 4],
            [129, 2],
            [137, 5],
            [132, 4],
            [22, 29],
            [135, 21],
            [236, 14],
            [237, 16],
        ],
    }


def test_hello_document():
    packet = document(encode_pdu(HELLO).hex())["packet"]
    assert packet["pdu"] == "p2p-hello"
    assert packet["level"] is None
    assert packet["source"] == "0102.5500.0001"
    assert packet["tlvs"]["three_way"] == {
        "state": 0,
        "state_name": "up",
        "extended_local_circuit_id": 3,
        "neighbor_system_id": "0102.5500.0002",
        "neighbor_extended_local_circuit_id": 4,
    }


def test_csnp_document():
    entries = LspEntries((LspEntry(lsp_id(R1), 8, 1199, 0xABCD),))
    packet = document(encode_pdu(Csnp(2, R1 << 8, 0, 2**64 - 1, (entries,))).hex())["packet"]
    assert (packet["start"], packet["end"]) == ("0000.0000.0000.00-00", "ffff.ffff.ffff.ff-ff")
    assert packet["tlvs"]["lsp_entries"] == [
        {"lsp_id": "0102.5500.0001.00-00", "seq": 8, "lifetime": 1199, "checksum": 0xABCD}
    ]


@pytest.mark.parametrize("tag", [b"", b"\x81\x00\x00\x0a", b"\x88\xa8\x00\x01\x81\x00\x00\x0a"])
def test_headers_in_front_are_taken_off(tag):
    raw = encode_pdu(HELLO)
    expected = document(raw.hex())
    assert document((LLC + raw).hex()) == expected
    assert document((frame(raw, tag) + bytes(4)).hex()) == expected


def test_offsets_count_what_stands_in_front():
    raw = bytearray(encode_pdu(HELLO))
    raw[2] = 9
    assert document(raw.hex(), code=1)["error"]["offset"] == 2
    assert document((LLC + bytes(raw)).hex(), code=1)["error"]["offset"] == 5


@pytest.mark.parametrize("recorded", load(*ISIS)[::5], ids=lambda r: r.comment[:20])
def test_recorded_pdus_encode_to_the_same(recorded):
    found = document("--reencode", recorded.payload.hex())
    assert found["identical"]
    assert found["reencoded"] == recorded.payload.hex()


def test_checksum_of_zero_in_a_purge_is_kept():
    raw = with_checksum(with_lifetime(encode_pdu(LSP), 0), 0)
    assert document("--reencode", raw.hex())["identical"]


def test_authentication_is_verified():
    payload = next(p for _, p in load(ISIS_LAN) if p[4] == 20)
    plain = document(payload.hex())
    assert plain["auth"] == {"type": "md5", "verified": None}
    good = document("--auth", "md5:1:domainsecret", payload.hex())
    assert good["auth"] == {"type": "md5", "verified": True}
    assert document("--auth", "hmac-md5:1:domainsecret", payload.hex()) == good
    bad = document("--auth", "md5:1:other", payload.hex(), code=1)
    assert bad["error"]["code"] == "auth"


def test_generic_authentication_tells_its_key_id():
    raw = encode_pdu(LSP, AuthKey(Algorithm.HMAC_SHA_256, 9, b"secret"))
    found = document("--auth", "hmac-sha256:9:secret", raw.hex())
    assert found["auth"] == {"type": "hmac-sha-256", "key_id": 9, "verified": True}
    assert document("--auth", "hmac-sha256:8:secret", raw.hex(), code=1)["error"]["code"] == "auth"


def test_passwords_are_not_shown():
    raw = encode_pdu(HELLO, AuthKey(Algorithm.CLEARTEXT, 0, b"topsecret"))
    result = run("--json", "--auth", "cleartext:topsecret", raw.hex())
    assert json.loads(result.stdout)["auth"] == {"type": "cleartext", "verified": True}
    assert "topsecret" not in result.stdout


def test_tlvs_form():
    data = encode_tlvs(LSP.tlvs[:3])
    found = document("--form", "tlvs", "--reencode", data.hex())
    assert found["tlvs"]["hostname"] == "leaf1"
    assert found["tlv_order"] == [[1, 4], [129, 2], [137, 5]]
    assert found["identical"]


def test_daemon_tolerates_what_decode_reports():
    """A sub-TLV of a wrong size."""
    data = "1610" + "01025500000200" + "00000a" + "05" + "0903aabbcc"
    assert document("--form", "tlvs", data, code=1)["error"]["code"] == "tlv"


def test_wrong_checksum_is_an_error():
    raw = with_checksum(encode_pdu(LSP), 1)
    assert document(raw.hex(), code=1)["error"] == {
        "code": "checksum",
        "offset": 24,
        "message": f"checksum 0x0001, not {encode_pdu(LSP)[24:26].hex():0>6}".replace(
            "not 00", "not 0x"
        ),
    }


def test_isis_has_no_lsas():
    assert run("--form", "lsa", "83").exit_code == 2


def test_a_bad_line_does_not_stop_the_rest():
    good = encode_pdu(HELLO).hex()
    lines = "\n".join((good, good[:30], "# comment", "xyz", good))
    result = run("-", stdin=lines)
    assert result.exit_code == 1
    assert [json.loads(line)["ok"] for line in result.stdout.splitlines()] == [
        True,
        False,
        False,
        True,
    ]


def test_capture(tmp_path):
    raws = [payload for _, payload in load(ISIS_P2P)[:5]]
    tagged = frame(raws[0], b"\x81\x00\x00\x0a")
    other = MULTICAST + SOURCE + b"\x08\x00" + bytes(40)
    path = capture(tmp_path / "x.pcap", [*map(frame, raws), other, tagged])
    result = run("--json", path)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [d["frame"] for d in found] == [1, 2, 3, 4, 5, 7]
    assert found[-1]["packet"] == found[0]["packet"]
    assert found[0]["source"] == "02:00:00:00:00:01"
    assert found[0]["destination"] == "09:00:2b:00:00:05"


def test_cooked_capture(tmp_path):
    raw = encode_pdu(HELLO)
    cooked = struct.pack(">HHH8sH", 2, 1, 6, SOURCE + bytes(2), 4) + LLC + raw
    path = capture(tmp_path / "x.pcap", [cooked], 113)
    assert document(path)["source"] is None
    assert "p2p-hello" in run(path).stdout


def test_capture_without_isis(tmp_path):
    result = run(capture(tmp_path / "x.pcap", [bytes(60)]))
    assert result.exit_code == 1
    assert "no IS-IS packets" in result.output


def test_text_for_people():
    out = run(encode_pdu(LSP).hex()).stdout
    assert "  lsp_id: 0102.5500.0001.00-00" in out
    assert "hostname: leaf1" in out
