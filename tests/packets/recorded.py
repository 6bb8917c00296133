"""Sessions recorded between other implementations: see the comments in tests/data."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[1] / "data"
OSPF = ("ospf/frr-point-to-point-te", "ospf/frr-broadcast-md5", "ospf/bird-hmac-sha")
ISIS = ISIS_P2P, ISIS_LAN = ("isis/frr-point-to-point-te", "isis/frr-lan-md5")


class Recorded(NamedTuple):
    """One packet and the comment line above it."""

    comment: str
    payload: bytes


def load(*sessions: str) -> list[Recorded]:
    """The packets of one session, or of several, in order."""
    packets = []
    for session in sessions:
        comment = ""
        for line in (DATA / f"{session}.hex").read_text().splitlines():
            if line.startswith("#"):
                comment = line.lstrip("# ")
            else:
                packets.append(Recorded(comment, bytes.fromhex(line)))
    return packets
