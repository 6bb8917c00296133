"""Weights that follow load in real kernels, for minutes: their gain and their stability.

The fabric has 4 spines and 8 leaves with links of 10 Mbit/s, so that the machine is not the
bottleneck. Background load, pinned to spine S1, takes half the capacity of all links of S1.

- ``capacity``, ``available``, ``undamped``: every host sends 56 % of the capacity of its leaf's
  uplinks to the next host, in 1024 paced UDP flows. Weights by capacity offer a link of S1 1.06 of
  its rate, weights by available capacity 0.82 (for fluid load). The loop gain is 1.8, so undamped
  weights (``time-constant: 0s``) must oscillate.
- ``available by packets``: the same, with ``granularity: packet``; flows then have no path.
- ``on/off 0.5 s``, ``2 s``, ``20 s``: the same flows send 75 % in the first half of each period,
  like an all-reduce ring that takes half of each iteration.
- ``TCP on/off 2 s``, ``20 s``: an all-reduce ring over TCP starts with each period and runs until
  it is complete, on links of 40 Mbit/s. These runs must be named explicitly.

``make bench`` measures the first four for a few seconds each. ``python -m bench adaptive_kernel``
measures the first seven for 300 s each after settling, and reports more figures; its arguments are
SECONDS and names of runs. It writes readings, one per second, to build/bench/adaptive_kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from bench import OUTPUT
from bench.lab.fabrics import clos, configure
from bench.load.recorder import Behaviour, Moment, Recorder, behaviour
from bench.report import show
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.steady import OVERHEAD, SteadyStream, between_hosts, steady, through
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

RESULTS = OUTPUT / "adaptive_kernel"
RATE, TCP_RATE = 10e6 / 8, 40e6 / 8
PAYLOAD, MTU = 2700, 3000
FLOWS = 1024
"""Each flow sends one packet per second: a window of a second contains every flow once."""
SPINE, SPINES = "S1", 4
BACKGROUND = 0.5
ON_LOAD = 0.75
"""Load of an on/off ring while it sends, as a part of the capacity of the uplinks."""
FILLED, ELEPHANTS = 0.4, 8
"""Shortest duration of a ring over TCP as a part of half a period, and its flows per pair."""
CAPACITY, AVAILABLE, UNDAMPED = "capacity", "available", "undamped"
PACKETS = "available by packets"
SETTINGS: dict[str, dict[str, Any]] = {
    CAPACITY: {"metric": "capacity"},
    AVAILABLE: {"metric": "available"},
    PACKETS: {"metric": "available", "granularity": "packet"},
    UNDAMPED: {"metric": "available", "time-constant": "0s"},
}
ON_OFF = {"on/off 0.5 s": 0.5, "on/off 2 s": 2.0, "on/off 20 s": 20.0}
TCP_ON_OFF = {f"TCP {name}": period for name, period in ON_OFF.items()}
LONG, LONG_SETTLING = 300.0, 80.0
SHORT = 9.0
SHORT_SETTLING = {CAPACITY: 2.0, AVAILABLE: 20.0, UNDAMPED: 4.0, PACKETS: 20.0}
READY = 120.0
LATE = 120.0
GOAL_MARGIN = 1.06 / 0.83
MOST_DEVIATION = 3.0
MOST_SWING = 10.0
MOST_REWRITES = 0.2
MOST_ORIGINATIONS = 5.0


# -- load --------------------------------------------------------------------------------------


def ring(fabric: Fabric) -> Iterator[tuple[str, str, str]]:
    """Yield each host, the next host, and the leaf of the next host."""
    hosts = [node.name for node in fabric.plan.hosts]
    for source, target in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        yield source, target, rank_of(fabric.plan, target).leaf


def background(fabric: Fabric, rate: float) -> list[SteadyStream]:
    """Return streams of half the rate, bytes/s, on all links of a spine, in both directions."""
    return [
        replace(through(fabric, source, SPINE, leaf, BACKGROUND * rate), payload=PAYLOAD)
        for source, _, leaf in ring(fabric)
    ]


def demand(fabric: Fabric, period: float | None) -> list[SteadyStream]:
    """Return streams from every host to the next: steady, or in the first half of each period."""
    rate = FLOWS * (PAYLOAD + OVERHEAD) if period is None else ON_LOAD * SPINES * RATE
    return [
        replace(between_hosts(fabric, source, target, rate, FLOWS), payload=PAYLOAD, period=period)
        for source, target, _ in ring(fabric)
    ]


def fluid() -> dict[str, float]:
    """The highest load that fluid traffic offers a link, as a part of its rate."""
    each = FLOWS * (PAYLOAD + OVERHEAD) / (SPINES * RATE)
    part = (1 - BACKGROUND) / (SPINES - BACKGROUND)
    return {CAPACITY: each + BACKGROUND, AVAILABLE: BACKGROUND + each * SPINES * part}


def message(period: float) -> int:
    """Size of a message whose all-reduce fits half a period: each host sends 2 * 7/8 of it."""
    return round(period / 2 * FILLED * SPINES * TCP_RATE / (2 * 7 / 8) / 8) * 8


# -- watching ----------------------------------------------------------------------------------


def watch(fabric: Fabric, name: str, settling: float, seconds: float) -> Behaviour:
    """Offer the load of a run to a fabric; return its behaviour after settling."""
    configure(fabric, SETTINGS.get(name, SETTINGS[AVAILABLE]))
    over_tcp = name in TCP_ON_OFF
    streams = background(fabric, TCP_RATE if over_tcp else RATE)
    if not over_tcp:
        streams += demand(fabric, ON_OFF.get(name))
    with ExitStack() as stack:
        stack.enter_context(steady(fabric, streams))
        stack.enter_context(recorder := Recorder(fabric, packet=PAYLOAD + OVERHEAD))
        if over_tcp:
            rings(fabric, TCP_ON_OFF[name], settling + seconds)
        else:
            time.sleep(settling + seconds)
    moments = recorder.moments
    file = RESULTS / f"{name.replace('/', '-').replace(' ', '-')}.json"
    file.write_text(json.dumps([plain(moment) for moment in moments]), "utf-8")
    return behaviour([moment for moment in moments if moment.at >= settling])


def rings(fabric: Fabric, period: float, seconds: float) -> None:
    """Repeat an all-reduce over TCP between all hosts."""
    job = Job(
        "all-reduce-ring",
        tuple(node.name for node in fabric.plan.hosts),
        message(period),
        ELEPHANTS,
        iterations=None,
        seconds=seconds,
        period=period,
    )
    report = run(fabric, [job], timeout=seconds + LATE).jobs[0]
    said = f"{len(report.iterations)} rings in {seconds / period:.0f} periods"
    print(f"{said}, median {report.median:.3g} s", file=sys.stderr, flush=True)


def plain(moment: Moment) -> dict[str, Any]:
    """Convert a reading to JSON types."""
    return {
        "at": moment.at,
        "shares": {" ".join(key): round(share, 5) for key, share in moment.shares.items()},
        "offered": {" ".join(key): round(part, 5) for key, part in moment.offered.items()},
        "rewrites": moment.rewrites,
        "sequences": {" ".join(key): number for key, number in moment.sequences.items()},
    }


def play(names: Sequence[str], seconds: float, settling: dict[str, float]) -> dict[str, Behaviour]:
    """Measure runs one after another, in one fabric for each link rate."""
    if sandbox.problem() is not None:
        return {}
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = RESULTS / "behaviour.json"
    results.unlink(missing_ok=True)

    def inside() -> int:
        found: dict[str, dict[str, Any]] = {}
        for rate in (RATE, TCP_RATE):
            here = [name for name in names if (name in TCP_ON_OFF) == (rate == TCP_RATE)]
            if not here:
                continue
            with Fabric.from_topology(clos(f"{rate * 8:.0f}", MTU)) as fabric:
                if await_paths(fabric, READY) is None:
                    raise SystemExit("not every router has all paths")
                for name in here:
                    behaved = watch(fabric, name, settling.get(name, LONG_SETTLING), seconds)
                    print(f"{name}: {behaved}", file=sys.stderr, flush=True)
                    found[name] = asdict(behaved)
                    results.write_text(json.dumps(found), "utf-8")
        return 0

    sandbox.run(inside)
    found = json.loads(results.read_text("utf-8")) if results.exists() else {}
    return {name: Behaviour(**one) for name, one in found.items()}


# -- reporting ---------------------------------------------------------------------------------


def rows(names: Sequence[str] = tuple(SETTINGS), seconds: float = SHORT) -> list[dict[str, Any]]:
    """Gain and stability: of the runs of ``make bench`` by default."""
    long = seconds >= LONG
    found = play(names, seconds, {} if long else SHORT_SETTLING)
    result = []
    if {CAPACITY, AVAILABLE} <= found.keys():
        ours, other = found[AVAILABLE].worst_offered, found[CAPACITY].worst_offered
        name = "background of half a spine: what the worst link is offered (other: by capacity)"
        least = f">= {GOAL_MARGIN:.3g}"
        row = _row(name, ours, "of its rate", least, met=other / ours >= GOAL_MARGIN)
        result.append(row | {"other": other, "ratio": other / ours})
    for name, one in found.items():
        result += list(_rows(name, one, long=long))
    return result


def _rows(name: str, one: Behaviour, *, long: bool) -> Iterator[dict[str, Any]]:
    """Stability of one run; group rewrites have a goal only in runs of minutes."""
    if name == CAPACITY:
        return
    if name == UNDAMPED:
        told = "undamped, told apart: standard deviation of the shares"
        met = one.deviation >= MOST_DEVIATION
        yield _row(told, one.deviation, "points", f">= {MOST_DEVIATION:g}", met=met)
    elif name in (AVAILABLE, PACKETS):
        told = f"{name}: standard deviation of the shares"
        met = one.deviation < MOST_DEVIATION
        yield _row(told, one.deviation, "points", f"< {MOST_DEVIATION:g}", met=met)
        if long:
            told = f"{name}: group rewrites of the busiest leaf"
            goal = f"< {MOST_REWRITES:g}"
            yield _row(told, one.rewrites, "/s", goal, met=one.rewrites < MOST_REWRITES)
    else:
        met = one.swing < MOST_SWING
        yield _row(f"{name}: swing of a share", one.swing, "points", f"< {MOST_SWING:g}", met=met)
    met = one.burst <= MOST_ORIGINATIONS
    told = f"{name}: LSAs of a link, most in a second"
    yield _row(told, one.burst, "/s", f"<= {MOST_ORIGINATIONS:g}", met=met)


def _row(name: str, ours: float, unit: str, goal: str | None, *, met: bool) -> dict[str, Any]:
    judged = met if goal else None
    return {"name": name, "ours": ours, "unit": unit, "goal": goal, "met": judged}


def main() -> None:
    """Measure the named runs for so many seconds each."""
    every = [*SETTINGS, *ON_OFF]
    parser = argparse.ArgumentParser(description="Weights under load without congestion control.")
    parser.add_argument("seconds", nargs="?", type=float, default=LONG)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(every))
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(every)):
        parser.error(f"unknown run: {', '.join(unknown)}; known runs: {', '.join(every)}")
    show(rows(given.names or every, given.seconds))
