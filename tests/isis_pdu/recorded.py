"""Sessions recorded between two FRR routers: see the comments in tests/data/isis."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent.parent / "data" / "isis"
POINT_TO_POINT = "frr-point-to-point-te"
LAN = "frr-lan-md5"
SESSIONS = (POINT_TO_POINT, LAN)


class Recorded(NamedTuple):
    """One PDU and what tshark says of it in one line."""

    comment: str
    payload: bytes


def load(session: str) -> list[Recorded]:
    """The PDUs of a session, in order."""
    pdus = []
    comment = ""
    for line in (DATA / f"{session}.hex").read_text().splitlines():
        if line.startswith("#"):
            comment = line.lstrip("# ")
        else:
            pdus.append(Recorded(comment, bytes.fromhex(line)))
    return pdus


def load_all() -> list[Recorded]:
    """All PDUs of all sessions."""
    return [pdu for session in SESSIONS for pdu in load(session)]
