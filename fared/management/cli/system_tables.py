"""Tables of the daemon itself: status, timers, counters, log, configuration, self-checks."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import (
    Cell,
    Json,
    Renderer,
    count,
    emit,
    facts,
    plain,
    styled,
    table,
)

_LEVEL_STYLES = {"error": "red", "warning": "yellow", "info": "", "debug": "dim"}


# -- status ----------------------------------------------------------------------------------


def _status(document: Json, out: Console, now: float) -> None:
    """Identity, start-up and sums."""
    state = styled("ready" if document["ready"] else document["stage"], good=document["ready"])
    if document["drained"]:
        state.append(_drained(document), style="yellow")
    routes, fib, spf = document["routes"], document["fib"], document["spf"]
    reload_ok = document["config"]["last_reload_ok"]
    rows: list[tuple[str, Cell]] = [
        ("Router", f"{document['hostname']} ({_identity(document)})"),
        ("State", state),
        ("Version", f"fared {document['version']}, process {document['pid']}"),
        ("Up", human.duration(document["uptime"])),
        ("Start-up", _stages(document["stages"])),
        *_sysctls(document.get("sysctls", [])),
        ("Weights", document["weights"]),
        ("Routes", _routes_line(routes)),
        ("Kernel", _fib_line(fib)),
        *_foreign(fib),
        *_spraying(document.get("spraying")),
        ("SPF", _spf_line(spf, now)),
        ("Loop lag", human.duration(document["event_loop_lag"])),
        ("Configuration", document["config"]["file"]),
    ]
    if reload_ok is False:
        error = document["config"]["last_reload_error"] or "no reason given"
        rows.append(("Last reload", Text(f"refused: {error}", style="red")))
    until = document["config"].get("unconfirmed_until")
    if until is not None:
        left = human.duration(max(until - now, 0))
        rows.append(("Unconfirmed", Text(f"the former one returns in {left}", style="yellow")))
    facts(out, rows)
    for proto, show in _PROTOCOLS.items():
        if document.get(proto):
            out.print()
            show(document[proto], out)


def _drained(document: Json) -> str:
    """``, drained by anna: optics``; without a user it is the configuration's or a restart's."""
    by, reason = document.get("drained_by"), document.get("drained_reason")
    return f", drained{f' by {by}' if by else ''}{f': {reason}' if reason else ''}"


def _identity(document: Json) -> str:
    """The router id, and the system id if it differs."""
    parts = [document.get(proto) or {} for proto in _PROTOCOLS]
    known = (document["router_id"], *(part.get("system_id") for part in parts))
    return ", ".join(dict.fromkeys(filter(None, known)))


def _routes_line(routes: Json) -> str:
    kinds = ["connected", "redistributed", "weighted", "martians"]
    for kind in ("redistributed", "martians"):
        if not routes.get(kind):
            kinds.remove(kind)
    return ", ".join([str(routes["total"]), *(f"{routes[kind]} {kind}" for kind in kinds)])


def _fib_line(fib: Json) -> str:
    objects = (("routes", "route"), ("groups", "group"), ("nexthops", "next hop"))
    held = ", ".join(count(fib[key], noun) for key, noun in objects)
    return f"{held}; {count(fib['drift'], 'repair')}"


def _foreign(fib: Json) -> Iterable[tuple[str, Cell]]:
    """Yield routes of other programs in the place of ours."""
    for row in fib.get("foreign", []):
        protocol = "unknown" if row["protocol"] is None else row["protocol"]
        text = f"{row['prefix']}: a route of protocol {protocol} is in the place of ours"
        yield "Foreign", Text(text, style="red")
    more = fib.get("foreign_total", 0) - len(fib.get("foreign", []))
    if more > 0:
        yield "Foreign", Text(f"and {more} more", style="red")


def _spraying(spraying: Json | None) -> Iterable[tuple[str, Cell]]:
    """Yield what is sprayed, unless packets are to follow their flow, and a problem with it."""
    if spraying is None:
        return
    if spraying["granularity"] != "flow":
        routes, groups = count(spraying["prefixes"], "route"), count(spraying["groups"], "group")
        yield "Granularity", f"{spraying['granularity']}: {routes}, {groups}"
    for hop in spraying["nexthops"]:
        via = f" via {hop['address']}" if hop["address"] else ""
        yield "", f"{count(hop['packets'], 'packet')}: {hop['interface']}{via}"
    if spraying["problem"]:
        yield "Granularity", Text(f"not as configured: {spraying['problem']}", style="red")


def _stages(stages: list[Json]) -> str:
    """Return the last stage reached; ``show convergence`` has all."""
    if not stages:
        return "-"
    return f"{stages[-1]['stage']} after {human.duration(stages[-1]['seconds'])}"


def _sysctls(rows: list[Json]) -> Iterable[tuple[str, Cell]]:
    """Yield the number of sysctls if all are correct, else each wrong one."""
    if not rows:
        return
    wrong = [row for row in rows if not row["ok"]]
    changed = sum(row["action"] == "set" for row in rows)
    if not wrong:
        yield "Sysctls", f"{len(rows)} correct, {changed} of them set by fared"
    for row in wrong:
        found = "missing" if row["found"] is None else row["found"]
        text = f"{row['name']} is {found}, not {row['wanted']}: {row['why']}"
        if row.get("error"):
            text += f" (setting it failed: {row['error']})"
        yield "Sysctl", Text(text, style="red")


def _spf_line(spf: Json, now: float) -> str:
    if spf["last_at"] is None:
        return "never ran"
    return (
        f"{count(spf['runs'], 'run')}, the last {human.duration(now - spf['last_at'])} ago "
        f"in {human.duration(spf['last_duration'])}, {spf['backoff']}"
    )


def _areas(ospf: Json, out: Console) -> None:
    grid = table("Area", "Type", ">Interfaces", ">Neighbors", ">Full", ">LSAs", "Checksum")
    for area in ospf["areas"]:
        full = styled(str(area["full"]), good=area["full"] == area["neighbors"], bad="yellow")
        grid.add_row(
            area["area"],
            area["type"],
            str(area["interfaces"]),
            str(area["neighbors"]),
            full,
            str(area["lsas"]),
            area["checksum"],
        )
    emit(out, grid)
    _unauthenticated(ospf, out)
    _flooding(ospf, out)


def _levels(status: Json, out: Console) -> None:
    grid = table("Level", "~Areas", ">Interfaces", ">Adjacencies", ">Up", ">LSPs", "Checksum")
    for level in status["levels"]:
        up = styled(str(level["up"]), good=level["up"] == level["neighbors"], bad="yellow")
        grid.add_row(
            level["level"],
            ", ".join(status["areas"]),
            str(level["interfaces"]),
            str(level["neighbors"]),
            up,
            str(level["lsps"]),
            level["checksum"],
        )
    emit(out, grid)
    bits = [name for name in ("overloaded", "attached") if status[name]]
    if bits:
        out.print(Text(f"bits of our LSPs: {', '.join(bits)}", style="yellow"))
    _unauthenticated(status, out)
    _flooding(status, out)


def _unauthenticated(status: Json, out: Console) -> None:
    """Say on how many interfaces any host of the link can become a neighbor."""
    if number := status["unauthenticated"]:
        verb = "accepts" if number == 1 else "accept"
        text = f"{count(number, 'interface')} {verb} neighbors without authentication"
        out.print(Text(text, style="dim"))


_PROTOCOLS = {"ospf": _areas, "isis": _levels}
"""By protocol: the function that prints its part of ``show status``."""


def _flooding(protocol: Json, out: Console) -> None:
    """Print a line if flooding is not the default."""
    flooding = protocol["flooding"]
    for topology in flooding.get("topologies", ()):
        scope = f"{topology['scope']}: floods to "
        if not topology["routers"]:
            out.print(f"{scope}all neighbors: no flooding topology", highlight=False)
            continue
        out.print(
            f"{scope}parents {_names(topology['parents'])}, "
            f"children {_names(topology['children'])}; not to {len(topology['others'])} others. "
            f"Topology of {count(topology['routers'], 'router')}, leader {topology['leader']}",
            highlight=False,
        )
    if flooding["reduction"] == "leaf":
        how = f"floods as a {flooding['reduction']}: what one neighbor sent, to others within "
        out.print(how + human.duration(flooding["delay"]), highlight=False)


def _names(routers: list[str]) -> str:
    return ", ".join(routers) or "none"


# -- timers, counters, logs, configuration ---------------------------------------------------


def _timers(document: Json, out: Console, _now: float) -> None:
    """Print timers, with their protocol if several run."""
    protos = {timer["proto"] for timer in document["timers"]} - {None}
    shown = ("Proto",) if len(protos) > 1 else ()
    grid = table(">Due in", *shown, "Timer", "~About")
    for timer in document["timers"]:
        whose = (human.PROTOCOLS.get(timer["proto"], human.DASH),) if shown else ()
        grid.add_row(human.duration(timer["due_in"]), *whose, timer["timer"], timer["subject"])
    emit(out, grid)


def _counters(document: Json, out: Console, _now: float) -> None:
    grid = table("Group", "~Counter", ">Count")
    group = None
    for entry in document["counters"]:
        shown = "" if entry["group"] == group else entry["group"]
        group = entry["group"]
        grid.add_row(shown, entry["name"], f"{entry['value']}")
    emit(out, grid)


def _memory(document: Json, out: Console, _now: float) -> None:
    now, peak = _mebibytes(document["resident"]), _mebibytes(document["peak_resident"])
    limit = document["descriptor_limit"] or "any number"
    clients = document["client_descriptors"]
    rows: list[tuple[str, Cell]] = [
        ("Memory", f"{now}, maximum {peak}"),
        ("CPU", human.duration(document["cpu"])),
        ("Descriptors", f"{document['descriptors']} of {limit}; clients get those below {clients}"),
        ("Loop lag", human.duration(document["event_loop_lag"])),
    ]
    facts(out, rows)
    out.print()
    grid = table("Table", "Protocol", "Area", ">Entries", ">Limit", "State")
    for entry in document["tables"]:
        proto = human.PROTOCOLS.get(entry["proto"], "")
        limit = "" if entry["limit"] is None else f"{entry['limit']}"
        sizes = f"{entry['entries']}", limit, _fullness(entry)
        grid.add_row(entry["table"], proto, entry["area"] or "", *sizes)
    emit(out, grid)


def _fullness(entry: Json) -> Cell:
    """How full a table is, and what that has cost since the start."""
    if entry["state"] is None:
        return ""
    words = str(entry["state"])
    if entry["ignored"]:
        words += f", {entry['ignored']} ignored, full {entry['times_full']} times"
    return styled(words, good=entry["state"] == "room")


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def _log(document: Json, out: Console, _now: float) -> None:
    for line in document["lines"]:
        when = time.strftime("%b %d %H:%M:%S", time.localtime(line["time"]))
        text = Text(f"{when} ", style="dim")
        text.append(f"{line['level']:<7} ", style=_LEVEL_STYLES.get(line["level"], ""))
        text.append(str(line["event"]), style="bold")
        for key, value in line["fields"].items():
            text.append(f" {key}=", style="dim")
            text.append(plain(value), style="")
        out.print(text, soft_wrap=True)


def _validate(document: Json, out: Console, _now: float) -> None:
    grid = table("", "Check", "~Found")
    for check in document["checks"]:
        mark = styled("PASS" if check["ok"] else "FAIL", good=check["ok"])
        grid.add_row(mark, check["name"], check["detail"])
    emit(out, grid)


def _drain(document: Json, out: Console, _now: float) -> None:
    name, share = document.get("interface"), document.get("share")
    if name is None:
        out.print("drained: others avoid this router" if document["drained"] else "in service")
    elif share is None:
        out.print(f"{name}: in service")
    else:
        left = f"{human.share(share)} of its capacity" if share else "the last resort"
        out.print(f"{name} drained: {left}")
    if document["not_kept"] is not None:
        out.print(styled(f"a restart undoes this: {document['not_kept']}", good=False))


def _restart(document: Json, out: Console, _now: float) -> None:
    known = document["announced"]
    out.print(styled("restarting" if known else "restarting, not all neighbors know", good=known))


def _limits(_document: Json, out: Console, _now: float) -> None:
    out.print("cleared: what was ignored is requested again")


RENDERERS: dict[str, Renderer] = {
    "fared-status/1": _status,
    "fared-timers/1": _timers,
    "fared-counters/1": _counters,
    "fared-log/1": _log,
    "fared-limits/1": _limits,
    "fared-memory/1": _memory,
    "fared-validate/1": _validate,
    "fared-drain/1": _drain,
    "fared-restart/1": _restart,
}
