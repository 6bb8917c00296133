"""The IS-IS PDUs that the fared nodes of a fabric send, checked by Wireshark's dissector."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fared.protocols.isis.pdu.model import PduType
from tests.peers.recordings import (
    dissected,
    errors_of,
    fletcher_holds,
    frames_of,
    recorded_packets,
    refusals,
)

_FLAW = re.compile(
    r"Malformed|Expert Info \((Warning|Error)|\[in\s?correct|Bad checksum", re.IGNORECASE
)
FRR_MET_A_FORMER_LIFE = r"with confused checksum received"
"""FRR says this of the first LSP of a router that crashed and begins again at sequence number 1."""
FRR_LOST_LINK = r"Send L[12] (IIH|LSP|CSNP|PSNP) on \S+ failed"
"""FRR says this when a link has just gone and its kernel refuses what was queued for it."""
_LLC = b"\xfe\xfe\x03"
_ISIS = 0x83
_LSPS = (PduType.L1_LSP, PduType.L2_LSP)
_LIFETIME_AT, _LSP_ID_AT = 10, 12


class Verdict(NamedTuple):
    """The PDUs that were sent, and their errors.

    PDUs by type and by interface index; ``flawed`` frames as the dissector prints them; ``lsps``
    without purges, and the ``bad_lsps`` among them whose checksum is wrong.
    """

    kinds: Counter[str]
    links: Counter[int]
    flawed: list[str]
    lsps: int
    bad_lsps: list[str]


def judge(recording: Path) -> Verdict:
    """Decode what tcpdump recorded on all interfaces of a node, or of several nodes."""
    text = dissected(recording, "isis,isis.hello,isis.lsp,isis.csnp,isis.psnp")
    frames = frames_of(text)
    flawed = [frame for frame in frames if _FLAW.search(frame)]
    assert text.count("ISO 10589 ISIS") >= len(frames) - 1
    kinds: Counter[str] = Counter()
    links: Counter[int] = Counter()
    lsps, bad = 0, []
    for ifindex, pdu in pdus(recording):
        kind = PduType(pdu[4] & 0x1F)
        kinds[kind.label] += 1
        links[ifindex] += 1
        if kind in _LSPS and any(pdu[_LIFETIME_AT:_LSP_ID_AT]):
            lsps += 1
            if not fletcher_holds(pdu[_LSP_ID_AT : int.from_bytes(pdu[8:10], "big")]):
                bad.append(pdu.hex())
    return Verdict(kinds, links, flawed, lsps, bad)


def pdus(recording: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the interface index and the PDU of every frame."""
    for ifindex, payload in recorded_packets(recording):
        if payload.startswith(_LLC) and payload[3] == _ISIS:
            yield ifindex, payload[3:]


def refused(fabric, forgiven: frozenset[str] = frozenset({"no-adjacency"})) -> dict[str, dict]:
    """The PDUs that the fared nodes rejected, by reason.

    PDUs that a neighbor sends before the adjacency is up are rejected correctly, and left out.
    """
    return refusals(fabric, "pdu-errors", forgiven)


def pdu_errors(node) -> dict[str, int]:
    """The number of PDUs that a fared node rejected, by reason."""
    return errors_of(node, "pdu-errors")
