"""All that is known of a BGP neighbor, in words: ``show neighbors NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, yellow
from fared.management.documents.packet_counts import reasons, show_packets

if TYPE_CHECKING:
    from fared.management.documents.neighbor import BgpNeighborEntry, SessionFamily
    from fared.management.documents.paper import Paper


def show_session(paper: Paper, neighbor: BgpNeighborEntry, *, first: bool) -> None:
    """Print one neighbor, and the routes of each family."""
    number = "any AS" if neighbor.remote_as is None else f"AS {neighbor.remote_as}"
    kind = {True: "external", False: "internal", None: "not known yet"}[neighbor.external]
    paper.heading(f"{neighbor.name}, {number}, {kind}", first=first)
    paper.facts(neighbor, _FACTS)
    paper.more(neighbor.families, _FAMILIES)
    show_packets(paper, neighbor.messages, "Messages")


def _state(neighbor: BgpNeighborEntry) -> Cell:
    since = "" if neighbor.uptime is None else f" for {human.duration(neighbor.uptime)}"
    reason = f" ({neighbor.last_reason})" if neighbor.last_reason else ""
    return neighbor.judged("Established"), f"{since}{reason}, {count(neighbor.flaps, 'flap')}"


def _place(neighbor: BgpNeighborEntry) -> str:
    if neighbor.address is None:
        return "not known yet"
    capacity = "" if neighbor.capacity is None else f", {human.bandwidth(neighbor.capacity)} bit/s"
    return f"{neighbor.address}, ours {neighbor.own_address}, on {neighbor.interface}{capacity}"


def _times(neighbor: BgpNeighborEntry) -> str | None:
    if neighbor.hold_time is None:
        return None
    if not neighbor.hold_time:
        return "no hold time: only the link, or BFD, shows a failure"
    dead = "" if neighbor.dead_in is None else f", in {human.duration(neighbor.dead_in)}"
    keepalive = human.duration(neighbor.keepalive)
    return f"down after {human.duration(neighbor.hold_time)}{dead}; keepalive every {keepalive}"


def _words(given: list[str] | None, name: str | None, neighbor: BgpNeighborEntry) -> Cell:
    if given is None:
        default = "all (default)" if neighbor.external is False else "nothing (default, RFC 8212)"
        text: Cell = default if neighbor.external is False else yellow(default)
    else:
        text = ", ".join(given) or "nothing"
    return (text, f", filter {name}") if name and isinstance(text, str) else text


def _bandwidth(neighbor: BgpNeighborEntry) -> str:
    use = neighbor.path_bandwidth
    heard = f"heard, missing: {use.missing}" if use.receive else "ignored"
    least = neighbor.min_path_bandwidth
    withheld = "" if least is None else f"; less than {human.bandwidth(least)} is not advertised"
    share = "" if use.value == "path" else f", as a share {_demand(neighbor.demand)}"
    return f"sent {use.send}{share}; {heard}{withheld}"


def _demand(demand: float | None) -> str:
    return "(demand unknown)" if demand is None else f"of a demand of {human.bandwidth(demand)}"


def _limit(neighbor: BgpNeighborEntry) -> str:
    most = neighbor.maximum_prefixes
    limit = "no limit" if most is None else f"{neighbor.received} of {most}"
    held = neighbor.held
    return limit if held is None else f"{limit}; tried again in {human.duration(held)}"


def _security(neighbor: BgpNeighborEntry) -> str:
    found = ["TCP MD5"] if neighbor.authenticated else []
    found += ["TTL 255 required"] if neighbor.ttl_security else []
    return ", ".join(found) or "none"


def _restart(neighbor: BgpNeighborEntry) -> Cell | None:
    if neighbor.helped is None:
        return None
    return yellow(f"it restarts, its routes are kept for {human.duration(neighbor.helped)} more")


def _phase(family: SessionFamily) -> str:
    if family.stale is not None:
        return f"kept for {human.duration(family.stale)}"
    return "its first table is on its way" if family.loading else human.DASH


_FACTS: Columns = {
    "State": _state,
    "Description": lambda n: n.description or None,
    "Router id": lambda n: n.router_id if n.router_id != n.peer else None,
    "Address": _place,
    "Hold time": _times,
    "Agreed": lambda n: ", ".join(n.capabilities) or None,
    "Import": lambda n: _words(n.imports, n.import_filter, n),
    "Export": lambda n: _words(n.exports, n.export_filter, n),
    "Bandwidth": _bandwidth,
    "Prefixes": _limit,
    "Security": _security,
    "BFD": lambda n: n.sessions or None,
    "Restart": _restart,
    "Rejected": lambda n: reasons(n.rejected) or None,
    "Problem": lambda n: yellow(n.problem.text) if n.problem else None,
}
_FAMILIES: Columns = {
    "Family": "af",
    ">Received": "received",
    ">Advertised": "advertised",
    ">Waiting": "waiting",
    "Our next hop": "next_hop",
    "~Table": _phase,
}
