"""All that is known of a neighbor, in words: ``show neighbors NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, yellow
from fared.management.documents.neighbor import BgpNeighborEntry
from fared.management.documents.session_detail import show_session

if TYPE_CHECKING:
    from fared.management.documents.neighbor import (
        FloodingSpeed,
        HelloNeighborEntry,
        IsisNeighborEntry,
        NeighborEntry,
        OspfNeighborEntry,
    )
    from fared.management.documents.paper import Paper


def show_neighbor(paper: Paper, neighbor: NeighborEntry, *, first: bool) -> None:
    """Print one neighbor on one interface."""
    if isinstance(neighbor, BgpNeighborEntry):
        show_session(paper, neighbor, first=first)
        return
    id_ = f" ({neighbor.router_id})" if neighbor.hostname else ""
    where = human.area_title(neighbor.area)
    title = f"{neighbor.name}{id_} on {neighbor.interface}, {where[:1].lower()}{where[1:]}"
    paper.heading(title, first=first)
    paper.facts(neighbor, {**_FACTS, **_OF_PROTOCOL[neighbor.proto], **_REST})


def _state(neighbor: HelloNeighborEntry) -> Cell:
    since = "" if neighbor.uptime is None else f" for {human.duration(neighbor.uptime)}"
    reason = f" ({neighbor.last_reason})" if neighbor.last_reason else ""
    good = {"ospf": "Full", "isis": "Up"}[neighbor.proto]
    return neighbor.judged(good), f"{since}{reason}, {count(neighbor.flaps, 'flap')}"


def _hellos(neighbor: HelloNeighborEntry) -> str:
    return (
        f"every {human.duration(neighbor.hello_interval)};"
        f" dead after {human.duration(_dead_after(neighbor))} without one,"
        f" in {human.duration(neighbor.dead_in)}"
    )


def _dead_after(neighbor: Any) -> float:  # noqa: ANN401 - a neighbor of either protocol
    """Return when it is dead without hellos: in IS-IS after the holding time that it states."""
    return float(getattr(neighbor, "holding_time", neighbor.dead_interval))


def _mtu(neighbor: HelloNeighborEntry) -> str:
    theirs = str(neighbor.mtu) if neighbor.mtu else "not known"
    return f"{theirs}, ours {neighbor.own_mtu}"


def _restart(neighbor: NeighborEntry) -> Cell | None:
    if neighbor.helped is None:
        return None
    return yellow(f"it restarts, helped for {human.duration(neighbor.helped)} more")


def _lists(neighbor: OspfNeighborEntry) -> str:
    return (
        f"request {neighbor.request_list}, retransmission {neighbor.retransmission_list},"
        f" database summary {neighbor.summary_list}"
    )


def _designated(neighbor: OspfNeighborEntry) -> str | None:
    if neighbor.network_type != "broadcast":
        return None
    names = neighbor.designated_router, neighbor.backup_designated_router
    return f"DR {names[0] or 'none'}, BDR {names[1] or 'none'}; its priority {neighbor.priority}"


def _dis(neighbor: IsisNeighborEntry) -> str | None:
    if neighbor.network_type != "broadcast":
        return None
    return f"DIS {neighbor.dis or 'none'}; its priority {neighbor.priority}"


def _flooding(neighbor: IsisNeighborEntry) -> str | None:
    found: FloodingSpeed | None = neighbor.flooding
    if found is None:
        return None
    told = {
        "window": found.receive_window,
        "burst": found.burst_size,
        "LSPs per PSNP": found.lsps_per_psnp,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


_FACTS: Columns = {"State": _state}
_OSPF: Columns = {
    "Address": lambda n: f"{n.address}, ours {n.own_address or human.DASH}",
    "Network": "network_type",
    "It names": _designated,
    "Options": lambda n: ", ".join(n.options) or human.DASH,
    "Lists": _lists,
}
_ISIS: Columns = {
    "Addresses": lambda n: ", ".join(n.addresses) or human.DASH,
    "Ours": lambda n: n.own_address or human.DASH,
    "SNPA": "snpa",
    "Network": "network_type",
    "It names": _dis,
    "Levels": lambda n: "-".join(map(str, n.levels)),
    "Areas": "areas",
    "Topologies": "topologies",
    "Receives": _flooding,
}
_OF_PROTOCOL = {"ospf": _OSPF, "isis": _ISIS}
_REST: Columns = {
    "Hellos": _hellos,
    "MTU": _mtu,
    "BFD": lambda n: n.sessions or None,
    "Restart": _restart,
    "Problem": lambda n: yellow(n.problem.text) if n.problem else None,
}
