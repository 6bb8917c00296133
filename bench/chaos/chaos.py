"""Faults at random in a live fabric of fared, FRR and BIRD, under traffic, and a ledger of them.

Links fail and flap, daemons are killed, stopped and restarted, other programs change routes and
sysctls, old packets come again, processors are taken. After each fault everything must be right
again within ``DEADLINE``: databases equal, routes as an oracle's, kernels as planned, weights in
proportion, adjacencies back (``chaos_checks``). The ledger has, for each fault, the seconds from
its end until all kernels were right and until everything was (the comparison itself takes 0.3 s),
and the packets lost since its begin; where that takes longer than ``SLOW``, also what was wrong.

``python -m bench chaos [--minutes N] [--seed S] [--fabric FILE]``: exit code 1 if anything stayed
unrepaired, or a daemon logged a traceback; the logs of that fabric are kept. A seed chooses the
same faults in every run; how many of them fit into the time depends on the machine.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench import OUTPUT, ROOT
from bench.chaos.bgp_plane import BGP
from bench.chaos.checks import REFUSED, Complaints, Plane
from bench.chaos.faults import REPLAY, Fault, Faults
from bench.chaos.peers import Peers
from bench.chaos.planes import planes
from bench.lab.sandboxed import required, skipped
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.port import PortAddresses
from tests.lab.stream import Stream

FABRIC = ROOT / "containerlab" / "planes-mixed.clab.yml"
LOGS = OUTPUT / "chaos-logs"
SEEDS = (1, 2, 3, 4, 5)
MINUTES = 10.0
"""Of ``make bench``, for all seeds together."""
DEADLINE = 60.0
"""Seconds for every repair. BIRD originates at most every 5 s, sysctls are audited every 30 s."""
REFUSALS_END = 65.0
"""Seconds after which no daemon tells any more of hellos that it refused."""
SLOW = 10.0
"""Seconds after which the ledger says what is still wrong."""
START = 90.0
RATE, FLOWS = 500, 64
"""Packets/s of each stream, and over how many flows."""
CALM = 0.5
"""Seconds for which all must stay right."""
LOOK = 5.0
"""Seconds after which a router that crashed is noticed, at the latest."""
HELPER = "graceful-restart helper enable"
DRAIN = 0.2
"""Seconds after which a packet that has not arrived is lost."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A fault in the ledger; times are seconds, ``problem`` is what stayed wrong, if anything.

    ``slow``: what was wrong after ``SLOW`` seconds, if anything.
    """

    kind: str
    target: str
    kernels: float
    repaired: float
    lost: int
    sent: int
    problem: str | None = None
    slow: str | None = None


class Repair(NamedTuple):
    """Seconds until kernels and everything were right; what still was not, and what was late."""

    kernels: float
    seconds: float
    problem: str | None
    slow: str | None


class Traffic:
    """Numbered packets between the first and the last host of each plane, both ways."""

    def __init__(self, planes: Collection[Plane], stack: ExitStack) -> None:
        self._streams: list[Stream] = []
        for plane in planes:
            names = [host.name for host in plane.plan.hosts]
            for way in ((names[0], names[-1]), (names[-1], names[0])):
                stream = Stream.between(plane.fabric, *way, flows=FLOWS, rate=RATE)
                self._streams.append(stack.enter_context(stream))
        self._counted = [stream.sent for stream in self._streams]

    def since(self) -> tuple[int, int]:
        """Return packets lost and sent since the last call."""
        until = [stream.sent for stream in self._streams]
        time.sleep(DRAIN)
        spans = list(zip(self._streams, self._counted, until, strict=True))
        self._counted = until
        lost = sum(stream.missing(first, last) for stream, first, last in spans)
        return lost, sum(last - first for _, first, last in spans)


class Chaos:
    """A run in one fabric that is up."""

    replayed = -math.inf
    """When packets of another time or link were sent last: daemons tell of their hellos."""

    def __init__(self, fabric: Fabric, seed: int, stack: ExitStack) -> None:
        self.fabric = fabric
        self.planes = planes(fabric)
        self.complaints = Complaints(fabric)
        self.faults: Faults = Faults(fabric, seed)
        self.peers = Peers(fabric)
        stack.callback(self.faults.close)
        problem = self._await_right((), START).problem
        if problem is not None:
            raise RuntimeError(f"not right {START:g} s after the start: {problem}")
        self.traffic = Traffic(self.planes, stack)

    def entries(self, until: float, skip: int = 0) -> Iterator[Entry]:
        """Inflict faults until that time, without the first ``skip``; stop after a failure."""
        for number, fault in enumerate(self.faults):
            if number < skip:
                continue
            for entry in self._suffer(fault):
                yield entry
                if entry.problem is not None:
                    return
            if time.monotonic() >= until:
                return

    def _suffer(self, fault: Fault) -> Iterator[Entry]:
        self.faults.recorder.listen()
        self.peers.fault()
        fault.begin()
        if fault.kind == REPLAY:
            self.replayed = time.monotonic()
        if fault.down:
            yield self._entry(fault.kind, fault.target, fault.down)
            fault.end()
            yield self._entry("link up", fault.target, ())
            return
        time.sleep(fault.hold)
        fault.end()
        yield self._entry(fault.kind, fault.target, ())

    def _entry(self, kind: str, target: str, down: Collection[PortAddresses]) -> Entry:
        repair = self._await_right(down, DEADLINE)
        problem = repair.problem
        lost, sent = self.traffic.since()
        complaints = self.complaints.new()
        if complaints and problem is None:
            problem = f"logged: {complaints[0]}"
        target += self.peers.done()
        return Entry(kind, target, repair.kernels, repair.seconds, lost, sent, problem, repair.slow)

    def _await_right(self, down: Collection[PortAddresses], seconds: float) -> Repair:
        """Wait until everything is right, and stays so."""
        begun = time.monotonic()
        kernels, right, slow = begun, None, None
        while True:
            self.peers.look(time.monotonic() - begun)
            for plane in self.planes:
                failed = [port for port in down if port.node in plane.plan.nodes]
                left = min(begun + seconds - time.monotonic(), LOOK)
                kernels = max(kernels, self._kernels(plane, failed, left) or kernels)
            problem = self._problem(down)
            now = time.monotonic()
            if problem is None:
                right = right or now
                if now - right >= CALM:
                    return Repair(kernels - begun, right - begun, None, slow)
            else:
                right = None
                if now - begun > SLOW:
                    slow = slow or problem
                if now - begun > seconds:
                    return Repair(kernels - begun, seconds, problem, slow)
            time.sleep(0.1)

    def _kernels(
        self, plane: Plane, down: Collection[PortAddresses], seconds: float
    ) -> float | None:
        """Return when kernels became right, if they are wrong now."""
        if plane.kernels(down, 0.0) is not None:
            return None
        return plane.kernels(down, max(0.0, seconds))

    def _problem(self, down: Collection[PortAddresses]) -> str | None:
        excused = (REFUSED,) if time.monotonic() - self.replayed < REFUSALS_END else ()
        for plane in self.planes:
            failed = [port for port in down if port.node in plane.plan.nodes]
            found = plane.problem(failed, excused)
            if found is not None:
                return found
        return None


@contextmanager
def running(file: Path, directory: Path) -> Iterator[Fabric]:
    """A fabric with graceful restart at every router of an IGP that supports it."""
    with Fabric.from_file(file, directory=directory) as fabric:
        for plan in fabric.plan.routers:
            node, protocol = fabric.node(plan.name), plan.node.protocol
            if protocol == BGP:
                continue
            if plan.node.kind == "fared":
                path = node.directory / "fared.yaml"
                config = yaml.safe_load(path.read_text("utf-8"))
                section = config[protocol]
                section["graceful-restart"] = {"helper": True}
                if not plan.isis:
                    section["graceful-restart"]["enabled"] = True
                path.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
                node.cli("config", "reload")
            elif plan.node.kind == "frr" and not plan.isis:
                lines = ("configure terminal", "router ospf", HELPER)
                node.cli(*(word for line in lines for word in ("-c", line)))
                # in its file, too: it is killed and started again
                path = node.directory / "ospfd.conf"
                text = path.read_text("utf-8")
                path.write_text(
                    text.replace("\nrouter ospf\n", f"\nrouter ospf\n {HELPER}\n"), "utf-8"
                )
        yield fabric


def run(
    minutes: float,
    seed: int,
    file: Path = FABRIC,
    told: Callable[[str], object] = print,
) -> list[Entry]:
    """Inflict the faults of a seed for so long, inside a sandbox; return the ledger.

    After a fault that stayed unrepaired a new fabric goes on with the next one.
    """
    ledger: list[Entry] = []
    until = time.monotonic() + 60 * minutes
    suffered = 0
    while not ledger or time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="chaos") as directory, ExitStack() as stack:
            fabric = stack.enter_context(running(file, Path(directory)))
            chaos = Chaos(fabric, seed, stack)
            for entry in chaos.entries(until, suffered):
                ledger.append(entry)
                suffered += entry.kind != "link up"
                told(line(entry))
                if entry.slow is not None:
                    told(f"  wrong after {SLOW:g} s: {entry.slow}")
                if entry.problem is not None:
                    told(f"  unrepaired: {entry.problem}\n  logs: {keep(fabric, seed, suffered)}")
    return ledger


def keep(fabric: Fabric, seed: int, number: int) -> Path:
    """Copy logs and configurations of all nodes to where they outlive the fabric."""
    target = LOGS / f"{seed}-{number}"
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.sock", "*.vty", "zserv", "*.ctl")
    shutil.copytree(fabric.directory / "nodes", target, ignore=ignored)
    return target


# -- the ledger --------------------------------------------------------------------------------


def line(entry: Entry) -> str:
    """One line of the ledger."""
    return (
        f"{entry.kind:<17} {entry.target:<36} kernels {entry.kernels:6.2f} s  all"
        f" {entry.repaired:6.2f} s  lost {entry.lost:>5} of {entry.sent}"
    )


def table(ledger: Collection[Entry]) -> list[str]:
    """By kind of fault: how many, how many repaired, in which time, and packets lost."""
    heads = ("fault", "times", "repaired", "kernels", "worst", "all", "worst", "lost", "worst")
    lines = [heads]
    kinds = sorted({entry.kind for entry in ledger})
    for kind in [*kinds, ""]:
        rows = [entry for entry in ledger if kind in ("", entry.kind)]
        whole = [entry for entry in rows if entry.problem is None]
        figures = ["", "", "", ""]
        if whole:
            pairs = [[e.kernels for e in whole], [e.repaired for e in whole]]
            figures = [f"{f(v):.2f} s" for v in pairs for f in (statistics.median, max)]
        lost = [entry.lost for entry in rows]
        counts = (str(len(rows)), str(len(whole)))
        lines.append((kind or "all", *counts, *figures, str(sum(lost)), str(max(lost))))
    widths = [max(len(row[at]) for row in lines) for at in range(len(heads))]
    return [
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in lines
    ]


def rows() -> list[Row]:
    """The rows of ``make bench``: ten minutes over a fixed set of seeds."""
    if (reason := skipped()) is not None:
        return [reason]
    ledger = required("chaos", lambda: measure(MINUTES / len(SEEDS)))
    return rows_of([Entry(**entry) for entry in ledger])


def measure(minutes: float) -> list[dict[str, Any]]:
    """Run all seeds; return the ledger."""
    ledger = [entry for seed in SEEDS for entry in run(minutes, seed)]
    print("\n".join(table(ledger)))
    return [asdict(entry) for entry in ledger]


def rows_of(ledger: Collection[Entry]) -> list[Row]:
    """Unrepaired faults, with the goal of none; then medians and losses of each kind."""
    wrong = [entry for entry in ledger if entry.problem is not None]
    found: list[Row] = [
        {
            "name": f"faults at random left unrepaired, of {len(ledger)}",
            "ours": len(wrong),
            "unit": "",
            "goal": "0",
            "met": not wrong,
        }
    ]
    if wrong:
        found[0]["note"] = "; ".join(f"{e.kind} {e.target}: {e.problem}" for e in wrong)
    for kind in sorted({entry.kind for entry in ledger}):
        mine = [entry for entry in ledger if entry.kind == kind]
        worst = max(entry.repaired for entry in mine)
        for name, value, unit in (
            (
                "until all kernels are right, median",
                statistics.median(e.kernels for e in mine),
                "s",
            ),
            ("until everything is right, worst", worst, "s"),
            (f"packets lost, of {len(mine)} faults", sum(e.lost for e in mine), ""),
        ):
            found.append({"name": f"{kind}: {name}", "ours": value, "unit": unit})
    return found


def main() -> int:
    """Run one seed."""
    parser = argparse.ArgumentParser(description="Faults at random in a live fabric.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fabric", type=Path, default=FABRIC, metavar="FILE")
    options = parser.parse_args()

    def whole() -> int:
        def told(text: str) -> None:
            print(text, flush=True)

        ledger = run(options.minutes, options.seed, options.fabric, told)
        told("\n" + "\n".join(table(ledger)))
        return int(any(entry.problem is not None for entry in ledger))

    return sandbox.run(whole)
