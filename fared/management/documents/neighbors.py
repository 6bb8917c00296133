"""``show neighbors``: of OSPF and BGP, adjacencies of IS-IS, and whose hellos are refused.

``neighbor_detail`` prints those that were asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.management.documents import human
from fared.management.documents.cells import Columns, plural_list, without_repeated, yellow
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.missing import MissingAdjacency, show_missing
from fared.management.documents.neighbor import (
    BgpNeighborEntry,
    IsisNeighborEntry,
    NeighborEntry,
    NeighborFacts,
    OspfNeighborEntry,
    RefusedHelloEntry,
    levels_text,
)
from fared.management.documents.neighbor_detail import show_neighbor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fared.management.documents.paper import Paper

_INTERFACES_SHOWN = 6


class Neighbors(Answer, tag="fared-neighbors/1"):
    """``show neighbors``; ``refused``: who is none, since its hellos are refused.

    ``missing``: the interfaces without an adjacency. Argument ``name`` (a router, an address or an
    interface): only those, with ``detail`` true.
    """

    router_id: str
    neighbors: list[NeighborEntry]
    refused: list[RefusedHelloEntry] | UnsetType = UNSET
    missing: list[MissingAdjacency] | UnsetType = UNSET
    detail: bool | UnsetType = UNSET

    def show(self, paper: Paper) -> None:
        """Print the neighbors of each protocol, what is wrong with them, and refused hellos."""
        if self.detail is True:
            for index, entry in enumerate(self.neighbors):
                show_neighbor(paper, entry, first=index == 0)
        else:
            self._tables(paper)
        refused = self.refused or []
        told = {(row.interface, row.cause) for row in refused}
        show_missing(paper, [m for m in self.missing or [] if (m.interface, m.cause) not in told])
        paper.more(refused, _REFUSED)

    def _tables(self, paper: Paper) -> None:
        for _, entries in paper.by_protocol(self.neighbors):
            _ospf(paper, [entry for entry in entries if isinstance(entry, OspfNeighborEntry)])
            _isis(paper, [entry for entry in entries if isinstance(entry, IsisNeighborEntry)])
            _bgp(paper, [entry for entry in entries if isinstance(entry, BgpNeighborEntry)])
            for entry in entries:
                if entry.problem:
                    where = f"{entry.name} on {entry.interface}"
                    paper.line(yellow(f"{where}: {entry.problem.text}"))
            _bfd(paper, entries)


def _ospf(paper: Paper, entries: list[OspfNeighborEntry]) -> None:
    if not entries:
        return
    paper.table(entries, _NEIGHBORS)
    for entry in entries:
        if entry.waiting:
            paper.line(yellow(f"{entry.name}: LSAs {entry.waiting}"))
    if behind := [entry for entry in entries if entry.waits_for]:
        limit = f"adjacency-stagger {behind[0].waits_for}"
        text = f"waiting in 2-Way while other adjacencies form ({limit}): {len(behind)}"
        paper.line(yellow(text))


def _isis(paper: Paper, entries: list[IsisNeighborEntry]) -> None:
    if entries:
        paper.table(entries, _ADJACENCIES)
        paper.more(entries, _ADDRESSES)


def _bgp(paper: Paper, entries: list[BgpNeighborEntry]) -> None:
    if not entries:
        return
    paper.table(entries, without_repeated(_SESSIONS, entries, "Interface", "Neighbor"))
    described = [e for e in entries if e.description not in ("", e.name)]
    paper.more(described, _DESCRIBED)


def _bfd(paper: Paper, entries: Sequence[NeighborFacts]) -> None:
    """Print the BFD sessions of neighbors, once for all interfaces with the same states."""
    alike: dict[str, list[str]] = {}
    for entry in entries:
        if entry.sessions:
            alike.setdefault(entry.sessions, []).append(entry.interface)
    if alike:
        paper.line()
        rows = ((plural_list(names, _INTERFACES_SHOWN), state) for state, names in alike.items())
        paper.grid(("~BFD on", "~State"), rows)


_NEIGHBORS: Columns = {
    "Neighbor": lambda n: n.name,
    "Address": "address",
    "Area": "area",
    "Interface": "interface",
    "State": lambda n: n.judged("Full"),
    ">For": "uptime",
    ">Dead in": "dead_in",
    ">Flaps": "flaps",
}
_ADJACENCIES: Columns = {
    "Neighbor": "hostname",
    "System id": "system_id",
    "Interface": "interface",
    "Levels": lambda n: levels_text(n.levels),
    "State": lambda n: n.judged("Up"),
    ">For": "uptime",
    ">Holds": "dead_in",
    ">Flaps": "flaps",
}
_SESSIONS: Columns = {
    "Neighbor": lambda n: n.name,
    ">AS": "remote_as",
    "Interface": "interface",
    "State": lambda n: n.judged("Established"),
    ">For": "uptime",
    ">PfxRcd": "received",
    ">PfxSnt": "advertised",
    ">Flaps": "flaps",
}
_DESCRIBED: Columns = {"Neighbor": lambda n: n.name, "~Description": "description"}
_ADDRESSES: Columns = {
    "Neighbor": lambda n: n.name,
    "SNPA": "snpa",
    "~Areas": "areas",
    "~Addresses": lambda n: ", ".join(n.addresses) or human.DASH,
}
_REFUSED: Columns = {
    "Refused": "source",
    "Router id": "router_id",
    "Interface": "interface",
    ">Hellos": "times",
    ">Last": "last",
    "~Why": "text",
}

DOCUMENT = Document(
    Neighbors,
    "protocol:neighbors",
    "Neighbors of OSPF and BGP, adjacencies of IS-IS.\n\n"
    "With NAME (a router, an address, or an interface) all that is known of these.",
    (Argument("name", word="NAME"),),
    narrowed=True,
)
