"""The check of IS-IS recordings detects errors."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import dpkt
import pytest

from fared.protocols.isis.pdu.model import PduType
from tests.packets.recorded import ISIS_P2P, load
from tests.peers.isis_recordings import Verdict, judge

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LINUX_SLL2, ETH_P_802_2 = 276, 4
PDU_LENGTH, LIFETIME, FIRST_TLV = 8, 10, 27
LLC = b"\xfe\xfe\x03"


def lsp() -> bytearray:
    """An LSP of FRR."""
    pdus = (recorded.payload for recorded in load(ISIS_P2P))
    return bytearray(next(pdu for pdu in pdus if pdu[4] & 0x1F == PduType.L2_LSP))


def judged(tmp_path: Path, pdu: bytearray) -> Verdict:
    """Judge one PDU, as tcpdump records it at interface 7."""
    cooked = struct.pack("!HHIHBB8s", ETH_P_802_2, 0, 7, 1, 4, 6, b"")
    path = tmp_path / "one.pcap"
    with path.open("wb") as file:
        dpkt.pcap.Writer(file, linktype=LINUX_SLL2).writepkt(cooked + LLC + bytes(pdu))
    return judge(path)


def test_a_valid_lsp_is_reported_without_flaw(tmp_path: Path):
    verdict = judged(tmp_path, lsp())
    assert dict(verdict.kinds) == {"l2-lsp": 1}
    assert dict(verdict.links) == {7: 1}
    assert (verdict.lsps, verdict.flawed, verdict.bad_lsps) == (1, [], [])


def test_a_wrong_lsp_checksum_is_detected(tmp_path: Path):
    broken = lsp()
    broken[-1] ^= 1
    verdict = judged(tmp_path, broken)
    assert len(verdict.bad_lsps) == 1
    assert len(verdict.flawed) == 1


def test_a_tlv_longer_than_its_pdu_is_detected(tmp_path: Path):
    broken = lsp()
    broken[FIRST_TLV + 1] = 0xFF
    assert len(judged(tmp_path, broken).flawed) == 1


def test_a_purge_needs_no_checksum(tmp_path: Path):
    purge = lsp()[:FIRST_TLV]
    purge[PDU_LENGTH : PDU_LENGTH + 2] = struct.pack("!H", len(purge))
    purge[LIFETIME : LIFETIME + 2] = purge[24:26] = bytes(2)
    verdict = judged(tmp_path, purge)
    assert (verdict.lsps, verdict.bad_lsps) == (0, [])
