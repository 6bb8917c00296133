"""``lsdb from-pcap`` over IS-IS: a database from captured LSPs."""

from __future__ import annotations

import json

import dpkt
import pytest

from fared.extensions.sim.levels import clos3_isis
from fared.protocols.isis.ids import lsp_id
from fared.protocols.isis.pdu.codec import checksum_of, encode_pdu, with_checksum, with_lifetime
from fared.protocols.isis.pdu.header import set_length
from fared.protocols.isis.pdu.model import Lsp, PduType
from fared.protocols.isis.pdu.tlvs import NLPID_IPV4, Hostname, ProtocolsSupported
from tests.offline.fabrics import Json, answer, run_lsdb
from tests.offline.isis_fabrics import offline, saved, started
from tests.offline.test_from_capture import ip, lsa, update

LLC = b"\xfe\xfe\x03"
START = 1_700_000_000.0


def frame(pdu: bytes) -> bytes:
    """An 802.3 frame to all level-2 systems."""
    body = LLC + pdu
    header = bytes.fromhex("0180c2000015020000000001") + len(body).to_bytes(2, "big")
    return header + body


def capture(path, frames: list[tuple[float, bytes]]) -> str:
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for time, data in frames:
            writer.writepkt(data, START + time)
        writer.close()
    return str(path)


def rebuilt(path: str, *args: str) -> Json:
    result = run_lsdb("from-pcap", path, *args)
    assert result.exit_code == 0, result.stderr
    document: Json = json.loads(result.stdout)
    return document


def lsp(sequence: int, *, lifetime: int = 1200, name: str = "r1", level: int = 2) -> bytes:
    return encode_pdu(
        Lsp(
            level,
            lsp_id(1),
            sequence,
            lifetime,
            tlvs=(Hostname(name), ProtocolsSupported((NLPID_IPV4,))),
        )
    )


def sequences(document: Json) -> list[tuple[int, int, int]]:
    """Level, sequence number and lifetime of each LSP."""
    raws = [(entry["level"], bytes.fromhex(entry["hex"])) for entry in document["lsps"]]
    return [
        (level, int.from_bytes(raw[20:24], "big"), int.from_bytes(raw[10:12], "big"))
        for level, raw in raws
    ]


def test_a_captured_fabric_computes_like_the_saved_one(tmp_path):
    document = saved(started(clos3_isis(2, 3)), "L1")
    frames = [
        (number / 10, frame(bytes.fromhex(entry["hex"])))
        for number, entry in enumerate(document["lsps"][::-1])
    ]
    found = rebuilt(capture(tmp_path / "a.pcap", frames))
    assert found["proto"] == "isis"
    assert "interfaces" not in found
    for af in ("ipv4", "ipv6"):
        args = ("--root", document["system_id"])
        assert offline(found, af, *args, addresses=False) == offline(document, af, addresses=False)


def test_the_newest_of_each_level_wins_whatever_the_order(tmp_path):
    frames = [
        (0, frame(lsp(3))),
        (1, frame(lsp(5))),
        (2, frame(lsp(4))),
        (2, frame(lsp(7, level=1))),
    ]
    found = rebuilt(capture(tmp_path / "a.pcap", frames))
    assert sequences(found) == [(1, 7, 1200), (2, 5, 1199)]


def test_lifetimes_are_those_at_the_end_and_a_purge_stays_one(tmp_path):
    frames = [(0, frame(lsp(3))), (100, frame(lsp(1, level=1)))]
    assert sequences(rebuilt(capture(tmp_path / "a.pcap", frames)))[1] == (2, 3, 1100)
    purged = with_lifetime(lsp(3), 0)
    found = rebuilt(capture(tmp_path / "b.pcap", [(0, frame(lsp(3))), (1, frame(purged))]))
    assert sequences(found) == [(2, 3, 0)]


def test_what_cannot_be_used_is_counted(tmp_path):
    good = lsp(3)
    spoilt = with_checksum(good, checksum_of(good) ^ 1)
    cut = set_length(good[:40], PduType.L2_LSP)[:-4]
    path = capture(tmp_path / "a.pcap", [(0, frame(good)), (1, frame(spoilt)), (2, frame(cut))])
    result = run_lsdb("from-pcap", path)
    assert result.exit_code == 0
    assert "ignored 1 x LSP with a wrong checksum" in result.stderr
    assert "ignored 1 x malformed PDU" in result.stderr


def test_both_protocols_in_one_capture(tmp_path):
    path = capture(tmp_path / "a.pcap", [(0, frame(lsp(3))), (1, ip(update(lsa(1))))])
    result = run_lsdb("from-pcap", path)
    assert result.exit_code == 2
    assert "use --proto" in result.stderr
    assert rebuilt(path, "--proto", "isis")["proto"] == "isis"
    assert rebuilt(path, "--proto", "ospf")["proto"] == "ospf"


@pytest.mark.parametrize("proto", ["ospf", "isis"])
def test_a_capture_without_a_database(tmp_path, proto):
    result = run_lsdb("from-pcap", capture(tmp_path / "a.pcap", []), "--proto", proto)
    assert (result.exit_code, result.stdout) == (1, "")
    assert {"ospf": "no LS updates", "isis": "no LSPs"}[proto] in result.stderr


def test_the_root_is_the_first_router_heard(tmp_path):
    found = rebuilt(capture(tmp_path / "a.pcap", [(0, frame(lsp(3)))]))
    assert found["system_id"] == "0000.0000.0001"
    assert answer(found)["root"] == "0000.0000.0001"
