"""Real TCP over a real fabric: completion times of the same transfers, by routing.

4 spines and 8 leaves with links of 100 Mbit/s and jumbo frames, in one of several states. The same
workloads, from the same source ports, run over FRR (plain ECMP) and over fared: with ``adaptive:
enabled: false`` (plain ECMP), with weights by capacity, with weights by capacity for 128 flows
(``adaptive: flows``), and with weights by available capacity. With one slow downlink they also run
with adaptive off and a static route, whose weights are set by hand for that state.

ECMP places flows at random: a workload with a goal runs with several draws of ports, and medians
are compared. Three limits are reported with each result: the maximum-flow bound (the part reached
is the same for completion time and for goodput); the time that the busiest link needed for the
traffic of the draw; and the part of the bound that the median of many simulated draws reaches.
Host links are unlimited.

Scenarios, each affecting the paths to leaf L2:

- ``healthy``
- ``slow-downlink``: one of its four downlinks at a fifth; ``quarter-downlink``: at a quarter
- ``slow-uplink-and-dead-link``: an uplink of L1 at half, and another spine's link to L2 down
- ``background``: UDP traffic pinned to spine S1 takes half the capacity of all links of S1
- ``lag-member-lost``: S1 and L2 are joined by two links of half the rate, and one is down

``python -m bench dataplane`` runs those of ``make bench``, ``--all`` every workload in every
scenario; ``--help`` lists the options. Results are in build/bench/dataplane/MTU, one file per
scenario and routing, and all of them on one page in report.md there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import OUTPUT
from bench.lab.fabrics import clos, configure, doubled
from bench.report import table
from bench.traffic.dataplane_report import found_in, page, rows_of
from bench.traffic.dataplane_runs import (
    ALL,
    AT_ONCE,
    AVAILABLE,
    BACKGROUND,
    BY_HAND,
    CAPACITY,
    DRAWS,
    FEW,
    FLOWS,
    FRR,
    HAND,
    LAG,
    LEAF,
    LOADED,
    MEMBERS,
    MTU,
    NOTHING,
    PAIR,
    RATE,
    READY,
    RING,
    ROUTINGS,
    SCENARIOS,
    SENDER,
    SETTLED,
    SPINE,
    TOLERANCE,
    WEIGHTED,
    WORKLOADS,
    Run,
    everything,
    short,
)
from fared.extensions.lab import sandbox
from fared.extensions.lab.expected import Rate, expected_shares, path_capacities
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, shares
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.steady import steady, through
from fared.extensions.lab.waiting import await_paths, wait_until
from fared.extensions.lab.workloads.bounds import bound, kernel_rates
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

RESULTS = OUTPUT / "dataplane"


def jobs(hosts: tuple[str, ...]) -> dict[str, Job]:
    """The workloads."""
    return {
        PAIR: Job("broadcast", hosts[:2], 256_000_000, elephants=128, iterations=1),
        RING: Job("all-reduce-ring", hosts, 64_000_000, elephants=16, iterations=1),
        ALL: Job("all-to-all", hosts, 64_000_000, elephants=8, iterations=1),
    }


# -- scenarios ---------------------------------------------------------------------------------


@contextmanager
def state(fabric: Fabric, scenario: str) -> Iterator[Rate]:
    """Set the links to a scenario; yield the rates that remain for workloads.

    The end of the context restores the links.
    """
    undo: list[Callable[[], None]] = []

    def shape(a: str, b: str, part: float) -> None:
        fabric.shape(a, b, part * RATE)
        undo.append(lambda: fabric.shape(a, b, RATE))

    try:
        match scenario:
            case "slow-downlink":
                shape(SPINE, LEAF, 1 / 5)
            case "quarter-downlink":
                shape(SPINE, LEAF, 1 / 4)
            case "slow-uplink-and-dead-link":
                shape("L1", SPINE, 1 / 2)
                fabric.fail("S2", LEAF)
                undo.append(lambda: fabric.heal("S2", LEAF))
            case "lag-member-lost":
                member = fabric.plan.ports_between(SPINE, LEAF)[0].name
                links = fabric.node(SPINE).netns
                links.ip("link", "set", "dev", member, "down")
                undo.append(lambda: fabric.heal(SPINE, LEAF))
        rates = kernel_rates(fabric)
        if scenario != LOADED:
            yield rates
            return
        with background(fabric):
            yield lambda port: _left(rates, port)
    finally:
        for step in undo:
            step()


def _left(rates: Rate, port: PortAddresses) -> float | None:
    rate = rates(port)
    loaded = SPINE in (port.node, port.peer) and not port.to_host
    return rate * (1 - BACKGROUND) if loaded and rate is not None else rate


@contextmanager
def background(fabric: Fabric) -> Iterator[None]:
    """Load every link of one spine by half, in both directions, with traffic pinned to it."""
    leaves = [leaf.name for leaf in fabric.plan.leaves]
    hosts = [host.name for host in fabric.plan.hosts]
    streams = [
        replace(through(fabric, host, SPINE, leaf, BACKGROUND * RATE), segments=8)
        for host, leaf in zip(hosts, [*leaves[1:], leaves[0]], strict=True)
    ]
    with steady(fabric, streams):
        yield


# -- measuring ---------------------------------------------------------------------------------


def measure(runs: Sequence[Run], mtu: int) -> None:
    """Do all runs, in as few fabrics as possible; write the results to files."""
    for kind in ("frr", "fared"):
        for split in (False, True):
            here = [
                run
                for run in runs
                if (run.routing == FRR) == (kind == "frr") and (run.scenario == LAG) == split
            ]
            if not here:
                continue
            topology = clos(mtu=mtu)
            if split:
                topology = doubled(topology, SPINE, LEAF, f"{RATE * 8 / MEMBERS:.0f}")
            with Fabric.from_topology(topology, as_kind=kind) as fabric:
                if await_paths(fabric, READY) is None:
                    raise SystemExit(f"{kind}: not every router has all paths")
                for routing in dict.fromkeys(run.routing for run in here):
                    adaptive = ROUTINGS[routing]
                    if adaptive is not None:
                        configure(fabric, adaptive)
                    for scenario in dict.fromkeys(run.scenario for run in here):
                        _measure(
                            fabric,
                            [r for r in here if (r.scenario, r.routing) == (scenario, routing)],
                            RESULTS / str(mtu),
                        )


def _measure(fabric: Fabric, runs: Sequence[Run], directory: Path) -> None:
    """Run workloads in one scenario over one routing."""
    if not runs:
        return
    scenario, routing = runs[0].scenario, runs[0].routing
    file = directory / f"{scenario}-{routing}.json"
    results = json.loads(file.read_text("utf-8")) if file.exists() else {}
    every = jobs(tuple(node.name for node in fabric.plan.hosts))
    with state(fabric, scenario) as rates:
        for one in runs:
            if routing == AVAILABLE:
                _settle_soon(fabric, rates)
            await_weights(fabric, routing, rates)
            job = every[one.workload]
            capacities = path_capacities(fabric.plan, _living(rates), SENDER, LEAF)
            with by_hand(fabric) if routing == HAND else nullcontext():
                held = shares(fabric.view(SENDER).hops(_prefix(fabric)))
                drawn = [_draw(fabric, job, n, scenario) for n in range(one.draws)]
            seconds, busiest = zip(*drawn, strict=True)
            least = bound(job, fabric.plan, rates)
            results[one.workload] = {
                "bound": least,
                "seconds": seconds,
                "busiest": busiest,
                "shares": [held.get(port, 0.0) for port in capacities],
                "capacities": list(capacities.values()),
            }
            said = ", ".join(f"{value:.2f}" for value in seconds)
            print(
                f"{scenario}, {routing}, {one.workload}: {said} s of {least:.2f} s",
                file=sys.stderr,
                flush=True,
            )
            file.write_text(json.dumps(results), "utf-8")


def _settle_soon(fabric: Fabric, rates: Rate) -> None:
    """Skip the time constant of weights that follow load, while there is no load.

    Undamped weights take their final values at once, and damped weights then start from these.
    """
    configure(fabric, AT_ONCE)
    await_weights(fabric, AVAILABLE, rates)
    configure(fabric, {"metric": "available"})


def _draw(fabric: Fabric, job: Job, seed: int, scenario: str) -> tuple[float, float | None]:
    """Run a job once; return its duration, and the time that the busiest link needed."""
    limits = kernel_rates(fabric)
    before = _sent(fabric)
    seconds = run(fabric, [job], seed=seed).jobs[0].median
    if scenario == LOADED:
        return seconds, None
    return seconds, max(
        (sent - before[port]) / rate
        for port, sent in _sent(fabric).items()
        if (rate := limits(port))
    )


def _sent(fabric: Fabric) -> dict[PortAddresses, int]:
    """Bytes that every router's port to another router has sent."""
    return {
        port: queues[port.name].sent_bytes
        for node in fabric.plan.routers
        for queues in (fabric.view(node.name).queues(),)
        for port in node.fabric_ports
        if port.name in queues
    }


def _order(fabric: Fabric) -> list[str]:
    """The sending leaf's next hops in group order, which determines the path of each flow."""
    links = fabric.node(SENDER).netns
    (route,) = json.loads(links.ip("-j", "route", "show", _prefix(fabric)))
    if "nhid" not in route:
        return [hop["dev"] for hop in route.get("nexthops", [route])]
    known = {hop["id"]: hop for hop in json.loads(links.ip("-j", "nexthop", "show"))}
    found = known[route["nhid"]]
    return [known[member["id"]]["dev"] for member in found.get("group", [found])]


@contextmanager
def by_hand(fabric: Fabric) -> Iterator[None]:
    """Install a static route with weights at the sending leaf, as an operator would."""
    links = fabric.node(SENDER).netns
    hops = {hop.interface: hop.gateway for hop in fabric.view(SENDER).hops(_prefix(fabric))}
    route = ["route", "replace", _prefix(fabric), "proto", "static"]
    for interface in _order(fabric):
        weight = str(BY_HAND[interface])
        route += ["nexthop", "via", str(hops[interface]), "dev", interface, "weight", weight]
    links.ip(*route)
    try:
        yield
    finally:
        links.ip("route", "del", _prefix(fabric), "proto", "static")


def _prefix(fabric: Fabric) -> str:
    return str(fabric.plan.node(LEAF).host_prefixes[0])


def _living(rates: Rate) -> Rate:
    """Replace the rate of a dead link by a negligible one, to keep it in the computation."""
    return lambda port: 1.0 if rates(port) == 0.0 else rates(port)


def await_weights(fabric: Fabric, routing: str, rates: Rate) -> None:
    """Wait until the leaves' kernels use the live paths to the leaf, with the right weights."""
    plan = fabric.plan
    now = _living(rates if routing == AVAILABLE else kernel_rates(fabric))

    def accepts(name: str, view: KernelView) -> bool:
        capacities = path_capacities(plan, now, name, LEAF)
        expected = expected_shares(capacities, FLOWS if routing == FEW else None)
        wanted = {port: share for port, share in expected.items() if share > NOTHING}
        held = shares(view.hops(_prefix(fabric)))
        return wanted.keys() == held.keys() and all(
            abs(held[port] - (share if routing in WEIGHTED else 1 / len(wanted)))
            < TOLERANCE.get(routing, TOLERANCE[CAPACITY])
            for port, share in wanted.items()
        )

    others = [leaf for leaf in plan.leaves if leaf.name != LEAF]
    if wait_until(fabric.views(others), accepts, READY, quiet=SETTLED) is None:
        raise SystemExit(f"{routing}: the kernels do not install the expected routes")


# -- reporting ---------------------------------------------------------------------------------


def rows(runs: Sequence[Run] | None = None, mtu: int = MTU) -> list[dict[str, Any]]:
    """Run the selection of ``make bench``, or other runs; compare them with FRR."""
    if sandbox.problem() is not None or not Path("/usr/lib/frr/zebra").exists():
        return []
    chosen = short() if runs is None else runs
    directory = RESULTS / str(mtu)
    directory.mkdir(parents=True, exist_ok=True)
    if runs is None:
        for file in directory.glob("*.json"):
            file.unlink()

    def play() -> int:
        measure(chosen, mtu)
        return 0

    if sandbox.run(play):
        return []
    return rows_of(found_in(directory), mtu)


def main() -> None:
    """Run the selected workloads and print the table."""
    parser = argparse.ArgumentParser(description="Completion times by routing.")
    parser.add_argument("--all", action="store_true", help="all workloads in all scenarios")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws with --all")
    parser.add_argument("--mtu", type=int, default=MTU, choices=(1500, MTU))
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--routing", action="append", choices=tuple(ROUTINGS))
    parser.add_argument("--workload", action="append", choices=tuple(WORKLOADS))
    parser.add_argument("--kept", action="store_true", help="only show kept results")
    given = parser.parse_args()
    runs = [
        run
        for run in (everything(given.draws) if given.all else short())
        if (not given.scenario or run.scenario in given.scenario)
        and (not given.routing or run.routing in given.routing)
        and (not given.workload or run.workload in given.workload)
    ]
    if not given.kept:
        rows(runs, given.mtu)
    found = found_in(RESULTS / str(given.mtu))
    text = "\n".join([*table(rows_of(found, given.mtu)), "", *page(found, given.mtu)])
    (RESULTS / str(given.mtu) / "report.md").write_text(text + "\n", "utf-8")
    print(text)
