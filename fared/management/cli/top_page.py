"""The page of ``fared-cli top``: lines of text for a terminal of any size.

From top to bottom: who and how the router is, its links with neighbors and load, the weights that
are apart from equal, and the last events. What has a problem comes first, and what has no room is
counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from fared.management.documents import human
from fared.management.documents.cells import count, plain
from fared.management.documents.paper import Json

_APART = 0.02
"""A share is apart from equal if it differs by more than this part of the equal one."""
_WARM, _HOT = 0.6, 0.85
"""Loads, as part of the capacity, from which a bar is yellow, and red."""
_LEVELS = {"error": "red", "warning": "yellow", "debug": "dim"}
_GOOD = {"ospf": "Full", "isis": "Up", "bgp": "Established"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_NARROW_BAR, _WIDE_BAR = 8, 40
_LEAST_EVENTS = 4
_WEIGHTS_PART = 4
"""Weights have at most one line in so many, and at least two."""
_MEMBERS_SHOWN = 64
_CHANGED = "converged"
"""The event of the log that tells a change by LSAs or LSPs."""


class Snapshot(NamedTuple):
    """The documents of one moment."""

    status: Json
    interfaces: Json
    neighbors: Json
    weights: Json
    log: Json
    convergence: Json


class _LinkRow(NamedTuple):
    """One link. ``good``: all of its neighbors are up; ``load`` is a part of the capacity."""

    name: str
    neighbor: str
    state: str
    since: str
    capacity: float | None
    utilized: float | None
    note: str
    good: bool

    @property
    def load(self) -> float | None:
        """The outbound load as part of the capacity, None where either is unknown."""
        if self.utilized is None or not self.capacity:
            return None
        return self.utilized / self.capacity


def page(found: Snapshot, now: float, width: int, height: int, problem: str = "") -> list[Text]:
    """Return the lines of the page, at most ``height``. ``problem``: why it is not current."""
    head = [*_head(found.status, now, width), *_problems(found.status, now, problem)]
    rows, vectors = _links(found), _apart(found.weights)
    room = max(height - len(head) - 4, 3)  # three titles, and the foot
    for_weights = min(len(vectors) or 1, max(room // _WEIGHTS_PART, 2))
    for_links = min(len(rows) or 1, max(room - for_weights - _LEAST_EVENTS, 1))
    lines = [
        *head,
        _title("Links", _links_summary(rows), width),
        *_shortened(_link_lines(rows, width), for_links, "no links"),
        _title("Weights apart from equal", _weights_summary(found.weights, vectors), width),
        *_shortened(_weight_lines(vectors, width), for_weights, "none: all are equal"),
        _title("Events", "the last one first", width),
        *_events(found.log, found.convergence),
    ][: height - 1]
    lines += [Text()] * (height - 1 - len(lines))
    lines.append(Text("q quit   fared-cli explain PREFIX: why a route has its weights", "dim"))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


# -- head ------------------------------------------------------------------------------------


def _head(status: Json, now: float, width: int) -> Iterator[Text]:
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    line = Text(_clean(status["hostname"]), style="bold")
    line.append(f"  {status['router_id']}  ", style="not bold dim")
    ready = status["ready"]
    state = "ready" if ready else str(status["stage"])
    line.append(state, style="not bold green" if ready else "not bold red")
    if status["drained"]:
        line.append(", drained", style="not bold yellow")
    line.append(f"  up {human.duration(status['uptime'])}", style="not bold")
    line.truncate(max(width - len(clock) - 2, 0), overflow="ellipsis", pad=True)
    yield line + Text(f"  {clock}", style="not bold dim")
    spf, fib, routes = status["spf"], status["fib"], status["routes"]
    facts = [*_protocols(status)]
    facts.append(f"{count(routes['total'], 'route')}, {routes['weighted']} weighted")
    facts.append(f"kernel {fib['routes']}")
    if spf["last_at"] is not None:
        facts.append(f"SPF {human.duration(max(now - spf['last_at'], 0))} ago")
    facts.append(f"lag {human.duration(status['event_loop_lag'])}")
    yield Text(" · ".join(facts))


def _protocols(status: Json) -> Iterator[str]:
    for proto, name in human.PROTOCOLS.items():
        found = status.get(proto)
        if not found:
            continue
        if proto == "bgp":
            prefixes = sum(family["prefixes"] for family in found["families"])
            yield f"{name} {prefixes} prefixes"
            continue
        parts = found.get("areas") or found.get("levels") or ()
        entries = sum(part.get("lsas", part.get("lsps", 0)) for part in parts)
        yield f"{name} {entries} {'LSAs' if proto == 'ospf' else 'LSPs'}"


def _problems(status: Json, now: float, problem: str) -> Iterator[Text]:
    """Yield what needs attention, in one line each."""
    if problem:
        yield Text(_clean(problem), style="red")
    config = status["config"]
    if config.get("unconfirmed_until") is not None:
        left = human.duration(max(config["unconfirmed_until"] - now, 0))
        yield Text(f"configuration unconfirmed: the former one returns in {left}", style="yellow")
    if config["last_reload_ok"] is False:
        yield Text(f"last reload refused: {_clean(config['last_reload_error'])}", style="red")
    wrong = [row["name"] for row in status.get("sysctls", []) if not row["ok"]]
    if wrong:
        yield Text(f"wrong sysctls: {', '.join(wrong)}", style="red")
    if foreign := status["fib"].get("foreign_total"):
        yield Text(f"{count(foreign, 'route')} of other programs in the place of ours", style="red")


# -- links -----------------------------------------------------------------------------------


def _links(found: Snapshot) -> list[_LinkRow]:
    """Return the links that have or seek neighbors; those with a problem first."""
    by_name: dict[str, list[Json]] = {}
    for entry in found.interfaces["interfaces"]:
        if not entry["passive"] and entry["state"] != "Loopback":
            by_name.setdefault(entry["interface"], []).append(entry)
    peers: dict[str, list[Json]] = {}
    for neighbor in found.neighbors["neighbors"]:
        peers.setdefault(neighbor["interface"], []).append(neighbor)
    rows = [_row(name, entries, peers.get(name, [])) for name, entries in by_name.items()]
    return sorted(rows, key=lambda row: (row.good, not row.note))


def _row(name: str, entries: list[Json], peers: list[Json]) -> _LinkRow:
    first = entries[0]
    names = dict.fromkeys(human.router(p["router_id"], p["hostname"]) for p in peers)
    shown = next(iter(names), human.DASH)
    waiting = [p for p in peers if p["state"] != _GOOD.get(p["proto"])]
    # On a LAN two routers that are not designated stay in 2-Way (RFC 2328 §10.4).
    pending = [p for p in waiting if not (len(peers) > 1 and p["state"] in ("2-Way", "2Way"))]
    times = [p["uptime"] for p in peers if p["uptime"] is not None]
    if not first["up"]:
        state = "down"
    elif pending or not peers:
        state = pending[0]["state"] if pending else "no peer"
    else:
        state = "/".join(dict.fromkeys(p["state"] for p in peers if p not in waiting))
    return _LinkRow(
        _clean(name),
        _clean(shown) + (f" +{len(names) - 1}" if len(names) > 1 else ""),
        state,
        human.duration(min(times, default=None)),
        first["bandwidth"],
        first["utilized"],
        _note(entries),
        first["up"] and bool(peers) and not pending,
    )


def _note(entries: list[Json]) -> str:
    """Say what is unusual about a link: derated, damped, or flapping."""
    first = entries[0]
    if derated := first.get("derated"):
        least = min(derated, key=lambda item: float(item["share"]))
        left = f"{human.share(least['share'])} left" if least["share"] else "last resort"
        return _clean(f"{left}: {least['reason'] or least['by']}")
    health = first.get("health")
    if health and health["suppressed"]:
        return f"damped, {human.duration(health['reuse_in'])}"
    flaps = max(entry["flaps"] for entry in entries)
    return f"{count(flaps, 'flap')}" if flaps else ""


def _links_summary(rows: list[_LinkRow]) -> str:
    used = sum(row.utilized or 0.0 for row in rows)
    whole = sum(row.capacity or 0.0 for row in rows)
    carried = f", {human.bandwidth(used)} of {human.bandwidth(whole)} bit/s" if whole else ""
    return f"{sum(row.good for row in rows)} of {len(rows)} up{carried}"


def _link_lines(rows: list[_LinkRow], width: int) -> list[Text]:
    """Align the rows; the bar takes what the other columns leave."""
    cells = [(row.name, row.neighbor, row.state, row.since) for row in rows]
    columns = [_column(cell) for cell in zip(*cells, strict=True)]
    loads = _column([human.share(row.load) for row in rows], right=True)
    sizes = _column([human.bandwidth(row.capacity) for row in rows], right=True)
    fixed = sum(len(column[0]) + 2 for column in columns) if rows else 0
    tail = max((len(row.note) + 2 for row in rows if row.note), default=0)
    fixed += len(loads[0]) + len(sizes[0]) + 3 if rows else 0
    bar = min(max(width - fixed - min(tail, width // 3), _NARROW_BAR), _WIDE_BAR)
    lines = []
    for index, row in enumerate(rows):
        name, neighbor, state, since = (column[index] for column in columns)
        line = Text(f"{name}  {neighbor}  ")
        line.append(f"{state}  ", style="green" if row.good else "red")
        line.append(f"{since}  ", style="dim")
        line.append_text(_bar(row.load, bar))
        line.append(f" {loads[index]}  {sizes[index]}")
        line.append(f"  {row.note}" if row.note else "", style="yellow")
        lines.append(line)
    return lines


def _bar(load: float | None, width: int) -> Text:
    """Draw a load in eighths of characters; what is left is dotted."""
    part = min(max(load or 0.0, 0.0), 1.0)
    whole, rest = divmod(round(part * width * 8), 8)
    filled = "█" * whole + (_EIGHTHS[rest] if rest else "")
    style = "red" if part >= _HOT else "yellow" if part >= _WARM else "green"
    return Text(filled, style=style).append("·" * (width - len(filled)), style="dim")


# -- weights and events ----------------------------------------------------------------------


def _apart(weights: Json) -> list[Json]:
    """Return the vectors whose shares are not those of ECMP, the farthest first."""
    found = [(_distance(vector), vector) for vector in weights["vectors"]]
    found = [pair for pair in found if pair[0] > _APART]
    return [vector for _, vector in sorted(found, key=lambda pair: -pair[0])]


def _distance(vector: Json) -> float:
    shares = ((hop["share"], hop["ecmp_share"]) for hop in vector["members"])
    return max((abs(share / equal - 1) for share, equal in shares if equal), default=0.0)


def _weights_summary(weights: Json, apart: list[Json]) -> str:
    return f"{len(apart)} of {count(len(weights['vectors']), 'set')}, by {weights['metric']}"


def _weight_lines(vectors: list[Json], width: int) -> list[Text]:
    titles = _column([_vector_title(vector) for vector in vectors])
    return [_vector(*pair, width) for pair in zip(titles, vectors, strict=True)]


def _vector_title(vector: Json) -> str:
    examples, more = vector["examples"], vector["prefixes"] - 1
    first = examples[0] if examples else human.DASH
    return _clean(f"{first} +{more}" if more > 0 else first)


def _vector(title: str, vector: Json, width: int) -> Text:
    """Print a set of next hops: its routes, a column for each share, and the shares."""
    members = vector["members"]
    largest = max((hop["share"] for hop in members), default=0.0) or 1.0
    line = Text(f"{title}  ")
    for hop in members[: min(_MEMBERS_SHOWN, width // 3)]:
        height = round(hop["share"] / largest * (len(_HEIGHTS) - 1))
        line.append(_HEIGHTS[height], style=_moved(hop) or "dim")
    for hop in sorted(members, key=lambda hop: float(hop["share"] - hop["ecmp_share"])):
        line.append(f"  {_clean(human.router(hop['neighbor'], hop['hostname']))} ", style="dim")
        line.append(human.share(hop["share"]), style=_moved(hop))
    return line


def _moved(hop: Json) -> str:
    """Return the colour of a share that is less, or more, than an equal one."""
    moved = hop["share"] / hop["ecmp_share"] if hop["ecmp_share"] else 1.0
    return "yellow" if moved < 1 - _APART else "green" if moved > 1 + _APART else ""


def _events(log: Json, convergence: Json) -> Iterator[Text]:
    """Yield the lines of the log, with changes in words in place of the log's own of them."""
    lines = [(line["time"], _line(line)) for line in log["lines"] if line["event"] != _CHANGED]
    begun = min((at for at, _ in lines), default=0.0)
    changes = ((each["at"], _change(each)) for each in convergence["changes"])
    lines += [(at, line) for at, line in changes if at >= begun]
    for at, text in sorted(lines, key=lambda line: float(line[0]), reverse=True):
        yield Text(time.strftime("%H:%M:%S ", time.localtime(at)), style="dim").append_text(text)


def _line(line: Json) -> Text:
    text = Text(_clean(line["event"]), style=f"not dim {_LEVELS.get(line['level'], '')}")
    for key, value in line["fields"].items():
        text.append(f" {key}=", style="dim")
        text.append(_clean(plain(value)), style="not dim")
    return text


def _change(change: Json) -> Text:
    what = "; ".join(change["changes"] or change["causes"])
    text = Text(_clean(what), style="not dim bold")
    routes = count(change["routes"], "route")
    return text.append(f"  {routes} in {human.duration(change['total'])}", style="not bold dim")


# -- parts -----------------------------------------------------------------------------------


def _title(name: str, summary: str, width: int) -> Text:
    line = Text(name, style="bold").append(f"  {summary} ", style="not bold dim")
    return line.append("─" * max(width - line.cell_len, 0), style="not bold dim")


def _shortened(lines: Sequence[Text], room: int, none: str) -> Iterable[Text]:
    """Return at most ``room`` lines; the last one counts what has no room."""
    if not lines:
        return [Text(none, style="dim")]
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], Text(f"and {len(lines) - room + 1} more", style="dim")]


def _column(cells: Sequence[str], *, right: bool = False) -> list[str]:
    """Pad cells to the widest."""
    wide = max(map(len, cells), default=0)
    pad: Callable[[str, int], str] = str.rjust if right else str.ljust
    return [pad(cell, wide) for cell in cells]


def _clean(text: object) -> str:
    """Return text of other routers in one line, without control characters."""
    return "".join(char if char.isprintable() else "?" for char in str(text))
