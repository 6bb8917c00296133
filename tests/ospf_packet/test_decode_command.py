"""``fared-cli decode``: the promised documents, from hex, lines and captures."""

import json
import random
import struct

import dpkt
import pytest
from click.testing import CliRunner

from fared.core.checksum import internet_checksum
from fared.core.wire import Reader
from fared.extensions.offline.cli.decode import decode
from fared.extensions.offline.ospf.decode import decode_document
from fared.protocols.igp.keys import Algorithm, AuthKey
from fared.protocols.ospf.auth.signature import sign
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import decode_lsa, encode_lsa
from fared.protocols.ospf.packet.packets import Hello, LsUpdate
from tests.packets.recorded import DATA, load

HELLO = encode_packet(0x0AFF0001, 0, Hello(0xFFFFFF00, 10, 2, 1, 40, 0x0A000001, 0, (0x0AFF0002,)))
TE = load("ospf/frr-point-to-point-te")


def run(*arguments, stdin=None):
    return CliRunner().invoke(decode, ["--proto", "ospf", *arguments], input=stdin)


def document(*arguments, code=0):
    result = run("--json", *arguments)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def ipv4(payload, *, ident=1, flags=0, offset=0):
    """An IPv4 header from 10.128.0.0 to 224.0.0.5 in front; its checksum is not looked at."""
    fields = (0x45, 0, 20 + len(payload), ident, flags | offset // 8, 1, 89, 0)
    return struct.pack(">BBHHHBBHII", *fields, 0x0A800000, 0xE0000005) + payload


def capture(path, frames, link_type=1, writer=dpkt.pcap.Writer):
    with path.open("wb") as file:
        out = writer(file, linktype=link_type)
        for number, frame in enumerate(frames):
            out.writepkt(frame, ts=number)
    return str(path)


def update_of(payloads):
    return next(p for p in payloads if p.payload[1] == 4 and b"\x0a\x01\x00\x00\x01" in p.payload)


def test_hello_document():
    assert document(HELLO.hex()) == {
        "format": "fared-decode/1",
        "proto": "ospf",
        "form": "packet",
        "ok": True,
        "packet": {
            "packet": "hello",
            "version": 2,
            "router_id": "10.255.0.1",
            "area": "0.0.0.0",
            "au_type": 0,
            "network_mask": "255.255.255.0",
            "hello_interval": 10,
            "dead_interval": 40,
            "options": 2,
            "options_names": ["E"],
            "priority": 1,
            "dr": "10.0.0.1",
            "bdr": "0.0.0.0",
            "neighbors": ["10.255.0.2"],
        },
        "auth": {"type": "none", "verified": None},
    }


def test_every_bit_of_the_options_has_its_name():
    """RFC 2328 §A.2, RFC 5250, and RFC 5613: an LLS data block follows the packet."""
    hello = bytearray(HELLO)
    hello[30] = 0x52
    found = document(encoded_again(hello).hex())["packet"]
    assert found["options_names"] == ["E", "L", "O"]


def encoded_again(packet: bytearray) -> bytes:
    """The packet with a right checksum; no authentication."""
    packet[12:14] = bytes(2)
    packet[12:14] = internet_checksum(bytes(packet[:16] + packet[24:])).to_bytes(2, "big")
    return bytes(packet)


def test_database_description_document():
    packet = next(p for p in TE if p.payload[1] == 2 and len(p.payload) > 32)
    content = document(packet.payload.hex())["packet"]
    assert content["packet"] == "database-description"
    assert (content["mtu"], content["flags"]) == (1500, 0)
    assert content["dd_seq"] > 0
    header = content["lsa_headers"][0]
    assert (header["type"], header["type_name"]) == (1, "router")
    assert header["seq"] == 0x80000003
    assert {"id", "adv_router", "age", "checksum", "length", "options"} <= header.keys()


def test_te_document_of_frr():
    """One LSA with both TLVs: both promised keys."""
    lsa = document(update_of(TE).payload.hex())["packet"]["lsas"][0]
    assert lsa["checksum_ok"] is True
    assert lsa["body"]["te_router_address"] == "10.255.0.1"
    link = lsa["body"]["te_link"]
    assert link["link_id"] == "10.255.0.2"
    assert link["local_addresses"] == ["10.128.0.0"]
    assert link["unreserved_bandwidth"] == [10e6] * 8
    assert (link["available_bandwidth"], link["residual_bandwidth"]) == (4e6, 9e6)
    assert (link["delay"], link["min_max_delay"], link["delay_variation"]) == (10, [5, 20], 3)


def test_router_lsa_document():
    bodies = [
        lsa["body"]
        for packet in TE
        if packet.payload[1] == 4
        for lsa in document(packet.payload.hex())["packet"]["lsas"]
        if lsa["type"] == 1
    ]
    link = bodies[0]["links"][0]
    assert link.keys() == {"type", "type_name", "id", "data", "metric"}
    assert (link["type"], link["type_name"]) in {(1, "point-to-point"), (3, "stub")}
    assert bodies[0]["flags"] & 2


def test_an_ip_header_may_stand_in_front():
    assert document(ipv4(HELLO).hex())["packet"] == document(HELLO.hex())["packet"]


def test_hex_may_have_spaces_and_colons():
    assert document(HELLO.hex(":"))["ok"]
    assert document(HELLO.hex(" ", 4).upper())["ok"]


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (HELLO[:40], "truncated", 40),
        (b"\x03" + HELLO[1:], "version", 0),
        (HELLO[:1] + b"\x09" + HELLO[2:], "type", 1),
        (HELLO[:2] + b"\x00\x05" + HELLO[4:], "length", 2),
        (HELLO[:30] + b"\xff" + HELLO[31:], "checksum", 12),
        (ipv4(HELLO[:30] + b"\xff" + HELLO[31:]), "checksum", 32),
        (ipv4(HELLO, flags=0x2000), "truncated", 6),
        (ipv4(HELLO)[:9] + b"\x06" + ipv4(HELLO)[10:], "type", 9),
        (b"", "truncated", 0),
    ],
)
def test_malformed_packets_say_what_and_where(data, code, offset):
    failed = document(data.hex(), code=1)
    assert failed["ok"] is False
    assert (failed["error"]["code"], failed["error"]["offset"]) == (code, offset)
    assert failed["error"]["message"]


def test_a_malformed_te_body_is_an_error_at_its_byte():
    """Header 24, count 4, LSA header 20, TLV 4: the sub-TLV's value is at 56."""
    lsa = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=10,
        link_state_id=1 << 24,
        advertising_router=1,
        ls_sequence_number=1,
        body=bytes.fromhex("0002 0008 0006 0003 4b3ebc20"),
    )
    error = document(encode_packet(1, 0, LsUpdate((lsa,))).hex(), code=1)["error"]
    assert (error["code"], error["offset"]) == ("tlv", 56)
    assert document("--form", "lsa", lsa.raw.hex(), code=1)["error"]["offset"] == 28


def test_a_wrong_lsa_checksum_is_told_not_refused():
    raw = bytearray(update_of(TE).payload[28 : 28 + 192])
    raw[16] ^= 1
    result = document("--form", "lsa", "--reencode", raw.hex())
    assert result["lsa"]["checksum_ok"] is False
    assert result["identical"] is False


def test_one_lsa():
    raw = update_of(TE).payload[28 : 28 + 192]
    result = document("--form", "lsa", "--reencode", raw.hex())
    assert (result["form"], result["ok"], result["identical"]) == ("lsa", True, True)
    assert result["lsa"]["id"] == "1.0.0.1"
    assert document("--form", "lsa", raw.hex() + "00", code=1)["error"]["code"] == "length"


def test_tlvs_alone():
    raw = update_of(TE).payload[48 : 28 + 192]
    result = document("--form", "tlvs", "--reencode", raw.hex())
    assert result["tlvs"]["te_router_address"] == "10.255.0.1"
    assert result["tlvs"]["te_link"]["admin_group"] == 0xABCD
    assert result["tlv_order"] == [[1, 4], [2, 160]]
    assert result["identical"] is True
    other = document("--form", "tlvs", "--reencode", "00070005 6c65616631000000 0063000100000000")
    assert other["tlvs"] == {"hostname": "leaf1", "unknown": [{"type": 99, "hex": "00"}]}
    assert document("--form", "tlvs", "00010005", code=1)["error"]["code"] == "tlv"


def test_floats_json_cannot_say():
    result = document("--form", "tlvs", "00020010 0006 0004 7fc00000 0007 0004 ff800000")
    assert result["tlvs"]["te_link"]["max_bandwidth"] == "NaN"
    assert result["tlvs"]["te_link"]["max_reservable_bandwidth"] == "-Infinity"


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("md5:1:se:cret", AuthKey(Algorithm.MD5, 1, b"se:cret")),
        ("hmac-sha256:1:secret", AuthKey(Algorithm.HMAC_SHA_256, 1, b"secret")),
        ("hmac-sha-512:200:secret", AuthKey(Algorithm.HMAC_SHA_512, 200, b"secret")),
        ("cleartext:secret", AuthKey(Algorithm.CLEARTEXT, 0, b"secret")),
    ],
)
def test_authentication_is_verified(option, key):
    signed = sign(HELLO, key, 99)
    result = document("--auth", option, "--reencode", signed.hex())
    assert result["auth"]["type"] == key.algorithm.value
    assert result["auth"]["verified"] is True
    assert result["auth"].get("key_id", 0) == key.key_id
    assert result["identical"] is True
    assert document("--auth", option + "x", signed.hex(), code=1)["error"]["code"] == "auth"
    assert document("--auth", option, HELLO.hex(), code=1)["error"]["code"] == "auth"


def test_the_source_address_counts_for_extended_sequence_numbers():
    key = AuthKey(Algorithm.HMAC_SHA_256, 1, b"secret", extended=True)
    signed = sign(HELLO, key, 1 << 40, 0x0A800000)
    result = document("--auth", "hmac-sha-256:1:secret", ipv4(signed).hex())
    assert result["auth"]["sequence"] == 1 << 40
    assert (
        document("--auth", "hmac-sha-256:1:secret", signed.hex(), code=1)["error"]["code"] == "auth"
    )


def test_lines_never_stop_at_a_bad_one():
    lines = ["# a comment", HELLO.hex(), "", "zz", HELLO.hex()[:-1], "0201", HELLO.hex()]
    result = run("-", stdin="\n".join(lines))
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [d["ok"] for d in documents] == [True, False, False, False, True]
    assert {d["error"]["code"] for d in documents if not d["ok"]} == {"truncated"}
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("session", "options"),
    [
        ("ospf/frr-point-to-point-te", []),
        ("ospf/frr-broadcast-md5", ["--auth", "md5:1:fabricsecret"]),
    ],
)
def test_recorded_sessions_encode_to_the_same_bytes(session, options):
    result = run("--reencode", *options, "-", stdin=(DATA / f"{session}.hex").read_text())
    assert result.exit_code == 0
    assert all(json.loads(line)["identical"] for line in result.stdout.splitlines())


@pytest.mark.parametrize("form", ["packet", "lsa", "tlvs"])
def test_whatever_is_decoded_gives_a_json_document(form):
    """Recorded packets with a few bytes changed, in every form, encoded again."""
    rng = random.Random(form)
    packets = [p.payload for p in TE]
    updates = [p for p in packets if p[1] == 4]
    originals = {
        # AuType 2 has no checksum, so that changes reach the bodies.
        "packet": [p[:12] + b"\0\0\0\2" + p[16:] for p in packets],
        "lsa": [p[28 : 28 + int.from_bytes(p[46:48], "big")] for p in updates],
        "tlvs": [update_of(TE).payload[48 : 28 + 192]],
    }[form]
    outcomes = set()
    for _ in range(1000):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.randint(0, 2)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 4, 255, rng.randrange(256)))
        made = decode_document(bytes(data), form, reencode=True)
        json.dumps(made, allow_nan=False)
        outcomes.add((made["ok"], made.get("identical")))
    assert {(True, True), (True, False), (False, None)} <= outcomes


def test_a_packet_that_outgrows_its_length_when_encoded():
    """The padding that was missing at the very end is one byte too many."""
    body = bytes.fromhex("63ff") + (65535 - 48 - 5).to_bytes(2, "big") + bytes(65535 - 48 - 4)
    raw = encode_lsa(
        ls_age=1,
        options=2,
        ls_type=10,
        link_state_id=4 << 24,
        advertising_router=1,
        ls_sequence_number=1,
        body=body[:-1],
    ).raw
    packet = encode_packet(1, 0, LsUpdate((decode_lsa(Reader(raw)),)), au_type=2)
    made = decode_document(packet, "packet", reencode=True)
    assert (made["ok"], made["reencoded"], made["identical"]) == (True, None, False)


ETHERNET = bytes(12) + b"\x08\x00"
VLAN = bytes(12) + b"\x81\x00\x00\x07\x08\x00"
COOKED = bytes(14) + b"\x08\x00"
COOKED_2 = b"\x08\x00" + bytes(18)


@pytest.mark.parametrize("writer", [dpkt.pcap.Writer, dpkt.pcapng.Writer])
@pytest.mark.parametrize(
    ("link_type", "header"), [(1, ETHERNET), (1, VLAN), (101, b""), (113, COOKED), (276, COOKED_2)]
)
def test_captures_of_all_kinds(tmp_path, link_type, header, writer):
    frames = [b"", header, bytes(14) + b"\x86\xdd", header + ipv4(HELLO) + bytes(6)]
    path = capture(tmp_path / "a.pcap", frames, link_type, writer)
    result = document(path)
    assert result["packet"]["packet"] == "hello"
    assert (result["frame"], result["source"]) == (4, "10.128.0.0")
    assert result["destination"] == "224.0.0.5"


def test_fragments_are_joined(tmp_path):
    """Large updates leave as IP fragments, which may arrive in any order."""
    parts = [
        ipv4(HELLO[24:], offset=24),
        ipv4(HELLO, ident=2),
        ipv4(HELLO[:24], flags=0x2000),
        ipv4(HELLO[:24], ident=3, flags=0x2000),
    ]
    path = capture(tmp_path / "a.pcap", [ETHERNET + part for part in parts])
    documents = [json.loads(line) for line in run("--json", path).stdout.splitlines()]
    assert [(d["frame"], d["ok"]) for d in documents] == [(2, True), (3, True)]


def test_one_bad_packet_in_a_capture(tmp_path):
    path = capture(tmp_path / "a.pcap", [ETHERNET + ipv4(HELLO[:30]), ETHERNET + ipv4(HELLO)])
    result = run(path)
    assert result.exit_code == 1
    assert "malformed (truncated) at byte 30" in result.stderr
    assert "neighbors: 10.255.0.2" in result.stdout


@pytest.mark.parametrize("content", [b"", b"no capture at all, just text", bytes(100)])
def test_files_that_are_no_captures(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    result = run(str(path))
    assert result.exit_code == 1
    assert "not a pcap" in result.stderr


def test_a_capture_without_ospf(tmp_path):
    result = run(capture(tmp_path / "a.pcap", [bytes(60)]))
    assert result.exit_code == 1
    assert "no OSPF packets" in result.stderr


def test_text_is_for_people():
    text = run(update_of(TE).payload.hex()).stdout
    assert "  lsas:\n    - type: 10\n      type_name: opaque-area\n" in text
    assert "available_bandwidth: 4000000.0" in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["no-such-file"], "neither hexadecimal nor a file"),
        (["--auth", "rot13:1:key", "00"], "known are cleartext, md5"),
        (["--auth", "hmac-md5:1:key", "00"], "known are cleartext, md5"),
        (["--auth", "md5:key", "00"], "md5:1:secret"),
        (["--form", "lsa", "--auth", "md5:1:key", "00"], "only packets are authenticated"),
        (["--form", "page", "00"], "'packet', 'lsa', 'tlvs'"),
        ([], "Missing argument"),
    ],
)
def test_usage_errors_have_a_hint(arguments, hint):
    result = run(*arguments)
    assert result.exit_code == 2
    assert hint in result.stderr
