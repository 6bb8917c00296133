"""Tables of interfaces and neighbors, of designated routers, keys and graceful restarts."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    Cell,
    Json,
    Renderer,
    by_protocol,
    emit,
    plural_list,
    styled,
    table,
)

_INTERFACES_SHOWN = 6
_ROLES = {"DR": "DR", "Backup": "BDR", "DR Other": "DROther", "Waiting": "waiting"}


_HEADS = {"ospf": ("Area", ">Cost", ">Full"), "isis": ("Levels", ">Metric", ">Up")}
"""Column heads by protocol: areas, costs, and the count of full or up neighbors."""
_TTL_SECURITY = {"on": "255 sent and required", "tx-only": "255 sent"}


def _interfaces(document: Json, out: Console, _now: float) -> None:
    for proto, entries in by_protocol(document["interfaces"], out):
        area, cost, full = _HEADS[proto]
        grid = table(
            "Interface", area, "State", cost, ">Capacity", ">Load", ">Free", full, ">Flaps"
        )
        for entry in entries:
            _interface(entry, grid)
        emit(out, grid)
        broadcast = [e for e in entries if e["network_type"] == "broadcast"]
        if broadcast:
            out.print()
            _NETWORKS[proto](broadcast, out)
        _derated([e for e in entries if e["derated"]], out)
        _health([e for e in entries if e["health"]], out)
        _authentication([e for e in entries if e["authentication"]], out)
        _ttl_security(entries, out)
        _prefix_suppression([e["interface"] for e in entries if e["prefix_suppression"]], out)


def _interface(entry: Json, grid: Table) -> None:
    passive = entry["passive"] and entry["up"] and entry["state"] != "Loopback"
    state = styled("Passive" if passive else entry["state"], good=entry["up"])
    grid.add_row(
        entry["interface"],
        _levels(entry["levels"]) if "levels" in entry else entry["area"],
        state,
        str(entry["cost"]),
        human.bandwidth(entry["bandwidth"]),
        _load(entry["utilized"], entry["bandwidth"]),
        human.bandwidth(entry["available"]),
        human.DASH if entry["passive"] else f"{entry['full']}/{entry['neighbors']}",
        str(entry["flaps"]),
    )


def _derated(entries: list[Json], out: Console) -> None:
    """Why less than the capacity of a link is advertised."""
    if not entries:
        return
    grid = table("Derated", ">Share", "By", "Since", "~Reason")
    for entry in entries:
        for item in entry["derated"]:
            since = time.strftime("%b %d %H:%M", time.localtime(item["at"]))
            share = human.share(item["share"])
            grid.add_row(entry["interface"], share, item["by"], since, item["reason"])
    out.print()
    emit(out, grid)


def _health(entries: list[Json], out: Console) -> None:
    """Watched links that are not well, and how long that lasts."""
    grid = table("Sick", "Mode", ">Errors", ">Share", ">Penalty", "~What follows")
    for entry in entries:
        health = entry["health"]
        if health["share"] >= 1 and not health["suppressed"]:
            continue
        follows = []
        if health["share"] < 1:
            follows.append(f"{health['reason']}; well in {human.duration(health['recovers_in'])}")
        if health["suppressed"]:
            follows.append(f"suppressed for {human.duration(health['reuse_in'])}")
        grid.add_row(
            entry["interface"],
            health["mode"],
            str(health["errors"]),
            human.share(health["share"]),
            f"{health['penalty']:.0f}",
            "; ".join(follows),
        )
    if grid.row_count:
        out.print()
        emit(out, grid)


def _levels(levels: list[int]) -> str:
    return "-".join(map(str, levels)) or human.DASH


def _networks(entries: list[Json], out: Console) -> None:
    """The designated router of each broadcast network; priority 0 is never elected."""
    grid = table("Network", "Role", ">Priority", "~Designated router", "~Backup")
    for entry in entries:
        grid.add_row(
            entry["interface"],
            _ROLES.get(entry["state"], human.DASH),
            str(entry["priority"]),
            _leader(entry, "designated_router"),
            _leader(entry, "backup_designated_router"),
        )
    emit(out, grid)


def _lans(entries: list[Json], out: Console) -> None:
    """The DIS of each LAN, by level."""
    grid = table("LAN", ">Level", "Role", ">Priority", "~Designated IS")
    for entry in entries:
        for lan in entry["lans"]:
            name = f" ({lan['hostname']})" if lan["hostname"] else ""
            grid.add_row(
                entry["interface"],
                str(lan["level"]),
                "DIS" if lan["is_dis"] else human.DASH,
                str(entry["priority"]),
                f"{lan['dis']}{name}" if lan["dis"] else human.DASH,
            )
    emit(out, grid)


def _leader(entry: Json, role: str) -> str:
    if entry[role] is None:
        return human.DASH
    name = entry.get(f"{role}_hostname")
    return f"{entry[role]} ({name})" if name else str(entry[role])


def _authentication(entries: list[Json], out: Console) -> None:
    """The signing key, once for all interfaces in the same state."""
    if not entries:
        return
    alike: dict[tuple[Cell, ...], list[str]] = {}
    for entry in entries:
        keys = entry["authentication"]
        row = (
            keys["algorithm"] or human.DASH,
            *_key_ids(keys),
            _key_state(keys),
        )
        alike.setdefault(row, []).append(entry["interface"])
    out.print()
    grid = table("~Keys of", "Algorithm", ">Signs", "~Accepted", "~")
    for (algorithm, key_id, accepted, state), names in alike.items():
        shown = plural_list(names, _INTERFACES_SHOWN)
        grid.add_row(shown, algorithm, key_id, accepted, Text(str(state), style="yellow"))
    emit(out, grid)


def _ttl_security(entries: list[Json], out: Console) -> None:
    """Where OSPF sends TTL 255, and where it accepts nothing else."""
    grid = table("~TTL security of", "~TTL")
    for mode, meaning in _TTL_SECURITY.items():
        names = [e["interface"] for e in entries if e.get("ttl_security") == mode]
        if names:
            grid.add_row(plural_list(names, _INTERFACES_SHOWN), meaning)
    if grid.rows:
        out.print()
        emit(out, grid)


def _prefix_suppression(names: list[str], out: Console) -> None:
    """Interfaces whose networks are not advertised."""
    if not names:
        return
    out.print()
    grid = table("~Networks not advertised")
    grid.add_row(plural_list(names, _INTERFACES_SHOWN))
    emit(out, grid)


def _key_ids(keys: Json) -> tuple[str, str]:
    """Format the id that signs and those accepted; a cleartext password has no id."""
    if keys["algorithm"] in (None, "cleartext"):
        return human.DASH, human.DASH
    accepted = ", ".join(map(str, keys["accepted_key_ids"]))
    return str(keys["key_id"]), accepted or human.DASH


def _key_state(keys: Json) -> str:
    if keys["algorithm"] is None:
        return "no key is valid yet: nothing is sent"
    return "the last key, expired" if keys["expired"] else ""


def _load(utilized: float | None, capacity: float | None) -> str:
    if utilized is None:
        return human.DASH
    if not capacity:
        return human.bandwidth(utilized)
    return human.share(utilized / capacity)


def _neighbors(document: Json, out: Console, _now: float) -> None:
    for proto, entries in by_protocol(document["neighbors"], out):
        _NEIGHBORS[proto](entries, out)
        _problems(entries, out)
        _bfd(entries, out)
    _refused(document.get("refused", []), out)


def _problems(entries: list[Json], out: Console) -> None:
    """Why neighbors are not used."""
    for entry in entries:
        if problem := entry.get("problem"):
            name = human.router(entry["router_id"], entry["hostname"])
            out.print(Text(f"{name} on {entry['interface']}: {problem['text']}", style="yellow"))


def _refused(entries: list[Json], out: Console) -> None:
    """Whose hellos are refused."""
    if not entries:
        return
    grid = table("Refused", "Router id", "Interface", ">Hellos", ">Last", "~Why")
    for entry in entries:
        grid.add_row(
            entry["source"],
            entry["router_id"] or human.DASH,
            entry["interface"],
            str(entry["times"]),
            human.duration(entry["last"]),
            entry["text"],
        )
    out.print()
    emit(out, grid)


def _adjacencies(entries: list[Json], out: Console) -> None:
    columns = ("Neighbor", "System id", "Interface", "Levels", "State", ">For", ">Holds", ">Flaps")
    grid = table(*columns)
    for entry in entries:
        grid.add_row(
            entry["hostname"] or human.DASH,
            entry["system_id"],
            entry["interface"],
            _levels(entry["levels"]),
            styled(entry["state"], good=entry["state"] == "Up", bad="yellow"),
            human.duration(entry["uptime"]),
            human.duration(entry["dead_in"]),
            str(entry["flaps"]),
        )
    emit(out, grid)
    out.print()
    grid = table("Neighbor", "SNPA", "~Areas", "~Addresses")
    for entry in entries:
        grid.add_row(
            human.router(entry["router_id"], entry["hostname"]),
            entry["snpa"],
            ", ".join(entry["areas"]),
            ", ".join(entry["addresses"]) or human.DASH,
        )
    emit(out, grid)


def _ospf_neighbors(entries: list[Json], out: Console) -> None:
    columns = ("Neighbor", "Router id", "Area", "Interface", "State", ">For", ">Dead in", ">Flaps")
    grid = table(*columns)
    for entry in entries:
        grid.add_row(
            human.router(entry["router_id"], entry["hostname"]),
            entry["router_id"],
            entry["area"],
            entry["interface"],
            styled(entry["state"], good=entry["state"] == "Full", bad="yellow"),
            human.duration(entry["uptime"]),
            human.duration(entry["dead_in"]),
            str(entry["flaps"]),
        )
    emit(out, grid)
    lists = {
        "request_list": "requested",
        "retransmission_list": "not acknowledged",
        "summary_list": "to describe",
    }
    for entry in entries:
        waiting = [f"{entry[key]} {word}" for key, word in lists.items() if entry[key]]
        if waiting:
            name = human.router(entry["router_id"], entry["hostname"])
            out.print(Text(f"{name}: LSAs {', '.join(waiting)}", style="yellow"))
    if behind := [entry for entry in entries if entry.get("waits_for")]:
        limit = f"adjacency-stagger {behind[0]['waits_for']}"
        text = f"waiting in 2-Way while other adjacencies form ({limit}): {len(behind)}"
        out.print(Text(text, style="yellow"))


def _bfd(entries: list[Json], out: Console) -> None:
    """Print the BFD sessions of neighbors, once for all interfaces with the same states."""
    alike: dict[str, list[str]] = {}
    for entry in entries:
        found = entry.get("bfd")
        if isinstance(found, dict):
            found = ", ".join(f"{family} {state}" for family, state in sorted(found.items()))
        if found:
            alike.setdefault(found, []).append(entry["interface"])
    if not alike:
        return
    out.print()
    grid = table("~BFD on", "~State")
    for state, names in alike.items():
        grid.add_row(plural_list(names, _INTERFACES_SHOWN), state)
    emit(out, grid)


_NETWORKS = {"ospf": _networks, "isis": _lans}
_NEIGHBORS = {"ospf": _ospf_neighbors, "isis": _adjacencies}


def _graceful_restart(document: Json, out: Console, _now: float) -> None:
    """Print neighbors that restart gracefully, and those that did."""
    for _, (part,) in by_protocol(document["protocols"], out):
        enabled = {True: "enabled", False: "disabled"}
        out.print(f"restart: {enabled[part['enabled']]}, helper: {enabled[part['helper']]}")
        if part["restarting"]:
            since = human.duration(part["restarting"]["since"])
            remaining = human.duration(part["restarting"]["remaining"])
            out.print(f"this router restarts: for {since}, {remaining} remaining")
        if part["restarted"]:
            last = part["restarted"]
            planned = "planned" if last["planned"] else "unplanned"
            took, ago = human.duration(last["duration"]), human.duration(last["ended"])
            out.print(f"last restart: {last['result']}, {planned}, took {took}, {ago} ago")
        if part["helping"]:
            grid = table("Restarting", "Interface", "Reason", ">For", ">Remaining")
            for entry in part["helping"]:
                times = (human.duration(entry["since"]), human.duration(entry["remaining"]))
                grid.add_row(_who(entry), entry["interface"], entry["reason"], *times)
            emit(out, grid)
        if part["ended"]:
            grid = table("Restarted", "Interface", "Result", ">Ago")
            for entry in part["ended"]:
                ago = human.duration(entry["ended"])
                grid.add_row(_who(entry), entry["interface"], entry["result"], ago)
            emit(out, grid)


def _who(entry: Json) -> str:
    return str(entry["hostname"] or entry["router_id"])


RENDERERS: dict[str, Renderer] = {
    "fared-interfaces/1": _interfaces,
    "fared-neighbors/1": _neighbors,
    "fared-graceful-restart/1": _graceful_restart,
}
