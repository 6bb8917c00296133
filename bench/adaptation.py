"""Weights that follow load, on the virtual clock: what they gain, and that they stay still.

Whole routers with real flooding on fabrics of three and of five stages, and fluid traffic over
what their kernels hold. Virtual time is exact: these figures do not depend on the machine.

``python bench/adaptation.py`` takes about a minute and a half; ``--long`` watches five minutes
of everything; ``--large`` takes two hundred routers (hours).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fared.rib.settings import SolverSettings
from fared.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3, clos5
from fared.sim.load import Demands, OnOff, Traffic, all_to_all, ring
from fared.sim.watch import Watch, Watched
from fared.weights.adaptation import AdaptationSettings
from fared.weights.path_capacity import WeightMode

FIFTH = DEFAULT_CAPACITY / 5
SETTLING = 100
UNDAMPED = 0.0
SWING, SPREAD, REWRITES = 10.0, 3.0, 0.2
"""Points, points, a leaf a second: what weights may move after settling."""
ANNOUNCED, ANNOUNCED_MOST = 3.0, 5
"""LSAs a link a second: on average, and in any second."""
Row = dict[str, Any]
Build = Callable[[SolverSettings], Fabric]


@dataclass(frozen=True)
class Kind:
    """A fabric, and where it is hurt: a spine with others' traffic, a downlink at a fifth."""

    name: str
    build: Build
    spine: str
    slow: tuple[str, str]
    pair: tuple[str, str]

    def started(self, mode: WeightMode, time_constant: float = 20.0) -> Fabric:
        """Start all routers, and wait until they agree."""
        adaptation = AdaptationSettings(time_constant=time_constant)
        fabric = self.build(SolverSettings(mode=mode, adaptation=adaptation))
        fabric.network.start_all()
        fabric.network.run_until_quiet(120)
        return fabric


def three_stages(spines: int, leaves: int) -> Kind:
    """Figure 1 at any size."""
    return Kind(
        f"3-stage {spines}x{leaves}",
        lambda solver: clos3(spines, leaves, solver=solver),
        "S1",
        ("S1", "L2"),
        ("L1", "L2"),
    )


def five_stages(pods: int, leaves: int, spines: int, supers: int) -> Kind:
    """Figure 2 at any size."""
    nodes = pods * (leaves + spines) + spines * supers
    return Kind(
        f"5-stage of {nodes}",
        lambda solver: clos5(pods, leaves, spines, supers, solver=solver),
        "p2.S1",
        ("p2.S1", "p2.L1"),
        ("p1.L1", "p2.L1"),
    )


SMALL = (three_stages(4, 8), five_stages(2, 4, 4, 4))
LARGE = (three_stages(4, 196), five_stages(8, 22, 2, 22))


def uplinks(fabric: Fabric) -> float:
    """What a leaf can send, bytes/s."""
    leaf = next(iter(fabric.leaf_prefixes))
    return DEFAULT_CAPACITY * sum(1 for tail, _ in fabric.links if tail == leaf)


def taken(fabric: Fabric, spine: str, part: float = 0.5) -> dict[tuple[str, str], float]:
    """Other traffic on all links of a spine, both ways."""
    load = part * DEFAULT_CAPACITY
    ends = [(a, b) for a, b in fabric.links if spine in (a, b)]
    return {way: load for a, b in ends for way in ((a, b), (b, a))}


# -- one downlink of four at a fifth ----------------------------------------------------------


def slow_downlink(kind: Kind) -> Iterator[Row]:
    """How long a collective takes over the least time that the links allow, by routing."""
    modes = (WeightMode.NONE, WeightMode.CAPACITY, WeightMode.AVAILABLE)
    found: dict[str, dict[WeightMode, float]] = {}
    for mode in modes:
        fabric = kind.started(mode)
        fabric.network.set_capacity(*kind.slow, FIFTH)
        fabric.network.run_for(2)
        for name, demands in _patterns(kind, fabric).items():
            traffic = Traffic(fabric, demands)
            if mode is WeightMode.AVAILABLE:
                traffic.start()
                fabric.network.run_for(SETTLING)
                traffic.stop()
            worst = max(traffic.utilisation().values())
            found.setdefault(name, {})[mode] = worst / _bound(kind, fabric, demands)
    for name, times in found.items():
        for mode in modes[1:]:
            yield row(
                f"{kind.name}, a downlink at a fifth, {name}: completion time, {mode}",
                times[mode],
                times[WeightMode.NONE],
                "x bound",
                "<= 1.19",  # 84 % of the bound
                times[mode] <= 1 / 0.84,
            )


def _patterns(kind: Kind, fabric: Fabric) -> dict[str, Demands]:
    source, end = kind.pair
    rate = 0.6 * uplinks(fabric)
    return {
        "one pair": {(source, fabric.leaf_prefixes[end]): rate},
        "ring": ring(fabric, rate),
        "all-to-all": all_to_all(fabric, rate),
    }


def _bound(kind: Kind, fabric: Fabric, demands: Demands) -> float:
    """The least utilisation any routing could have: what leaves send and get over their links."""
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


def busy(
    kind: Kind, mode: WeightMode, load: float, *, time_constant: float = 20.0, period: float = 0.0
) -> Watch:
    """All-to-all at ``load`` of the uplinks; ``period``: on and off by halves."""
    fabric = kind.started(mode, time_constant)
    traffic = Traffic(
        fabric,
        all_to_all(fabric, load * uplinks(fabric)),
        background=taken(fabric, kind.spine),
        pattern=OnOff(period, 0.5) if period else None,
    )
    traffic.start()
    return Watch(traffic)


def background(kind: Kind, seconds: int) -> Iterator[Row]:
    """By capacity, by load, and by load undamped."""
    by_capacity = busy(kind, WeightMode.CAPACITY, 0.6).run(5)
    watch = busy(kind, WeightMode.AVAILABLE, 0.6)
    watch.run(SETTLING)
    damped = watch.run(seconds)
    watch = busy(kind, WeightMode.AVAILABLE, 0.6, time_constant=UNDAMPED)
    watch.run(5)
    undamped = watch.run(10)
    what = f"{kind.name}, half of a spine taken, {seconds} s"
    margin = 0.83 / 1.06
    yield row(
        f"{what}: worst utilisation, available beside capacity",
        damped.worst,
        by_capacity.worst,
        "",
        f"ratio <= {margin:.2f}",
        damped.worst <= margin * by_capacity.worst,
    )
    beside = "damped beside undamped"
    yield row(
        f"{what}: std of shares, {beside}",
        damped.spread,
        undamped.spread,
        "points",
        f"< {SPREAD:g}, other above",
        damped.spread < SPREAD < undamped.spread,
    )
    yield row(
        f"{what}: group rewrites, {beside}",
        damped.rewrites,
        undamped.rewrites,
        "/leaf/s",
        f"< {REWRITES:g}, other above",
        damped.rewrites < REWRITES < undamped.rewrites,
    )
    yield row(f"{what}: highest utilisation, {beside}", damped.highest, undamped.highest, "")


# -- computing and exchanging by turns --------------------------------------------------------


def bursts(kind: Kind, period: float, seconds: int) -> Iterator[Row]:
    """An all-reduce that is on for half of each period."""
    watch = busy(kind, WeightMode.AVAILABLE, 0.5, period=period)
    watch.run(SETTLING)
    seen: Watched = watch.run(seconds)
    what = f"{kind.name}, on and off every {period:g} s, {seconds} s"
    yield row(
        f"{what}: swing of shares", seen.swing, None, "points", f"< {SWING:g}", seen.swing < SWING
    )
    yield row(
        f"{what}: LSAs, mean",
        seen.announced,
        None,
        "/link/s",
        f"<= {ANNOUNCED:g}",
        seen.announced <= ANNOUNCED,
    )
    yield row(
        f"{what}: LSAs, most",
        seen.announced_most,
        None,
        "/link/s",
        f"<= {ANNOUNCED_MOST}",
        seen.announced_most <= ANNOUNCED_MOST,
    )


def row(
    name: str,
    ours: float,
    other: float | None,
    unit: str,
    goal: str | None = None,
    met: bool | None = None,
) -> Row:
    """One line of the report."""
    return {
        "name": name,
        "ours": ours,
        "other": other,
        "unit": unit,
        "ratio": ours / other if other else None,
        "goal": goal,
        "met": met,
    }


def rows() -> list[Row]:
    """The short form, for ``make bench``."""
    return [found for kind in SMALL for found in _rows(kind, 60, (2.0,), 20)]


def _rows(kind: Kind, seconds: int, periods: tuple[float, ...], bursting: int) -> Iterator[Row]:
    yield from slow_downlink(kind)
    yield from background(kind, seconds)
    for period in periods:
        yield from bursts(kind, period, bursting)


def main() -> int:
    """Print each figure as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="five minutes of everything")
    parser.add_argument("--large", action="store_true", help="two hundred routers")
    parser.add_argument("--stages", type=int, choices=(3, 5), help="only fabrics of so many")
    parser.add_argument("--only", choices=("slow", "background", "bursts"))
    parser.add_argument("--period", type=float, help="of bursts, only this")
    arguments = parser.parse_args()
    kinds = LARGE if arguments.large else SMALL
    if arguments.stages:
        kinds = (kinds[arguments.stages == 5],)
    long = arguments.long or arguments.large
    periods = (0.5, 2.0, 20.0) if arguments.period is None else (arguments.period,)
    seconds = 300 if long else 60
    for kind in kinds:
        sections = {
            "slow": lambda kind=kind: slow_downlink(kind),
            "background": lambda kind=kind: background(kind, seconds),
            "bursts": lambda kind=kind: (r for p in periods for r in bursts(kind, p, seconds)),
        }
        for name, section in sections.items():
            if arguments.only not in (None, name):
                continue
            began = time.process_time()
            for found in section():
                other = "" if found["other"] is None else f" ({found['other']:.3g})"
                verdict = {None: "", True: "met", False: "MISSED"}[found["met"]]
                print(
                    f"{found['name']}: {found['ours']:.3g}{other} {found['unit']}",
                    f"[{found['goal'] or 'no goal'}] {verdict}",
                    flush=True,
                )
            print(f"  {name}: {time.process_time() - began:.0f} s of CPU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
