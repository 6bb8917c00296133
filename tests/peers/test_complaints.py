"""What counts as a complaint in the logs of FRR and BIRD."""

from __future__ import annotations

import re

import pytest

from tests.peers.isis_recordings import FRR_LOST_LINK
from tests.peers.recordings import complains

_SENDING = "OSPF: [S5P8P-AJE73][EC 100663299] *** sendmsg in ospf_write failed to 224.0.0.5"
COMPLAINTS = [
    ("frr", "OSPF: [J1CJR-G2NR4] LSA length 20 is too short"),
    ("frr", "OSPF: [X] ospf_read: bad packet from 10.0.0.1"),
    ("frr", "OSPF: [X][EC 134217741] Packet 10.0.0.1 [Hello:RECV]: area mismatch"),
    ("frr", f"{_SENDING}: No buffer space available"),
    ("bird", "2026-11-25 10:00:00 <RMT> fabric: Bad HELLO packet from nbr 10.0.0.1"),
]
HARMLESS = [
    ("frr", "OSPF: default:Packet[DD]: 10.255.0.7 DB Desc send with seqnum:7c61cbad , flags:0"),
    ("frr", f"{_SENDING}, id 1, off 0, len 248, interface S4, mtu 1500: Network is unreachable"),
    (
        "frr",
        "OSPF: [X][EC 100663299] vty_serv_un: could chown socket, Operation not permitted",
    ),
    ("bird", "2026-11-25 10:00:00 <INFO> fabric: started"),
]


@pytest.mark.parametrize(("kind", "line"), COMPLAINTS)
def test_errors_that_another_router_may_have_made_are_complaints(kind: str, line: str):
    assert complains(kind, line)


@pytest.mark.parametrize(("kind", "line"), HARMLESS)
def test_numbers_and_what_a_failed_link_explains_are_none(kind: str, line: str):
    assert not complains(kind, line)


@pytest.mark.parametrize("what", ["IIH", "LSP", "CSNP", "PSNP"])
def test_what_frr_could_not_send_on_a_lost_link_is_forgiven(what: str):
    """Any PDU may have been queued for it: a hello, or an LSP that its loss itself changed."""
    line = f"ISIS: [X][EC 67108865] ISIS-Upd (fabric): Send L2 {what} on L1 failed permanently"
    assert complains("frr", line)
    assert re.search(FRR_LOST_LINK, line)
