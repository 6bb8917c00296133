"""Tables of BIER: BFERs, BFR neighbors, BIFTs."""

from __future__ import annotations

from types import MappingProxyType

from rich.console import Console
from rich.text import Text

from fared.management.documents.paper import (
    Cell,
    Json,
    Renderer,
    count,
    emit,
    facts,
    heading,
    table,
)

_SHORT = 16
"""Digits of an F-BM that fit beside its BFR-ids: those of 64 bits."""


def _bier(document: Json, out: Console, _now: float) -> None:
    """Print this router, then BFERs and neighbors, or the tables."""
    if not document["enabled"]:
        out.print("BIER does not run here")
        return
    facts(out, _head(document))
    out.print()
    if document["bift"]:
        bifts(document["bifts"], out)
        return
    bfers(document["bfers"], out)
    heading(out, "BFR neighbors")
    grid = table("Interface", "~Neighbor", "~BFR-ids", ">Copies", ">Bytes")
    for entry in document["neighbors"]:
        grid.add_row(
            entry["interface"],
            _name(entry),
            Text(entry["problem"], style="red") if entry["problem"] else entry["bfr_ids"],
            str(entry["packets"]),
            str(entry["bytes"]),
        )
    emit(out, grid)


def _head(document: Json) -> list[tuple[str, Cell]]:
    packets = document["packets"]
    own = document["bfr_id"]
    rows: list[tuple[str, Cell]] = [
        ("Sub-domain", str(document["sub_domain"])),
        ("BFR-id", str(own) if own else "none: packets only pass through"),
        ("Bit string", f"{document['bit_string_length']} bits"),
        ("Packets", f"{packets['received']} received, {packets['delivered']} delivered here"),
    ]
    dropped = [
        f"{packets[key]} {text}"
        for key, text in (
            ("expired", "without TTL left"),
            ("unknown", "of unknown sets"),
            ("malformed", "malformed"),
        )
        if packets[key]
    ]
    if dropped:
        rows.append(("Dropped", ", ".join(dropped)))
    lost = [entry for entry in document["bfers"] if entry["problem"]]
    if lost:
        rows.append(("Not reached", Text(count(len(lost), "BFER"), style="red")))
    if document["by_process"]:
        rows.append(("Forwarding", Text("by the daemon: nftables is missing", style="yellow")))
    if document["problem"]:
        rows.append(("Not forwarded", Text(document["problem"], style="red")))
    return rows


def bfers(entries: list[Json], out: Console) -> None:
    """Print BFERs with the ways to them; the share of a way is its number of tables."""
    grid = table(">BFR-id", "BFR-prefix", "~Name", ">Set", ">Bit", "~Over (tables of 16)")
    for entry in entries:
        grid.add_row(
            str(entry["bfr_id"]),
            entry["prefix"],
            "host" if entry["host"] else entry["hostname"] or "",
            str(entry["set"]),
            str(entry["bit"]),
            _over(entry),
        )
    emit(out, grid)


def _over(entry: Json) -> Cell:
    if entry["problem"]:
        return Text(entry["problem"], style="red")
    if entry["local"]:
        return "this router"
    hops = entry["nexthops"]
    if len(hops) == 1:
        return str(hops[0]["interface"])
    return "  ".join(f"{hop['interface']} {hop['tables']}" for hop in hops)


def _name(entry: Json) -> str:
    return str(entry["hostname"] or entry["neighbor"] or entry["address"] or "")


def bifts(entries: list[Json], out: Console) -> None:
    """Print tables: the F-BM of each neighbor, long ones as BFR-ids only."""
    for number, entry in enumerate(entries):
        title = f"Set {entry['set']}, BIFT-id {entry['bift_id']:#x}, entropy {entry['entropy']}"
        heading(out, title, first=number == 0)
        short = all(len(mask["f_bm"]) <= _SHORT for mask in entry["masks"])
        grid = table("Interface", "~Neighbor", *(["F-BM"] if short else []), "~BFR-ids")
        for mask in entry["masks"]:
            shown = [mask["f_bm"]] if short else []
            grid.add_row(mask["interface"], _name({"address": "", **mask}), *shown, mask["bfr_ids"])
        if entry["local"]:
            grid.add_row("", "this router", *([""] if short else []), entry["local"])
        emit(out, grid)


RENDERERS: MappingProxyType[str, Renderer] = MappingProxyType({"fared-bier/1": _bier})
