"""``lsdb from-pcap``: a database from captured LS updates."""

from __future__ import annotations

import json
import struct

import dpkt
import pytest

from fared.core.wire import Reader
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.lsa import Lsa, LsType, decode_lsa, encode_lsa, with_age
from fared.protocols.ospf.packet.packets import Hello, LsUpdate
from tests.offline.fabrics import Json, answer, run_lsdb, table
from tests.packets.recorded import OSPF, load

ETHERNET = bytes(12) + b"\x08\x00"
START = 1_700_000_000.0


def ip(payload: bytes) -> bytes:
    fixed = (0x45, 0xC0, 20 + len(payload), 0, 0, 1, 89, 0, 0x0A800000, 0xE0000005)
    return ETHERNET + struct.pack(">BBHHHBBHII", *fixed) + payload


def capture(path, packets: list[tuple[float, bytes]]) -> str:
    """Write packets (seconds since the start, OSPF payload) as a pcap file."""
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for time, payload in packets:
            writer.writepkt(ip(payload), START + time)
        writer.close()
    return str(path)


def update(*lsas: Lsa, router: int = 0x0AFF0005, area: int = 0) -> bytes:
    return encode_packet(router, area, LsUpdate(tuple(lsas)))


def lsa(sequence: int, *, age: int = 1, ls_type: int = LsType.ROUTER, options: int = 2) -> Lsa:
    return encode_lsa(
        ls_age=age,
        options=options,
        ls_type=ls_type,
        link_state_id=0x0AFF0001,
        advertising_router=0x0AFF0001,
        ls_sequence_number=sequence,
        body=bytes(4) if ls_type == LsType.ROUTER else bytes(16),
    )


def rebuilt(path: str) -> Json:
    result = run_lsdb("from-pcap", path)
    assert result.exit_code == 0, result.stderr
    document: Json = json.loads(result.stdout)
    return document


def lsas_of(document: Json) -> list[Lsa]:
    hexes = [entry["hex"] for area in document["areas"] for entry in area["lsas"]]
    return [decode_lsa(Reader(bytes.fromhex(text))) for text in hexes]


def test_a_captured_fabric_computes_like_the_saved_one(document, tmp_path):
    """All LSAs of a fabric, ten to an update, in any order."""
    stored = lsas_of(document)[::-1]
    packets = [(n / 10, update(*stored[n : n + 10])) for n in range(0, len(stored), 10)]
    found = rebuilt(capture(tmp_path / "a.pcap", packets))
    assert found["router_id"] == "10.255.0.5"
    assert "interfaces" not in found
    assert table(answer(found)) == table(answer(document))


def test_the_newest_instance_wins_whatever_the_order(tmp_path):
    packets = [(0, update(lsa(3))), (1, update(lsa(5))), (2, update(lsa(4)))]
    found = lsas_of(rebuilt(capture(tmp_path / "a.pcap", packets)))
    assert [x.header.ls_sequence_number for x in found] == [5]


def test_ages_are_those_at_the_end_of_the_capture(tmp_path):
    packets = [(0, update(lsa(1, age=10))), (100, update(lsa(1, ls_type=5)))]
    found = rebuilt(capture(tmp_path / "a.pcap", packets))
    assert found["areas"][0]["lsas"][0]["age"] == 110
    assert [entry["age"] for entry in found["as"]] == [1]


def test_a_flushed_lsa_is_kept_at_maxage(tmp_path):
    packets = [(0, update(lsa(3))), (1, update(with_age(lsa(3), 3600)))]
    found = rebuilt(capture(tmp_path / "a.pcap", packets))
    assert found["areas"][0]["lsas"][0]["age"] == 3600


def test_each_area_has_its_own_database(tmp_path):
    hello = Hello(0xFFFFFFFE, 10, 0, 1, 40, 0, 0, ())
    packets = [
        (0, encode_packet(0x0AFF0007, 1, hello)),
        (1, update(lsa(1), area=1)),
        (2, update(lsa(2), area=0)),
    ]
    found = rebuilt(capture(tmp_path / "a.pcap", packets))
    areas = [(area["area"], area["stub"], len(area["lsas"])) for area in found["areas"]]
    assert areas == [("0.0.0.0", False, 1), ("0.0.0.1", True, 1)]
    assert found["router_id"] == "10.255.0.7"


def test_what_cannot_be_used_is_counted(tmp_path):
    good = update(lsa(1))
    spoilt = Lsa(lsa(2).header, lsa(2).raw[:-1] + b"\x01")
    path = capture(tmp_path / "a.pcap", [(0, good), (1, good[:30]), (2, update(spoilt))])
    result = run_lsdb("from-pcap", path)
    assert result.exit_code == 0
    assert "ignored 1 x malformed packet" in result.stderr
    assert "ignored 1 x LSA with a wrong checksum" in result.stderr


@pytest.mark.parametrize("session", OSPF[:2])
def test_recorded_sessions_of_other_implementations(tmp_path, session):
    """FRR, with and without authentication: all its LSAs are read."""
    packets = [(float(n), packet.payload) for n, packet in enumerate(load(session))]
    found = rebuilt(capture(tmp_path / "a.pcap", packets))
    routers = {x.header.advertising_router for x in lsas_of(found)}
    assert routers, session
    result = answer(found)
    assert result["root"] == found["router_id"]
    assert not {"malformed", "checksum"} & {item["reason"] for item in result["ignored"]}


def test_files_that_hold_no_database(tmp_path):
    empty = capture(tmp_path / "empty.pcap", [])
    text = tmp_path / "text.pcap"
    text.write_text("not a capture, whatever its name")
    for path, words in (
        (empty, "no LS updates"),
        (str(text), "not a pcap"),
        (str(tmp_path / "absent.pcap"), "No such file"),
    ):
        result = run_lsdb("from-pcap", path)
        assert (result.exit_code, result.stdout) == (1, "")
        assert words in result.stderr
