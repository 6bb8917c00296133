"""Tables of BFD sessions."""

from __future__ import annotations

from types import MappingProxyType

from rich.console import Console

from fared.management.documents import human
from fared.management.documents.paper import Json, Renderer, emit, facts, styled, table


def _bfd(document: Json, out: Console, _now: float) -> None:
    """Print the process and its sessions; two lines of numbers for each session."""
    process = document["process"]
    if process is None:
        out.print("no interface uses BFD")
        return
    running = "not running" if process["pid"] is None else f"pid {process['pid']}"
    again = process["starts"] - 1
    words = [running, process["priority"], f"restarted {again} times" if again > 0 else ""]
    facts(out, [("Process", ", ".join(word for word in words if word))])
    out.print()
    if document["detail"]:
        for entry in document["sessions"]:
            _session(entry, out)
        return
    grid = table("Interface", "~Neighbor", "State", ">For", ">Sends", ">Detects", ">Downs", ">Late")
    for entry in document["sessions"]:
        grid.add_row(
            entry["interface"],
            entry["neighbor"],
            styled(entry["state"], good=entry["state"] == "Up"),
            human.duration(entry["since"]),
            human.duration(entry["transmit_interval"]),
            human.duration(entry["detection_time"]),
            str(entry["downs"]),
            str(entry["late"]),
        )
    emit(out, grid)
    _reasons([e for e in document["sessions"] if e["state"] != "Up"], out)
    _late([e for e in document["sessions"] if e["late"]], out)
    if document["discarded"]:
        out.print()
        grid = table("Discarded", ">Packets")
        for reason, count in sorted(document["discarded"].items()):
            grid.add_row(reason, str(count))
        emit(out, grid)


def _session(entry: Json, out: Console) -> None:
    """Print all values of one session."""
    ours = f"{human.duration(entry['min_tx'])}, receives {human.duration(entry['min_rx'])}"
    theirs = human.duration(entry["neighbor_min_tx"])
    theirs += f", receives {human.duration(entry['neighbor_min_rx'])}"
    discarded = ", ".join(f"{n} {reason}" for reason, n in sorted(entry["discarded"].items()))
    facts(
        out,
        [
            ("Session", f"{entry['neighbor']} on {entry['interface']}, from {entry['local']}"),
            ("State", f"{entry['state']} for {human.duration(entry['since'])}"),
            ("Neighbor's state", f"{entry['neighbor_state']}, {entry['neighbor_diagnostic']}"),
            ("Last failure", f"{entry['diagnostic']}; {entry['downs']} in all"),
            ("Protocols", ", ".join(entry["protocols"])),
            ("Strict, signed", f"{_yes(entry['strict'])}, {_yes(entry['authenticated'])}"),
            (
                "Discriminators",
                f"{entry['local_discriminator']}, {entry['neighbor_discriminator']}",
            ),
            ("Source port", str(entry["source_port"])),
            ("Sends", f"every {human.duration(entry['transmit_interval'])}"),
            ("Detects", f"within {human.duration(entry['detection_time'])}"),
            ("Wishes", f"sends {ours}, multiplier {entry['multiplier']}"),
            ("Neighbor's", f"sends {theirs}, multiplier {entry['neighbor_multiplier']}"),
            ("Packets", f"{entry['sent']} sent, {entry['received']} received"),
            ("Discarded", discarded or "none"),
            ("Late", f"{entry['late']}, worst {human.duration(entry['worst_late'])}"),
            ("Extended", str(entry["extended"])),
        ],
    )
    out.print()


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _reasons(entries: list[Json], out: Console) -> None:
    """Why sessions are down, here and at the neighbor."""
    if not entries:
        return
    out.print()
    grid = table("Down", "~Reason", "Neighbor", "~Its reason")
    for entry in entries:
        grid.add_row(
            entry["interface"],
            entry["diagnostic"],
            entry["neighbor_state"],
            entry["neighbor_diagnostic"],
        )
    emit(out, grid)


def _late(entries: list[Json], out: Console) -> None:
    """Sessions whose timers fired late in this router."""
    if not entries:
        return
    out.print()
    grid = table("Late", "~Neighbor", ">Times", ">Worst", ">Detection extended")
    for entry in entries:
        grid.add_row(
            entry["interface"],
            entry["neighbor"],
            str(entry["late"]),
            human.duration(entry["worst_late"]),
            str(entry["extended"]),
        )
    emit(out, grid)


RENDERERS: MappingProxyType[str, Renderer] = MappingProxyType({"fared-bfd/1": _bfd})
