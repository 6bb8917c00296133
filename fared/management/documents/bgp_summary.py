"""``show bgp summary``: the AS, tables and sessions, as people know it from other daemons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.cells import Cell, Columns, judged, without_repeated
from fared.management.documents.declare import Answer, Document
from fared.management.documents.neighbor import BgpNeighborEntry
from fared.management.documents.protocol_status import BgpStatus

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class BgpSummary(Answer, tag="fared-bgp-summary/1"):
    """``show bgp summary``: the status of BGP, and its neighbors as in ``show neighbors``."""

    router_id: str
    status: BgpStatus
    neighbors: list[BgpNeighborEntry]

    def show(self, paper: Paper) -> None:
        """Print the tables, then a row for each session."""
        self.status.show(paper)
        paper.more(self.neighbors, without_repeated(_SESSIONS, self.neighbors, "~Name", "Neighbor"))


def _state(neighbor: BgpNeighborEntry) -> Cell:
    if neighbor.shutdown:
        return "shut down"
    return judged(neighbor.state, good=neighbor.state == "Established", bad="yellow")


_SESSIONS: Columns = {
    "Neighbor": "peer",
    ">AS": "remote_as",
    ">UpdIn": "updates_received",
    ">UpdOut": "updates_sent",
    ">Up/Down": "uptime",
    "State": _state,
    ">PfxRcd": "received",
    ">PfxSnt": "advertised",
    "~Name": "hostname",
}

DOCUMENT = Document(
    BgpSummary,
    "bgp_routes:summary",
    "BGP: tables and sessions.",
    rare=True,
    proto="bgp",
)
