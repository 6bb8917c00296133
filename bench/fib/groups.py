"""All 512 groups of 64 members change at once: fared, FRR's zebra, ``ip -batch``.

Leaf 0 of a fabric of 66 spines and 513 leaves. Each other leaf is connected to a different set of
64 spines: 512 destinations, 512 groups of 64 members. Daemons and neighbors are those of
``beside``, over real adjacencies; spines advertise the capacities of their downlinks (33,000 TE
LSAs), which determine leaf 0's weights. Two events, each flooded by spine 0 and then reverted:

- The capacity of spine 1 toward all leaves halves: one TE LSA per link, all in one batch. Every
  group that contains spine 1 gets new weights; FRR has no equivalent. ``ip -batch`` then writes
  the groups of fared's kernel before and after the event, in turn.
- The metric of spine 1 toward all leaves doubles: one router LSA. All of these groups lose a
  member; FRR also has to change the next hops of 512 destinations. zebra creates new groups and
  moves the routes to them (``zebra nexthop kernel enable``, its default). Without that option it
  writes whole routes, which takes as long or longer: measured only with more events than usual.

``python -m bench fib/groups [EVENTS]``
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from bench.beside.beside import Bench
from bench.lab.sandboxed import required, skipped
from bench.neighbors.devices import Device
from bench.neighbors.fabric import COST, RATE, Fabric
from bench.neighbors.lsas import MTU
from bench.neighbors.ospf import OspfSpeaker
from bench.report import show
from bench.rows import compared
from fared.extensions.lab.namespaces import Netns
from fared.management.api.client import ControlClient
from fared.protocols.ospf.packet.lsa import Lsa

ZEBRA = "/usr/lib/frr/zebra"
SPINES, LEAVES = 66, 513
WAYS, GROUPS = 64, 512
CHANGED = 1
"""The spine whose links change; spine 0 floods the change."""
FEW = 4
EVENTS = 2
BATCHES = 3
READY, REACTION = 90.0, 30.0
QUIET = 1.0
SPACING = 2.2
"""Longer than the hold-down of the SPF back-off (RFC 8405): at most two seconds here."""
GOAL_PROGRAM = 0.5
"""The kernel's own work is nearly all of the time of ``ip -batch``: planning may double it."""
CAPACITY, METRIC = ("capacity",), ("metric", "metric back")
PARTS = ("computed", "planned", "programmed")
Row = dict[str, Any]
Figures = dict[str, float]


def sparse(*, te: bool) -> Fabric:
    """A fabric whose leaves each lack two spines, no two leaves the same; never 0 or 1."""
    pairs = islice(combinations(range(2, SPINES), 2), LEAVES - 1)
    cut = {(spine, leaf) for leaf, pair in enumerate(pairs, 1) for spine in pair}
    fabric = Fabric(SPINES, LEAVES, te=te, cut=cut)
    for router in fabric.routers():
        fabric.router_lsa(router)
    for spine in map(fabric.spine, range(SPINES if te else 0)):
        for link, *_ in fabric.ends(spine):
            fabric.te_lsa(spine, link)
    return fabric


# -- one daemon ----------------------------------------------------------------------------------


class Run:
    """One daemon, synchronized, and its reactions to events."""

    def __init__(self, device: Device, *, objects: bool = True) -> None:
        self.device = device
        self._objects = objects
        self.bench = Bench([device])
        self.found: dict[str, list[Figures]] = {}
        self._next = 0.0

    def synchronize(self) -> None:
        """Start the daemon and wait until it has all paths. Raises RuntimeError."""
        device, speakers = self.device, list(self.device.speakers.values())
        device.start()
        if device.kind == "frr" and self._objects:
            words = ("configure terminal", "zebra nexthop kernel enable")
            told = (part for word in words for part in ("-c", word))
            device.inside.run(["vtysh", "--vty_socket", str(device.directory), *told])
        if not self.bench.serve(15.0, lambda: all(speaker.heard_at for speaker in speakers)):
            raise RuntimeError(f"{device.name}: sends no hello\n{device.diagnosis()}")
        # One neighbor has the database; its LSAs need not be flooded to the others.
        for some, ways in ((speakers[:1], 1), (speakers, WAYS)):
            for speaker in some:
                speaker.silent = False
                speaker.hello()
            self._await(ways, some)
        self._quiet(1.5)

    def _await(self, ways: int, speakers: list[Any]) -> None:
        checked = 0.0

        def complete() -> bool:
            nonlocal checked
            if time.monotonic() < checked + 0.5 or not all(one.full for one in speakers):
                return False
            widths = [len(self.device.width(leaf)) for leaf in (1, LEAVES - 1)]
            checked = time.monotonic()
            return widths == [ways, ways]

        if not self.bench.serve(READY, complete):
            found = [len(self.device.width(leaf)) for leaf in (1, LEAVES - 1)]
            raise RuntimeError(f"{self.device.name}: {found}, not {ways}, paths in {READY:g} s")

    def _quiet(self, seconds: float) -> None:
        last = time.monotonic()

        def still() -> bool:
            nonlocal last
            if self.device.changes():
                last = time.monotonic()
            return time.monotonic() > last + seconds

        self.bench.serve(READY, still)

    def react(self, name: str, lsas: list[Lsa], accepts: Callable[[dict[str, int]], bool]) -> None:
        """Flood an event, and record the first and the last change in the kernel, ms."""
        device, server = self.device, self.device.server
        assert isinstance(server, OspfSpeaker)
        told = [server.flood(portion) for portion in portions(lsas)]
        self.bench.serve(max(0.0, self._next - time.monotonic()))
        device.changes()
        since = time.time()
        poll = select.poll()
        poll.register(device.monitor.fileno(), select.POLLIN)
        began = now = time.perf_counter()
        for send in told:
            send()
        first = last = None
        while last is None or now < last + QUIET or not self._all(accepts):
            ready = poll.poll(20)
            now = time.perf_counter()
            if ready and device.changes():
                first, last = first or now, now
            elif now > began + REACTION:
                raise RuntimeError(f"{device.name}: not all of {name} in {REACTION:g} s")
        assert first is not None
        self._next = time.monotonic() + SPACING
        if device.changes():
            print(f"{device.name}: changes after {QUIET:g} s of quiet: {name}", file=sys.stderr)
            return  # the time of the last change is not known
        self.bench.serve(0.2)
        figures = {"first": (first - began) * 1e3, "last": (last - began) * 1e3}
        if new := self._records(since):
            figures |= {part: sum(record[part] for record in new) * 1e3 for part in PARTS}
            figures["turns"] = len(new)
            figures["operations"] = sum(record["operations"] for record in new)
        self.found.setdefault(name, []).append(figures)

    def _all(self, accepts: Callable[[dict[str, int]], bool]) -> bool:
        return all(accepts(self.device.width(leaf)) for leaf in range(1, LEAVES, LEAVES // FEW))

    def _records(self, since: float) -> list[dict[str, Any]]:
        """Fared's convergence records from a time on."""
        if self.device.kind != "fared":
            return []
        client = ControlClient(str(self.device.directory / "fared.sock"))
        changes = client.request("show", "convergence")["changes"]
        return [record for record in changes if record["at"] >= since]

    # Events

    def metric(self) -> None:
        """Double the metric of all downlinks of a spine, then restore it."""
        fabric, spine = self.device.fabric, self.device.fabric.spine(CHANGED)
        name = f"s{CHANGED}"
        links = [(CHANGED, leaf) for leaf in range(1, LEAVES)]
        fabric.costs.update(dict.fromkeys(links, 2 * COST))
        self.react("metric", [fabric.router_lsa(spine)], lambda width: name not in width)
        fabric.costs.clear()
        self.react("metric back", [fabric.router_lsa(spine)], lambda width: name in width)

    def capacity(self, rate: float) -> None:
        """Set the capacity of all downlinks of a spine."""
        fabric, spine = self.device.fabric, self.device.fabric.spine(CHANGED)
        links = [(CHANGED, leaf) for leaf in range(1, LEAVES)]
        fabric.rates = dict.fromkeys(links, rate)
        name, less = f"s{CHANGED}", rate < RATE

        def accepts(width: dict[str, int]) -> bool:
            return (width[name] < max(width.values())) is less

        self.react("capacity", [fabric.te_lsa(spine, link) for link in links], accepts)


def portions(lsas: Iterable[Lsa]) -> Iterator[list[Lsa]]:
    """Split LSAs into portions that fit a packet."""
    portion: list[Lsa] = []
    for lsa in lsas:
        if portion and sum(len(one.raw) for one in portion) + len(lsa.raw) > MTU - 48:
            yield portion
            portion = []
        portion.append(lsa)
    yield portion


# -- ip -batch -----------------------------------------------------------------------------------


def groups(netns: Netns) -> dict[int, str]:
    """Return the groups with all members, in the syntax of ``ip``."""
    found = {}
    for item in json.loads(netns.ip("-j", "nexthop", "show")):
        members = item.get("group", ())
        if len(members) == WAYS:
            text = "/".join(f"{one['id']},{one.get('weight', 1)}" for one in members)
            found[item["id"]] = f"group {text} proto {item['protocol']}"
    return found


def written(netns: Netns, states: list[dict[int, str]], directory: Path) -> list[float]:
    """Write the states in turn with ``ip -batch``, several times; return ms for each write."""
    files = []
    for number, state in enumerate(states):
        files.append(directory / f"groups-{number}")
        lines = [f"nexthop replace id {group} {rest}\n" for group, rest in state.items()]
        files[-1].write_text("".join(lines))
    times = []
    for turn in range(BATCHES * len(files)):
        file = str(files[turn % len(files)])
        began = time.perf_counter()
        netns.ip("-batch", file)
        times.append((time.perf_counter() - began) * 1e3)
    return times


# -- the whole measurement -----------------------------------------------------------------------


def measure(kind: str, events: int, *, objects: bool = True) -> dict[str, Any]:
    """Run a daemon through all events it supports; ``objects``: zebra writes next-hop groups."""
    fabric = sparse(te=kind == "fared")
    gc.collect()
    gc.freeze()
    gc.disable()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.chmod(0o777)
        device = Device(kind, "ospf", fabric, directory)
        stack.callback(device.stop)
        run = Run(device, objects=objects)
        began = time.perf_counter()
        run.synchronize()
        found: dict[str, Any] = {
            "sync": time.perf_counter() - began,
            "groups": len(groups(device.inside)),
        }
        states = []
        for turn in range(2 * events if kind == "fared" else 0):
            run.capacity(RATE if turn % 2 else RATE / 2)
            states.append(groups(device.inside))
        for _ in range(events):
            run.metric()
        if kind == "fared":
            for process in device.processes:
                process.kill()
                process.wait(10)
            found["ip"] = written(device.inside, states[:2], directory)
        return found | run.found


def measure_all(events: int) -> dict[str, Any]:
    """Measure all daemons."""
    results = {"fared": measure("fared", events)}
    if shutil.which(ZEBRA):
        results["frr"] = measure("frr", events)
        if events > EVENTS:
            results["frr routes"] = measure("frr", events, objects=False)
    return results


def middle(found: dict[str, Any], what: str, *events: str) -> float:
    """The median of a figure over events of several kinds."""
    return statistics.median(one[what] for event in events for one in found[event])


def rows(events: int = EVENTS) -> list[Row]:
    """Compare new weights with ``ip -batch``, and changed members with zebra."""
    if (reason := skipped()) is not None:
        return [reason]
    return as_rows(required("fib_groups", lambda: measure_all(events)))


def as_rows(found: dict[str, dict[str, Any]]) -> list[Row]:
    """Rows of the report."""
    ours = found["fared"]
    whole, writes = middle(ours, "last", *CAPACITY), statistics.median(ours["ip"])
    parts = {part: middle(ours, part, *CAPACITY) for part in PARTS}
    told = ", ".join(f"{name} {value:.0f} ms" for name, value in parts.items())
    program = parts["planned"] + parts["programmed"]
    table: list[Row] = [
        compared(
            f"{GROUPS} groups of {WAYS}, planned and written / ip -batch",
            program,
            writes,
            "ms",
            GOAL_PROGRAM,
        )
        | {
            "note": f"the capacity of a spine changes toward {GROUPS} leaves: {GROUPS} TE LSAs in"
            f" one batch change the weights of {GROUPS} groups; {told};"
            " ip -batch writes the same groups and computes nothing",
        },
        compared(
            f"{GROUPS} groups of {WAYS}, {GROUPS} TE LSAs to the last group / ip -batch",
            whole,
            writes,
            "ms",
        ),
    ]
    for kind, label in (("frr", "FRR"), ("frr routes", "FRR, whole routes")):
        if kind in found:
            table += zebra_rows(ours, found[kind], label)
    return table


def zebra_rows(ours: dict[str, Any], theirs: dict[str, Any], label: str) -> list[Row]:
    """Compare with zebra: groups per second while it writes, and the whole reaction."""
    rates, spans = [], []
    for side in (ours, theirs):
        writing = [one["last"] - one["first"] for event in METRIC for one in side[event]]
        rates.append(GROUPS / statistics.median(writing) * 1e3)
        spans.append(middle(side, "last", *METRIC))
    note = (
        f"the metric of a spine changes toward {GROUPS} leaves: one router LSA, {GROUPS} groups"
        f" lose or regain a member; from the first to the last change in the kernel. zebra of"
        " FRR 8.4 creates new groups and moves the routes to them, fared replaces the groups"
    )
    return [
        compared(f"group rewrites / {label}", *rates, "groups/s", 1, more_is_better=True)
        | {"note": note},
        compared(
            f"{GROUPS} groups get other members, LSA to the last of them / {label}",
            *spans,
            "ms",
            1,
        ),
    ]


def main() -> None:
    """Measure so many events of each kind."""
    parser = argparse.ArgumentParser(description="512 groups of 64 members change at once.")
    parser.add_argument("events", nargs="?", type=int, default=EVENTS)
    show(rows(parser.parse_args().events))
