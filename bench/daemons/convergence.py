"""Convergence of a fabric after a link fails, and after it is restored.

Real daemons in the 4x8 and the five-stage fabric of ``containerlab/``. A random leaf-spine link is
set down at the spine (both ends lose carrier), later up again; the same links for every daemon.
Times run from the netlink request to the change in the *last* kernel of the fabric:

- ``dead``: until no kernel uses a path over the dead link for any leaf's prefix;
- ``settled``: until no kernel changes its next hops for a leaf's prefix any more (a spine that
  lost its link to a leaf has found a detour as well);
- ``back``: from link up until every kernel uses all paths again.

One netlink socket per namespace, with time stamps from user space, is replayed over a dump
(``fib_replay``) and checked against the kernels' tables after every change. ``cpu``: all daemons.

All routers share the cores. Beside other work 10 of 60 failures took more than 60 ms: in 9 the
spine began late (the kernel had the request so late, or the spine no core), or lost its core
between two packets to the leaves, which then learn of the loss by copies over the other end's
neighbors, 25 to 100 ms later. Writes were as many as ever; CPU is twice to four times that of a
quiet machine for the same work.

On a quiet machine, by traces of the kernel's scheduler, the spine has flooded the loss to the
leaves after 1.2 to 2 ms of CPU. In five stages it is a border router, and needs 3 to 4 ms more for
its summary, on which the other PoD waits. It gets them within 7 to 18 ms of the failure: the
routers that it woke run meanwhile, and so do three that lose one of four next hops to the spine
itself.

In five stages FRR with tuned timers takes 17 to 29 ms or 68 to 75, which is longer by its SPF hold
time of 50 ms: the latter in two to five of ten failures. Its median was 22 and 46 ms in two runs in
which fared's was 22 and 25, so one run does not tell which is quicker there. On a machine twice as
fast fared's was 15 to 16 ms in five runs, and FRR's 17 to 42.

``python -m bench convergence [--full] [--only CASE ...] [--failures N]``; without arguments as in
``make bench``. ``--full`` runs every case with 10 failures (3 if a daemon is slow).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.fib.replay import Prefix, Switch, Use, Watcher
from bench.lab.sandboxed import measured, skipped
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds import NodeKind
from fared.extensions.lab.port import PortAddresses

READY = 90.0
SEED = 6
QUIET = 1.3
GAP = 0.7
RANDOM_GAP = 1.0
"""Pause after ``QUIET``: separates the back-offs of events, and randomises the phase of ticks."""


@dataclass(frozen=True)
class Case:
    """One daemon in one fabric. ``default`` strips the tuned timers from FRR's files."""

    name: str
    topology: str
    kind: str
    default: bool = False
    patience: float = 20.0
    failures: int | None = None


CASES = (
    Case("3-stage fared OSPF", "clos3", "fared"),
    Case("3-stage FRR OSPF tuned", "clos3", "frr"),
    Case("3-stage BIRD OSPF tuned", "clos3", "bird"),
    Case("3-stage fared IS-IS", "clos3-isis", "fared"),
    Case("3-stage FRR IS-IS tuned", "clos3-isis", "frr"),
    Case("3-stage FRR OSPF default", "clos3", "frr", default=True, patience=90, failures=3),
    Case("3-stage FRR IS-IS default", "clos3-isis", "frr", default=True, patience=90, failures=3),
    Case("5-stage fared OSPF", "clos5", "fared"),
    Case("5-stage FRR OSPF tuned", "clos5", "frr"),
    Case("5-stage BIRD OSPF tuned", "clos5", "bird", patience=30, failures=3),
    Case("5-stage FRR OSPF default", "clos5", "frr", default=True, patience=90, failures=3),
    Case("5-stage fared IS-IS", "clos5-isis", "fared"),
)
"""FRR's five-stage IS-IS is missing: it does not learn the prefixes of other PoDs."""
SHORT = {
    "3-stage fared OSPF": 5,
    "3-stage FRR OSPF tuned": 5,
    "3-stage BIRD OSPF tuned": 2,
    "5-stage fared OSPF": 4,
    "5-stage FRR OSPF tuned": 4,
}
"""The cases of ``make bench``, and the number of failures of each."""

Event = dict[str, float]
Results = dict[str, list[Event]]


# -- expected routes -------------------------------------------------------------------------


def distances(plan: AddressPlan, target: str, without: frozenset[str]) -> dict[str, int]:
    """Hops to a router, without the links between the two routers in ``without``."""
    found, queue = {target: 0}, [target]
    for name in queue:
        for port in plan.nodes[name].fabric_ports:
            if port.peer not in found and {name, port.peer} != without:
                found[port.peer] = found[name] + 1
                queue.append(port.peer)
    return found


def leaf_uses(plan: AddressPlan, without: frozenset[str]) -> dict[str, Use]:
    """Interfaces that every leaf must use for the prefixes of all other leaves."""
    uses: dict[str, Use] = {leaf.name: {} for leaf in plan.leaves}
    for leaf in plan.leaves:
        far = distances(plan, leaf.name, without)
        for other in plan.leaves:
            if other is leaf:
                continue
            ports = frozenset(
                port.index
                for port in other.fabric_ports
                if far.get(port.peer, 99) == far[other.name] - 1
                and {other.name, port.peer} != without
            )
            uses[other.name].update(dict.fromkeys(prefixes(leaf), ports))
    return uses


def prefixes(leaf: NodePlan) -> Iterator[Prefix]:
    """The prefixes of a leaf's hosts, as the kernel writes them."""
    for network in leaf.host_prefixes:
        yield network.network_address.packed, network.prefixlen


# -- one fabric ------------------------------------------------------------------------------


class DefaultTimers:
    """FRR with default timers: the node kind without the lines that tune it."""

    TUNING = ("hello-interval", "dead-interval", "retransmit-interval", "timers ", "hello-multi")

    def __init__(self, kind: NodeKind) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - delegates to the kind
        return getattr(self._kind, name)

    def files(self, plan: NodePlan, directory: Path) -> Mapping[str, str]:
        """The generated files without tuning."""
        return {
            name: "\n".join(
                line for line in text.splitlines() if not any(t in line for t in self.TUNING)
            )
            + "\n"
            for name, text in self._kind.files(plan, directory).items()
        }


def measure(case: Case, failures: int) -> list[Event]:
    """Build the fabric of a case, fail links and restore them."""
    fabric = Fabric.from_file(
        ROOT / "containerlab" / f"{case.topology}.clab.yml", as_kind=case.kind
    )
    if case.default:
        for node in fabric.nodes.values():
            if node.plan.node.is_router:
                node.kind = DefaultTimers(node.kind)  # type: ignore[assignment]
    with fabric:
        routers = {plan.name: fabric.node(plan.name).netns for plan in fabric.plan.routers}
        wanted = frozenset(prefix for leaf in fabric.plan.leaves for prefix in prefixes(leaf))
        watcher = Watcher(routers, wanted)
        try:
            hurry()
            return list(_Story(case, fabric, watcher).run(failures))
        finally:
            relax()
            watcher.close()


def hurry() -> None:
    """Give this process real-time priority, so that time stamps are exact on a busy machine.

    Called after the daemons have started, which would inherit it. Needs privileges.
    """
    with contextlib.suppress(PermissionError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))


def relax() -> None:
    """Restore the normal scheduling policy before the next fabric is started."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class _Story:
    def __init__(self, case: Case, fabric: Fabric, watcher: Watcher) -> None:
        self.case, self.fabric, self.watcher = case, fabric, watcher
        self.plan = fabric.plan
        self.random = random.Random(SEED)
        self.pids = [p.pid for node in fabric.nodes.values() for p in node.processes]

    def run(self, failures: int) -> Iterator[Event]:
        whole = leaf_uses(self.plan, frozenset())
        if not self.watcher.await_quiet(lambda: self._leaves_use(whole), 2.0, READY):
            raise TimeoutError(f"{self.case.name}: not all paths after {READY:.0f} s")
        home = self.watcher.use()
        for number in range(failures):
            leaf = self.random.choice(self.plan.leaves)
            port = self.random.choice(leaf.fabric_ports)
            event = self._flap(port, home)
            event["number"] = number
            print(f"  {port.peer}-{port.node}", _told(event), flush=True)
            yield event

    def _leaves_use(self, uses: Mapping[str, Use]) -> bool:
        kernels = self.watcher.kernels
        return all(
            {p: i for p, i in kernels[name].use().items() if p in use} == use
            for name, use in uses.items()
        )

    def _flap(self, port: PortAddresses, home: Mapping[str, Use]) -> Event:
        """Set a leaf's link down at the spine and up again."""
        spine = next(p for p in self.plan.node(port.peer).ports if p.name == port.peer_port)
        cut = leaf_uses(self.plan, frozenset((port.node, port.peer)))
        gone = {port.node: port.index, spine.node: spine.index}

        def avoided() -> bool:
            kernels = self.watcher.kernels
            alive = (i for n, dead in gone.items() for i in kernels[n].use().values() if dead in i)
            return self._leaves_use(cut) and not any(alive)

        switch = Switch(self.fabric.node(spine.node).netns)
        try:
            self._pause()
            begun, cpu, after = self._turn(switch, spine, up=False, accepts=avoided)
            dead, settled = self._left(home, after, begun)
            event = {"dead": dead, "settled": settled, "cpu_down": cpu}
            event.update(self._slowest("down", begun))
            self._pause()
            begun, cpu, _ = self._turn(
                switch, spine, up=True, accepts=lambda: self.watcher.use() == home
            )
            event |= {"back": self._last(begun), "cpu_up": cpu}
            return event
        finally:
            switch.close()

    def _pause(self) -> None:
        until = time.monotonic() + GAP + RANDOM_GAP * self.random.random()
        while (left := until - time.monotonic()) > 0:
            self.watcher.collect(left)

    def _turn(
        self, switch: Switch, port: PortAddresses, *, up: bool, accepts: Callable[[], bool]
    ) -> tuple[float, float, dict[str, Use]]:
        self.watcher.begin()
        cpu = cpu_seconds(self.pids)
        begun, thread = switch.set(port, up=up)
        done = self.watcher.await_quiet(accepts, QUIET, self.case.patience)
        thread.join()
        if not done:
            state = "up" if up else "down"
            raise TimeoutError(f"{self.case.name}: {port.node} {port.name} {state}: no convergence")
        if wrong := self.watcher.disagreements():
            raise RuntimeError(f"{self.case.name}: replay and kernel differ: {', '.join(wrong)}")
        return begun, cpu_seconds(self.pids) - cpu, self.watcher.use()

    def _left(
        self, home: Mapping[str, Use], after: Mapping[str, Use], begun: float
    ) -> tuple[float, float]:
        """Return when the last dead path was removed, and when the last change happened."""
        empty: frozenset[int] = frozenset()
        dead = {
            (name, prefix): used - after[name].get(prefix, empty)
            for name, use in home.items()
            for prefix, used in use.items()
        }
        last = begun
        held = {key: True for key, ports in dead.items() if ports}
        for at, name, use in self.watcher.log:
            for (node, prefix), before in held.items():
                if node == name:
                    now = bool(dead[node, prefix] & use.get(prefix, empty))
                    if before and not now:
                        last = at
                    held[node, prefix] = now
        return last - begun, self._last(begun)

    def _last(self, begun: float) -> float:
        return max((at for at, _, _ in self.watcher.log), default=begun) - begun

    def _slowest(self, what: str, begun: float) -> dict[str, float]:
        """The last change of the median node, which shows how much the last node lags."""
        last = {name: at - begun for at, name, _ in self.watcher.log}
        return {f"{what}_median_node": statistics.median(last.values())} if last else {}


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU seconds of processes so far, all threads."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _told(event: Event) -> str:
    return " ".join(f"{key} {value * 1e3:.1f}" for key, value in event.items() if key != "number")


# -- the report ------------------------------------------------------------------------------


def run(wanted: Mapping[str, int]) -> Results:
    """Measure the cases in a sandbox; none without namespaces."""
    if (reason := skipped()) is not None:
        print(f"convergence: {reason['name']}")
        return {}

    def payload() -> Results:
        results: Results = {}
        for case in CASES:
            if case.name in wanted:
                print(f"{case.name}:", flush=True)
                try:
                    results[case.name] = measure(case, wanted[case.name])
                except (TimeoutError, RuntimeError) as error:
                    print(f"  skipped: {error}", flush=True)
        return results

    return measured("convergence", payload) or {}


def median(results: Results, case: str, what: str) -> float | None:
    """Milliseconds."""
    events = results.get(case)
    return statistics.median(event[what] for event in events) * 1e3 if events else None


PAIRS = (
    ("3-stage fared OSPF", "3-stage FRR OSPF tuned", 1.0, 2.0),
    ("3-stage fared OSPF", "3-stage FRR OSPF default", None, None),
    ("3-stage fared OSPF", "3-stage BIRD OSPF tuned", None, None),
    ("3-stage fared IS-IS", "3-stage FRR IS-IS tuned", 1.0, 2.0),
    ("3-stage fared IS-IS", "3-stage FRR IS-IS default", None, None),
    ("5-stage fared OSPF", "5-stage FRR OSPF tuned", 1.0, 2.0),
    ("5-stage fared OSPF", "5-stage FRR OSPF default", None, None),
    ("5-stage fared OSPF", "5-stage BIRD OSPF tuned", None, None),
    ("5-stage fared IS-IS", "5-stage FRR OSPF tuned", None, None),
)
"""Our case, the peer's case, and the ratios to reach on failure and on recovery."""
WHAT = (
    ("dead", "dead link left"),
    ("settled", "settled after failure"),
    ("back", "in use again"),
)


def table(results: Results) -> list[dict[str, Any]]:
    """Convert results to rows of the report."""
    rows: list[dict[str, Any]] = []
    for ours_name, theirs_name, down_goal, up_goal in PAIRS:
        for what, words in WHAT:
            ours, theirs = median(results, ours_name, what), median(results, theirs_name, what)
            if ours is None or theirs is None:
                continue
            goal = {"dead": down_goal, "back": up_goal}.get(what)
            ratio = theirs / ours
            counts = f"n={len(results[ours_name])}/{len(results[theirs_name])}"
            beside = theirs_name.partition(" ")[2]
            rows.append(
                {
                    "name": f"{ours_name}: {words}, beside {beside} ({counts})",
                    "ours": ours,
                    "other": theirs,
                    "unit": "ms",
                    "ratio": ratio,
                    "goal": None if goal is None else f">= {goal:g}",
                    "met": None if goal is None else ratio >= goal,
                }
            )
    return rows


def rows() -> list[dict[str, Any]]:
    """The rows of ``make bench``."""
    return table(run(SHORT))


def main() -> int:
    """Measure the cases that the arguments select."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="*", metavar="CASE")
    parser.add_argument("--failures", type=int)
    options = parser.parse_args()
    wanted = dict(SHORT)
    if options.full or options.only:
        wanted = {case.name: case.failures or 10 for case in CASES}
    if options.only:
        wanted = {n: c for n, c in wanted.items() if any(word in n for word in options.only)}
    if options.failures:
        wanted = dict.fromkeys(wanted, options.failures)
    results = run(wanted)
    for name, events in results.items():
        line = [f"{name:28} n={len(events)}"]
        for what in ("dead", "settled", "back", "cpu_down", "cpu_up"):
            values = [event[what] * 1e3 for event in events]
            spread = f"{min(values):.0f}-{max(values):.0f}"
            line.append(f"{what} {statistics.median(values):.1f} [{spread}]")
        print("  ".join(line))
    for row in table(results):
        verdict = {None: "", True: "met", False: "MISSED"}[row["met"]]
        times = f"{row['ours']:.1f} / {row['other']:.1f} ms"
        print(f"{row['name']}: {times} = {row['ratio']:.2f} {verdict}")
    return 0
