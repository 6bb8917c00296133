"""Sessions recorded between other implementations: see the comments in tests/data/ospf."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent.parent / "data" / "ospf"
SESSIONS = ("frr-point-to-point-te", "frr-broadcast-md5", "bird-hmac-sha")


class Recorded(NamedTuple):
    """One packet and the comment line above it."""

    comment: str
    payload: bytes


def load(session: str) -> list[Recorded]:
    """The packets of a session, in order."""
    packets = []
    comment = ""
    for line in (DATA / f"{session}.hex").read_text().splitlines():
        if line.startswith("#"):
            comment = line.lstrip("# ")
        else:
            packets.append(Recorded(comment, bytes.fromhex(line)))
    return packets


def load_all() -> list[Recorded]:
    """All packets of all sessions."""
    return [packet for session in SESSIONS for packet in load(session)]
