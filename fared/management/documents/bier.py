"""``show bier``: BFERs with the ways to them, BFR neighbors, BIFTs, and counters of packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from fared.management.documents.cells import Cell, Columns, count, red, yellow
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_SHORT = 16
"""Digits of an F-BM that fit beside its BFR-ids: those of 64 bits."""


class BierFarEnd(Facts):
    """A BFR neighbor, or a host (``neighbor`` None); ``interface`` is empty where it is unknown."""

    interface: str
    neighbor: str | None
    hostname: str | None

    @property
    def via(self) -> str:
        """The interface, or the neighbor where that is not known."""
        return self.interface or self.hostname or self.neighbor or ""


class BierNextHop(BierFarEnd):
    """The way to a BFER, and the number of tables of 16 in which it is the one."""

    address: str | None
    weight: int
    tables: int


class Bfer(Facts):
    """A BFER: ``set`` and ``bit`` (from 0) are its place in bit strings.

    ``local``: this router. ``host``: a host of this router. ``problem``: why it is not reached.
    """

    bfr_id: int
    prefix: str
    hostname: str | None
    set: int
    bit: int
    local: bool
    host: bool
    nexthops: list[BierNextHop]
    problem: str


class BfrNeighborEntry(BierFarEnd):
    """A BFR neighbor, the BFERs that any table has behind it, and copies sent to it.

    ``problem``: why it gets none, though it runs BIER; empty if it may.
    """

    address: str | None
    bfr_ids: str
    packets: int
    bytes: int
    problem: str


class BiftMask(BierFarEnd):
    """A neighbor of a table, its F-BM in hexadecimal, and the BFR-ids in it."""

    f_bm: str
    bfr_ids: str


class BiftEntry(Facts):
    """One table of a set; ``entropy``: the low bits of the entropy that select it, ``0-3,8``."""

    set: int
    bift_id: int
    entropy: str
    local: str
    masks: list[BiftMask]


class BierPackets(Facts):
    """Packets since the table is in the kernel.

    ``received`` here or sent by this router; ``delivered`` to it; dropped because the TTL
    ``expired``, the BIFT-id is ``unknown``, or the header ``malformed``.
    """

    received: int = 0
    delivered: int = 0
    expired: int = 0
    unknown: int = 0
    malformed: int = 0


class Bier(Answer, tag="fared-bier/1"):
    """``show bier``; all values are empty if BIER does not run (``enabled``).

    ``bit_string_length`` is in bits. ``problem``: why packets are not forwarded.
    ``by_process``: the daemon forwards, since nftables is missing. ``bift``: the tables were asked
    for.
    """

    enabled: bool
    sub_domain: int = 0
    bfr_id: int = 0
    bit_string_length: int = 0
    problem: str = ""
    by_process: bool = False
    bfers: list[Bfer] = msgspec.field(default_factory=list)
    neighbors: list[BfrNeighborEntry] = msgspec.field(default_factory=list)
    bifts: list[BiftEntry] = msgspec.field(default_factory=list)
    packets: BierPackets = msgspec.field(default_factory=BierPackets)
    bift: bool = False

    def show(self, paper: Paper) -> None:
        """Print this router, then BFERs and neighbors, or the tables."""
        if not self.enabled:
            paper.line("BIER does not run here")
            return
        paper.pairs(_router(self))
        paper.line()
        if self.bift:
            _show_bifts(self.bifts, paper)
            return
        paper.table(self.bfers, _BFERS)
        paper.heading("BFR neighbors")
        paper.table(self.neighbors, _NEIGHBORS)


def _router(bier: Bier) -> Iterator[tuple[str, Cell]]:
    packets = bier.packets
    yield "Sub-domain", str(bier.sub_domain)
    yield "BFR-id", str(bier.bfr_id or "none: packets only pass through")
    yield "Bit string", f"{bier.bit_string_length} bits"
    yield "Packets", f"{packets.received} received, {packets.delivered} delivered here"
    dropped = {
        "without TTL left": packets.expired,
        "of unknown sets": packets.unknown,
        "malformed": packets.malformed,
    }
    if any(dropped.values()):
        yield "Dropped", ", ".join(f"{n} {why}" for why, n in dropped.items() if n)
    if lost := sum(bool(bfer.problem) for bfer in bier.bfers):
        yield "Not reached", red(count(lost, "BFER"))
    if bier.by_process:
        yield "Forwarding", yellow("by the daemon: nftables is missing")
    if bier.problem:
        yield "Not forwarded", red(bier.problem)


def _over(bfer: Bfer) -> Cell:
    """The ways to a BFER; the share of each is its number of tables."""
    if bfer.problem:
        return red(bfer.problem)
    if bfer.local:
        return "this router"
    if len(bfer.nexthops) == 1:
        return bfer.nexthops[0].via
    return "  ".join(f"{hop.via} {hop.tables}" for hop in bfer.nexthops)


def _show_bifts(bifts: list[BiftEntry], paper: Paper) -> None:
    """Print tables: the F-BM of each neighbor, long ones as BFR-ids only."""
    for number, bift in enumerate(bifts):
        title = f"Set {bift.set}, BIFT-id {bift.bift_id:#x}, entropy {bift.entropy}"
        paper.heading(title, first=number == 0)
        short = all(len(mask.f_bm) <= _SHORT for mask in bift.masks)
        rows = [(m.via, m.hostname or m.neighbor or "", m.f_bm, m.bfr_ids) for m in bift.masks]
        if bift.local:
            rows.append(("", "this router", "", bift.local))
        columns = ("Interface", "~Neighbor", "F-BM", "~BFR-ids")
        chosen = (0, 1, 2, 3) if short else (0, 1, 3)
        paper.grid([columns[at] for at in chosen], ([row[at] for at in chosen] for row in rows))


_BFERS: Columns = {
    ">BFR-id": "bfr_id",
    "BFR-prefix": "prefix",
    "~Name": lambda bfer: "host" if bfer.host else bfer.hostname,
    ">Set": "set",
    ">Bit": "bit",
    "~Over (tables of 16)": _over,
}
_NEIGHBORS: Columns = {
    "Interface": "interface",
    "~Neighbor": lambda entry: entry.hostname or entry.neighbor or entry.address,
    "~BFR-ids": lambda entry: red(entry.problem) if entry.problem else entry.bfr_ids,
    ">Copies": "packets",
    ">Bytes": "bytes",
}
DOCUMENT = Document(
    Bier,
    "bier:bier",
    "BIER: BFERs with the ways to them, and BFR neighbors. Counters are a few seconds old.",
    (Argument("bift", "flag", help="The tables, with the F-BM of each neighbor."),),
)
