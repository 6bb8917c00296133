"""The check of recordings detects errors of packets."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from pathlib import Path

import dpkt
import pytest

from fared.core.checksum import internet_checksum
from tests.packets.recorded import load
from tests.peers.recordings import Verdict, judge

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LINUX_SLL2 = 276
LS_UPDATE, ROUTER_LSA = 4, 1
LSA = 28  # where the first LSA of an update starts
METRIC = LSA + 24 + 10  # of its first link


def update() -> bytearray:
    """An update of FRR whose first LSA is a router LSA."""
    packets = (recorded.payload for recorded in load("ospf/frr-point-to-point-te"))
    return bytearray(next(p for p in packets if p[1] == LS_UPDATE and p[LSA + 3] == ROUTER_LSA))


def judged(tmp_path: Path, payload: bytearray, *, sum_again: bool = True) -> Verdict:
    """Judge one packet, as tcpdump records it at interface 7."""
    if sum_again:
        payload[12:14] = bytes(2)
        (payload[12:14],) = (struct.pack("!H", internet_checksum(payload[:16] + payload[24:])),)
    ip = dpkt.ip.IP(src=b"\x0a\x80\0\0", dst=b"\xe0\0\0\x05", p=89, ttl=1, data=bytes(payload))
    cooked = struct.pack("!HHIHBB8s", 0x0800, 0, 7, 1, 4, 6, b"")
    path = tmp_path / "one.pcap"
    with path.open("wb") as file:
        dpkt.pcap.Writer(file, linktype=LINUX_SLL2).writepkt(cooked + bytes(ip))
    return judge(path)


def test_a_valid_update_is_reported_without_flaw(tmp_path: Path):
    verdict = judged(tmp_path, update())
    assert verdict.kinds == Counter({"LS Update": 1})
    assert (verdict.flawed, verdict.bad_lsas) == ([], [])
    assert verdict.links == Counter({7: 1})
    assert verdict.lsas >= 1


def test_a_wrong_lsa_checksum_in_a_valid_packet_is_detected(tmp_path: Path):
    broken = update()
    broken[METRIC] ^= 1
    verdict = judged(tmp_path, broken)
    assert verdict.flawed == []
    assert len(verdict.bad_lsas) == 1


def test_a_wrong_packet_checksum_is_detected(tmp_path: Path):
    broken = update()
    broken[METRIC] ^= 1
    assert len(judged(tmp_path, broken, sum_again=False).flawed) == 1


def test_a_router_lsa_with_too_high_a_link_count_is_detected(tmp_path: Path):
    broken = update()[: LSA + 24 + 12]
    broken[2:4] = struct.pack("!H", len(broken))
    broken[24:28] = struct.pack("!I", 1)
    broken[LSA + 18 : LSA + 20] = struct.pack("!H", len(broken) - LSA)
    broken[LSA + 22 : LSA + 24] = struct.pack("!H", 9)
    assert len(judged(tmp_path, broken).flawed) == 1
