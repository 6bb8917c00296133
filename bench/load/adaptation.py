"""Weights that follow load, on the virtual clock: their gain in utilisation and their stability.

Complete routers flood for real on fabrics of three and of five stages; fluid traffic follows the
routes in their simulated kernels. Virtual time is exact: the figures do not depend on the machine.

``--seconds 300 --periods 0.5 2 20`` measures for five minutes. ``--large`` takes two hundred
routers; ``--job`` sets how many of the leaves exchange data. ``--one-area`` runs OSPF in a single
area on the five-stage fabric: only links advertise load there, which makes following it cheapest.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3, clos5
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.extensions.sim.load import Demands, OnOff, Traffic, all_to_all, ring
from fared.extensions.sim.watch import Watch, Watched
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.router import events

FIFTH = DEFAULT_CAPACITY / 5
SETTLING = 60
BOUND = 0.84
SWING, SPREAD, REWRITES = 10.0, 3.0, 0.2
"""Limits after settling: points, points, group rewrites per leaf and second."""
ANNOUNCED, ANNOUNCED_MOST = 3.0, 5
"""LSAs per link and second: the mean, and the most in any second."""
DAMPED = AdaptationSettings()
Row = dict[str, Any]
Values = tuple[float, float | None]


@dataclass(frozen=True)
class Rule:
    """How routers compute weights: the input, and its damping."""

    name: str
    mode: WeightMode
    adaptation: AdaptationSettings = DAMPED


ECMP = Rule("ECMP", WeightMode.NONE)
CAPACITY = Rule("capacity", WeightMode.CAPACITY)
AVAILABLE = Rule("available", WeightMode.AVAILABLE)
UNDAMPED = Rule("undamped", WeightMode.AVAILABLE, AdaptationSettings(time_constant=0.0))
EQUALISE = Rule("equalise", WeightMode.AVAILABLE, AdaptationSettings(equalise=True))


@dataclass(frozen=True)
class Kind:
    """A fabric and its impairments: a spine with background traffic, a downlink at a fifth."""

    name: str
    build: Callable[[], Fabric]
    spine: str
    slow: tuple[str, str]
    pair: tuple[str, str]
    job: tuple[str, ...] = ()
    """Leaves that exchange data, all by default."""

    def started(self) -> Fabric:
        """Start all routers, and wait until they converge."""
        fabric = self.build()
        fabric.network.start_all()
        fabric.network.run_until_quiet(120)
        gc.freeze()  # these objects stay; collecting over them takes an eighth of the run time
        return fabric


def three_stages(spines: int, leaves: int) -> Kind:
    """Figure 1 at any size."""
    return Kind(
        f"3-stage, {spines + leaves} routers",
        lambda: clos3(spines, leaves),
        "S1",
        ("S1", "L2"),
        ("L1", "L2"),
    )


def five_stages(
    pods: int, leaves: int, spines: int, supers: int, job: tuple[str, ...] = ()
) -> Kind:
    """Figure 2 at any size; non-blocking: a plane has as many super-spines as a PoD has leaves."""
    return Kind(
        f"5-stage, {pods * (leaves + spines) + spines * supers} routers",
        lambda: clos5(pods, leaves, spines, supers),
        "p2.S1",
        ("p2.S1", "p2.L1"),
        ("p1.L1", "p2.L1"),
        job,
    )


SMALL = (three_stages(4, 8), five_stages(2, 2, 4, 2))
JOB, BUSY_PODS = 16, 4
"""In large fabrics: the number of leaves that exchange data, and of the PoDs they are in."""


def large(job: int = JOB) -> tuple[Kind, Kind]:
    """Two hundred routers over IS-IS, the protocol that starts fastest at this size: minutes.

    ``job`` leaves, 40 at most, exchange data; all other routers route, flood and adapt weights.
    """
    pods, per_pod = 12, 10
    return (
        Kind(
            "3-stage, 200 routers, IS-IS",
            lambda: clos3_isis(4, 196),
            "S1",
            ("S1", "L2"),
            ("L1", "L2"),
            tuple(f"L{leaf}" for leaf in range(1, job + 1)),
        ),
        Kind(
            "5-stage, 208 routers, IS-IS levels",
            lambda: clos5_levels(pods, per_pod, 4, per_pod),
            "p2.S1",
            ("p2.S1", "p2.L1"),
            ("p1.L1", "p2.L1"),
            _in_pods(job),
        ),
    )


def _in_pods(job: int) -> tuple[str, ...]:
    """Return the names of ``job`` leaves, spread over the first PoDs."""
    each = -(-job // BUSY_PODS)
    return tuple(f"p{n // each + 1}.L{n % each + 1}" for n in range(job))


def one_area(size: str, job: int = JOB) -> Kind:
    """Five stages, one OSPF area; ``size``: PoDs, leaves and spines of each, super-spines."""
    pods, leaves, spines, supers = map(int, size.split("x"))
    return five_stages(pods, leaves, spines, supers, _in_pods(job))


def follow(fabric: Fabric, rule: Rule) -> None:
    """Apply a rule to all routers, as a reload of their configuration does."""
    solver = SolverSettings(mode=rule.mode, adaptation=rule.adaptation)
    for name, node in fabric.network.nodes.items():
        changed = replace(node.running.settings, solver=solver)
        fabric.network.input(name, events.RouterSettingsApplied(changed))
    fabric.network.run_for(1)


def uplinks(fabric: Fabric) -> float:
    """Return the total capacity of a leaf's uplinks, bytes/s."""
    leaf = next(iter(fabric.leaf_prefixes))
    return DEFAULT_CAPACITY * sum(1 for tail, _ in fabric.links if tail == leaf)


def taken(fabric: Fabric, spine: str, part: float = 0.5) -> dict[tuple[str, str], float]:
    """Return background traffic on all links of a spine, in both directions."""
    load = part * DEFAULT_CAPACITY
    ends = [(a, b) for a, b in fabric.links if spine in (a, b)]
    return {way: load for a, b in ends for way in ((a, b), (b, a))}


# -- one downlink of four at a fifth ----------------------------------------------------------


def slow_downlink(kind: Kind, fabric: Fabric) -> Iterator[Row]:
    """Completion time of a collective, relative to the bound of the links, by routing."""
    found: dict[str, dict[str, float]] = {}
    fabric.network.set_capacity(*kind.slow, FIFTH)
    fabric.network.run_for(2)
    for rule in (ECMP, CAPACITY, AVAILABLE):
        follow(fabric, rule)
        for name, demands in _patterns(kind, fabric).items():
            traffic = Traffic(fabric, demands)
            if rule is AVAILABLE:
                traffic.start()
                fabric.network.run_for(SETTLING / 2)
                traffic.stop()
            worst = max(traffic.utilisation().values())
            found.setdefault(name, {})[rule.name] = worst / _bound(kind, fabric, demands)
    fabric.network.set_capacity(*kind.slow, DEFAULT_CAPACITY)
    for name, times in found.items():
        for rule in (CAPACITY, AVAILABLE):
            yield row(
                f"{kind.name}, a downlink at a fifth, {name}: completion time, {rule.name} | ECMP",
                (times[rule.name], times[ECMP.name]),
                "x bound",
                "<= 1.19",  # 84 % of the bound
                met=times[rule.name] <= 1 / BOUND,
            )


def _patterns(kind: Kind, fabric: Fabric) -> dict[str, Demands]:
    source, end = kind.pair
    rate = 0.6 * uplinks(fabric)
    return {
        "one pair": {(source, fabric.leaf_prefixes[end]): rate},
        "ring": ring(fabric, rate, kind.job),
        "all-to-all": all_to_all(fabric, rate, kind.job),
    }


def _bound(kind: Kind, fabric: Fabric, demands: Demands) -> float:
    """The least utilisation of any routing: the traffic of each leaf over its capacity."""
    full = uplinks(fabric)
    slow = fabric.leaf_prefixes[kind.slow[1]]
    sent: dict[str, float] = {}
    received: dict[object, float] = {}
    for (source, prefix), rate in demands.items():
        sent[source] = sent.get(source, 0.0) + rate
        received[prefix] = received.get(prefix, 0.0) + rate
    less = full - DEFAULT_CAPACITY + FIFTH
    into = [rate / (less if prefix == slow else full) for prefix, rate in received.items()]
    return max(*into, *(rate / full for rate in sent.values()))


# -- half of a spine's capacity is taken ------------------------------------------------------


def busy(kind: Kind, fabric: Fabric, load: float, *, period: float = 0.0) -> Traffic:
    """All-to-all at ``load`` of the uplinks; ``period``: on and off by halves."""
    return Traffic(
        fabric,
        all_to_all(fabric, load * uplinks(fabric), kind.job),
        background=taken(fabric, kind.spine),
        pattern=OnOff(period, 0.5) if period else None,
    )


def watched(traffic: Traffic, settling: int, seconds: int) -> Watched:
    """Let weights settle under traffic, then record for ``seconds``."""
    traffic.start()
    watch = Watch(traffic)
    watch.run(settling)
    seen = watch.run(seconds)
    traffic.stop()
    return seen


def background(kind: Kind, fabric: Fabric, seconds: int) -> Iterator[Row]:
    """Compare weights by capacity, by load, by load undamped, and with equal utilisation."""
    follow(fabric, CAPACITY)
    by_capacity = max(busy(kind, fabric, 0.6).utilisation().values())
    follow(fabric, AVAILABLE)
    damped = watched(busy(kind, fabric, 0.6), SETTLING, seconds)
    what = f"{kind.name}, half of a spine taken, {seconds} s"
    margin = 0.83 / 1.06
    yield row(
        f"{what}: worst utilisation, available | capacity",
        (damped.worst, by_capacity),
        "",
        f">= {1 / margin:.2f}x",
        met=damped.worst <= margin * by_capacity,
    )
    follow(fabric, EQUALISE)
    equalised = watched(busy(kind, fabric, 0.6), SETTLING, seconds)
    yield row(
        f"{what}: worst utilisation, equalise | available",
        (equalised.worst, damped.worst),
        "",
        "> 1x",
        met=equalised.worst < damped.worst,
    )
    follow(fabric, UNDAMPED)
    undamped = watched(busy(kind, fabric, 0.6), 5, 10)
    for rule, seen in ((AVAILABLE, damped), (EQUALISE, equalised)):
        beside = f"{rule.name} | undamped"
        yield row(
            f"{what}: std of shares, {beside}",
            (seen.spread, undamped.spread),
            "points",
            f"< {SPREAD:g}, other above",
            met=seen.spread < SPREAD < undamped.spread,
        )
        yield row(
            f"{what}: group rewrites, {beside}",
            (seen.rewrites, undamped.rewrites),
            "/leaf/s",
            f"< {REWRITES:g}, other above",
            met=seen.rewrites < REWRITES < undamped.rewrites,
        )
    beside = "available | undamped"
    yield row(f"{what}: highest utilisation, {beside}", (damped.highest, undamped.highest), "")


# -- computing and exchanging in turn ---------------------------------------------------------


def bursts(kind: Kind, fabric: Fabric, period: float, seconds: int) -> Iterator[Row]:
    """An all-reduce that sends during half of each period.

    It begins with weights by capacity: from those that another rule has left, shares would still
    move toward their targets, by as much as undamped weights happened to be away from them.
    """
    follow(fabric, CAPACITY)
    follow(fabric, AVAILABLE)
    seen = watched(busy(kind, fabric, 0.5, period=period), SETTLING, seconds)
    what = f"{kind.name}, on and off every {period:g} s, {seconds} s"
    mean, most = seen.advertised, seen.advertised_most
    for name, value, unit, limit in (
        ("swing of shares", seen.swing, "points", SWING),
        ("LSAs, mean", mean, "/link/s", ANNOUNCED),
        ("LSAs, most", most, "/link/s", ANNOUNCED_MOST),
    ):
        yield row(f"{what}: {name}", (value, None), unit, f"<= {limit:g}", met=value <= limit)


def row(name: str, values: Values, unit: str, goal: str | None = None, **met: bool) -> Row:
    """One line of the report; ``met``: whether its goal is met."""
    ours, other = values
    return {
        "name": name,
        "ours": ours,
        "other": other,
        "unit": unit,
        "ratio": other / ours if other and ours else None,
        "goal": goal,
        "met": met.get("met"),
    }


def measured(kind: Kind, arguments: argparse.Namespace) -> Iterator[Row]:
    """All figures of one fabric; the fabric is started once."""
    fabric = kind.started()
    only = arguments.only
    if only in (None, "slow"):
        yield from slow_downlink(kind, fabric)
    if only in (None, "background"):
        yield from background(kind, fabric, arguments.seconds)
    if only in (None, "bursts"):
        for period in arguments.periods:
            yield from bursts(kind, fabric, period, arguments.seconds)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(description="Weights that follow load, on the virtual clock.")
    found.add_argument("--seconds", type=int, default=20, help="recorded after settling")
    found.add_argument("--periods", type=float, nargs="*", default=[2.0], help="of bursts, s")
    found.add_argument("--large", action="store_true", help="two hundred routers")
    found.add_argument("--job", type=int, default=JOB, help="leaves that exchange data")
    found.add_argument(
        "--one-area",
        nargs="?",
        const="12x10x4x10",
        metavar="SIZE",
        help="PoDs x leaves x spines x supers",
    )
    found.add_argument("--stages", type=int, choices=(3, 5), nargs="*", default=[3, 5])
    found.add_argument("--only", choices=("slow", "background", "bursts"))
    return found


def rows() -> list[Row]:
    """The short form, for ``make bench``: one process per fabric, as no figure is a run time."""
    with ProcessPoolExecutor(len(SMALL)) as pool:
        return [found for part in pool.map(_short, range(len(SMALL))) for found in part]


def _short(number: int) -> list[Row]:
    return list(measured(SMALL[number], parser().parse_args([])))


def main() -> int:
    """Print each figure as soon as it is measured."""
    arguments = parser().parse_args()
    kinds = large(arguments.job) if arguments.large else SMALL
    if arguments.one_area:
        kinds = (kinds[0], one_area(arguments.one_area, arguments.job))
    for stages, kind in zip((3, 5), kinds, strict=True):
        if stages not in arguments.stages:
            continue
        began = time.process_time()
        for found in measured(kind, arguments):
            other = "" if found["other"] is None else f" | {found['other']:.3g}"
            verdict = {None: "", True: "met", False: "MISSED"}[found["met"]]
            print(
                f"{found['name']}: {found['ours']:.3g}{other} {found['unit']}",
                f"[{found['goal'] or 'no goal'}] {verdict}",
                flush=True,
            )
        print(f"  {time.process_time() - began:.0f} s of CPU", flush=True)
    return 0
