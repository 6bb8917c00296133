"""Everything IS-IS that the fared nodes of a fabric send, judged by Wireshark's dissector."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpkt

from fared.isis.pdu.model import PduType
from tests.peers.peers import fared

_FLAW = re.compile(
    r"Malformed|Expert Info \((Warning|Error)|\[in\s?correct|Bad checksum", re.IGNORECASE
)
FRR_MET_A_FORMER_LIFE = r"with confused checksum received"
"""FRR says this of the first LSP of a router that crashed and begins again at sequence number 1."""
FRR_LOST_LINK = r"Send L[12] IIH on \S+ failed"
"""FRR says this when a link has just gone and its kernel refuses a hello."""
_LLC = b"\xfe\xfe\x03"
_ISIS = 0x83
_LSPS = (PduType.L1_LSP, PduType.L2_LSP)
_LIFETIME_AT, _LSP_ID_AT = 10, 12


class Verdict(NamedTuple):
    """What was sent and what is wrong with it.

    PDUs by type and by interface index; ``flawed`` frames in the dissector's words; ``lsps`` that
    were no purges, and the ``bad_lsps`` among them whose checksum is wrong.
    """

    kinds: Counter[str]
    links: Counter[int]
    flawed: list[str]
    lsps: int
    bad_lsps: list[str]


def judge(recording: Path) -> Verdict:
    """Decode what tcpdump recorded on all interfaces of a node, or of several nodes."""
    command = ["tshark", "-n", "-r", str(recording), "-V", "-O", "isis,isis.hello,isis.lsp"]
    command[-1] += ",isis.csnp,isis.psnp"
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    frames = re.split(r"^(?=Frame \d+:)", done.stdout, flags=re.MULTILINE)
    flawed = [frame for frame in frames if _FLAW.search(frame)]
    assert done.stdout.count("ISO 10589 ISIS") >= len(frames) - 1
    kinds: Counter[str] = Counter()
    links: Counter[int] = Counter()
    lsps, bad = 0, []
    for ifindex, pdu in pdus(recording):
        kind = PduType(pdu[4] & 0x1F)
        kinds[kind.label] += 1
        links[ifindex] += 1
        if kind in _LSPS and any(pdu[_LIFETIME_AT:_LSP_ID_AT]):
            lsps += 1
            if not _fletcher_holds(pdu[_LSP_ID_AT : int.from_bytes(pdu[8:10], "big")]):
                bad.append(pdu.hex())
    return Verdict(kinds, links, flawed, lsps, bad)


def pdus(recording: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the interface index and the PDU of every frame (Linux cooked capture 2)."""
    with recording.open("rb") as file:
        for _, frame in dpkt.pcap.UniversalReader(file):
            cooked = dpkt.sll2.SLL2(frame)
            payload = bytes(cooked.data)
            if payload.startswith(_LLC) and payload[3] == _ISIS:
                yield cooked.intindex, payload[3:]


def _fletcher_holds(covered: bytes) -> bool:
    """Whether both sums over an LSP from its id on come to zero (RFC 905 annex B)."""
    first = second = 0
    for byte in covered:
        first += byte
        second += first
    return first % 255 == 0 and second % 255 == 0


def refused(fabric, forgiven: frozenset[str] = frozenset({"no-adjacency"})) -> dict[str, dict]:
    """What the fared nodes refused from others, by reason.

    What a neighbor of old, or one that is quicker than the third hello, sends before there is an
    adjacency is refused rightly, and left out.
    """
    found = {}
    for plan in fabric.plan.routers:
        if plan.node.kind == "fared":
            errors = pdu_errors(fabric.node(plan.name))
            if unforgiven := {k: n for k, n in errors.items() if k not in forgiven}:
                found[plan.name] = unforgiven
    return found


def pdu_errors(node) -> dict[str, int]:
    """How many PDUs a fared node refused, by reason."""
    rows = fared(node).request("show counters")["counters"]
    return {r["name"]: r["value"] for r in rows if r["group"] == "pdu-errors"}
