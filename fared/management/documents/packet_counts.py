"""Packets, or messages, by type: of an interface, or of a BGP neighbor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fared.management.documents.cells import Columns
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class RejectedPackets(Facts):
    """How many packets were rejected for a reason, a code of ``show counters``."""

    reason: str
    packets: int


class PacketCounts(Facts):
    """Packets of one type; ``received`` counts valid packets, ``rejected`` these and others."""

    type: str
    sent: int
    received: int
    rejected: int


def reasons(rejected: Iterable[RejectedPackets]) -> str:
    """Write how many were rejected, and why; empty if none was."""
    return ", ".join(f"{row.packets} {row.reason}" for row in rejected)


def show_packets(paper: Paper, packets: Sequence[PacketCounts], title: str = "Packets") -> None:
    """Print a row for each type."""
    paper.more(packets, {title: "type", **_COUNTS})


_COUNTS: Columns = {
    ">Sent": "sent",
    ">Received": "received",
    ">Rejected": "rejected",
}
